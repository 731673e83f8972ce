"""Policies: what queues may have, and trained ones that are brought, activated and removed."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Path, Request, Response

from seaway.api.http.bodies import meant_by, read, read_reply, require_kind
from seaway.api.http.pipeline import MADE, pipeline_of, who_of
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, operation, router
from seaway.application.policies import Brought, Policies
from seaway.application.records import Role
from seaway.application.views import TRAINED, PolicyView
from seaway.domain.errors import ConflictError, UnknownError
from seaway.learning.policies.file import SUFFIX, pack
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
from seaway.wire.policies import (
    FILE,
    ActivatedOut,
    ActivateIn,
    PolicyDetail,
    PolicyFileIn,
    PolicyList,
    detail_fields,
    policy_fields,
)
from seaway.wire.tenancy import queue_fields

ZIP = "application/zip"
"""Media type of a policy file."""

BYTES = {"description": "The policy file.", "content": {FILE: {"schema": {"type": "string", "format": "binary"}}}}

routes = router("policies")


@operation(routes, "GET", "/policies", Role.VIEWER, {200: PolicyList})
async def list_policies(request: Request) -> Response:
    """List the policies that queues may have. Try one on a job with a dry run in a queue that has it."""
    pipeline = pipeline_of(request)
    views = await pipeline.threads.read(pipeline.plane.overview.policies)
    seen = await _queues_seen(request)
    return json_reply({"policies": [policy_fields(each, seen) for each in views]})


@operation(
    routes,
    "POST",
    "/policies",
    Role.OPERATOR,
    {200: PolicyDetail, 201: PolicyDetail},
    errors=(409,),
    body=PolicyFileIn,
    media=(FILE, ZIP),
)
async def import_policy(request: Request) -> Response:
    """Bring a trained policy, under the name that its file says. The same file again changes nothing (200).

    It is refused where it is damaged, does not answer as it did where it was trained, or is not signed by a key that is
    trusted. A policy is not replaced by another of its name: remove that first.
    """
    require_kind(request, FILE, ZIP)
    pipeline, content = pipeline_of(request), await request.body()
    brought, new = await pipeline.threads.heavy(pipeline.plane.policies.bring, content, who_of(request).name)
    request.scope[MADE] = brought.name
    fields = _unused(pipeline.plane.policies, brought)
    return json_reply(fields, 201 if new else 200, {"etag": f'"{fields["version"]}"'})


@operation(
    routes,
    "GET",
    "/policies/{name}",
    Role.VIEWER,
    {200: PolicyDetail, 304: None},
    errors=(404,),
    headers=(IF_NONE_MATCH,),
)
async def get_policy(request: Request, name: str) -> Response:
    """Look a policy up: of a trained one, what it says of itself, who brought it, and who signed it."""
    pipeline = pipeline_of(request)
    view = await _view(request, name)
    brought = await pipeline.threads.read(pipeline.plane.policies.look_up, name) if view.source == TRAINED else None
    return read_reply(request, detail_fields(view, await _queues_seen(request), brought))


@operation(routes, "GET", "/policies/{name}/file", Role.VIEWER, {200: BYTES}, errors=(404, 409))
async def export_policy(request: Request, name: str) -> Response:
    """Give the file of a trained policy, to be imported elsewhere."""
    pipeline = pipeline_of(request)
    if (await _view(request, name)).source != TRAINED:
        raise ConflictError(f"policy {name!r} is not a trained policy, so it has no policy file")
    file = (await pipeline.threads.read(pipeline.plane.policies.look_up, name)).file
    headers = {"content-disposition": f'attachment; filename="{name}{SUFFIX}"'}
    return Response(pack(file), media_type=FILE, headers=headers)


@operation(
    routes, "DELETE", "/policies/{name}", Role.OPERATOR, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,)
)
async def delete_policy(request: Request, name: str) -> Response:
    """Remove a trained policy that no queue has, live or as its shadow, and that does not come with Seaway."""
    pipeline = pipeline_of(request)
    meant = meant_by(request, partial(_unused, pipeline.plane.policies))
    await pipeline.threads.write(pipeline.plane.operations.delete_policy, name, who_of(request).name, meant)
    return nothing()


@operation(
    routes,
    "POST",
    "/policies/{name}/activate",
    Role.OPERATOR,
    {200: ActivatedOut},
    errors=(404, 409, 412),
    body=ActivateIn,
)
async def activate_policy(request: Request, name: str) -> Response:
    """Let a policy decide for a queue. A trained one was the queue's shadow for long enough before; else 409.

    With `shadow` it becomes the shadow and nothing else: what decides stays, and `left` says what is missing until the
    policy may.
    """
    pipeline, given = pipeline_of(request), await read(request, ActivateIn)
    act, who = pipeline.plane.operations.activate_policy, who_of(request).name
    queue, left = await pipeline.threads.write(act, name, given.queue, who, shadow=given.shadow)
    return json_reply({"queue": queue_fields(queue), "left": left})


async def _queues_seen(request: Request) -> set[str]:
    """Return the queues that who asks may see."""
    pipeline, who = pipeline_of(request), who_of(request)
    return {row.name for row in await pipeline.threads.read(pipeline.plane.store.queues) if who.may_see(row.tenant)}


async def _view(request: Request, name: str) -> PolicyView:
    """Return the policy of a name.

    Raises
    ------
    UnknownError
        When there is none.
    """
    pipeline = pipeline_of(request)
    for view in await pipeline.threads.read(pipeline.plane.overview.policies):
        if view.name == name:
            return view
    raise UnknownError(f"policy {name[:63]!r} not found")


def _unused(policies: Policies, brought: Brought) -> dict[str, Any]:
    """Show a trained policy that decides for no queue: one that is new, or may be removed."""
    return detail_fields(PolicyView(brought.name, policies.says(brought.name), (), TRAINED), (), brought)


Called = Annotated[Name, Path(description="What the evaluation is called.")]


@operation(routes, "GET", "/evaluations", Role.VIEWER, {200: EvaluationList})
async def list_evaluations(request: Request) -> Response:
    """List what `seaway evaluate` found of policies, as far as a user keeps it here."""
    pipeline = pipeline_of(request)

    def read() -> list[dict[str, object]]:
        return [evaluation_fields(each) for each in pipeline.plane.evaluations.retained()]

    return json_reply({"evaluations": await pipeline.threads.read(read)})


@operation(routes, "GET", "/evaluations/{name}", Role.VIEWER, {200: EvaluationDetail}, errors=(404,))
async def get_evaluation(request: Request, name: Called) -> Response:
    """Look an evaluation up, summed up by policy."""
    pipeline = pipeline_of(request)

    def read() -> dict[str, object]:
        return evaluation_fields(pipeline.plane.evaluations.look_up(name), lines=True)

    return json_reply(await pipeline.threads.read(read))


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
async def put_evaluation(request: Request, name: Called) -> Response:
    """Keep an evaluation: the rows that `seaway evaluate -o json` or `-o csv` wrote. The same again changes nothing."""
    pipeline, content, kind = pipeline_of(request), await request.body(), require_kind(request, JSON, CSV)

    def keep() -> tuple[dict[str, object], bool]:
        record, new = pipeline.plane.evaluations.keep(name, read_rows(content, kind), who_of(request).name)
        return evaluation_fields(record, lines=True), new

    fields, new = await pipeline.threads.heavy(keep)
    return json_reply(fields, 201 if new else 200)


@operation(routes, "DELETE", "/evaluations/{name}", Role.OPERATOR, {204: None}, errors=(404,))
async def delete_evaluation(request: Request, name: Called) -> Response:
    """Remove an evaluation."""
    pipeline = pipeline_of(request)
    await pipeline.threads.write(pipeline.plane.evaluations.remove, name, who_of(request).name)
    return nothing()
