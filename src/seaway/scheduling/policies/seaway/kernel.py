"""Seaway's own policy: place where the value of the remaining resources drops least.

The value of a node is the use that the job mix could still make of it:

    value = S psi(CPU, memory; S) + H(CPU, idle devices),   S = sum over devices of D(memory, cores)

D is the expected earnings of a device with so much free from the next jobs. psi is the share of it that the node's
CPU and memory can serve. H is the value of the jobs of several devices that it could host. The score of a placement
is the value afterwards less the value before, less a price for kinds of node that jobs with narrow rules will need.
Tables come from `seaway.scheduling.policies.seaway.node_value`.
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
from seaway.scheduling.kernels.policy_stubs import device_key, row_score, search
from seaway.scheduling.kernels.score_cache import UNFIT, RowCache, refresh_row, slot_of
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.policies.bestfit import device_left, next_tightest
from seaway.scheduling.policies.fgd import alike, steps_reached

FINE = 16
"""Steps of a score in one thousandth of a device."""

NEAR_SHIFT = 8
"""Scores that differ by less than 2**8 steps, 16 thousandths of a device, count as equal."""

NEAR_STEPS = 128
"""Steps of the plain path's score in one of the compiled one, for a job that likes to be near: room for how near."""

BASE = 1 << 40
"""Added to scores that are remembered, so that none is negative."""


class NodeValues(NamedTuple):
    """Present values of nodes, independent of the demand.

    Attributes
    ----------
    value
        Value of each node, thousandths of a device, shape (N,).
    worth, idle
        Results of `worth_now` for each, shape (N,).
    log_position
        Their position in the fleet's log, shape (1,); -1 for none.
    """

    value: Float64
    worth: Float64
    idle: Int64
    log_position: Int64


def node_values(nodes: int) -> NodeValues:
    """Make what is yet to be worked out for so many nodes."""
    return NodeValues(np.zeros(nodes), np.zeros(nodes), np.zeros(nodes, np.int64), np.full(1, -1, np.int64))


class SeawayParams(NamedTuple):
    """Tables of what nodes are worth to the job mix.

    Attributes
    ----------
    kind
        Which rules of the mix allow each node, shape (N,), int32.
    size
        Which size of device each node has, shape (N,), int32.
    worth
        D in thousandths of an idle device, by size of device and cell, shape (sizes, CELLS * CELLS).
    served
        psi for CPU and for memory, by size: share of the worth that is served, shape
        (2 * sizes, steps); the last step stands for enough.
    served_step
        Steps of `served` per CPU milli, and per MiB, for each thousandth of worth, shape (2, sizes).
    cpu_steps
        CPU that jobs of several devices ask for, rising, shape (T,), int64.
    hosting
        H by kind and CPU steps met, and number of idle devices, shape (kinds * (T + 1), most + 1).
    group
        Sets of kinds that some jobs of the mix are bound to, shape (sets, kinds), uint8.
    group_work
        Share of the mix's GPU work that only the set can serve, shape (sets,).
    price
        Price of each kind, thousandths per thousandth asked for, shape (kinds,); written to.
    free
        Free cores of each kind, shape (kinds,); scratch.
    priced
        How many changes the fleet had logged when prices were last worked out, shape (1,), int64.
    node_values
        What nodes are worth as they stand; written to.
    cache
        Scores worked out before.
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
    """Read a share off a table with steps of equal width."""
    last = table.shape[0] - 1
    if at >= last:
        return table[last]
    step = int(at)
    return table[step] + (at - step) * (table[step + 1] - table[step])


@compiled
def node_value(params: SeawayParams, n: int, cpu: int, memory: int, worth: float, idle: int) -> float:
    """Value of node `n` with `cpu` and `memory` free, devices worth `worth` and `idle` of them idle."""
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
    """Return the hundredths of memory and cores of device `d` that a slice of demand `k` takes, rounded up."""
    amounts = demands.amounts
    whole = CELLS - 1
    core = -(-core_needed(fleet, demands, k, d) * whole // max(fleet.devices[DEVICE_CORE, d], 1))
    memory = amounts[k, DEMAND_GPU_PERCENT]
    if amounts[k, DEMAND_GPU_MEMORY] > 0:
        memory = -(-amounts[k, DEMAND_GPU_MEMORY] * whole // max(fleet.devices[DEVICE_MEMORY, d], 1))
    return memory, core


@compiled
def cell_after(cell: int, memory: int, core: int) -> int:
    """Cell of a device in `cell` once `memory` and `core` hundredths are taken."""
    return max(cell // CELLS - memory, 0) * CELLS + max(cell % CELLS - core, 0)


@compiled
def worth_now(params: SeawayParams, fleet: FleetArrays, n: int) -> tuple[float, int]:
    """Add up what the devices of node `n` are worth, and count those that are idle."""
    size = params.size[n]
    worth, idle = 0.0, 0
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        worth += params.worth[size, fleet.devices[DEVICE_CELL, d]]
        idle += fleet.devices[DEVICE_FREE_MILLI, d] == WHOLE_MILLI
    return worth, idle


@compiled
def fine_score(before: float, after: float) -> int:
    """Score a change of value in whole steps."""
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
    """Value of node `n` once a slice of demand `k` lies on device `d`.

    Parameters
    ----------
    worth, idle
        What `worth_now` gives for the node as it is.
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
    """Value of node `n` once demand `k` lies on several devices: those that fit with least left."""
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
    """Score node `n`, which fits demand `k`, without the price of its kind; `follow` goes before."""
    before, worth, idle = params.node_values.value[n], params.node_values.worth[n], params.node_values.idle[n]
    gpus = demands.amounts[k, DEMAND_GPUS]
    if gpus == 0:
        cpu = fleet.nodes[NODE_CPU_FREE, n] - demands.amounts[k, DEMAND_CPU]
        memory = fleet.nodes[NODE_MEMORY_FREE, n] - demands.amounts[k, DEMAND_MEMORY]
        return fine_score(before, node_value(params, n, cpu, memory, worth, idle))
    if gpus > 1:
        return fine_score(before, value_of_several(params, fleet, demands, k, n, worth, idle))
    best, last = -1, -1
    for d in range(fleet.nodes[NODE_DEVICE_FIRST, n], fleet.nodes[NODE_DEVICE_END, n]):
        if not alike(fleet, d, last, DEVICE_CELL) and device_fits(fleet, demands, k, d):
            after = value_on_device(params, fleet, demands, k, n, d, worth, idle)
            best = max(best, fine_score(before, after))
            last = d
    return best


@compiled
def follow(params: SeawayParams, fleet: FleetArrays) -> None:
    """Bring prices, and what nodes are worth as they stand, up to date with the fleet's log."""
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
    """Work out what node `n` is worth as it stands."""
    worth, idle = worth_now(params, fleet, n)
    cpu, memory = fleet.nodes[NODE_CPU_FREE, n], fleet.nodes[NODE_MEMORY_FREE, n]
    params.node_values.value[n] = node_value(params, n, cpu, memory, worth, idle)
    params.node_values.worth[n] = worth
    params.node_values.idle[n] = idle


@compiled
def reprice(params: SeawayParams, fleet: FleetArrays) -> None:
    """Compute the price of each kind from its present scarcity, if anything has changed.

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
    """Return a remembered score less the price of the kind of node `n`, with near scores made equal.

    It counts steps of 16 thousandths of a device; the value of a node hardly ever rises, so that it is
    below 0 as a rule.
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


@compiled
def nearest(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, clusters: UInt8, best: int) -> int:
    """Find, among the nodes with the score `best`, the first of the cluster that is nearest to the user.

    Who set bounds said what is good enough, and leaves better links to those who need them.
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
    """Rank device `d` for a slice of demand `k`: the highest value afterwards first."""
    if demands.amounts[k, DEMAND_GPUS] > 1:
        return device_left(fleet, demands, k, d)
    n = fleet.devices[DEVICE_NODE, d]
    worth, idle = worth_now(params, fleet, n)
    return -int(value_on_device(params, fleet, demands, k, n, d, worth, idle) * FINE)


@specialises(device_key, SeawayParams)
def _device_key(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return device_value_key(params, fleet, demands, k, d)


@compiled
def value_column(params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int) -> Int64:
    """Score every node for demand `k`, shape (N,); far below all others where it does not fit.

    Of nodes that are worth the same, those nearer to the user have up to 100 of `NEAR_STEPS` more.
    """
    lent_params, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    follow(lent_params, lent)
    near = asked.amounts[k, DEMAND_NEAR]
    scores = np.full(fleet.nodes.shape[1], -BASE * NEAR_STEPS, np.int64)
    for n in range(scores.shape[0]):
        if node_fits(lent, asked, k, n):
            score = value_score(lent_params, lent, asked, k, n)
            scores[n] = priced_score(lent_params, lent, asked, k, n, score)
            if near >= 0:
                scores[n] = scores[n] * NEAR_STEPS + asked.cluster_ok[near, lent.nodes[NODE_CLUSTER, n]]
    return scores


@compiled
def value_of_devices(
    params: SeawayParams, fleet: FleetArrays, demands: DemandArrays, k: int, first: int, end: int
) -> Int64:
    """Rank the devices from `first` up to `end` for demand `k`, shape (end - first,); the lowest wins."""
    lent_params, lent, asked = borrowed(params), borrowed(fleet), borrowed(demands)
    keys = np.empty(end - first, np.int64)
    for d in range(first, end):
        keys[d - first] = device_value_key(lent_params, lent, asked, k, d)
    return keys
