"""Avoidance: nodes and clusters that would not have a job when it was sent there."""

from __future__ import annotations

import numpy as np

from seaway.domain.job import NodeRules
from seaway.scheduling.encode import avoided
from seaway.scheduling.framework import Codes, Cycle
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.static import Static


class Avoidance:
    """Refuses nodes that a job is kept from."""

    name = "Avoidance"
    reasons = ("the job was refused there",)

    def __init__(self) -> None:
        self._refused = Static(avoidance_refused)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        return self._refused(cycle.snapshot, NodeRules(avoid=cycle.demand.nodes.avoid))


def avoidance_refused(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return 1 for each node that is avoided, shape (N,)."""
    codes = np.zeros(len(snapshot.nodes), np.uint8)
    if rules.avoid:
        for (cluster, node), n in snapshot.node_index.items():
            codes[n] = avoided(rules, cluster, node)
    return codes
