"""Kernel of Seaway's own policy: place where the value of the remaining resources drops least.

The value of a node is the expected use of its free resources by the job mix:

    value = S psi(CPU, memory; S) + H(CPU, idle devices),   S = sum over devices of D(memory, cores)

D is the expected earnings of a device from the next jobs, given its free memory and cores. psi is the share of S that
the node's CPU and memory can serve. H is the value of jobs with several devices that the node can host. The score of a
placement is the value after it minus the value before it, minus a price for kinds of nodes that jobs with restrictive
rules will need. Tables come from `seaway.scheduling.policies.seaway.node_value`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Float64, Int32, Int64, UInt8
from seaway.scheduling.columns import (
    CELLS,
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    DEMAND_NEAR,
    DEVICE_CELL,
    DEVICE_CORE,
    DEVICE_FREE_MILLI,
    DEVICE_MEMORY,
    DEVICE_NODE,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_CORE_FREE,
    NODE_MEMORY_FREE,
)
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.fit import WHOLE_MILLI, core_needed, device_fits, node_fits
from seaway.scheduling.kernels.policy_stubs import device_key, found_score, row_score, search
from seaway.scheduling.kernels.score_cache import UNFIT, RowCache, refresh_row, slot_of
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.policies.bestfit import device_left, next_tightest
from seaway.scheduling.policies.fgd import alike, steps_reached

FINE = 16
"""Steps of a score in one thousandth of a device."""

NEAR_SHIFT = 8
"""Scores are rounded down to multiples of 2**8 steps, which is 16 thousandths of a device."""

NEAR_STEPS = 128
"""Factor between the scores of the plain and the compiled path for jobs with a user gateway, to add the proximity."""

BASE = 1 << 40
"""Offset of cached scores, so that none is negative."""

UNFIT_SCORE = -BASE * NEAR_STEPS
"""Score of a node that does not fit, far below all others."""


class NodeValues(NamedTuple):
    """Current values of nodes, independent of the demand.

    Attributes
    ----------
    value
        Value of each node, thousandths of a device, shape (N,).
    worth, idle
        Results of `current_worth` for each node, shape (N,).
    log_position
        Position of the values in the fleet's log, shape (1,); -1 if they are not computed.
    """

    value: Float64
    worth: Float64
    idle: Int64
    log_position: Int64


def node_values(nodes: int) -> NodeValues:
    """Return empty values for a number of nodes."""
    return NodeValues(np.zeros(nodes), np.zeros(nodes), np.zeros(nodes, np.int64), np.full(1, -1, np.int64))


class SeawayParams(NamedTuple):
    """Tables of the value of nodes to the job mix.

    Attributes
    ----------
    kind
        Kind of each node, by the jobs of the mix that it allows, shape (N,), int32.
    size
        Size of the devices of each node, as an index, shape (N,), int32.
    worth
        D by size of device and cell, thousandths of an idle device, shape (sizes, CELLS * CELLS).
    served
        psi for CPU and for memory, by size: served share of the value, shape (2 * sizes, steps); the last step is for
        sufficient resources.
    served_step
        Steps of `served` per thousandth of a CPU core, and per MiB, for each thousandth of value, shape (2, sizes).
    cpu_steps
        CPU requests of jobs with several devices, ascending, shape (T,), int64.
    hosting
        H by kind and number of CPU steps reached, and by number of idle devices, shape (kinds * (T + 1), most + 1).
    group
        Sets of kinds to which some jobs of the mix are restricted, shape (sets, kinds), uint8.
    group_work
        Share of the mix's GPU work that only each set can serve, shape (sets,).
    price
        Price of each kind per thousandth of a device, thousandths, shape (kinds,); updated.
    free
        Free cores of each kind, shape (kinds,); scratch memory.
    priced
        Position of the prices in the fleet's log, shape (1,), int64.
    node_values
        Current values of nodes; updated.
    cache
        Cache of scores.
    """

    kind: Int32
    size: Int32
    worth: Float64
    served: Float64
    served_step: Float64
    cpu_steps: Int64
    hosting: Float64
    group: UInt8
    group_work: Float64
    price: Float64
    free: Float64
    priced: Int64
    node_values: NodeValues
    cache: RowCache


@compiled
def served_share(table: Float64, at: float) -> float:
    """Return a share from a table with equal steps, interpolated."""
    last = table.shape[0] - 1
    if at >= last:
        return table[last]
    step = int(at)
    return table[step] + (at - step) * (table[step + 1] - table[step])


@compiled
def node_value(params: SeawayParams, n: int, cpu: int, memory: int, worth: float, idle: int) -> float:
    """Return the value of node `n` with `cpu` and `memory` free, value of devices `worth` and `idle` idle devices."""
    line = params.kind[n] * (params.cpu_steps.shape[0] + 1) + steps_reached(params.cpu_steps, cpu)
    hosted = params.hosting[line, min(idle, params.hosting.shape[1] - 1)]
    if worth <= 0.0:
        return hosted
    size = params.size[n]
    by_cpu = served_share(params.served[2 * size], cpu * params.served_step[0, size] / worth)
    by_memory = served_share(params.served[2 * size + 1], memory * params.served_step[1, size] / worth)
    return worth * min(by_cpu, by_memory) + hosted


@compiled
def cell_cost(fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> tuple[int, int]:
    """Return the hundredths of memory and cores of device `d` that a slice of demand `k` uses, rounded up."""
    amounts = demands.amounts
    whole = CELLS - 1
    core = -(-core_needed(fleet, demands, k, d) * whole // max(fleet.devices[DEVICE_CORE, d], 1))
    memory = amounts[k, DEMAND_GPU_PERCENT]
    if amounts[k, DEMAND_GPU_MEMORY] > 0:
        memory = -(-amounts[k, DEMAND_GPU_MEMORY] * whole // max(fleet.devices[DEVICE_MEMORY, d], 1))
    return memory, core


@compiled
def cell_after(cell: int, memory: int, core: int) -> int:
    """Return the cell of a device in `cell` after `memory` and `core` hundredths are used."""
    return max(cell // CELLS - memory, 0) * CELLS + max(cell % CELLS - core, 0)


@compiled
def current_worth(params: SeawayParams, fleet: FleetArrays, n: int) -> tuple[float, int]:
    """Return the sum of the values of the devices of node `n`, and the number of idle ones."""
    size = params.size[n]
    worth, idle = 0.0, 0
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        worth += params.worth[size, fleet.devices[DEVICE_CELL, d]]
        idle += fleet.devices[DEVICE_FREE_MILLI, d] == WHOLE_MILLI
    return worth, idle


@compiled
def worth_score(before: float, after: float) -> int:
    """Return the score of a change of value, in whole steps."""
    return BASE + int((after - before) * FINE)


@compiled
def value_on_device(
    params: SeawayParams,
    fleet: FleetArrays,
    demands: DemandArrays,
    k: int,
    n: int,
    d: int,
    worth: float,
    idle: int,
) -> float:
    """Return the value of node `n` after the placement of a slice of demand `k` on device `d`.

    Parameters
    ----------
    worth, idle
        Results of `current_worth` for the node.
    """
    cpu = fleet.nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU]
    memory = fleet.nodes[NODE_MEMORY_FREE, n] - demands.amounts[k, DEMAND_MEMORY]
    cell = fleet.devices[DEVICE_CELL, d]
    asked_memory, asked_core = cell_cost(fleet, demands, k, d)
    table = params.worth[params.size[n]]
    after = worth - table[cell] + table[cell_after(cell, asked_memory, asked_core)]
    return node_value(params, n, cpu, memory, after, idle - (fleet.devices[DEVICE_FREE_MILLI, d] == WHOLE_MILLI))


@compiled
def value_of_several(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, worth: float, idle: int
) -> float:
    """Return the value of a node after the placement of a demand on several devices: fitting ones with least free."""
    cpu = fleet.nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU]
    memory = fleet.nodes[NODE_MEMORY_FREE, n] - demands.amounts[k, DEMAND_MEMORY]
    table = params.worth[params.size[n]]
    last = -1
    for _ in range(demands.amounts[k, DEMAND_GPUS]):
        d, last = next_tightest(fleet, demands, k, n, last)
        if d < 0:
            break
        cell = fleet.devices[DEVICE_CELL, d]
        asked_memory, asked_core = cell_cost(fleet, demands, k, d)
        worth += table[cell_after(cell, asked_memory, asked_core)] - table[cell]
        idle -= fleet.devices[DEVICE_FREE_MILLI, d] == WHOLE_MILLI
    return node_value(params, n, cpu, memory, worth, idle)


@compiled
def value_score(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the score of node `n`, which fits demand `k`, without the price of its kind. Call `follow` before."""
    before, worth, idle = params.node_values.value[n], params.node_values.worth[n], params.node_values.idle[n]
    gpus = demands.amounts[k, DEMAND_GPUS]
    if gpus == 0:
        cpu = fleet.nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU]
        memory = fleet.nodes[NODE_MEMORY_FREE, n] - demands.amounts[k, DEMAND_MEMORY]
        return worth_score(before, node_value(params, n, cpu, memory, worth, idle))
    if gpus > 1:
        return worth_score(before, value_of_several(params, fleet, demands, k, n, worth, idle))
    best, last = -1, -1
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if not alike(fleet, d, last, DEVICE_CELL) and device_fits(fleet, demands, k, d):
            after = value_on_device(params, fleet, demands, k, n, d, worth, idle)
            best = max(best, worth_score(before, after))
            last = d
    return best


@compiled
def follow(params: SeawayParams, fleet: FleetArrays) -> None:
    """Update the prices and the values of nodes from the fleet's log."""
    reprice(params, fleet)
    seen, head = params.node_values.log_position[0], fleet.head[0]
    if seen < 0 or head - seen > fleet.log.shape[0]:
        for n in range(fleet.nodes.shape[1]):
            update_node_value(params, fleet, n)
    else:
        for at in range(seen, head):
            update_node_value(params, fleet, fleet.log[at % fleet.log.shape[0]])
    params.node_values.log_position[0] = head


@compiled
def update_node_value(params: SeawayParams, fleet: FleetArrays, n: int) -> None:
    """Compute the current value of node `n`."""
    worth, idle = current_worth(params, fleet, n)
    cpu, memory = fleet.nodes[NODE_CPU_FREE, n], fleet.nodes[NODE_MEMORY_FREE, n]
    params.node_values.value[n] = node_value(params, n, cpu, memory, worth, idle)
    params.node_values.worth[n] = worth
    params.node_values.idle[n] = idle


@compiled
def reprice(params: SeawayParams, fleet: FleetArrays) -> None:
    """Compute the price of each kind from its current scarcity, if the fleet has changed.

    The scarcity of a set of kinds is the share of the work that only it can serve, divided by its share of the free
    devices. The price of a kind is that of its scarcest set.
    """
    if params.priced[0] == fleet.head[0] or params.group.shape[0] == 0:
        return
    params.priced[0] = fleet.head[0]
    kinds = params.price.shape[0]
    for kind in range(kinds):
        params.free[kind] = 0.0
        params.price[kind] = 0.0
    total = 1.0
    for n in range(fleet.nodes.shape[1]):
        params.free[params.kind[n]] += fleet.nodes[NODE_GPU_CORE_FREE, n]
        total += fleet.nodes[NODE_GPU_CORE_FREE, n]
    for s in range(params.group.shape[0]):
        free = 1.0
        for kind in range(kinds):
            free += params.free[kind] * params.group[s, kind]
        scarcity = min(1.0, params.group_work[s] * total / free)
        squared = scarcity * scarcity
        for kind in range(kinds):
            if params.group[s, kind]:
                params.price[kind] = max(params.price[kind], squared * squared * squared)


@compiled
def priced_score(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, score: int) -> int:
    """Return a cached score minus the price of the kind of node `n`, in coarse steps.

    The steps are 16 thousandths of a device. The result is usually negative, because a placement rarely increases the
    value of a node.
    """
    asked = demands.amounts[k, DEMAND_GPUS] * WHOLE_MILLI
    if demands.amounts[k, DEMAND_GPU_CORE] > 0:
        asked = demands.amounts[k, DEMAND_GPUS] * demands.amounts[k, DEMAND_GPU_CORE]
    return (score - BASE - int(params.price[params.kind[n]] * asked * FINE)) >> NEAR_SHIFT


@specialises(row_score, SeawayParams)
def _row_score(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    return value_score(params, fleet, demands, k, n)


@specialises(search, SeawayParams)
def _search(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int, clusters: UInt8
) -> int:
    follow(params, fleet)
    slot = slot_of(params.cache, k)
    refresh_row(params, fleet, demands, k, slot)
    row = params.cache.rows[slot]
    best, at = -BASE, -1
    for n in range(row.shape[0]):
        if row[n] != UNFIT and clusters[fleet.nodes[NODE_CLUSTER, n]]:
            score = priced_score(params, fleet, demands, k, n, row[n])
            if score > best:
                best, at = score, n
    if at < 0 or demands.amounts[k, DEMAND_NEAR] < 0:
        return at
    return nearest(params, fleet, demands, k, clusters, best)


@specialises(found_score, SeawayParams)
def _found_score(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int
) -> int:
    score = params.cache.rows[slot_of(params.cache, k), n]
    return UNFIT_SCORE if score == UNFIT else near_score(params, fleet, demands, k, n, score)


@compiled
def near_score(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, score: int) -> int:
    """Return a cached score minus the price of the kind of node `n`, with up to 100 of `NEAR_STEPS` for proximity."""
    priced = priced_score(params, fleet, demands, k, n, score)
    near = demands.amounts[k, DEMAND_NEAR]
    return priced if near < 0 else priced * NEAR_STEPS + demands.cluster_ok[near, fleet.nodes[NODE_CLUSTER, n]]


@compiled
def nearest(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, clusters: UInt8, best: int) -> int:
    """Return the first node with the score `best` in the cluster closest to the user.

    Proximity does not count for jobs with network bounds, which leave better links to other jobs.
    """
    row = params.cache.rows[slot_of(params.cache, k)]
    nearness = demands.cluster_ok[demands.amounts[k, DEMAND_NEAR]]
    found, at = -1, -1
    for n in range(row.shape[0]):
        c = fleet.nodes[NODE_CLUSTER, n]
        nearer = row[n] != UNFIT and clusters[c] != 0 and nearness[c] > found
        if nearer and priced_score(params, fleet, demands, k, n, row[n]) == best:
            found, at = nearness[c], n
    return at


@compiled
def device_value_key(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int) -> int:
    """Return the key of device `d` for a slice of demand `k`: the highest remaining value first."""
    if demands.amounts[k, DEMAND_GPUS] > 1:
        return device_left(fleet, demands, k, d)
    n = fleet.devices[DEVICE_NODE, d]
    worth, idle = current_worth(params, fleet, n)
    return -int(value_on_device(params, fleet, demands, k, n, d, worth, idle) * FINE)


@specialises(device_key, SeawayParams)
def _device_key(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return device_value_key(params, fleet, demands, k, d)


@compiled
def value_column(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int) -> Int64:
    """Return the score of each node for demand `k`, shape (N,); far below all others if it does not fit.

    Among nodes of equal score, those closer to the user have up to 100 of `NEAR_STEPS` more.
    """
    lent_params, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    follow(lent_params, lent)
    scores = np.full(fleet.nodes.shape[1], UNFIT_SCORE, np.int64)
    for n in range(scores.shape[0]):
        if node_fits(lent, asked, k, n):
            score = value_score(lent_params, lent, asked, k, n)
            scores[n] = near_score(lent_params, lent, asked, k, n, score)
    return scores


@compiled
def value_of_devices(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, first: int, end: int
) -> Int64:
    """Return the keys of devices `first` to `end` - 1 for demand `k`, shape (end - first,); the lowest wins."""
    lent_params, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    keys = np.empty(end - first, np.int64)
    for d in range(first, end):
        keys[d - first] = device_value_key(lent_params, lent, asked, k, d)
    return keys
