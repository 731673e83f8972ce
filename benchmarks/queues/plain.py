"""EASY backfill over plain numbers in Python: the yardstick of speed."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

Row = tuple[int, int, int]
"""Submission and duration in seconds, and number of processors of a job."""


def easy_starts(jobs: Sequence[Row], processors: int) -> list[int]:
    """Return the start of each job, first come, first served with EASY backfill."""
    free, arrived, starts = processors, 0, [-1] * len(jobs)
    ends: list[tuple[int, int]] = []  # sorted: end and size of each running job
    waiting: list[int] = []
    while arrived < len(jobs) or ends:
        now_s = min([each[0] for each in (*ends[:1], *jobs[arrived : arrived + 1])])
        while ends and ends[0][0] <= now_s:
            free += ends.pop(0)[1]
        while arrived < len(jobs) and jobs[arrived][0] <= now_s:
            waiting.append(arrived)
            arrived += 1
        shadow_s, extra, blocked = 0, 0, False
        left = []
        for at in waiting:
            _, lasts_s, size = jobs[at]
            in_time = not blocked or now_s + lasts_s <= shadow_s
            if size <= free and (in_time or size <= extra):
                extra -= 0 if in_time else size
                free -= size
                starts[at] = now_s
                insort(ends, (now_s + lasts_s, size))
                continue
            left.append(at)
            if not blocked:
                blocked = True
                shadow_s, extra = _reservation(ends, free, size)
        waiting = left
    return starts


def _reservation(ends: Sequence[tuple[int, int]], free: int, size: int) -> tuple[int, int]:
    """Return the earliest start of a job of some size, and the processors left beside it then."""
    for at, (end_s, freed) in enumerate(ends):
        free += freed
        if free >= size and (at + 1 == len(ends) or ends[at + 1][0] > end_s):
            return end_s, free - size
    raise ValueError(f"{size} processors are never free")
