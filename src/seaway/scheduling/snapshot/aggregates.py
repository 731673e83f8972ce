"""Sums over clusters: total, free and requested resources, regardless of nodes and devices.

The rows of the tables are CPU (thousandths of a core), memory (MiB), device memory (MiB) and device cores (thousandths
of a device).
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    NODE_CLUSTER,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.snapshot.snapshot import Snapshot

TOTALS = [CLUSTER_CPU, CLUSTER_MEMORY, CLUSTER_GPU_MEMORY, CLUSTER_GPU_CORE]


FREES = [CLUSTER_CPU_FREE, CLUSTER_MEMORY_FREE, CLUSTER_GPU_MEMORY_FREE, CLUSTER_GPU_CORE_FREE]


def free_sums(snapshot: Snapshot) -> Int64:
    """Return the free resources of each cluster, shape (4, C)."""
    return snapshot.arrays.clusters[FREES]


def total_sums(snapshot: Snapshot) -> Int64:
    """Return the total resources of each cluster, shape (4, C)."""
    return snapshot.arrays.clusters[TOTALS]


def asked_sums(snapshot: Snapshot, k: int) -> Int64:
    """Return the request of one replica of demand `k` in each cluster, shape (4, C).

    A share of device memory refers to the mean device of the cluster.
    """
    amounts = snapshot.demands.arrays.amounts[k]
    clusters = snapshot.arrays.clusters
    gpus = amounts[DEMAND_GPUS]
    memory = clusters[CLUSTER_GPU_MEMORY] // np.maximum(device_counts(snapshot), 1)
    memory = memory * amounts[DEMAND_GPU_PERCENT] // 100
    if amounts[DEMAND_GPU_MEMORY]:
        memory = np.full_like(memory, amounts[DEMAND_GPU_MEMORY])
    asked = np.empty((4, clusters.shape[1]), np.int64)
    asked[0], asked[1] = amounts[DEMAND_CPU], amounts[DEMAND_MEMORY]
    asked[2], asked[3] = memory * gpus, amounts[DEMAND_GPU_CORE] * gpus
    return asked


def device_counts(snapshot: Snapshot) -> Int64:
    """Return the number of devices of each cluster, shape (C,)."""
    nodes = snapshot.arrays.nodes
    counts = np.zeros(len(snapshot.clusters), np.int64)
    np.add.at(counts, nodes[NODE_CLUSTER], nodes[NODE_DEVICE_END] - nodes[NODE_DEVICE_FIRST])
    return counts


def free_gpu_milli(snapshot: Snapshot) -> Int64:
    """Return the free GPU capacity of each cluster, thousandths of a device, shape (C,).

    This is the mean of free cores and free memory, with memory in units of the cluster's mean device.
    """
    clusters = snapshot.arrays.clusters
    memory = clusters[CLUSTER_GPU_MEMORY_FREE] * clusters[CLUSTER_GPU_CORE]
    free: Int64 = (clusters[CLUSTER_GPU_CORE_FREE] + memory // np.maximum(clusters[CLUSTER_GPU_MEMORY], 1)) // 2
    return free
