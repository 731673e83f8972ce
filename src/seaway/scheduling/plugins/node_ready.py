"""Readiness: nodes that do not answer or are cordoned take no new work."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.columns import NODE_OPEN
from seaway.scheduling.framework import Codes, Cycle


class NodeReady:
    """Refuses nodes that are closed to new work."""

    name = "NodeReady"
    reasons = ("node not ready or cordoned",)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        codes: Codes = (cycle.snapshot.arrays.nodes[NODE_OPEN] == 0).astype(np.uint8)
        return codes
