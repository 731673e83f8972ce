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
"""No one took the time."""


class Accounts:
    """Decisions on the jobs of a queue, a line a job.

    Parameters
    ----------
    snapshot, queue
        The fleet, and its jobs with one replica each.

    Attributes
    ----------
    lines, slices
        What each job holds, shapes (J, PLAN_ROWS) and (S, SLICE_ROWS), as in `seaway.scheduling.plan.Plan`. Each
        job has slices of its own there, used or not.
    could_have
        Whether something could have held the job when it was offered and not placed, shape (J,), bool.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue) -> None:
        self._snapshot = snapshot
        self._queue = queue
        demands = queue.rows[:, JOB_DEMAND]
        ends = np.cumsum(snapshot.demands.arrays.amounts[demands, DEMAND_GPUS])
        self._blank = np.zeros((len(queue), PLAN_ROWS), np.int64)
        self._blank[:, PLAN_JOB] = np.arange(len(queue))
        self._blank[:, PLAN_DEMAND] = demands
        self._blank[:, PLAN_NODE] = -1
        self._blank[:, PLAN_PODS] = 1
        self._blank[1:, PLAN_SLICE_FIRST] = self._blank[1:, PLAN_SLICE_END] = ends[:-1]
        self.lines = self._blank.copy()
        self.slices = np.zeros((int(ends[-1]), SLICE_ROWS), np.int32)
        self.could_have = np.zeros(len(queue), np.bool_)
        self._asked = np.cumsum([requested_milli(job) for job in queue], dtype=np.int64)
        self._capacity = capacity_milli(snapshot)
        self._placed_when = np.zeros(len(queue), np.int64)

    def clear(self) -> None:
        """Forget every decision."""
        self.lines[:] = self._blank
        self.could_have[:] = False

    def placed(self, number: int, arrived: int) -> None:
        """Record the placement of a job, and the number of arrived jobs at that time."""
        self._placed_when[number] = arrived

    def give_back(self, numbers: Sequence[int]) -> None:
        """Give back what some jobs hold."""
        self._snapshot.release(self.lines, self.slices, np.array(numbers, np.intp))

    def cores_milli(self, number: int) -> int:
        """Return the GPU cores that a job holds, thousandths of a device."""
        line = self.lines[number]
        return int(self.slices[line[PLAN_SLICE_FIRST] : line[PLAN_SLICE_END], SLICE_CORE].sum())

    def asked_milli(self, arrived: int) -> int:
        """Return the GPU cores that the first `arrived` jobs ask for, thousandths of a device."""
        return int(self._asked[arrived - 1])

    def percent(self, milli: Int64) -> Float64:
        """Return GPU cores as percent of all; NaN for a fleet without any."""
        return percent(milli, self._capacity)

    def plan(self) -> Plan:
        """Return copies of the decisions as a plan."""
        return Plan(self._snapshot, self._queue, self.lines.copy(), self.slices.copy())

    def outcome(self, policy: str, arrived: int) -> Outcome:
        """Return what came out of the first `arrived` jobs."""
        placed = int((self.lines[:, PLAN_NODE] >= 0).sum())
        failed = int((self.could_have & (self.lines[:, PLAN_NODE] < 0)).sum())
        holding = np.flatnonzero(self.lines[:, PLAN_NODE] >= 0)
        held = np.zeros(arrived, np.int64)
        cores = allocated_milli(self.lines[holding], self.slices.astype(np.int64))
        np.add.at(held, self._placed_when[holding] - 1, cores)
        curve = Curve(self.percent(self._asked[:arrived]), self.percent(np.cumsum(held)))
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


class Hours:
    """Figures over time, as `seaway.simulation.timeline` has them.

    Parameters
    ----------
    snapshot, queue
        The fleet, with nothing on it yet, and the jobs in order of arrival.
    books
        What each job holds.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, accounts: Accounts) -> None:
        self._snapshot = snapshot
        self._queue = queue
        self._accounts = accounts
        self._empty = copy_arrays(snapshot.arrays)
        self.reset(0)

    def reset(self, now_s: int) -> None:
        """Begin again at a time."""
        self._now_s = now_s
        self._held_milli = 0
        self._starts_s: dict[int, int] = {}
        self._points: list[tuple[int, int, int]] = []
        self._use = UseOverTime(self._snapshot.arrays.clusters)

    def start(self, number: int, now_s: int) -> None:
        """Note that a job starts."""
        self._starts_s[number] = now_s
        self._held_milli += self._accounts.cores_milli(number)

    def end(self, numbers: Sequence[int]) -> None:
        """Have some jobs end: what they hold is given back."""
        self._held_milli -= sum(map(self._accounts.cores_milli, numbers))
        self._accounts.give_back(numbers)

    def pass_to(self, now_s: int) -> None:
        """Advance the time; present allocations lasted until then."""
        self._use.add(now_s - self._now_s, self._snapshot.arrays.clusters)
        self._now_s = now_s

    def note(self, now_s: int, arrived: int, *, again: bool) -> None:
        """Add a point to the curve, or mend the last one."""
        if again:
            self._points.pop()
        self._points.append((now_s, self._accounts.asked_milli(arrived), self._held_milli))

    def outcome(self, policy: str, arrived: int) -> Outcome:
        """Return what came out of the first `arrived` jobs."""
        time_s, asked, held = np.array(self._points, np.int64).reshape(-1, 3).T
        curve = Curve(self._accounts.percent(asked), self._accounts.percent(held), time_s.astype(np.float64))
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
        """Count the jobs; one that never ran is refused if not even the empty fleet holds it."""
        left = [number for number in range(arrived) if number not in self._starts_s]
        firsts = np.zeros(len(self._snapshot.clusters), np.int64)
        demands, lines = self._snapshot.demands.arrays, self._queue.rows[:, JOB_DEMAND]
        refused = sum(first_nodes(self._empty, demands, int(lines[number]), firsts) == 0 for number in left)
        return Counts(arrived, len(self._starts_s), refused, len(left) - refused)
