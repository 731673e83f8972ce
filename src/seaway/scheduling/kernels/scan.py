"""Search by scanning: for policies that score a node from a few of its figures.

Nodes are looked at block by block. A block is passed over when the best of its figures cannot hold
the demand, or when its bound says that nothing in it beats what was found; within a block a node is
scored before its devices are looked at, and looked at only if it would win.
"""

from __future__ import annotations

from typing import Any

from seaway.scheduling.columns import (
    BLOCK_CPU,
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
    NODE_CLUSTER,
)
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.fit import node_fits, node_may_fit, wholes
from seaway.scheduling.kernels.policy import ANY_SCORE, block_bound, node_score, prepare
from seaway.scheduling.state import DemandArrays, FleetArrays, UInt8


@compiled
def block_may_fit(fleet: FleetArrays, demands: DemandArrays, k: int, b: int) -> bool:
    """Tell whether some node of block `b` might fit demand `k`: false is certain."""
    amounts = demands.amounts
    blocks = fleet.blocks
    if blocks[BLOCK_CPU, b] < amounts[k, DEMAND_CPU] or blocks[BLOCK_MEMORY, b] < amounts[k, DEMAND_MEMORY]:
        return False
    if not amounts[k, DEMAND_GPUS]:
        return True
    return (
        blocks[BLOCK_ROOM_MEMORY, b] >= amounts[k, DEMAND_GPU_MEMORY]
        and blocks[BLOCK_ROOM_CORE, b] >= amounts[k, DEMAND_GPU_CORE]
        and blocks[BLOCK_ROOM_WHOLE, b] >= wholes(demands, k)
    )


@compiled
def scan(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, draw: int, clusters: UInt8) -> int:
    """Find the node with the highest score that fits; see `seaway.scheduling.kernels.policy.search`."""
    prepare(params, fleet, demands, k, draw)
    best, best_score = -1, -ANY_SCORE
    for b in range(fleet.blocks.shape[1]):
        if not block_may_fit(fleet, demands, k, b):
            continue
        if block_bound(params, fleet, demands, k, b) <= best_score:
            continue
        for n in range(b * BLOCK_NODES, min((b + 1) * BLOCK_NODES, fleet.nodes.shape[1])):
            if not node_may_fit(fleet, demands, k, n):
                continue
            score = node_score(params, fleet, demands, k, n, draw)
            if score > best_score and clusters[fleet.nodes[NODE_CLUSTER, n]] and node_fits(fleet, demands, k, n):
                best, best_score = n, score
    return best
