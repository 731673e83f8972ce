"""Functions of a compiled policy, as stubs that `specialises` implements for its parameters.

A policy is a named tuple of parameters. If the score of a node depends on a few of its columns,
`seaway.scheduling.kernels.scan` finds the best node with an index. If the score is costly and depends on the devices,
`seaway.scheduling.kernels.score_cache` caches it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seaway.domain.errors import InvariantError
from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int64, UInt8
from seaway.scheduling.columns import NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.shared_arrays import borrowed

ANY_SCORE = 2**62
"""Bound above all scores, with which a block must be searched."""


def search(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int, clusters: UInt8) -> int:
    """Return the node for one replica of demand `k`; -1 if no node fits.

    Parameters
    ----------
    random_bits
        63 random bits of this decision.
    clusters
        1 for each usable cluster, shape (C,).
    """
    raise InvariantError(f"no compiled search for {type(params).__name__}")


def found_score(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int) -> int:
    """Return the score of node `n` in the decision for which `search` was called last."""
    raise InvariantError(f"no compiled score of a search for {type(params).__name__}")


def prepare(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> None:
    """Prepare data of a decision that `node_score` reads, such as a score by cluster."""
    raise InvariantError(f"no compiled preparation for {type(params).__name__}")


def node_score(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int) -> int:
    """Return the score of node `n` for demand `k`. The highest wins, then the lowest index."""
    raise InvariantError(f"no compiled score for {type(params).__name__}")


def left_bound(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    """Return an upper bound of the scores of nodes with free resources of at least `left` (see `NODE_LEFT`)."""
    raise InvariantError(f"no compiled bound for {type(params).__name__}")


def device_key(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int) -> int:
    """Return the key of device `d` for a slice of demand `k`. The lowest key wins, then NVLink islands decide."""
    raise InvariantError(f"no compiled choice of devices for {type(params).__name__}")


def row_score(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the score of node `n`, which fits demand `k`, at least 0. The highest wins."""
    raise InvariantError(f"no compiled row for {type(params).__name__}")


@compiled
def score_column(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> Int64:
    """Return the score of each node for demand `k`, shape (N,)."""
    policy, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    prepare(policy, lent, asked, k, random_bits)
    scores = np.empty(fleet.nodes.shape[1], np.int64)
    for n in range(scores.shape[0]):
        scores[n] = node_score(policy, lent, asked, k, n, random_bits)
    return scores


@compiled
def key_column(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int) -> Int64:
    """Return the keys of the devices of node `n` for a slice of demand `k`, shape (devices of the node,)."""
    policy, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    first = fleet.nodes[NODE_DEVICE_FIRST, n]
    keys = np.empty(fleet.nodes[NODE_DEVICE_END, n] - first, np.int64)
    for at in range(keys.shape[0]):
        keys[at] = device_key(policy, lent, asked, k, first + at, random_bits)
    return keys
