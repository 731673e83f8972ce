"""Random: any node that fits, and on it any devices that fit, each as likely as the others.

Every node draws a number and the highest wins, so that the choice hangs on no generator's state and
on no node but those that fit.
"""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.draw import mixed
from seaway.scheduling.kernels.policy import ANY_SCORE, device_key, left_bound, node_score, prepare, search
from seaway.scheduling.kernels.scan import scan
from seaway.scheduling.state import DemandArrays, FleetArrays, UInt8

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
