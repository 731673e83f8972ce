"""Operations on notifications, which are messages about jobs, and on dead letters."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query, Request, Response

from seaway.api.http.bodies import PRECONDITIONS, precondition_of, read, read_reply, tagged_reply
from seaway.api.http.pipeline import caller_of, pipeline_of
from seaway.api.http.queries import After, Word, page_after, page_token, tenant_asked
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, operation, router
from seaway.application.ports.store import MAX_ROWS
from seaway.application.records import Role
from seaway.domain.notifications import DeliveryState
from seaway.wire.notifications import (
    DeliveryPage,
    DeliveryTotal,
    NotificationIn,
    NotificationList,
    NotificationOut,
    NotificationStored,
    ResendIn,
    TrialOut,
    delivery_fields,
    notification_fields,
    result_fields,
    written,
)

routes = router("notifications")

TenantQuery = Annotated[
    Word, Query(description="Tenant of the notification. Default: your own; for operators that of all tenants.")
]


@operation(routes, "GET", "/notifications", Role.USER, {200: NotificationList}, errors=(404,))
async def list_notifications(
    request: Request, tenant: Annotated[Word, Query(description="Filter by tenant.")] = ""
) -> Response:
    """List notifications with their numbers of undelivered messages. A user sees those of its tenant."""
    pipeline = pipeline_of(request)
    asked = tenant_asked(caller_of(request), tenant)
    rows = await pipeline.threads.read(pipeline.plane.notifications.views, asked or None)
    return json_reply({"notifications": [notification_fields(row) for row in rows]})


@operation(
    routes,
    "GET",
    "/notifications/{name}",
    Role.USER,
    {200: NotificationOut, 304: None},
    errors=(404,),
    headers=(IF_NONE_MATCH,),
)
async def get_notification(request: Request, name: str, tenant: TenantQuery = "") -> Response:
    """Return a notification."""
    pipeline = pipeline_of(request)
    asked = tenant_asked(caller_of(request), tenant)
    view = await pipeline.threads.read(pipeline.plane.notifications.view, asked, name)
    return read_reply(request, notification_fields(view))


@operation(
    routes,
    "PUT",
    "/notifications/{name}",
    Role.USER,
    {200: NotificationStored},
    errors=(404, 409, 412),
    body=NotificationIn,
    headers=PRECONDITIONS,
)
async def put_notification(request: Request, name: str, tenant: TenantQuery = "") -> Response:
    """Create or replace a notification.

    A webhook gets a secret for its signatures, which only this response contains. A later request with an empty
    `secret` retains it.
    """
    pipeline, given = pipeline_of(request), await read(request, NotificationIn)
    who = caller_of(request)
    row = given.notification(tenant_asked(who, tenant), name)
    meant = precondition_of(request, written)
    view, secret = await pipeline.threads.write(pipeline.plane.notifications.put, row, given.secret, who.name, meant)
    reply = tagged_reply({**notification_fields(view), "secret": secret})
    reply.headers["cache-control"] = "no-store"
    return reply


@operation(routes, "DELETE", "/notifications/{name}", Role.USER, {204: None}, errors=(404, 412), headers=(IF_MATCH,))
async def delete_notification(request: Request, name: str, tenant: TenantQuery = "") -> Response:
    """Remove a notification with its undelivered messages."""
    pipeline = pipeline_of(request)
    asked = tenant_asked(caller_of(request), tenant)
    await pipeline.threads.write(pipeline.plane.notifications.delete, asked, name, precondition_of(request, written))
    return nothing()


@operation(routes, "POST", "/notifications/{name}/test", Role.USER, {200: TrialOut}, errors=(404, 409))
async def try_notification(request: Request, name: str, tenant: TenantQuery = "") -> Response:
    """Send a test message, and return whether its receiver accepted it."""
    pipeline = pipeline_of(request)
    asked = tenant_asked(caller_of(request), tenant)
    pending = await pipeline.threads.read(pipeline.plane.notifications.test, asked, name)
    return json_reply(result_fields(await asyncio.wrap_future(pending)))


@operation(routes, "GET", "/notifications/{name}/deliveries", Role.USER, {200: DeliveryPage}, errors=(404,))
async def list_deliveries(  # one parameter for each filter
    request: Request,
    name: str,
    tenant: TenantQuery = "",
    state: Annotated[DeliveryState | None, Query(description="Filter by state.")] = None,
    after: After = "",
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
) -> Response:
    """List messages of a notification, newest first: waiting ones, dead letters, and the latest delivered ones.

    Those in state `dead` are not tried again.
    """
    return await _deliveries(request, tenant_asked(caller_of(request), tenant), name, state, after, limit)


async def _deliveries(  # one parameter for each filter
    request: Request, tenant: str | None, name: str, state: DeliveryState | None, after: str, limit: int
) -> Response:
    pipeline = pipeline_of(request)
    rows = await pipeline.threads.read(
        pipeline.plane.notifications.deliveries, tenant, name, state, limit, page_after(after)
    )
    following = page_token(rows[-1].id) if len(rows) == limit else None
    return json_reply({"deliveries": [delivery_fields(row) for row in rows], "next": following})


@operation(routes, "GET", "/deliveries", Role.USER, {200: DeliveryPage}, errors=(404,))
async def list_all_deliveries(
    request: Request,
    tenant: Annotated[Word, Query(description="Filter by tenant.")] = "",
    state: Annotated[DeliveryState | None, Query(description="Filter by state.")] = None,
    after: After = "",
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
) -> Response:
    """List messages of all notifications, newest first. A user sees those of its tenant."""
    asked = tenant_asked(caller_of(request), tenant)
    return await _deliveries(request, asked or None, "", state, after, limit)


@operation(
    routes, "POST", "/notifications/{name}/resend", Role.USER, {200: DeliveryTotal}, errors=(404,), body=ResendIn
)
async def resend(request: Request, name: str, tenant: TenantQuery = "") -> Response:
    """Send dead letters again."""
    pipeline, given = pipeline_of(request), await read(request, ResendIn)
    asked = tenant_asked(caller_of(request), tenant)
    count = await pipeline.threads.write(pipeline.plane.notifications.resend, asked, name, given.ids)
    return json_reply({"count": count})


@operation(routes, "DELETE", "/notifications/{name}/deliveries", Role.USER, {200: DeliveryTotal}, errors=(404,))
async def drop_deliveries(request: Request, name: str, tenant: TenantQuery = "") -> Response:
    """Remove the dead letters of a notification."""
    pipeline = pipeline_of(request)
    asked = tenant_asked(caller_of(request), tenant)
    return json_reply({"count": await pipeline.threads.write(pipeline.plane.notifications.drop, asked, name)})
