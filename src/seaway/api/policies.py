"""Operations on policies, trained policies and stored evaluations."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Path, Request, Response

from seaway.api.http.bodies import precondition_of, read, read_reply, require_kind
from seaway.api.http.pipeline import MADE, caller_of, pipeline_of
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, operation, router
from seaway.application.policies import ImportedPolicy
from seaway.application.records import Role
from seaway.application.views import TRAINED, PolicyView
from seaway.bootstrap.control_plane import ControlPlane
from seaway.domain.errors import ConflictError, UnknownError
from seaway.domain.reasons import Reason
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
from seaway.wire.message import coded
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
from seaway.wire.queues import queue_fields

ZIP = "application/zip"
"""Alternative media type of a policy file."""

BYTES = {"description": "The policy file.", "content": {FILE: {"schema": {"type": "string", "format": "binary"}}}}

routes = router("policies")


@operation(routes, "GET", "/policies", Role.VIEWER, {200: PolicyList})
async def list_policies(request: Request) -> Response:
    """List policies. To try a policy, make a dry run of a job in a queue with that policy."""
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
    """Import a trained policy under the name in its file.

    Importing the same file again has no effect (200). The import fails if the file is damaged, if its decisions differ
    from those recorded at its training, or if no trusted key signed it. To replace a policy of the same name, remove it
    first.
    """
    require_kind(request, FILE, ZIP)
    pipeline, content = pipeline_of(request), await request.body()
    imported, new = await pipeline.threads.heavy(
        pipeline.plane.policies.import_policy, content, caller_of(request).name
    )
    request.scope[MADE] = imported.name
    fields = _unused(pipeline.plane, imported)
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
    """Return a policy; a trained policy with its manifest, importer and signer."""
    pipeline = pipeline_of(request)
    view = await _view(request, name)
    imported = await pipeline.threads.read(pipeline.plane.policies.look_up, name) if view.source == TRAINED else None
    return read_reply(request, detail_fields(view, await _queues_seen(request), imported))


@operation(routes, "GET", "/policies/{name}/file", Role.VIEWER, {200: BYTES}, errors=(404, 409))
async def export_policy(request: Request, name: str) -> Response:
    """Return the file of a trained policy, for import on another server."""
    pipeline = pipeline_of(request)
    if (await _view(request, name)).source != TRAINED:
        raise ConflictError(Reason("no_policy_file", name=name))
    file = (await pipeline.threads.read(pipeline.plane.policies.look_up, name)).file
    headers = {"content-disposition": f'attachment; filename="{name}{SUFFIX}"'}
    return Response(pack(file), media_type=FILE, headers=headers)


@operation(
    routes, "DELETE", "/policies/{name}", Role.OPERATOR, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,)
)
async def delete_policy(request: Request, name: str) -> Response:
    """Remove an imported policy that no queue uses, live or as its shadow."""
    pipeline = pipeline_of(request)
    meant = precondition_of(request, partial(_unused, pipeline.plane))
    await pipeline.threads.write(pipeline.plane.operations.delete_policy, name, caller_of(request).name, meant)
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
    """Activate a policy for a queue.

    A trained policy must first serve as the shadow of the queue for long enough; otherwise 409. With `shadow`, it
    becomes only the shadow: the live policy does not change, and `left` has the remaining condition for activation.
    `warning` describes limits of the policy, such as those of baselines.
    """
    pipeline, given = pipeline_of(request), await read(request, ActivateIn)
    act, who = pipeline.plane.operations.activate_policy, caller_of(request).name
    queue, left = await pipeline.threads.write(act, name, given.queue, who, shadow=given.shadow)
    warning = await pipeline.threads.read(pipeline.plane.overview.policy_warning, name)
    return json_reply({"queue": queue_fields(queue), "left": left, "warning": coded(warning)})


async def _queues_seen(request: Request) -> set[str]:
    """Return the queues that are visible to the caller."""
    pipeline, who = pipeline_of(request), caller_of(request)
    return {row.name for row in await pipeline.threads.read(pipeline.plane.store.queues) if who.may_see(row.tenant)}


async def _view(request: Request, name: str) -> PolicyView:
    """Return the policy with a name.

    Raises
    ------
    UnknownError
        If no policy has that name.
    """
    pipeline = pipeline_of(request)
    for view in await pipeline.threads.read(pipeline.plane.overview.policies):
        if view.name == name:
            return view
    raise UnknownError(Reason("not_found", kind="policy", name=name[:63]))


def _unused(plane: ControlPlane, imported: ImportedPolicy) -> dict[str, Any]:
    """Return the fields of a trained policy that no queue uses: a new one, or one to remove."""
    name, warning = imported.name, plane.overview.policy_warning(imported.name)
    return detail_fields(PolicyView(name, plane.policies.says(name), (), TRAINED, warning), (), imported)


Called = Annotated[Name, Path(description="Name of the evaluation.")]


@operation(routes, "GET", "/evaluations", Role.VIEWER, {200: EvaluationList})
async def list_evaluations(request: Request) -> Response:
    """List the stored evaluations of policies."""
    pipeline = pipeline_of(request)

    def read() -> list[dict[str, object]]:
        return [evaluation_fields(each) for each in pipeline.plane.evaluations.retained()]

    return json_reply({"evaluations": await pipeline.threads.read(read)})


@operation(routes, "GET", "/evaluations/{name}", Role.VIEWER, {200: EvaluationDetail}, errors=(404,))
async def get_evaluation(request: Request, name: Called) -> Response:
    """Return an evaluation with a summary of each policy."""
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
    """Store an evaluation: the rows written by `seaway evaluate -o json` or `-o csv`. Idempotent."""
    pipeline, content, kind = pipeline_of(request), await request.body(), require_kind(request, JSON, CSV)

    def keep() -> tuple[dict[str, object], bool]:
        record, new = pipeline.plane.evaluations.keep(name, read_rows(content, kind), caller_of(request).name)
        return evaluation_fields(record, lines=True), new

    fields, new = await pipeline.threads.heavy(keep)
    return json_reply(fields, 201 if new else 200)


@operation(routes, "DELETE", "/evaluations/{name}", Role.OPERATOR, {204: None}, errors=(404,))
async def delete_evaluation(request: Request, name: Called) -> Response:
    """Remove an evaluation."""
    pipeline = pipeline_of(request)
    await pipeline.threads.write(pipeline.plane.evaluations.remove, name, caller_of(request).name)
    return nothing()
