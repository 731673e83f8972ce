"""The machine's own clock."""

from __future__ import annotations

import time


class SystemClock:
    """The time as the machine tells it."""

    def now_ns(self) -> int:
        """Return the time of day, nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return a time that never goes back, nanoseconds since some moment."""
        return time.monotonic_ns()
