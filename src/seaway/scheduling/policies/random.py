"""Random: any node that fits."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays, UInt8
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.policy_stubs import ANY_SCORE, device_key, left_bound, node_score, prepare, search
from seaway.scheduling.kernels.random_bits import mixed
from seaway.scheduling.kernels.scan import scan
from seaway.scheduling.kernels.score_columns import key_column, score_column
from seaway.scheduling.snapshot.snapshot import Snapshot

OF_NODE = 0
OF_DEVICE = 1


class DrawnParams(NamedTuple):
    """Random knows no parameters."""


@compiled
def lot(draw: int, index: int, kind: int) -> int:
    """Draw 61 random bits for a node or device: any of them stays below `ANY_SCORE`."""
    return mixed(draw, index, kind) >> 2


@specialises(search, DrawnParams)
def _search(params: DrawnParams, fleet: FleetArrays, demands: DemandArrays, k: int, draw: int, clusters: UInt8) -> int:
    return scan(params, fleet, demands, k, draw, clusters)


@specialises(prepare, DrawnParams)
def _prepare(params: DrawnParams, fleet: FleetArrays, demands: DemandArrays, k: int, draw: int) -> None:
    pass


@specialises(node_score, DrawnParams)
def _node_score(params: DrawnParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, draw: int) -> int:
    return lot(draw, n, OF_NODE)


@specialises(left_bound, DrawnParams)
def _left_bound(params: DrawnParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return ANY_SCORE


@specialises(device_key, DrawnParams)
def _device_key(params: DrawnParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, draw: int) -> int:
    return lot(draw, d, OF_DEVICE)


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
