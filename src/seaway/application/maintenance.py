"""What is done on a schedule: removing what is old, and backups."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from seaway.application.ports.clock import Clock
from seaway.domain.errors import SeawayError

log = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Duty:
    """Something done every so often.

    Attributes
    ----------
    name
        For the log.
    every_s
        Seconds from one time to the next; it is done for the first time after so many.
    do
        Does it; whatever fails is tried again the next time.
    """

    name: str
    every_s: float
    do: Callable[[], object]


class Maintenance:
    """Does duties in a thread of its own, one after the other.

    Parameters
    ----------
    duties
        What is to be done.
    clock
        By which it is done.
    """

    def __init__(self, duties: list[Duty], clock: Clock) -> None:
        self._clock = clock
        now_ns = clock.monotonic_ns()
        self._due = [(now_ns + int(duty.every_s * NS_PER_S), duty) for duty in duties]
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the duty at hand and end the thread."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def step(self) -> float:
        """Do what is due; return the seconds until the next is."""
        for at, (due_ns, duty) in enumerate(self._due):
            if due_ns > self._clock.monotonic_ns():
                continue
            try:
                log.info("%s: %s", duty.name, duty.do())
            except SeawayError as error:
                log.warning("%s failed: %s", duty.name, error)
            except Exception:
                log.exception("%s failed", duty.name)
            self._due[at] = (self._clock.monotonic_ns() + int(duty.every_s * NS_PER_S), duty)
        next_ns = min((due_ns for due_ns, _ in self._due), default=self._clock.monotonic_ns() + 3600 * NS_PER_S)
        return max(0.0, (next_ns - self._clock.monotonic_ns()) / NS_PER_S)

    def _run(self) -> None:
        while not self._stopping.wait(self.step()):
            pass
