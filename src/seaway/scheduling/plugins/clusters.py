"""Plugins for clusters: a filter for clusters, regions and hardware, and a score."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job, NodeRules
from seaway.domain.network import Link
from seaway.scheduling.columns import NODE_CLUSTER
from seaway.scheduling.framework import Codes, Cycle, Mask, Scores
from seaway.scheduling.snapshot.aggregates import free_sums, total_sums
from seaway.scheduling.snapshot.demands import FULL, UNKNOWN, nearness
from seaway.scheduling.snapshot.encode import cluster_allowed, price_allowed
from seaway.scheduling.snapshot.links import UNKNOWN_NS, latency_ns, links_of
from seaway.scheduling.snapshot.rule_masks import FleetCache, RuleCache
from seaway.scheduling.snapshot.snapshot import Snapshot


class ClusterRules:
    """Filter that excludes the nodes of clusters that the job does not allow."""

    name = "ClusterRules"
    reasons = (
        "cluster not requested",
        "region not requested",
        "cluster lacks requested hardware",
        "region of the cluster is unknown",
        "hardware of the cluster is unknown",
        "label of the cluster missing or different",
        "price above the maximum",
        "price unknown",
        "cluster not in the pool of the queue",
    )

    def __init__(self) -> None:
        self._clusters = RuleCache(cluster_reason_codes)
        self._prices = RuleCache(price_reason_codes)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        rules = cycle.demand.nodes
        asked = NodeRules(
            clusters=rules.clusters,
            regions=rules.regions,
            hardware=rules.hardware,
            cluster_labels=rules.cluster_labels,
            pool=rules.pool,
        )
        codes = self._clusters(cycle.snapshot, asked)
        by_node: Codes = codes[cycle.snapshot.arrays.nodes[NODE_CLUSTER]]
        if rules.max_microprice is None:
            return by_node
        prices = self._prices(cycle.snapshot, NodeRules(max_microprice=rules.max_microprice))
        return np.where(by_node == 0, prices, by_node)


def cluster_reason_codes(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return the code of the first rule that excludes each cluster, 0 without one, shape (C,)."""
    parts = (
        NodeRules(clusters=rules.clusters),
        NodeRules(regions=rules.regions),
        NodeRules(hardware=rules.hardware),
        NodeRules(cluster_labels=rules.cluster_labels),
    )
    codes = np.zeros(len(snapshot.clusters), np.uint8)
    for c, cluster in enumerate(snapshot.clusters):
        refusing = (code for code, part in enumerate(parts, 1) if not cluster_allowed(part, cluster))
        unknown = {2: not cluster.region, 3: cluster.facts.hardware is None}
        code = next(refusing, 0)
        codes[c] = LABEL_CODE if code == len(parts) else code + 2 if unknown.get(code) else code
        if rules.pool and cluster.name not in rules.pool:
            codes[c] = POOL_CODE
    return codes


LABEL_CODE, PRICE_CODE, NO_PRICE_CODE, POOL_CODE = 6, 7, 8, 9
"""Codes of the last reasons of `ClusterRules`."""


def price_reason_codes(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return the code of the reason why the price of a node is not allowed, 0 if it is, shape (N,)."""
    codes = np.zeros(len(snapshot.nodes), np.uint8)
    for n, c in enumerate(snapshot.arrays.nodes[NODE_CLUSTER].tolist()):
        cluster, node = snapshot.clusters[c], snapshot.nodes[n]
        if not price_allowed(rules, cluster, node):
            codes[n] = NO_PRICE_CODE if cluster.facts.node_microprice(node) is None else PRICE_CODE
    return codes


MAX_WEIGHT = 1_000_000
"""Maximum weight of a part of the score."""

REGION_LABEL = "region"
"""Label of a job with its preferred region."""


@dataclass(frozen=True, slots=True)
class ClusterWeights:
    """Weights of the parts of a cluster's score; integers from 0, not all 0.

    Attributes
    ----------
    free
        Free resources: the mean free share of CPU, memory, device memory and device cores.
    location
        The job's preferred region, and the latency from its user's gateway.
    topology
        Latency to the clusters of the job's earlier replicas.
    hardware
        Special hardware is left free for jobs that request it.
    price
        Price of a GPU per hour.
    """

    free: int = 1
    location: int = 1
    topology: int = 1
    hardware: int = 1
    price: int = 1

    def __post_init__(self) -> None:
        """Reject weights that are not valid integers, and weights that are all 0."""
        if not all(type(weight) is int and weight <= MAX_WEIGHT for weight in astuple(self)):
            raise RejectedError(f"weights of the cluster score are whole numbers, at most {MAX_WEIGHT:,}")
        if min(astuple(self)) < 0 or not any(astuple(self)):
            raise RejectedError("weights of the cluster score are whole numbers from 0 up, at least one above 0")


class ClusterScore:
    """Score of the nodes of a cluster, 0-100: the weighted mean of five parts of the cluster's score.

    Each part is 0-100. Prices and latencies are scaled over the clusters in which the replica fits; the lowest has 100.
    A part that does not apply to a job is 100 for all clusters.

    Parameters
    ----------
    weights
        Weights of the parts.
    """

    name = "ClusterScore"

    def __init__(self, weights: ClusterWeights = ClusterWeights()) -> None:
        self._weights = weights

    def score(self, cycle: Cycle) -> Scores:
        """Return the score of each node, shape (N,), 0-100."""
        cluster_of = cycle.snapshot.arrays.nodes[NODE_CLUSTER]
        among = np.zeros(len(cycle.snapshot.clusters), np.bool_)
        among[cluster_of[cycle.feasible]] = True
        weights = self._weights
        total = (
            weights.free * free_score(cycle.snapshot)
            + weights.location * location_score(cycle.snapshot, cycle.job, among)
            + weights.topology * topology_score(cycle.snapshot, cycle.placed, among)
            + weights.hardware * hardware_score(cycle.snapshot, cycle.job)
            + weights.price * price_score(cycle.snapshot, cycle.job, among)
        )
        scores: Scores = (total // sum(astuple(weights)))[cluster_of]
        return scores


def free_score(snapshot: Snapshot) -> Scores:
    """Score clusters by their mean free share of four resources, shape (C,)."""
    shares = np.maximum(free_sums(snapshot), 0) * FULL // np.maximum(total_sums(snapshot), 1)
    scores: Scores = shares.sum(axis=0) // len(shares)
    return scores


def location_score(snapshot: Snapshot, job: Job, among: Mask) -> Scores:
    """Score clusters by region and by latency from the user, shape (C,).

    If the job has a user gateway and a label ``region``, this is the mean of both.
    """
    sides = []
    region = job.labels.get(REGION_LABEL)
    if region:
        sides.append(np.array([FULL * (cluster.region == region) for cluster in snapshot.clusters], np.int64))
    if job.demand.gateway:
        sides.append(nearness(user_latency_ns(snapshot, job.demand.gateway), among))
    if not sides:
        return everywhere(snapshot)
    scores: Scores = np.sum(sides, axis=0) // len(sides)
    return scores


def topology_score(snapshot: Snapshot, placed: tuple[int, ...], among: Mask) -> Scores:
    """Score clusters by their maximum latency to the clusters of the nodes `placed`, shape (C,)."""
    if not placed:
        return everywhere(snapshot)
    homes = np.unique(snapshot.arrays.nodes[NODE_CLUSTER, list(placed)])
    return nearness(links_of(snapshot).latency_ns()[:, homes].max(axis=1), among)


def hardware_score(snapshot: Snapshot, job: Job) -> Scores:
    """Score clusters by special hardware that the job does not request, less is better, shape (C,).

    A cluster of unknown hardware scores as one without.
    """
    asked = job.demand.nodes.hardware
    spare = [len((cluster.facts.hardware or frozenset()) - asked) for cluster in snapshot.clusters]
    most = max(spare, default=0)
    return np.array([FULL - FULL * each // max(most, 1) for each in spare], np.int64)


def price_score(snapshot: Snapshot, job: Job, among: Mask) -> Scores:
    """Score clusters by their lowest price of a GPU, shape (C,); 0 if it is unknown.

    For a job without GPUs, all have 100.
    """
    if not job.demand.request.gpus:
        return everywhere(snapshot)
    lowest = np.full(len(snapshot.clusters), UNKNOWN, np.int64)
    np.minimum.at(lowest, snapshot.arrays.nodes[NODE_CLUSTER], node_microprices(snapshot))
    return nearness(lowest, among)


def _node_microprices(snapshot: Snapshot) -> Scores:
    homes = snapshot.arrays.nodes[NODE_CLUSTER].tolist()
    prices = (snapshot.clusters[c].facts.node_microprice(node) for c, node in zip(homes, snapshot.nodes, strict=True))
    return np.array([UNKNOWN if each is None else each for each in prices], np.int64)


node_microprices = FleetCache(_node_microprices)
"""Price of a GPU of each node for an hour, millionths, shape (N,); `UNKNOWN` if it is unknown."""


def user_latency_ns(snapshot: Snapshot, gateway: str) -> Scores:
    """Return the latency from a user's gateway to each cluster, shape (C,); `UNKNOWN_NS` if unknown."""
    links: dict[str, Link] = {link.target: link for link in snapshot.links if link.source == gateway}
    figures = []
    for cluster in snapshot.clusters:
        link = links.get(cluster.gateway)
        here = 0 if cluster.gateway == gateway else UNKNOWN_NS
        figures.append(latency_ns(link) if link else here)
    return np.array(figures, np.int64)


def everywhere(snapshot: Snapshot) -> Scores:
    """Return the score 100 for all clusters, shape (C,)."""
    return np.full(len(snapshot.clusters), FULL, np.int64)
