"""Calls about the fleet: clusters, nodes, devices, slices, links, gateways, cordons."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from seaway.client.call import Answer, Call, Model, Nothing, Paged, get, page_size, part, send

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from seaway.wire.events import RecentEvents
    from seaway.wire.fleet import (
        ClusterHistory,
        ClusterList,
        ClusterOut,
        ClusterSampleOut,
        CordonList,
        CordonOut,
        DeviceOut,
        DevicePage,
        FleetMap,
        GatewayList,
        LinkHistory,
        LinkSampleOut,
        LinkSteps,
        ModelList,
        NodeOut,
        NodePage,
        SliceOut,
        SlicePage,
        UsageHistoryOut,
    )
    from seaway.wire.links import LinkList, NetLinks
    from seaway.wire.metrics import MetricsOut
    from seaway.wire.orphans import OrphanList, OrphansRemoved


_WIRE = "seaway.wire.fleet"

CLUSTER: Answer[ClusterOut] = Model(_WIRE, "ClusterOut")
CLUSTERS: Answer[ClusterList] = Model(_WIRE, "ClusterList")
MAP: Answer[FleetMap] = Model(_WIRE, "FleetMap")
NODES: Answer[NodePage] = Model(_WIRE, "NodePage")
DEVICES: Answer[DevicePage] = Model(_WIRE, "DevicePage")
MODELS: Answer[ModelList] = Model(_WIRE, "ModelList")
SLICES: Answer[SlicePage] = Model(_WIRE, "SlicePage")
LINKS: Answer[LinkList] = Model("seaway.wire.links", "LinkList")
NET_LINKS: Answer[NetLinks] = Model("seaway.wire.links", "NetLinks")
GATEWAYS: Answer[GatewayList] = Model(_WIRE, "GatewayList")
CORDON: Answer[CordonOut] = Model(_WIRE, "CordonOut")
CORDONS: Answer[CordonList] = Model(_WIRE, "CordonList")
CLUSTER_HISTORY: Answer[ClusterHistory] = Model(_WIRE, "ClusterHistory")
LINK_HISTORY: Answer[LinkHistory] = Model(_WIRE, "LinkHistory")
RECENT_EVENTS: Answer[RecentEvents] = Model("seaway.wire.events", "RecentEvents")
USAGE_HISTORY: Answer[UsageHistoryOut] = Model(_WIRE, "UsageHistoryOut")
LINK_STEPS: Answer[LinkSteps] = Model(_WIRE, "LinkSteps")
METRICS: Answer[MetricsOut] = Model("seaway.wire.metrics", "MetricsOut")


_FLAGS = ("ready", "healthy")


class FleetFilter(TypedDict, total=False):
    """Filter of nodes and devices. Omitted fields do not filter.

    Attributes
    ----------
    cluster, node
        Names.
    name, device, model
        Parts of a node's name, of a device's UUID and of its model.
    free_memory_mib, free_core_milli
        Minimum free amounts of one device.
    ready
        Whether they accept new jobs.
    healthy
        False for nodes that are not ready or have an unhealthy device.
    """

    cluster: str
    node: str
    name: str
    device: str
    model: str
    free_memory_mib: int
    free_core_milli: int
    ready: bool | None
    healthy: bool | None


def clusters() -> Call[ClusterList]:
    """List clusters with their totals."""
    return get("/fleet/clusters", CLUSTERS)


def cluster(name: str) -> Call[ClusterOut]:
    """Return a cluster."""
    return get(f"/fleet/clusters/{part(name)}", CLUSTER)


def remove_cluster(name: str) -> Call[None]:
    """Remove a cluster that has left the fleet permanently."""
    return send("DELETE", f"/fleet/clusters/{part(name)}", Nothing())


def nodes(*, limit: int | None = None, after: str = "", **wanted: Unpack[FleetFilter]) -> Paged[NodeOut]:
    """List nodes with their devices and slices, filtered, from the page of `after` on."""
    return Paged(get("/fleet/nodes", NODES, _wanted(limit, after, wanted)), "nodes", limit=limit)


def fleet_map(**wanted: Unpack[FleetFilter]) -> Call[FleetMap]:
    """Return the allocated GPUs of all nodes, or of those that match."""
    return get("/fleet/map", MAP, _filter(wanted))


def devices(*, limit: int | None = None, after: str = "", **wanted: Unpack[FleetFilter]) -> Paged[DeviceOut]:
    """List devices with their slices, as `nodes` lists nodes."""
    return Paged(get("/fleet/devices", DEVICES, _wanted(limit, after, wanted)), "devices", limit=limit)


def slices(*, limit: int | None = None, after: str = "", **wanted: Unpack[FleetFilter]) -> Paged[SliceOut]:
    """List slices of devices with their owners, as `nodes` lists nodes."""
    return Paged(get("/fleet/slices", SLICES, _wanted(limit, after, wanted)), "slices", limit=limit)


def models(cluster: str = "") -> Call[ModelList]:
    """Sum up devices by model, in one cluster or in all."""
    return get("/fleet/models", MODELS, {"cluster": cluster or None})


def metrics(metric: str = "", *, cluster: str = "") -> Call[MetricsOut]:
    """List the metrics of clusters, devices and vGPUs: one or all, of one cluster or of all."""
    return get("/metrics", METRICS, {"metric": metric or None, "cluster": cluster or None})


def links(*, source: str = "", target: str = "", cluster: str = "") -> Call[LinkList]:
    """List links with the figures for decisions and their sources: of a source, to a target, at a cluster, or all."""
    return get("/fleet/links", LINKS, _ends(source, target, cluster))


def measured_links(*, source: str = "", target: str = "", cluster: str = "") -> Call[NetLinks]:
    """List the latest measurements of links, in the common format of measuring programs."""
    return get("/links", NET_LINKS, _ends(source, target, cluster))


def gateways() -> Call[GatewayList]:
    """List gateways."""
    return get("/fleet/gateways", GATEWAYS)


def cluster_history(cluster: str = "", *, since: str = "", limit: int | None = None) -> Paged[ClusterSampleOut]:
    """List samples of the allocation of clusters, oldest first, from the moment `since` on."""
    query = {"cluster": cluster or None, "since": since or None, "limit": page_size(limit)}
    return Paged(get("/fleet/history/clusters", CLUSTER_HISTORY, query), "samples", limit=limit)


def fleet_events(limit: int | None = None) -> Call[RecentEvents]:
    """List the latest events of the fleet, newest first."""
    return get("/fleet/events", RECENT_EVENTS, {"limit": limit})


def usage_history(
    by: str = "fleet", span: str = "day", *, tenant: str = "", queue: str = "", limit: int = 10
) -> Call[UsageHistoryOut]:
    """Return the history of use: `by` fleet, cluster, tenant or queue, over an hour, day, week or month until now."""
    query = {"by": by, "span": span, "tenant": tenant or None, "queue": queue or None, "limit": limit}
    return get("/fleet/history/usage", USAGE_HISTORY, query)


def link_history(
    source: str = "", target: str = "", *, since: str = "", limit: int | None = None
) -> Paged[LinkSampleOut]:
    """List samples of links, oldest first, from the moment `since` on."""
    query = {"source": source or None, "target": target or None, "since": since or None, "limit": page_size(limit)}
    return Paged(get("/fleet/history/links", LINK_HISTORY, query), "samples", limit=limit)


def link_steps(source: str, target: str, *, since: str, step_s: int) -> Call[LinkSteps]:
    """List measurements of a link in steps of time, with minimum, mean and maximum, from the moment `since` on."""
    return get(
        "/fleet/history/links/steps",
        LINK_STEPS,
        {"source": source, "target": target, "since": since, "step": step_s},
    )


def set_cluster(cluster: str, facts: Mapping[str, Any]) -> Call[ClusterOut]:
    """Set facts of a cluster, such as its region and prices; return the cluster.

    Parameters
    ----------
    facts
        A merge patch (RFC 7396) with the fields of `ClusterOut.own_facts`: omitted fields stay; None returns to what
        the cluster reports.
    """
    call = send("PATCH", f"/fleet/clusters/{part(cluster)}/facts", CLUSTER, facts)
    headers = {**call.headers, "Content-Type": "application/merge-patch+json"}
    return Call(call.method, call.path, CLUSTER, {}, headers, call.content, repeatable=True)


def cordons() -> Call[CordonList]:
    """List cordoned clusters and nodes with reasons."""
    return get("/cordons", CORDONS)


def cordon(cluster: str, node: str = "", *, reason: str = "") -> Call[CordonOut]:
    """Cordon a cluster or one of its nodes: it gets no new jobs."""
    return _cordon(cluster, node, reason, drain=False)


def drain(cluster: str, node: str = "", *, reason: str = "") -> Call[CordonOut]:
    """Cordon a cluster or one of its nodes, and move its jobs elsewhere."""
    return _cordon(cluster, node, reason, drain=True)


def uncordon(cluster: str, node: str = "") -> Call[None]:
    """Remove a cordon."""
    call = send("DELETE", "/cordons", Nothing())
    return Call(call.method, call.path, Nothing(), {"cluster": cluster, "node": node or None})


def _cordon(cluster: str, node: str, reason: str, *, drain: bool) -> Call[CordonOut]:
    return send("POST", "/cordons", CORDON, {"cluster": cluster, "node": node, "drain": drain, "reason": reason})


def _ends(source: str, target: str, cluster: str) -> dict[str, str | None]:
    return {"source": source or None, "target": target or None, "cluster": cluster or None}


def _wanted(limit: int | None, after: str, wanted: FleetFilter) -> dict[str, str | int | None]:
    return {**_filter(wanted), "after": after or None, "limit": page_size(limit)}


def _filter(wanted: FleetFilter) -> dict[str, str | int | None]:
    return {
        name: (None if value is None else str(value).lower()) if name in _FLAGS else value or None  # type: ignore[misc]
        for name, value in wanted.items()
    }


_WIRE_ORPHANS = "seaway.wire.orphans"

ORPHANS: Answer[OrphanList] = Model(_WIRE_ORPHANS, "OrphanList")
REMOVED: Answer[OrphansRemoved] = Model(_WIRE_ORPHANS, "OrphansRemoved")


def orphans(*, cluster: str = "") -> Call[OrphanList]:
    """List orphaned workloads with their allocations."""
    return get("/fleet/orphans", ORPHANS, {"cluster": cluster or None})


def remove_orphans(cluster: str, name: str = "") -> Call[OrphansRemoved]:
    """Remove an orphaned workload from a cluster; without a name, all of them."""
    call = send("DELETE", f"/fleet/clusters/{part(cluster)}/orphans", REMOVED)
    return replace(call, query={"name": name or None})
