"""Rows of the queues page, joined from answers of the API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seaway.domain.amounts import GPU_MEMORY, GPUS, JOBS, MODEL_PREFIX, parse_amounts

if TYPE_CHECKING:
    from seaway.wire.fleet import ClusterOut
    from seaway.wire.queues import QueueOut, QueueTotalsOut, QueueUsageOut, TenantTotalsOut
    from seaway.wire.tenancy import PoolOut, TenantOut


@dataclass(slots=True)
class Held:
    """Running and waiting jobs of a queue or tenant, and their allocations.

    Attributes
    ----------
    waiting, running
        Number of tasks.
    gpu_milli, gpu_memory_mib
        GPU allocations of the jobs.
    """

    waiting: int = 0
    running: int = 0
    longest_wait_s: int = 0
    gpu_milli: int = 0
    gpu_memory_mib: int = 0
    waiting_jobs: int = 0
    running_jobs: int = 0

    def count(self, use: QueueUsageOut | QueueTotalsOut) -> None:
        """Add the numbers of jobs and tasks."""
        self.waiting += use.waiting
        self.running += use.running
        self.waiting_jobs += use.waiting_jobs
        self.running_jobs += use.running_jobs

    def add(self, use: QueueUsageOut) -> None:
        """Add a use."""
        self.count(use)
        self.longest_wait_s = max(self.longest_wait_s, use.longest_wait_s)
        self.gpu_milli += use.gpu_milli
        self.gpu_memory_mib += use.gpu_memory_mib


@dataclass(frozen=True, slots=True)
class Room:
    """Resources of the clusters of a pool that answer.

    Attributes
    ----------
    unreachable_gpus
        GPUs of its clusters that do not answer, as last reported.
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
    unreachable_gpus: int = 0


@dataclass(slots=True)
class Seen:
    """Latest answer of each call."""

    queues: Sequence[QueueOut] = ()
    tenants: Sequence[TenantOut] = ()
    pools: Sequence[PoolOut] = ()
    uses: Sequence[QueueUsageOut] = ()
    totals: Sequence[QueueTotalsOut] = ()
    tenant_totals: Sequence[TenantTotalsOut] = ()
    clusters: Sequence[ClusterOut] = field(default_factory=tuple)


def held(uses: Iterable[QueueUsageOut]) -> Held:
    """Return the sum of the given uses."""
    sums = Held()
    for each in uses:
        sums.add(each)
    return sums


def room_of(pool: PoolOut, clusters: Iterable[ClusterOut]) -> Room:
    """Return the resources of a pool's clusters. A pool without a list has all clusters."""
    every = [each for each in clusters if not pool.clusters or each.name in pool.clusters]
    own = [each for each in every if each.state == "up"]
    return Room(
        len(own),
        sum(each.gpus for each in own),
        sum(each.gpu_milli.total for each in own),
        sum(each.gpu_memory_mib.total for each in own),
        sum(each.gpu_milli.used for each in own),
        sum(each.gpu_memory_mib.used for each in own),
        sum(each.gpus for each in every if each.state != "up"),
    )


def queue_rows(seen: Seen) -> Iterator[dict[str, object]]:
    """Yield queues in the order of the tree, with the jobs of their subtrees, and with bars of their amounts."""
    rooms = {each.name: room_of(each, seen.clusters) for each in seen.pools}
    totals = {each.queue: each for each in seen.totals}
    names = {each.name for each in seen.queues}
    children: dict[str, list[QueueOut]] = {}
    for queue in sorted(seen.queues, key=lambda each: each.name):
        children.setdefault(queue.parent if queue.parent in names else "", []).append(queue)

    uses: defaultdict[str, list[QueueUsageOut]] = defaultdict(list)
    for use in seen.uses:
        uses[use.queue].append(use)

    def subtree(queue: QueueOut) -> Iterator[QueueUsageOut]:
        yield from uses[queue.name]
        for child in children.get(queue.name, ()):
            yield from subtree(child)

    def jobs_of(queue: QueueOut) -> Held:
        """Return the waiting and running jobs of all tenants; uses are those that the caller sees."""
        sums = held(subtree(queue))
        if (total := totals.get(queue.name)) is not None:
            sums.waiting = sums.running = sums.waiting_jobs = sums.running_jobs = 0
            sums.count(total)
        return sums

    def below(parent: str, depth: int, scale: Mapping[str, int]) -> Iterator[dict[str, object]]:
        for queue in children.get(parent, ()):
            full = scale or full_amounts(queue, rooms.get(queue.pool, Room()))
            yield {
                "queue": queue,
                "depth": depth,
                "leaf": queue.name not in children,
                "held": jobs_of(queue),
                "bars": list(bars_of(totals[queue.name], full)) if queue.name in totals else [],
                "cost": totals[queue.name].cost if queue.name in totals else None,
            }
            yield from below(queue.name, depth + 1, full)

    return below("", 0, {})


def shown_rows(rows: Sequence[dict[str, Any]], folded: Set[str], search: str) -> list[dict[str, Any]]:
    """Return the rows outside of folded queues; with a search, those whose name has it, and the ones above them."""
    path: list[str] = []
    paths = []
    for row in rows:
        path[row["depth"] :] = [row["queue"].name]
        paths.append(tuple(path))
    if not search:
        return [row for row, names in zip(rows, paths, strict=True) if not folded & {*names[:-1]}]
    found = {each for names in paths if search.casefold() in names[-1].casefold() for each in names}
    return [row for row, names in zip(rows, paths, strict=True) if names[-1] in found]


def full_amounts(root: QueueOut, room: Room) -> dict[str, int]:
    """Return the amounts at the end of the bars of a tree: its limit, or the resources of its pool."""
    return _amounts_of(room) | parse_amounts(root.limit)


def _amounts_of(room: Room) -> dict[str, int]:
    return {GPUS: room.gpus * 1000, GPU_MEMORY: room.gpu_memory_mib}


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of a resource of a queue. Amounts are those of `seaway.domain.amounts`, widths percent of the bar.

    Attributes
    ----------
    borrowed
        Amount beyond the guarantee; 0 if the queue guarantees nothing of the resource.
    limit
        None without a limit.
    full
        Amount at the end of the bar.
    """

    resource: str
    used: int
    guarantee: int
    borrowed: int
    limit: int | None
    full: int

    @property
    def model(self) -> str:
        """GPU model that it counts; empty for other resources."""
        return self.resource.removeprefix(MODEL_PREFIX) if self.resource.startswith(MODEL_PREFIX) else ""

    def width(self, amount: int) -> float:
        """Return the width of an amount."""
        return min(100.0, 100.0 * amount / self.full) if self.full else 0.0


def bars_of(totals: QueueTotalsOut | TenantTotalsOut, full: Mapping[str, int]) -> Iterator[Bar]:
    """Yield a bar for GPUs, and for each other resource that a queue or a quota guarantees or limits.

    Each is as long as the own limit, so that a queue at its limit is a full bar; without one, as the whole pool.

    Only queues borrow.
    """
    used, guarantee, limit = (parse_amounts(each) for each in (totals.used, totals.guarantee, totals.limit))
    used[JOBS], borrows = totals.running, hasattr(totals, "borrowed")
    others = sorted({*guarantee, *limit} - {GPUS})
    for name in (GPUS, *others):
        amount, own = used.get(name, 0), guarantee.get(name, 0)
        borrowed = max(0, amount - own) if own and borrows else 0
        end = max(limit[name] if name in limit else full.get(name, 0), own, amount)
        yield Bar(name, amount, own, borrowed, limit.get(name), end)


def tenant_rows(seen: Seen) -> Iterator[dict[str, object]]:
    """Yield tenants with their use, their own queues, and their quotas with bars in each pool."""
    rooms = {each.name: _amounts_of(room_of(each, seen.clusters)) for each in seen.pools}
    for tenant in seen.tenants:
        queues = [each.name for each in seen.queues if each.tenant == tenant.name]
        uses = held(each for each in seen.uses if each.tenant == tenant.name)
        pools = [
            {
                "totals": each,
                "quota": tenant.quotas.get(each.pool),
                "bars": list(bars_of(each, rooms.get(each.pool, {}) | parse_amounts(each.limit))),
            }
            for each in seen.tenant_totals
            if each.tenant == tenant.name
        ]
        more = any(each.name not in tenant.quotas for each in seen.pools)
        yield {"tenant": tenant, "held": uses, "queues": queues, "pools": pools, "more": more}


def pool_rows(seen: Seen) -> Iterator[dict[str, object]]:
    """Yield pools with their resources and the queues that use them."""
    for pool in seen.pools:
        queues = [each.name for each in seen.queues if each.pool == pool.name]
        yield {"pool": pool, "room": room_of(pool, seen.clusters), "queues": queues}
