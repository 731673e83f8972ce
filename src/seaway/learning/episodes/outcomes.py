"""Accounts of an episode: its decisions, and the resulting figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seaway.scheduling.arrays import Float64, Int64, copy_arrays
from seaway.scheduling.columns import (
    DEMAND_GPUS,
    JOB_DEMAND,
    PLAN_DEMAND,
    PLAN_JOB,
    PLAN_NODE,
    PLAN_PODS,
    PLAN_ROWS,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    SLICE_CORE,
    SLICE_ROWS,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.candidates import first_nodes
from seaway.scheduling.plan import Plan
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Counts, Curve, Outcome, Shares, Speed, UseOverTime, use, used_shares, waits_of
from seaway.simulation.replay import allocated_milli, capacity_milli, last_of, percent, shares_of
from seaway.simulation.timeline import mean_over_time
from seaway.simulation.trace import requested_milli

UNTIMED = Speed(None, None, None)
"""Duration of decisions of an episode, which is not measured."""


class Accounts:
    """Decisions about the jobs of a queue.

    Parameters
    ----------
    snapshot, queue
        The fleet, and the jobs with one replica each.

    Attributes
    ----------
    rows, slices
        Allocations of jobs, shapes (J, PLAN_ROWS) and (S, SLICE_ROWS), as in `seaway.scheduling.plan.Plan`. Each job
        has its own slices, used or not.
    was_feasible
        Whether the job fitted when it was offered and not placed, shape (J,), bool.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue) -> None:
        self._snapshot = snapshot
        self._queue = queue
        demands = queue.rows[:, JOB_DEMAND]
        ends = np.cumsum(snapshot.demands.arrays.amounts[demands, DEMAND_GPUS])
        self._initial = np.zeros((len(queue), PLAN_ROWS), np.int64)
        self._initial[:, PLAN_JOB] = np.arange(len(queue))
        self._initial[:, PLAN_DEMAND] = demands
        self._initial[:, PLAN_NODE] = -1
        self._initial[:, PLAN_PODS] = 1
        self._initial[1:, PLAN_SLICE_FIRST] = self._initial[1:, PLAN_SLICE_END] = ends[:-1]
        self.rows = self._initial.copy()
        self.slices = np.zeros((int(ends[-1]), SLICE_ROWS), np.int32)
        self.was_feasible = np.zeros(len(queue), np.bool_)
        self._requested_milli = np.cumsum([requested_milli(job) for job in queue], dtype=np.int64)
        self._capacity = capacity_milli(snapshot)
        self._arrived_at_placement = np.zeros(len(queue), np.int64)

    def reset(self) -> None:
        """Remove all decisions."""
        self.rows[:] = self._initial
        self.was_feasible[:] = False

    def placed(self, number: int, arrived: int) -> None:
        """Record the placement of a job, and the number of arrived jobs at that time."""
        self._arrived_at_placement[number] = arrived

    def release(self, numbers: Sequence[int]) -> None:
        """Release the allocations of some jobs."""
        self._snapshot.release(self.rows, self.slices, np.array(numbers, np.intp))

    def cores_milli(self, number: int) -> int:
        """Return the allocated GPU cores of a job, thousandths of a device."""
        row = self.rows[number]
        return int(self.slices[row[PLAN_SLICE_FIRST] : row[PLAN_SLICE_END], SLICE_CORE].sum())

    def requested_by(self, arrived: int) -> int:
        """Return the GPU cores that the first `arrived` jobs request, thousandths of a device."""
        return int(self._requested_milli[arrived - 1])

    def percent(self, milli: Int64) -> Float64:
        """Return GPU cores as percent of the capacity; NaN for a fleet without GPUs."""
        return percent(milli, self._capacity)

    def plan(self) -> Plan:
        """Return copies of the decisions as a plan."""
        return Plan(self._snapshot, self._queue, self.rows.copy(), self.slices.copy())

    def outcome(self, policy: str, arrived: int) -> Outcome:
        """Return the outcome of the first `arrived` jobs."""
        placed = int((self.rows[:, PLAN_NODE] >= 0).sum())
        failed = int((self.was_feasible & (self.rows[:, PLAN_NODE] < 0)).sum())
        placed_jobs = np.flatnonzero(self.rows[:, PLAN_NODE] >= 0)
        allocated = np.zeros(arrived, np.int64)
        cores = allocated_milli(self.rows[placed_jobs], self.slices.astype(np.int64))
        np.add.at(allocated, self._arrived_at_placement[placed_jobs] - 1, cores)
        curve = Curve(self.percent(self._requested_milli[:arrived]), self.percent(np.cumsum(allocated)))
        used = used_shares(self._snapshot.arrays.clusters)
        return Outcome(
            policy=policy,
            counts=Counts(arrived, placed, arrived - placed - failed, failed),
            shares=shares_of(curve),
            use=use(used),
            speed=UNTIMED,
            curve=curve,
            used=used,
        )


class UsageOverTime:
    """Figures over time, as in `seaway.simulation.timeline`.

    Parameters
    ----------
    snapshot, queue
        The fleet without allocations, and the jobs in order of arrival.
    accounts
        Allocations of jobs.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, accounts: Accounts) -> None:
        self._snapshot = snapshot
        self._queue = queue
        self._accounts = accounts
        self._empty = copy_arrays(snapshot.arrays)
        self.reset(0)

    def reset(self, now_s: int) -> None:
        """Restart at a time."""
        self._now_s = now_s
        self._allocated_milli = 0
        self._starts_s: dict[int, int] = {}
        self._points: list[tuple[int, int, int]] = []
        self._use = UseOverTime(self._snapshot.arrays.clusters)

    def start(self, number: int, now_s: int) -> None:
        """Record the start of a job."""
        self._starts_s[number] = now_s
        self._allocated_milli += self._accounts.cores_milli(number)

    def end(self, numbers: Sequence[int]) -> None:
        """Release the allocations of jobs that depart."""
        self._allocated_milli -= sum(map(self._accounts.cores_milli, numbers))
        self._accounts.release(numbers)

    def advance_to(self, now_s: int) -> None:
        """Advance the time. Present allocations last until then."""
        self._use.add(now_s - self._now_s, self._snapshot.arrays.clusters)
        self._now_s = now_s

    def add_point(self, now_s: int, arrived: int, *, replaces: bool) -> None:
        """Add a point to the curve, or replace the last one."""
        if replaces:
            self._points.pop()
        self._points.append((now_s, self._accounts.requested_by(arrived), self._allocated_milli))

    def outcome(self, policy: str, arrived: int) -> Outcome:
        """Return the outcome of the first `arrived` jobs."""
        time_s, requested, allocated = np.array(self._points, np.int64).reshape(-1, 3).T
        curve = Curve(self._accounts.percent(requested), self._accounts.percent(allocated), time_s.astype(np.float64))
        span_s = int(time_s[-1] - time_s[0]) if time_s.size else 0
        starts_s = np.full(arrived, -1, np.int64)
        starts_s[list(self._starts_s)] = list(self._starts_s.values())
        return Outcome(
            policy=policy,
            counts=self._counts(arrived),
            shares=Shares(last_of(curve.arrived_pct), mean_over_time(curve)),
            use=use(self._use.shares(self._snapshot.arrays.clusters)),
            speed=UNTIMED,
            curve=curve,
            waits=waits_of(self._queue.jobs, starts_s, span_s),
        )

    def _counts(self, arrived: int) -> Counts:
        """Count the jobs. One that never ran counts as refused if it does not fit on the empty fleet."""
        left = [number for number in range(arrived) if number not in self._starts_s]
        firsts = np.zeros(len(self._snapshot.clusters), np.int64)
        demands, rows = self._snapshot.demands.arrays, self._queue.rows[:, JOB_DEMAND]
        refused = sum(first_nodes(self._empty, demands, int(rows[number]), firsts) == 0 for number in left)
        return Counts(arrived, len(self._starts_s), refused, len(left) - refused)
