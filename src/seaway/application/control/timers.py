"""Deadlines on the monotonic clock, so that a change of the system time has no effect."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from heapq import heappop, heappush

from seaway.application.ports.clock import Clock


class Due(Enum):
    """Kinds of deadlines."""

    EXPIRY = "expiry"
    """Placement that no cluster confirmed."""
    LIMIT = "limit"
    """Job at its time limit."""
    RETRY = "retry"
    """Job that may be tried again."""
    COLLECT = "collect"
    """Removal of the objects of an ended attempt."""
    FORGIVE = "forgive"
    """End of the exclusion period of a job."""
    WHOLE = "whole"
    """Workload that lacks some of its replicas."""


Key = tuple[str, int, str]
"""ID of a job, number of an attempt, and a cluster where it matters."""


class Deadlines:
    """Deadlines in the order of time.

    A deadline that no longer matters stays. Its receiver checks whether it still applies.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Due, Key]] = []
        self._count = 0

    def in_seconds(self, seconds: float, what: Due, key: Key) -> None:
        """Set a deadline after this many seconds."""
        self._count += 1  # equal deadlines keep their insertion order
        heappush(self._heap, (self._clock.monotonic_ns() + int(seconds * 1e9), self._count, what, key))

    def at_wall(self, wall_ns: int, most_s: float, what: Due, key: Key) -> None:
        """Set a deadline at a wall-clock time, but in at most `most_s` seconds."""
        left_s = (wall_ns - self._clock.now_ns()) / 1e9
        self.in_seconds(min(max(left_s, 0), most_s), what, key)

    def due(self) -> Iterator[tuple[Due, Key]]:
        """Remove and yield the deadlines that are due."""
        now_ns = self._clock.monotonic_ns()
        while self._heap and self._heap[0][0] <= now_ns:
            _, _, what, key = heappop(self._heap)
            yield what, key

    def next_ns(self) -> int | None:
        """Return the monotonic time of the next deadline; None without one."""
        return self._heap[0][0] if self._heap else None
