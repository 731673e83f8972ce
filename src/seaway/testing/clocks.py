"""A clock that stands still until a test moves it."""

from __future__ import annotations

from threading import Lock

from seaway.domain.errors import InvariantError

NS_PER_S = 1_000_000_000

START_NS = 1_767_225_600 * NS_PER_S
"""The first moment of 2026, UTC."""


class VirtualClock:
    """A `Clock` that only advances on request, for any thread.

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
        """Return how far the clock was advanced, nanoseconds."""
        with self._lock:
            return self._monotonic_ns

    def advance(self, ns: int) -> None:
        """Let time pass, nanoseconds.

        Raises
        ------
        InvariantError
            When it would go back.
        """
        if ns < 0:
            raise InvariantError(f"time does not go back; advance by at least 0 ns, not {ns}")
        with self._lock:
            self._monotonic_ns += ns

    def advance_s(self, seconds: float) -> None:
        """Let time pass, seconds."""
        self.advance(round(seconds * NS_PER_S))

    def jump(self, ns: int) -> None:
        """Set the time of day alone, nanoseconds ahead (or back, when negative), as a user who sets a clock."""
        with self._lock:
            self._ahead_ns += ns
