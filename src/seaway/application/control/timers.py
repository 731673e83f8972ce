"""Deadlines on the monotonic clock, so that a change of the system time has no effect."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from heapq import heappop, heappush

from seaway.application.ports.clock import Clock


class Due(Enum):
    """Kinds of deadlines."""

    EXPIRY = "expiry"
    """A placement that no cluster confirmed."""
    LIMIT = "limit"
    """A job that ran for as long as it may."""
    RETRY = "retry"
    """A job that may be tried again."""
    COLLECT = "collect"
    """Removal of the objects of an ended attempt."""
    FORGIVE = "forgive"
    """A job that is kept from where it was refused."""
    WHOLE = "whole"
    """A copy that lacks some of its replicas."""


Key = tuple[str, int, str]
"""Id of a job, number of an attempt, and a cluster where it matters."""


class Deadlines:
    """Deadlines in the order of time.

    A deadline that no longer matters stays. Its receiver checks whether it still applies.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Due, Key]] = []
        self._count = 0

    def in_seconds(self, seconds: float, what: Due, key: Key) -> None:
        """Have something happen in so many seconds from now."""
        self._count += 1  # equals go in the order in which they came
        heappush(self._heap, (self._clock.monotonic_ns() + int(seconds * 1e9), self._count, what, key))

    def at_wall(self, wall_ns: int, most_s: float, what: Due, key: Key) -> None:
        """Have something happen at a time of day, but in `most_s` seconds at the latest."""
        left_s = (wall_ns - self._clock.now_ns()) / 1e9
        self.in_seconds(min(max(left_s, 0), most_s), what, key)

    def due(self) -> Iterator[tuple[Due, Key]]:
        """Take what is due."""
        now_ns = self._clock.monotonic_ns()
        while self._heap and self._heap[0][0] <= now_ns:
            _, _, what, key = heappop(self._heap)
            yield what, key

    def next_ns(self) -> int | None:
        """Return when the next is due; None without one."""
        return self._heap[0][0] if self._heap else None
