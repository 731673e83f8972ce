"""Allocation and release of the resources of replicas.

Each change updates the derived columns of the node, its block and its cluster, and logs the node for caches.
"""

from __future__ import annotations

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int32, Int64
from seaway.scheduling.columns import (
    BLOCK_CPU,
    BLOCK_LEFT,
    BLOCK_MEMORY,
    BLOCK_NODES,
    BLOCK_ROOM_CORE,
    BLOCK_ROOM_MEMORY,
    BLOCK_ROOM_WHOLE,
    CELLS,
    CLUSTER_CPU_FREE,
    CLUSTER_GATEWAY,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY_FREE,
    CLUSTERS_RESERVED,
    CPU_PER_GPU_MILLI,
    DEMAND_CPU,
    DEMAND_GATEWAY,
    DEMAND_MEMORY,
    DEMAND_MIG,
    DEVICE_CELL,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_FREE_MILLI,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_MIG,
    DEVICE_MIG_USED,
    DEVICE_MOVED_TO,
    DEVICE_OPEN,
    DEVICE_SLOTS,
    DEVICE_SLOTS_FREE,
    MIG_CORE,
    MIG_MEMORY,
    MIG_SIZE,
    NODE_ACCEPTS,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    NODE_LEFT,
    NODE_MEMORY_FREE,
    NODE_OPEN,
    NODE_PODS_FREE,
    NODE_ROOM_CORE,
    NODE_ROOM_MEMORY,
    NODE_ROOM_WHOLE,
    PLAN_BANDWIDTH,
    PLAN_DEMAND,
    PLAN_DUPLICATE,
    PLAN_JOB,
    PLAN_NODE,
    PLAN_PODS,
    PLAN_REPLICA_BANDWIDTH,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    ROOM_STEP,
    ROOM_STEPS,
    SLICE_CORE,
    SLICE_DEVICE,
    SLICE_MEMORY,
    SLICE_MIG,
    SLICE_START,
)
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.fit import WHOLE_MILLI, core_needed, memory_needed, mig_slot
from seaway.scheduling.kernels.network import current_node, gateway_of, reserve_between_gateways, reserve_link
from seaway.scheduling.kernels.shared_arrays import borrowed

MIG_INSTANCES = 7
"""Maximum number of MIG instances of a device."""
MILLI_PER_CELL = WHOLE_MILLI // (CELLS - 1)
NOTHING = 2**31 - 1


@compiled
def gpu_left_milli(core_free: int, core: int, memory_free: int, memory: int) -> int:
    """Return the free capacity of a node's devices, thousandths of a device: the mean of cores and memory."""
    return (core_free + memory_free * core // max(memory, 1)) // 2


@compiled
def refresh_device(fleet: FleetArrays, d: int) -> None:
    """Update the derived columns of device `d`."""
    devices = fleet.devices
    usable = devices[DEVICE_OPEN, d] and devices[DEVICE_SLOTS_FREE, d] > 0
    core = max(devices[DEVICE_CORE_FREE, d], 0) * WHOLE_MILLI // max(devices[DEVICE_CORE, d], 1)
    memory = max(devices[DEVICE_MEMORY_FREE, d], 0) * WHOLE_MILLI // max(devices[DEVICE_MEMORY, d], 1)
    devices[DEVICE_FREE_MILLI, d] = min(core, memory) if usable else 0
    devices[DEVICE_CELL, d] = (memory // MILLI_PER_CELL) * CELLS + core // MILLI_PER_CELL if usable else 0


@compiled
def refresh_node(fleet: FleetArrays, n: int) -> None:
    """Update the derived columns of node `n` from its devices, and the sums of its cluster."""
    nodes = fleet.nodes
    devices = fleet.devices
    room_memory, room_core, whole = -1, -1, 0
    memory, memory_free, core, core_free = 0, 0, 0, 0
    for d in range(nodes[NODE_DEVICE_FIRST, n], nodes[NODE_DEVICE_END, n]):
        if not devices[DEVICE_OPEN, d] or not nodes[NODE_OPEN, n]:
            continue
        memory += devices[DEVICE_MEMORY, d]
        memory_free += devices[DEVICE_MEMORY_FREE, d]
        core += devices[DEVICE_CORE, d]
        core_free += devices[DEVICE_CORE_FREE, d]
        if devices[DEVICE_SLOTS_FREE, d] <= 0:
            continue
        room_memory = max(room_memory, devices[DEVICE_MEMORY_FREE, d])
        room_core = max(room_core, devices[DEVICE_CORE_FREE, d])
        if devices[DEVICE_MIG, d] >= 0:
            whole += MIG_INSTANCES
        elif (
            devices[DEVICE_SLOTS_FREE, d] == devices[DEVICE_SLOTS, d]
            or devices[DEVICE_CORE, d] != WHOLE_MILLI
            or devices[DEVICE_MEMORY_FREE, d] == devices[DEVICE_MEMORY, d]
        ):
            whole += 1
    nodes[NODE_ROOM_MEMORY, n] = room_memory
    nodes[NODE_ROOM_CORE, n] = room_core
    nodes[NODE_ROOM_WHOLE, n] = whole
    cluster = nodes[NODE_CLUSTER, n]
    fleet.clusters[CLUSTER_GPU_MEMORY, cluster] += memory - nodes[NODE_GPU_MEMORY, n]
    fleet.clusters[CLUSTER_GPU_MEMORY_FREE, cluster] += memory_free - nodes[NODE_GPU_MEMORY_FREE, n]
    fleet.clusters[CLUSTER_GPU_CORE, cluster] += core - nodes[NODE_GPU_CORE, n]
    fleet.clusters[CLUSTER_GPU_CORE_FREE, cluster] += core_free - nodes[NODE_GPU_CORE_FREE, n]
    nodes[NODE_GPU_MEMORY, n] = memory
    nodes[NODE_GPU_MEMORY_FREE, n] = memory_free
    nodes[NODE_GPU_CORE, n] = core
    nodes[NODE_GPU_CORE_FREE, n] = core_free
    left = gpu_left_milli(core_free, core, memory_free, memory)
    nodes[NODE_LEFT, n] = nodes[NODE_CPU_FREE, n] + CPU_PER_GPU_MILLI * left
    nodes[NODE_ACCEPTS, n] = nodes[NODE_OPEN, n] != 0 and nodes[NODE_PODS_FREE, n] > 0


@compiled
def room_step(core: int) -> int:
    """Return the step of block rows for `core` free cores on one device."""
    return min(max(core, 0) // ROOM_STEP, ROOM_STEPS)


@compiled
def refresh_block(fleet: FleetArrays, b: int) -> None:
    """Update the best values of block `b` from its nodes that accept pods."""
    nodes = fleet.nodes
    blocks = fleet.blocks
    memory, room_memory, room_core, whole = -1, -1, -1, -1
    for step in range(ROOM_STEPS + 1):
        blocks[BLOCK_LEFT + step, b] = NOTHING
        blocks[BLOCK_CPU + step, b] = -1
    for n in range(b * BLOCK_NODES, min((b + 1) * BLOCK_NODES, nodes.shape[1])):
        if nodes[NODE_ACCEPTS, n]:
            memory = max(memory, nodes[NODE_MEMORY_FREE, n])
            room_memory = max(room_memory, nodes[NODE_ROOM_MEMORY, n])
            room_core = max(room_core, nodes[NODE_ROOM_CORE, n])
            whole = max(whole, nodes[NODE_ROOM_WHOLE, n])
            step = room_step(nodes[NODE_ROOM_CORE, n])
            blocks[BLOCK_LEFT + step, b] = min(blocks[BLOCK_LEFT + step, b], nodes[NODE_LEFT, n])
            blocks[BLOCK_CPU + step, b] = max(blocks[BLOCK_CPU + step, b], nodes[NODE_CPU_FREE, n])
    for step in range(ROOM_STEPS, 0, -1):
        blocks[BLOCK_LEFT + step - 1, b] = min(blocks[BLOCK_LEFT + step - 1, b], blocks[BLOCK_LEFT + step, b])
        blocks[BLOCK_CPU + step - 1, b] = max(blocks[BLOCK_CPU + step - 1, b], blocks[BLOCK_CPU + step, b])
    blocks[BLOCK_MEMORY, b] = memory
    blocks[BLOCK_ROOM_MEMORY, b] = room_memory
    blocks[BLOCK_ROOM_CORE, b] = room_core
    blocks[BLOCK_ROOM_WHOLE, b] = whole


@compiled
def log_change(fleet: FleetArrays, n: int) -> None:
    """Update the derived columns of node `n` and its block, and log the change."""
    refresh_node(fleet, n)
    refresh_block(fleet, n // BLOCK_NODES)
    fleet.log[fleet.head[0] % fleet.log.shape[0]] = n
    fleet.head[0] += 1


@compiled
def take_slice(fleet: FleetArrays, demands: DemandArrays, k: int, d: int, out: Int32) -> None:
    """Allocate one slice of demand `k` on device `d`, which must fit, and write it to the row `out`."""
    devices = fleet.devices
    memory = memory_needed(fleet, demands, k, d)
    core = core_needed(fleet, demands, k, d)
    profile, start = -1, -1
    if devices[DEVICE_MIG, d] >= 0:
        profile, start = mig_slot(fleet, d, memory, demands.amounts[k, DEMAND_MIG])
        memory = fleet.mig[profile, MIG_MEMORY]
        core = fleet.mig[profile, MIG_CORE]
        devices[DEVICE_MIG_USED, d] |= ((1 << fleet.mig[profile, MIG_SIZE]) - 1) << start
    devices[DEVICE_MEMORY_FREE, d] -= memory
    devices[DEVICE_CORE_FREE, d] -= core
    devices[DEVICE_SLOTS_FREE, d] -= 1
    refresh_device(fleet, d)
    out[SLICE_DEVICE] = d
    out[SLICE_MEMORY] = memory
    out[SLICE_CORE] = core
    out[SLICE_MIG] = profile
    out[SLICE_START] = start


@compiled
def current_device(fleet: FleetArrays, d: int) -> int:
    """Return the current index of device `d`."""
    while fleet.devices[DEVICE_MOVED_TO, d] >= 0:
        d = fleet.devices[DEVICE_MOVED_TO, d]
    return d


@compiled
def release_slice(fleet: FleetArrays, slice_: Int32) -> None:
    """Release a slice of `take_slice`."""
    devices = fleet.devices
    d = current_device(fleet, slice_[SLICE_DEVICE])
    devices[DEVICE_MEMORY_FREE, d] += slice_[SLICE_MEMORY]
    devices[DEVICE_CORE_FREE, d] += slice_[SLICE_CORE]
    devices[DEVICE_SLOTS_FREE, d] += 1
    if slice_[SLICE_MIG] >= 0:
        cover = ((1 << fleet.mig[slice_[SLICE_MIG], MIG_SIZE]) - 1) << slice_[SLICE_START]
        devices[DEVICE_MIG_USED, d] &= ~cover
    refresh_device(fleet, d)


@compiled
def restore_slice(fleet: FleetArrays, slice_: Int32) -> None:
    """Allocate a slice with given amounts, whether or not it fits: the inverse of `release_slice`."""
    devices = fleet.devices
    d = current_device(fleet, slice_[SLICE_DEVICE])
    devices[DEVICE_MEMORY_FREE, d] -= slice_[SLICE_MEMORY]
    devices[DEVICE_CORE_FREE, d] -= slice_[SLICE_CORE]
    devices[DEVICE_SLOTS_FREE, d] -= 1
    if slice_[SLICE_MIG] >= 0:
        devices[DEVICE_MIG_USED, d] |= ((1 << fleet.mig[slice_[SLICE_MIG], MIG_SIZE]) - 1) << slice_[SLICE_START]
    refresh_device(fleet, d)


@compiled
def allocate_node(fleet: FleetArrays, demands: DemandArrays, k: int, n: int, sign: int, pods: int) -> None:
    """Allocate (`sign` 1) or release (-1) the CPU and memory of demand `k`, and `pods` pods, on node `n`."""
    cpu = sign * demands.amounts[k, DEMAND_CPU]
    memory = sign * demands.amounts[k, DEMAND_MEMORY]
    cluster = fleet.nodes[NODE_CLUSTER, n]
    fleet.nodes[NODE_CPU_FREE, n] -= cpu
    fleet.nodes[NODE_MEMORY_FREE, n] -= memory
    fleet.nodes[NODE_PODS_FREE, n] -= sign * pods
    if fleet.nodes[NODE_OPEN, n]:
        fleet.clusters[CLUSTER_CPU_FREE, cluster] -= cpu
        fleet.clusters[CLUSTER_MEMORY_FREE, cluster] -= memory


@compiled
def reserve_bandwidth(fleet: FleetArrays, demands: DemandArrays, k: int, n: int, mbps: int) -> None:
    """Reserve `mbps` on the link between the user of demand `k` and the cluster of node `n`."""
    if mbps != 0:
        target = fleet.clusters[CLUSTER_GATEWAY, fleet.nodes[NODE_CLUSTER, n]]
        reserve_link(fleet, demands.amounts[k, DEMAND_GATEWAY], target, mbps)


@compiled
def release_row(fleet: FleetArrays, demands: DemandArrays, plan: Int64, slices: Int32, row: int) -> None:
    """Release all resources of a decision and mark it as unplaced.

    Bandwidth to the user is transferred to another replica of the job in the same cluster, if there is one. Bandwidth
    between replicas is released with the job's last replica behind a gateway.
    """
    line = plan[row]
    n = current_node(fleet, line[PLAN_NODE])
    if n < 0:
        return
    k = line[PLAN_DEMAND]
    for s in range(line[PLAN_SLICE_END] - 1, line[PLAN_SLICE_FIRST] - 1, -1):
        release_slice(fleet, slices[s])
    allocate_node(fleet, demands, k, n, -1, line[PLAN_PODS])
    line[PLAN_NODE] = -1
    line[PLAN_SLICE_END] = line[PLAN_SLICE_FIRST]
    if line[PLAN_BANDWIDTH] > 0:
        heir = sharer_of_link(fleet, plan, row, fleet.nodes[NODE_CLUSTER, n])
        if heir >= 0:
            plan[heir, PLAN_BANDWIDTH] = line[PLAN_BANDWIDTH]
        else:
            reserve_bandwidth(fleet, demands, k, n, -line[PLAN_BANDWIDTH])
            fleet.clusters_open[CLUSTERS_RESERVED, fleet.nodes[NODE_CLUSTER, n]] = 0
        line[PLAN_BANDWIDTH] = 0
    if line[PLAN_REPLICA_BANDWIDTH] > 0:
        reserve_between_gateways(fleet, plan, row, plan.shape[0], gateway_of(fleet, n), -1)
        line[PLAN_REPLICA_BANDWIDTH] = 0
    log_change(fleet, n)


@compiled
def sharer_of_link(fleet: FleetArrays, plan: Int64, row: int, cluster: int) -> int:
    """Return the row of another placed replica of the job of row `row` in a cluster; -1 for none."""
    for step in (-1, 1):
        other = row + step
        while 0 <= other < plan.shape[0] and plan[other, PLAN_JOB] == plan[row, PLAN_JOB]:
            n = current_node(fleet, plan[other, PLAN_NODE])
            same_copy = plan[other, PLAN_DUPLICATE] == plan[row, PLAN_DUPLICATE]
            if n >= 0 and same_copy and fleet.nodes[NODE_CLUSTER, n] == cluster:
                return other
            other += step
    return -1


@compiled
def release_range(fleet: FleetArrays, demands: DemandArrays, plan: Int64, slices: Int32, first: int, end: int) -> None:
    """Release the decisions `first` to `end` - 1 of a plan, last first."""
    for row in range(end - 1, first - 1, -1):
        release_row(fleet, demands, plan, slices, row)


@compiled
def release_rows(fleet: FleetArrays, demands: DemandArrays, plan: Int64, slices: Int32, rows: Int64) -> None:
    """Release some decisions of a plan, last first, and mark them as unplaced.

    Parameters
    ----------
    plan
        Decisions, shape (R, PLAN_ROWS); updated.
    slices
        Slices of the decisions, shape (S, SLICE_ROWS).
    rows
        Rows of the decisions to release, shape (X,).
    """
    fleet, demands = borrowed(fleet), borrowed(demands)
    plan, slices, rows = borrowed(plan), borrowed(slices), borrowed(rows)
    for at in range(rows.shape[0] - 1, -1, -1):
        release_row(fleet, demands, plan, slices, rows[at])


@compiled
def restore_rows(fleet: FleetArrays, demands: DemandArrays, plan: Int64, slices: Int32) -> None:
    """Allocate the resources of all rows of a plan, whether or not they fit: the inverse of `release_rows`.

    Parameters
    ----------
    plan
        Decisions, shape (R, PLAN_ROWS); rows without a node are skipped.
    slices
        Slices of the decisions, shape (S, SLICE_ROWS).
    """
    fleet, demands = borrowed(fleet), borrowed(demands)
    plan, slices = borrowed(plan), borrowed(slices)
    for row in range(plan.shape[0]):
        n = current_node(fleet, plan[row, PLAN_NODE])
        if n < 0:
            continue
        k = plan[row, PLAN_DEMAND]
        for s in range(plan[row, PLAN_SLICE_FIRST], plan[row, PLAN_SLICE_END]):
            restore_slice(fleet, slices[s])
        allocate_node(fleet, demands, k, n, 1, plan[row, PLAN_PODS])
        reserve_bandwidth(fleet, demands, k, n, plan[row, PLAN_BANDWIDTH])
        reserve_between_gateways(fleet, plan, row, row, gateway_of(fleet, n), 1)
        log_change(fleet, n)


@compiled
def refresh_all(fleet: FleetArrays) -> None:
    """Update the derived columns of all devices, nodes and blocks."""
    fleet = borrowed(fleet)
    for d in range(fleet.devices.shape[1]):
        refresh_device(fleet, d)
    for n in range(fleet.nodes.shape[1]):
        refresh_node(fleet, n)
    for b in range(fleet.blocks.shape[1]):
        refresh_block(fleet, b)


@compiled
def refresh_changed(fleet: FleetArrays, n: int) -> None:
    """Update the derived columns of node `n` and its devices after a change from Python."""
    lent = borrowed(fleet)
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        refresh_device(lent, d)
    log_change(lent, n)
