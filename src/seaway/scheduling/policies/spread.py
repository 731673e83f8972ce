"""Spread: the node on which most is left."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays, UInt8
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
    search,
)
from seaway.scheduling.kernels.scan import scan
from seaway.scheduling.policies.bestfit import device_left, left_after
from seaway.scheduling.snapshot.snapshot import Snapshot


class SpreadParams(NamedTuple):
    """Spread knows no parameters."""


@specialises(search, SpreadParams)
def _search(
    params: SpreadParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int, clusters: UInt8
) -> int:
    return scan(params, fleet, demands, k, random_bits, clusters)


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
    return ANY_SCORE  # a block knows the least that is left on its nodes, not the most


@specialises(device_key, SpreadParams)
def _device_key(
    params: SpreadParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return -device_left(fleet, demands, k, d)


class Spread:
    """Scores a node by how much CPU and GPU the replica would leave on it, and takes the emptiest devices."""

    name = "Spread"

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,), by free resources in CPU milli with a device counted as 16,000."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(SpreadParams(), arrays, demands, cycle.demand_index, cycle.random_bits)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices by free resources, most first."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(SpreadParams(), arrays, demands, cycle.demand_index, node, cycle.random_bits)

    def params(self, snapshot: Snapshot) -> SpreadParams:
        """Return the policy for the compiled path."""
        return SpreadParams()
