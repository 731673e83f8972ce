"""Rules of fit: checks whether a device or a node fits one more replica.

The rules and their order are those of HAMi v2.10 for a pod on a node, so that the node accepts Seaway's decisions.
Numbers in comments refer to the vGPU layer's rules.
"""

from __future__ import annotations

from seaway.scheduling.arrays import DemandArrays, FleetArrays
from seaway.scheduling.columns import (
    DEMAND_CPU,
    DEMAND_EXCLUSIVE,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_GROUP,
    DEMAND_MASK,
    DEMAND_MEMORY,
    DEMAND_MIG,
    DEMAND_STRICTER,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_CORE_STEPS,
    DEVICE_ISLAND,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_MEMORY_STEP,
    DEVICE_MIG,
    DEVICE_MIG_TOGETHER,
    DEVICE_MIG_USED,
    DEVICE_OPEN,
    DEVICE_SLOTS,
    DEVICE_SLOTS_FREE,
    EVEN_SHARES,
    MIG_CODE,
    MIG_CORE,
    MIG_FROM_TOP,
    MIG_MEMORY,
    MIG_SIZE,
    MIG_STARTS,
    NODE_ACCEPTS,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_MEMORY,
    NODE_MEMORY_FREE,
    NODE_ROOM_CORE,
    NODE_ROOM_MEMORY,
    NODE_ROOM_WHOLE,
    STRICTER_ROWS,
)
from seaway.scheduling.kernels.compile import compiled

WHOLE_MILLI = 1000
WHOLE_PERCENT = 100
MIG_MEMORY_SLICES = 8
NO_GROUP = -1

WHOLE_ISLAND = 1 << 16
"""Lowest rank of a wholly idle island, above the number of devices of any node."""


@compiled
def in_even_shares(asked: int, total: int, shares: int) -> int:
    """Round `asked` up to whole shares of `total` / `shares`, at least one. Return `asked` if it exceeds `total`."""
    if asked > total or total == 0:
        return asked
    shares = max(shares, 1)
    return max(-(-asked * shares // total), 1) * total // shares


@compiled
def profile_memory(fleet: FleetArrays, d: int, code: int) -> int:
    """Return the memory of an instance of the MIG profile `code` on device `d`, MiB; more than it has without it."""
    geometry = fleet.devices[DEVICE_MIG, d]
    if geometry >= 0:
        for p in range(fleet.mig_first[geometry], fleet.mig_first[geometry + 1]):
            if fleet.mig[p, MIG_CODE] == code:
                return int(fleet.mig[p, MIG_MEMORY])
    return int(fleet.devices[DEVICE_MEMORY, d]) + 1


@compiled
def memory_needed(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> int:
    """Return the memory that demand `k` needs on device `d`, MiB, in the device's steps or shares (rule 10)."""
    memory = demands.amounts[k, DEMAND_GPU_MEMORY]
    step = fleet.devices[DEVICE_MEMORY_STEP, d]
    if memory > 0 and step == 1:
        return memory
    if demands.amounts[k, DEMAND_MIG] != 0:
        return profile_memory(fleet, d, demands.amounts[k, DEMAND_MIG])
    total = fleet.devices[DEVICE_MEMORY, d]
    share = total * demands.amounts[k, DEMAND_GPU_PERCENT] // WHOLE_PERCENT
    if step == EVEN_SHARES:
        return in_even_shares(memory if memory > 0 else share, total, fleet.devices[DEVICE_SLOTS, d])
    if memory > 0:
        return -(-memory // step) * step
    return share if step == 1 else max(share // step, 1) * step


@compiled
def core_needed(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> int:
    """Return the cores that demand `k` needs on device `d`, thousandths, rounded up to its steps or shares (rule 9)."""
    core = demands.amounts[k, DEMAND_GPU_CORE]
    steps = fleet.devices[DEVICE_CORE_STEPS, d]
    if steps == WHOLE_MILLI:
        return core
    if steps == EVEN_SHARES:
        return in_even_shares(core, fleet.devices[DEVICE_CORE, d], fleet.devices[DEVICE_SLOTS, d])
    return -(-core * steps // WHOLE_MILLI) * WHOLE_MILLI // steps


@compiled
def mig_slot(fleet: FleetArrays, d: int, memory: int, code: int) -> tuple[int, int]:
    """Return the profile and the first memory slice for an instance of `memory` MiB on device `d`.

    Profiles are tried from the smallest sufficient one. Starts are tried from the highest for 1g and 3g, from the
    lowest for other profiles.

    Parameters
    ----------
    code
        `MIG_CODE` of the only profile to try; 0 for any.

    Returns
    -------
    tuple of int
        Row of the profile, and start; (-1, -1) if no placement is free (rule 16).
    """
    geometry = fleet.devices[DEVICE_MIG, d]
    used = fleet.devices[DEVICE_MIG_USED, d]
    for p in range(fleet.mig_first[geometry], fleet.mig_first[geometry + 1]):
        if fleet.mig[p, MIG_MEMORY] < memory or (code != 0 and fleet.mig[p, MIG_CODE] != code):
            continue
        cover = (1 << fleet.mig[p, MIG_SIZE]) - 1
        starts = fleet.mig[p, MIG_STARTS]
        for step in range(MIG_MEMORY_SLICES):
            start = MIG_MEMORY_SLICES - 1 - step if fleet.mig[p, MIG_FROM_TOP] else step
            if (starts >> start) & 1 and not (cover << start) & used:
                return p, start
    return -1, -1


@compiled
def device_fits(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> bool:
    """Report whether device `d` fits one slice of demand `k` now (rules 2-4 and 6-16)."""
    devices = fleet.devices
    if not devices[DEVICE_OPEN, d] or not demands.device_ok[demands.amounts[k, DEMAND_MASK], d]:  # 2-4, 6
        return False
    idle = devices[DEVICE_SLOTS_FREE, d] == devices[DEVICE_SLOTS, d]
    if devices[DEVICE_SLOTS_FREE, d] <= 0:  # 7
        return False
    if demands.amounts[k, DEMAND_EXCLUSIVE] and not idle:  # 8
        return False
    memory = memory_needed(fleet, demands, k, d)
    core = core_needed(fleet, demands, k, d)
    total = devices[DEVICE_CORE, d]
    free = devices[DEVICE_CORE_FREE, d]
    if devices[DEVICE_MEMORY_FREE, d] < memory or free < core:  # 12, 13
        return False
    if total == WHOLE_MILLI and core == WHOLE_MILLI and not idle:  # 14
        return False
    if total > 0 and free == 0 and core == 0:  # 15
        return False
    return devices[DEVICE_MIG, d] < 0 or mig_slot(fleet, d, memory, demands.amounts[k, DEMAND_MIG])[0] >= 0  # 16


@compiled
def mig_instances(fleet: FleetArrays, demands: DemandArrays, k: int, d: int, most: int) -> int:
    """Return the number of instances of demand `k` that fit device `d` in MIG mode, up to `most`.

    Instances are placed one by one, as they would be created, and the device is restored.
    """
    from_used = fleet.devices[DEVICE_MIG_USED, d]
    from_memory = fleet.devices[DEVICE_MEMORY_FREE, d]
    from_core = fleet.devices[DEVICE_CORE_FREE, d]
    from_slots = fleet.devices[DEVICE_SLOTS_FREE, d]
    count = 0
    while count < most and device_fits(fleet, demands, k, d):
        p, start = mig_slot(fleet, d, memory_needed(fleet, demands, k, d), demands.amounts[k, DEMAND_MIG])
        fleet.devices[DEVICE_MIG_USED, d] |= ((1 << fleet.mig[p, MIG_SIZE]) - 1) << start
        fleet.devices[DEVICE_MEMORY_FREE, d] -= fleet.mig[p, MIG_MEMORY]
        fleet.devices[DEVICE_CORE_FREE, d] -= fleet.mig[p, MIG_CORE]
        fleet.devices[DEVICE_SLOTS_FREE, d] -= 1
        count += 1
    fleet.devices[DEVICE_MIG_USED, d] = from_used
    fleet.devices[DEVICE_MEMORY_FREE, d] = from_memory
    fleet.devices[DEVICE_CORE_FREE, d] = from_core
    fleet.devices[DEVICE_SLOTS_FREE, d] = from_slots
    return count


@compiled
def all_or_none(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> bool:
    """Report whether device `d` must serve all slices of a replica of demand `k`, or none.

    This is true if a pod cannot request a number of instances per device, and the empty device fits two. With a second
    device, the position of the instances would be unknown.
    """
    gpus = demands.amounts[k, DEMAND_GPUS]
    return gpus > 1 and fleet.devices[DEVICE_MIG_TOGETHER, d] != 0 and fits_twice(fleet, demands, k, d)


@compiled
def fits_twice(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> bool:
    """Report whether device `d` in MIG mode, if empty, fits two slices of demand `k`, exclusive or not."""
    devices = fleet.devices
    memory = memory_needed(fleet, demands, k, d)
    core = core_needed(fleet, demands, k, d)
    from_used = devices[DEVICE_MIG_USED, d]
    devices[DEVICE_MIG_USED, d] = 0
    p, start = mig_slot(fleet, d, memory, demands.amounts[k, DEMAND_MIG])
    second = -1
    if p >= 0:
        devices[DEVICE_MIG_USED, d] = ((1 << fleet.mig[p, MIG_SIZE]) - 1) << start
        second = mig_slot(fleet, d, memory, demands.amounts[k, DEMAND_MIG])[0]
    devices[DEVICE_MIG_USED, d] = from_used
    if second < 0 or devices[DEVICE_SLOTS, d] < 2 or core == WHOLE_MILLI:
        return False
    left = devices[DEVICE_CORE, d] - fleet.mig[p, MIG_CORE]
    return devices[DEVICE_MEMORY, d] - fleet.mig[p, MIG_MEMORY] >= memory and left >= max(core, 1)


@compiled
def serves_alone(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> bool:
    """Report whether all slices of a replica of demand `k` fit device `d` in MIG mode."""
    gpus = demands.amounts[k, DEMAND_GPUS]
    return mig_instances(fleet, demands, k, d, gpus) == gpus


@compiled
def slices_on_node(
    fleet: FleetArrays, demands: DemandArrays, k: int, n: int, group: int, most: int, alone: bool
) -> int:
    """Return the number of slices of demand `k` that fit one group of devices of node `n`, up to `most`.

    A device that must serve all slices of a replica counts as `most` or 0.

    Parameters
    ----------
    group
        Number of the group whose devices count, in the demand's row of devices; `NO_GROUP` for all devices.
    alone
        Whether to count devices that must serve all slices of a replica.
    """
    count = 0
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if group != NO_GROUP and fleet.devices[demands.amounts[k, DEMAND_GROUP], d] != group:
            continue
        if fleet.devices[DEVICE_MIG, d] >= 0 and all_or_none(fleet, demands, k, d):
            count += most if alone and serves_alone(fleet, demands, k, d) else 0
        elif fleet.devices[DEVICE_MIG, d] >= 0:
            count += mig_instances(fleet, demands, k, d, most - count)
        elif device_fits(fleet, demands, k, d):
            count += 1
        if count >= most:
            return count
    return count


@compiled
def device_group(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the lowest group of node `n` that fits all devices of demand `k`; -2 for none (rule 5).

    Return `NO_GROUP` if the demand fits and may use several groups. A group is a NUMA node, an NVLink island or a PCIe
    switch, by the demand.
    """
    gpus = demands.amounts[k, DEMAND_GPUS]
    row = demands.amounts[k, DEMAND_GROUP]
    if not row:
        return NO_GROUP if slices_on_node(fleet, demands, k, n, NO_GROUP, gpus, True) >= gpus else -2
    best = -2
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        group = fleet.devices[row, d]
        if (
            group >= 0
            and (best < 0 or group < best)
            and slices_on_node(fleet, demands, k, n, group, gpus, True) >= gpus
        ):
            best = group
    return best


@compiled
def island_rank(fleet: FleetArrays, n: int, island: int, wanted: int) -> int:
    """Return the rank of an NVLink island of node `n` as a source of `wanted` devices, the lowest first.

    It is the number of idle devices. Islands that are wholly idle rank behind all others, so that they stay whole. Of
    these, the smallest that suffices comes first, and without one the largest, so that few are broken.
    """
    devices = fleet.devices
    size = idle = 0
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if devices[DEVICE_ISLAND, d] == island:
            size += 1
            if devices[DEVICE_OPEN, d] and devices[DEVICE_SLOTS_FREE, d] == devices[DEVICE_SLOTS, d]:
                idle += 1
    if idle < size:
        return idle
    return WHOLE_ISLAND + size if size >= wanted else 3 * WHOLE_ISLAND - size


@compiled
def device_rank(fleet: FleetArrays, n: int, d: int, wanted: int) -> int:
    """Return the rank of device `d` of node `n` among equal ones: that of its island, or 0 if none loses a device.

    Parameters
    ----------
    wanted
        Number of devices that the replica still needs. A device in MIG mode may serve several slices, so 1 counts.
    """
    devices = fleet.devices
    if devices[DEVICE_ISLAND, d] < 0 or devices[DEVICE_SLOTS_FREE, d] != devices[DEVICE_SLOTS, d]:
        return 0
    return island_rank(fleet, n, devices[DEVICE_ISLAND, d], wanted if devices[DEVICE_MIG, d] < 0 else 1)


@compiled
def group_to_take(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the group of node `n`, which fits demand `k`, to take devices from: as `device_group`.

    Of several NVLink islands that fit, it is the first with the lowest rank.
    """
    best = device_group(fleet, demands, k, n)
    if demands.amounts[k, DEMAND_GROUP] != DEVICE_ISLAND:
        return best
    gpus = demands.amounts[k, DEMAND_GPUS]
    least = island_rank(fleet, n, best, 1)
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        island = fleet.devices[DEVICE_ISLAND, d]
        if island >= 0 and island != best:
            rank = island_rank(fleet, n, island, 1)
            if rank < least and slices_on_node(fleet, demands, k, n, island, gpus, True) >= gpus:
                best, least = island, rank
    return best


@compiled
def requests_connection(demands: DemandArrays, k: int) -> bool:
    """Report whether demand `k` requires devices of one NVLink island, or prefers connected devices."""
    return demands.amounts[k, DEMAND_STRICTER] != 0 or demands.amounts[k, DEMAND_GROUP] == DEVICE_ISLAND


@compiled
def island_loss(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the loss of NVLink islands of node `n` by one replica of demand `k`, which it fits. The lowest is best.

    For a demand in one island, it is the rank of that island. For other demands, it is the minimum number of devices
    that come from wholly idle islands.
    """
    group = group_to_take(fleet, demands, k, n)
    row = demands.amounts[k, DEMAND_GROUP]
    if row == DEVICE_ISLAND:
        return island_rank(fleet, n, group, 1)
    left = demands.amounts[k, DEMAND_GPUS]
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if (
            (group < 0 or fleet.devices[row, d] == group)
            and device_rank(fleet, n, d, 1) < WHOLE_ISLAND
            and device_fits(fleet, demands, k, d)
        ):
            left -= 1
    return max(left, 0)


@compiled
def strictest_demand(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the first of the stricter rows of demand `k` that fits node `n`, which fits `k`; else `k`."""
    for at in range(DEMAND_STRICTER, DEMAND_STRICTER + STRICTER_ROWS):
        stricter = demands.amounts[k, at] - 1
        if stricter < 0:
            break
        if device_group(fleet, demands, stricter, n) >= 0:
            return int(stricter)
    return k


@compiled
def node_may_fit(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> bool:
    """Report from the node's own columns whether it may fit. False is certain, True must be checked."""
    amounts = demands.amounts
    nodes = fleet.nodes
    if not nodes[NODE_ACCEPTS, n] or nodes[NODE_CPU_FREE, n] < amounts[k, DEMAND_CPU]:
        return False
    if nodes[NODE_MEMORY_FREE, n] < amounts[k, DEMAND_MEMORY]:
        return False
    if not amounts[k, DEMAND_GPUS]:
        return True
    if nodes[NODE_ROOM_MEMORY, n] < amounts[k, DEMAND_GPU_MEMORY]:
        return False
    return nodes[NODE_ROOM_CORE, n] >= amounts[k, DEMAND_GPU_CORE] and nodes[NODE_ROOM_WHOLE, n] >= whole_devices(
        demands, k
    )


@compiled
def whole_devices(demands: DemandArrays, k: int) -> int:
    """Return the number of whole devices that demand `k` requires."""
    amounts = demands.amounts
    whole = (
        amounts[k, DEMAND_GPU_PERCENT] == WHOLE_PERCENT
        or amounts[k, DEMAND_GPU_CORE] == WHOLE_MILLI
        or amounts[k, DEMAND_EXCLUSIVE]
    )
    return amounts[k, DEMAND_GPUS] if whole else 0


@compiled
def node_fits(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> bool:
    """Report whether node `n` fits one replica of demand `k` now, without the links of its cluster.

    Most demands and nodes have no groups and no MIG, so their devices are counted here and not by `device_group`.
    """
    if not node_may_fit(fleet, demands, k, n) or not demands.node_ok[demands.amounts[k, DEMAND_MASK], n]:
        return False
    gpus = demands.amounts[k, DEMAND_GPUS]
    if gpus == 0:
        return True
    if demands.amounts[k, DEMAND_GROUP] != 0 or demands.amounts[k, DEMAND_MIG] != 0:
        return device_group(fleet, demands, k, n) >= NO_GROUP
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if fleet.devices[DEVICE_MIG, d] >= 0:
            return device_group(fleet, demands, k, n) >= NO_GROUP
        if device_fits(fleet, demands, k, d):
            gpus -= 1
            if gpus == 0:
                return True
    return False


@compiled
def memory_requested(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the total device memory that demand `k` requests on node `n`, MiB."""
    amounts = demands.amounts
    each = amounts[k, DEMAND_GPU_MEMORY]
    if each == 0 and amounts[k, DEMAND_GPU_PERCENT]:
        count = fleet.nodes[NODE_DEVICE_END, n] - fleet.nodes[NODE_DEVICE_FIRST, n]
        each = fleet.nodes[NODE_GPU_MEMORY, n] // max(count, 1) * amounts[k, DEMAND_GPU_PERCENT] // WHOLE_PERCENT
    return each * amounts[k, DEMAND_GPUS]
