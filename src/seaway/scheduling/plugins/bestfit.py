"""Best fit: the node on which least is left afterwards."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.columns import (
    DEVICE_CORE,
    DEVICE_MEMORY,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.tight import TightParams, left_column, left_of_devices
from seaway.scheduling.snapshot import Snapshot

MIB_PER_GIB = 1024


class BestFit:
    """Scores a node by how little CPU and GPU the replica would leave on it.

    References
    ----------
    Weng et al.: Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
    Gradient Descent. USENIX ATC 2023 (the rival ``best fit``).
    """

    name = "BestFit"

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,), at most 100."""
        return left_column(cycle.snapshot.arrays, cycle.snapshot.demands.arrays, cycle.line)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices by what is left on them, least first."""
        nodes = cycle.snapshot.arrays.nodes
        first, end = nodes[NODE_DEVICE_FIRST, node], nodes[NODE_DEVICE_END, node]
        return left_of_devices(cycle.snapshot.arrays, cycle.snapshot.demands.arrays, cycle.line, first, end)

    def params(self, snapshot: Snapshot) -> TightParams:
        """Return the policy for the compiled path."""
        core, memory = snapshot.arrays.devices[[DEVICE_CORE, DEVICE_MEMORY]].astype(np.int64)
        per_gib = -(-core * MIB_PER_GIB // np.maximum(memory, 1))
        return TightParams(
            most_core_per_gib=int(per_gib.max(initial=0)) + 1,
            most_core=int(core.max(initial=0)),
        )
