"""Cluster level: a rule chooses the cluster, then its first node and devices that fit are taken."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.columns import NODE_CLUSTER, NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.clusterwise import ClusterRule, ClusterwiseParams
from seaway.scheduling.kernels.column import key_column, score_column
from seaway.scheduling.snapshot import Snapshot


class Clusterwise:
    """Scores a node as its cluster ranks.

    Parameters
    ----------
    rule
        How clusters are ranked; equal ones rank in their order.
    """

    name = "Clusterwise"

    def __init__(self, rule: ClusterRule) -> None:
        self._rule = rule

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,): all nodes of a cluster alike, no two clusters alike."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(self.params(cycle.snapshot), arrays, demands, cycle.line, cycle.draw)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices alike."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(self.params(cycle.snapshot), arrays, demands, cycle.line, node, cycle.draw)

    def params(self, snapshot: Snapshot) -> ClusterwiseParams:
        """Return the policy for the compiled path."""
        nodes, clusters = snapshot.arrays.nodes, len(snapshot.clusters)
        devices = np.zeros(clusters, np.int64)
        np.add.at(devices, nodes[NODE_CLUSTER], nodes[NODE_DEVICE_END] - nodes[NODE_DEVICE_FIRST])
        return ClusterwiseParams(
            rule=int(self._rule),
            devices=devices,
            rank=np.zeros(clusters, np.int64),
            best=np.zeros(1, np.int64),
        )
