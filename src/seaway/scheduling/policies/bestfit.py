"""Policy `bestfit`: the node and the device with the least free resources.

The score is the published one, ``trunc(100 (1 - cpu / 256,000 - gpu / 16,000))``, of the thousandths of CPU cores and
GPUs that are free after the placement. In integers, with `NODE_LEFT` = cpu + 16 gpu, it is ``(256,000 - left) * 100 /
256,000``, truncated towards zero. The published scaling over the feasible nodes does not change the order and is
omitted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int64
from seaway.scheduling.columns import (
    CPU_PER_GPU_MILLI,
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
)
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.allocate import gpu_left_milli
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.fit import WHOLE_PERCENT, device_fits, memory_requested
from seaway.scheduling.kernels.policy_stubs import device_key, left_bound, node_score, prepare
from seaway.scheduling.kernels.scan import scanned
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.snapshot.snapshot import Snapshot

SCALE = 256_000
"""Thousandths of CPU cores plus 16 times thousandths of GPUs of the largest node of the published score."""


@scanned
class BestFitParams(NamedTuple):
    """Parameters of best fit.

    Attributes
    ----------
    most_core_per_gib
        Maximum ratio of cores to memory of a device, thousandths of a device per GiB: the maximum weight of one GiB.
        Closed devices count, because they may open again.
    most_core
        Cores of the largest device, thousandths: the maximum weight of its whole memory.
    """

    most_core_per_gib: int
    most_core: int


@compiled
def left_score(left: int) -> int:
    """Return the score for free resources in thousandths of a CPU core, with a device counted as 16,000."""
    score = abs(SCALE - left) * 100 // SCALE
    return score if left <= SCALE else -score


@compiled
def left_after(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the free resources of node `n` after demand `k`, in thousandths of a CPU core, with a device as 16,000."""
    nodes = fleet.nodes
    core = nodes[NODE_GPU_CORE_FREE, n] - demands.amounts[k, DEMAND_GPU_CORE] * demands.amounts[k, DEMAND_GPUS]
    memory = nodes[NODE_GPU_MEMORY_FREE, n] - memory_requested(fleet, demands, k, n)
    gpu = gpu_left_milli(core, nodes[NODE_GPU_CORE, n], memory, nodes[NODE_GPU_MEMORY, n])
    return nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU] + CPU_PER_GPU_MILLI * gpu


@compiled
def device_left(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> int:
    """Return the free part of device `d`, thousandths: the mean of cores and memory."""
    devices = fleet.devices
    return gpu_left_milli(
        devices[DEVICE_CORE_FREE, d],
        devices[DEVICE_CORE, d],
        devices[DEVICE_MEMORY_FREE, d],
        devices[DEVICE_MEMORY, d],
    )


@compiled
def next_tightest(fleet: FleetArrays, demands: DemandArrays, k: int, n: int, last: int) -> tuple[int, int]:
    """Return the next device of node `n` that fits demand `k`, in the order of free resources, least first.

    Parameters
    ----------
    last
        Key of the previous device; -1 for the first.

    Returns
    -------
    tuple of int
        The device, -1 if no more fit, and its key for the next call.
    """
    best, best_key = -1, -1
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        key = device_left(fleet, demands, k, d) * fleet.devices.shape[1] + d
        if key > last and (best < 0 or key < best_key) and device_fits(fleet, demands, k, d):
            best, best_key = d, key
    return best, best_key


@specialises(prepare, BestFitParams)
def _prepare(params: BestFitParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> None:
    pass


@specialises(node_score, BestFitParams)
def _node_score(
    params: BestFitParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int
) -> int:
    return left_score(left_after(fleet, demands, k, n))


@specialises(left_bound, BestFitParams)
def _left_bound(params: BestFitParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    amounts = demands.amounts
    gpus = amounts[k, DEMAND_GPUS]
    memory = amounts[k, DEMAND_GPU_MEMORY] * params.most_core_per_gib // 1024 + 1
    if amounts[k, DEMAND_GPU_MEMORY] == 0:
        memory = params.most_core * amounts[k, DEMAND_GPU_PERCENT] // WHOLE_PERCENT + 1
    most = (amounts[k, DEMAND_GPU_CORE] + memory) * gpus // 2 + 1 if gpus else 0
    return left_score(left - amounts[k, DEMAND_CPU] - CPU_PER_GPU_MILLI * most)


@specialises(device_key, BestFitParams)
def _device_key(
    params: BestFitParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return device_left(fleet, demands, k, d)


@compiled
def left_column(fleet: FleetArrays, demands: DemandArrays, k: int) -> Int64:
    """Return the score of each node for demand `k`, shape (N,)."""
    lent, asked = borrowed(fleet), borrowed(demands)
    scores = np.empty(fleet.nodes.shape[1], np.int64)
    for n in range(scores.shape[0]):
        scores[n] = left_score(left_after(lent, asked, k, n))
    return scores


@compiled
def left_of_devices(fleet: FleetArrays, demands: DemandArrays, k: int, first: int, end: int) -> Int64:
    """Return the free part of devices `first` to `end` - 1, shape (end - first,)."""
    lent, asked = borrowed(fleet), borrowed(demands)
    keys = np.empty(end - first, np.int64)
    for d in range(first, end):
        keys[d - first] = device_left(lent, asked, k, d)
    return keys


MIB_PER_GIB = 1024


class BestFit:
    """Score by the free CPU and GPU after the placement, least first.

    References
    ----------
    Weng et al.: Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent. USENIX
    ATC 2023 (there, the baseline ``best fit``).
    """

    name = "BestFit"

    def score(self, cycle: Cycle) -> Scores:
        """Return the score of each node, shape (N,), at most 100."""
        return left_column(cycle.snapshot.arrays, cycle.snapshot.demands.arrays, cycle.demand_index)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return keys of devices by free resources, least first."""
        nodes = cycle.snapshot.arrays.nodes
        first, end = nodes[NODE_DEVICE_FIRST, node], nodes[NODE_DEVICE_END, node]
        return left_of_devices(cycle.snapshot.arrays, cycle.snapshot.demands.arrays, cycle.demand_index, first, end)

    def params(self, snapshot: Snapshot) -> BestFitParams:
        """Return the policy for the compiled path."""
        core, memory = snapshot.arrays.devices[[DEVICE_CORE, DEVICE_MEMORY]].astype(np.int64)
        per_gib = -(-core * MIB_PER_GIB // np.maximum(memory, 1))
        return BestFitParams(
            most_core_per_gib=int(per_gib.max(initial=0)) + 1,
            most_core=int(core.max(initial=0)),
        )
