"""Totals of each cluster, before and after a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seaway.application.views import Amount
from seaway.scheduling.columns import (
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
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
        Totals of these nodes.
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
    sums = snapshot.arrays.clusters
    found = {}
    for at, cluster in enumerate(snapshot.clusters):
        core, core_free, memory, memory_free = (
            int(sums[row, at])
            for row in (CLUSTER_GPU_CORE, CLUSTER_GPU_CORE_FREE, CLUSTER_GPU_MEMORY, CLUSTER_GPU_MEMORY_FREE)
        )
        found[cluster.name] = ClusterSums(
            nodes[cluster.name],
            counted[cluster.name],
            Amount(core, core - core_free),
            Amount(memory, memory - memory_free),
        )
    return found
