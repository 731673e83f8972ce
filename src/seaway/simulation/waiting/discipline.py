"""Order of the waiting jobs of a replay, and their queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seaway.domain.amounts import capacity_of, total_of
from seaway.domain.cluster import Cluster
from seaway.domain.queues import Backfill, Order, Queue
from seaway.domain.tenancy import Tenant
from seaway.scheduling.queueing.tree import RESTART_COST_S, GpuWeights, QueueTree


@dataclass(frozen=True, slots=True)
class Discipline:
    """Order of the waiting jobs of a replay, and the jobs that may overtake.

    Attributes
    ----------
    queues
        Queues, whose own order and backfill apply instead; none for one queue without limits.
    tenants
        Tenants with their weights and quotas; others have the weight 1.
    pools
        Clusters of each pool; none for all. Jobs may use those that their demands allow.
    gpu_weights
        Weights of GPU models in shares, by resource.
    restart_cost_s
        Cost of the restart of a displaced job, see `QueueTree`.
    """

    order: Order = Order.PRIORITY
    backfill: Backfill = Backfill.GREEDY
    queues: tuple[Queue, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    pools: Mapping[str, frozenset[str]] = field(default_factory=dict)
    gpu_weights: GpuWeights = field(default_factory=dict)
    restart_cost_s: float = RESTART_COST_S


ONE_QUEUE = Discipline()
"""One queue in the order of priorities, in which every job that fits starts."""


def queue_tree(discipline: Discipline, clusters: Sequence[Cluster]) -> QueueTree:
    """Return the queues of a replay on some clusters, without use."""
    pools = {queue.pool: frozenset[str]() for queue in discipline.queues} | dict(discipline.pools)
    capacities = {
        name: total_of(capacity_of(each) for each in clusters if not allowed or each.name in allowed)
        for name, allowed in pools.items()
    }
    return QueueTree(
        discipline.queues, capacities, discipline.tenants, discipline.gpu_weights, discipline.restart_cost_s
    )
