"""Operations for what-if questions, and for the moves of their answers."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from seaway.api.http.bodies import read, read_aside
from seaway.api.http.pipeline import TARGET, caller_of, pipeline_of
from seaway.api.http.replies import json_reply
from seaway.api.http.routes import operation, router
from seaway.application.records import Role
from seaway.domain.tenancy import DEFAULT
from seaway.wire.whatif import MovesIn, MovesOut, WhatIfIn, WhatIfOut, consequences_fields

routes = router("fleet")


@operation(routes, "POST", "/whatif", Role.OPERATOR, {200: WhatIfOut}, body=WhatIfIn)
async def what_if(request: Request) -> Response:
    """Answer a what-if question on a copy of the live fleet, which does not change."""
    pipeline, given = pipeline_of(request), await read_aside(request, WhatIfIn)

    def ask() -> dict[str, Any]:
        return consequences_fields(pipeline.plane.whatif.ask(given.question.question(DEFAULT)))

    return json_reply(await pipeline.threads.heavy(ask))


@operation(routes, "POST", "/moves", Role.OPERATOR, {200: MovesOut}, errors=(404, 412), body=MovesIn)
async def move_jobs(request: Request) -> Response:
    """Restart running jobs on the nodes of a what-if answer, all or none, and drain clusters and nodes.

    The nodes are reserved until the jobs start there, for 5 minutes beyond their grace periods. After that, and after a
    restart of the server, a job may start anywhere.
    """
    pipeline, given = pipeline_of(request), await read(request, MovesIn)
    moves, drained = given.parts()
    request.scope[TARGET] = ", ".join([f"{len(moves)} jobs", *given.drain])  # for the audit log
    actor = caller_of(request).name
    moved, stopped = await pipeline.threads.write(pipeline.plane.moves.apply, moves, drained, actor, given.reason)
    return json_reply({"moved": moved, "stopped": stopped})
