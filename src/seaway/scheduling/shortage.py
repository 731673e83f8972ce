"""Number of replicas of a job that fit now, and the shortage of a job that does not fit as a whole."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from seaway.domain.job import Job
from seaway.domain.reasons import Reason
from seaway.scheduling.engine import decide, trial_placements
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot


def room(snapshot: Snapshot, job: Job, profile: Profile) -> int:
    """Return the number of replicas of a job that fit now; the snapshot stays unchanged.

    For a job in a single cluster, this is the maximum over the clusters.
    """
    if job.demand.devices.slice_nodes > 1 and fits(snapshot, job, profile):
        return job.replicas
    if job.single_cluster:
        return most(snapshot, job, profile)
    queue = JobQueue(snapshot, [replace(job, gang=False, ring=False)])
    plan = decide(snapshot, queue, profile, dry_run=True)
    placed = int(plan.placed.sum())
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    return placed


def most(snapshot: Snapshot, job: Job, profile: Profile) -> int:
    """Return the largest gang size that fits now; the snapshot stays unchanged."""
    sizes = range(1, job.replicas + 1)
    return bisect_left(sizes, True, key=lambda count: not fits(snapshot, replace(job, replicas=count), profile))


def shortage(snapshot: Snapshot, job: Job, profile: Profile) -> str:
    """Return a message with the number of replicas that fit now; empty if all fit."""
    if job.replicas == 1 or fits(snapshot, job, profile):
        return ""
    if 1 < job.demand.devices.slice_nodes in {each.slice_nodes for each in snapshot.devices}:
        return Reason("no_free_slice", nodes=job.replicas)
    code = "short_in_one_cluster" if job.single_cluster else "short_together"
    return Reason(code, needed=job.replicas, count=room(snapshot, job, profile))


def fits(snapshot: Snapshot, job: Job, profile: Profile) -> bool:
    """Report whether a whole job fits now; the snapshot stays unchanged."""
    return bool(trial_placements(snapshot, replace(job, partial=False), profile))
