"""Evaluations of policies that are kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from seaway.api.bodies import require_kind
from seaway.api.desk import desk_of, who_of
from seaway.api.replies import json_reply, nothing
from seaway.api.routes import operation, router
from seaway.application.records import Role
from seaway.wire.evaluations import (
    CSV,
    JSON,
    EvaluationDetail,
    EvaluationIn,
    EvaluationList,
    evaluation_fields,
    read_rows,
)
from seaway.wire.fields import Name

Called = Annotated[Name, Path(description="What the evaluation is called.")]

routes = router("policies")


@operation(routes, "GET", "/evaluations", Role.VIEWER, {200: EvaluationList})
async def list_evaluations(request: Request) -> Response:
    """List what `seaway evaluate` found of policies, as far as somebody keeps it here."""
    desk = desk_of(request)

    def read() -> list[dict[str, object]]:
        return [evaluation_fields(each) for each in desk.plane.evaluations.kept()]

    return json_reply({"evaluations": await desk.threads.read(read)})


@operation(routes, "GET", "/evaluations/{name}", Role.VIEWER, {200: EvaluationDetail}, errors=(404,))
async def get_evaluation(request: Request, name: Called) -> Response:
    """Look an evaluation up, summed up by policy."""
    desk = desk_of(request)

    def read() -> dict[str, object]:
        return evaluation_fields(desk.plane.evaluations.look_up(name), lines=True)

    return json_reply(await desk.threads.read(read))


@operation(
    routes,
    "PUT",
    "/evaluations/{name}",
    Role.OPERATOR,
    {200: EvaluationDetail, 201: EvaluationDetail},
    errors=(409,),
    body=EvaluationIn,
    media=(JSON, CSV),
)
async def keep_evaluation(request: Request, name: Called) -> Response:
    """Keep an evaluation: the rows that `seaway evaluate -o json` or `-o csv` wrote. The same again changes nothing."""
    desk, content, kind = desk_of(request), await request.body(), require_kind(request, JSON, CSV)

    def keep() -> tuple[dict[str, object], bool]:
        record, new = desk.plane.evaluations.keep(name, read_rows(content, kind), who_of(request).name)
        return evaluation_fields(record, lines=True), new

    fields, new = await desk.threads.heavy(keep)
    return json_reply(fields, 201 if new else 200)


@operation(routes, "DELETE", "/evaluations/{name}", Role.OPERATOR, {204: None}, errors=(404,))
async def delete_evaluation(request: Request, name: Called) -> Response:
    """Remove an evaluation."""
    desk = desk_of(request)
    await desk.threads.write(desk.plane.evaluations.remove, name, who_of(request).name)
    return nothing()
