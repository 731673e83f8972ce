"""Features of one job: the clusters and nodes that fit it, and the shares of resources of clusters and job."""

from __future__ import annotations

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Float32, Float64, Int64, UInt8
from seaway.scheduling.columns import (
    BLOCK_NODES,
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GATEWAY,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    CLUSTERS_USABLE,
    DEMAND_CPU,
    DEMAND_GATEWAY,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    GATEWAY_IN,
    GATEWAY_OUT,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY_FREE,
    NODE_MEMORY_FREE,
)
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.decide import find_usable_clusters, reset_bandwidth
from seaway.scheduling.kernels.fit import WHOLE_PERCENT, memory_requested, node_fits
from seaway.scheduling.kernels.scan import block_may_fit
from seaway.scheduling.kernels.shared_arrays import borrowed

RESOURCES = 4
"""CPU, memory, device memory and device cores, in this order."""

EPSILON = 1e-12
"""Maximum difference of equal scores, from the rounding of sums of shares in another order."""


@compiled
def first_nodes(fleet: FleetArrays, demands: DemandArrays, k: int, out: Int64) -> int:
    """Find the first node of each cluster that fits a job of demand `k` now, including links and bandwidth.

    Parameters
    ----------
    out
        Index of the node, -1 for none, shape (C,); output.

    Returns
    -------
    int
        Number of clusters that fit the job.
    """
    fleet, demands, out = borrowed(fleet), borrowed(demands), borrowed(out)
    reset_bandwidth(fleet)
    find_usable_clusters(fleet, demands, k)
    for c in range(out.shape[0]):
        out[c] = -1
    found = 0
    for b in range(fleet.blocks.shape[1]):
        if not block_may_fit(fleet, demands, k, b):
            continue
        for n in range(b * BLOCK_NODES, min((b + 1) * BLOCK_NODES, fleet.nodes.shape[1])):
            c = fleet.nodes[NODE_CLUSTER, n]
            if out[c] < 0 and fleet.clusters_open[CLUSTERS_USABLE, c] and node_fits(fleet, demands, k, n):
                out[c] = n
                found += 1
    return found


@compiled
def fitting_nodes(fleet: FleetArrays, demands: DemandArrays, k: int, out: UInt8) -> int:
    """Mark the nodes that fit a job of demand `k` now, including links and bandwidth.

    Parameters
    ----------
    out
        1 for each node that fits, shape (N,); output.

    Returns
    -------
    int
        Number of nodes that fit.
    """
    fleet, demands, out = borrowed(fleet), borrowed(demands), borrowed(out)
    reset_bandwidth(fleet)
    find_usable_clusters(fleet, demands, k)
    found = 0
    for b in range(fleet.blocks.shape[1]):
        may = block_may_fit(fleet, demands, k, b)
        for n in range(b * BLOCK_NODES, min((b + 1) * BLOCK_NODES, fleet.nodes.shape[1])):
            out[n] = 0
            if may and fleet.clusters_open[CLUSTERS_USABLE, fleet.nodes[NODE_CLUSTER, n]]:
                out[n] = node_fits(fleet, demands, k, n)
                found += out[n]
    return found


@compiled
def utilization_after(fleet: FleetArrays, demands: DemandArrays, k: int, c: int, n: int) -> float:
    """Return the mean allocated share of cluster `c` after the placement of demand `k` on its node `n`, 0-1.

    The mean is over the resources that the cluster has.
    """
    clusters, amounts = fleet.clusters, demands.amounts
    core = amounts[k, DEMAND_GPU_CORE] * amounts[k, DEMAND_GPUS]
    added, kinds = 0.0, 0
    for total, free, asked in (
        (clusters[CLUSTER_CPU, c], clusters[CLUSTER_CPU_FREE, c], amounts[k, DEMAND_CPU]),
        (clusters[CLUSTER_MEMORY, c], clusters[CLUSTER_MEMORY_FREE, c], amounts[k, DEMAND_MEMORY]),
        (clusters[CLUSTER_GPU_MEMORY, c], clusters[CLUSTER_GPU_MEMORY_FREE, c], memory_requested(fleet, demands, k, n)),
        (clusters[CLUSTER_GPU_CORE, c], clusters[CLUSTER_GPU_CORE_FREE, c], core),
    ):
        if total > 0:
            added += (total - free + asked) / total
            kinds += 1
    return added / max(kinds, 1)


@compiled
def rank_clusters(fleet: FleetArrays, demands: DemandArrays, k: int, firsts: Int64, out: Float64) -> int:
    """Score each cluster by its use after the placement of a job of demand `k`, scaled to 0-1 over those that fit.

    Parameters
    ----------
    firsts
        Output of `first_nodes`, shape (C,).
    out
        Scores, shape (C,); output. -1 if the job does not fit; 1 for all others if they are equal.

    Returns
    -------
    int
        First cluster with the highest score; -1 if the job fits nowhere.
    """
    fleet, demands, firsts, out = borrowed(fleet), borrowed(demands), borrowed(firsts), borrowed(out)
    lowest, highest, best = 1.0e9, -1.0, -1
    for c in range(out.shape[0]):
        out[c] = -1.0
        if firsts[c] >= 0:
            out[c] = utilization_after(fleet, demands, k, c, firsts[c])
            lowest = min(lowest, out[c])
            if out[c] > highest + EPSILON:
                highest, best = out[c], c
    for c in range(out.shape[0]):
        if firsts[c] >= 0:
            out[c] = (out[c] - lowest) / (highest - lowest) if highest - lowest > EPSILON else 1.0
    return best


@compiled
def share(amount: float, total: float, most: float) -> float:
    """Return `amount` as a share of `total`, from 0 to `most`; 0 if `total` is 0."""
    return min(max(amount / total, 0.0), most) if total > 0 else 0.0


@compiled
def write_shares(fleet: FleetArrays, demands: DemandArrays, k: int, step: int, out: Float32) -> None:
    """Write the free shares of clusters and the request of demand `k`, for each of the four resources.

    Parameters
    ----------
    k
        Index of the demand; -1 for no job, whose values are 0.
    step
        Number of values of each cluster and of the job in `out`. This function writes the first four of each.
    out
        Free shares of each cluster, then the request of the job as a share of the mean cluster, at most C; shape ((C +
        1) step,); output. A share of device memory refers to the fleet's mean device.
    """
    fleet, demands, out = borrowed(fleet), borrowed(demands), borrowed(out)
    clusters = fleet.clusters
    count = clusters.shape[1]
    cpu, memory, gpu_memory, gpu_core = 0, 0, 0, 0
    for c in range(count):
        cpu += clusters[CLUSTER_CPU, c]
        memory += clusters[CLUSTER_MEMORY, c]
        gpu_memory += clusters[CLUSTER_GPU_MEMORY, c]
        gpu_core += clusters[CLUSTER_GPU_CORE, c]
        at = c * step
        out[at] = share(clusters[CLUSTER_CPU_FREE, c], clusters[CLUSTER_CPU, c], 1.0)
        out[at + 1] = share(clusters[CLUSTER_MEMORY_FREE, c], clusters[CLUSTER_MEMORY, c], 1.0)
        out[at + 2] = share(clusters[CLUSTER_GPU_MEMORY_FREE, c], clusters[CLUSTER_GPU_MEMORY, c], 1.0)
        out[at + 3] = share(clusters[CLUSTER_GPU_CORE_FREE, c], clusters[CLUSTER_GPU_CORE, c], 1.0)
    at = count * step
    if k < 0:
        for resource in range(RESOURCES):
            out[at + resource] = 0.0
        return
    amounts = demands.amounts
    each = amounts[k, DEMAND_GPU_MEMORY]
    if each == 0:
        each = gpu_memory // max(fleet.devices.shape[1], 1) * amounts[k, DEMAND_GPU_PERCENT] // WHOLE_PERCENT
    gpus = amounts[k, DEMAND_GPUS]
    out[at] = share(amounts[k, DEMAND_CPU] * count, cpu, count)
    out[at + 1] = share(amounts[k, DEMAND_MEMORY] * count, memory, count)
    out[at + 2] = share(each * gpus * count, gpu_memory, count)
    out[at + 3] = share(amounts[k, DEMAND_GPU_CORE] * gpus * count, gpu_core, count)


@compiled
def write_fitting_shares(fleet: FleetArrays, demands: DemandArrays, k: int, step: int, out: Float32) -> None:
    """Write shares like `write_shares`, with the free resources of only the nodes that fit the job now.

    Free resources of other nodes are of no use to the job. A cluster that does not fit the job has four zeros.

    Parameters
    ----------
    k, step, out
        As for `write_shares`; without a job, all nodes count.
    """
    write_shares(fleet, demands, k, step, out)
    if k < 0:
        return
    fleet, demands, out = borrowed(fleet), borrowed(demands), borrowed(out)
    clusters, nodes = fleet.clusters, fleet.nodes
    for c in range(clusters.shape[1]):
        for resource in range(RESOURCES):
            out[c * step + resource] = 0.0
    reset_bandwidth(fleet)
    find_usable_clusters(fleet, demands, k)
    for b in range(fleet.blocks.shape[1]):
        if not block_may_fit(fleet, demands, k, b):
            continue
        for n in range(b * BLOCK_NODES, min((b + 1) * BLOCK_NODES, nodes.shape[1])):
            c = nodes[NODE_CLUSTER, n]
            if fleet.clusters_open[CLUSTERS_USABLE, c] and node_fits(fleet, demands, k, n):
                at = c * step
                out[at] += share(nodes[NODE_CPU_FREE, n], clusters[CLUSTER_CPU, c], 1.0)
                out[at + 1] += share(nodes[NODE_MEMORY_FREE, n], clusters[CLUSTER_MEMORY, c], 1.0)
                out[at + 2] += share(nodes[NODE_GPU_MEMORY_FREE, n], clusters[CLUSTER_GPU_MEMORY, c], 1.0)
                out[at + 3] += share(nodes[NODE_GPU_CORE_FREE, n], clusters[CLUSTER_GPU_CORE, c], 1.0)


@compiled
def write_links(
    fleet: FleetArrays, demands: DemandArrays, k: int, figures: Float32, half_mbps: float, out: Float32
) -> None:
    """Write the properties of the link from the user of demand `k` to each cluster, after the four shares of each.

    Parameters
    ----------
    k
        Index of the demand; -1 for no job, whose links have the best values.
    figures
        Latency, jitter and loss from each gateway to each cluster, scaled, shape (G, 3 C).
    half_mbps
        Bandwidth with the value one half.
    out
        Values, shape (8 C + 8,); written from the fifth value of each cluster on.
    """
    fleet, demands, figures, out = borrowed(fleet), borrowed(demands), borrowed(figures), borrowed(out)
    gateway = demands.amounts[k, DEMAND_GATEWAY] if k >= 0 else -1
    for c in range(fleet.clusters.shape[1]):
        at = 2 * RESOURCES * c + RESOURCES
        target = fleet.clusters[CLUSTER_GATEWAY, c]
        if gateway < 0 or gateway == target:
            out[at] = out[at + 1] = out[at + 2] = 0.0
            out[at + 3] = 1.0
            continue
        for figure in range(3):
            out[at + figure] = figures[gateway, 3 * c + figure]
        mbps = 0
        if target >= 0:
            shared = min(fleet.gateways[GATEWAY_OUT, gateway], fleet.gateways[GATEWAY_IN, target])
            mbps = max(min(fleet.bandwidth[gateway, target], shared), 0)
        out[at + 3] = mbps / (mbps + half_mbps)
