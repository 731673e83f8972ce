"""Scores and device keys as arrays: what a policy's plugin asks its kernels on the plain path."""

from __future__ import annotations

from typing import Any

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int64
from seaway.scheduling.columns import NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.policy_stubs import device_key, node_score, prepare
from seaway.scheduling.kernels.shared_arrays import borrowed


@compiled
def score_column(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> Int64:
    """Score every node for demand `k`, shape (N,)."""
    policy, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    prepare(policy, lent, asked, k, random_bits)
    scores = np.empty(fleet.nodes.shape[1], np.int64)
    for n in range(scores.shape[0]):
        scores[n] = node_score(policy, lent, asked, k, n, random_bits)
    return scores


@compiled
def key_column(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int) -> Int64:
    """Rank the devices of node `n` for a slice of demand `k`, shape (devices of the node,)."""
    policy, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    first = fleet.nodes[NODE_DEVICE_FIRST, n]
    keys = np.empty(fleet.nodes[NODE_DEVICE_END, n] - first, np.int64)
    for at in range(keys.shape[0]):
        keys[at] = device_key(policy, lent, asked, k, first + at, random_bits)
    return keys
