"""Wall-clock and monotonic time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of wall-clock and monotonic time."""

    def now_ns(self) -> int:
        """Return the wall-clock time, nanoseconds since 1970. It can jump forwards and backwards."""

    def monotonic_ns(self) -> int:
        """Return the monotonic time, nanoseconds since an arbitrary start. All delays use it."""


class SystemClock:
    """Clock of the machine."""

    def now_ns(self) -> int:
        """Return the wall-clock time, nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return the monotonic time, nanoseconds since an arbitrary start."""
        return time.monotonic_ns()
