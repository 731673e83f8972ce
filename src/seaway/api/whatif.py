"""Operation for what-if questions."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from seaway.api.http.bodies import read_aside
from seaway.api.http.pipeline import pipeline_of
from seaway.api.http.replies import json_reply
from seaway.api.http.routes import operation, router
from seaway.application.records import Role
from seaway.domain.tenancy import DEFAULT
from seaway.wire.whatif import WhatIfIn, WhatIfOut, consequences_fields

routes = router("fleet")


@operation(routes, "POST", "/whatif", Role.OPERATOR, {200: WhatIfOut}, body=WhatIfIn)
async def what_if(request: Request) -> Response:
    """Answer a what-if question on a copy of the live fleet, which does not change."""
    pipeline, given = pipeline_of(request), await read_aside(request, WhatIfIn)

    def ask() -> dict[str, Any]:
        return consequences_fields(pipeline.plane.whatif.ask(given.question.question(DEFAULT)))

    return json_reply(await pipeline.threads.heavy(ask))
