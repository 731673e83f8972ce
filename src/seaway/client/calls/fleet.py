"""Calls about the fleet: clusters, nodes, devices, slices, links, gateways, cordons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seaway.client.call import Answer, Call, Model, Nothing, Paged, get, part, send

if TYPE_CHECKING:
    from seaway.wire.fleet import (
        ClusterHistory,
        ClusterList,
        ClusterOut,
        ClusterSampleOut,
        CordonList,
        CordonOut,
        DeviceOut,
        DevicePage,
        GatewayList,
        LinkHistory,
        LinkSampleOut,
        NodeOut,
        NodePage,
        SliceHeld,
        SlicePage,
    )
    from seaway.wire.links import LinkList, NetLinks
    from seaway.wire.metrics import MetricsOut

_WIRE = "seaway.wire.fleet"

CLUSTER: Answer[ClusterOut] = Model(_WIRE, "ClusterOut")
CLUSTERS: Answer[ClusterList] = Model(_WIRE, "ClusterList")
NODES: Answer[NodePage] = Model(_WIRE, "NodePage")
DEVICES: Answer[DevicePage] = Model(_WIRE, "DevicePage")
SLICES: Answer[SlicePage] = Model(_WIRE, "SlicePage")
LINKS: Answer[LinkList] = Model("seaway.wire.links", "LinkList")
NET_LINKS: Answer[NetLinks] = Model("seaway.wire.links", "NetLinks")
GATEWAYS: Answer[GatewayList] = Model(_WIRE, "GatewayList")
CORDON: Answer[CordonOut] = Model(_WIRE, "CordonOut")
CORDONS: Answer[CordonList] = Model(_WIRE, "CordonList")
CLUSTER_HISTORY: Answer[ClusterHistory] = Model(_WIRE, "ClusterHistory")
LINK_HISTORY: Answer[LinkHistory] = Model(_WIRE, "LinkHistory")
METRICS: Answer[MetricsOut] = Model("seaway.wire.metrics", "MetricsOut")

PAGE = 500


def clusters() -> Call[ClusterList]:
    """List clusters, summed up."""
    return get("/fleet/clusters", CLUSTERS)


def cluster(name: str) -> Call[ClusterOut]:
    """Look a cluster up."""
    return get(f"/fleet/clusters/{part(name)}", CLUSTER)


def forget_cluster(name: str) -> Call[None]:
    """Give a cluster up for good that is not of the fleet any more."""
    return send("DELETE", f"/fleet/clusters/{part(name)}", Nothing())


def nodes(*, cluster: str = "", node: str = "", name: str = "", limit: int | None = None) -> Paged[NodeOut]:
    """List nodes with their devices and slices: of a cluster, the one of a name, or those with `name` in theirs."""
    query = {**_page(limit, cluster, node), "name": name or None}
    return Paged(get("/fleet/nodes", NODES, query), "nodes", limit=limit)


def devices(*, cluster: str = "", node: str = "", limit: int | None = None) -> Paged[DeviceOut]:
    """List devices with their slices."""
    return Paged(get("/fleet/devices", DEVICES, _page(limit, cluster, node)), "devices", limit=limit)


def slices(*, cluster: str = "", node: str = "", limit: int | None = None) -> Paged[SliceHeld]:
    """List slices of devices, and who holds them."""
    return Paged(get("/fleet/slices", SLICES, _page(limit, cluster, node)), "slices", limit=limit)


def metrics(metric: str = "", *, cluster: str = "") -> Call[MetricsOut]:
    """List the metrics of clusters, devices and vGPUs: one or all, of one cluster or of all."""
    return get("/metrics", METRICS, {"metric": metric or None, "cluster": cluster or None})


def links(*, source: str = "", target: str = "", cluster: str = "") -> Call[LinkList]:
    """List links: what decisions go by, and what that comes from; of a source, to a target, at a cluster, or all."""
    return get("/fleet/links", LINKS, _ends(source, target, cluster))


def net_links(*, source: str = "", target: str = "", cluster: str = "") -> Call[NetLinks]:
    """List what was measured of links last, in the form that measuring programs share."""
    return get("/links", NET_LINKS, _ends(source, target, cluster))


def gateways() -> Call[GatewayList]:
    """List gateways."""
    return get("/fleet/gateways", GATEWAYS)


def cluster_history(cluster: str = "", *, since: str = "", limit: int | None = None) -> Paged[ClusterSampleOut]:
    """List how full clusters were, oldest first, from the moment `since` on."""
    query = {"cluster": cluster or None, "since": since or None, "limit": _size(limit)}
    return Paged(get("/fleet/history/clusters", CLUSTER_HISTORY, query), "samples", limit=limit)


def link_history(
    source: str = "", target: str = "", *, since: str = "", limit: int | None = None
) -> Paged[LinkSampleOut]:
    """List what was measured of links, oldest first, from the moment `since` on."""
    query = {"source": source or None, "target": target or None, "since": since or None, "limit": _size(limit)}
    return Paged(get("/fleet/history/links", LINK_HISTORY, query), "samples", limit=limit)


def cordons() -> Call[CordonList]:
    """List what takes no new work, and why."""
    return get("/cordons", CORDONS)


def cordon(cluster: str, node: str = "", *, reason: str = "") -> Call[CordonOut]:
    """Keep new work away from a cluster, or from one node of it."""
    return _cordon(cluster, node, reason, drain=False)


def drain(cluster: str, node: str = "", *, reason: str = "") -> Call[CordonOut]:
    """Keep new work away, and move away what runs there."""
    return _cordon(cluster, node, reason, drain=True)


def uncordon(cluster: str, node: str = "") -> Call[None]:
    """Let new work come again."""
    call = send("DELETE", "/cordons", Nothing())
    return Call(call.method, call.path, Nothing(), {"cluster": cluster, "node": node or None})


def _cordon(cluster: str, node: str, reason: str, *, drain: bool) -> Call[CordonOut]:
    return send("POST", "/cordons", CORDON, {"cluster": cluster, "node": node, "drain": drain, "reason": reason})


def _ends(source: str, target: str, cluster: str) -> dict[str, str | None]:
    return {"source": source or None, "target": target or None, "cluster": cluster or None}


def _page(limit: int | None, cluster: str, node: str = "") -> dict[str, str | int | None]:
    return {"cluster": cluster or None, "node": node or None, "limit": _size(limit)}


def _size(limit: int | None) -> int:
    """Return how many entries to ask for at once."""
    return PAGE if limit is None else max(1, min(limit, PAGE))
