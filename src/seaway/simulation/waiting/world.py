"""State of a replay, as the rules of waiting jobs see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from seaway.domain.job import Demand
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import DEMAND_BANDWIDTH, JOB_DEMAND, JOB_REPLICAS
from seaway.scheduling.engine import Policy
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.queries import fitting_demands
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.backfill import (
    NEVER_S,
    free_amounts,
)
from seaway.scheduling.snapshot.snapshot import Snapshot

Kind = tuple[int, int, int, bool, int]
"""Requests that fit in the same places: priority (negative), row of the demand, replicas, gang, and bandwidth."""

Key = tuple[int, int]
"""Position of a job in the order of waiting jobs. The smallest key goes first."""


class Start(Protocol):
    """Start of a job."""

    def __call__(self, number: int, allows: Callable[[Plan], bool]) -> Plan | None:
        """Start a job by its number; return its plan, or None."""


@dataclass(slots=True)
class World:
    """State of a replay, as the rules of waiting jobs see it.

    Attributes
    ----------
    start
        Starts a job by its number now, if it fits and a check allows its plan, see `Start`.
    ends
        Heap of the running jobs with an end: time, number and plan.
    held
        Numbers of the jobs that the policy deferred.
    needs
        Least amounts that each job holds, shape (J, 4), see `free`.
    lasts_s
        Duration of each job, seconds, shape (J,); `NEVER_S` without an end.
    """

    snapshot: Snapshot
    queue: JobQueue
    policy: Profile | Policy
    start: Start
    ends: list[tuple[int, int, Plan]]
    held: set[int]
    needs: Int64 = field(init=False)
    lasts_s: Int64 = field(init=False)

    def __post_init__(self) -> None:
        """Compute the amounts and durations of all jobs."""
        jobs, rows = self.queue.jobs, self.queue.rows[:, JOB_DEMAND]
        amounts = np.zeros((int(rows.max(initial=-1)) + 1, 4), np.int64)
        for row, number in zip(*np.unique(rows, return_index=True), strict=True):
            amounts[row] = needed_amounts(jobs[number].demand)
        self.needs = amounts[rows] * self.queue.rows[:, JOB_REPLICAS, None]
        ends = (NEVER_S if job.expected_duration_s is None else job.expected_duration_s for job in jobs)
        self.lasts_s = np.fromiter(ends, np.int64, len(jobs))

    def free(self) -> Int64:
        """Return the free amounts of the whole fleet, shape (4,)."""
        return free_amounts(self.snapshot.arrays.clusters)

    def kind(self, number: int) -> Kind:
        """Return the kind of a job."""
        job = self.queue.jobs[number]
        between_mbps = job.between_replicas.min_bandwidth_mbps
        return -job.priority, int(self.queue.rows[number, JOB_DEMAND]), job.replicas, job.gang, between_mbps

    def may_fit(self, numbers: Sequence[int], freed: Int64) -> list[int]:
        """Return the jobs that may fit after others ended on the nodes `freed`, shape (X,).

        None of the jobs fitted before, so each can only fit on these nodes, unless it waits for bandwidth or was
        deferred. This is true for profiles; other policies may consider other nodes.
        """
        if not numbers or not isinstance(self.policy, Profile):
            return list(numbers)
        fleet, demands = self.snapshot.arrays, self.snapshot.demands.arrays
        lines = self.queue.rows[numbers, JOB_DEMAND]
        may_fit = fitting_demands(fleet, demands, lines, np.unique(freed)) != 0
        may_fit |= demands.amounts[lines, DEMAND_BANDWIDTH] > 0
        held = {self.kind(number) for number in self.held}
        kinds = [self.kind(number) for number in numbers]
        may_fit |= np.array([kind[4] > 0 or kind in held for kind in kinds], np.bool_)
        may_fit &= (self.needs[numbers] <= self.free()).all(axis=1)
        return [number for number, may in zip(numbers, may_fit.tolist(), strict=True) if may]


GPU_MILLI = 3
"""Index of the GPU cores, thousandths of a device, in amounts."""


def needed_amounts(demand: Demand) -> tuple[int, int, int, int]:
    """Return the least amounts that a replica holds, see `World.free`."""
    request = demand.request.filled()
    gpu_memory_mib, gpu_milli = request.gpus * request.gpu_memory_mib, request.gpus * request.gpu_milli
    return request.cpu_milli, request.memory_mib, gpu_memory_mib, gpu_milli


def always(_: Plan) -> bool:
    """Allow every plan."""
    return True


class WaitingJobs(Protocol):
    """Waiting jobs, and the rule by which they start. Iteration yields their numbers."""

    def freed(self, numbers: Sequence[int], nodes: Int64) -> None:
        """Take note that jobs ended, and on which nodes, shape (X,), possibly repeated."""

    def join(self, number: int) -> None:
        """Add a job that has just arrived."""

    def schedule(self, now_s: int) -> None:
        """Start the jobs that may start now."""

    def __iter__(self) -> Iterator[int]: ...
