"""Operations of operators and admins: cordons, queues, pools, tenants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request, Response

from seaway.api.http.bodies import PRECONDITIONS, precondition_of, read, read_reply, tagged_reply
from seaway.api.http.pipeline import caller_of, pipeline_of
from seaway.api.http.queries import After, Word, number_after, page_token
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, operation, router
from seaway.application.operations import Operations
from seaway.application.ports.store import MAX_ROWS
from seaway.application.records import Role
from seaway.domain.errors import UnknownError
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Pool, Tenant
from seaway.wire.fleet import CordonIn, CordonList, CordonOut, cordon_fields
from seaway.wire.tenancy import (
    PoolIn,
    PoolList,
    PoolOut,
    QueueIn,
    QueueList,
    QueueOut,
    QueueUsageList,
    ShadowList,
    TenantIn,
    TenantList,
    TenantOut,
    WaitingPage,
    pool_fields,
    queue_fields,
    shadow_fields,
    tenant_fields,
    use_fields,
    waiting_fields,
)

Made = TypeVar("Made")
Thing = TypeVar("Thing", Queue, Pool, Tenant)

cordons, queues, pools, tenants, shadows = map(router, ("cordons", "queues", "pools", "tenants", "policies"))


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
    await _do(request, Operations.uncordon, cluster, node)
    return nothing()


@operation(queues, "GET", "/queues", Role.VIEWER, {200: QueueList})
async def list_queues(request: Request) -> Response:
    """List queues, without those of other tenants."""
    pipeline, who = pipeline_of(request), caller_of(request)
    rows = await pipeline.threads.read(pipeline.plane.store.queues)
    return json_reply({"queues": [queue_fields(row) for row in rows if who.may_see(row.tenant)]})


@operation(
    queues, "GET", "/queues/{name}", Role.VIEWER, {200: QueueOut, 304: None}, errors=(404,), headers=(IF_NONE_MATCH,)
)
async def get_queue(request: Request, name: str) -> Response:
    """Return a queue."""
    store = pipeline_of(request).plane.store
    return read_reply(request, queue_fields(await _named(request, "queue", store.queues, name, lambda row: row.tenant)))


@operation(
    queues,
    "PUT",
    "/queues/{name}",
    Role.OPERATOR,
    {200: QueueOut},
    errors=(409, 412),
    body=QueueIn,
    headers=PRECONDITIONS,
)
async def put_queue(request: Request, name: str) -> Response:
    """Create or change a queue: its tenant, its pool and its policy."""
    given = await read(request, QueueIn)
    meant = precondition_of(request, queue_fields)
    return tagged_reply(queue_fields(await _do(request, Operations.put_queue, given.queue(name), meant=meant)))


@operation(queues, "DELETE", "/queues/{name}", Role.OPERATOR, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_queue(request: Request, name: str) -> Response:
    """Remove a queue without waiting and running jobs."""
    await _do(request, Operations.delete_queue, name, meant=precondition_of(request, queue_fields))
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
    return read_reply(request, pool_fields(await _named(request, "pool", store.pools, name, lambda _: "")))


@operation(
    pools, "PUT", "/pools/{name}", Role.OPERATOR, {200: PoolOut}, errors=(409, 412), body=PoolIn, headers=PRECONDITIONS
)
async def put_pool(request: Request, name: str) -> Response:
    """Create or change a pool, a set of clusters for queues."""
    given = await read(request, PoolIn)
    meant = precondition_of(request, pool_fields)
    return tagged_reply(pool_fields(await _do(request, Operations.put_pool, given.pool(name), meant=meant)))


@operation(pools, "DELETE", "/pools/{name}", Role.OPERATOR, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_pool(request: Request, name: str) -> Response:
    """Remove a pool that no queue uses."""
    await _do(request, Operations.delete_pool, name, meant=precondition_of(request, pool_fields))
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
    return read_reply(
        request, tenant_fields(await _named(request, "tenant", store.tenants, name, lambda row: row.name))
    )


@operation(
    tenants,
    "PUT",
    "/tenants/{name}",
    Role.ADMIN,
    {200: TenantOut},
    errors=(409, 412),
    body=TenantIn,
    headers=PRECONDITIONS,
)
async def put_tenant(request: Request, name: str) -> Response:
    """Create or change a tenant."""
    given = await read(request, TenantIn)
    meant = precondition_of(request, tenant_fields)
    return tagged_reply(tenant_fields(await _do(request, Operations.put_tenant, given.tenant(name), meant=meant)))


@operation(tenants, "DELETE", "/tenants/{name}", Role.ADMIN, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_tenant(request: Request, name: str) -> Response:
    """Remove a tenant without queues and unfinished jobs."""
    await _do(request, Operations.delete_tenant, name, meant=precondition_of(request, tenant_fields))
    return nothing()


@operation(shadows, "GET", "/shadows", Role.OPERATOR, {200: ShadowList})
async def list_shadows(
    request: Request, queue: Word = "", after: After = "", limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100
) -> Response:
    """List comparisons of shadow policies with live policies, newest first."""
    pipeline = pipeline_of(request)
    rows = await pipeline.threads.read(pipeline.plane.store.shadows, queue, limit, number_after(after))
    following = page_token(str(rows[-1].id)) if len(rows) == limit else None
    return json_reply({"shadows": [shadow_fields(row) for row in rows], "next": following})


async def _do(request: Request, act: Callable[..., Made], *given: object, **more: object) -> Made:
    """Run an action of `Operations` in the caller's name."""
    pipeline = pipeline_of(request)
    return await pipeline.threads.write(act, pipeline.plane.operations, *given, caller_of(request).name, **more)


async def _named(
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
    raise UnknownError(f"{kind} {name[:63]!r} not found")


MAX_EXPLAINED = 100
"""Maximum number of jobs on a page, each with an explanation."""

contents = router("queues")


@operation(contents, "GET", "/queue-usage", Role.VIEWER, {200: QueueUsageList})
async def list_queue_usage(request: Request) -> Response:
    """List allocations and waiting jobs by queue and tenant, without those of other tenants."""
    pipeline, who = pipeline_of(request), caller_of(request)
    rows = await pipeline.threads.read(pipeline.plane.overview.queue_usage)
    return json_reply({"uses": [use_fields(row) for row in rows if who.may_see(row.tenant)]})


@operation(contents, "GET", "/queues/{name}/waiting", Role.VIEWER, {200: WaitingPage}, errors=(404,))
async def list_waiting(
    request: Request, name: str, after: After = "", limit: Annotated[int, Query(ge=1, le=MAX_EXPLAINED)] = 25
) -> Response:
    """List the waiting jobs of a queue in scheduling order, with the reasons.

    Tenants alternate. Jobs of other tenants are omitted.
    """
    pipeline, who = pipeline_of(request), caller_of(request)
    queues = await pipeline.threads.read(pipeline.plane.store.queues)
    if not any(row.name == name and who.may_see(row.tenant) for row in queues):
        raise UnknownError(f"queue {name[:63]!r} not found")
    first, overview = number_after(after), pipeline.plane.overview

    def page() -> dict[str, Any]:
        rows = overview.waiting(name, who.tenant)
        return {
            "jobs": [waiting_fields(row, overview.reason(row.job)) for row in rows[first : first + limit]],
            "total": len(rows),
            "next": page_token(str(first + limit)) if first + limit < len(rows) else None,
        }

    return json_reply(await pipeline.threads.read(page))
