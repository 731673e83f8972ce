"""Results on their way to the controller, which may be away: kept in order, and never more than so many."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Lock

from seaway.application.network.rounds import Reported

ROUND_BYTES = 176
"""What a result takes in a report at most, beside the names in it."""


def size_bytes(result: Reported) -> int:
    """Return what a result takes in a report, at most, for names without signs that JSON has to escape."""
    return ROUND_BYTES + len(result.target.encode()) + len(result.path.encode())


class ResultQueue:
    """Results that wait, from old to new; the oldest are given up for new ones when there are too many.

    May be used by several threads.

    Parameters
    ----------
    most, most_bytes
        How many wait at most, and how much of them.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._waiting: deque[Reported] = deque()
        self._bytes = 0
        self._dropped = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def bytes(self) -> int:
        """What those that wait take in reports."""
        return self._bytes

    def put(self, results: Iterable[Reported]) -> None:
        """Add results; count those that had to be given up."""
        with self._lock:
            for each in results:
                self._waiting.append(each)
                self._bytes += size_bytes(each)
            while self._waiting and (len(self._waiting) > self._most or self._bytes > self._most_bytes):
                self._bytes -= size_bytes(self._waiting.popleft())
                self._dropped += 1

    def take(self, most: int, most_bytes: int) -> tuple[tuple[Reported, ...], int]:
        """Take out the oldest, so many and so much of them at most, but one at least when any waits.

        Returns them and how many were given up since the last time that this was asked.
        """
        with self._lock:
            taken: list[Reported] = []
            while self._waiting and len(taken) < most:
                size = size_bytes(self._waiting[0])
                if taken and size > most_bytes:
                    break
                taken.append(self._waiting.popleft())
                most_bytes -= size
                self._bytes -= size
            dropped, self._dropped = self._dropped, 0
            return tuple(taken), dropped
