"""Statements: decisions that can be rolled back exactly until they are committed."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from seaway.domain.errors import InvariantError
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    JOB_DEMAND,
    PLAN_NODE,
    PLAN_REPLICA,
    PLAN_ROWS,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    SLICE_ROWS,
)
from seaway.scheduling.framework import Decider
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.decide import plan_size, start_row
from seaway.scheduling.plan import Plan
from seaway.scheduling.snapshot.snapshot import Snapshot


class Statement:
    """A series of decisions on a snapshot, which is updated by each.

    All values are integers, and reservations are undone in reverse order, so a roll-back restores the snapshot
    exactly.

    Parameters
    ----------
    snapshot
        Snapshot to update.
    queue
        Jobs to decide.
    duplicates
        Maximum number of duplicates of a job, for policies that duplicate whole jobs.
    overdue
        Numbers of jobs that may not be deferred.

    Attributes
    ----------
    decisions, slices
        The plan so far, as in `Plan`; `length` and `slice_end` are the written lengths.
    pulls, messages, deciders, deferred
        As in `Plan`; `deferred` also has jobs that were placed in another try.
    """

    def __init__(
        self, snapshot: Snapshot, queue: JobQueue, duplicates: int = 1, overdue: Collection[int] = frozenset()
    ) -> None:
        self.snapshot = snapshot
        self.queue = queue
        self.overdue = overdue
        replicas, slices = plan_size(snapshot.demands.arrays.amounts, queue.rows)
        self.decisions = np.zeros((duplicates * replicas, PLAN_ROWS), np.int64)
        self.decisions[:, PLAN_NODE] = -1
        self.slices = np.zeros((duplicates * slices, SLICE_ROWS), np.int32)
        self.pulls: dict[int, Int64] = {}
        self.messages: dict[int, str] = {}
        self.deciders: dict[int, Decider] = {}
        self.deferred: dict[int, str] = {}
        self.length = 0
        self.slice_end = 0
        self._committed = False
        self._callbacks: list[tuple[int, Callable[[], None]]] = []

    def on_rollback(self, row: int, callback: Callable[[], None]) -> None:
        """Register a callback for the roll-back of the latest decision, in row `row`."""
        self._callbacks.append((row, callback))

    def start(self, job: int, replica: int) -> int:
        """Start the row of a replica, as not placed, and return its index."""
        row = self.length
        start_row(self.decisions[row], job, replica, self.queue.rows[job, JOB_DEMAND], self.slice_end)
        self.length += 1
        return row

    def reorder(self, row: int, order: NDArray[np.intp]) -> None:
        """Change the order of the latest decisions, which are all replicas of one job, and number them again.

        Parameters
        ----------
        row
            First of the decisions.
        order
            Present positions of the decisions, in their new order.
        """
        lines = self.decisions[row : self.length][order]
        taken = [self.slices[first:end] for first, end in lines[:, [PLAN_SLICE_FIRST, PLAN_SLICE_END]].tolist()]
        begin = int(self.decisions[row, PLAN_SLICE_FIRST])
        ends = begin + np.cumsum([len(each) for each in taken])
        self.slices[begin : ends[-1]] = np.concatenate(taken)
        lines[:, PLAN_SLICE_FIRST], lines[:, PLAN_SLICE_END] = [begin, *ends[:-1]], ends
        lines[:, PLAN_REPLICA] = np.arange(len(lines))
        self.decisions[row : self.length] = lines

    def mark_unplaced(self, job: int) -> None:
        """Add all replicas of a job as not placed."""
        for replica in range(self.queue.jobs[job].replicas):
            self.start(job, replica)

    def checkpoint(self) -> tuple[int, int]:
        """Return the current position of the statement, for `rollback`."""
        return self.length, self.slice_end

    def rollback(self, checkpoint: tuple[int, int] = (0, 0)) -> None:
        """Roll back all decisions since `checkpoint`.

        Raises
        ------
        InvariantError
            If the statement was committed.
        """
        if self._committed:
            raise InvariantError("a committed statement cannot be rolled back; release its plan instead")
        while self._callbacks and self._callbacks[-1][0] >= checkpoint[0]:
            self._callbacks.pop()[1]()
        rows = np.arange(checkpoint[0], self.length)
        self.snapshot.release(self.decisions, self.slices, rows)
        self.decisions[rows] = 0
        self.decisions[rows, PLAN_NODE] = -1
        self.length, self.slice_end = checkpoint

    def commit(self) -> Plan:
        """Make the decisions final and return their plan."""
        self._committed = True
        plan = Plan(self.snapshot, self.queue, self.decisions[: self.length], self.slices[: self.slice_end])
        plan.pulls, plan.messages, plan.deciders = self.pulls, self.messages, self.deciders
        if self.deferred:
            placed = plan.jobs_placed
            plan.deferred = {job: why for job, why in self.deferred.items() if not placed[job]}
        return plan
