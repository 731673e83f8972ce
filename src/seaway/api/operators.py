"""What operators and admins do: cordons, queues, pools, tenants."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from seaway.api.bodies import read
from seaway.api.desk import desk_of, who_of
from seaway.api.job_query import Word
from seaway.api.replies import json_reply, nothing
from seaway.api.routes import operation, router
from seaway.application.ports.store import MOST_ROWS
from seaway.application.records import Role
from seaway.domain.errors import UnknownError
from seaway.wire.fleet import CordonIn, CordonList, CordonOut, cordon_fields
from seaway.wire.tenancy import (
    PolicyList,
    PoolIn,
    PoolList,
    PoolOut,
    QueueIn,
    QueueList,
    QueueOut,
    ShadowList,
    TenantIn,
    TenantList,
    TenantOut,
    policy_fields,
    pool_fields,
    queue_fields,
    shadow_fields,
    tenant_fields,
)

cordons, queues, pools, tenants, policies = map(router, ("cordons", "queues", "pools", "tenants", "policies"))


@operation(cordons, "GET", "/cordons", Role.VIEWER, {200: CordonList})
async def list_cordons(request: Request) -> Response:
    """List what takes no new work, and why."""
    desk = desk_of(request)
    rows = await desk.threads.read(desk.plane.store.cordons)
    return json_reply({"cordons": [cordon_fields(row) for row in rows]})


@operation(cordons, "POST", "/cordons", Role.OPERATOR, {201: CordonOut}, errors=(404, 409), body=CordonIn)
async def cordon(request: Request) -> Response:
    """Keep new work away from a cluster or a node; with `drain`, move away what runs there."""
    desk, given = desk_of(request), await read(request, CordonIn)
    made = await desk.threads.write(
        desk.plane.operations.cordon,
        given.cluster,
        given.node,
        who_of(request).name,
        given.reason,
        drain=given.drain,
    )
    return json_reply(cordon_fields(made), 201)


@operation(cordons, "DELETE", "/cordons", Role.OPERATOR, {204: None}, errors=(404, 409))
async def uncordon(
    request: Request,
    cluster: Annotated[Word, Query(min_length=1)],
    node: Annotated[Word, Query(description="Empty for the whole cluster.")] = "",
) -> Response:
    """Let new work come again."""
    desk = desk_of(request)
    await desk.threads.write(desk.plane.operations.uncordon, cluster, node, who_of(request).name)
    return nothing()


@operation(queues, "GET", "/queues", Role.VIEWER, {200: QueueList})
async def list_queues(request: Request) -> Response:
    """List queues; other tenants' own are left out."""
    desk, who = desk_of(request), who_of(request)
    rows = await desk.threads.read(desk.plane.store.queues)
    return json_reply({"queues": [queue_fields(row) for row in rows if who.may_see(row.tenant)]})


@operation(queues, "GET", "/queues/{name}", Role.VIEWER, {200: QueueOut}, errors=(404,))
async def get_queue(request: Request, name: str) -> Response:
    """Look a queue up."""
    desk, who = desk_of(request), who_of(request)
    for row in await desk.threads.read(desk.plane.store.queues):
        if row.name == name and who.may_see(row.tenant):
            return json_reply(queue_fields(row))
    raise UnknownError(f"there is no queue {name[:63]!r}")


@operation(queues, "PUT", "/queues/{name}", Role.OPERATOR, {200: QueueOut}, errors=(409,), body=QueueIn)
async def put_queue(request: Request, name: str) -> Response:
    """Make or change a queue: whose jobs it takes, on which pool, by which policy."""
    desk, given = desk_of(request), await read(request, QueueIn)
    made = await desk.threads.write(desk.plane.operations.put_queue, given.queue(name), who_of(request).name)
    return json_reply(queue_fields(made))


@operation(queues, "DELETE", "/queues/{name}", Role.OPERATOR, {204: None}, errors=(404, 409))
async def delete_queue(request: Request, name: str) -> Response:
    """Remove a queue in which no job waits or runs."""
    desk = desk_of(request)
    await desk.threads.write(desk.plane.operations.delete_queue, name, who_of(request).name)
    return nothing()


@operation(pools, "GET", "/pools", Role.VIEWER, {200: PoolList})
async def list_pools(request: Request) -> Response:
    """List pools."""
    desk = desk_of(request)
    return json_reply({"pools": [pool_fields(row) for row in await desk.threads.read(desk.plane.store.pools)]})


@operation(pools, "GET", "/pools/{name}", Role.VIEWER, {200: PoolOut}, errors=(404,))
async def get_pool(request: Request, name: str) -> Response:
    """Look a pool up."""
    desk = desk_of(request)
    for row in await desk.threads.read(desk.plane.store.pools):
        if row.name == name:
            return json_reply(pool_fields(row))
    raise UnknownError(f"there is no pool {name[:63]!r}")


@operation(pools, "PUT", "/pools/{name}", Role.OPERATOR, {200: PoolOut}, errors=(409,), body=PoolIn)
async def put_pool(request: Request, name: str) -> Response:
    """Make or change a pool: which clusters its queues may use."""
    desk, given = desk_of(request), await read(request, PoolIn)
    made = await desk.threads.write(desk.plane.operations.put_pool, given.pool(name), who_of(request).name)
    return json_reply(pool_fields(made))


@operation(pools, "DELETE", "/pools/{name}", Role.OPERATOR, {204: None}, errors=(404, 409))
async def delete_pool(request: Request, name: str) -> Response:
    """Remove a pool that no queue uses."""
    desk = desk_of(request)
    await desk.threads.write(desk.plane.operations.delete_pool, name, who_of(request).name)
    return nothing()


@operation(tenants, "GET", "/tenants", Role.VIEWER, {200: TenantList})
async def list_tenants(request: Request) -> Response:
    """List tenants; of viewers and users, their own."""
    desk, who = desk_of(request), who_of(request)
    rows = await desk.threads.read(desk.plane.store.tenants)
    return json_reply({"tenants": [tenant_fields(row) for row in rows if who.may_see(row.name)]})


@operation(tenants, "GET", "/tenants/{name}", Role.VIEWER, {200: TenantOut}, errors=(404,))
async def get_tenant(request: Request, name: str) -> Response:
    """Look a tenant up."""
    desk, who = desk_of(request), who_of(request)
    for row in await desk.threads.read(desk.plane.store.tenants):
        if row.name == name and who.may_see(name):
            return json_reply(tenant_fields(row))
    raise UnknownError(f"there is no tenant {name[:63]!r}")


@operation(tenants, "PUT", "/tenants/{name}", Role.ADMIN, {200: TenantOut}, errors=(409,), body=TenantIn)
async def put_tenant(request: Request, name: str) -> Response:
    """Make or change a tenant."""
    desk, given = desk_of(request), await read(request, TenantIn)
    made = await desk.threads.write(desk.plane.operations.put_tenant, given.tenant(name), who_of(request).name)
    return json_reply(tenant_fields(made))


@operation(tenants, "DELETE", "/tenants/{name}", Role.ADMIN, {204: None}, errors=(404, 409))
async def delete_tenant(request: Request, name: str) -> Response:
    """Remove a tenant without queues and without jobs that are not over."""
    desk = desk_of(request)
    await desk.threads.write(desk.plane.operations.delete_tenant, name, who_of(request).name)
    return nothing()


@operation(policies, "GET", "/policies", Role.VIEWER, {200: PolicyList})
async def list_policies(request: Request) -> Response:
    """List the policies that queues may have. Try one on a job with a dry run in a queue that has it."""
    desk, who = desk_of(request), who_of(request)
    seen = {row.name for row in await desk.threads.read(desk.plane.store.queues) if who.may_see(row.tenant)}
    return json_reply({"policies": [policy_fields(each, seen) for each in desk.plane.overview.policies()]})


@operation(policies, "GET", "/shadows", Role.OPERATOR, {200: ShadowList})
async def list_shadows(
    request: Request, queue: Word = "", limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 100
) -> Response:
    """List how challengers decided where the live policies decided, new to old."""
    desk = desk_of(request)
    rows = await desk.threads.read(desk.plane.store.shadows, queue, limit)
    return json_reply({"shadows": [shadow_fields(row) for row in rows]})
