"""Replaying a trace: jobs arrive one after the other, nobody leaves, nothing is tried twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
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
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queue import JobQueue
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.state import Int64
from seaway.simulation.clock import Clock, PolicyMaker, warm_up
from seaway.simulation.look_back import judge
from seaway.simulation.measures import Float64, at_hundred, use, used_shares
from seaway.simulation.outcome import Curve, Outcome, Shares

MOST_AT_ONCE = 512
"""The most jobs in one call, for decisions a second."""

MOST_ALONE = 16
"""The most calls with one job after each of those, for the time of a single decision."""

CALLS = 8
"""At least so many calls with many jobs, so that short queues have some of both."""


def replay(
    fleet: Fleet, jobs: Sequence[Job], make: PolicyMaker, progress: Callable[[int], None] = lambda _: None
) -> Outcome:
    """Replay jobs against a fleet.

    Speed is measured on the replay itself, the calls of `decide` alone: decisions a second in calls
    with up to 512 jobs, and the time of single decisions in up to 16 calls with one job that follow
    each of those. Before, a policy of the same kind decides some jobs on a copy of the fleet, so that
    compiling is not counted.

    Parameters
    ----------
    fleet
        With nothing on it.
    jobs
        In order of arrival.
    progress
        Called with the number of jobs decided so far.
    """
    snapshot = Snapshot(fleet)
    queue = JobQueue(snapshot, jobs)
    warm_up(snapshot, queue, make)
    policy = make()
    clock = Clock(snapshot, policy)
    plans: list[Plan] = []
    for first, end in calls(len(queue), one_by_one=sorts(policy)):
        plans.append(clock.decide(queue.part(first, end)))
        progress(end)
    whole = joined(snapshot, queue, plans)
    curve = curve_of(whole)
    used = used_shares(snapshot.arrays.clusters)
    return Outcome(
        policy=policy.name,
        counts=judge(whole),
        shares=shares_of(curve),
        use=use(used),
        speed=clock.speed(),
        curve=curve,
        used=used,
    )


def until_asked(fleet: Fleet, jobs: Sequence[Job], times: float) -> list[Job]:
    """Return the first jobs that together ask for `times` the fleet's GPU cores, or all of them."""
    enough = times * sum(device.core_milli for device in fleet.devices)
    asked = accumulate(asked_milli(job) for job in jobs)
    last = next((at for at, milli in enumerate(asked) if milli >= enough), len(jobs))
    return list(jobs[: last + 1])


def asked_milli(job: Job) -> int:
    """Return the GPU cores that a job asks for with all its replicas, thousandths of a device."""
    request = job.demand.request.filled()
    return request.gpus * request.gpu_milli * job.replicas


def capacity_milli(snapshot: Snapshot) -> int:
    """Return the fleet's GPU cores, thousandths of a device."""
    return sum(device.core_milli for device in snapshot.devices)


def sorts(policy: Profile | Policy) -> bool:
    """Tell whether a policy would put waiting jobs in an order of its own."""
    return isinstance(policy, Profile) and any(policy.at(QueueSort))


def calls(jobs: int, *, one_by_one: bool) -> list[tuple[int, int]]:
    """Cut a queue into calls: many jobs at once, then some alone, and so on.

    Parameters
    ----------
    one_by_one
        Whether every job has to be decided before the next is seen.
    """
    many = 1 if one_by_one else min(MOST_AT_ONCE, max(1, jobs // CALLS))
    alone = min(MOST_ALONE, -(-many // 4))
    cuts = [0]
    while cuts[-1] < jobs:
        begun = cuts[-1] + many
        cuts.extend(range(begun, begun + alone + 1))
    return [(first, end) for first, end in pairwise(min(cut, jobs) for cut in cuts) if first < end]


def joined(snapshot: Snapshot, queue: JobQueue, plans: Sequence[Plan]) -> Plan:
    """Join the plans of a queue's parts, in order, to one."""
    lines, slices = [np.zeros((0, PLAN_ROWS), np.int64)], [np.zeros((0, SLICE_ROWS), np.int32)]
    first_job = first_slice = 0
    for plan in plans:
        shifted = plan.lines.copy()
        shifted[:, PLAN_JOB] += first_job
        shifted[:, [PLAN_SLICE_FIRST, PLAN_SLICE_END]] += first_slice
        lines.append(shifted)
        slices.append(plan.slices)
        first_job += len(plan.queue)
        first_slice += len(plan.slices)
    return Plan(snapshot, queue, np.concatenate(lines), np.concatenate(slices))


def held_milli(lines: Int64, slices: Int64) -> Int64:
    """Return the GPU cores that each decision holds, thousandths of a device, shape (X,)."""
    upto = np.concatenate(([0], np.cumsum(slices[:, SLICE_CORE], dtype=np.int64)))
    held: Int64 = upto[lines[:, PLAN_SLICE_END]] - upto[lines[:, PLAN_SLICE_FIRST]]
    return held


def curve_of(plan: Plan) -> Curve:
    """Return what had been asked for and what was held after each arrival."""
    asked = np.array([asked_milli(job) for job in plan.queue], np.int64)
    held = np.zeros(len(asked), np.int64)
    np.add.at(held, plan.lines[:, PLAN_JOB], held_milli(plan.lines, plan.slices.astype(np.int64)))
    capacity = capacity_milli(plan.snapshot)
    return Curve(percent(np.cumsum(asked), capacity), percent(np.cumsum(held), capacity))


def percent(milli: Int64, capacity: int) -> Float64:
    """Return GPU cores as percent of all; NaN for a fleet without any."""
    share: Float64 = milli.astype(np.float64) * (100 / capacity if capacity else np.nan)
    return share


def shares_of(curve: Curve) -> Shares:
    """Read the shares at the end off a curve."""
    return Shares(
        arrived_pct=last_of(curve.arrived_pct),
        gpu_allocated_pct=last_of(curve.allocated_pct),
        gpu_allocated_pct_at_100=at_hundred(curve.arrived_pct, curve.allocated_pct),
    )


def last_of(values: Float64) -> float | None:
    """Return the last of some values; None when it is unknown."""
    return float(values[-1]) if values.size and not np.isnan(values[-1]) else None
