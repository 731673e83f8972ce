"""Operations on the fleet: clusters, nodes, devices, slices, gateways, and their history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request, Response

from seaway.api.http.bodies import JSON, MERGE_PATCH, merged, read_patch
from seaway.api.http.pipeline import caller_of, pipeline_of
from seaway.api.http.queries import (
    FleetQuery,
    MapQuery,
    Moment,
    Word,
    number_after,
    page_token,
    sample_after,
    sample_token,
    tenant_asked,
)
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import operation, router
from seaway.api.hub import Subscription
from seaway.application.fleet.link_history import NS, steps_of
from seaway.application.fleet.overview import Overview
from seaway.application.fleet.search import FleetFilter, Found
from seaway.application.fleet.usage_history import UsageReport
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import Role
from seaway.application.views import ClusterView, ModelView
from seaway.domain.errors import RejectedError, UnknownError
from seaway.domain.facts import Facts
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import unknown_name
from seaway.domain.usage import UsageBy, UsageSpan
from seaway.wire.events import RecentEvents, event_fields
from seaway.wire.facts import FactsIn, FactsPatch, facts_document
from seaway.wire.fields import at_ns
from seaway.wire.fleet import (
    ClusterHistory,
    ClusterList,
    ClusterOut,
    DevicePage,
    FleetMap,
    GatewayList,
    LinkHistory,
    LinkSteps,
    ModelList,
    NodePage,
    SlicePage,
    UsageHistoryOut,
    cluster_fields,
    cluster_sample_fields,
    device_fields,
    found_fields,
    gateway_fields,
    link_sample_fields,
    link_step_fields,
    model_fields,
    node_fields,
    node_use_fields,
    placed_slice_fields,
    usage_fields,
)
from seaway.wire.orphans import OrphanList, OrphansRemoved, orphan_fields
from seaway.wire.reading import read_value

Thing = TypeVar("Thing")

routes = router("fleet")

InCluster = Annotated[Word, Query(description="Filter by cluster.")]
Named = Annotated[Word, Query(description="Filter by a part of the name.")]
AfterSample = Annotated[str, Query(max_length=2000, description="Value of `next` from the previous page.")]
Limit = Annotated[int, Query(ge=1, le=MAX_ROWS, description="Maximum number of entries on a page.")]
MAX_STEPS = 2000
"""Maximum number of steps in the history of a link."""

SLICES_OF_A_DEVICE = 1_000_000
"""Factor of the device in a page token; larger than the number of slices of any device."""

Since = Annotated[Moment, Query(description="Start time, like 2026-11-21T10:00:00Z.")]


@operation(routes, "GET", "/fleet/clusters", Role.VIEWER, {200: ClusterList})
async def list_clusters(request: Request) -> Response:
    """List clusters with their totals.

    Orphaned workloads may belong to other tenants, so only operators and admins see them.
    """
    pipeline = pipeline_of(request)
    views = await pipeline.threads.read(pipeline.plane.overview.clusters)
    return json_reply({"clusters": [_visible_fields(request, each) for each in views]})


@operation(routes, "GET", "/fleet/clusters/{cluster}", Role.VIEWER, {200: ClusterOut}, errors=(404,))
async def get_cluster(request: Request, cluster: str) -> Response:
    """Return a cluster, with the same fields as in the list."""
    return json_reply(_visible_fields(request, await _view_of(request, cluster)))


async def _view_of(request: Request, cluster: str) -> ClusterView:
    pipeline = pipeline_of(request)
    for view in await pipeline.threads.read(pipeline.plane.overview.clusters):
        if view.name == cluster:
            return view
    raise UnknownError(Reason("not_found", kind="cluster", name=cluster[:253]))


@operation(
    routes,
    "PATCH",
    "/fleet/clusters/{cluster}/facts",
    Role.OPERATOR,
    {200: ClusterOut},
    errors=(404,),
    body=FactsPatch,
    media=(MERGE_PATCH, JSON),
)
async def set_cluster_facts(request: Request, cluster: str) -> Response:
    """Set facts of a cluster with a merge patch (RFC 7396): price, region, zones, location, hardware, labels.

    Fields that the patch does not name stay unchanged. With null, the fact is again the one that the cluster reports.
    """
    pipeline = pipeline_of(request)
    patch = await read_patch(request)

    def change(before: Facts) -> Facts:
        return read_value(FactsIn, merged(facts_document(before), patch)).facts()

    facts = await pipeline.threads.write(pipeline.plane.operations.set_facts, cluster, change, caller_of(request).name)
    view = await _view_of(request, cluster)
    return json_reply(_visible_fields(request, view.with_own_facts(facts)))


@operation(routes, "DELETE", "/fleet/clusters/{cluster}", Role.OPERATOR, {204: None}, errors=(404, 409))
async def remove_cluster(request: Request, cluster: str) -> Response:
    """Remove a cluster from the fleet, release its allocations and place its jobs elsewhere.

    Workloads in the cluster continue to run without management by Seaway. Make sure that the cluster is switched off or
    empty.
    """
    pipeline = pipeline_of(request)
    await pipeline.threads.write(pipeline.plane.cluster_removal.remove, cluster, caller_of(request).name)
    return nothing()


@operation(routes, "GET", "/fleet/nodes", Role.VIEWER, {200: NodePage})
async def list_nodes(request: Request, query: Annotated[FleetQuery, Query()]) -> Response:
    """List nodes with their devices and slices.

    The owners of other tenants' slices are hidden.
    """
    return json_reply(await pipeline_of(request).threads.read(_nodes, request, query))


@operation(routes, "GET", "/fleet/map", Role.VIEWER, {200: FleetMap})
async def get_map(request: Request, query: Annotated[MapQuery, Query()]) -> Response:
    """Return the allocated GPUs of all nodes, or of those that match, on one page.

    The names of other tenants are hidden.
    """
    return json_reply(await pipeline_of(request).threads.read(_map, request, query))


@operation(routes, "GET", "/fleet/devices", Role.VIEWER, {200: DevicePage})
async def list_devices(request: Request, query: Annotated[FleetQuery, Query()]) -> Response:
    """List devices with their slices."""
    return json_reply(await pipeline_of(request).threads.read(_devices, request, query))


@operation(routes, "GET", "/fleet/slices", Role.VIEWER, {200: SlicePage})
async def list_slices(request: Request, query: Annotated[FleetQuery, Query()]) -> Response:
    """List slices of devices with their jobs."""
    return json_reply(await pipeline_of(request).threads.read(_slices, request, query))


@operation(routes, "GET", "/fleet/models", Role.VIEWER, {200: ModelList})
async def list_models(request: Request, cluster: InCluster = "") -> Response:
    """List device models with their totals."""
    pipeline = pipeline_of(request)
    views = await pipeline.threads.read(_models, pipeline.plane.overview, cluster)
    return json_reply({"models": [model_fields(each) for each in views]})


@operation(routes, "GET", "/fleet/gateways", Role.VIEWER, {200: GatewayList})
async def list_gateways(request: Request) -> Response:
    """List gateways with their clusters or user sites."""
    pipeline = pipeline_of(request)
    sides = await pipeline.threads.read(pipeline.plane.overview.sides)
    return json_reply({"gateways": [gateway_fields(name, side) for name, side in sides.items()]})


@operation(routes, "GET", "/fleet/events", Role.VIEWER, {200: RecentEvents})
async def list_fleet_events(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS, description="Maximum number of events.")] = 20,
) -> Response:
    """List the latest events of the fleet, newest first: of clusters, cordons, queues, policies, agents and paths.

    Tokens of a tenant do not see those of queues, pools, tenants and policies.
    """
    pipeline, wanted = pipeline_of(request), Subscription("", "", bool(caller_of(request).tenant))
    rows = await pipeline.threads.read(pipeline.plane.store.fleet_events, limit)
    return json_reply({"events": [event_fields(row) for row in rows if wanted.wants(row)]})


@operation(routes, "GET", "/fleet/history/clusters", Role.VIEWER, {200: ClusterHistory})
async def list_cluster_samples(
    request: Request, cluster: InCluster = "", since: Since = "", after: AfterSample = "", limit: Limit = MAX_ROWS
) -> Response:
    """List samples of the use of clusters, oldest first."""
    from_ns, (name,) = sample_after(after, 1) or (_from(since), ("",))
    rows = await _samples(request, lambda store: store.cluster_samples(cluster, from_ns, limit, name))
    following = sample_token(rows[-1].at_ns, rows[-1].cluster) if len(rows) == limit else None
    return json_reply({"samples": [cluster_sample_fields(row) for row in rows], "next": following})


@operation(routes, "GET", "/fleet/history/usage", Role.VIEWER, {200: UsageHistoryOut}, errors=(404,))
async def get_usage_history(
    request: Request,
    by: UsageBy = UsageBy.FLEET,
    span: Annotated[UsageSpan, Query(description="Length of the history until now.")] = UsageSpan.DAY,
    tenant: Annotated[Word, Query(description="Filter tenants and queues by tenant.")] = "",
    queue: Annotated[Word, Query(description="Filter tenants and queues by queue.")] = "",
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of series.")] = 10,
) -> Response:
    """Return the history of allocated and measured GPUs, and of jobs that wait.

    Viewers and users see the jobs and waits of their own tenant.
    """
    if by in {UsageBy.FLEET, UsageBy.CLUSTER} and (tenant or queue):
        raise RejectedError(Reason("history_only_by"), where="tenant" if tenant else "queue")
    pipeline, who = pipeline_of(request), caller_of(request)
    shown, own = tenant_asked(who, tenant), bool(who.tenant)

    def read() -> UsageReport:
        return pipeline.plane.history.report(by, span, limit, tenant=shown, queue=queue, own=own)

    return json_reply(usage_fields(by, span, await pipeline.threads.read(read)))


@operation(routes, "GET", "/fleet/history/links", Role.VIEWER, {200: LinkHistory})
async def list_link_samples(
    request: Request,
    source: Word = "",
    target: Word = "",
    since: Since = "",
    after: AfterSample = "",
    limit: Limit = MAX_ROWS,
) -> Response:
    """List samples of links, oldest first."""
    from_ns, (near, far) = sample_after(after, 2) or (_from(since), ("", ""))
    rows = await _samples(request, lambda store: store.link_samples(source, target, from_ns, limit, (near, far)))
    following = sample_token(rows[-1].at_ns, rows[-1].source, rows[-1].target) if len(rows) == limit else None
    return json_reply({"samples": [link_sample_fields(row) for row in rows], "next": following})


@operation(routes, "GET", "/fleet/history/links/steps", Role.VIEWER, {200: LinkSteps})
async def list_link_steps(
    request: Request,
    source: Annotated[Word, Query(min_length=1)],
    target: Annotated[Word, Query(min_length=1)],
    since: Since,
    step: Annotated[int, Query(ge=1, le=86_400, description="Length of a step, seconds.")],
) -> Response:
    """List the history of a link in steps, each with minimum, mean and maximum, oldest first."""
    from_ns = _from(since)
    if (pipeline_of(request).plane.clock.now_ns() - from_ns) / NS > MAX_STEPS * step:
        raise RejectedError(Reason("too_many_steps", most=MAX_STEPS), where="step")
    found = await _samples(request, lambda store: steps_of(store, source, target, from_ns, step))
    return json_reply({"step_s": step, "steps": [link_step_fields(each) for each in found]})


def _visible_fields(request: Request, view: ClusterView) -> dict[str, Any]:
    """Return the fields of a cluster that are visible to the caller."""
    return cluster_fields(replace(view, orphans=()) if caller_of(request).tenant else view)


async def _samples(request: Request, read: Callable[[Store], Sequence[Thing]]) -> Sequence[Thing]:
    pipeline = pipeline_of(request)
    return await pipeline.threads.read(read, pipeline.plane.store)


def _from(since: str) -> int:
    return at_ns(since) if since else 0


def _models(overview: Overview, cluster: str) -> list[ModelView]:
    _require_known(overview, cluster)
    return overview.models(cluster)


def _require_known(overview: Overview, cluster: str) -> None:
    """Check that the cluster of a filter exists, since an empty list would hide a wrong name."""
    if cluster and cluster not in (known := overview.cluster_names()):
        raise unknown_name("cluster", cluster, known)


def _found(overview: Overview, wanted: FleetFilter) -> Found:
    _require_known(overview, wanted.cluster)
    return overview.find_nodes(wanted)


def _nodes(request: Request, query: FleetQuery) -> dict[str, Any]:
    overview, first = pipeline_of(request).plane.overview, number_after(query.after)
    found = _found(overview, query.wanted)
    at = found.nodes[first : first + query.limit].tolist()
    return {
        "nodes": [node_fields(each, caller_of(request).tenant) for each in overview.look_at(found, at)],
        "next": _following(first + query.limit, len(found.nodes)),
        "first": first,
        "found": found_fields(found),
    }


def _map(request: Request, query: MapQuery) -> dict[str, Any]:
    overview = pipeline_of(request).plane.overview
    found = _found(overview, query.wanted)
    nodes = [node_use_fields(each, caller_of(request).tenant) for each in overview.node_uses(found)]
    return {"nodes": nodes, "found": found_fields(found)}


def _devices(request: Request, query: FleetQuery) -> dict[str, Any]:
    overview, first = pipeline_of(request).plane.overview, number_after(query.after)
    found = _found(overview, query.wanted)
    devices = overview.look_at_devices(found, found.devices[first : first + query.limit].tolist())
    return {
        "devices": [device_fields(each, caller_of(request).tenant) for each in devices],
        "next": _following(first + query.limit, len(found.devices)),
        "first": first,
        "found": found_fields(found),
    }


def _slices(request: Request, query: FleetQuery) -> dict[str, Any]:
    """Return a page of slices; the token of the next page contains its first device and slice."""
    overview = pipeline_of(request).plane.overview
    first, skip = divmod(number_after(query.after), SLICES_OF_A_DEVICE)
    found = _found(overview, query.wanted)
    devices = overview.look_at_devices(found, found.shared[first : first + query.limit].tolist())
    rows: list[dict[str, Any]] = []
    for device in devices:
        room = query.limit - len(rows)
        rows += [placed_slice_fields(each, device, caller_of(request).tenant) for each in device.slices[skip:][:room]]
        if len(device.slices) - skip > room:
            skip += room
            break
        first, skip = first + 1, 0
    following = page_token(str(first * SLICES_OF_A_DEVICE + skip)) if first < len(found.shared) else None
    return {"slices": rows, "next": following, "found": found_fields(found)}


def _following(first: int, among: int) -> str | None:
    """Return the token of the page that begins with entry `first`; None after the last page."""
    return page_token(str(first)) if first < among else None


@operation(routes, "GET", "/fleet/orphans", Role.OPERATOR, {200: OrphanList})
async def list_orphans(
    request: Request, cluster: Annotated[Word, Query(description="Filter by cluster.")] = ""
) -> Response:
    """List orphaned workloads with their allocations.

    These workloads belong to no stored job, for example after the restore of an older backup.
    """
    pipeline = pipeline_of(request)
    found = await pipeline.threads.read(pipeline.plane.operations.orphans, cluster)
    return json_reply({"orphans": [orphan_fields(each) for each in found]})


@operation(
    routes, "DELETE", "/fleet/clusters/{cluster}/orphans", Role.OPERATOR, {202: OrphansRemoved}, errors=(404, 409)
)
async def remove_orphans(
    request: Request,
    cluster: str,
    name: Annotated[Word, Query(description="Name of one orphaned workload. Default: all of the cluster.")] = "",
) -> Response:
    """Remove orphaned workloads from a cluster.

    Make sure that they do not belong to another user of the cluster.
    """
    pipeline = pipeline_of(request)
    removed = await pipeline.threads.write(
        pipeline.plane.operations.remove_orphans, cluster, caller_of(request).name, name
    )
    return json_reply({"removed": removed}, 202)
