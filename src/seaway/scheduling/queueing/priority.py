"""Priority within a tenant, round robin between tenants: the default queue discipline."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from seaway.domain.job import Job
from seaway.scheduling.queueing.discipline import SortKey


class Priority:
    """Order by priority, then by submission time, then by ID; one job of each tenant in turn."""

    name = "priority"

    def __init__(self) -> None:
        self._last_tenant = ""

    def key(self, job: Job, submitted_ns: int) -> SortKey:
        """Return the position of a job: high priorities first, then early submissions."""
        return -job.priority, submitted_ns, job.name

    def next_tenant(self, tenants: Sequence[str]) -> str:
        """Return the tenant after the last one, by name."""
        return tenants[bisect_right(tenants, self._last_tenant) % len(tenants)]

    def taken(self, job: Job) -> None:
        """Continue after the tenant of this job."""
        self._last_tenant = job.tenant
