"""Search by scanning, for policies whose score of a node depends on a few of its columns.

Nodes are scanned in blocks. A block is skipped if its best values do not fit the demand, or if its bound is not above
the best score found so far. Within a block, a node is scored first, and its devices are checked only if it would win.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, UInt8
from seaway.scheduling.columns import (
    BLOCK_CPU,
    BLOCK_LEFT,
    BLOCK_MEMORY,
    BLOCK_NODES,
    BLOCK_ROOM_CORE,
    BLOCK_ROOM_MEMORY,
    BLOCK_ROOM_WHOLE,
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    NODE_ACCEPTS,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_LEFT,
    NODE_MEMORY_FREE,
    NODE_ROOM_CORE,
    NODE_ROOM_MEMORY,
    NODE_ROOM_WHOLE,
)
from seaway.scheduling.kernels.allocate import NOTHING, room_step
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.fit import node_fits, node_may_fit, whole_devices
from seaway.scheduling.kernels.policy_stubs import ANY_SCORE, found_score, left_bound, node_score, prepare, search

P = TypeVar("P", bound=type)


@compiled
def block_may_fit(fleet: FleetArrays, demands: DemandArrays, k: int, b: int) -> bool:
    """Report whether a node of block `b` may fit demand `k`. False is certain."""
    amounts = demands.amounts
    blocks = fleet.blocks
    cpu = blocks[BLOCK_CPU + room_step(amounts[k, DEMAND_GPU_CORE]), b]
    if cpu < amounts[k, DEMAND_CPU] or blocks[BLOCK_MEMORY, b] < amounts[k, DEMAND_MEMORY]:
        return False
    if not amounts[k, DEMAND_GPUS]:
        return True
    return (
        blocks[BLOCK_ROOM_MEMORY, b] >= amounts[k, DEMAND_GPU_MEMORY]
        and blocks[BLOCK_ROOM_CORE, b] >= amounts[k, DEMAND_GPU_CORE]
        and blocks[BLOCK_ROOM_WHOLE, b] >= whole_devices(demands, k)
    )


@compiled
def least_left(fleet: FleetArrays, demands: DemandArrays, k: int, b: int) -> int:
    """Return the smallest `NODE_LEFT` of the nodes in block `b` that may fit; `NOTHING` for none.

    No branch depends on a node, so that the compiler can process eight nodes at a time.
    """
    nodes = fleet.nodes
    amounts = demands.amounts
    cpu = np.int32(amounts[k, DEMAND_CPU])
    memory = np.int32(amounts[k, DEMAND_MEMORY])
    gpus = amounts[k, DEMAND_GPUS] > 0
    room_memory = np.int32(amounts[k, DEMAND_GPU_MEMORY] if gpus else -1)
    room_core = np.int32(amounts[k, DEMAND_GPU_CORE] if gpus else -1)
    room_whole = np.int32(whole_devices(demands, k))
    least = np.int32(NOTHING)
    for n in range(b * BLOCK_NODES, min((b + 1) * BLOCK_NODES, nodes.shape[1])):
        fits = (
            (nodes[NODE_ACCEPTS, n] != 0)
            & (nodes[NODE_CPU_FREE, n] >= cpu)
            & (nodes[NODE_MEMORY_FREE, n] >= memory)
            & (nodes[NODE_ROOM_MEMORY, n] >= room_memory)
            & (nodes[NODE_ROOM_CORE, n] >= room_core)
            & (nodes[NODE_ROOM_WHOLE, n] >= room_whole)
        )
        left = nodes[NODE_LEFT, n] if fits else np.int32(NOTHING)
        least = min(least, left)
    return int(least)


@compiled
def best_in_block(
    params: Any,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    random_bits: int,
    clusters: UInt8,
    b: int,
    best: int,
    best_score: int,
) -> tuple[int, int]:
    """Return the best node of block `b` that fits and exceeds `best_score`, else `best`; and its score."""
    for n in range(b * BLOCK_NODES, min((b + 1) * BLOCK_NODES, fleet.nodes.shape[1])):
        if not node_may_fit(fleet, demands, k, n):
            continue
        score = node_score(params, fleet, demands, k, n, random_bits)
        if score > best_score and clusters[fleet.nodes[NODE_CLUSTER, n]] and node_fits(fleet, demands, k, n):
            best, best_score = n, score
    return best, best_score


@compiled
def promising_block(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int) -> tuple[int, int]:
    """Return the first block with the highest bound, and the bound; -1 if no block may fit."""
    room = BLOCK_LEFT + room_step(demands.amounts[k, DEMAND_GPU_CORE])
    top, at = -ANY_SCORE, -1
    for b in range(fleet.blocks.shape[1]):
        if not block_may_fit(fleet, demands, k, b):
            continue
        if left_bound(params, fleet, demands, k, fleet.blocks[room, b]) <= top:
            continue
        left = least_left(fleet, demands, k, b)
        if left == NOTHING:
            continue
        bound = left_bound(params, fleet, demands, k, left)
        if bound > top:
            top, at = bound, b
    return at, top


@compiled
def scan(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int, clusters: UInt8) -> int:
    """Return the node with the highest score that fits; see `seaway.scheduling.kernels.policy_stubs.search`.

    Usually, a node in the block with the highest bound reaches the bound. Then no other block is searched: earlier
    blocks have lower bounds, and ties go to the first block.
    """
    prepare(params, fleet, demands, k, random_bits)
    at, top = promising_block(params, fleet, demands, k)
    if at < 0:
        return -1
    best, best_score = best_in_block(params, fleet, demands, k, random_bits, clusters, at, -1, -ANY_SCORE)
    if best >= 0 and best_score == top:
        return best
    best, best_score = -1, -ANY_SCORE
    for b in range(fleet.blocks.shape[1]):
        if not block_may_fit(fleet, demands, k, b):
            continue
        left = least_left(fleet, demands, k, b)
        if left == NOTHING or left_bound(params, fleet, demands, k, left) <= best_score:
            continue
        best, best_score = best_in_block(params, fleet, demands, k, random_bits, clusters, b, best, best_score)
    return best


def scanned(params: P) -> P:
    """Use `scan` as the search of a policy whose parameters have the decorated type."""
    specialises(search, params)(_search)
    specialises(found_score, params)(_found_score)
    return params


def _search(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int, clusters: UInt8) -> int:
    return scan(params, fleet, demands, k, random_bits, clusters)


def _found_score(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int) -> int:
    return node_score(params, fleet, demands, k, n, random_bits)
