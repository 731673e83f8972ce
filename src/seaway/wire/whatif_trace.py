"""Traces for what-if questions, from files."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.job_spec import JobSpec
from seaway.domain.reasons import Reason
from seaway.simulation.swf import read_swf_jobs
from seaway.simulation.trace import counts_memory, jobs_of, read_job_table
from seaway.wire.job_text import job_text

Body = dict[str, Any]
"""A trace as `TraceIn` has it."""

NAME = "job"
"""Name of all jobs of a trace, which does not matter."""


def read_table(file: Path, gateways: Collection[str]) -> Body:
    """Read a trace of the columns of `seaway replay --jobs`.

    Without device memory in MiB, a slice has the same share of a device's memory as of its cores.

    Raises
    ------
    RejectedError
        If the file is invalid, with the position.
    """
    table = read_job_table(file)
    by_memory = counts_memory(table)
    jobs = jobs_of(table, gateways, by_memory=by_memory)
    if not any(job.arrives_s for job in jobs):
        said = Reason("trace_without_times")
        raise RejectedError(said, where=str(file))
    return trace_of(jobs if by_memory else list(map(_by_share, jobs)))


def read_log(file: Path) -> Body:
    """Read a log in the Standard Workload Format; raises as `read_table`."""
    return trace_of(read_swf_jobs(file)[0])


def _by_share(job: Job) -> Job:
    request = job.demand.request
    if not request.gpus:
        return job
    percent = -(-request.gpu_milli // 10)
    return replace(
        job, demand=replace(job.demand, request=replace(request, gpu_memory_mib=0, gpu_memory_percent=percent))
    )


def trace_of(jobs: Sequence[Job]) -> Body:
    """Return a trace as the API has it: jobs that differ in their times only share a kind."""
    kinds: list[Body] = []
    numbers: dict[Hashable, int] = {}
    first_s = min(job.arrives_s for job in jobs)
    rows = []
    for job in jobs:
        most = job.max_replicas or job.replicas
        shared = most, job.gang, job.between_replicas, job.priority, job.tenant, job.queue
        key = job.demand, job.replicas, *shared
        if key not in numbers:
            numbers[key] = len(kinds)
            bounds = (job.replicas, most) if job.elastic else (0, 0)
            spec = JobSpec(NAME, job.demand, *shared, min_replicas=bounds[0], max_replicas=bounds[1])
            kinds.append(job_text(spec))
        rows.append([numbers[key], job.arrives_s - first_s, job.expected_duration_s])
    return {"kinds": kinds, "jobs": rows}
