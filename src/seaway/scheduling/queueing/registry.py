"""Registry of queue disciplines, built in and from other packages."""

from __future__ import annotations

import math
from collections.abc import Callable

from seaway.domain.amounts import Amounts
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.queues import Order, Queue
from seaway.scheduling.entry_points import entry_point_names, load_entry_point
from seaway.scheduling.queueing.discipline import QueueDiscipline, SortKey
from seaway.scheduling.queueing.tree import QueueNode, TenantNode

WITHIN_GUARANTEE, BY_WEIGHT, WITHOUT_WEIGHT = range(3)
"""Groups of siblings, in the order in which they are served."""

NS_PER_S = 1_000_000_000

LONGEST_S = 2**31
"""Duration that counts for jobs without one, in a queue of the order ``shortest`` with ageing, seconds."""


class FairShare:
    """Weighted dominant resource fairness over the tree of queues and the tenants in it, and the order of each queue.

    Siblings go first if the next job is within their guarantee. Then the higher priority goes first, then the smaller
    share beyond the guarantee, divided by the weight. The mean share of the past is added, if it is known. A queue of
    weight 0 goes last beyond its guarantee. The same applies to the tenants in a fair queue, with their whole share and
    without priorities.

    References
    ----------
    Ghodsi et al., Dominant Resource Fairness, NSDI 2011, sections 4.1 and 4.3.
    """

    name = "fair-share"

    def job_key(self, job: Job, submitted_ns: int, queue: Queue) -> SortKey:
        """Return the position of a job in the order of its queue."""
        ages = submitted_ns / NS_PER_S / queue.ageing_s if queue.ageing_s else 0.0  # later jobs have less of an age
        match queue.order:
            case Order.FIFO:
                first: float = 0
            case Order.SHORTEST:
                lasts_s = job.expected_duration_s
                first = math.inf if lasts_s is None else lasts_s
                if queue.ageing_s:
                    first = math.log2(max(1, LONGEST_S if lasts_s is None else lasts_s)) + ages
            case _:
                first = ages - job.priority
        return first, submitted_ns, job.name

    def tenant_key(self, queue: QueueNode, tenant: TenantNode, first: SortKey, requested: Amounts) -> SortKey:
        """Return the position of a tenant: in a fair queue as that of a queue, otherwise that of its first job."""
        if queue.queue.order is not Order.FAIR:
            return first
        use, weight = tenant.use, tenant.weight
        group = WITHIN_GUARANTEE if tenant.guarantees(requested) else BY_WEIGHT if weight else WITHOUT_WEIGHT
        share = queue.share_of(use.held) + (queue.share_of(tenant.past) if tenant.past else 0.0)
        return group, share / (weight or 1), use.attempts / (weight or 1), tenant.name

    def queue_key(self, queue: QueueNode, requested: Amounts) -> SortKey:
        """Return the position of a queue among its siblings."""
        record, attempts = queue.queue, queue.use.attempts
        if queue.guarantees(requested):
            return WITHIN_GUARANTEE, -record.priority, queue.share_of_guarantee(), attempts, record.name
        share, weight = queue.share_beyond_guarantee(), record.weight
        if queue.past:
            share += queue.past_share_beyond_guarantee()
        group = BY_WEIGHT if weight else WITHOUT_WEIGHT
        return group, -record.priority, share / (weight or 1), attempts / (weight or 1), record.name


ENTRY_POINTS = "seaway.queue_disciplines"
"""Group of entry points for queue disciplines of other packages: classes or functions without arguments."""

BUILT_IN: dict[str, Callable[[], QueueDiscipline]] = {"fair-share": FairShare}
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
