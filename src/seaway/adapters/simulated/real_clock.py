"""The time as this machine tells it."""

from __future__ import annotations

from time import monotonic_ns, time_ns


class RealClock:
    """A `Clock` that goes by the machine's."""

    def now_ns(self) -> int:
        """Return the time of day, nanoseconds since 1970."""
        return time_ns()

    def monotonic_ns(self) -> int:
        """Return a time that never goes back, nanoseconds."""
        return monotonic_ns()
