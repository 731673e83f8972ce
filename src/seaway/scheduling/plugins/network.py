"""Plugins for the network: a filter and a score for the link from the user's gateway to the cluster."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.domain.network import Link, NetworkNeed
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    CLUSTERS_RESERVED,
    DEMAND_BANDWIDTH,
    DEMAND_GATEWAY,
    NODE_CLUSTER,
)
from seaway.scheduling.framework import Codes, Cycle, Mask, Scores
from seaway.scheduling.snapshot.demands import FULL, UNKNOWN, link_figures, nearness
from seaway.scheduling.snapshot.encode import link_meets
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.rule_masks import RuleCache
from seaway.scheduling.snapshot.snapshot import Snapshot

CLOSED, NO_GATEWAY, NOT_MEASURED, UNREACHABLE, LATENCY, JITTER, LOSS, BANDWIDTH, INTERFACE = range(1, 10)


class Network:
    """Filter that excludes the nodes of closed clusters, and of clusters whose link violates the job's bounds.

    Links are not checked for jobs without bounds, and not for clusters behind the user's own gateway. A job reserves
    its bandwidth to a cluster once, regardless of the number of replicas there.
    """

    name = "Network"
    reasons = (
        "in a cluster that is cordoned or does not answer",
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
        self._links = RuleCache(link_reason_codes)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        codes = np.zeros(len(cycle.snapshot.clusters), np.uint8)
        if cycle.demand.network.any:
            codes[:] = self._links(cycle.snapshot, (cycle.demand.gateway, cycle.demand.network))
            short = bandwidth_reason_codes(cycle)
            codes[codes == 0] = short[codes == 0]
        codes[~cycle.usable] = CLOSED
        by_node: Codes = codes[cycle.snapshot.arrays.nodes[NODE_CLUSTER]]
        return by_node


def bandwidth_reason_codes(cycle: Cycle) -> Codes:
    """Return a code for each cluster to which the job cannot reserve its bandwidth, else 0, shape (C,)."""
    arrays = cycle.snapshot.arrays
    line = cycle.snapshot.demands.arrays.amounts[cycle.demand_index]
    targets = arrays.clusters[CLUSTER_GATEWAY]
    source, mbps = line[DEMAND_GATEWAY], line[DEMAND_BANDWIDTH]
    is_below_share = (arrays.clusters_open[CLUSTERS_RESERVED] == 0) & ((targets < 0) | (mbps > 0))
    codes = np.zeros(len(targets), np.uint8)
    codes[is_below_share & (free_bandwidth(arrays, source, targets) < mbps)] = INTERFACE
    codes[is_below_share & ((targets < 0) | (arrays.bandwidth[source, targets] < mbps))] = BANDWIDTH
    return codes


def link_reason_codes(snapshot: Snapshot, asked: tuple[str, NetworkNeed]) -> Codes:
    """Return a code for each cluster whose link from a gateway violates the bounds, else 0, shape (C,)."""
    source, need = asked
    links = {link.target: link for link in snapshot.links if link.source == source}
    codes = np.zeros(len(snapshot.clusters), np.uint8)
    for c, cluster in enumerate(snapshot.clusters):
        if cluster.gateway != source:
            codes[c] = link_reason_code(cluster.gateway, need, links.get(cluster.gateway))
    return codes


def link_reason_code(gateway: str, need: NetworkNeed, link: Link | None) -> int:
    """Return the code of the bound that `link` to a cluster's `gateway` violates; 0 if it meets all."""
    if not gateway:
        return NO_GATEWAY
    if link is None:
        return NOT_MEASURED
    if not link.reachable:
        return UNREACHABLE
    bounds = (
        (LATENCY, NetworkNeed(max_latency_ns=need.max_latency_ns)),
        (JITTER, NetworkNeed(max_jitter_ns=need.max_jitter_ns)),
        (LOSS, NetworkNeed(max_loss_ppm=need.max_loss_ppm)),
    )
    return next((code for code, bound in bounds if not link_meets(bound, link)), 0)


MAX_WEIGHT = 1_000_000
"""Maximum weight of a part of the score."""


@dataclass(frozen=True, slots=True)
class NetworkWeights:
    """Weights of the figures of the link from the user's gateway; integers from 0, not all 0.

    Attributes
    ----------
    latency, jitter, loss
        Measurements; less is better.
    bandwidth
        Bandwidth that can be reserved, on the link and on the interfaces at its ends.
    """

    latency: int = 1
    jitter: int = 1
    loss: int = 1
    bandwidth: int = 1

    def __post_init__(self) -> None:
        """Reject weights that are not valid integers, and weights that are all 0."""
        if not all(type(weight) is int and 0 <= weight <= MAX_WEIGHT for weight in astuple(self)):
            raise RejectedError(f"weights of the network score are whole numbers from 0 up, at most {MAX_WEIGHT:,}")
        if not any(astuple(self)):
            raise RejectedError("one of the weights of the network score must be above 0")


class NetworkScore:
    """Score of the nodes of a cluster, 0-100: the weighted mean of four properties of the user's link to it.

    Each property is scaled over the clusters in which the replica fits; the best has 100. Clusters behind the user's
    own gateway have 100. Clusters with an unknown link, or a link that does not respond, have 0. For a job without a
    user gateway, all have 100.

    Parameters
    ----------
    weights
        Weights of the properties.
    """

    name = "NetworkScore"

    def __init__(self, weights: NetworkWeights = NetworkWeights()) -> None:
        self._weights = weights

    def score(self, cycle: Cycle) -> Scores:
        """Return the score of each node, shape (N,), 0-100."""
        snapshot = cycle.snapshot
        cluster_of = snapshot.arrays.nodes[NODE_CLUSTER]
        if not cycle.job.demand.gateway:
            return np.full(len(cluster_of), FULL, np.int64)
        among = np.zeros(len(snapshot.clusters), np.bool_)
        among[cluster_of[cycle.feasible]] = True
        figures = link_figures(snapshot.links, snapshot.clusters, cycle.job.demand.gateway)
        sides = [*(nearness(each, among) for each in figures), bandwidth_score(cycle, figures[0] < UNKNOWN, among)]
        weights = np.array(astuple(self._weights), np.int64)
        scores: Scores = (weights @ np.array(sides, np.int64) // weights.sum())[cluster_of]
        return scores


def bandwidth_score(cycle: Cycle, known: Mask, among: Mask) -> Scores:
    """Score clusters by the bandwidth that can be reserved from the user's gateway, shape (C,), 0-100.

    Parameters
    ----------
    known
        Clusters with a known link, shape (C,). The others have 0.
    among
        Clusters that determine the scale, shape (C,).
    """
    snapshot = cycle.snapshot
    source = int(snapshot.demands.arrays.amounts[cycle.demand_index][DEMAND_GATEWAY])
    targets = snapshot.arrays.clusters[CLUSTER_GATEWAY]
    free = np.where(known, free_bandwidth(snapshot.arrays, source, targets), 0)
    crossed = known & (targets != source)
    most = int(free[crossed & among].max(initial=0))
    return np.where(known, nearness(np.where(crossed, np.maximum(most - free, 0), 0), among), 0)
