"""Policy `spread`: the node with the most free resources after the placement."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import specialises
from seaway.scheduling.kernels.policy_stubs import (
    ANY_SCORE,
    device_key,
    key_column,
    left_bound,
    node_score,
    prepare,
    score_column,
)
from seaway.scheduling.kernels.scan import scanned
from seaway.scheduling.policies.bestfit import device_left, left_after
from seaway.scheduling.snapshot.snapshot import Snapshot


@scanned
class SpreadParams(NamedTuple):
    """Parameters of `spread`: none."""


@specialises(prepare, SpreadParams)
def _prepare(params: SpreadParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> None:
    pass


@specialises(node_score, SpreadParams)
def _node_score(
    params: SpreadParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int
) -> int:
    return left_after(fleet, demands, k, n)


@specialises(left_bound, SpreadParams)
def _left_bound(params: SpreadParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return ANY_SCORE  # blocks have the minimum of their nodes' free resources, not the maximum


@specialises(device_key, SpreadParams)
def _device_key(
    params: SpreadParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return -device_left(fleet, demands, k, d)


class Spread:
    """Score by the free CPU and GPU after the placement, most first, with the most free devices first."""

    name = "Spread"

    def score(self, cycle: Cycle) -> Scores:
        """Return the free resources of each node after the placement, shape (N,), in thousandths of a CPU core."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(SpreadParams(), arrays, demands, cycle.demand_index, cycle.random_bits)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return keys of devices by free resources, most first."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(SpreadParams(), arrays, demands, cycle.demand_index, node, cycle.random_bits)

    def params(self, snapshot: Snapshot) -> SpreadParams:
        """Return the policy for the compiled path."""
        return SpreadParams()
