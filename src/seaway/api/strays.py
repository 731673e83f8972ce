"""Strays: copies in clusters that no job known to Seaway accounts for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from seaway.api.desk import desk_of, who_of
from seaway.api.job_query import Word
from seaway.api.replies import json_reply
from seaway.api.routes import operation, router
from seaway.application.records import Role
from seaway.wire.strays import StrayList, StraysRemoved, stray_fields

routes = router("fleet")


@operation(routes, "GET", "/fleet/strays", Role.OPERATOR, {200: StrayList})
async def list_strays(
    request: Request, cluster: Annotated[Word, Query(description="Only in this cluster.")] = ""
) -> Response:
    """List copies that no job accounts for, as after an older backup was restored, with what they hold."""
    desk = desk_of(request)
    found = await desk.threads.read(desk.plane.operations.strays, cluster)
    return json_reply({"strays": [stray_fields(each) for each in found]})


@operation(routes, "DELETE", "/fleet/clusters/{cluster}/strays", Role.OPERATOR, {202: StraysRemoved}, errors=(404, 409))
async def remove_strays(
    request: Request,
    cluster: str,
    name: Annotated[Word, Query(description="Only the one of this name; else all of the cluster.")] = "",
) -> Response:
    """Have a cluster remove copies that no job accounts for; be sure that they are nobody else's."""
    desk = desk_of(request)
    removed = await desk.threads.write(desk.plane.operations.remove_strays, cluster, who_of(request).name, name)
    return json_reply({"removed": removed}, 202)
