"""The fleet: clusters, nodes, devices, slices, links, gateways, and how they were before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import Query, Request, Response

from seaway.api.desk import desk_of, who_of
from seaway.api.finding import After, number_after, page_token, sample_after, sample_token
from seaway.api.job_query import Moment, Word
from seaway.api.replies import json_reply, nothing
from seaway.api.routes import operation, router
from seaway.application.ports.store import MOST_ROWS, Store
from seaway.application.records import Role
from seaway.application.views import ClusterView
from seaway.domain.errors import UnknownError
from seaway.wire.fleet import (
    ClusterHistory,
    ClusterList,
    ClusterOut,
    DevicePage,
    GatewayList,
    LinkHistory,
    NodePage,
    SlicePage,
    cluster_fields,
    cluster_sample_fields,
    device_fields,
    gateway_fields,
    link_sample_fields,
    node_fields,
    slice_fields,
)
from seaway.wire.times import at_ns

Thing = TypeVar("Thing")

routes = router("fleet")

InCluster = Annotated[Word, Query(description="Only in this cluster.")]
OnNode = Annotated[Word, Query(description="Only on this node.")]
OnlyNode = Annotated[Word, Query(description="Only this node.")]
Named = Annotated[Word, Query(description="Only with this in the name.")]
AfterSample = Annotated[str, Query(max_length=2000, description="What `next` of the page before said.")]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS, description="Entries on a page.")]
Since = Annotated[Moment, Query(description="From this moment on, like 2026-11-21T10:00:00Z.")]


@operation(routes, "GET", "/fleet/clusters", Role.VIEWER, {200: ClusterList})
async def list_clusters(request: Request) -> Response:
    """List clusters, summed up; strays, which may be other tenants', are named to operators and admins."""
    desk = desk_of(request)
    views = await desk.threads.read(desk.plane.overview.clusters)
    return json_reply({"clusters": [_seen(request, each) for each in views]})


@operation(routes, "GET", "/fleet/clusters/{cluster}", Role.VIEWER, {200: ClusterOut}, errors=(404,))
async def get_cluster(request: Request, cluster: str) -> Response:
    """Look a cluster up, as the list shows it."""
    desk = desk_of(request)
    for view in await desk.threads.read(desk.plane.overview.clusters):
        if view.name == cluster:
            return json_reply(_seen(request, view))
    raise UnknownError(f"there is no cluster {cluster[:253]!r}")


@operation(routes, "DELETE", "/fleet/clusters/{cluster}", Role.OPERATOR, {204: None}, errors=(404, 409))
async def forget_cluster(request: Request, cluster: str) -> Response:
    """Give a cluster up for good that is not of the fleet any more; what is held there is free, its jobs go elsewhere.

    What still runs there goes on and is nobody's: be sure that the cluster is switched off, or empty.
    """
    desk = desk_of(request)
    await desk.threads.write(desk.plane.forgetting.forget, cluster, who_of(request).name)
    return nothing()


@operation(routes, "GET", "/fleet/nodes", Role.VIEWER, {200: NodePage})
async def list_nodes(
    request: Request,
    cluster: InCluster = "",
    node: OnlyNode = "",
    name: Named = "",
    after: After = "",
    limit: Limit = 100,
) -> Response:
    """List nodes with their devices and slices; whose slices of other tenants are stays hidden."""
    desk, who = desk_of(request), who_of(request)

    def page() -> dict[str, Any]:
        nodes = [each for each in desk.plane.overview.nodes(cluster) if node in ("", each.name) and name in each.name]
        rows, following = _page(nodes, after, limit)
        return {"nodes": [node_fields(row, who.tenant) for row in rows], "next": following}

    return json_reply(await desk.threads.read(page))


@operation(routes, "GET", "/fleet/devices", Role.VIEWER, {200: DevicePage})
async def list_devices(
    request: Request, cluster: InCluster = "", node: OnNode = "", after: After = "", limit: Limit = 100
) -> Response:
    """List devices with their slices."""
    desk, who = desk_of(request), who_of(request)

    def page() -> dict[str, Any]:
        nodes = (each for each in desk.plane.overview.nodes(cluster) if node in ("", each.name))
        rows, following = _page([device for each in nodes for device in each.devices], after, limit)
        return {"devices": [device_fields(row, who.tenant) for row in rows], "next": following}

    return json_reply(await desk.threads.read(page))


@operation(routes, "GET", "/fleet/slices", Role.VIEWER, {200: SlicePage})
async def list_slices(
    request: Request, cluster: InCluster = "", node: OnNode = "", after: After = "", limit: Limit = 100
) -> Response:
    """List slices of devices, and who holds them."""
    desk, who = desk_of(request), who_of(request)

    def page() -> dict[str, Any]:
        nodes = (each for each in desk.plane.overview.nodes(cluster) if node in ("", each.name))
        held = [(part, device) for each in nodes for device in each.devices for part in device.slices]
        rows, following = _page(held, after, limit)
        return {"slices": [slice_fields(part, device, who.tenant) for part, device in rows], "next": following}

    return json_reply(await desk.threads.read(page))


@operation(routes, "GET", "/fleet/gateways", Role.VIEWER, {200: GatewayList})
async def list_gateways(request: Request) -> Response:
    """List gateways."""
    return json_reply({"gateways": [gateway_fields(each) for each in desk_of(request).plane.overview.gateways()]})


@operation(routes, "GET", "/fleet/history/clusters", Role.VIEWER, {200: ClusterHistory})
async def list_cluster_samples(
    request: Request, cluster: InCluster = "", since: Since = "", after: AfterSample = "", limit: Limit = MOST_ROWS
) -> Response:
    """List how full clusters were, oldest first."""
    from_ns, (name,) = sample_after(after, 1) or (_from(since), ("",))
    rows = await _samples(request, lambda store: store.cluster_samples(cluster, from_ns, limit, name))
    following = sample_token(rows[-1].at_ns, rows[-1].cluster) if len(rows) == limit else None
    return json_reply({"samples": [cluster_sample_fields(row) for row in rows], "next": following})


@operation(routes, "GET", "/fleet/history/links", Role.VIEWER, {200: LinkHistory})
async def list_link_samples(
    request: Request,
    source: Word = "",
    target: Word = "",
    since: Since = "",
    after: AfterSample = "",
    limit: Limit = MOST_ROWS,
) -> Response:
    """List what was measured of links, oldest first."""
    from_ns, (near, far) = sample_after(after, 2) or (_from(since), ("", ""))
    rows = await _samples(request, lambda store: store.link_samples(source, target, from_ns, limit, (near, far)))
    following = sample_token(rows[-1].at_ns, rows[-1].source, rows[-1].target) if len(rows) == limit else None
    return json_reply({"samples": [link_sample_fields(row) for row in rows], "next": following})


def _seen(request: Request, view: ClusterView) -> dict[str, Any]:
    """Return a cluster as who asks may see it."""
    return cluster_fields(replace(view, strays=()) if who_of(request).tenant else view)


async def _samples(request: Request, read: Callable[[Store], Sequence[Thing]]) -> Sequence[Thing]:
    desk = desk_of(request)
    return await desk.threads.read(read, desk.plane.store)


def _from(since: str) -> int:
    return at_ns(since) if since else 0


def _page(rows: Sequence[Thing], after: str, limit: int) -> tuple[Sequence[Thing], str | None]:
    """Cut a page out of a list that keeps its order; returns what leads to the next one, if there is one."""
    first = number_after(after)
    following = page_token(str(first + limit)) if first + limit < len(rows) else None
    return rows[first : first + limit], following
