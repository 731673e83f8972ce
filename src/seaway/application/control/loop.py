"""The control loop: collect, decide, execute, observe."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence

from seaway.application.changes import Change
from seaway.application.control.dispatch import Dispatcher
from seaway.application.control.live import Live
from seaway.application.control.observe import Observer
from seaway.application.control.schedule import ProfileFactory, Scheduler
from seaway.application.control.settings import ControlSettings
from seaway.application.control.upkeep import Upkeep
from seaway.application.ports.backend import Backends
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.writer import Writer
from seaway.domain.errors import UnavailableError

log = logging.getLogger(__name__)


class Controller:
    """Steps jobs on, for ever.

    Nothing is told to a cluster before it is stored. When the database does not answer, what is in
    memory is worth nothing, and is read anew as soon as it does.

    Parameters
    ----------
    store, writer
        Where jobs are kept.
    backends, dispatcher
        The clusters, and who talks to them.
    make
        How to make policies.

    Attributes
    ----------
    lock
        Held while the memory changes; whoever looks at it from another thread takes it.
    """

    def __init__(  # everything that the loop brings together
        self,
        store: Store,
        writer: Writer,
        backends: Backends,
        dispatcher: Dispatcher,
        make: ProfileFactory,
        clock: Clock,
        settings: ControlSettings,
    ) -> None:
        self._store = store
        self._writer = writer
        self._backends = backends
        self._dispatcher = dispatcher
        self._settings = settings
        self.lock = threading.RLock()
        self.live = Live(dispatcher, clock, settings)
        self.observer = Observer(self.live, store)
        self.scheduler = Scheduler(self.live, make)
        self.upkeep = Upkeep(self.live, self.observer)
        self._clock = clock
        self._loaded = False
        self._inbox: deque[Sequence[Change]] = deque()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        writer.listen(self._stored)

    @property
    def loaded(self) -> bool:
        """Whether the memory agrees with the database."""
        return self._loaded

    def step(self) -> bool:
        """Go round once; tell whether anything happened.

        Raises
        ------
        UnavailableError
            When the database does not answer. The next step reads everything anew.
        """
        try:
            with self.lock:
                if not self._loaded:
                    self._load()
                self._meet()
                self._take_over()
            happened = self._observe()
            happened |= self._keep_up()
            happened |= self._schedule()
        except UnavailableError:
            self._loaded = False
            raise
        return happened

    # The four parts.

    def _load(self) -> None:
        self._inbox.clear()
        self.live.load(self._store)
        self._loaded = True

    def _meet(self) -> None:
        """Talk to the clusters that there are now."""
        backends = self._backends.clusters()
        names = [backend.cluster for backend in backends]
        if names != list(self.live.fleet.clusters):
            self.live.fleet.know(names, self._clock.monotonic_ns())
            self._dispatcher.use(backends)
        self.live.fleet.connect(self._backends.gateways(), self._backends.links())

    def _take_over(self) -> None:
        """Take over what was stored by others."""
        while self._inbox:
            self.live.apply(self._inbox.popleft())

    def _observe(self) -> bool:
        with self.lock:
            changes = self.observer.changes(self._dispatcher.collect())
        return self._store_all(changes)

    def _keep_up(self) -> bool:
        with self.lock:
            changes = self.upkeep.changes()
        return self._store_all(changes)

    def _schedule(self) -> bool:
        happened = False
        while True:
            with self.lock:
                decisions = self.scheduler.next()
            if not decisions:
                break
            outcomes = self._writer.commit([decision.change for decision in decisions])
            with self.lock:
                self.scheduler.settle(decisions, outcomes)
                self._take_over()
            happened = True
        with self.lock:
            changes = [*self.scheduler.take_in(), *self.scheduler.shadows.changes()]
        return self._store_all(changes) or happened

    def _store_all(self, changes: Sequence[Change]) -> bool:
        """Store changes; what somebody else changed meanwhile is left, as its new state comes in anyhow."""
        if not changes:
            return False
        self._writer.commit(changes)
        with self.lock:
            self._take_over()
        return True

    # A thread of its own.

    def start(self) -> None:
        """Go round in a thread of its own until `stop`."""
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the round and end the thread."""
        self._stopping.set()
        self._wake.set()
        if self._thread:
            self._thread.join()

    def wake(self) -> None:
        """Go round now rather than at the next look around."""
        self._wake.set()

    def _stored(self, changes: Sequence[Change]) -> None:
        self._inbox.append(changes)
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                if self.step():
                    continue
            except UnavailableError as error:
                log.warning("%s; trying again in %d s", error, error.retry_after_s)
                self._stopping.wait(error.retry_after_s)
                continue
            except Exception:
                log.exception("the control loop failed; everything is read anew")
                self._loaded = False
                self._stopping.wait(1)
                continue
            self._wake.wait(self._pause_s())

    def _pause_s(self) -> float:
        due_ns = self.live.deadlines.next_ns()
        if due_ns is None:
            return self._settings.poll_s
        return max(0.0, min(self._settings.poll_s, (due_ns - self._clock.monotonic_ns()) / 1e9))
