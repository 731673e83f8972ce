"""Totals of each cluster, before and after a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seaway.application.views import Amount
from seaway.scheduling.arrays import Float64, Int64
from seaway.scheduling.columns import (
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_NODE,
    DEVICE_OPEN,
    NODE_CLUSTER,
    NODE_OPEN,
)
from seaway.scheduling.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Totals of a cluster.

    Attributes
    ----------
    nodes
        Number of nodes that accept new work.
    jobs
        Number of jobs with a replica in the cluster.
    gpu_milli, gpu_memory_mib
        Totals of these nodes. A slice counts as its larger share of cores and memory of a GPU.
    """

    nodes: int
    jobs: int
    gpu_milli: Amount
    gpu_memory_mib: Amount


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """Totals of a cluster before and after a change."""

    name: str
    before: ClusterSums
    after: ClusterSums


def sums_of(snapshot: Snapshot, jobs: Iterable[Sequence[str]]) -> dict[str, ClusterSums]:
    """Return the totals of each cluster.

    Parameters
    ----------
    jobs
        Locations of the replicas of each job, as ``cluster/node``.
    """
    counted = Counter(cluster for places in jobs for cluster in {place.partition("/")[0] for place in places})
    is_open = snapshot.arrays.nodes[NODE_OPEN]
    nodes = Counter(cluster for (cluster, _), index in snapshot.node_index.items() if is_open[index])
    sums, (shares, clusters) = snapshot.arrays.clusters, shares_of_gpus(snapshot)
    found = {}
    for at, cluster in enumerate(snapshot.clusters):
        memory, free = (int(sums[row, at]) for row in (CLUSTER_GPU_MEMORY, CLUSTER_GPU_MEMORY_FREE))
        gpus = shares[clusters == at]
        found[cluster.name] = ClusterSums(
            nodes[cluster.name],
            counted[cluster.name],
            Amount(1000 * len(gpus), round(1000 * float(gpus.sum()))),
            Amount(memory, memory - free),
        )
    return found


def shares_of_gpus(snapshot: Snapshot) -> tuple[Float64, Int64]:
    """Return the allocated share of each device that accepts new work, the larger one of cores and memory.

    The second array is the cluster of each.
    """
    devices, nodes = snapshot.arrays.devices, snapshot.arrays.nodes
    of = devices[:, (nodes[NODE_OPEN][devices[DEVICE_NODE]] == 1) & (devices[DEVICE_OPEN] == 1)]
    core = 1 - of[DEVICE_CORE_FREE] / np.maximum(of[DEVICE_CORE], 1)
    memory = 1 - of[DEVICE_MEMORY_FREE] / np.maximum(of[DEVICE_MEMORY], 1)
    shares = np.where(of[DEVICE_CORE] > 0, np.maximum(core, memory), memory)
    return shares, nodes[NODE_CLUSTER][of[DEVICE_NODE]]
