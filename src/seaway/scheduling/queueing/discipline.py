"""The extension point for the order of waiting jobs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from seaway.domain.amounts import Amounts
from seaway.domain.job import Job
from seaway.domain.queues import Queue
from seaway.scheduling.queueing.tree import QueueNode, TenantNode

SortKey = tuple[int | float | str, ...]
"""Position of a job, a tenant or a queue. The smallest key goes first."""


@runtime_checkable
class QueueDiscipline(Protocol):
    """Order in which the control loop tries waiting jobs.

    The control loop has one discipline, and calls it under its lock. Beginning at the roots of the tree, it selects the
    queue with the smallest `queue_key` among siblings, down to a queue with waiting jobs. There it selects the tenant
    with the smallest `tenant_key`, and of that tenant the job with the smallest `job_key`. Queues and tenants without a
    job to try are skipped. So are jobs that cannot fit now, and jobs without room under the limit of a queue.

    Each selected job counts in the amounts of its queue and tenant from then on, unless it does not fit. The keys of
    queues and tenants are computed again after each change of these amounts.

    All keys depend only on the arguments. Keys that are compared with each other have comparable parts.

    Attributes
    ----------
    name
        Value of the setting ``[control] queue_discipline``.
    """

    name: str

    def job_key(self, job: Job, submitted_ns: int, queue: Queue) -> SortKey:
        """Return the position of a job among the jobs of its tenant in its queue.

        It is computed when the job starts to wait, and when the job or its queue changes.

        Parameters
        ----------
        submitted_ns
            Time of the submission, nanoseconds since the epoch.
        """
        ...

    def tenant_key(self, queue: QueueNode, tenant: TenantNode, first: SortKey, requested: Amounts) -> SortKey:
        """Return the position of a tenant among the tenants with waiting jobs in a queue.

        Parameters
        ----------
        first
            Key of its first job.
        requested
            Minimum amounts of that job.
        """
        ...

    def queue_key(self, queue: QueueNode, requested: Amounts) -> SortKey:
        """Return the position of a queue among its siblings.

        Parameters
        ----------
        requested
            Minimum amounts of the job that would be selected from the queue.
        """
        ...
