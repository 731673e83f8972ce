"""How often it is found out anew who Seaway is, where a server goes on not to know it."""

from __future__ import annotations

from collections.abc import Callable

LEAST_S = 1.0
MOST_S = 30.0
"""A program of somebody's cloud may cost a second of a processor each time; what was mended is seen as late as this."""


class Renewing:
    """Lets the first one through at once, and more after pauses that double; forgets when there was none for a while.

    Answers that are good do not count: part of a server may know Seaway, and part not.

    Parameters
    ----------
    clock
        Seconds.
    """

    def __init__(self, clock: Callable[[], float], least_s: float = LEAST_S, most_s: float = MOST_S) -> None:
        self._clock = clock
        self._least_s = least_s
        self._most_s = most_s
        self._last_s = float("-inf")
        self._pause_s = 0.0

    def may(self) -> bool:
        """Tell whether it is time for one, which is then begun."""
        since_s = self._clock() - self._last_s
        if since_s < self._pause_s:
            return False
        again = since_s < 2 * self._most_s
        self._pause_s = max(min(2 * self._pause_s, self._most_s) if again else 0.0, self._least_s)
        self._last_s = self._clock()
        return True

    def failed(self) -> None:
        """Count the pause from now: one that took long failed, and is not to be begun at once for everybody."""
        self._last_s = self._clock()
