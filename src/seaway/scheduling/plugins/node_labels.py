"""Node labels: what Kubernetes calls a node selector."""

from __future__ import annotations

import numpy as np

from seaway.domain.job import NodeRules
from seaway.scheduling.encode import labels_allow
from seaway.scheduling.framework import Codes, Cycle
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.static import Static


class NodeLabels:
    """Refuses nodes that do not carry the labels that the job asks for."""

    name = "NodeLabels"
    reasons = ("label missing or different",)

    def __init__(self) -> None:
        self._refused = Static(labels_refused)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        return self._refused(cycle.snapshot, NodeRules(node_labels=cycle.demand.nodes.node_labels))


def labels_refused(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return 1 for each node that lacks a label, shape (N,)."""
    if not rules.node_labels:
        return np.zeros(len(snapshot.nodes), np.uint8)
    return np.array([not labels_allow(rules, node) for node in snapshot.nodes], np.uint8)
