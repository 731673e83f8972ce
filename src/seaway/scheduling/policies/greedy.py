"""Policy `greedy`: the first node that fits."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import specialises
from seaway.scheduling.kernels.policy_stubs import (
    device_key,
    key_column,
    left_bound,
    node_score,
    prepare,
    score_column,
)
from seaway.scheduling.kernels.scan import scanned
from seaway.scheduling.snapshot.snapshot import Snapshot


@scanned
class GreedyParams(NamedTuple):
    """Parameters of `greedy`: none."""


@specialises(prepare, GreedyParams)
def _prepare(params: GreedyParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> None:
    pass


@specialises(node_score, GreedyParams)
def _node_score(
    params: GreedyParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int
) -> int:
    return 0


@specialises(left_bound, GreedyParams)
def _left_bound(params: GreedyParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return 0  # all scores are equal, so the search ends at the first node that fits


@specialises(device_key, GreedyParams)
def _device_key(
    params: GreedyParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return 0


class Greedy:
    """Equal scores for all nodes and devices, so that the first ones that fit are chosen."""

    name = "Greedy"

    def score(self, cycle: Cycle) -> Scores:
        """Return 0 for each node, shape (N,)."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(GreedyParams(), arrays, demands, cycle.demand_index, cycle.random_bits)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return equal keys for all devices."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(GreedyParams(), arrays, demands, cycle.demand_index, node, cycle.random_bits)

    def params(self, snapshot: Snapshot) -> GreedyParams:
        """Return the policy for the compiled path."""
        return GreedyParams()
