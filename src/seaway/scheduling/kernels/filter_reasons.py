"""Reasons why the devices of a node do not fit a demand.

`seaway.scheduling.kernels.fit` only reports whether a demand fits, which is faster. Both reject the same demands.
Numbers in comments refer to the vGPU layer's rules, in the order in which HAMi v2.10 checks them.
"""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, UInt8
from seaway.scheduling.columns import (
    DEMAND_EXCLUSIVE,
    DEMAND_GPUS,
    DEMAND_GROUP,
    DEMAND_MASK,
    DEMAND_MIG,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_MIG,
    DEVICE_MIG_TOGETHER,
    DEVICE_MIG_USED,
    DEVICE_NUMA,
    DEVICE_OPEN,
    DEVICE_SLOTS,
    DEVICE_SLOTS_FREE,
    MIG_CORE,
    MIG_MEMORY,
    MIG_SIZE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.fit import (
    NO_GROUP,
    WHOLE_MILLI,
    core_needed,
    device_group,
    fits_twice,
    memory_needed,
    mig_slot,
    slices_on_node,
)
from seaway.scheduling.kernels.shared_arrays import borrowed

NO_DEVICE = 1
TOO_FEW_DEVICES = 2
CLOSED = 3
KIND = 4
UUID = 5
NO_SLOT = 6
EXCLUSIVE = 7
MEMORY = 8
CORES = 9
WHOLE_IN_USE = 10
CORES_EXHAUSTED = 11
MIG_PLACEMENT = 12
NUMA = 13
PROFILE = 14
ISLAND = 15
SLICE = 16
TOO_SMALL = 17
CODES = 18
"""Number of codes, including 0."""

KIND_OK, NO_PROFILE, OTHER_SLICE = 1, 2, 3
"""Marks of allowed devices, of devices that only lack the requested MIG profile, and of those in another TPU slice."""


@compiled
def device_reason(  # one return per rule
    fleet: FleetArrays, demands: DemandArrays, k: int, d: int, kind_ok: UInt8
) -> int:
    """Return the code of the first rule by which device `d` rejects a slice of demand `k`; 0 for none.

    Parameters
    ----------
    kind_ok
        `KIND_OK` for each device that is allowed regardless of its UUID, `NO_PROFILE` if it only lacks the requested
        MIG profile, `OTHER_SLICE` if only its slice has another number of nodes, else 0, shape (D,).
    """
    devices = fleet.devices
    if kind_ok[d] != KIND_OK:  # 4
        return SLICE if kind_ok[d] == OTHER_SLICE else PROFILE if kind_ok[d] == NO_PROFILE else KIND
    memory = memory_needed(fleet, demands, k, d)
    if devices[DEVICE_MEMORY, d] < memory:
        return TOO_SMALL
    if not devices[DEVICE_OPEN, d]:  # 2, 3
        return CLOSED
    if not demands.device_ok[demands.amounts[k, DEMAND_MASK], d]:  # 6
        return UUID
    idle = devices[DEVICE_SLOTS_FREE, d] == devices[DEVICE_SLOTS, d]
    if devices[DEVICE_SLOTS_FREE, d] <= 0:  # 7
        return NO_SLOT
    if demands.amounts[k, DEMAND_EXCLUSIVE] and not idle:  # 8
        return EXCLUSIVE
    core = core_needed(fleet, demands, k, d)
    total = devices[DEVICE_CORE, d]
    free = devices[DEVICE_CORE_FREE, d]
    whole = total == WHOLE_MILLI and core == WHOLE_MILLI and memory <= devices[DEVICE_MEMORY, d]
    if whole and not idle:  # 14, before 12 and 13: a busy device lacks memory and cores for a whole one too
        return WHOLE_IN_USE
    if devices[DEVICE_MEMORY_FREE, d] < memory:  # 12
        return MEMORY
    if free < core:  # 13
        return CORES
    if total > 0 and free == 0 and core == 0:  # 15
        return CORES_EXHAUSTED
    if devices[DEVICE_MIG, d] >= 0 and mig_slot(fleet, d, memory, demands.amounts[k, DEMAND_MIG])[0] < 0:  # 16
        return MIG_PLACEMENT
    return 0


@compiled
def mig_reason(fleet: FleetArrays, demands: DemandArrays, k: int, d: int, kind_ok: UInt8) -> int:
    """Return the code of the reason why demand `k` does not fit device `d` in MIG mode; 0 if it fits.

    Instances are placed one by one, as they would be created, until one does not fit. The device is restored.
    """
    devices = fleet.devices
    from_used = devices[DEVICE_MIG_USED, d]
    from_memory = devices[DEVICE_MEMORY_FREE, d]
    from_core = devices[DEVICE_CORE_FREE, d]
    from_slots = devices[DEVICE_SLOTS_FREE, d]
    code = 0
    for _ in range(demands.amounts[k, DEMAND_GPUS]):
        code = device_reason(fleet, demands, k, d, kind_ok)
        if code != 0:
            break
        p, start = mig_slot(fleet, d, memory_needed(fleet, demands, k, d), demands.amounts[k, DEMAND_MIG])
        devices[DEVICE_MIG_USED, d] |= ((1 << fleet.mig[p, MIG_SIZE]) - 1) << start
        devices[DEVICE_MEMORY_FREE, d] -= fleet.mig[p, MIG_MEMORY]
        devices[DEVICE_CORE_FREE, d] -= fleet.mig[p, MIG_CORE]
        devices[DEVICE_SLOTS_FREE, d] -= 1
    devices[DEVICE_MIG_USED, d] = from_used
    devices[DEVICE_MEMORY_FREE, d] = from_memory
    devices[DEVICE_CORE_FREE, d] = from_core
    devices[DEVICE_SLOTS_FREE, d] = from_slots
    return code


@compiled
def one_at_most(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> bool:
    """Report whether device `d` in MIG mode can serve only one slice of a replica of demand `k`."""
    return fleet.devices[DEVICE_MIG_TOGETHER, d] != 0 and not fits_twice(fleet, demands, k, d)


@compiled
def node_reason(fleet: FleetArrays, demands: DemandArrays, k: int, n: int, kind_ok: UInt8) -> int:
    """Return the reason why the devices of node `n` do not fit demand `k`, which requests devices; 0 if they fit.

    If too few devices have the kind and size, this is the rule of these that rejects most devices. Otherwise it is the
    other rule that rejects most, the first among equals. If enough devices fit, but not on one NUMA node
    or in one island, that is the reason (5).
    """
    first, end = fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]
    gpus = demands.amounts[k, DEMAND_GPUS]
    if first == end:
        return NO_DEVICE
    if device_group(fleet, demands, k, n) >= NO_GROUP:
        return 0
    row = demands.amounts[k, DEMAND_GROUP]
    if row != 0 and slices_on_node(fleet, demands, k, n, NO_GROUP, gpus, True) >= gpus:
        return NUMA if row == DEVICE_NUMA else ISLAND
    votes = np.zeros(CODES, np.int64)
    mig = False
    for d in range(first, end):
        if fleet.devices[DEVICE_MIG, d] >= 0 and not one_at_most(fleet, demands, k, d):
            mig = True
            votes[mig_reason(fleet, demands, k, d, kind_ok)] += 1
        else:
            votes[device_reason(fleet, demands, k, d, kind_ok)] += 1
    votes[0] = 0
    never = np.zeros(CODES, np.int64)
    for code in (KIND, PROFILE, SLICE, TOO_SMALL):
        never[code] = votes[code]
    if never.any() and end - first - never.sum() < (1 if mig else gpus):
        return int(np.argmax(never))
    if not mig and end - first < gpus:  # 1
        return TOO_FEW_DEVICES
    others = votes - never
    return int(np.argmax(others if others.any() else votes))


@compiled
def reason_codes(fleet: FleetArrays, demands: DemandArrays, k: int, kind_ok: UInt8) -> UInt8:
    """Return the reason why the devices of each node do not fit demand `k`, 0 if they fit, shape (N,).

    Parameters
    ----------
    kind_ok
        `KIND_OK` for each device that is allowed regardless of its UUID, `NO_PROFILE` if it only lacks the requested
        MIG profile, `OTHER_SLICE` if only its slice has another number of nodes, else 0, shape (D,).
    """
    codes = np.zeros(fleet.nodes.shape[1], np.uint8)
    fleet, demands, kind_ok = borrowed(fleet), borrowed(demands), borrowed(kind_ok)
    if demands.amounts[k, DEMAND_GPUS] > 0:
        for n in range(codes.shape[0]):
            codes[n] = node_reason(fleet, demands, k, n, kind_ok)
    return codes
