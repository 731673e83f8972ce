"""Registry of queue disciplines, built in and from other packages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.scheduling.entry_points import entry_point_names, load_entry_point
from seaway.scheduling.queueing.discipline import QueueDiscipline, SortKey


class Priority:
    """Order by priority, then by submission time, then by ID, with tenants in turn."""

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
        """Record the tenant of this job."""
        self._last_tenant = job.tenant


ENTRY_POINTS = "seaway.queue_disciplines"
"""Group of entry points for queue disciplines of other packages: classes or functions without arguments."""

BUILT_IN: dict[str, Callable[[], QueueDiscipline]] = {"priority": Priority}
"""Factory of each built-in queue discipline."""


def queue_discipline_names() -> list[str]:
    """Return the names that `make_queue_discipline` accepts, built-in names first."""
    return [*BUILT_IN, *entry_point_names(ENTRY_POINTS)]


def make_queue_discipline(name: str) -> QueueDiscipline:
    """Create a queue discipline.

    Raises
    ------
    RejectedError
        If the queue discipline does not exist, or its package cannot be loaded.
    """
    factory: Callable[[], QueueDiscipline] | None = BUILT_IN.get(name) or load_entry_point(ENTRY_POINTS, name)
    if factory is None:
        raise RejectedError(f"queue discipline {name!r} not found; available: {', '.join(queue_discipline_names())}")
    return factory()
