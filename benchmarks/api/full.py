"""Store with many jobs."""

from __future__ import annotations

from pathlib import Path
from random import Random

from seaway.adapters.sqlalchemy.store import open_store
from seaway.application.changes import Change
from seaway.application.transitions import accepted
from seaway.domain.attempt import Attempt
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.placement import DeviceSlice, Placement

JOBS = 100_000
WAITING = 2_000
BATCH = 500
START_NS = 1_790_000_000_000_000_000
NS_PER_JOB = 1_000_000_000

ENDS = (JobState.COMPLETED, JobState.COMPLETED, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


LASTS_S = 7200
"""Maximum duration of a finished job, seconds."""


def fill(folder: Path, seed: int, start_ns: int = START_NS, waiting_gpus: int = 8) -> list[str]:
    """Store finished jobs with their attempts, and waiting ones; return their IDs.

    Parameters
    ----------
    start_ns
        Time of the first job. One follows each second.
    waiting_gpus
        GPUs of each waiting job. Those of 8 GPUs cannot start while others like them run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store = open_store(f"sqlite:///{folder / 'seaway.db'}")
    store.lead("benchmark")
    random = Random(seed)
    ids = JobIds(random)
    known: list[str] = []
    try:
        for first in range(0, JOBS, BATCH):
            jobs = [_job(ids, random, number, start_ns, waiting_gpus) for number in range(first, first + BATCH)]
            changes = [accepted(job) for job in jobs]
            store.commit([*changes, Change(insert=[_attempt(job, random) for job in jobs if job.attempt])])
            known += [job.id for job in jobs]
    finally:
        store.close()
    return known


def _job(ids: JobIds, random: Random, number: int, start_ns: int, waiting_gpus: int) -> JobRecord:
    at_ns = start_ns + number * NS_PER_JOB
    waits = number >= JOBS - WAITING
    gpus = waiting_gpus if waits else random.choice([1, 2, 4])
    request = ResourceRequest(
        1_000 * gpus, 4_096 * gpus, gpus, random.choice([4_096, 8_192]), 0, 1000 if waits else 100
    )
    spec = JobSpec(name=f"job-{number % 1000}", demand=Demand(request), labels={"team": f"team-{number % 20}"})
    cluster = number % 10
    return JobRecord(
        id=ids.generate(at_ns),
        spec=spec,
        state=JobState.PENDING if waits else random.choice(ENDS),
        submitted_ns=at_ns,
        changed_ns=at_ns,
        submitted_by="benchmark",
        reason="made for a measurement",
        attempt=0 if waits else 1,
        clusters=() if waits else (f"cluster-{cluster}",),
        nodes=() if waits else (f"c{cluster}-n{number % 125}",),
        started_ns=None if waits else at_ns,
        ended_ns=None if waits else at_ns + random.randrange(NS_PER_JOB, LASTS_S * NS_PER_JOB),
    )


def _attempt(job: JobRecord, random: Random) -> Attempt:
    """Return the attempt of a finished job: one replica with slices of the GPUs of a node."""
    request, node = job.spec.demand.request, job.nodes[0]
    model = random.choice(("gpus/nvidia l40s", "gpus/nvidia a100-sxm4-80gb"))
    slices = tuple(
        DeviceSlice(f"GPU-{node}-{at}", request.gpu_memory_mib, request.gpu_milli) for at in range(request.gpus)
    )
    held = request.gpus * request.gpu_milli
    return Attempt(
        job.id,
        1,
        AttemptState.ENDED,
        job.spec,
        "bestfit",
        (Placement(job.id, 0, job.clusters[0], node, slices),),
        job.submitted_ns,
        job.submitted_ns,
        why="made for a measurement",
        running_ns=job.started_ns,
        ended_ns=job.ended_ns,
        amounts={"cpu": request.cpu_milli, "memory": request.memory_mib, "gpus": held, model: held},
    )
