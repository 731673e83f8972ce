"""Spread: the node on which most is left, and on it the device with most left."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.kernels.compile import specialises
from seaway.scheduling.kernels.policy import ANY_SCORE, device_key, left_bound, node_score, prepare, search
from seaway.scheduling.kernels.scan import scan
from seaway.scheduling.kernels.tight import device_left, left_after
from seaway.scheduling.state import DemandArrays, FleetArrays, UInt8


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
