"""Time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time, twice over: for people, and for measuring."""

    def now_ns(self) -> int:
        """Return the time of day, nanoseconds since 1970. It may jump either way."""

    def monotonic_ns(self) -> int:
        """Return a time that never goes back, nanoseconds since some moment; every delay goes by it."""


class SystemClock:
    """The time as the machine tells it."""

    def now_ns(self) -> int:
        """Return the time of day, nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return a time that never goes back, nanoseconds since some moment."""
        return time.monotonic_ns()
