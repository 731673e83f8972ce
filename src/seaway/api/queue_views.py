"""What queues hold, and what waits in them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response

from seaway.api.desk import desk_of, who_of
from seaway.api.finding import After, number_after, page_token
from seaway.api.replies import json_reply
from seaway.api.routes import operation, router
from seaway.application.records import Role
from seaway.domain.errors import UnknownError
from seaway.wire.queue_views import QueueUseList, WaitingPage, use_fields, waiting_fields

MOST_EXPLAINED = 100
"""Jobs on a page: each is explained."""

routes = router("queues")


@operation(routes, "GET", "/queue-uses", Role.VIEWER, {200: QueueUseList})
async def list_queue_uses(request: Request) -> Response:
    """Sum up what jobs hold and how many wait, by queue and tenant; other tenants' are left out."""
    desk, who = desk_of(request), who_of(request)
    rows = await desk.threads.read(desk.plane.overview.queue_uses)
    return json_reply({"uses": [use_fields(row) for row in rows if who.may_see(row.tenant)]})


@operation(routes, "GET", "/queues/{name}/waiting", Role.VIEWER, {200: WaitingPage}, errors=(404,))
async def list_waiting(
    request: Request, name: str, after: After = "", limit: Annotated[int, Query(ge=1, le=MOST_EXPLAINED)] = 25
) -> Response:
    """List the jobs that wait in a queue, and why, first in line first.

    Tenants take turns, and others' jobs are left out.
    """
    desk, who = desk_of(request), who_of(request)
    queues = await desk.threads.read(desk.plane.store.queues)
    if not any(row.name == name and who.may_see(row.tenant) for row in queues):
        raise UnknownError(f"there is no queue {name[:63]!r}")
    first, overview = number_after(after), desk.plane.overview

    def page() -> dict[str, Any]:
        rows = overview.waiting(name, who.tenant)
        return {
            "jobs": [waiting_fields(row, overview.reason(row.job)) for row in rows[first : first + limit]],
            "total": len(rows),
            "next": page_token(str(first + limit)) if first + limit < len(rows) else None,
        }

    return json_reply(await desk.threads.read(page))
