"""Histograms of durations for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

BOUNDS_S = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    300,
    900,
    3600,
    14_400,
    86_400,
)
"""Upper bounds of the buckets, seconds: from one transaction to one day in a queue."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Counts of a histogram.

    Attributes
    ----------
    counts
        Number of durations in each bucket of `BOUNDS_S`, and above the last bound. Not cumulative.
    total_s
        Sum of all durations.
    """

    counts: tuple[int, ...]
    total_s: float


class Timing:
    """Histogram with one writing thread and any number of readers."""

    __slots__ = ("_counts", "_total_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._total_s = 0.0

    def note(self, seconds: float) -> None:
        """Count a duration. A negative duration, after a clock change, counts as 0."""
        seconds = max(0.0, seconds)
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self._total_s += seconds

    def timed(self) -> Timed:
        """Return the current counts."""
        return Timed(tuple(self._counts), self._total_s)
