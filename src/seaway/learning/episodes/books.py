"""Books: what was decided in an episode, and the figures that come of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
from seaway.scheduling.plan import Plan
from seaway.scheduling.queue import JobQueue
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.state import Float64, Int64
from seaway.simulation.measures import use, used_shares
from seaway.simulation.outcome import Counts, Curve, Outcome, Speed
from seaway.simulation.replay import asked_milli, capacity_milli, held_milli, percent, shares_of

UNTIMED = Speed(None, None, None)
"""Nobody took the time."""


class Books:
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
        demands = queue.lines[:, JOB_DEMAND]
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
        self._asked = np.cumsum([asked_milli(job) for job in queue], dtype=np.int64)
        self._capacity = capacity_milli(snapshot)
        self._placed_when = np.zeros(len(queue), np.int64)

    def clear(self) -> None:
        """Forget every decision."""
        self.lines[:] = self._blank
        self.could_have[:] = False

    def placed(self, number: int, arrived: int) -> None:
        """Note that a job holds what stands in its line, and how many jobs had arrived when it was placed."""
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
        cores = held_milli(self.lines[holding], self.slices.astype(np.int64))
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
