"""Store with many jobs."""

from __future__ import annotations

from pathlib import Path
from random import Random

from seaway.adapters.sqlalchemy.store import open_store
from seaway.application.records import JobRecord
from seaway.application.transitions import accepted
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import JobState

JOBS = 100_000
WAITING = 2_000
BATCH = 500
START_NS = 1_790_000_000_000_000_000
NS_PER_JOB = 1_000_000_000

ENDS = (JobState.COMPLETED, JobState.COMPLETED, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


def fill(folder: Path, seed: int) -> list[str]:
    """Store finished jobs, and some that cannot start while others like them run; return their IDs."""
    folder.mkdir(parents=True, exist_ok=True)
    store = open_store(f"sqlite:///{folder / 'seaway.db'}")
    store.lead("benchmark")
    random = Random(seed)
    ids = JobIds(random)
    known: list[str] = []
    try:
        for first in range(0, JOBS, BATCH):
            jobs = [_job(ids, random, number) for number in range(first, first + BATCH)]
            store.commit([accepted(job) for job in jobs])
            known += [job.id for job in jobs]
    finally:
        store.close()
    return known


def _job(ids: JobIds, random: Random, number: int) -> JobRecord:
    at_ns = START_NS + number * NS_PER_JOB
    waits = number >= JOBS - WAITING
    gpus = 8 if waits else random.choice([1, 2, 4])
    request = ResourceRequest(
        1_000 * gpus, 4_096 * gpus, gpus, random.choice([4_096, 8_192]), 0, 1000 if waits else 100
    )
    spec = JobSpec(name=f"job-{number % 1000}", demand=Demand(request), labels={"team": f"team-{number % 20}"})
    return JobRecord(
        id=ids.generate(at_ns),
        spec=spec,
        state=JobState.PENDING if waits else random.choice(ENDS),
        submitted_ns=at_ns,
        changed_ns=at_ns,
        submitted_by="benchmark",
        reason="made for a measurement",
        ended_ns=None if waits else at_ns + NS_PER_JOB,
    )
