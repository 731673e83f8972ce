"""Spread: the node on which most is left."""

from __future__ import annotations

from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.column import key_column, score_column
from seaway.scheduling.kernels.loose import LooseParams
from seaway.scheduling.snapshot import Snapshot


class Spread:
    """Scores a node by how much CPU and GPU the replica would leave on it, and takes the emptiest devices."""

    name = "Spread"

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,), by what is left in CPU milli with a device worth 16,000."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(LooseParams(), arrays, demands, cycle.line, cycle.draw)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices by what is left on them, most first."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(LooseParams(), arrays, demands, cycle.line, node, cycle.draw)

    def params(self, snapshot: Snapshot) -> LooseParams:
        """Return the policy for the compiled path."""
        return LooseParams()
