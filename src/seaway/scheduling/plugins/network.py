"""The network: the link from the user's gateway to the cluster."""

from __future__ import annotations

import numpy as np

from seaway.domain.network import Link, NetworkNeed
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    CLUSTERS_PAID,
    DEMAND_BANDWIDTH,
    DEMAND_GATEWAY,
    NODE_CLUSTER,
)
from seaway.scheduling.encode import link_meets
from seaway.scheduling.framework import Codes, Cycle
from seaway.scheduling.links import free_bandwidth
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.static import Static

CLOSED, NO_GATEWAY, NOT_MEASURED, SILENT, LATENCY, JITTER, LOSS, BANDWIDTH, INTERFACE = range(1, 10)


class Network:
    """Refuses the nodes of clusters that may not be chosen, and of those whose link is not good enough.

    A job that sets no bound is refused by no link, and no link is crossed to a cluster behind the
    user's own gateway. A job takes its bandwidth to a cluster once, however many replicas go there.
    """

    name = "Network"
    reasons = (
        "in a cluster closed to this decision",
        "cluster has no gateway",
        "link to the cluster not measured",
        "nothing answers on the link to the cluster",
        "latency above the bound",
        "jitter above the bound",
        "loss above the bound",
        "not enough free bandwidth",
        "not enough free bandwidth on the interface of a gateway",
    )

    def __init__(self) -> None:
        self._links = Static(links_refused)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        codes = np.zeros(len(cycle.snapshot.clusters), np.uint8)
        if cycle.demand.network.any:
            codes[:] = self._links(cycle.snapshot, (cycle.demand.gateway, cycle.demand.network))
            short = bandwidth_refused(cycle)
            codes[codes == 0] = short[codes == 0]
        codes[~cycle.usable] = CLOSED
        by_node: Codes = codes[cycle.snapshot.arrays.nodes[NODE_CLUSTER]]
        return by_node


def bandwidth_refused(cycle: Cycle) -> Codes:
    """Return why clusters cannot be promised the bandwidth that the job would take, 0 where they can, shape (C,)."""
    arrays = cycle.snapshot.arrays
    line = cycle.snapshot.demands.arrays.amounts[cycle.line]
    targets = arrays.clusters[CLUSTER_GATEWAY]
    source, mbps = line[DEMAND_GATEWAY], line[DEMAND_BANDWIDTH]
    owes = (arrays.clusters_open[CLUSTERS_PAID] == 0) & ((targets < 0) | (mbps > 0))
    codes = np.zeros(len(targets), np.uint8)
    codes[owes & (free_bandwidth(arrays, source, targets) < mbps)] = INTERFACE
    codes[owes & ((targets < 0) | (arrays.bandwidth[source, targets] < mbps))] = BANDWIDTH
    return codes


def links_refused(snapshot: Snapshot, asked: tuple[str, NetworkNeed]) -> Codes:
    """Return why the link from a gateway to each cluster is refused, 0 where it is not, shape (C,)."""
    source, need = asked
    links = {link.target: link for link in snapshot.links if link.source == source}
    codes = np.zeros(len(snapshot.clusters), np.uint8)
    for c, cluster in enumerate(snapshot.clusters):
        if cluster.gateway != source:
            codes[c] = link_refused(cluster.gateway, need, links.get(cluster.gateway))
    return codes


def link_refused(gateway: str, need: NetworkNeed, link: Link | None) -> int:
    """Return why `link`, which leads to a cluster's `gateway`, is refused; 0 when it is not."""
    if not gateway:
        return NO_GATEWAY
    if link is None:
        return NOT_MEASURED
    if not link.answers:
        return SILENT
    bounds = (
        (LATENCY, NetworkNeed(max_latency_ns=need.max_latency_ns)),
        (JITTER, NetworkNeed(max_jitter_ns=need.max_jitter_ns)),
        (LOSS, NetworkNeed(max_loss_ppm=need.max_loss_ppm)),
    )
    return next((code for code, bound in bounds if not link_meets(bound, link)), 0)
