"""Operations of operators and admins: cordons, pools, tenants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Query, Request, Response

from seaway.api.http.bodies import PRECONDITIONS, precondition_of, read, read_reply, tagged_reply
from seaway.api.http.pipeline import caller_of, pipeline_of
from seaway.api.http.queries import Word
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, operation, router
from seaway.application.operations import Operations
from seaway.application.records import Role
from seaway.domain.errors import UnknownError
from seaway.domain.queues import Queue
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import Pool, Tenant
from seaway.wire.fleet import CordonIn, CordonList, CordonOut, cordon_fields
from seaway.wire.message import coded
from seaway.wire.reservations import ReservationIn, ReservationList, ReservationOut, reservation_fields, written
from seaway.wire.tenancy import (
    PoolIn,
    PoolList,
    PoolOut,
    TenantIn,
    TenantList,
    TenantOut,
    TenantStored,
    pool_fields,
    tenant_fields,
)

Made = TypeVar("Made")
Thing = TypeVar("Thing", Queue, Pool, Tenant)

cordons, pools, reservations, tenants = map(router, ("cordons", "pools", "reservations", "tenants"))


@operation(cordons, "GET", "/cordons", Role.VIEWER, {200: CordonList})
async def list_cordons(request: Request) -> Response:
    """List cordons with their reasons."""
    pipeline = pipeline_of(request)
    rows = await pipeline.threads.read(pipeline.plane.store.cordons)
    return json_reply({"cordons": [cordon_fields(row) for row in rows]})


@operation(cordons, "POST", "/cordons", Role.OPERATOR, {201: CordonOut}, errors=(404, 409), body=CordonIn)
async def cordon(request: Request) -> Response:
    """Cordon a cluster or a node; with `drain`, move its running jobs elsewhere."""
    pipeline, given = pipeline_of(request), await read(request, CordonIn)
    made = await pipeline.threads.write(
        pipeline.plane.operations.cordon,
        given.cluster,
        given.node,
        caller_of(request).name,
        given.reason,
        drain=given.drain,
    )
    return json_reply(cordon_fields(made), 201)


@operation(cordons, "DELETE", "/cordons", Role.OPERATOR, {204: None}, errors=(404, 409))
async def uncordon(
    request: Request,
    cluster: Annotated[Word, Query(min_length=1)],
    node: Annotated[Word, Query(description="Name of the node; empty for the whole cluster.")] = "",
) -> Response:
    """Remove a cordon."""
    await act(request, Operations.uncordon, cluster, node)
    return nothing()


@operation(pools, "GET", "/pools", Role.VIEWER, {200: PoolList})
async def list_pools(request: Request) -> Response:
    """List pools."""
    pipeline = pipeline_of(request)
    return json_reply({"pools": [pool_fields(row) for row in await pipeline.threads.read(pipeline.plane.store.pools)]})


@operation(
    pools, "GET", "/pools/{name}", Role.VIEWER, {200: PoolOut, 304: None}, errors=(404,), headers=(IF_NONE_MATCH,)
)
async def get_pool(request: Request, name: str) -> Response:
    """Return a pool."""
    store = pipeline_of(request).plane.store
    return read_reply(request, pool_fields(await named(request, "pool", store.pools, name, lambda _: "")))


@operation(
    pools, "PUT", "/pools/{name}", Role.OPERATOR, {200: PoolOut}, errors=(409, 412), body=PoolIn, headers=PRECONDITIONS
)
async def put_pool(request: Request, name: str) -> Response:
    """Create or change a pool, a set of clusters for queues."""
    given = await read(request, PoolIn)
    meant = precondition_of(request, pool_fields)
    return tagged_reply(pool_fields(await act(request, Operations.put_pool, given.pool(name), meant=meant)))


@operation(pools, "DELETE", "/pools/{name}", Role.OPERATOR, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_pool(request: Request, name: str) -> Response:
    """Remove a pool that no queue uses."""
    await act(request, Operations.delete_pool, name, meant=precondition_of(request, pool_fields))
    return nothing()


@operation(reservations, "GET", "/reservations", Role.VIEWER, {200: ReservationList})
async def list_reservations(request: Request) -> Response:
    """List advance reservations and maintenance; viewers and users see those of other tenants not."""
    pipeline, who = pipeline_of(request), caller_of(request)
    rows = await pipeline.threads.read(pipeline.plane.operations.reservations)
    queues = {each.name: each.tenant for each in await pipeline.threads.read(pipeline.plane.store.queues)}
    owners = ((row, row.reservation.tenant or queues.get(row.reservation.queue, "")) for row in rows)
    seen = (row for row, owner in owners if not owner or who.may_see(owner))
    return json_reply({"reservations": [reservation_fields(row) for row in seen]})


@operation(
    reservations,
    "PUT",
    "/reservations/{name}",
    Role.OPERATOR,
    {200: ReservationOut},
    errors=(404, 409, 412),
    body=ReservationIn,
    headers=PRECONDITIONS,
)
async def put_reservation(request: Request, name: str) -> Response:
    """Reserve capacity for a tenant or queue at a later time, or plan maintenance."""
    given = (await read(request, ReservationIn)).reservation(name)
    made = await act(request, Operations.put_reservation, given, meant=precondition_of(request, written))
    return tagged_reply(reservation_fields(made))


@operation(
    reservations, "DELETE", "/reservations/{name}", Role.OPERATOR, {204: None}, errors=(404, 412), headers=(IF_MATCH,)
)
async def delete_reservation(request: Request, name: str) -> Response:
    """Remove an advance reservation, or end maintenance."""
    await act(request, Operations.delete_reservation, name, meant=precondition_of(request, written))
    return nothing()


@operation(tenants, "GET", "/tenants", Role.VIEWER, {200: TenantList})
async def list_tenants(request: Request) -> Response:
    """List tenants; viewers and users see only their own."""
    pipeline, who = pipeline_of(request), caller_of(request)
    rows = await pipeline.threads.read(pipeline.plane.store.tenants)
    return json_reply({"tenants": [tenant_fields(row) for row in rows if who.may_see(row.name)]})


@operation(
    tenants, "GET", "/tenants/{name}", Role.VIEWER, {200: TenantOut, 304: None}, errors=(404,), headers=(IF_NONE_MATCH,)
)
async def get_tenant(request: Request, name: str) -> Response:
    """Return a tenant."""
    store = pipeline_of(request).plane.store
    return read_reply(request, tenant_fields(await named(request, "tenant", store.tenants, name, lambda row: row.name)))


@operation(
    tenants,
    "PUT",
    "/tenants/{name}",
    Role.ADMIN,
    {200: TenantStored},
    errors=(409, 412),
    body=TenantIn,
    headers=PRECONDITIONS,
)
async def put_tenant(request: Request, name: str) -> Response:
    """Create or change a tenant.

    `warnings` name models of no GPU, limits below the use, and guarantees beyond the pool.
    """
    given, pipeline = await read(request, TenantIn), pipeline_of(request)
    meant = precondition_of(request, tenant_fields)
    tenant = await act(request, Operations.put_tenant, given.tenant(name), meant=meant)
    found = await pipeline.threads.read(pipeline.plane.quota_warnings.of_tenant, tenant)
    return tagged_reply(tenant_fields(tenant) | ({"warnings": [coded(each) for each in found]} if found else {}))


@operation(tenants, "DELETE", "/tenants/{name}", Role.ADMIN, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_tenant(request: Request, name: str) -> Response:
    """Remove a tenant without queues and unfinished jobs."""
    await act(request, Operations.delete_tenant, name, meant=precondition_of(request, tenant_fields))
    return nothing()


async def act(request: Request, do: Callable[..., Made], *given: object, **more: object) -> Made:
    """Run an action of `Operations` in the caller's name."""
    pipeline = pipeline_of(request)
    return await pipeline.threads.write(do, pipeline.plane.operations, *given, caller_of(request).name, **more)


async def named(
    request: Request, kind: str, ask: Callable[[], list[Thing]], name: str, tenant_of: Callable[[Thing], str]
) -> Thing:
    """Return the object with a name.

    Raises
    ------
    UnknownError
        If it does not exist, or its tenant is not visible to the caller.
    """
    who = caller_of(request)
    for row in await pipeline_of(request).threads.read(ask):
        if row.name == name and who.may_see(tenant_of(row)):
            return row
    raise UnknownError(Reason("not_found", kind=kind, name=name[:63]))
