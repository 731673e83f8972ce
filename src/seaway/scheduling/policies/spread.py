"""Spread: the node on which most is left."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays, UInt8
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import specialises
from seaway.scheduling.kernels.policy_stubs import ANY_SCORE, device_key, left_bound, node_score, prepare, search
from seaway.scheduling.kernels.scan import scan
from seaway.scheduling.kernels.score_columns import key_column, score_column
from seaway.scheduling.policies.bestfit import device_left, left_after
from seaway.scheduling.snapshot.snapshot import Snapshot


class LooseParams(NamedTuple):
    """Spread knows no parameters."""


@specialises(search, LooseParams)
def _search(params: LooseParams, fleet: FleetArrays, demands: DemandArrays, k: int, draw: int, clusters: UInt8) -> int:
    return scan(params, fleet, demands, k, draw, clusters)


@specialises(prepare, LooseParams)
def _prepare(params: LooseParams, fleet: FleetArrays, demands: DemandArrays, k: int, draw: int) -> None:
    pass


@specialises(node_score, LooseParams)
def _node_score(params: LooseParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, draw: int) -> int:
    return left_after(fleet, demands, k, n)


@specialises(left_bound, LooseParams)
def _left_bound(params: LooseParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return ANY_SCORE  # a block knows the least that is left on its nodes, not the most


@specialises(device_key, LooseParams)
def _device_key(params: LooseParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, draw: int) -> int:
    return -device_left(fleet, demands, k, d)


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
