"""Node resources: CPU and memory of the node itself, and how many pods it takes."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.columns import DEMAND_CPU, DEMAND_MEMORY, NODE_CPU_FREE, NODE_MEMORY_FREE, NODE_PODS_FREE
from seaway.scheduling.framework import Codes, Cycle


class NodeResources:
    """Refuses nodes that have not enough CPU or memory left, or no room for another pod."""

    name = "NodeResources"
    reasons = ("not enough free CPU", "not enough free memory", "no room for another pod")

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        nodes = cycle.snapshot.arrays.nodes
        amounts = cycle.snapshot.demands.arrays.amounts[cycle.line]
        codes = np.zeros(nodes.shape[1], np.uint8)
        codes[nodes[NODE_MEMORY_FREE] < amounts[DEMAND_MEMORY]] = 2
        codes[nodes[NODE_CPU_FREE] < amounts[DEMAND_CPU]] = 1
        codes[nodes[NODE_PODS_FREE] < 1] = 3  # that no smaller job mends
        return codes
