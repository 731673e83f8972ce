"""Answers over all nodes in one call, for callers in Python: where a demand fits, and which node a policy takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int64, UInt8
from seaway.scheduling.columns import CLUSTERS_USABLE, NODE_CLUSTER
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.decide import find_usable_clusters
from seaway.scheduling.kernels.fit import node_fits
from seaway.scheduling.kernels.policy_stubs import row_score, search
from seaway.scheduling.kernels.score_cache import UNFIT, RowCache, refresh_row, slot_of
from seaway.scheduling.kernels.shared_arrays import borrowed


class FitParams(NamedTuple):
    """Cache of fits.

    Attributes
    ----------
    cache
        All nodes that fit have the same score.
    """

    cache: RowCache


@specialises(row_score, FitParams)
def _row_score(params: FitParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    return 0


@compiled
def refreshed_fit_row(params: FitParams, fleet: FleetArrays, demands: DemandArrays, k: int) -> Int64:
    """Return the current fits of demand `k`, shape (N,): `UNFIT` where it does not fit."""
    slot = slot_of(params.cache, k)
    refresh_row(params, fleet, demands, k, slot)
    return params.cache.rows[slot]


@compiled
def nodes_that_fit(params: FitParams, fleet: FleetArrays, demands: DemandArrays, k: int) -> NDArray[np.bool_]:
    """Tell which nodes can take one replica of demand `k` by the rules of fit, links included, shape (N,)."""
    lent, asked = borrowed(fleet), borrowed(demands)
    find_usable_clusters(lent, asked, k)
    row = refreshed_fit_row(borrowed(params), lent, asked, k)
    fits = np.zeros(fleet.nodes.shape[1], np.bool_)
    for n in range(fits.shape[0]):
        fits[n] = row[n] != UNFIT and lent.clusters_open[CLUSTERS_USABLE, lent.nodes[NODE_CLUSTER, n]] != 0
    return fits


@compiled
def best_of(scores: Int64, feasible: NDArray[np.bool_]) -> int:
    """Return the first feasible node with the highest score, -1 for none."""
    best = -1
    for n in range(scores.shape[0]):
        if feasible[n] and (best < 0 or scores[n] > scores[best]):
            best = n
    return best


@compiled
def choose_node(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> int:
    """Return the node that a compiled policy takes for one replica of demand `k`; -1 when none fits.

    The fleet is left as it is, marks of the decision at hand included.
    """
    lent, asked = borrowed(fleet), borrowed(demands)
    before = fleet.clusters_open[CLUSTERS_USABLE].copy()
    find_usable_clusters(lent, asked, k)
    n = search(borrowed(params), lent, asked, k, random_bits, lent.clusters_open[CLUSTERS_USABLE])
    fleet.clusters_open[CLUSTERS_USABLE] = before
    return n


@compiled
def fitting_demands(fleet: FleetArrays, demands: DemandArrays, lines: Int64, nodes: Int64) -> UInt8:
    """Tell which demands fit one of some nodes now, links left out.

    Parameters
    ----------
    lines
        Lines of the demands, shape (X,).
    nodes
        Shape (Y,).

    Returns
    -------
    UInt8
        1 where a demand fits, shape (X,).
    """
    fleet, demands = borrowed(fleet), borrowed(demands)
    found = np.zeros(lines.shape[0], np.uint8)
    for at in range(lines.shape[0]):
        for n in nodes:
            if node_fits(fleet, demands, lines[at], n):
                found[at] = 1
                break
    return found
