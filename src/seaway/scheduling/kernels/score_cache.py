"""Search with cached scores, for policies whose score depends on all devices of a node.

Each recent demand has a row with its score on each node. The fleet logs the changed nodes. When a demand is used again,
only the scores of the changed nodes are recomputed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int64, UInt8
from seaway.scheduling.columns import NODE_CLUSTER
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.fit import node_fits
from seaway.scheduling.kernels.policy_stubs import row_score

MAX_CACHE_BYTES = 32 * 2**20
"""Maximum memory of rows, bytes: 3,400 demands on 1,200 nodes, 330 on 12,500."""

MIN_ROWS = 64
MAX_ROWS = 4096

UNFIT = -1
"""Value in a row if the demand does not fit the node."""


class RowCache(NamedTuple):
    """Cache of scores.

    Attributes
    ----------
    rows
        Score of each node for the demand of the row, shape (S, N), int64.
    log_position
        Position of each row in the fleet's log, shape (S,), int64; -1 for a new row.
    owner
        Demand of each row, shape (S,), int64; -1 for none.
    slot
        Row of each demand, shape (K,), int64; -1 for none.
    stamp
        Number of the pass in which each node was last scored, shape (N,), int64.
    counters
        Number of passes, and the row to replace next, shape (2,), int64.
    """

    rows: Int64
    log_position: Int64
    owner: Int64
    slot: Int64
    stamp: Int64
    counters: Int64


def row_cache(nodes: int, demands: int, slots: int = 0) -> RowCache:
    """Return an empty cache for `nodes` nodes and `demands` demands, with `slots` rows.

    Without `slots`, the number of rows is limited by `MAX_CACHE_BYTES`.
    """
    slots = slots or min(MAX_ROWS, max(MIN_ROWS, MAX_CACHE_BYTES // (8 * max(nodes, 1))))
    return RowCache(
        rows=np.empty((slots, nodes), np.int64),  # rows are filled before they are read, so memory is used on demand
        log_position=np.full(slots, -1, np.int64),
        owner=np.full(slots, -1, np.int64),
        slot=np.full(demands, -1, np.int64),
        stamp=np.zeros(nodes, np.int64),
        counters=np.zeros(2, np.int64),
    )


def resized(params: Any, demands: int) -> Any:
    """Return `params` with its cache, if any, enlarged for `demands` demands."""
    cache: RowCache | None = getattr(params, "cache", None)
    if cache is None or cache.slot.shape[0] >= demands:
        return params
    slot = np.full(demands, -1, np.int64)
    slot[: cache.slot.shape[0]] = cache.slot
    return params._replace(cache=cache._replace(slot=slot))


@compiled
def slot_of(cache: RowCache, k: int) -> int:
    """Return the row of demand `k`. A demand without a row replaces another one, in turn."""
    slot = cache.slot[k]
    if slot < 0:
        slot = cache.counters[1]
        cache.counters[1] = (slot + 1) % cache.owner.shape[0]
        if cache.owner[slot] >= 0:
            cache.slot[cache.owner[slot]] = -1
        cache.owner[slot] = k
        cache.slot[k] = slot
        cache.log_position[slot] = -1
    return slot


@compiled
def score_or_unfit(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, fits: Int64 | None) -> int:
    """Return the score of node `n` for demand `k`, or `UNFIT`. `fits` has the fits of all nodes; None to check them."""
    if fits is None:  # noqa: SIM108  # numba prunes branches of statements only
        may = node_fits(fleet, demands, k, n)
    else:
        may = fits[n] != UNFIT
    return row_score(params, fleet, demands, k, n) if may else UNFIT


@compiled
def refresh_row(
    params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, slot: int, fits: Int64 | None = None
) -> None:
    """Update the row of demand `k` from the fleet's log.

    Parameters
    ----------
    fits
        Current row of another policy for the same demand, which has the fits; None to check them.
    """
    cache = params.cache
    head = fleet.head[0]
    behind = head - cache.log_position[slot]
    if cache.log_position[slot] < 0 or behind > fleet.log.shape[0]:
        for n in range(fleet.nodes.shape[1]):
            cache.rows[slot, n] = score_or_unfit(params, fleet, demands, k, n, fits)
    else:
        cache.counters[0] += 1
        for at in range(cache.log_position[slot], head):
            n = fleet.log[at % fleet.log.shape[0]]
            if cache.stamp[n] != cache.counters[0]:
                cache.stamp[n] = cache.counters[0]
                cache.rows[slot, n] = score_or_unfit(params, fleet, demands, k, n, fits)
    cache.log_position[slot] = head


@compiled
def best_of_row(fleet: FleetArrays, row: Int64, clusters: UInt8) -> int:
    """Return the first node with the highest score in usable clusters; -1 if no node fits."""
    best = UNFIT
    for n in range(row.shape[0]):
        best = max(best, row[n])
    if best == UNFIT:
        return -1
    for n in range(row.shape[0]):
        if row[n] == best and clusters[fleet.nodes[NODE_CLUSTER, n]]:
            return n
    return best_of_usable(fleet, row, clusters)


@compiled
def best_of_usable(fleet: FleetArrays, row: Int64, clusters: UInt8) -> int:
    """Return the result of `best_of_row` if no node with the highest score is in a usable cluster."""
    best, at = UNFIT, -1
    for n in range(row.shape[0]):
        if row[n] > best and clusters[fleet.nodes[NODE_CLUSTER, n]]:
            best, at = row[n], n
    return at


@compiled
def search_row(
    params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int, clusters: UInt8
) -> int:
    """Return the node with the highest score; see `seaway.scheduling.kernels.policy_stubs.search`."""
    slot = slot_of(params.cache, k)
    refresh_row(params, fleet, demands, k, slot)
    return best_of_row(fleet, params.cache.rows[slot], clusters)
