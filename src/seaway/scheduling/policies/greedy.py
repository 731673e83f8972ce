"""Greedy: the first node that fits."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays, UInt8
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import specialises
from seaway.scheduling.kernels.policy_stubs import device_key, left_bound, node_score, prepare, search
from seaway.scheduling.kernels.scan import scan
from seaway.scheduling.kernels.score_columns import key_column, score_column
from seaway.scheduling.snapshot.snapshot import Snapshot


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


class Greedy:
    """Scores every node alike, so that the first that fits is taken, and its first devices."""

    name = "Greedy"

    def score(self, cycle: Cycle) -> Scores:
        """Score every node 0, shape (N,)."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(FirstParams(), arrays, demands, cycle.line, cycle.draw)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices alike."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(FirstParams(), arrays, demands, cycle.line, node, cycle.draw)

    def params(self, snapshot: Snapshot) -> FirstParams:
        """Return the policy for the compiled path."""
        return FirstParams()
