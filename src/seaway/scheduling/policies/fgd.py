"""Policy `fgd`, fragmentation gradient descent: place where fragmentation for the job mix grows least.

The fragmentation of a node is the idle GPU capacity that an average job of the mix cannot use there. For each typical
job that fits, this is the sum over the devices with less free than it requests of one. For each other typical job, and
for each without a GPU, it is the whole idle GPU capacity. With counts of typical jobs instead of probabilities, it is
an integer, and a sum over devices of counts from tables:

    F = sum_d f_d (W - A[cpu, f_d]) - 1000 w B[cpu, w]

Here f_d is the free part of device d, w the number of idle devices, and W the number of typical jobs. A counts those
that fit the CPU and request at most f_d of one device. B counts those that fit the CPU and request several devices, at
most w. Both are tables by kind of node.

References
----------
Weng et al.: Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent. USENIX ATC 2023, sections 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seaway.domain.job import Job
from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int32, Int64, UInt8
from seaway.scheduling.columns import (
    DEMAND_CPU,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEVICE_CORE,
    DEVICE_FREE_MILLI,
    DEVICE_MEMORY,
    DEVICE_NODE,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.fit import WHOLE_MILLI, WHOLE_PERCENT, core_needed, device_fits, node_fits
from seaway.scheduling.kernels.policy_stubs import device_key, found_score, row_score, search
from seaway.scheduling.kernels.score_cache import RowCache, row_cache, search_row, slot_of
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.policies.bestfit import device_left, next_tightest
from seaway.scheduling.policies.job_mix import NodeKinds, indexed, node_kinds, typical_jobs
from seaway.scheduling.snapshot.rule_masks import FleetCache, SnapshotCache
from seaway.scheduling.snapshot.snapshot import Snapshot


class FgdParams(NamedTuple):
    """Tables of the job mix, and a cache of scores.

    Attributes
    ----------
    kind
        Kind of each node, shape (N,), int32.
    cpu_steps
        CPU requests of typical jobs, ascending, shape (T,), int64.
    level
        Number of requested sizes of typical jobs that are not larger than each number of free thousandths, shape
        (1001,), int64.
    sharing
        A, shape (kinds x (T + 1), sizes + 1), int64; the row is kind x (T + 1) + number of CPU steps reached.
    whole
        B, shape (kinds x (T + 1), maximum number of devices of a node + 1), int64.
    steps
        Minimum improvement for each score from 1 to 99, thousandths times W, shape (99,), int64.
    weight
        W, shape (1,), int64.
    cache
        Cache of scores.
    """

    kind: Int32
    cpu_steps: Int64
    level: Int64
    sharing: Int64
    whole: Int64
    steps: Int64
    weight: Int64
    cache: RowCache


@compiled
def steps_reached(steps: Int64, value: int) -> int:
    """Return the number of entries of ascending `steps` that are not above `value`."""
    low, high = 0, steps.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if steps[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def share_asked(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> int:
    """Return the thousandths of device `d` that a slice of demand `k` makes unusable for others."""
    amounts = demands.amounts
    core = -(-core_needed(fleet, demands, k, d) * WHOLE_MILLI // max(fleet.devices[DEVICE_CORE, d], 1))
    memory = amounts[k, DEMAND_GPU_PERCENT] * WHOLE_MILLI // WHOLE_PERCENT
    if amounts[k, DEMAND_GPU_MEMORY] > 0:
        memory = -(-amounts[k, DEMAND_GPU_MEMORY] * WHOLE_MILLI // max(fleet.devices[DEVICE_MEMORY, d], 1))
    return max(core, memory)


@compiled
def unusable(params: FgdParams, line: int, free: int) -> int:
    """Return the part of `free` thousandths of a device that jobs with one device cannot use, times W."""
    return free * (params.weight[0] - params.sharing[line, params.level[free]])


@compiled
def fragmentation(params: FgdParams, fleet: FleetArrays, n: int, cpu: int) -> tuple[int, int]:
    """Return the GPU capacity of a node with `cpu` free that one-device jobs cannot use, and its idle devices."""
    kind = params.kind[n]
    line = kind * (params.cpu_steps.shape[0] + 1) + steps_reached(params.cpu_steps, cpu)
    total, whole = 0, 0
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        free = fleet.devices[DEVICE_FREE_MILLI, d]
        total += unusable(params, line, free)
        whole += free == WHOLE_MILLI
    return total, whole


@compiled
def less_whole_devices(params: FgdParams, line: int, total: int, whole: int) -> int:
    """Return `total` less what jobs with several devices can use of `whole` idle devices."""
    return total - WHOLE_MILLI * whole * params.whole[line, min(whole, params.whole.shape[1] - 1)]


@compiled
def gain_score(params: FgdParams, gain: int) -> int:
    """Return the score of a gain: trunc(100 sigmoid(gain / 1000)), from the minimum gain of each score."""
    return steps_reached(params.steps, gain)


@compiled
def score_on_device(
    params: FgdParams,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    n: int,
    d: int,
    before: int,
    rest: int,
    whole: int,
) -> int:
    """Return the score of a slice of demand `k` on device `d`.

    Parameters
    ----------
    before
        Current fragmentation of the node.
    rest, whole
        Results of `fragmentation` for the node with the free CPU after the placement.
    """
    kind = params.kind[n]
    cpu = fleet.nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU]
    line = kind * (params.cpu_steps.shape[0] + 1) + steps_reached(params.cpu_steps, cpu)
    free = fleet.devices[DEVICE_FREE_MILLI, d]
    after = max(free - share_asked(fleet, demands, k, d), 0)
    total = rest - unusable(params, line, free) + unusable(params, line, after)
    left = whole - (free == WHOLE_MILLI) + (after == WHOLE_MILLI)
    return gain_score(params, before - less_whole_devices(params, line, total, left))


@compiled
def alike(fleet: FleetArrays, d: int, other: int, row: int) -> bool:
    """Report whether devices `d` and `other`, which may be -1, have the same size and the same value in row `row`."""
    devices = fleet.devices
    return (
        other >= 0
        and devices[row, d] == devices[row, other]
        and devices[DEVICE_MEMORY, d] == devices[DEVICE_MEMORY, other]
        and devices[DEVICE_CORE, d] == devices[DEVICE_CORE, other]
    )


@compiled
def frag_score(params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the score of node `n`, which fits demand `k`, 0-100."""
    steps = params.cpu_steps.shape[0] + 1
    kind = params.kind[n]
    had, whole = fragmentation(params, fleet, n, fleet.nodes[NODE_CPU_FREE, n])
    before = less_whole_devices(
        params, kind * steps + steps_reached(params.cpu_steps, fleet.nodes[NODE_CPU_FREE, n]), had, whole
    )
    cpu = fleet.nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU]
    rest, whole = fragmentation(params, fleet, n, cpu)
    line = kind * steps + steps_reached(params.cpu_steps, cpu)
    gpus = demands.amounts[k, DEMAND_GPUS]
    if gpus == 0:
        return gain_score(params, before - less_whole_devices(params, line, rest, whole))
    if gpus > 1:
        return several_score(params, fleet, demands, k, n, before, rest, whole)
    best, last = -1, -1
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if not alike(fleet, d, last, DEVICE_FREE_MILLI) and device_fits(fleet, demands, k, d):
            best = max(best, score_on_device(params, fleet, demands, k, n, d, before, rest, whole))
            last = d
    return best


@compiled
def several_score(
    params: FgdParams,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    n: int,
    before: int,
    rest: int,
    whole: int,
) -> int:
    """Return the score of a demand for several devices: the fitting ones with the least free resources, in order."""
    kind = params.kind[n]
    cpu = fleet.nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU]
    line = kind * (params.cpu_steps.shape[0] + 1) + steps_reached(params.cpu_steps, cpu)
    last = -1
    for _ in range(demands.amounts[k, DEMAND_GPUS]):
        d, last = next_tightest(fleet, demands, k, n, last)
        if d < 0:
            break
        free = fleet.devices[DEVICE_FREE_MILLI, d]
        after = max(free - share_asked(fleet, demands, k, d), 0)
        rest += unusable(params, line, after) - unusable(params, line, free)
        whole += (after == WHOLE_MILLI) - (free == WHOLE_MILLI)
    return gain_score(params, before - less_whole_devices(params, line, rest, whole))


@compiled
def device_score(params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> int:
    """Return the score of a slice of demand `k` on device `d`, computed from the current state."""
    n = fleet.devices[DEVICE_NODE, d]
    steps = params.cpu_steps.shape[0] + 1
    free = fleet.nodes[NODE_CPU_FREE, n]
    had, whole = fragmentation(params, fleet, n, free)
    before = less_whole_devices(params, params.kind[n] * steps + steps_reached(params.cpu_steps, free), had, whole)
    rest, whole = fragmentation(params, fleet, n, free - demands.amounts[k, DEMAND_CPU])
    return score_on_device(params, fleet, demands, k, n, d, before, rest, whole)


@specialises(search, FgdParams)
def _search(
    params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int, clusters: UInt8
) -> int:
    return search_row(params, fleet, demands, k, random_bits, clusters)


@specialises(found_score, FgdParams)
def _found_score(params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int) -> int:
    return params.cache.rows[slot_of(params.cache, k), n]


@specialises(row_score, FgdParams)
def _row_score(params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    return frag_score(params, fleet, demands, k, n)


@specialises(device_key, FgdParams)
def _device_key(params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int) -> int:
    if demands.amounts[k, DEMAND_GPUS] > 1:
        return device_left(fleet, demands, k, d)
    return -device_score(params, fleet, demands, k, d)


@compiled
def frag_column(params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int) -> Int64:
    """Return the score of each node for demand `k`, shape (N,); -1 if it does not fit."""
    lent_params, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    scores = np.full(fleet.nodes.shape[1], -1, np.int64)
    for n in range(scores.shape[0]):
        if node_fits(lent, asked, k, n):
            scores[n] = frag_score(lent_params, lent, asked, k, n)
    return scores


@compiled
def frag_of_devices(
    params: FgdParams, fleet: FleetArrays, demands: DemandArrays, k: int, first: int, end: int
) -> Int64:
    """Return the keys of devices `first` to `end` - 1 for demand `k`, shape (end - first,); the lowest wins."""
    lent_params, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    keys = np.empty(end - first, np.int64)
    for d in range(first, end):
        keys[d - first] = device_key(lent_params, lent, asked, k, d, 0)
    return keys


WHOLE = 1000


class Fgd:
    """Score by the growth of the idle GPU capacity that the job mix cannot use.

    Parameters
    ----------
    mix
        Past jobs.

    References
    ----------
    Weng et al.: Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
    Gradient Descent. USENIX ATC 2023.
    """

    name = "Fgd"

    def __init__(self, mix: Sequence[Job]) -> None:
        self._typical = typical_jobs(mix)
        self._known = SnapshotCache(self.params)
        self._tables = FleetCache(self._work_out)

    def score(self, cycle: Cycle) -> Scores:
        """Return the score of each node, shape (N,), 0-100; -1 if the replica does not fit."""
        snapshot = cycle.snapshot
        return frag_column(self._known(snapshot), snapshot.arrays, snapshot.demands.arrays, cycle.demand_index)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return keys of devices: by score for a single device, by free resources for several, least first."""
        snapshot = cycle.snapshot
        arrays, demands = snapshot.arrays, snapshot.demands.arrays
        first, end = arrays.nodes[NODE_DEVICE_FIRST, node], arrays.nodes[NODE_DEVICE_END, node]
        return frag_of_devices(self._known(snapshot), arrays, demands, cycle.demand_index, first, end)

    def params(self, snapshot: Snapshot) -> FgdParams:
        """Return the policy for the compiled path, with its own cache of scores."""
        return self._tables(snapshot)._replace(cache=row_cache(len(snapshot.nodes), len(snapshot.demands)))

    def _work_out(self, snapshot: Snapshot) -> FgdParams:
        """Return the tables of a fleet, with an empty cache of scores."""
        typical, lines = indexed(snapshot, self._typical)
        kinds = node_kinds(snapshot, typical)
        amounts = snapshot.demands.arrays.amounts[lines]
        counts = np.array([each.count for each in typical], np.int64)
        cpu_steps = np.unique(amounts[:, DEMAND_CPU])
        weight = max(int(counts.sum()), 1)
        level, sharing = _sharing_tables(kinds, amounts, counts, cpu_steps)
        return FgdParams(
            kind=kinds.kind,
            cpu_steps=cpu_steps,
            level=level,
            sharing=sharing,
            whole=_whole_table(kinds, amounts, counts, cpu_steps, _most_devices(snapshot)),
            steps=_score_steps(weight),
            weight=np.array([weight], np.int64),
            cache=row_cache(0, 0),
        )


def _most_devices(snapshot: Snapshot) -> int:
    nodes = snapshot.arrays.nodes
    return int((nodes[NODE_DEVICE_END] - nodes[NODE_DEVICE_FIRST]).max(initial=0))


def _sharing_tables(kinds: NodeKinds, amounts: Int64, counts: Int64, cpu_steps: Int64) -> tuple[Int64, Int64]:
    """Return the number of jobs with one device that fit, by free CPU and free part of a device."""
    single = amounts[:, DEMAND_GPUS] == 1
    sizes = np.unique(kinds.share[:, single])
    sizes = sizes[sizes <= WHOLE]
    level = np.searchsorted(sizes, np.arange(WHOLE + 1), side="right").astype(np.int64)
    table = np.zeros((len(kinds.share), len(cpu_steps) + 1, len(sizes) + 1), np.int64)
    for t in np.flatnonzero(single):
        step = np.searchsorted(cpu_steps, amounts[t, DEMAND_CPU], side="right")
        for kind, share in enumerate(kinds.share[:, t]):
            if share <= WHOLE:
                table[kind, step:, np.searchsorted(sizes, share, side="right") :] += counts[t]
    return level, table.reshape(-1, len(sizes) + 1)


def _whole_table(kinds: NodeKinds, amounts: Int64, counts: Int64, cpu_steps: Int64, most: int) -> Int64:
    """Return the number of jobs with several devices that fit, by free CPU and number of idle devices."""
    table = np.zeros((len(kinds.share), len(cpu_steps) + 1, most + 1), np.int64)
    for t in np.flatnonzero(amounts[:, DEMAND_GPUS] > 1):
        step = np.searchsorted(cpu_steps, amounts[t, DEMAND_CPU], side="right")
        for kind in np.flatnonzero(kinds.share[:, t] <= WHOLE):
            table[kind, step:, amounts[t, DEMAND_GPUS] :] += counts[t]
    return table.reshape(-1, most + 1)


def _score_steps(weight: int) -> Int64:
    """Return the minimum gain for each score from 1 to 99: 1000 W ln(s / (100 - s)), rounded up."""
    return np.array([math.ceil(WHOLE * weight * math.log(s / (100 - s))) for s in range(1, 100)], np.int64)
