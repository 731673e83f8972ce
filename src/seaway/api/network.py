"""Operations on the configuration of the network between gateways, and on the measuring agents."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any

import orjson
from fastapi import Query, Request, Response

from seaway.api.http.bodies import PRECONDITIONS, YAML, precondition_of, read, read_at_most, read_large, read_reply
from seaway.api.http.pipeline import DRY_RUN, NOTED, address_of, caller_of, pipeline_of, plane_of
from seaway.api.http.queries import Word
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, operation, router
from seaway.application.network.configuration import Configured
from seaway.application.network.targets import assignment
from seaway.application.records import Role
from seaway.domain.errors import ConflictError, ForbiddenError, SeawayError, UnknownError
from seaway.domain.reasons import Reason
from seaway.wire.network_in import MAX_VALUES, NetworkConfigIn
from seaway.wire.network_views import (
    AgentList,
    AppliedIn,
    GatewayConfigOut,
    NetworkOut,
    NetworkPlan,
    ReportIn,
    TargetList,
    agent_fields,
    plan_fields,
    target_list_fields,
    wanted_fields,
)

MAX_REPORTED_BYTES = 524_288
"""Maximum size of a report, bytes. A round has some hundred bytes."""

NO_NETWORK = Reason("network_to_put")

routes = router("network")
agent_routes = router("network")

Gateway = Annotated[
    Word, Query(min_length=1, description="Gateway of the agent; an agent can only use its own gateway.")
]
Force = Annotated[bool, Query(description="Remove gateways even if running jobs use them.")]


@operation(
    routes, "GET", "/network", Role.VIEWER, {200: NetworkOut, 304: None}, errors=(404,), headers=(IF_NONE_MATCH,)
)
async def get_network(request: Request) -> Response:
    """Return the configuration of the network between gateways, in the format for `PUT`.

    The version is the `ETag`.
    """
    there = _configured(request)
    return read_reply(request, orjson.Fragment(there.text), there.version)


@operation(
    routes,
    "PUT",
    "/network",
    Role.OPERATOR,
    {200: NetworkPlan},
    errors=(409, 412),
    body=NetworkConfigIn,
    media=("application/json", *YAML[:1]),
    headers=PRECONDITIONS,
)
async def put_network(
    request: Request,
    dry_run: Annotated[
        bool, Query(description="Validate the file, and return the changes without applying them.")
    ] = False,
    force: Force = False,
) -> Response:
    """Replace the configuration of the network between gateways. Agents and gateways apply it within seconds.

    The removal of a gateway that running jobs use requires `force`.
    """
    pipeline = pipeline_of(request)
    request.scope[DRY_RUN] = dry_run
    given = await read_large(request, NetworkConfigIn, MAX_VALUES)
    config, meant = await pipeline.threads.read(given.config), precondition_of(request, _version)
    known = pipeline.plane.network.configuration
    if dry_run:
        return json_reply(plan_fields(await pipeline.threads.read(known.plan, config, meant)))
    plan = await pipeline.threads.write(known.put, config, caller_of(request).name, meant, force=force)
    return json_reply(plan_fields(plan), headers={"etag": f'"{plan.version}"'})


@operation(routes, "DELETE", "/network", Role.OPERATOR, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_network(request: Request, force: Force = False) -> Response:
    """Remove the configuration of the network between gateways.

    Measurements stop. Links reported by clusters are used again.
    """
    pipeline = pipeline_of(request)
    meant = precondition_of(request, _version)
    await pipeline.threads.write(
        pipeline.plane.network.configuration.delete, caller_of(request).name, meant, force=force
    )
    return nothing()


@operation(routes, "GET", "/network/agents", Role.VIEWER, {200: AgentList})
async def list_agents(request: Request) -> Response:
    """List the agents of all gateways with their state and their counters of reports."""
    plane = plane_of(request)
    agents = [agent_fields(each) for each in plane.network.agents.views()]
    version, links = str(plane.network.configuration.version), plane.overview.link_states()
    return json_reply({"version": version, "agents": agents, "links": links})


@operation(
    agent_routes,
    "GET",
    "/network/targets",
    Role.AGENT,
    {200: TargetList, 304: None},
    errors=(404,),
    headers=(IF_NONE_MATCH,),
)
async def list_targets(request: Request, gateway: Gateway) -> Response:
    """List the targets that the agent of a gateway measures. Available to that agent and to operators."""
    _require_own(request, gateway, Role.OPERATOR)
    there = _configured(request)
    fields = target_list_fields(gateway, assignment(there.config, there.version, gateway))
    return read_reply(request, fields, there.version)


@operation(agent_routes, "POST", "/network/reports", Role.AGENT, {204: None}, errors=(404, 409), body=ReportIn)
async def submit_report(request: Request) -> Response:
    """Accept the measurements of an agent, in full or not at all. Available only to the agent of that gateway.

    The pair of `started_ns` and `number` must be greater than that of the last accepted report; otherwise 409.
    """
    plane, who = plane_of(request), caller_of(request)
    if not plane.access.everybody and who.role is not Role.AGENT:
        raise ForbiddenError(Reason("only_agents_report", name=who.name, role=who.role.value))
    try:
        if who.gateway:  # without authentication there is no rate limit either
            plane.network.reports.admit(who.gateway)
        given = await read_at_most(request, ReportIn, MAX_REPORTED_BYTES)
        _require_own(request, given.gateway)
        report = given.report()
    except SeawayError as error:
        plane.network.agents.refused(who.gateway, str(error))
        raise
    await plane.network.reports.take(report, address_of(request))
    request.scope[NOTED] = True  # no entry in the audit log every ten seconds
    return nothing()


@operation(
    agent_routes,
    "GET",
    "/network/gateways/{gateway}",
    Role.AGENT,
    {200: GatewayConfigOut, 304: None},
    errors=(404,),
    headers=(IF_NONE_MATCH,),
)
async def get_gateway(request: Request, gateway: str) -> Response:
    """Return the configuration of a gateway: the network, and the active path to each other gateway.

    Available to the agent of that gateway, and to callers that may see the network.
    """
    _require_own(request, gateway, Role.VIEWER)
    there, active = _configured(request), plane_of(request).network.active
    wanted = active.of(gateway)
    if caller_of(request).is_agent_of(gateway):
        active.asked(gateway)
    fields = wanted_fields(
        gateway, orjson.Fragment(there.text), there.version, wanted, active.applied(gateway), active.serving()
    )
    reported = orjson.dumps([fields[name] for name in ("active", "applied", "serving")], option=orjson.OPT_SORT_KEYS)
    return read_reply(request, fields, f"{there.version}.{sha256(reported).hexdigest()[:16]}")


@operation(
    agent_routes,
    "POST",
    "/network/gateways/{gateway}/applied",
    Role.AGENT,
    {204: None},
    errors=(404, 409),
    body=AppliedIn,
)
async def confirm_applied(request: Request, gateway: str) -> Response:
    """Record the paths that a gateway has applied. Available only to the agent of that gateway."""
    pipeline, who = pipeline_of(request), caller_of(request)
    if who.gateway:
        pipeline.plane.network.reports.admit(who.gateway)
    _require_own(request, gateway)
    given, there = await read(request, AppliedIn), _configured(request)
    if int(given.version) != there.version:
        raise ConflictError(Reason("network_at_version", version=there.version))
    request.scope[NOTED] = not await pipeline.threads.write(
        pipeline.plane.network.active.confirm, gateway, given.active
    )
    return nothing()


def _configured(request: Request) -> Configured:
    there = plane_of(request).network.configuration.now
    if there is None:
        raise UnknownError(NO_NETWORK)
    return there


def _version(there: Configured) -> dict[str, Any]:
    return {"version": there.version}


def _require_own(request: Request, gateway: str, others: Role | None = None) -> None:
    """Check that the caller is the agent of a gateway or has the role `others`.

    Raises
    ------
    ForbiddenError
        If neither applies.
    """
    who = caller_of(request)
    if plane_of(request).access.everybody or who.is_agent_of(gateway) or (others is not None and who.may(others)):
        return
    if who.role is Role.AGENT:
        raise ForbiddenError(Reason("agent_of_other", gateway=gateway[:80], name=who.name, other=who.gateway))
    raise ForbiddenError(Reason("not_the_agent", gateway=gateway[:80], name=who.name, role=who.role.value))
