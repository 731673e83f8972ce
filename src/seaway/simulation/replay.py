"""Replaying a trace: jobs arrive one after the other, no one leaves, what does not fit is lost.

A policy may be let to put jobs back on their arrival: those are offered again after the last arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    PLAN_JOB,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    SLICE_CORE,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.measures import Float64, at_hundred, use, used_shares
from seaway.simulation.offers import DecidedBatch, Offers
from seaway.simulation.outcome import Curve, Outcome, Shares, count_outcomes
from seaway.simulation.stopwatch import PolicyMaker, warm_up


def replay(
    fleet: Fleet,
    jobs: Sequence[Job],
    make: PolicyMaker,
    progress: Callable[[int], None] = lambda _: None,
    *,
    offers: int = 1,
) -> Outcome:
    """Replay jobs on a fleet.

    Speed is measured on the replay itself, on the calls of `decide` alone. Decisions per second are those of calls with
    up to 512 jobs. Up to 16 calls with one job follow each of those, for the time of single decisions. Before that, a
    policy of the same kind decides some jobs on a copy of the fleet, so that compilation does not count.

    Parameters
    ----------
    fleet
        Without allocations.
    jobs
        In order of arrival.
    progress
        Called with the number of jobs decided so far.
    offers
        How often a deferred job is offered in total, see `Offers`; with 1, no job can be deferred.

    Raises
    ------
    RejectedError
        When `offers` is below 1.
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
    """Return the first jobs that together ask for `times` the fleet's GPU cores, or all of them."""
    enough = times * sum(device.core_milli for device in fleet.devices)
    asked = accumulate(requested_milli(job) for job in jobs)
    last = next((at for at, milli in enumerate(asked) if milli >= enough), len(jobs))
    return list(jobs[: last + 1])


def requested_milli(job: Job) -> int:
    """Return the GPU cores that a job asks for with all its replicas, thousandths of a device."""
    request = job.demand.request.filled()
    return request.gpus * request.gpu_milli * job.replicas


def capacity_milli(snapshot: Snapshot) -> int:
    """Return the fleet's GPU cores, thousandths of a device."""
    return sum(device.core_milli for device in snapshot.devices)


def allocated_milli(lines: Int64, slices: Int64) -> Int64:
    """Return the GPU cores that each decision holds, thousandths of a device, shape (X,)."""
    upto = np.concatenate(([0], np.cumsum(slices[:, SLICE_CORE], dtype=np.int64)))
    held: Int64 = upto[lines[:, PLAN_SLICE_END]] - upto[lines[:, PLAN_SLICE_FIRST]]
    return held


def curve_of(decided: DecidedBatch) -> Curve:
    """Return what had been asked for and what was held after each arrival.

    What was put back counts as asked for from its arrival on, and what it holds then as held after the last one.
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
