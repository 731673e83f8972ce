"""Virtual clock for tests."""

from __future__ import annotations

from threading import Lock

from seaway.domain.errors import InvariantError

NS_PER_S = 1_000_000_000

START_NS = 1_767_225_600 * NS_PER_S
"""Start of 2026, UTC."""


class VirtualClock:
    """A thread-safe `Clock` that only advances on request.

    Parameters
    ----------
    start_ns
        Time of day at the start, nanoseconds since 1970.

    Examples
    --------
    >>> clock = VirtualClock(start_ns=0)
    >>> clock.advance_s(2)
    >>> clock.jump(-500)
    >>> clock.now_ns(), clock.monotonic_ns()
    (1999999500, 2000000000)
    """

    def __init__(self, start_ns: int = START_NS) -> None:
        self._lock = Lock()
        self._monotonic_ns = 0
        self._ahead_ns = start_ns

    def now_ns(self) -> int:
        """Return the time of day, nanoseconds since 1970."""
        with self._lock:
            return self._monotonic_ns + self._ahead_ns

    def monotonic_ns(self) -> int:
        """Return the total advance of the clock, nanoseconds."""
        with self._lock:
            return self._monotonic_ns

    def advance(self, ns: int) -> None:
        """Advance the clock, nanoseconds.

        Raises
        ------
        InvariantError
            If `ns` is negative.
        """
        if ns < 0:
            raise InvariantError(f"time does not go back; advance by at least 0 ns, not {ns}")
        with self._lock:
            self._monotonic_ns += ns

    def advance_s(self, seconds: float) -> None:
        """Advance the clock, seconds."""
        self.advance(round(seconds * NS_PER_S))

    def jump(self, ns: int) -> None:
        """Change only the time of day, by nanoseconds forwards or (if negative) backwards, as a user does."""
        with self._lock:
            self._ahead_ns += ns
