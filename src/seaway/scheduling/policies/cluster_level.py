"""Policies at the level of clusters: first a cluster is chosen, then its first node and devices that fit.

A rule ranks the clusters by their total and free resources only. The score of a node is the rank of its cluster, so
that the first fitting node of the best possible cluster is chosen.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int64
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    NODE_CLUSTER,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import compiled, mixed, specialises
from seaway.scheduling.kernels.fit import WHOLE_PERCENT
from seaway.scheduling.kernels.policy_stubs import (
    device_key,
    key_column,
    left_bound,
    node_score,
    prepare,
    score_column,
)
from seaway.scheduling.kernels.scan import scanned
from seaway.scheduling.policies.utilization import share_ppm
from seaway.scheduling.snapshot.snapshot import Snapshot

OF_CLUSTER = 2
"""Kind of random numbers for clusters, different from those for nodes and devices."""


class ClusterRule(IntEnum):
    """Ranking of clusters."""

    FIRST = 0
    """Order of the fleet."""
    FULLEST = 1
    """Lowest mean free share first."""
    RANDOM = 2
    """Random order."""
    MATCHING = 3
    """Smallest mean of abs(free - demand)/total first."""
    EMPTIEST = 4
    """Highest mean free share first."""


@scanned
class ClusterLevelParams(NamedTuple):
    """Parameters of a rule for clusters.

    Attributes
    ----------
    rule
        Value of `ClusterRule`.
    devices
        Number of devices of each cluster, shape (C,), int64.
    rank
        Rank of each cluster in the current decision, all different, shape (C,), int64.
    best
        Maximum of `rank`, shape (1,), int64.
    """

    rule: int
    devices: Int64
    rank: Int64
    best: Int64


@compiled
def free_ppm(fleet: FleetArrays, c: int) -> int:
    """Return the sum of the free shares of cluster `c` over the four resources, parts per million."""
    clusters = fleet.clusters
    return (
        share_ppm(clusters[CLUSTER_CPU_FREE, c], clusters[CLUSTER_CPU, c])
        + share_ppm(clusters[CLUSTER_MEMORY_FREE, c], clusters[CLUSTER_MEMORY, c])
        + share_ppm(clusters[CLUSTER_GPU_MEMORY_FREE, c], clusters[CLUSTER_GPU_MEMORY, c])
        + share_ppm(clusters[CLUSTER_GPU_CORE_FREE, c], clusters[CLUSTER_GPU_CORE, c])
    )


@compiled
def cluster_memory_asked(fleet: FleetArrays, demands: DemandArrays, k: int, c: int, devices: int) -> int:
    """Return the device memory that demand `k` requests in cluster `c` with `devices` devices, MiB."""
    amounts = demands.amounts
    each = amounts[k, DEMAND_GPU_MEMORY]
    if each == 0:
        whole = fleet.clusters[CLUSTER_GPU_MEMORY, c] // max(devices, 1)
        each = whole * amounts[k, DEMAND_GPU_PERCENT] // WHOLE_PERCENT
    return each * amounts[k, DEMAND_GPUS]


@compiled
def cluster_mismatch(fleet: FleetArrays, demands: DemandArrays, k: int, c: int, devices: int) -> int:
    """Return the sum of abs(free - demand)/total of cluster `c` over the four resources, parts per million."""
    clusters, amounts = fleet.clusters, demands.amounts
    core = amounts[k, DEMAND_GPU_CORE] * amounts[k, DEMAND_GPUS]
    memory = cluster_memory_asked(fleet, demands, k, c, devices)
    return (
        share_ppm(abs(clusters[CLUSTER_CPU_FREE, c] - amounts[k, DEMAND_CPU]), clusters[CLUSTER_CPU, c])
        + share_ppm(abs(clusters[CLUSTER_MEMORY_FREE, c] - amounts[k, DEMAND_MEMORY]), clusters[CLUSTER_MEMORY, c])
        + share_ppm(abs(clusters[CLUSTER_GPU_MEMORY_FREE, c] - memory), clusters[CLUSTER_GPU_MEMORY, c])
        + share_ppm(abs(clusters[CLUSTER_GPU_CORE_FREE, c] - core), clusters[CLUSTER_GPU_CORE, c])
    )


@compiled
def cluster_score(
    params: ClusterLevelParams, fleet: FleetArrays, demands: DemandArrays, k: int, c: int, random_bits: int
) -> int:
    """Return the score of cluster `c` by the rule; the highest wins."""
    rule = params.rule
    if rule == ClusterRule.FULLEST:
        return -free_ppm(fleet, c)
    if rule == ClusterRule.EMPTIEST:
        return free_ppm(fleet, c)
    if rule == ClusterRule.MATCHING:
        return -cluster_mismatch(fleet, demands, k, c, params.devices[c])
    return mixed(random_bits, c, OF_CLUSTER) >> 24 if rule == ClusterRule.RANDOM else 0


@specialises(prepare, ClusterLevelParams)
def _prepare(params: ClusterLevelParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> None:
    count = params.rank.shape[0]
    for c in range(count):
        # Ties are broken by the order of clusters.
        rank = cluster_score(params, fleet, demands, k, c, random_bits) * count + count - 1 - c
        params.rank[c] = rank
        if c == 0 or rank > params.best[0]:
            params.best[0] = rank


@specialises(node_score, ClusterLevelParams)
def _node_score(
    params: ClusterLevelParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int
) -> int:
    return params.rank[fleet.nodes[NODE_CLUSTER, n]]


@specialises(left_bound, ClusterLevelParams)
def _left_bound(params: ClusterLevelParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return params.best[0]


@specialises(device_key, ClusterLevelParams)
def _device_key(
    params: ClusterLevelParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return 0


class ClusterLevel:
    """Score of a node by the rank of its cluster.

    Parameters
    ----------
    rule
        Ranking of clusters. Ties are broken by their order.
    """

    name = "Clusterwise"

    def __init__(self, rule: ClusterRule) -> None:
        self._rule = rule
        self.draws = rule is ClusterRule.RANDOM

    def score(self, cycle: Cycle) -> Scores:
        """Return the rank of each node's cluster, shape (N,). The ranks of clusters are all different."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(self.params(cycle.snapshot), arrays, demands, cycle.demand_index, cycle.random_bits)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return equal keys for all devices."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(self.params(cycle.snapshot), arrays, demands, cycle.demand_index, node, cycle.random_bits)

    def params(self, snapshot: Snapshot) -> ClusterLevelParams:
        """Return the policy for the compiled path."""
        nodes, clusters = snapshot.arrays.nodes, len(snapshot.clusters)
        devices = np.zeros(clusters, np.int64)
        np.add.at(devices, nodes[NODE_CLUSTER], nodes[NODE_DEVICE_END] - nodes[NODE_DEVICE_FIRST])
        return ClusterLevelParams(
            rule=int(self._rule),
            devices=devices,
            rank=np.zeros(clusters, np.int64),
            best=np.zeros(1, np.int64),
        )
