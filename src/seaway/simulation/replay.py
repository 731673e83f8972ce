"""Replay of a trace whose jobs arrive one after the other and never end. Jobs that do not fit are dropped.

A policy can defer jobs on arrival if the replay allows it. Deferred jobs are offered again after the last arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    PLAN_JOB,
    PLAN_ROWS,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    SLICE_CORE,
    SLICE_ROWS,
)
from seaway.scheduling.engine import Policy
from seaway.scheduling.framework import QueueSort
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Curve, Float64, Outcome, Shares, at_hundred, count_outcomes, use, used_shares
from seaway.simulation.stopwatch import PolicyMaker, Stopwatch, warm_up
from seaway.simulation.trace import requested_milli

MAX_BATCH = 512
"""Maximum number of jobs in one call, to measure decisions per second."""

MAX_SINGLE = 16
"""Maximum number of calls with one job after each of those, to measure the time of a single decision."""

CALLS = 8
"""Minimum number of calls with several jobs, so that short queues have calls of both kinds."""


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """Final decisions on all jobs.

    Attributes
    ----------
    plan
        Jobs in the order of their final decisions.
    arrival
        Number of each job in the order of arrival, from 0, shape (J,).
    put_back
        Number of jobs that were deferred at least once. They are the last ones of the plan.
    """

    plan: Plan
    arrival: Int64
    put_back: int


class Offers:
    """Offers of the jobs of a queue to a policy.

    Parameters
    ----------
    queue
        Jobs in order of arrival, encoded for `snapshot`, which is empty at the start and is updated.
    policy
        Policy that decides.
    most
        Maximum number of offers of a job: on arrival, and again after the last arrival, in the order of arrival. A job
        cannot be deferred at its last offer; with 1, no job can be deferred. A job with placed replicas is not
        deferred.
    progress
        Called with the number of final decisions so far.

    Attributes
    ----------
    clock
        Stopwatch that makes the decisions.

    Raises
    ------
    RejectedError
        If `most` is below 1.
    """

    def __init__(
        self, snapshot: Snapshot, queue: JobQueue, policy: Profile | Policy, most: int, progress: Callable[[int], None]
    ) -> None:
        if most < 1:
            raise RejectedError(f"offers is {most}, but a job is offered once at least")
        self.clock = Stopwatch(snapshot, policy)
        self._snapshot = snapshot
        self._queue = queue
        self._one_by_one = has_queue_sort(policy)
        self._most = most
        self._progress = progress
        self._plans: list[Plan] = []
        self._arrivals: list[Int64] = []
        self._decided = 0

    def decide(self) -> DecidedBatch:
        """Decide all jobs."""
        waiting, rounds = self._offer(np.arange(len(self._queue)), may_wait=self._most > 1), 1
        put_back = len(waiting)
        while waiting.size:
            rounds += 1
            waiting = self._offer(waiting, may_wait=rounds < self._most)
        arrival = joined_plans(self._arrivals)
        return DecidedBatch(joined(self._snapshot, self._queue.take(arrival), self._plans), arrival, put_back)

    def _offer(self, numbers: Int64, *, may_wait: bool) -> Int64:
        """Offer some jobs once, by their numbers in the queue, shape (X,); return the numbers of deferred jobs."""
        jobs, back = self._queue.take(numbers), []
        for first, end in batch_ranges(len(jobs), one_by_one=self._one_by_one):
            plan, some = self.clock.decide(jobs.part(first, end), may_wait=may_wait), numbers[first:end]
            held = fully_placed(plan)
            back.append(some[held])
            self._plans.append(without(plan, held))
            self._arrivals.append(np.delete(some, held))
            self._decided += len(some) - len(held)
            self._progress(self._decided)
        return joined_plans(back)


def fully_placed(plan: Plan) -> Int64:
    """Return the numbers of deferred jobs of a plan without placed replicas, shape (X,), ascending."""
    return np.setdiff1d(np.array(list(plan.deferred), np.int64), plan.decisions[plan.placed, PLAN_JOB])


def without(plan: Plan, jobs: Int64) -> Plan:
    """Return a plan without some jobs, which have no placed replicas. The other jobs are renumbered.

    Parameters
    ----------
    jobs
        Numbers of the jobs to remove, shape (X,).
    """
    if not jobs.size:
        return plan
    left = np.setdiff1d(np.arange(len(plan.queue)), jobs)
    lines = plan.decisions[np.isin(plan.decisions[:, PLAN_JOB], left)]
    lines[:, PLAN_JOB] = np.searchsorted(left, lines[:, PLAN_JOB])
    return Plan(plan.snapshot, plan.queue.take(left), lines, plan.slices)


def joined_plans(parts: Sequence[Int64]) -> Int64:
    """Concatenate arrays; the sequence may be empty."""
    return np.concatenate([np.zeros(0, np.int64), *parts])


def has_queue_sort(policy: Profile | Policy) -> bool:
    """Report whether a policy reorders waiting jobs."""
    return isinstance(policy, Profile) and any(policy.at(QueueSort))


def batch_ranges(jobs: int, *, one_by_one: bool) -> list[tuple[int, int]]:
    """Split a queue into calls: alternately one call with many jobs, and several calls with one job.

    Parameters
    ----------
    one_by_one
        Whether each job must be decided before the policy sees the next.
    """
    many = 1 if one_by_one else min(MAX_BATCH, max(1, jobs // CALLS))
    alone = min(MAX_SINGLE, -(-many // 4))
    cuts = [0]
    while cuts[-1] < jobs:
        begun = cuts[-1] + many
        cuts.extend(range(begun, begun + alone + 1))
    return [(first, end) for first, end in pairwise(min(cut, jobs) for cut in cuts) if first < end]


def joined(snapshot: Snapshot, queue: JobQueue, plans: Sequence[Plan]) -> Plan:
    """Concatenate the plans of the parts of a queue."""
    lines, slices = [np.zeros((0, PLAN_ROWS), np.int64)], [np.zeros((0, SLICE_ROWS), np.int32)]
    first_job = first_slice = 0
    for plan in plans:
        shifted = plan.decisions.copy()
        shifted[:, PLAN_JOB] += first_job
        shifted[:, [PLAN_SLICE_FIRST, PLAN_SLICE_END]] += first_slice
        lines.append(shifted)
        slices.append(plan.slices)
        first_job += len(plan.queue)
        first_slice += len(plan.slices)
    return Plan(snapshot, queue, np.concatenate(lines), np.concatenate(slices))


def replay(
    fleet: Fleet,
    jobs: Sequence[Job],
    make: PolicyMaker,
    progress: Callable[[int], None] = lambda _: None,
    *,
    offers: int = 1,
) -> Outcome:
    """Replay jobs on a fleet.

    Speed is measured in the replay itself, for the calls of `decide`. Decisions per second refer to calls with up to
    512 jobs. Up to 16 calls with one job follow each of those and measure the time of single decisions. Before the
    replay, a policy of the same kind decides some jobs on a copy of the fleet, so that compilation does not count.

    Parameters
    ----------
    fleet
        Fleet without allocations.
    jobs
        Jobs in order of arrival.
    progress
        Called with the number of jobs decided so far.
    offers
        Maximum number of offers of a job, see `Offers`; with 1, no job can be deferred.

    Raises
    ------
    RejectedError
        If `offers` is below 1.
    """
    snapshot = Snapshot(fleet)
    queue = JobQueue(snapshot, jobs)
    warm_up(snapshot, queue, make)
    policy = make()
    offering = Offers(snapshot, queue, policy, offers, progress)
    whole = offering.decide()
    curve = curve_of(whole)
    used = used_shares(snapshot.arrays.clusters)
    return Outcome(
        policy=policy.name,
        counts=count_outcomes(whole.plan, whole.put_back),
        shares=shares_of(curve),
        use=use(used),
        speed=offering.clock.speed(),
        curve=curve,
        used=used,
    )


def arrivals_until_requested(fleet: Fleet, jobs: Sequence[Job], times: float) -> list[Job]:
    """Return the first jobs that together request `times` the fleet's GPU cores; all jobs if they request less."""
    enough = times * sum(device.core_milli for device in fleet.devices)
    asked = accumulate(requested_milli(job) for job in jobs)
    last = next((at for at, milli in enumerate(asked) if milli >= enough), len(jobs))
    return list(jobs[: last + 1])


def capacity_milli(snapshot: Snapshot) -> int:
    """Return the fleet's GPU cores, thousandths of a device."""
    return sum(device.core_milli for device in snapshot.devices)


def allocated_milli(lines: Int64, slices: Int64) -> Int64:
    """Return the GPU cores that each decision allocates, thousandths of a device, shape (X,)."""
    upto = np.concatenate(([0], np.cumsum(slices[:, SLICE_CORE], dtype=np.int64)))
    held: Int64 = upto[lines[:, PLAN_SLICE_END]] - upto[lines[:, PLAN_SLICE_FIRST]]
    return held


def curve_of(decided: DecidedBatch) -> Curve:
    """Return the requested and the allocated GPU cores after each arrival.

    A deferred job counts as requested from its arrival, and its allocation counts after the last arrival.
    """
    plan, arrival = decided.plan, decided.arrival
    jobs = len(arrival)
    when = np.where(np.arange(jobs) < jobs - decided.put_back, arrival, jobs - 1)
    asked, held = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    asked[arrival] = [requested_milli(job) for job in plan.queue]
    np.add.at(held, when[plan.decisions[:, PLAN_JOB]], allocated_milli(plan.decisions, plan.slices.astype(np.int64)))
    capacity = capacity_milli(plan.snapshot)
    return Curve(percent(np.cumsum(asked), capacity), percent(np.cumsum(held), capacity))


def percent(milli: Int64, capacity: int) -> Float64:
    """Return GPU cores as a percentage of the fleet's; NaN for a fleet without GPU cores."""
    share: Float64 = milli.astype(np.float64) * (100 / capacity if capacity else np.nan)
    return share


def shares_of(curve: Curve) -> Shares:
    """Return the shares at the end of a curve."""
    return Shares(
        arrived_pct=last_of(curve.arrived_pct),
        gpu_allocated_pct=last_of(curve.allocated_pct),
        gpu_allocated_pct_at_100=at_hundred(curve.arrived_pct, curve.allocated_pct),
    )


def last_of(values: Float64) -> float | None:
    """Return the last value; None if it is unknown."""
    return float(values[-1]) if values.size and not np.isnan(values[-1]) else None
