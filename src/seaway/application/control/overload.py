"""Overload of the control loop, and health of the database. Pages update less often during overload."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from seaway.application.ports.clock import Clock
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import Reason, reason_of

LONG_NS = 20_000_000
"""Minimum duration of a cycle that indicates a backlog rather than single events, nanoseconds."""

LINGER_NS = 100_000_000
"""Duration of overload after a long cycle, nanoseconds. Busy periods have idle cycles too."""


@dataclass(slots=True)
class Round:
    """Cycle of the loop, with the information whether it found work."""

    found: bool = False


class Overload:
    """Detection of overload from the cycles of the loop. The loop's thread reports them; any thread can read.

    Frequent single jobs are no overload, since a job that is placed quickly delays nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ns: int | None = None
        self._until_ns = 0

    @property
    def on(self) -> bool:
        """True while a long cycle runs, and shortly afterwards."""
        now_ns, began_ns = self._clock.monotonic_ns(), self._began_ns
        return now_ns < self._until_ns or (began_ns is not None and now_ns - began_ns >= LONG_NS)

    @contextmanager
    def round(self) -> Iterator[Round]:
        """Observe a cycle; the caller sets whether it found work."""
        this = Round()
        began_ns = self._began_ns = self._clock.monotonic_ns()
        try:
            yield this
        finally:
            now_ns, self._began_ns = self._clock.monotonic_ns(), None
            if this.found and now_ns - began_ns >= LONG_NS:
                self._until_ns = now_ns + LINGER_NS


log = logging.getLogger(__name__)

NS = 1_000_000_000

EVERY_S = 1.0
"""Seconds between two checks."""

PATIENCE_S = 5
"""Seconds after which a check counts as failed."""


class DatabaseHealth:
    """Health check of the database, in a separate thread or on request.

    It holds no lock, so an unresponsive database blocks nothing.

    Parameters
    ----------
    ping
        Minimal query; raises `UnavailableError` if the database does not respond.
    """

    def __init__(self, ping: Callable[[], None], clock: Clock) -> None:
        self._ping, self._clock = ping, clock
        self._asked_ns: int | None = None
        self._trouble = ""
        self._stopping = threading.Event()

    @property
    def trouble(self) -> str:
        """Reason why nothing can be stored; empty while the database responds."""
        asked_ns = self._asked_ns
        if asked_ns is not None and (waited_s := (self._clock.monotonic_ns() - asked_ns) // NS) > PATIENCE_S:
            return Reason("database_silent_for", waited=waited_s)
        return self._trouble

    def start(self) -> None:
        """Check periodically until `stop`."""
        threading.Thread(target=self._run, name="database-health", daemon=True).start()

    def stop(self) -> None:
        """End the thread without waiting for a pending answer."""
        self._stopping.set()

    def look(self) -> None:
        """Check now."""
        self._asked_ns = self._clock.monotonic_ns()
        try:
            self._ping()
            trouble = ""
        except UnavailableError as error:
            trouble = reason_of(error)
        self._asked_ns = None
        if trouble and not self._trouble:
            log.warning("%s; no job is placed until then", trouble)
        self._trouble = trouble

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_S):
            try:
                self.look()
            except Exception:  # a bug must not end the checks
                log.exception("the health check of the database failed")
                self._asked_ns = None
