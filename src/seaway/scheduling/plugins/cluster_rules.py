"""Cluster rules: the clusters, regions and hardware that a job asks for."""

from __future__ import annotations

import numpy as np

from seaway.domain.job import NodeRules
from seaway.scheduling.columns import NODE_CLUSTER
from seaway.scheduling.encode import cluster_allowed
from seaway.scheduling.framework import Codes, Cycle
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.static import Static


class ClusterRules:
    """Refuses the nodes of clusters that the job does not allow."""

    name = "ClusterRules"
    reasons = (
        "cluster not among those asked for",
        "region not among those asked for",
        "cluster lacks hardware asked for",
    )

    def __init__(self) -> None:
        self._clusters = Static(clusters_refused)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        rules = cycle.demand.nodes
        asked = NodeRules(clusters=rules.clusters, regions=rules.regions, hardware=rules.hardware)
        codes = self._clusters(cycle.snapshot, asked)
        by_node: Codes = codes[cycle.snapshot.arrays.nodes[NODE_CLUSTER]]
        return by_node


def clusters_refused(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return the code of the first rule that refuses each cluster, 0 without one, shape (C,)."""
    parts = (
        NodeRules(clusters=rules.clusters),
        NodeRules(regions=rules.regions),
        NodeRules(hardware=rules.hardware),
    )
    codes = np.zeros(len(snapshot.clusters), np.uint8)
    for c, cluster in enumerate(snapshot.clusters):
        refusing = (code for code, part in enumerate(parts, 1) if not cluster_allowed(part, cluster))
        codes[c] = next(refusing, 0)
    return codes
