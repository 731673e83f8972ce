"""Whether the control loop has its hands full: who can wait, as a page that is looked at, waits while it does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from seaway.application.ports.clock import Clock
from seaway.domain.errors import UnavailableError

LONG_NS = 20_000_000
"""A round that takes longer has more to do than what comes in one by one."""

LINGER_NS = 100_000_000
"""How long a rush goes on after a long round: in the midst of it there is a round that finds nothing, too."""


@dataclass(slots=True)
class Round:
    """A round of the loop, and whether it found something to do."""

    found: bool = False


class Overload:
    """Watches the rounds of the loop: its thread tells of them, and any other may ask.

    A job now and then is no rush, however often rounds find something to do: what is placed in a moment keeps nobody
    waiting, and no one has to keep out of its way.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ns: int | None = None
        self._until_ns = 0

    @property
    def on(self) -> bool:
        """Whether a long round is under way, or ended a moment ago."""
        now_ns, began_ns = self._clock.monotonic_ns(), self._began_ns
        return now_ns < self._until_ns or (began_ns is not None and now_ns - began_ns >= LONG_NS)

    @contextmanager
    def round(self) -> Iterator[Round]:
        """Watch a round; who goes it says of it whether it found something to do."""
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

EVERY_S = 10.0
"""How often it is asked."""

PATIENCE_S = 15
"""How long an answer may take."""


class DatabaseHealth:
    """Asks in a thread of its own, or when told to; under no lock, so that a database that hangs keeps nobody.

    Parameters
    ----------
    ping
        Asks the database for as little as there is; raises `UnavailableError` where it does not answer.
    """

    def __init__(self, ping: Callable[[], None], clock: Clock) -> None:
        self._ping, self._clock = ping, clock
        self._asked_ns: int | None = None
        self._trouble = ""
        self._stopping = threading.Event()

    @property
    def trouble(self) -> str:
        """Why nothing can be stored, as far as is known; empty while the database answers."""
        asked_ns = self._asked_ns
        if asked_ns is not None and (waited_s := (self._clock.monotonic_ns() - asked_ns) // NS) > PATIENCE_S:
            return f"the database has not answered for {waited_s} s"
        return self._trouble

    def start(self) -> None:
        """Ask every so often until `stop`."""
        threading.Thread(target=self._run, name="pulse", daemon=True).start()

    def stop(self) -> None:
        """End the thread. An answer that is under way is not waited for."""
        self._stopping.set()

    def look(self) -> None:
        """Ask now."""
        self._asked_ns = self._clock.monotonic_ns()
        try:
            self._ping()
            trouble = ""
        except UnavailableError as error:
            trouble = str(error)
        self._asked_ns = None
        if trouble and not self._trouble:
            log.warning("%s; nothing is placed until it does", trouble)
        self._trouble = trouble

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_S):
            try:
                self.look()
            except Exception:  # a mistake of ours must not end it permanently
                log.exception("asking the database failed")
                self._asked_ns = None
