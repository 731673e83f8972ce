"""Baselines: a federation of clusters that ignores nodes and links.

They choose clusters only by sums of free resources. Each cluster then places the replicas itself. A job counts as
placed only if one of its duplicates fits and the links to its clusters meet its bounds.

`VolcanoDivided` and `VolcanoDuplicated` are for comparisons: a replica that its cluster cannot hold is lost. In queues,
`MostFreeCluster` chooses as the former does, and such a replica waits.
"""

from __future__ import annotations

import numpy as np

from seaway.domain.reasons import Reason
from seaway.scheduling.arrays import DemandArrays, FleetArrays
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    CLUSTERS_RESERVED,
    DEMAND_BANDWIDTH,
    DEMAND_GATEWAY,
    DEMAND_NETWORK,
    JOB_DEMAND,
    JOB_GANG,
    NODE_CLUSTER,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
    PLAN_DUPLICATE,
    PLAN_LINK_MISSED,
    PLAN_NODE,
)
from seaway.scheduling.framework import Codes, Cycle, Mask, Plugin, Scores
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.decide import DeviceKeys, allocate_with_keys, reset_bandwidth_of
from seaway.scheduling.kernels.fit import node_fits
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.plugins.network import Network
from seaway.scheduling.plugins.nodes import DeviceFit, NodeResources
from seaway.scheduling.policies.utilization import WHOLE_PPM, share_ppm
from seaway.scheduling.snapshot.aggregates import asked_sums, free_gpu_milli, free_sums
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement


@compiled
def node_free_ppm(fleet: FleetArrays, n: int) -> int:
    """Return the sum of the free shares of node `n` over the four resources, parts per million."""
    nodes = fleet.nodes
    return (
        share_ppm(nodes[NODE_CPU_FREE, n], nodes[NODE_CPU, n])
        + share_ppm(nodes[NODE_MEMORY_FREE, n], nodes[NODE_MEMORY, n])
        + share_ppm(nodes[NODE_GPU_MEMORY_FREE, n], nodes[NODE_GPU_MEMORY, n])
        + share_ppm(nodes[NODE_GPU_CORE_FREE, n], nodes[NODE_GPU_CORE, n])
    )


@compiled
def least_allocated(fleet: FleetArrays, demands: DemandArrays, k: int, c: int) -> int:
    """Return the node of cluster `c` with the highest free share that fits demand `k`; -1 for none.

    Links are ignored. Ties go to the first node.
    """
    lent, asked = borrowed(fleet), borrowed(demands)
    best, best_free = -1, -1
    for n in range(fleet.nodes.shape[1]):
        if lent.nodes[NODE_CLUSTER, n] == c and node_fits(lent, asked, k, n):
            free = node_free_ppm(lent, n)
            if free > best_free:
                best, best_free = n, free
    return best


class VolcanoDivided:
    """Division of a job's replicas among clusters by free GPU.

    Each replica is placed in the cluster with the most free GPU capacity, which is the mean of cores and memory; ties
    go to the first. There it is placed on the least allocated node that fits. If none fits, it is not placed. A gang is
    placed as a whole or not.
    """

    name = "volcano-divided"

    def decide(self, snapshot: Snapshot, queue: JobQueue) -> Plan:
        """Decide all jobs of the queue and update the snapshot."""
        statement = Statement(snapshot, queue)
        for j, job in enumerate(queue):
            if not snapshot.clusters:
                statement.mark_unplaced(j)
                continue
            before = statement.checkpoint()
            reset_bandwidth_of(snapshot.arrays)
            for replica in range(job.replicas):
                cluster = int(free_gpu_milli(snapshot).argmax())
                place_in_cluster(statement, j, replica, cluster)
            nodes = statement.decisions[before[0] : statement.length, PLAN_NODE]
            if queue.rows[j, JOB_GANG] and (nodes < 0).any():
                statement.rollback(before)
                statement.mark_unplaced(j)
        return statement.commit()


class MostFreeCluster:
    """Choice of the cluster for each replica as in `VolcanoDivided`, and of its least allocated node.

    It follows the rules on clusters and nodes, and ignores links and amounts of nodes and devices. Later filters check
    those, and a replica that does not fit in the cluster is not placed.
    """

    name = "volcano-divided"
    reasons = ("not in the cluster with the most free GPU",)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for the nodes of the chosen cluster, else 1, shape (N,)."""
        home = cycle.snapshot.arrays.nodes[NODE_CLUSTER]
        allowed: Mask = np.zeros(len(cycle.snapshot.clusters), np.bool_)
        allowed[home[cycle.feasible]] = True
        allowed &= cycle.usable
        if not allowed.any():
            return np.zeros(len(home), np.uint8)
        chosen = int(np.where(allowed, free_gpu_milli(cycle.snapshot), np.iinfo(np.int64).min).argmax())
        name = cycle.snapshot.clusters[chosen].name
        cycle.message = Reason("most_free", policy=self.name, place=name)
        return (home != chosen).astype(np.uint8)

    def score(self, cycle: Cycle) -> Scores:
        """Return the sum of the free shares of each node over the four resources, parts per million, shape (N,)."""
        nodes = cycle.snapshot.arrays.nodes
        free, total = nodes[FREE_OF_NODE].astype(np.int64), nodes[TOTAL_OF_NODE]
        scores: Scores = (np.where(total > 0, free * WHOLE_PPM, 0) // np.maximum(total, 1)).sum(axis=0)
        return scores


FREE_OF_NODE = [NODE_CPU_FREE, NODE_MEMORY_FREE, NODE_GPU_MEMORY_FREE, NODE_GPU_CORE_FREE]
TOTAL_OF_NODE = [NODE_CPU, NODE_MEMORY, NODE_GPU_MEMORY, NODE_GPU_CORE]


def divided_plugins() -> tuple[Plugin, ...]:
    """Return the plugins of the mode for queues: the rules that clusters follow, its choice, then links and amounts."""
    rules = rules_of_fit()
    late = [each for each in rules if isinstance(each, Network | NodeResources | DeviceFit)]
    return (*(each for each in rules if each not in late), MostFreeCluster(), *late)


class VolcanoDuplicated:
    """Duplication of a whole job in every cluster.

    Each cluster whose total free resources are sufficient gets a duplicate. Duplicates whose replicas all fit keep
    their resources.
    """

    name = "volcano-duplicated"

    def decide(self, snapshot: Snapshot, queue: JobQueue) -> Plan:
        """Decide all jobs of the queue and update the snapshot."""
        statement = Statement(snapshot, queue, duplicates=max(len(snapshot.clusters), 1))
        for j, job in enumerate(queue):
            k = int(queue.rows[j, JOB_DEMAND])
            enough = (job.replicas * asked_sums(snapshot, k) <= free_sums(snapshot)).all(axis=0)
            reset_bandwidth_of(snapshot.arrays)
            copies = 0
            for cluster in np.flatnonzero(enough):
                copies += place_duplicate(statement, j, int(cluster), copies)
            if not copies:
                statement.mark_unplaced(j)
        return statement.commit()


def place_duplicate(statement: Statement, j: int, cluster: int, duplicate: int) -> bool:
    """Place a whole job in one cluster as duplicate number `duplicate`, or roll back. Return whether it was placed."""
    before = statement.checkpoint()
    for replica in range(statement.queue.jobs[j].replicas):
        if not place_in_cluster(statement, j, replica, cluster):
            statement.rollback(before)
            return False
    statement.decisions[before[0] : statement.length, PLAN_DUPLICATE] = duplicate
    return True


def place_in_cluster(statement: Statement, j: int, replica: int, cluster: int) -> bool:
    """Place a replica on the least allocated node of a cluster. Return whether a node fits.

    A replica whose link violates the bounds holds its devices, but reserves no bandwidth.
    """
    row = statement.start(j, replica)
    arrays, demands = statement.snapshot.arrays, statement.snapshot.demands.arrays
    k = int(statement.queue.rows[j, JOB_DEMAND])
    n = least_allocated(arrays, demands, k, cluster)
    if n < 0:
        return False
    missed = not link_satisfies(statement.snapshot, k, cluster)
    paid = arrays.clusters_open[CLUSTERS_RESERVED]
    paid[cluster] |= missed  # bandwidth of marked clusters is not reserved
    first, end = (int(d) for d in arrays.nodes[[NODE_DEVICE_FIRST, NODE_DEVICE_END], n])
    given = DeviceKeys(np.zeros(end - first, np.int64), first)
    line = statement.decisions[row]
    statement.slice_end = allocate_with_keys(given, arrays, demands, n, line, statement.slices)
    line[PLAN_LINK_MISSED] = missed
    if missed:
        paid[cluster] = 0
    return True


def link_satisfies(snapshot: Snapshot, k: int, cluster: int) -> bool:
    """Report whether the link from the user to a cluster meets the bounds of demand `k`, including bandwidth."""
    arrays, demands = snapshot.arrays, snapshot.demands.arrays
    network, mbps = int(demands.amounts[k, DEMAND_NETWORK]), int(demands.amounts[k, DEMAND_BANDWIDTH])
    if network < 0:
        return True
    if not demands.cluster_ok[network, cluster]:
        return False
    if not mbps or arrays.clusters_open[CLUSTERS_RESERVED, cluster]:
        return True
    target = int(arrays.clusters[CLUSTER_GATEWAY, cluster])
    return target >= 0 and int(free_bandwidth(arrays, demands.amounts[k, DEMAND_GATEWAY], target)) >= mbps
