"""Calls about pools, tenants and advance reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Required, TypedDict, TypeVar, Unpack

from seaway.client.call import Answer, Call, Model, Nothing, get, part, send

if TYPE_CHECKING:
    from seaway.wire.reservations import ReservationList, ReservationOut
    from seaway.wire.tenancy import PoolList, PoolOut, TenantList, TenantOut, TenantStored

_WIRE = "seaway.wire.tenancy"

POOL: Answer[PoolOut] = Model(_WIRE, "PoolOut")
POOLS: Answer[PoolList] = Model(_WIRE, "PoolList")
RESERVATION: Answer[ReservationOut] = Model("seaway.wire.reservations", "ReservationOut")
RESERVATIONS: Answer[ReservationList] = Model("seaway.wire.reservations", "ReservationList")
TENANT: Answer[TenantOut] = Model(_WIRE, "TenantOut")
TENANT_STORED: Answer[TenantStored] = Model(_WIRE, "TenantStored")
TENANTS: Answer[TenantList] = Model(_WIRE, "TenantList")

Shown = TypeVar("Shown")


class Seen(Protocol):
    """A queue, pool or tenant as it was read."""

    @property
    def version(self) -> str:
        """Version of the object."""


def pools() -> Call[PoolList]:
    """List pools."""
    return get("/pools", POOLS)


def pool(name: str) -> Call[PoolOut]:
    """Return a pool."""
    return get(f"/pools/{part(name)}", POOL)


def put_pool(
    name: str, clusters: Sequence[str] = (), description: str = "", *, seen: Seen | None = None
) -> Call[PoolOut]:
    """Create or replace a pool with the clusters for its queues; empty for all. `seen` is as in `queues.put_queue`."""
    return put(f"/pools/{part(name)}", POOL, {"clusters": list(clusters), "description": description}, seen)


def delete_pool(name: str) -> Call[None]:
    """Remove a pool that no queue uses."""
    return send("DELETE", f"/pools/{part(name)}", Nothing(), repeatable=False)


def reservations() -> Call[ReservationList]:
    """List advance reservations and maintenance."""
    return get("/reservations", RESERVATIONS)


class ReservationFields(TypedDict, total=False):
    """Fields of a reservation, as in `ReservationIn`."""

    starts: Required[str]
    ends: Required[str]
    tenant: str
    queue: str
    gpus: int
    gpu_model: str
    clusters: Sequence[str]
    nodes: Sequence[str]
    drain: bool
    description: str


def put_reservation(name: str, *, seen: Seen | None = None, **given: Unpack[ReservationFields]) -> Call[ReservationOut]:
    """Reserve capacity for a tenant or queue between two times; without both, for maintenance.

    Times have a zone, such as ``2026-11-28T14:00:00Z``. Without `gpus`, all of `clusters` or `nodes` is reserved.
    """
    return put(f"/reservations/{part(name)}", RESERVATION, given, seen)


def create_reservation(name: str, **given: Unpack[ReservationFields]) -> Call[ReservationOut]:
    """Reserve capacity as `put_reservation` does; raises `StaleError` if a reservation has the name already."""
    call = put_reservation(name, **given)
    return replace(call, headers={**call.headers, "If-None-Match": "*"}, repeatable=False)


def delete_reservation(name: str) -> Call[None]:
    """Remove an advance reservation, or end maintenance."""
    return send("DELETE", f"/reservations/{part(name)}", Nothing(), repeatable=False)


def tenants() -> Call[TenantList]:
    """List tenants; viewers and users see only their own."""
    return get("/tenants", TENANTS)


def tenant(name: str) -> Call[TenantOut]:
    """Return a tenant."""
    return get(f"/tenants/{part(name)}", TENANT)


def put_tenant(
    name: str,
    description: str = "",
    *,
    weight: int = 1,
    quotas: Mapping[str, Mapping[str, object]] | None = None,
    secrets: Sequence[str] = (),
    seen: Seen | None = None,
) -> Call[TenantStored]:
    """Create or replace a tenant; `seen` is as in `queues.put_queue`.

    Parameters
    ----------
    quotas
        Quotas by pool, such as ``{"default": {"limit": {"gpus": 16, "jobs": 100}, "max_waiting": 500}}``.
    secrets
        Secrets of its namespace that its jobs may use.
    """
    fields = {"description": description, "weight": weight, "quotas": quotas or {}, "secrets": list(secrets)}
    return put(f"/tenants/{part(name)}", TENANT_STORED, fields, seen)


def delete_tenant(name: str) -> Call[None]:
    """Remove a tenant without queues and without unfinished jobs."""
    return send("DELETE", f"/tenants/{part(name)}", Nothing(), repeatable=False)


def put(path: str, answer: Answer[Shown], fields: Mapping[str, object], seen: Seen | None) -> Call[Shown]:
    """Return the call that stores an object, if it has the version that was read."""
    call = send("PUT", path, answer, fields, repeatable=seen is None)
    return call if seen is None else replace(call, headers={**call.headers, "If-Match": f'"{seen.version}"'})
