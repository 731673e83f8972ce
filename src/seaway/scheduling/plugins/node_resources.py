"""Node resources: CPU and memory of the node itself."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.columns import DEMAND_CPU, DEMAND_MEMORY, NODE_CPU_FREE, NODE_MEMORY_FREE
from seaway.scheduling.framework import Codes, Cycle


class NodeResources:
    """Refuses nodes that have not enough CPU or memory left."""

    name = "NodeResources"
    reasons = ("not enough free CPU", "not enough free memory")

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        nodes = cycle.snapshot.arrays.nodes
        amounts = cycle.snapshot.demands.arrays.amounts[cycle.line]
        codes = np.zeros(nodes.shape[1], np.uint8)
        codes[nodes[NODE_MEMORY_FREE] < amounts[DEMAND_MEMORY]] = 2
        codes[nodes[NODE_CPU_FREE] < amounts[DEMAND_CPU]] = 1
        return codes
