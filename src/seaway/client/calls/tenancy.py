"""Calls about queues, pools, tenants, and shadow policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypedDict, TypeVar, Unpack

from seaway.client.call import Answer, Call, Model, Nothing, Paged, get, part, send

if TYPE_CHECKING:
    from seaway.wire.tenancy import (
        PoolList,
        PoolOut,
        QueueList,
        QueueOut,
        QueueUsageList,
        ShadowList,
        ShadowOut,
        TenantList,
        TenantOut,
        WaitingOut,
        WaitingPage,
    )

_WIRE = "seaway.wire.tenancy"

QUEUE: Answer[QueueOut] = Model(_WIRE, "QueueOut")
QUEUES: Answer[QueueList] = Model(_WIRE, "QueueList")
POOL: Answer[PoolOut] = Model(_WIRE, "PoolOut")
POOLS: Answer[PoolList] = Model(_WIRE, "PoolList")
TENANT: Answer[TenantOut] = Model(_WIRE, "TenantOut")
TENANTS: Answer[TenantList] = Model(_WIRE, "TenantList")
SHADOWS: Answer[ShadowList] = Model(_WIRE, "ShadowList")
QUEUE_USES: Answer[QueueUsageList] = Model("seaway.wire.tenancy", "QueueUsageList")
WAITING: Answer[WaitingPage] = Model("seaway.wire.tenancy", "WaitingPage")

PAGE = 500
WAITING_PAGE = 100

Shown = TypeVar("Shown")


class Seen(Protocol):
    """A queue, pool or tenant as it was read."""

    @property
    def version(self) -> str:
        """Version of the object."""


class QueueFields(TypedDict, total=False):
    """Fields of a queue as keyword arguments; see `seaway.wire.tenancy.QueueIn`."""

    tenant: str
    pool: str
    policy: str
    shadow: str
    open: bool
    description: str
    allowed_taints: list[str]
    allowed_node_labels: list[str]


def queues() -> Call[QueueList]:
    """List queues, without those of other tenants."""
    return get("/queues", QUEUES)


def queue(name: str) -> Call[QueueOut]:
    """Return a queue."""
    return get(f"/queues/{part(name)}", QUEUE)


def put_queue(name: str, *, seen: Seen | None = None, **given: Unpack[QueueFields]) -> Call[QueueOut]:
    """Create or replace a queue; omitted fields get their defaults.

    Parameters
    ----------
    seen
        The queue that the change is based on: raises `StaleError` if the server has another version. None creates or
        changes any version.
    """
    return _put(f"/queues/{part(name)}", QUEUE, given, seen)


def delete_queue(name: str) -> Call[None]:
    """Remove a queue without waiting and running jobs."""
    return send("DELETE", f"/queues/{part(name)}", Nothing(), repeatable=False)


def queue_usage() -> Call[QueueUsageList]:
    """Sum up allocations and waiting jobs by queue and tenant, without other tenants."""
    return get("/queue-usage", QUEUE_USES)


def waiting(queue: str, *, after: str = "", limit: int | None = 25) -> Paged[WaitingOut]:
    """List the waiting jobs of a queue with reasons, in the order of the queue."""
    size = WAITING_PAGE if limit is None else max(1, min(limit, WAITING_PAGE))
    query = {"after": after or None, "limit": size}
    return Paged(get(f"/queues/{part(queue)}/waiting", WAITING, query), "jobs", limit=limit)


def pools() -> Call[PoolList]:
    """List pools."""
    return get("/pools", POOLS)


def pool(name: str) -> Call[PoolOut]:
    """Return a pool."""
    return get(f"/pools/{part(name)}", POOL)


def put_pool(
    name: str, clusters: Sequence[str] = (), description: str = "", *, seen: Seen | None = None
) -> Call[PoolOut]:
    """Create or replace a pool with the clusters for its queues; empty for all. `seen` is as in `put_queue`."""
    return _put(f"/pools/{part(name)}", POOL, {"clusters": list(clusters), "description": description}, seen)


def delete_pool(name: str) -> Call[None]:
    """Remove a pool that no queue uses."""
    return send("DELETE", f"/pools/{part(name)}", Nothing(), repeatable=False)


def tenants() -> Call[TenantList]:
    """List tenants; viewers and users see only their own."""
    return get("/tenants", TENANTS)


def tenant(name: str) -> Call[TenantOut]:
    """Return a tenant."""
    return get(f"/tenants/{part(name)}", TENANT)


def put_tenant(name: str, description: str = "", *, seen: Seen | None = None) -> Call[TenantOut]:
    """Create or replace a tenant; `seen` is as in `put_queue`."""
    return _put(f"/tenants/{part(name)}", TENANT, {"description": description}, seen)


def delete_tenant(name: str) -> Call[None]:
    """Remove a tenant without queues and without unfinished jobs."""
    return send("DELETE", f"/tenants/{part(name)}", Nothing(), repeatable=False)


def shadows(queue: str = "", *, limit: int | None = 100) -> Paged[ShadowOut]:
    """List comparisons of shadow policies with the active ones, newest first."""
    size = PAGE if limit is None else max(1, min(limit, PAGE))
    return Paged(get("/shadows", SHADOWS, {"queue": queue or None, "limit": size}), "shadows", limit=limit)


def _put(path: str, answer: Answer[Shown], fields: Mapping[str, object], seen: Seen | None) -> Call[Shown]:
    call = send("PUT", path, answer, fields, repeatable=seen is None)
    return call if seen is None else replace(call, headers={**call.headers, "If-Match": f'"{seen.version}"'})
