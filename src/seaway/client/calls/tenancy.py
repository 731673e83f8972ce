"""Calls about queues, pools, tenants, policies and their shadows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

from seaway.client.call import Answer, Call, Model, Nothing, get, part, send

if TYPE_CHECKING:
    from seaway.wire.tenancy import (
        PolicyList,
        PoolList,
        PoolOut,
        QueueList,
        QueueOut,
        ShadowList,
        TenantList,
        TenantOut,
    )

_WIRE = "seaway.wire.tenancy"

QUEUE: Answer[QueueOut] = Model(_WIRE, "QueueOut")
QUEUES: Answer[QueueList] = Model(_WIRE, "QueueList")
POOL: Answer[PoolOut] = Model(_WIRE, "PoolOut")
POOLS: Answer[PoolList] = Model(_WIRE, "PoolList")
TENANT: Answer[TenantOut] = Model(_WIRE, "TenantOut")
TENANTS: Answer[TenantList] = Model(_WIRE, "TenantList")
POLICIES: Answer[PolicyList] = Model(_WIRE, "PolicyList")
SHADOWS: Answer[ShadowList] = Model(_WIRE, "ShadowList")


class QueueFields(TypedDict, total=False):
    """A queue as keyword arguments; every one is described at `seaway.wire.tenancy.QueueIn`."""

    tenant: str
    pool: str
    policy: str
    shadow: str
    open: bool
    description: str


def queues() -> Call[QueueList]:
    """List queues; other tenants' own are left out."""
    return get("/queues", QUEUES)


def queue(name: str) -> Call[QueueOut]:
    """Look a queue up."""
    return get(f"/queues/{part(name)}", QUEUE)


def put_queue(name: str, **given: Unpack[QueueFields]) -> Call[QueueOut]:
    """Make a queue, or set one anew: what is left out is as it is by default."""
    return send("PUT", f"/queues/{part(name)}", QUEUE, given)


def delete_queue(name: str) -> Call[None]:
    """Remove a queue in which no job waits or runs."""
    return send("DELETE", f"/queues/{part(name)}", Nothing(), repeatable=False)


def pools() -> Call[PoolList]:
    """List pools."""
    return get("/pools", POOLS)


def put_pool(name: str, clusters: Sequence[str] = (), description: str = "") -> Call[PoolOut]:
    """Make or change a pool: which clusters its queues may use; none stands for all."""
    return send("PUT", f"/pools/{part(name)}", POOL, {"clusters": list(clusters), "description": description})


def delete_pool(name: str) -> Call[None]:
    """Remove a pool that no queue uses."""
    return send("DELETE", f"/pools/{part(name)}", Nothing(), repeatable=False)


def tenants() -> Call[TenantList]:
    """List tenants; of viewers and users, their own."""
    return get("/tenants", TENANTS)


def put_tenant(name: str, description: str = "") -> Call[TenantOut]:
    """Make or change a tenant."""
    return send("PUT", f"/tenants/{part(name)}", TENANT, {"description": description})


def delete_tenant(name: str) -> Call[None]:
    """Remove a tenant without queues and without jobs that are not over."""
    return send("DELETE", f"/tenants/{part(name)}", Nothing(), repeatable=False)


def policies() -> Call[PolicyList]:
    """List the policies that queues may have."""
    return get("/policies", POLICIES)


def shadows(queue: str = "", *, limit: int = 100) -> Call[ShadowList]:
    """List how challengers decided where the live policies decided, new to old."""
    return get("/shadows", SHADOWS, {"queue": queue or None, "limit": limit})
