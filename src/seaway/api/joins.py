"""Operations that join clusters, and leave them."""

from __future__ import annotations

import re
from typing import Any

from fastapi import Request, Response

from seaway.api.http.bodies import YAML, read, require_kind
from seaway.api.http.pipeline import MADE, caller_of, header_of, pipeline_of, plane_of
from seaway.api.http.replies import BadRequestError, Reply, json_reply, nothing
from seaway.api.http.routes import PREFIX, operation, router
from seaway.application.records import Role
from seaway.bootstrap.cluster_joins import JOINED_LATER, LARGEST_KUBECONFIG, ClusterJoin
from seaway.domain.errors import ForbiddenError, RejectedError
from seaway.domain.reasons import Reason
from seaway.wire.fields import moment
from seaway.wire.joins import JoinCreated, JoinDone, JoinEndIn, JoinList, JoinOut, NewJoinIn, join_command
from seaway.wire.message import coded, with_message

routes = router("fleet")

SCRIPT = "text/x-shellscript"
ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9./_-]*)?")
"""URLs without characters that a shell interprets."""


@operation(routes, "GET", "/fleet/joins", Role.ADMIN, {200: JoinList})
async def list_joins(request: Request) -> Response:
    """List the joins of clusters in progress, and the joined clusters."""
    joins = plane_of(request).joins
    found, obstacle = [_fields(each) for each in joins.joins()], coded(joins.obstacle())
    return json_reply({"joins": found, "joined": joins.names(), "obstacle": obstacle})


@operation(routes, "POST", "/fleet/joins", Role.ADMIN, {201: JoinCreated}, errors=(409,), body=NewJoinIn)
async def begin_join(request: Request) -> Response:
    """Begin to join a cluster: check a kubeconfig, or return a command that creates one.

    Nothing is stored before the join is completed. A join ends after 15 minutes.
    """
    pipeline, given = pipeline_of(request), await read(request, NewJoinIn)
    joins, who = pipeline.plane.joins, caller_of(request).name
    command = ""
    if given.kubeconfig:
        made = await pipeline.threads.parse(joins.begin, given.kubeconfig, given.context, who)
    else:
        made, token = joins.invite(who)
        command = join_command(f"{PREFIX}/fleet/joins/{made.id}", token)
    request.scope[MADE] = made.id
    return json_reply({**_fields(made), "command": command}, 201, {"cache-control": "no-store"})


@operation(routes, "GET", "/fleet/joins/{join}", Role.ADMIN, {200: JoinOut}, errors=(404,))
async def get_join(request: Request, join: str) -> Response:
    """Return a join with the results of its checks so far."""
    return json_reply(_fields(plane_of(request).joins.find(join)))


@operation(routes, "POST", "/fleet/joins/{join}/finish", Role.ADMIN, {200: JoinDone}, errors=(404, 409), body=JoinEndIn)
async def finish_join(request: Request, join: str) -> Response:
    """Complete a join: connect to the cluster once more, and store its kubeconfig."""
    pipeline, given = pipeline_of(request), await read(request, JoinEndIn)
    joins = pipeline.plane.joins
    done = await pipeline.threads.ask_cluster(
        f"join {join}", lambda: joins.finish(join, given.name, replace=given.replace)
    )
    note = JOINED_LATER.format(name=done.name) if joins.simulated else ""
    return json_reply({"name": done.name, "note": note, "problems": [coded(each) for each in done.problems]})


@operation(routes, "DELETE", "/fleet/joins/{join}", Role.ADMIN, {204: None}, errors=(404,))
async def drop_join(request: Request, join: str) -> Response:
    """End a join without a result. Its kubeconfig and its command are discarded."""
    joins = plane_of(request).joins
    joins.find(join)
    joins.drop(join)
    return nothing()


@operation(routes, "GET", "/fleet/joins/{join}/script", Role.AGENT, {200: SCRIPT}, errors=(404,))
async def get_join_script(request: Request, join: str) -> Response:
    """Return the script of a join's command; requires the token of the command.

    It applies `member.yaml` and `namespaces.yaml` to the current cluster of kubectl, and sends a kubeconfig with a
    token of the service account.
    """
    token = _token_of(request, join)
    plane = plane_of(request)
    origin = plane.settings.server.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    if not ORIGIN.fullmatch(origin):
        raise RejectedError(Reason("not_a_host"), where="Host")
    script = plane.joins.script(join, f"{origin}{PREFIX}/fleet/joins/{join}", token)
    return Reply(script.encode(), media_type=SCRIPT, headers={"cache-control": "no-store"})


@operation(routes, "PUT", "/fleet/joins/{join}/kubeconfig", Role.AGENT, {202: None}, errors=(404, 409))
async def send_join_kubeconfig(request: Request, join: str) -> Response:
    """Send the kubeconfig of a join in YAML; requires the token of its command, which is not valid afterwards."""
    _token_of(request, join)
    require_kind(request, *YAML)
    body = await request.body()
    if len(body) > LARGEST_KUBECONFIG:
        raise BadRequestError(413, f"a kubeconfig may have {LARGEST_KUBECONFIG} bytes at most")
    pipeline = pipeline_of(request)
    await pipeline.threads.parse(pipeline.plane.joins.receive, join, body.decode("utf-8", "replace"))
    return Response(status_code=202)


@operation(routes, "POST", "/fleet/clusters/{cluster}/leave", Role.ADMIN, {204: None}, errors=(404,))
async def leave_cluster(request: Request, cluster: str) -> Response:
    """Leave a joined cluster: remove its kubeconfig. Its workloads continue, and its name stays reserved.

    Its jobs are placed elsewhere after the grace period. To move them first, drain the cluster.
    """
    pipeline = pipeline_of(request)
    await pipeline.threads.write(pipeline.plane.joins.leave, cluster)
    return nothing()


def _token_of(request: Request, join: str) -> str:
    """Return the token of a command, which is for one join.

    Raises
    ------
    ForbiddenError
        If it is another token.
    """
    if caller_of(request).token_id != f"join-{join}":
        raise ForbiddenError(Reason("join_token_required"))
    return (header_of(request, b"authorization") or "").partition(" ")[2]


def _fields(join: ClusterJoin) -> dict[str, Any]:
    checks = [
        {"check": each.check, "level": each.level.value, **with_message(each.text), "remedy": coded(each.remedy)}
        for each in list(join.findings)
    ]
    return {
        "id": join.id,
        "stage": join.stage.value,
        "checks": checks,
        "usable": join.usable,
        "name": join.name,
        "by": join.by,
        "expires_at": moment(join.expires_ns),
    }
