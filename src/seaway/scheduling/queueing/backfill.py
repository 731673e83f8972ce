"""Backfill by amounts: the next waiting job that may start, and plans of free amounts over time.

Amounts are sums over the whole fleet, so they are necessary and not sufficient. A job that may start by its amounts is
then placed by the engine, which knows nodes and devices.
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Int64, UInt8
from seaway.scheduling.columns import (
    CLUSTER_CPU_FREE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY_FREE,
)
from seaway.scheduling.kernels.compile import compiled

NEVER_S = 2**62
"""Time of an event that does not happen, seconds."""

WAITING_KIND, WAITING_LASTS_S, WAITING_NEED = range(3)
"""Columns of waiting jobs: kind, duration, and the first of the amounts."""

FITS_NOWHERE, DELAYS = 1, 2
"""Reasons why the jobs of a kind do not start now."""


@compiled
def free_amounts(clusters: Int64) -> Int64:
    """Return the free CPU, memory, GPU memory and GPU cores of all clusters together, shape (4,)."""
    free = np.zeros(4, np.int64)
    for c in range(clusters.shape[1]):
        free[0] += clusters[CLUSTER_CPU_FREE, c]
        free[1] += clusters[CLUSTER_MEMORY_FREE, c]
        free[2] += clusters[CLUSTER_GPU_MEMORY_FREE, c]
        free[3] += clusters[CLUSTER_GPU_CORE_FREE, c]
    return free


@compiled
def within(need: Int64, free: Int64) -> bool:
    """Report whether amounts, shape (R,), are free."""
    for r in range(need.shape[0]):  # noqa: SIM110  (a compiled loop)
        if need[r] > free[r]:
            return False
    return True


@compiled
def next_startable(
    first: int, count: int, waiting: Int64, refused: UInt8, free: Int64, room_s: int, extra: Int64
) -> int:
    """Return the first job from index `first` that may start now; -1 for none.

    Parameters
    ----------
    count
        Number of waiting jobs W.
    waiting
        Waiting jobs in order, shape (W or more, `WAITING_NEED` + R): kind, duration in seconds, and amounts.
    refused
        For each kind, shape (K,): `FITS_NOWHERE`, or `DELAYS` if it would delay the first job, or 0.
    free
        Free amounts, shape (R,).
    room_s
        Time until the reservation of the first job begins, seconds. A job that ends by then may use all free amounts.
    extra
        Amounts that a job may use beyond that time, shape (R,).
    """
    for w in range(first, count):
        verdict, need = refused[waiting[w, WAITING_KIND]], waiting[w, WAITING_NEED:]
        if verdict == FITS_NOWHERE or not within(need, free):
            continue
        if waiting[w, WAITING_LASTS_S] <= room_s or (verdict != DELAYS and within(need, extra)):
            return w
    return -1


@compiled
def _earliest_start(times_s: Int64, free: Int64, count: int, need: Int64, lasts_s: int, after_s: int) -> int:
    first = 0
    while first < count:
        if first + 1 < count and times_s[first + 1] <= after_s:
            first += 1
            continue
        start_s = max(times_s[first], after_s)
        at = first
        while at < count and (at == first or times_s[at] - start_s < lasts_s) and within(need, free[at]):
            at += 1
        if at == count or (at > first and times_s[at] - start_s >= lasts_s):
            return int(start_s)
        first = at + 1
    return -1


@compiled
def _longest(times_s: Int64, free: Int64, count: int, need: Int64, now_s: int) -> int:
    for at in range(count):
        if (at + 1 == count or times_s[at + 1] > now_s) and not within(need, free[at]):
            return int(max(0, times_s[at] - now_s))
    return NEVER_S


@compiled
def _first_from(times_s: Int64, count: int, from_s: int) -> int:
    """Return the index of the first of `count` times that is not before another."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if times_s[middle] < from_s:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _add(times_s: Int64, free: Int64, count: int, start_s: int, end_s: int, amounts: Int64) -> int:
    """Add amounts between two times; return the new number of periods, at most two more."""
    for edge_s in (start_s, end_s):
        at = _first_from(times_s, count, edge_s)
        if edge_s >= NEVER_S or (at < count and times_s[at] == edge_s):
            continue
        for each in range(count, at, -1):
            times_s[each], free[each] = times_s[each - 1], free[each - 1]
        times_s[at] = edge_s
        if at:
            free[at] = free[at - 1]
        count += 1
    for at in range(_first_from(times_s, count, start_s), _first_from(times_s, count, end_s)):
        for r in range(amounts.shape[0]):
            free[at, r] += amounts[r]
    return count


NO_ENDS: Int64 = np.zeros(0, np.int64)
NO_NEEDS: Int64 = np.zeros((0, 1), np.int64)


class FreeOverTime:
    """Free amounts over time, with the jobs that run and those that are planned.

    Parameters
    ----------
    free
        Amounts that are free from the beginning, shape (R,).
    now_s
        Beginning, seconds.
    ends_s, needs
        Ends of the running jobs, seconds, shape (X,), and the amounts that become free then, shape (X, R).
    """

    def __init__(self, free: Int64, now_s: int, ends_s: Int64 = NO_ENDS, needs: Int64 = NO_NEEDS) -> None:
        order = np.argsort(ends_s)
        times_s = np.append(now_s, ends_s[order])
        total = np.vstack([free, free + needs[order].cumsum(axis=0)])
        last = np.append(times_s[1:] != times_s[:-1], True)
        self._count = int(last.sum())
        self._times_s: Int64 = np.concatenate([times_s[last], np.zeros(64, np.int64)])
        self._free: Int64 = np.concatenate([total[last], np.zeros((64, len(free)), np.int64)])

    def earliest_start(self, need: Int64, lasts_s: int, after_s: int) -> int:
        """Return the earliest start of a job that delays no planned job, not before `after_s`; -1 if there is none.

        Parameters
        ----------
        need
            Amounts of the job, shape (R,).
        lasts_s
            Duration of the job, seconds; `NEVER_S` without an end.
        """
        return _earliest_start(self._times_s, self._free, self._count, need, lasts_s, after_s)

    def longest(self, need: Int64, now_s: int) -> int:
        """Return the longest duration of a job that delays no planned job if it starts now, seconds; `NEVER_S` for any.

        Parameters
        ----------
        need
            Amounts of the job, shape (R,).
        """
        return _longest(self._times_s, self._free, self._count, need, now_s)

    def add(self, start_s: int, lasts_s: int, amounts: Int64) -> None:
        """Add amounts, negative for those that a job uses, from a time on and for a duration."""
        if self._count + 2 > len(self._times_s):
            self._times_s = np.concatenate([self._times_s, self._times_s])
            self._free = np.concatenate([self._free, self._free])
        end_s = start_s + lasts_s if lasts_s < NEVER_S else NEVER_S
        self._count = _add(self._times_s, self._free, self._count, start_s, end_s, amounts)

    def forget_before(self, now_s: int) -> None:
        """Drop the past."""
        first = int(np.searchsorted(self._times_s[: self._count], now_s, "right")) - 1
        if first > 0:
            left = self._count - first
            self._times_s[:left] = self._times_s[first : self._count].copy()
            self._free[:left] = self._free[first : self._count].copy()
            self._count = left


def warm() -> None:
    """Compile the functions of this module, or load them from the cache."""
    need: Int64 = np.ones(1, np.int64)
    free = FreeOverTime(2 * need, 0)
    free.add(0, 1, -need)
    free.longest(need, free.earliest_start(need, 1, 0))
    free_amounts(np.zeros((CLUSTER_GPU_CORE_FREE + 1, 1), np.int64))
    waiting = np.zeros((1, WAITING_NEED + 1), np.int64)
    next_startable(0, 1, waiting, np.zeros(1, np.uint8), need, 0, need)
