"""Decision loop over a queue, with an update of the fleet after each replica."""

from __future__ import annotations

from typing import Any, NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int32, Int64
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    CLUSTERS_ALLOWED,
    CLUSTERS_RESERVED,
    CLUSTERS_USABLE,
    DEMAND_BANDWIDTH,
    DEMAND_GATEWAY,
    DEMAND_GPUS,
    DEMAND_GROUP,
    DEMAND_NETWORK,
    DEMAND_STRICTER,
    DEVICE_MIG,
    JOB_DEMAND,
    JOB_GANG,
    JOB_REPLICAS,
    JOB_SEQUENCE,
    NODE_CLUSTER,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    PLAN_BANDWIDTH,
    PLAN_DEMAND,
    PLAN_DUPLICATE,
    PLAN_JOB,
    PLAN_LINK_MISSED,
    PLAN_NODE,
    PLAN_PODS,
    PLAN_REPLICA,
    PLAN_REPLICA_BANDWIDTH,
    PLAN_RING_TO,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    SLICE_DEVICE,
    STRICTER_ROWS,
)
from seaway.scheduling.kernels.allocate import allocate_node, log_change, release_range, reserve_bandwidth, take_slice
from seaway.scheduling.kernels.compile import compiled, mixed, specialises
from seaway.scheduling.kernels.fit import (
    all_or_none,
    device_fits,
    device_rank,
    group_to_take,
    island_loss,
    node_fits,
    requests_connection,
    serves_alone,
    slices_on_node,
    strictest_demand,
)
from seaway.scheduling.kernels.network import has_bandwidth
from seaway.scheduling.kernels.policy_stubs import device_key, found_score, search
from seaway.scheduling.kernels.shared_arrays import borrowed


@compiled
def find_usable_clusters(fleet: FleetArrays, demands: DemandArrays, k: int) -> None:
    """Mark the clusters that demand `k` may use, by their links.

    Bandwidth is not checked for clusters to which the job already reserved it.
    """
    marks = fleet.clusters_open
    network = demands.amounts[k, DEMAND_NETWORK]
    mbps = demands.amounts[k, DEMAND_BANDWIDTH]
    for c in range(marks.shape[1]):
        usable = marks[CLUSTERS_ALLOWED, c] != 0
        if usable and network >= 0:
            usable = demands.cluster_ok[network, c] != 0
            if usable and mbps > 0 and not marks[CLUSTERS_RESERVED, c]:
                target = fleet.clusters[CLUSTER_GATEWAY, c]
                usable = target >= 0 and has_bandwidth(fleet, demands.amounts[k, DEMAND_GATEWAY], target, mbps)
        marks[CLUSTERS_USABLE, c] = usable


@compiled
def take_devices(
    params: Any,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    n: int,
    random_bits: int,
    slices: Int32,
    first: int,
) -> int:
    """Allocate the devices of one replica on node `n`, which must fit. Return the end of its slices.

    Devices are allocated one after the other, each time the best that still fits. Among equal ones, NVLink
    islands decide, so that whole islands stay free. Only a device in MIG mode can serve a replica twice, and then does
    so while it fits, because devices are ranked before the first slice. A device that must serve all slices of a
    replica is used for all of them, or not used.
    """
    gpus = demands.amounts[k, DEMAND_GPUS]
    end = first + gpus
    if demands.amounts[k, DEMAND_STRICTER] != 0:
        k = strictest_demand(fleet, demands, k, n)
    group = group_to_take(fleet, demands, k, n)
    row = demands.amounts[k, DEMAND_GROUP]
    alone = gpus > 1 and slices_on_node(fleet, demands, k, n, group, gpus, False) < gpus
    best = -1
    for at in range(first, end):
        if best >= 0 and fleet.devices[DEVICE_MIG, best] >= 0 and device_fits(fleet, demands, k, best):
            take_slice(fleet, demands, k, best, slices[at])
            continue
        best, best_key = -1, 0
        for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
            if (group >= 0 and fleet.devices[row, d] != group) or not device_fits(fleet, demands, k, d):
                continue
            if all_or_none(fleet, demands, k, d):
                if at > first or not serves_alone(fleet, demands, k, d):
                    continue
            elif alone:
                continue
            taken = False
            for earlier in range(first, at):
                taken |= slices[earlier, SLICE_DEVICE] == d
            if taken:
                continue
            key = device_key(params, fleet, demands, k, d, random_bits)
            if (
                best >= 0
                and key == best_key
                and device_rank(fleet, n, d, end - at) < device_rank(fleet, n, best, end - at)
            ):
                best = d
            elif best < 0 or key < best_key:
                best, best_key = d, key
        take_slice(fleet, demands, k, best, slices[at])
    return end


@compiled
def allocate_replica(
    params: Any, fleet: FleetArrays, demands: DemandArrays, n: int, random_bits: int, line: Int64, slices: Int32
) -> int:
    """Place the replica of plan row `line` on node `n`. Return the end of its slices.

    Parameters
    ----------
    line
        Row of the plan with demand and first slice, shape (PLAN_ROWS,); updated.
    slices
        Slices, shape (S, SLICE_ROWS); updated from the row's first slice on.
    """
    k = line[PLAN_DEMAND]
    end = line[PLAN_SLICE_FIRST]
    if demands.amounts[k, DEMAND_GPUS]:
        end = take_devices(params, fleet, demands, k, n, random_bits, slices, end)
    allocate_node(fleet, demands, k, n, 1, line[PLAN_PODS])
    cluster = fleet.nodes[NODE_CLUSTER, n]
    mbps = demands.amounts[k, DEMAND_BANDWIDTH]
    if mbps > 0 and not fleet.clusters_open[CLUSTERS_RESERVED, cluster]:
        fleet.clusters_open[CLUSTERS_RESERVED, cluster] = 1
        line[PLAN_BANDWIDTH] = mbps
        reserve_bandwidth(fleet, demands, k, n, mbps)
    line[PLAN_NODE] = n
    line[PLAN_SLICE_END] = end
    log_change(fleet, n)
    return end


@compiled
def decide_queue(
    params: Any,
    seed: int,
    fleet: FleetArrays,
    demands: DemandArrays,
    jobs: Int64,
    first_job: int,
    first_replica: int,
    plan: Int64,
    slices: Int32,
    row: int,
    end: int,
) -> tuple[int, int]:
    """Place the replicas of `jobs` in order.

    Parameters
    ----------
    params
        Parameters of the policy.
    seed
        Seed of random choices, combined with the numbers of the job and the replica.
    jobs
        Jobs, shape (J, JOB_ROWS).
    first_job
        Number of the first job in the plan.
    first_replica
        Number of the first replica of each job to place. If it is above 0, the job is continued and keeps its bandwidth
        reservations.
    plan
        Plan, shape (R, PLAN_ROWS); written from row `row` on.
    slices
        Slices, shape (S, SLICE_ROWS); written from row `end` on.

    Returns
    -------
    tuple of int
        End of the written rows of `plan` and of `slices`.
    """
    params, fleet, demands = borrowed(params), borrowed(fleet), borrowed(demands)
    jobs, plan, slices = borrowed(jobs), borrowed(plan), borrowed(slices)
    for j in range(jobs.shape[0]):
        if first_replica == 0:
            reset_bandwidth(fleet)
        first, first_slice = row, end
        broken = False  # replicas are equal: after the first that does not fit, no other fits
        for replica in range(first_replica, jobs[j, JOB_REPLICAS]):
            line = plan[row]
            start_row(line, first_job + j, replica, jobs[j, JOB_DEMAND], end)
            row += 1
            if not broken:
                random_bits = mixed(seed, jobs[j, JOB_SEQUENCE], replica)
                end = place_replica(params, fleet, demands, random_bits, line, slices)
                broken = line[PLAN_NODE] < 0
        if broken and jobs[j, JOB_GANG] != 0:
            release_range(fleet, demands, plan, slices, first, row)
            for at in range(first, row):
                plan[at, PLAN_SLICE_FIRST] = plan[at, PLAN_SLICE_END] = first_slice
            end = first_slice
    return row, end


@compiled
def choose_for(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> int:
    """Return the best node for demand `k`, among those that fit its first stricter row that fits any; -1 for none.

    Among nodes with equal scores, NVLink islands decide if the demand asks for connected devices.
    """
    find_usable_clusters(fleet, demands, k)
    usable = fleet.clusters_open[CLUSTERS_USABLE]
    if not requests_connection(demands, k):
        return int(search(params, fleet, demands, k, random_bits, usable))
    stricter = STRICTER_ROWS if demands.amounts[k, DEMAND_STRICTER] != 0 else 0
    for at in range(stricter + 1):
        row = demands.amounts[k, DEMAND_STRICTER + at] - 1 if at < stricter else k
        n = int(search(params, fleet, demands, row, random_bits, usable))
        if n >= 0:
            return least_broken(params, fleet, demands, row, n, random_bits)
    return -1


@compiled
def least_broken(params: Any, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int) -> int:
    """Return the node where demand `k` breaks NVLink islands least, among those with the score of node `n`.

    Node `n` is the first with the highest score. Ties go to the first node.
    """
    score = found_score(params, fleet, demands, k, n, random_bits)
    best, least = n, island_loss(fleet, demands, k, n)
    for other in range(n + 1, fleet.nodes.shape[1]):
        if (
            fleet.clusters_open[CLUSTERS_USABLE, fleet.nodes[NODE_CLUSTER, other]]
            and found_score(params, fleet, demands, k, other, random_bits) == score
            and node_fits(fleet, demands, k, other)
        ):
            loss = island_loss(fleet, demands, k, other)
            if loss < least:
                best, least = other, loss
    return best


@compiled
def place_replica(
    params: Any, fleet: FleetArrays, demands: DemandArrays, random_bits: int, line: Int64, slices: Int32
) -> int:
    """Decide one replica, whose plan row was started. Return the end of its slices."""
    n = choose_for(params, fleet, demands, line[PLAN_DEMAND], random_bits)
    if n < 0:
        return line[PLAN_SLICE_END]
    return allocate_replica(params, fleet, demands, n, random_bits, line, slices)


@compiled
def plan_size(amounts: Int64, jobs: Int64) -> tuple[int, int]:
    """Return the number of replicas of `jobs` and of their slices, from the table of demands."""
    replicas = slices = 0
    for j in range(jobs.shape[0]):
        replicas += jobs[j, JOB_REPLICAS]
        slices += jobs[j, JOB_REPLICAS] * amounts[jobs[j, JOB_DEMAND], DEMAND_GPUS]
    return replicas, slices


@compiled
def start_row(line: Int64, job: int, replica: int, k: int, end: int) -> None:
    """Start a plan row for a replica of demand `k`, as not placed."""
    line[PLAN_JOB] = job
    line[PLAN_REPLICA] = replica
    line[PLAN_DEMAND] = k
    line[PLAN_NODE] = -1
    line[PLAN_SLICE_FIRST] = end
    line[PLAN_SLICE_END] = end
    line[PLAN_BANDWIDTH] = 0
    line[PLAN_REPLICA_BANDWIDTH] = 0
    line[PLAN_RING_TO] = 0
    line[PLAN_DUPLICATE] = 0
    line[PLAN_PODS] = 1
    line[PLAN_LINK_MISSED] = 0


@compiled
def reset_bandwidth(fleet: FleetArrays) -> None:
    """Clear the marks of reserved bandwidth for a new job."""
    for c in range(fleet.clusters_open.shape[1]):
        fleet.clusters_open[CLUSTERS_RESERVED, c] = 0


class DeviceKeys(NamedTuple):
    """Keys of one node's devices from the plain path.

    Attributes
    ----------
    keys
        Keys, shape (devices of the node,), int64; the device with the lowest key that fits wins.
    first
        Index of the node's first device.
    """

    keys: Int64
    first: int


@specialises(device_key, DeviceKeys)
def _device_key(params: DeviceKeys, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int) -> int:
    return params.keys[d - params.first]


@compiled
def allocate_with_keys(
    params: DeviceKeys, fleet: FleetArrays, demands: DemandArrays, n: int, line: Int64, slices: Int32
) -> int:
    """Place the replica of plan row `line` on node `n`, which must fit; for callers in Python."""
    lent = borrowed(fleet)
    return allocate_replica(borrowed(params), lent, borrowed(demands), n, 0, borrowed(line), borrowed(slices))


def reset_bandwidth_of(fleet: FleetArrays) -> None:
    """Clear the marks of reserved bandwidth from Python, which is ten times as fast as a call of a kernel."""
    fleet.clusters_open[CLUSTERS_RESERVED] = 0
