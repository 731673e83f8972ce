"""Replicas that are needed together: how many of a job's have room, when one has and all have not."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from seaway.domain.job import Job
from seaway.scheduling.engine import decide
from seaway.scheduling.profile import Profile
from seaway.scheduling.queue import JobQueue
from seaway.scheduling.snapshot import Snapshot


def room(snapshot: Snapshot, job: Job, profile: Profile) -> int:
    """Return for how many of a job's replicas there is room now; the snapshot is left as it is.

    Of one that has to be in one cluster, for how many there is in any.
    """
    if job.together:
        return most(snapshot, job, profile)
    queue = JobQueue(snapshot, [replace(job, gang=False)])
    plan = decide(snapshot, queue, profile)
    placed = int(plan.placed.sum())
    snapshot.release(plan.lines, plan.slices, plan.rows_of(0))
    return placed


def most(snapshot: Snapshot, job: Job, profile: Profile) -> int:
    """Return with how many of its replicas a gang fits now; the snapshot is left as it is."""
    sizes = range(1, job.replicas + 1)
    return bisect_left(sizes, True, key=lambda count: not fits(snapshot, replace(job, replicas=count), profile))


def shortage(snapshot: Snapshot, job: Job, profile: Profile) -> str:
    """Say for how many of a job's replicas there is room, and with how many it would fit; empty if with all."""
    if job.replicas == 1 or fits(snapshot, job, profile):
        return ""
    count = room(snapshot, job, profile)
    where = "in one cluster" if job.together else "together"
    said = f"{job.replicas:,} replicas are needed {where}, and there is room for {count:,} now"
    if 0 < count < job.replicas and fits(snapshot, replace(job, replicas=count), profile):
        said += f"; it would fit with {count:,} replicas"
    return said


def fits(snapshot: Snapshot, job: Job, profile: Profile) -> bool:
    """Tell whether a whole job has room now; the snapshot is left as it is."""
    plan = decide(snapshot, JobQueue(snapshot, [job]), profile)
    fits = bool(plan.jobs_placed[0])
    snapshot.release(plan.lines, plan.slices, plan.rows_of(0))
    return fits
