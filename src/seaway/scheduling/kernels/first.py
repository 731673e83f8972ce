"""Greedy: the first node that fits, and on it the first devices that fit."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.kernels.compile import specialises
from seaway.scheduling.kernels.policy import device_key, left_bound, node_score, prepare, search
from seaway.scheduling.kernels.scan import scan
from seaway.scheduling.state import DemandArrays, FleetArrays, UInt8


class FirstParams(NamedTuple):
    """Greedy knows no parameters."""


@specialises(search, FirstParams)
def _search(params: FirstParams, fleet: FleetArrays, demands: DemandArrays, k: int, draw: int, clusters: UInt8) -> int:
    return scan(params, fleet, demands, k, draw, clusters)


@specialises(prepare, FirstParams)
def _prepare(params: FirstParams, fleet: FleetArrays, demands: DemandArrays, k: int, draw: int) -> None:
    pass


@specialises(node_score, FirstParams)
def _node_score(params: FirstParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, draw: int) -> int:
    return 0


@specialises(left_bound, FirstParams)
def _left_bound(params: FirstParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return 0  # no node beats another, so that the first which fits ends the search


@specialises(device_key, FirstParams)
def _device_key(params: FirstParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, draw: int) -> int:
    return 0
