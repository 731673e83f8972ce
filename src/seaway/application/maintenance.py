"""Scheduled tasks: removal of old records, and backups."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Retention, Store
from seaway.domain.errors import SeawayError, UnavailableError
from seaway.domain.reasons import Reason

log = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000
RETRY_S = 60
MAX_RETRY_S = 3600
"""Maximum retry delay, seconds. The delay doubles with each failure and never exceeds the interval of the task."""

SETTLED_NS = 86_400 * NS_PER_S
"""Time for which the clock must have run before old records are removed by it."""


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """Scheduled task.

    Attributes
    ----------
    name
        Name in the log.
    interval_s
        Seconds between two runs.
    do
        Function that runs the task.
    first_s
        Seconds before the first run; None for `interval_s`.
    """

    name: str
    interval_s: float
    do: Callable[[], object]
    first_s: float | None = None


@dataclass(slots=True)
class _NextRun:
    """Time of the next run of a task, and number of consecutive failures."""

    task: ScheduledTask
    due_ns: int
    failures: int = 0

    def next_s(self) -> float:
        """Return the seconds until the next try."""
        if not self.failures:
            return self.task.interval_s
        return min(RETRY_S << min(self.failures - 1, 16), MAX_RETRY_S, self.task.interval_s)


def prune(store: Store, retention: Retention, now_ns: int) -> dict[str, int]:
    """Remove old records, unless the clock may have jumped forward.

    Seaway samples its clusters every minute. So the clock is trusted if there is a sample that is one to two days old,
    or if no sample is older. After a jump of more than two days, or after such a downtime, there is none for a day.

    Raises
    ------
    UnavailableError
        If the clock may have jumped.
    """
    oldest = store.cluster_samples("", 0, 1)
    settled_ns = now_ns - SETTLED_NS
    if oldest and oldest[0].at_ns < settled_ns - SETTLED_NS:
        recent = store.cluster_samples("", settled_ns - SETTLED_NS, 1)
        if not recent or recent[0].at_ns > settled_ns:
            raise UnavailableError(Reason("no_old_sample"))
    return store.prune(retention, now_ns)


class Maintenance:
    """Thread that runs the scheduled tasks one after the other.

    Parameters
    ----------
    tasks
        The tasks.
    clock
        Clock for their times.
    failing
        Receives whether the last run of each task failed, by name.
    """

    def __init__(self, tasks: list[ScheduledTask], clock: Clock, failing: dict[str, bool] | None = None) -> None:
        self._clock = clock
        self._failing = {} if failing is None else failing
        self._failing.update((task.name, False) for task in tasks)
        now_ns = clock.monotonic_ns()
        self._schedule = [
            _NextRun(task, now_ns + int((task.interval_s if task.first_s is None else task.first_s) * NS_PER_S))
            for task in tasks
        ]
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the running task and end the thread."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def step(self) -> float:
        """Run the due tasks; return the seconds until the next one."""
        for upcoming in self._schedule:
            if upcoming.due_ns <= self._clock.monotonic_ns():
                self._do(upcoming)
        next_ns = min(
            (upcoming.due_ns for upcoming in self._schedule), default=self._clock.monotonic_ns() + 3600 * NS_PER_S
        )
        return max(0.0, (next_ns - self._clock.monotonic_ns()) / NS_PER_S)

    def _do(self, upcoming: _NextRun) -> None:
        task = upcoming.task
        try:
            result = task.do()
            log.log(logging.DEBUG if result is None else logging.INFO, "%s: %s", task.name, result)
            upcoming.failures = 0
        except Exception as error:
            upcoming.failures += 1
            again = f"tried again in {upcoming.next_s():,.0f} s"
            if isinstance(error, SeawayError | OSError):
                log.warning("%s failed, %s: %s", task.name, again, error)
            else:
                log.exception("%s failed, %s", task.name, again)
        self._failing[task.name] = upcoming.failures > 0
        upcoming.due_ns = self._clock.monotonic_ns() + int(upcoming.next_s() * NS_PER_S)

    def _run(self) -> None:
        while not self._stopping.wait(self.step()):
            pass
