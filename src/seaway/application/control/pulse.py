"""Whether the database answers, asked every so often: where nothing is to be stored, nobody else would notice."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from seaway.application.ports.clock import Clock
from seaway.domain.errors import UnavailableError

log = logging.getLogger(__name__)

NS = 1_000_000_000

EVERY_S = 10.0
"""How often it is asked."""

PATIENCE_S = 15
"""How long an answer may take."""


class Pulse:
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
            except Exception:  # a mistake of ours must not end it for good
                log.exception("asking the database failed")
                self._asked_ns = None
