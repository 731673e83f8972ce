"""Rows of the queues page, joined from answers of the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterOut
    from seaway.wire.queues import QueueOut, QueueUsageOut
    from seaway.wire.tenancy import PoolOut, TenantOut


@dataclass(slots=True)
class Held:
    """Running and waiting jobs of a queue or tenant, and their allocations.

    Attributes
    ----------
    gpu_milli, gpu_memory_mib
        GPU allocations of the jobs.
    """

    waiting: int = 0
    running: int = 0
    longest_wait_s: int = 0
    gpu_milli: int = 0
    gpu_memory_mib: int = 0

    def add(self, use: QueueUsageOut) -> None:
        """Add a use."""
        self.waiting += use.waiting
        self.running += use.running
        self.longest_wait_s = max(self.longest_wait_s, use.longest_wait_s)
        self.gpu_milli += use.gpu_milli
        self.gpu_memory_mib += use.gpu_memory_mib


@dataclass(frozen=True, slots=True)
class Room:
    """Resources of a pool.

    Attributes
    ----------
    gpu_milli, gpu_memory_mib
        Total resources.
    used_milli, used_memory_mib
        Resources allocated by all queues.
    """

    clusters: int = 0
    gpus: int = 0
    gpu_milli: int = 0
    gpu_memory_mib: int = 0
    used_milli: int = 0
    used_memory_mib: int = 0


@dataclass(slots=True)
class Seen:
    """Latest answer of each call."""

    queues: Sequence[QueueOut] = ()
    tenants: Sequence[TenantOut] = ()
    pools: Sequence[PoolOut] = ()
    uses: Sequence[QueueUsageOut] = ()
    clusters: Sequence[ClusterOut] = field(default_factory=tuple)


def held(uses: Iterable[QueueUsageOut]) -> Held:
    """Return the sum of the given uses."""
    sums = Held()
    for each in uses:
        sums.add(each)
    return sums


def room_of(pool: PoolOut, clusters: Iterable[ClusterOut]) -> Room:
    """Return the resources of a pool's clusters. A pool without a list has all clusters."""
    own = [each for each in clusters if not pool.clusters or each.name in pool.clusters]
    return Room(
        len(own),
        sum(each.gpus for each in own),
        sum(each.gpu_milli.total for each in own),
        sum(each.gpu_memory_mib.total for each in own),
        sum(each.gpu_milli.used for each in own),
        sum(each.gpu_memory_mib.used for each in own),
    )


def queue_rows(seen: Seen) -> Iterator[dict[str, object]]:
    """Yield queues with their use and the resources of their pools."""
    rooms = {each.name: room_of(each, seen.clusters) for each in seen.pools}
    for queue in seen.queues:
        uses = held(each for each in seen.uses if each.queue == queue.name)
        yield {"queue": queue, "held": uses, "room": rooms.get(queue.pool, Room())}


def tenant_rows(seen: Seen) -> Iterator[dict[str, object]]:
    """Yield tenants with their use and their own queues."""
    for tenant in seen.tenants:
        queues = [each.name for each in seen.queues if each.tenant == tenant.name]
        uses = held(each for each in seen.uses if each.tenant == tenant.name)
        yield {"tenant": tenant, "held": uses, "queues": queues}


def pool_rows(seen: Seen) -> Iterator[dict[str, object]]:
    """Yield pools with their resources and the queues that use them."""
    for pool in seen.pools:
        queues = [each.name for each in seen.queues if each.pool == pool.name]
        yield {"pool": pool, "room": room_of(pool, seen.clusters), "queues": queues}
