"""Random: any node that fits."""

from __future__ import annotations

from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.column import key_column, score_column
from seaway.scheduling.kernels.drawn import DrawnParams
from seaway.scheduling.snapshot import Snapshot


class Random:
    """Draws a number for each node and for each device; the same seed draws the same."""

    name = "Random"

    def score(self, cycle: Cycle) -> Scores:
        """Draw a number for every node, shape (N,)."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(DrawnParams(), arrays, demands, cycle.line, cycle.draw)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Draw a number for every device."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(DrawnParams(), arrays, demands, cycle.line, node, cycle.draw)

    def params(self, snapshot: Snapshot) -> DrawnParams:
        """Return the policy for the compiled path."""
        return DrawnParams()
