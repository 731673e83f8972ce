"""Operations for what-if questions, and for the moves of their answers."""

from __future__ import annotations

import asyncio
from threading import Event
from time import monotonic
from typing import Any

from fastapi import Request, Response

from seaway.api.http.bodies import read, read_aside
from seaway.api.http.pipeline import TARGET, caller_of, pipeline_of
from seaway.api.http.replies import json_reply
from seaway.api.http.routes import operation, router
from seaway.application.records import Role
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import DEFAULT
from seaway.wire.whatif import MovesIn, MovesOut, WhatIfIn, WhatIfOut, consequences_fields

LONGEST_S = 600
"""Maximum time of the replay of a trace, seconds."""

LOOK_S = 0.5
"""Interval at which an unanswered question looks for its client, seconds."""

routes = router("fleet")


@operation(routes, "POST", "/whatif", Role.OPERATOR, {200: WhatIfOut}, body=WhatIfIn)
async def what_if(request: Request) -> Response:
    """Answer a what-if question on a copy of the live fleet, which does not change.

    The replay of a trace ends when the client leaves, and after ten minutes.
    """
    pipeline, given = pipeline_of(request), await read_aside(request, WhatIfIn)
    until_s, left = monotonic() + LONGEST_S, Event()

    def stopped() -> str:
        if left.is_set():
            return Reason("client_left")
        return Reason("question_too_long", seconds=LONGEST_S) if monotonic() > until_s else ""

    def ask() -> dict[str, Any]:
        return consequences_fields(pipeline.plane.whatif.ask(given.question.question(DEFAULT), stopped))

    async def watch() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(LOOK_S)
        left.set()

    watching = asyncio.create_task(watch())
    try:
        return json_reply(await pipeline.threads.heavy(ask))
    finally:
        left.set()  # the server may end while the thread works
        watching.cancel()


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
