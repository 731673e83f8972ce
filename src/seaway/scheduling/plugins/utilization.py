"""Utilization: the node whose free shares are nearest to what the replica asks."""

from __future__ import annotations

from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.balance import BalanceParams
from seaway.scheduling.kernels.column import key_column, score_column
from seaway.scheduling.snapshot import Snapshot


class Utilization:
    """Scores a node by how near the replica's share of each resource is to what is free of it."""

    name = "Utilization"

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,): minus the sum of abs(free - demand)/total, parts per million."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(BalanceParams(), arrays, demands, cycle.line, cycle.draw)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices alike."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(BalanceParams(), arrays, demands, cycle.line, node, cycle.draw)

    def params(self, snapshot: Snapshot) -> BalanceParams:
        """Return the policy for the compiled path."""
        return BalanceParams()
