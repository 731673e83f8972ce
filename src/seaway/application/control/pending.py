"""Stored jobs as entries of the waiting line."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from seaway.application.control.rejections import NEVER_REFUSED, Refusals
from seaway.application.transitions import ELSEWHERE
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.queues import Queue
from seaway.scheduling.cycle.jobs import Entry, kind_of
from seaway.scheduling.queueing.discipline import QueueDiscipline
from seaway.scheduling.queueing.past_durations import PastRuns
from seaway.scheduling.queueing.tree import QueueTree


def entry(
    record: JobRecord,
    queue: Queue,
    clusters: frozenset[str],
    discipline: QueueDiscipline,
    refusals: Refusals = NEVER_REFUSED,
    *,
    apart: Hashable = "",
    past: PastRuns | None = None,
) -> Entry:
    """Create the entry of a waiting job.

    Parameters
    ----------
    queue
        Its queue.
    clusters
        Clusters of the pool of its queue; empty for all.
    refusals
        Places that it avoids.
    apart
        What else decides where the job fits: its user, if users have limits of their own, and its tenant and time
        limit, if there are advance reservations.
    past
        Past runs from which its duration is learned.
    """
    spec = record.spec
    job = _job(record.id, spec, record.completed, clusters, refusals)
    return Entry(
        record.id,
        spec,
        record.submitted_by,
        job,
        kind_of(job, spec, queue, apart, past),
        discipline.job_key(job, record.submitted_ns, queue),
        record.attempt,
        record.submitted_ns,
        record.completed,
        record.array,
        past,
    )


def is_fresh(record: JobRecord) -> bool:
    """Report whether a waiting job is not stored as queued yet, or waits again since it lost its nodes."""
    return record.state is not JobState.QUEUED or record.reason.endswith(ELSEWHERE)


def in_queue(
    waits: Entry,
    queue: Queue,
    clusters: frozenset[str],
    discipline: QueueDiscipline,
    refusals: Refusals,
    *,
    apart: Hashable,
) -> Entry:
    """Return a waiting job as it would be in a queue, which may be another or changed one; see `entry`."""
    spec = waits.spec if waits.queue == queue.name else replace(waits.spec, queue=queue.name)
    job = _job(waits.id, spec, waits.completed, clusters, refusals)
    kind, order = kind_of(job, spec, queue, apart, waits.past), discipline.job_key(job, waits.submitted_ns, queue)
    return replace(waits, spec=spec, job=job, kind=kind, order=order)


def apart_of(tree: QueueTree, spec: JobSpec, queue: str, user: str, *, reserves: bool) -> Hashable:
    """Return what else decides where a job fits in a queue, for `entry`.

    Parameters
    ----------
    reserves
        Whether there are advance reservations.
    """
    limited = user if tree.limits_users(queue, spec.tenant) else ""
    return (limited, spec.tenant, spec.time_limit_s) if reserves else limited


def _job(job_id: str, spec: JobSpec, completed: int, clusters: frozenset[str], refusals: Refusals) -> Job:
    job = spec.job(job_id, clusters)
    if completed:
        job = replace(job, replicas=job.replicas - completed)
    if refusals.devices or refusals.places or refusals.only:
        job = replace(job, demand=refusals.retained(job.demand))
    return job
