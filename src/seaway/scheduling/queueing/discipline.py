"""The extension point for the order of waiting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from seaway.domain.job import Job

SortKey = tuple[int | float | str, ...]
"""Position of a job among the jobs of its tenant. The smallest key goes first."""


@runtime_checkable
class QueueDiscipline(Protocol):
    """Order in which the control loop tries waiting jobs.

    The control loop has one discipline, and calls it under its lock. It keeps the jobs of each tenant sorted by `key`.
    For each job of a batch, it calls `next_tenant`, selects the first job of that tenant, and passes it to `taken`.
    Jobs that cannot fit now are skipped before.

    Attributes
    ----------
    name
        Value of the setting ``[control] queue_discipline``.
    """

    name: str

    def key(self, job: Job, submitted_ns: int) -> SortKey:
        """Return the position of a job.

        The key depends only on the arguments. It is computed when the job starts to wait and when it changes. The keys
        of all jobs are comparable, also across tenants.

        Parameters
        ----------
        submitted_ns
            Time of the submission, nanoseconds since the epoch.
        """
        ...

    def next_tenant(self, tenants: Sequence[str]) -> str:
        """Return the tenant whose first job is tried next.

        Parameters
        ----------
        tenants
            Names of the tenants with jobs to try, sorted; at least one.
        """
        ...

    def taken(self, job: Job) -> None:
        """Record that a job was selected to be tried."""
        ...
