"""A queue of jobs as columns, so that a decision costs nothing but the decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from seaway.domain.job import Job
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import JOB_REPLICAS, JOB_ROWS
from seaway.scheduling.snapshot.snapshot import Snapshot


class JobQueue:
    """Jobs in the order in which they are to be decided.

    A job is translated once, when it joins; queues cut from a queue share its lines.

    Parameters
    ----------
    snapshot
        The fleet that the jobs' demands are checked against and encoded for.
    jobs
        Jobs to begin with.
    """

    def __init__(self, snapshot: Snapshot, jobs: Iterable[Job] = ()) -> None:
        self._snapshot = snapshot
        self.jobs: list[Job] = []
        self._rows = np.zeros((0, JOB_ROWS), np.int64)
        self.extend(jobs)

    def extend(self, jobs: Iterable[Job]) -> None:
        """Let `jobs` join at the end.

        Raises
        ------
        RejectedError
            When a demand names a gateway that the fleet does not have; no job has joined then.
        """
        joining = list(jobs)
        first = len(self.jobs)
        lines = [
            (self._snapshot.demands.index(job.demand), job.replicas, job.gang, first + at, *self._placement_flags(job))
            for at, job in enumerate(joining)
        ]
        self._rows = np.concatenate([self._rows, np.array(lines, np.int64).reshape(-1, JOB_ROWS)])
        self.jobs.extend(joining)

    @property
    def rows(self) -> Int64:
        """The jobs as columns, shape (J, JOB_ROWS)."""
        return self._rows

    @property
    def replicas(self) -> int:
        """Number of replicas the jobs have together."""
        return int(self._rows[:, JOB_REPLICAS].sum())

    def part(self, first: int, end: int) -> JobQueue:
        """Return the jobs from `first` up to `end` as a queue; numbers stay as they were."""
        cut = JobQueue(self._snapshot)
        cut.jobs = self.jobs[first:end]
        cut._rows = self._rows[first:end]
        return cut

    def take(self, order: Int64) -> JobQueue:
        """Return the jobs with the given indices, shape (X,), in that order, as a queue."""
        taken = JobQueue(self._snapshot)
        taken.jobs = [self.jobs[j] for j in order]
        taken._rows = np.ascontiguousarray(self._rows[order])
        return taken

    def _placement_flags(self, job: Job) -> tuple[bool, bool]:
        """Tell whether a job's spread over clusters must be weighed, and whether it is drawn to its data."""
        if len(self._snapshot.clusters) < 2:
            return False, False
        return job.replicas > 1 and (job.gang or job.between_replicas.any), bool(job.data.location)

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)
