"""Queues, pools and tenants, from stored changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seaway.application.changes import Change, Record
from seaway.domain.errors import UnavailableError
from seaway.domain.job_spec import NO_CLUSTER
from seaway.domain.queues import Queue, children_of
from seaway.domain.tenancy import Pool, Tenant


class Names:
    """Queues, pools and tenants by name. One thread changes them; any thread can read them."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.pools: dict[str, Pool] = {}
        self.tenants: dict[str, Tenant] = {}
        self._children: Mapping[str, Sequence[Queue]] = {}

    def reset(self, queues: Iterable[Queue], pools: Iterable[Pool], tenants: Iterable[Tenant]) -> None:
        """Replace all records."""
        self.queues = {queue.name: queue for queue in queues}
        self.pools = {pool.name: pool for pool in pools}
        self.tenants = {tenant.name: tenant for tenant in tenants}
        self._children = children_of(self.queues.values())

    def take(self, changes: Iterable[Change]) -> None:
        """Apply stored changes in their order."""
        for change in changes:
            for record in change.delete:
                self.drop(record)
            for records in (change.insert, change.update, change.put):
                for record in records:
                    self.put(record)

    def put(self, record: Record) -> bool:
        """Apply a record; report whether it can change the allowed clusters of jobs."""
        match record:
            case Queue():
                self.queues[record.name] = record
                self._children = children_of(self.queues.values())
            case Pool():
                self.pools[record.name] = record
            case Tenant():
                self.tenants[record.name] = record
        return isinstance(record, Queue | Pool)

    def drop(self, record: Record) -> bool:
        """Apply the removal of a record; return as `put`."""
        match record:
            case Queue():
                self.queues.pop(record.name, None)
                self._children = children_of(self.queues.values())
            case Pool():
                self.pools.pop(record.name, None)
            case Tenant():
                self.tenants.pop(record.name, None)
        return isinstance(record, Queue | Pool)

    def clusters_of(self, queue: str) -> frozenset[str]:
        """Return the clusters of a queue's pool; empty for all, `NO_CLUSTER` if the queue or pool is missing.

        Raises
        ------
        UnavailableError
            If the queues are not loaded yet. At least one queue always exists.
        """
        if not self.queues:
            raise UnavailableError("the control plane is starting", retry_after_s=1)
        known = self.queues.get(queue)
        pool = self.pools.get(known.pool) if known else None
        return pool.clusters if pool else NO_CLUSTER

    def leaves(self, name: str) -> list[Queue]:
        """Return the queues without children below a queue; none if the queue itself has no children."""
        below = list(self._children.get(name, ()))
        found = []
        while below:
            queue = below.pop()
            children = self._children.get(queue.name, ())
            below += children
            if not children:
                found.append(queue)
        return sorted(found, key=lambda each: each.name)

    def lacking(self, name: str) -> str:
        """Return a message with the fix if a queue or its pool is missing; empty if both exist."""
        queue = self.queues.get(name)
        if queue is None:
            return (
                f"its queue {name!r} does not exist any more; move the job to another queue, or create the queue again"
            )
        return (
            ""
            if queue.pool in self.pools
            else f"the pool {queue.pool!r} of its queue does not exist any more; create it again"
        )
