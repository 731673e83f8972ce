"""The least allocated node of a cluster: where the reference modes put a replica within a cluster."""

from __future__ import annotations

from seaway.scheduling.columns import (
    NODE_CLUSTER,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
)
from seaway.scheduling.kernels.balance import share_ppm
from seaway.scheduling.kernels.borrow import borrowed
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.fit import node_fits
from seaway.scheduling.state import DemandArrays, FleetArrays


@compiled
def node_free_ppm(fleet: FleetArrays, n: int) -> int:
    """Add up the free shares of node `n` over the four resources, parts per million."""
    nodes = fleet.nodes
    return (
        share_ppm(nodes[NODE_CPU_FREE, n], nodes[NODE_CPU, n])
        + share_ppm(nodes[NODE_MEMORY_FREE, n], nodes[NODE_MEMORY, n])
        + share_ppm(nodes[NODE_GPU_MEMORY_FREE, n], nodes[NODE_GPU_MEMORY, n])
        + share_ppm(nodes[NODE_GPU_CORE_FREE, n], nodes[NODE_GPU_CORE, n])
    )


@compiled
def least_allocated(fleet: FleetArrays, demands: DemandArrays, k: int, c: int) -> int:
    """Find the node of cluster `c` with the highest free share that fits demand `k`; -1 for none.

    Links are not looked at. Of equal nodes the first wins.
    """
    lent, asked = borrowed(fleet), borrowed(demands)
    best, best_free = -1, -1
    for n in range(fleet.nodes.shape[1]):
        if lent.nodes[NODE_CLUSTER, n] == c and node_fits(lent, asked, k, n):
            free = node_free_ppm(lent, n)
            if free > best_free:
                best, best_free = n, free
    return best
