"""Queues of jobs, encoded as columns for the decision engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from seaway.domain.job import Job
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import JOB_REPLICAS, JOB_ROWS
from seaway.scheduling.snapshot.snapshot import Snapshot


class JobQueue:
    """Jobs in the order of decision.

    A job is encoded once, when it is added. Queues that are parts of a queue share its rows.

    Parameters
    ----------
    snapshot
        Snapshot for which the jobs' demands are checked and encoded.
    jobs
        Initial jobs.
    first
        Sequence number of the first job, which seeds random choices.
    """

    def __init__(self, snapshot: Snapshot, jobs: Iterable[Job] = (), first: int = 0) -> None:
        self._snapshot = snapshot
        self._first = first
        self.jobs: list[Job] = []
        self._rows = np.zeros((0, JOB_ROWS), np.int64)
        self.extend(jobs)

    def extend(self, jobs: Iterable[Job]) -> None:
        """Append jobs.

        Raises
        ------
        RejectedError
            If a demand names an unknown gateway. Then no job is added.
        """
        joining = list(jobs)
        if not joining:
            return
        first = self._first + len(self.jobs)
        lines = [
            (self._snapshot.demands.index(job.demand), job.replicas, job.gang, first + at, *self._placement_flags(job))
            for at, job in enumerate(joining)
        ]
        self._rows = np.concatenate([self._rows, np.array(lines, np.int64).reshape(-1, JOB_ROWS)])
        self.jobs.extend(joining)

    @property
    def rows(self) -> Int64:
        """Encoded jobs, shape (J, JOB_ROWS)."""
        return self._rows

    @property
    def replicas(self) -> int:
        """Total number of replicas of the jobs."""
        return int(self._rows[:, JOB_REPLICAS].sum())

    def part(self, first: int, end: int) -> JobQueue:
        """Return the jobs from `first` up to, but not including, `end` as a queue, with their sequence numbers."""
        cut = JobQueue(self._snapshot)
        cut.jobs = self.jobs[first:end]
        cut._rows = self._rows[first:end]
        return cut

    def take(self, order: Int64) -> JobQueue:
        """Return the jobs with the indices `order`, shape (X,), in that order, as a queue."""
        taken = JobQueue(self._snapshot)
        taken.jobs = [self.jobs[j] for j in order]
        taken._rows = np.ascontiguousarray(self._rows[order])
        return taken

    def _placement_flags(self, job: Job) -> tuple[bool, bool]:
        """Report whether its clusters or TPU slices must be decided together, and whether its data has a location."""
        in_slice = job.demand.devices.slice_nodes > 1
        if len(self._snapshot.clusters) < 2:
            return in_slice, False
        spans = job.replicas > 1 and (job.gang or job.between_replicas.any)
        return spans or in_slice, bool(job.data.places)

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)
