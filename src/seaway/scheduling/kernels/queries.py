"""Queries over all nodes, for callers in Python: fits of demands, and nodes that policies choose."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int64, UInt8
from seaway.scheduling.columns import (
    CLUSTERS_ALLOWED,
    CLUSTERS_USABLE,
    DEVICE_CORE_FREE,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_MEMORY_FREE,
    NODE_OPEN,
    PLAN_NODE,
)
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.decide import choose_for, find_usable_clusters
from seaway.scheduling.kernels.fit import island_loss, node_fits
from seaway.scheduling.kernels.network import current_node
from seaway.scheduling.kernels.policy_stubs import row_score
from seaway.scheduling.kernels.score_cache import UNFIT, RowCache, refresh_row, slot_of
from seaway.scheduling.kernels.shared_arrays import borrowed


class FitParams(NamedTuple):
    """Parameters of the cache of fits.

    Attributes
    ----------
    cache
        Cache of rows, in which all nodes that fit have the same score.
    """

    cache: RowCache


@specialises(row_score, FitParams)
def _row_score(params: FitParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    return 0


@compiled
def refreshed_fit_row(params: FitParams, fleet: FleetArrays, demands: DemandArrays, k: int) -> Int64:
    """Return the current fits of demand `k`, shape (N,): `UNFIT` if it does not fit."""
    slot = slot_of(params.cache, k)
    refresh_row(params, fleet, demands, k, slot)
    return params.cache.rows[slot]


@compiled
def nodes_that_fit(params: FitParams, fleet: FleetArrays, demands: DemandArrays, k: int) -> NDArray[np.bool_]:
    """Return the nodes that fit one replica of demand `k`, including links, shape (N,)."""
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
def island_losses(fleet: FleetArrays, demands: DemandArrays, k: int, nodes: Int64) -> Int64:
    """Return `island_loss` of some nodes, which fit demand `k`, shape of `nodes`."""
    lent, asked = borrowed(fleet), borrowed(demands)
    losses = np.empty(nodes.shape[0], np.int64)
    for at in range(nodes.shape[0]):
        losses[at] = island_loss(lent, asked, k, nodes[at])
    return losses


@compiled
def choose_node(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> int:
    """Return the node that a compiled policy chooses for one replica of demand `k`; -1 if no node fits.

    The fleet is not changed, including the flags of the current decision.
    """
    lent, asked = borrowed(fleet), borrowed(demands)
    before = fleet.clusters_open[CLUSTERS_USABLE].copy()
    n = choose_for(borrowed(params), lent, asked, k, random_bits)
    fleet.clusters_open[CLUSTERS_USABLE] = before
    return n


@compiled
def fitting_demands(fleet: FleetArrays, demands: DemandArrays, lines: Int64, nodes: Int64) -> UInt8:
    """Return the demands that fit at least one of some nodes now, without links.

    Parameters
    ----------
    lines
        Rows of the demands, shape (X,).
    nodes
        Indices of the nodes, shape (Y,).

    Returns
    -------
    UInt8
        1 for each demand that fits, shape (X,).
    """
    fleet, demands = borrowed(fleet), borrowed(demands)
    found = np.zeros(lines.shape[0], np.uint8)
    for at in range(lines.shape[0]):
        for n in nodes:
            if node_fits(fleet, demands, lines[at], n):
                found[at] = 1
                break
    return found


@compiled
def most_free(fleet: FleetArrays) -> tuple[int, int, int]:
    """Return upper bounds of the CPU, memory and GPU cores that jobs can get now, thousandths and MiB.

    Nodes and devices that hold more than they have count as full.
    """
    fleet = borrowed(fleet)
    cpu_milli, memory_mib, core_milli = 0, 0, 0
    for n in range(fleet.nodes.shape[1]):
        cpu_milli += max(0, fleet.nodes[NODE_CPU_FREE, n])
        memory_mib += max(0, fleet.nodes[NODE_MEMORY_FREE, n])
    for d in range(fleet.devices.shape[1]):
        core_milli += max(0, fleet.devices[DEVICE_CORE_FREE, d])
    return cpu_milli, memory_mib, core_milli


@compiled
def all_open(fleet: FleetArrays, plan: Int64) -> bool:
    """Report whether the nodes of some decisions, shape (R, PLAN_ROWS), exist and accept work."""
    fleet, plan = borrowed(fleet), borrowed(plan)
    for row in range(plan.shape[0]):
        n = current_node(fleet, plan[row, PLAN_NODE])
        if n < 0 or not fleet.nodes[NODE_OPEN, n]:
            return False
        if not fleet.clusters_open[CLUSTERS_ALLOWED, fleet.nodes[NODE_CLUSTER, n]]:
            return False
    return True
