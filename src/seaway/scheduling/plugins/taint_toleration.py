"""Taints and tolerations, as in Kubernetes."""

from __future__ import annotations

import numpy as np

from seaway.domain.job import NodeRules
from seaway.scheduling.encode import tolerated
from seaway.scheduling.framework import Codes, Cycle
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.static import Static


class TaintToleration:
    """Refuses nodes with a taint that the job does not tolerate.

    Taints with the effect ``PreferNoSchedule`` refuse nothing.
    """

    name = "TaintToleration"
    reasons = ("taint not tolerated",)

    def __init__(self) -> None:
        self._refused = Static(taints_refused)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        return self._refused(cycle.snapshot, NodeRules(tolerations=cycle.demand.nodes.tolerations))


def taints_refused(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return 1 for each node with a taint that is not tolerated, shape (N,)."""
    return np.array([not all(tolerated(rules, taint) for taint in node.taints) for node in snapshot.nodes], np.uint8)
