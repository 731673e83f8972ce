"""Input of the learned policy `pilot`: a shortlist of feasible nodes, and their features.

The shortlist has the feasible nodes with the smallest loss by Seaway's own policy, and only the first of equal nodes.
Other nodes cannot be chosen. Features are ratios, about -2 to 2, and do not depend on the number or order of nodes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Float64, Int64, UInt8
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GATEWAY,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    DEMAND_BANDWIDTH,
    DEMAND_CPU,
    DEMAND_GATEWAY,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    DEMAND_NETWORK,
    DEVICE_CELL,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_FREE_MILLI,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    NODE_CLUSTER,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    NODE_LEFT,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
)
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.fit import (
    WHOLE_MILLI,
    WHOLE_PERCENT,
    core_needed,
    device_fits,
    memory_needed,
    memory_requested,
)
from seaway.scheduling.kernels.queries import FitParams, refreshed_fit_row
from seaway.scheduling.kernels.score_cache import UNFIT, refresh_row, slot_of
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.policies.bestfit import next_tightest
from seaway.scheduling.policies.fgd import alike
from seaway.scheduling.policies.seaway.kernel import (
    BASE,
    FINE,
    SeawayParams,
    cell_after,
    cell_cost,
    current_worth,
    follow,
    served_share,
    value_on_device,
)

Float32 = NDArray[np.float32]

VERSION: Final = 1
"""Version of the features. It increases when their meaning changes, and policies for other versions are rejected."""

SHORTLIST_SIZE: Final = 16
"""Maximum length of a shortlist."""

# Features of nodes, shape (M, NODE_FEATURES), after the placement of the job on the node.
NODE_LOST: Final = 0
"""Loss of the node's value to the job mix and the price of its kind, in devices; see `policies.seaway.kernel`."""
NODE_BEHIND: Final = 1
"""The same minus the smallest loss of the shortlist."""
NODE_PRICE: Final = 2
"""Scarcity of the node's kind, 0-1."""
NODE_DEVICE_MEMORY_LEFT: Final = 3
"""Free share of the memory of the job's device; the mean of several devices."""
NODE_DEVICE_CORE_LEFT: Final = 4
NODE_UNEVEN: Final = 5
"""Difference of the free shares of memory and cores."""
NODE_REMNANT: Final = 6
"""Resources free in both memory and cores, minus their value to the mix."""
NODE_OPENED: Final = 7
"""Share of the job's devices that were idle before the placement."""
NODE_IDLE_LEFT: Final = 8
"""Number of devices of the node that stay idle, divided by 8."""
NODE_MEMORY_SHARE: Final = 9
"""Free share of the node's GPU memory."""
NODE_CORE_SHARE: Final = 10
NODE_CPU_SHARE: Final = 11
NODE_HOST_MEMORY_SHARE: Final = 12
NODE_CPU_SERVES: Final = 13
"""Share of the value of the node's devices that its CPU can serve."""
NODE_HOST_MEMORY_SERVES: Final = 14
NODE_SIZE: Final = 15
"""Number of devices of the node, divided by 8."""
NODE_CLUSTER_FREE: Final = 16
"""Free share of the GPU cores of the node's cluster before the placement."""
NODE_LINK_LEFT: Final = 17
"""Free bandwidth of the link from the job's user, Gbit/s, at most 2; 2 for a job without bandwidth."""
NODE_LINK_TAKEN: Final = 18
"""Share of the free bandwidth of that link that the job reserves."""
NODE_LINK_CROWDED: Final = 19
"""Free GPU cores of the cluster, in devices, per Gbit/s of free bandwidth of that link, divided by 10; at most 2."""
NODE_FEATURES: Final = 20

# Features of the job and the fleet, shape (JOB_FEATURES,).
JOB_GPUS: Final = 0
JOB_MEMORY: Final = 1
"""Requested GPU memory of each device, as a share of a device of the first node of the shortlist."""
JOB_CORE: Final = 2
JOB_WORK: Final = 3
"""The larger of the requested shares of memory and cores, times the number of devices."""
JOB_RANK: Final = 4
"""Share of the mix's GPU jobs with less work."""
JOB_CPU: Final = 5
"""Requested CPU relative to the mean of the mix, divided by 4; at most 2."""
JOB_HOST_MEMORY: Final = 6
FLEET_GPU_MEMORY_FREE: Final = 7
"""Free share of the fleet's GPU memory."""
FLEET_GPU_CORE_FREE: Final = 8
FLEET_CPU_FREE: Final = 9
FLEET_MEMORY_FREE: Final = 10
MIX_WORK: Final = 11
"""Mean work of the mix's GPU jobs, in devices; at most 2."""
JOB_LEAST_LOST: Final = 12
"""Smallest loss of the shortlist."""
JOB_CHOICE: Final = 13
"""Length of the shortlist relative to its maximum."""
JOB_NETWORK: Final = 14
"""1 for a job with network bounds."""
JOB_BANDWIDTH: Final = 15
"""Requested bandwidth, Gbit/s; at most 2."""
JOB_FEATURES: Final = 16

MAX_FEATURE: Final = 2.0
"""Maximum of a feature."""


class FeatureParams(NamedTuple):
    """Parameters of the features.

    Attributes
    ----------
    seaway
        Tables of Seaway's own policy.
    works
        Work of the mix's GPU jobs, ascending, shape (W,): the larger of the requested shares of a typical device's
        memory and cores, times devices.
    means
        Mean requested CPU (thousandths of a core) and memory (MiB) of the mix, at least 1, and mean work, shape (3,).
    device
        Memory (MiB) and cores (thousandths) of a typical device, at least 1, shape (2,).
    """

    seaway: SeawayParams
    works: Float64
    means: Float64
    device: Float64


@compiled
def build_shortlist(
    params: SeawayParams,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    fits: Int64 | None,
    allowed: UInt8,
    nodes: Int64,
    values: Int64,
) -> int:
    """Write the shortlist for demand `k` and return its length.

    Parameters
    ----------
    fits
        Result of `refreshed_fit_row` for the demand; None to compute it.
    allowed
        1 for each node that may be listed if it fits, shape (N,).
    nodes, values
        Nodes by descending score, then by index, and their scores in steps of 1 / `FINE` thousandths of a device, shape
        (SHORTLIST_SIZE,); output.
    """
    follow(params, fleet)
    slot = slot_of(params.cache, k)
    refresh_row(params, fleet, demands, k, slot, fits)
    row = params.cache.rows[slot]
    requested = demands.amounts[k, DEMAND_GPUS] * WHOLE_MILLI
    if demands.amounts[k, DEMAND_GPU_CORE] > 0:
        requested = demands.amounts[k, DEMAND_GPUS] * demands.amounts[k, DEMAND_GPU_CORE]
    most, count = nodes.shape[0], 0
    for n in range(row.shape[0]):
        if row[n] == UNFIT or not allowed[n]:
            continue
        score = row[n] - BASE - int(params.price[params.kind[n]] * requested * FINE)
        if count == most and score <= values[count - 1]:
            continue
        at = count
        while at > 0 and values[at - 1] < score:
            at -= 1
        if at > 0 and values[at - 1] == score and is_duplicate(fleet, nodes, values, at - 1, n):
            continue
        count = min(count + 1, most)
        for after in range(count - 1, at, -1):
            nodes[after], values[after] = nodes[after - 1], values[after - 1]
        nodes[at], values[at] = n, score
    return count


@compiled
def is_duplicate(fleet: FleetArrays, nodes: Int64, values: Int64, at: int, n: int) -> bool:
    """Report whether a listed node with the same score as entry `at` equals node `n`, in the same cluster."""
    score = values[at]
    while at >= 0 and values[at] == score:
        other = nodes[at]
        same = fleet.nodes[NODE_LEFT, n] == fleet.nodes[NODE_LEFT, other]
        if same and fleet.nodes[NODE_CLUSTER, n] == fleet.nodes[NODE_CLUSTER, other]:
            return True
        at -= 1
    return False


@compiled
def share(part: float, whole: float) -> float:
    """Return `part` as a share of `whole`; 0 if `whole` is 0."""
    return part / whole if whole > 0 else 0.0


@compiled
def best_device(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, worth: float, idle: int
) -> int:
    """Return the device of node `n` with the highest remaining value for a slice of demand `k`; -1 for none."""
    best, at, last = -np.inf, -1, -1
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if not alike(fleet, d, last, DEVICE_CELL) and device_fits(fleet, demands, k, d):
            last = d
            value = value_on_device(params, fleet, demands, k, n, d, worth, idle)
            if value > best:
                best, at = value, d
    return at


@compiled
def write_device_features(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, out: Float32
) -> tuple[float, int]:
    """Write the features of the devices of demand `k` on node `n`.

    Return their value, and the number of idle devices.
    """
    worth, idle = current_worth(params, fleet, n)
    gpus = demands.amounts[k, DEMAND_GPUS]
    table = params.worth[params.size[n]]
    last, taken = -1, 0
    memory_left = core_left = useless = opened = 0.0
    for _ in range(gpus):
        if gpus == 1:
            d = best_device(params, fleet, demands, k, n, worth, idle)
        else:
            d, last = next_tightest(fleet, demands, k, n, last)
        if d < 0:
            break
        taken += 1
        devices = fleet.devices
        memory = share(devices[DEVICE_MEMORY_FREE, d] - memory_needed(fleet, demands, k, d), devices[DEVICE_MEMORY, d])
        core = share(devices[DEVICE_CORE_FREE, d] - core_needed(fleet, demands, k, d), devices[DEVICE_CORE, d])
        asked_memory, asked_core = cell_cost(fleet, demands, k, d)
        after = cell_after(devices[DEVICE_CELL, d], asked_memory, asked_core)
        worth += table[after] - table[devices[DEVICE_CELL, d]]
        was_idle = devices[DEVICE_FREE_MILLI, d] == WHOLE_MILLI
        idle -= was_idle
        memory_left += memory
        core_left += core
        useless += min(memory, core) - table[after] / WHOLE_MILLI
        opened += was_idle
    out[NODE_DEVICE_MEMORY_LEFT] = share(memory_left, taken)
    out[NODE_DEVICE_CORE_LEFT] = share(core_left, taken)
    out[NODE_UNEVEN] = share(memory_left - core_left, taken)
    out[NODE_REMNANT] = share(useless, taken)
    out[NODE_OPENED] = share(opened, taken)
    out[NODE_IDLE_LEFT] = min(idle / 8, MAX_FEATURE)
    return worth, idle


@compiled
def write_link_features(fleet: FleetArrays, demands: DemandArrays, k: int, c: int, out: Float32) -> None:
    """Write the features of the link from the user of demand `k` to cluster `c`."""
    source, target = demands.amounts[k, DEMAND_GATEWAY], fleet.clusters[CLUSTER_GATEWAY, c]
    mbps = demands.amounts[k, DEMAND_BANDWIDTH]
    out[NODE_LINK_LEFT], out[NODE_LINK_TAKEN], out[NODE_LINK_CROWDED] = MAX_FEATURE, 0.0, 0.0
    if mbps == 0 or source < 0 or target < 0:
        return
    free = float(fleet.bandwidth[source, target])
    left = max(free - mbps, 0.0) / 1000
    devices = fleet.clusters[CLUSTER_GPU_CORE_FREE, c] / WHOLE_MILLI
    out[NODE_LINK_LEFT] = min(left, MAX_FEATURE)
    out[NODE_LINK_TAKEN] = min(share(mbps, free), 1.0)
    out[NODE_LINK_CROWDED] = min(devices / max(left, 0.05) / 10, MAX_FEATURE)


@compiled
def write_node_features(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, out: Float32
) -> None:
    """Write the features of node `n`, which fits demand `k`, except those relative to other nodes."""
    nodes, amounts = fleet.nodes, demands.amounts
    size, c = params.size[n], nodes[NODE_CLUSTER, n]
    worth, _ = write_device_features(params, fleet, demands, k, n, out)
    cpu, memory = (
        nodes[NODE_CPU_FREE, n] - amounts[k, DEMAND_CPU],
        nodes[NODE_MEMORY_FREE, n] - amounts[k, DEMAND_MEMORY],
    )
    gpus = amounts[k, DEMAND_GPUS]
    devices = nodes[NODE_DEVICE_END, n] - nodes[NODE_DEVICE_FIRST, n]
    out[NODE_PRICE] = params.price[params.kind[n]]
    out[NODE_MEMORY_SHARE] = share(
        nodes[NODE_GPU_MEMORY_FREE, n] - memory_requested(fleet, demands, k, n), nodes[NODE_GPU_MEMORY, n]
    )
    core = nodes[NODE_GPU_CORE_FREE, n] - gpus * amounts[k, DEMAND_GPU_CORE]
    out[NODE_CORE_SHARE] = share(core, nodes[NODE_GPU_CORE, n])
    out[NODE_CPU_SHARE] = share(cpu, nodes[NODE_CPU, n])
    out[NODE_HOST_MEMORY_SHARE] = share(memory, nodes[NODE_MEMORY, n])
    out[NODE_CPU_SERVES], out[NODE_HOST_MEMORY_SERVES] = 1.0, 1.0
    if worth > 1.0:
        out[NODE_CPU_SERVES] = served_share(params.served[2 * size], cpu * params.served_step[0, size] / worth)
        by_memory = served_share(params.served[2 * size + 1], memory * params.served_step[1, size] / worth)
        out[NODE_HOST_MEMORY_SERVES] = by_memory
    out[NODE_SIZE] = min(devices / 8, MAX_FEATURE)
    out[NODE_CLUSTER_FREE] = share(fleet.clusters[CLUSTER_GPU_CORE_FREE, c], fleet.clusters[CLUSTER_GPU_CORE, c])
    write_link_features(fleet, demands, k, c, out)


@compiled
def write_job_features(
    params: FeatureParams, fleet: FleetArrays, demands: DemandArrays, k: int, first: int, count: int, out: Float32
) -> None:
    """Write the features of demand `k` and of the fleet, except `JOB_LEAST_LOST`.

    Parameters
    ----------
    first
        First node of the shortlist; -1 for none.
    """
    amounts = demands.amounts
    gpus = amounts[k, DEMAND_GPUS]
    memory, core = params.device[0], params.device[1]
    if first >= 0 and fleet.nodes[NODE_DEVICE_END, first] > fleet.nodes[NODE_DEVICE_FIRST, first]:
        d = fleet.nodes[NODE_DEVICE_FIRST, first]
        memory = max(float(fleet.devices[DEVICE_MEMORY, d]), 1.0)
        core = max(float(fleet.devices[DEVICE_CORE, d]), 1.0)
    out[JOB_GPUS] = min(gpus / 8, MAX_FEATURE)
    of_memory, of_core = amounts[k, DEMAND_GPU_MEMORY] / memory, amounts[k, DEMAND_GPU_CORE] / core
    if amounts[k, DEMAND_GPU_MEMORY] == 0:
        of_memory = amounts[k, DEMAND_GPU_PERCENT] / WHOLE_PERCENT
    out[JOB_MEMORY], out[JOB_CORE] = min(of_memory, MAX_FEATURE), min(of_core, MAX_FEATURE)
    work = max(of_memory, of_core) * gpus
    out[JOB_WORK] = min(work, MAX_FEATURE)
    low, high = 0, params.works.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if params.works[middle] < work:
            low = middle + 1
        else:
            high = middle
    out[JOB_RANK] = share(low, params.works.shape[0])
    out[JOB_CPU] = min(amounts[k, DEMAND_CPU] / params.means[0] / 4, MAX_FEATURE)
    out[JOB_HOST_MEMORY] = min(amounts[k, DEMAND_MEMORY] / params.means[1] / 4, MAX_FEATURE)
    write_fleet_features(fleet, out)
    out[MIX_WORK] = min(params.means[2], MAX_FEATURE)
    out[JOB_CHOICE] = count / SHORTLIST_SIZE
    out[JOB_NETWORK] = amounts[k, DEMAND_NETWORK] >= 0
    out[JOB_BANDWIDTH] = min(amounts[k, DEMAND_BANDWIDTH] / 1000, MAX_FEATURE)


@compiled
def write_fleet_features(fleet: FleetArrays, out: Float32) -> None:
    """Write the free shares of the fleet's resources."""
    free, there = np.zeros(4), np.zeros(4)
    for c in range(fleet.clusters.shape[1]):
        free[0] += fleet.clusters[CLUSTER_GPU_MEMORY_FREE, c]
        free[1] += fleet.clusters[CLUSTER_GPU_CORE_FREE, c]
        free[2] += fleet.clusters[CLUSTER_CPU_FREE, c]
        free[3] += fleet.clusters[CLUSTER_MEMORY_FREE, c]
        there[0] += fleet.clusters[CLUSTER_GPU_MEMORY, c]
        there[1] += fleet.clusters[CLUSTER_GPU_CORE, c]
        there[2] += fleet.clusters[CLUSTER_CPU, c]
        there[3] += fleet.clusters[CLUSTER_MEMORY, c]
    for r in range(4):
        out[FLEET_GPU_MEMORY_FREE + r] = share(free[r], there[r])


@compiled
def write_features(
    params: FeatureParams,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    nodes: Int64,
    values: Int64,
    count: int,
    features: Float32,
    job: Float32,
) -> None:
    """Write all features of a shortlist with `count` nodes, see `NODE_FEATURES` and `JOB_FEATURES`."""
    step = 1.0 / (FINE * WHOLE_MILLI)
    for at in range(count):
        out = features[at]
        write_node_features(params.seaway, fleet, demands, k, nodes[at], out)
        out[NODE_LOST] = max(values[at] * step, -MAX_FEATURE)
        out[NODE_BEHIND] = max((values[at] - values[0]) * step, -MAX_FEATURE)
    write_job_features(params, fleet, demands, k, nodes[0] if count else -1, count, job)
    job[JOB_LEAST_LOST] = max(values[0] * step, -MAX_FEATURE) if count else 0.0


@compiled
def observe_nodes(
    params: FeatureParams,
    known: FitParams,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    allowed: UInt8,
    nodes: Int64,
    values: Int64,
    features: Float32,
    job: Float32,
) -> int:
    """Write the shortlist for demand `k` and its features, for callers in Python.

    Parameters
    ----------
    known
        Cache of feasible nodes.

    Returns
    -------
    int
        Length of the shortlist.
    """
    lent_params, lent, requested = borrowed(params), borrowed(fleet), borrowed(demands)
    at, by = borrowed(nodes), borrowed(values)
    fits = refreshed_fit_row(borrowed(known), lent, requested, k)
    count = build_shortlist(lent_params.seaway, lent, requested, k, fits, borrowed(allowed), at, by)
    write_features(lent_params, lent, requested, k, at, by, count, borrowed(features), borrowed(job))
    return count
