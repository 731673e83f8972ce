"""Greedy: the first node that fits."""

from __future__ import annotations

from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.column import key_column, score_column
from seaway.scheduling.kernels.first import FirstParams
from seaway.scheduling.snapshot import Snapshot


class Greedy:
    """Scores every node alike, so that the first that fits is taken, and its first devices."""

    name = "Greedy"

    def score(self, cycle: Cycle) -> Scores:
        """Score every node 0, shape (N,)."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(FirstParams(), arrays, demands, cycle.line, cycle.draw)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices alike."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(FirstParams(), arrays, demands, cycle.line, node, cycle.draw)

    def params(self, snapshot: Snapshot) -> FirstParams:
        """Return the policy for the compiled path."""
        return FirstParams()
