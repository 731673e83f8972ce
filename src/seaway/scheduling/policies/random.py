"""Policy `random`: a random node that fits."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import compiled, mixed, specialises
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
from seaway.scheduling.snapshot.snapshot import Snapshot

OF_NODE = 0
OF_DEVICE = 1


@scanned
class RandomParams(NamedTuple):
    """Parameters of `random`: none."""


@compiled
def random_key(random_bits: int, index: int, kind: int) -> int:
    """Return 61 random bits for a node or device, which are always below `ANY_SCORE`."""
    return mixed(random_bits, index, kind) >> 2


@specialises(prepare, RandomParams)
def _prepare(params: RandomParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> None:
    pass


@specialises(node_score, RandomParams)
def _node_score(
    params: RandomParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int
) -> int:
    return random_key(random_bits, n, OF_NODE)


@specialises(left_bound, RandomParams)
def _left_bound(params: RandomParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return ANY_SCORE


@specialises(device_key, RandomParams)
def _device_key(
    params: RandomParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return random_key(random_bits, d, OF_DEVICE)


class Random:
    """Random scores of nodes and keys of devices, reproducible with the same seed."""

    name = "Random"
    draws = True

    def score(self, cycle: Cycle) -> Scores:
        """Return a random number for each node, shape (N,)."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(RandomParams(), arrays, demands, cycle.demand_index, cycle.random_bits)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return a random number for each device."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(RandomParams(), arrays, demands, cycle.demand_index, node, cycle.random_bits)

    def params(self, snapshot: Snapshot) -> RandomParams:
        """Return the policy for the compiled path."""
        return RandomParams()
