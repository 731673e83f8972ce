"""Tables of Seaway's own policy: the value of nodes to a job mix.

The value of the free resources of a device is its expected earnings from the next jobs, each accepted or rejected, at
consistent prices. `docs/adr/0006-what-a-node-is-worth.md` has the formulae and results.

References
----------
Kleywegt, Papastavrou: The Dynamic and Stochastic Knapsack Problem. Operations Research 46(1), 1998,
doi:10.1287/opre.46.1.17.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seaway.domain.job import Job
from seaway.scheduling.arrays import DemandArrays, Float64, Int32, Int64, UInt8
from seaway.scheduling.columns import (
    CELLS,
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MASK,
    DEMAND_MEMORY,
    DEMAND_NETWORK,
    DEVICE_CORE,
    DEVICE_MEMORY,
    NODE_CLUSTER,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.policies.job_mix import TypicalJob, indexed, typical_jobs
from seaway.scheduling.policies.seaway.knapsack import online_knapsack_values
from seaway.scheduling.snapshot.snapshot import Snapshot

FULL = CELLS - 1
WHOLE = 1000.0
"""Value of an idle device."""

MAX_TYPES = 96
"""Maximum number of kinds of jobs in the tables. More kinds are sampled evenly."""

OFFERS = 40
"""Number of future jobs in the value of a device. Values from 24 to 48 are about equally good. Larger ones are worse
for mixes in which all sizes are equally frequent.
"""

AGREEMENTS = 10
"""Number of alternating computations of values and prices."""

COARSE = 2
"""Resolution of the tables with separate memory and cores, hundredths of a device."""

STEPS = 512
"""Number of steps of the tables of served shares."""

ENOUGH = 16.0
"""Range of those tables as a multiple of the mean need. Beyond it, the served share is 1."""


@dataclass(frozen=True, slots=True)
class MixFigures:
    """Kinds of GPU jobs of a mix, with the nodes of a fleet that fit them.

    Attributes
    ----------
    share
        Share of the mix's GPU jobs, shape (T,); sums to 1.
    gpus, cpu, memory
        Requested devices, CPU (thousandths of a core) and memory (MiB), shape (T,).
    size
        Size of the devices of each node, as an index, shape (N,).
    cell_memory, cell_core
        Requested hundredths of a device of each size, shape (sizes, T); above 100 if the device is too small.
    kind
        Kind of each node, by the jobs that it allows, shape (N,).
    allowed
        1 if the rules and network bounds of a job allow a kind of node, shape (kinds, T).
    """

    share: Float64
    gpus: Int64
    cpu: Int64
    memory: Int64
    size: Int32
    cell_memory: Int64
    cell_core: Int64
    kind: Int32
    allowed: UInt8


def mix_figures(snapshot: Snapshot, jobs: Sequence[Job]) -> MixFigures:
    """Return the kinds of jobs and nodes. Nodes are classified by their first device."""
    kinds_of_jobs = typical_jobs([job for job in jobs if job.demand.request.gpus], share=1.0)
    typical, lines = indexed(snapshot, _sample(kinds_of_jobs))
    demands = snapshot.demands.arrays
    amounts = demands.amounts[lines]
    arrays = snapshot.arrays
    nodes = arrays.nodes
    has_device = nodes[NODE_DEVICE_END] > nodes[NODE_DEVICE_FIRST]
    first = np.where(has_device, nodes[NODE_DEVICE_FIRST], 0)
    sizes = np.ones((nodes.shape[1], 2), np.int64)
    allowed = np.zeros((nodes.shape[1], len(typical)), np.uint8)
    if arrays.devices.shape[1]:
        sizes = np.maximum(arrays.devices[[DEVICE_MEMORY, DEVICE_CORE]][:, first].T.astype(np.int64), 1)
        masks = amounts[:, DEMAND_MASK]
        allowed = demands.node_ok[masks].T & demands.device_ok[masks][:, first].T
        allowed &= _reachable(demands, amounts)[nodes[NODE_CLUSTER]] & has_device[:, None]
    kinds, kind = np.unique(allowed, axis=0, return_inverse=True)
    by_size, size = np.unique(sizes, axis=0, return_inverse=True)
    counts = np.array([each.count for each in typical], np.float64)
    return MixFigures(
        share=counts / max(counts.sum(), 1.0),
        gpus=amounts[:, DEMAND_GPUS],
        cpu=amounts[:, DEMAND_CPU],
        memory=amounts[:, DEMAND_MEMORY],
        size=size.reshape(-1).astype(np.int32),
        cell_memory=_hundredths(amounts, DEMAND_GPU_MEMORY, by_size[:, 0]),
        cell_core=_hundredths(amounts, DEMAND_GPU_CORE, by_size[:, 1]),
        kind=kind.reshape(-1).astype(np.int32),
        allowed=kinds,
    )


def _reachable(demands: DemandArrays, amounts: Int64) -> UInt8:
    """Return 1 for each cluster whose link meets the bounds of each demand, shape (C, T)."""
    network = amounts[:, DEMAND_NETWORK]
    good = demands.cluster_ok[np.maximum(network, 0)].T
    return np.where(network < 0, 1, good).astype(np.uint8)


def _sample(typical: list[TypicalJob]) -> list[TypicalJob]:
    """Return at most `MAX_TYPES` kinds of jobs, sampled evenly, most frequent first."""
    step = -(-len(typical) // MAX_TYPES)
    return typical[:: max(step, 1)]


def _hundredths(amounts: Int64, column: int, totals: Int64) -> Int64:
    """Return the requests in hundredths of each total, shape (sizes, T), rounded up."""
    asked = -(-amounts[None, :, column] * FULL // totals[:, None])
    if column == DEMAND_GPU_MEMORY:
        asked = np.where(amounts[None, :, column] > 0, asked, amounts[None, :, DEMAND_GPU_PERCENT])
    return asked


def device_worths(figures: MixFigures) -> Float64:
    """Return the value of the free resources of a device, shape (sizes, CELLS * CELLS), at most about 1,000."""
    tables = [
        _worth_of_size(figures, memory, core)
        for memory, core in zip(figures.cell_memory, figures.cell_core, strict=True)
    ]
    return np.array(tables, np.float64).reshape(-1, CELLS * CELLS)


def _worth_of_size(figures: MixFigures, memory: Int64, core: Int64) -> Float64:
    """Return the value of each cell for one size of device."""
    fits = (memory <= FULL) & (core <= FULL) & (memory + core > 0)
    if not fits.any():
        even: Float64 = np.minimum(*np.indices((CELLS, CELLS))).reshape(-1) * (WHOLE / FULL)
        return even
    asked, inverse = np.unique(np.stack([memory[fits], core[fits]], axis=1), axis=0, return_inverse=True)
    devices = np.bincount(inverse.reshape(-1), figures.share[fits] * figures.gpus[fits])
    shares = (devices / devices.sum()).astype(np.float64)
    if np.array_equal(asked[:, 0], asked[:, 1]):
        alone = consistent_worth(np.stack([asked[:, 0], np.zeros_like(asked[:, 0])], axis=1), shares, CELLS, 1)
        return alone[np.minimum(*np.indices((CELLS, CELLS)))].reshape(-1)
    coarse = -(-asked // COARSE)
    table = consistent_worth(coarse, shares, FULL // COARSE + 1, FULL // COARSE + 1)
    cells = np.arange(CELLS) // COARSE
    return table.reshape(FULL // COARSE + 1, -1)[cells[:, None], cells[None, :]].reshape(-1)


def consistent_worth(asked: Int64, shares: Float64, rows: int, columns: int) -> Float64:
    """Compute the value of the free resources of a device, at consistent prices.

    The value of a device is its earnings from the next `OFFERS` jobs of the mix, each of which is accepted or rejected.
    (This applies to the table only; the policy rejects no job.) The price of a job is the drop of an idle device's
    value when the job is placed. Values and prices are computed in turn.

    Parameters
    ----------
    asked
        Units of the first and of the second resource that each kind of job requests, shape (I, 2).
    shares
        Frequency of each kind, shape (I,); sums to 1.
    rows, columns
        Units of an idle device, plus 1.

    Returns
    -------
    Float64
        Value by free units, shape (rows * columns,); `WHOLE` for an idle device.
    """
    largest = np.maximum(asked[:, 0] / max(rows - 1, 1), asked[:, 1] / max(columns - 1, 1))
    used = [axis for axis, units in enumerate((rows, columns)) if units > 1]
    size = np.mean([asked[:, axis] / ((rows, columns)[axis] - 1) for axis in used], axis=0)
    prices = (size + 1 / np.floor(1 / np.maximum(largest, 1e-9))) / 2
    idle = rows * columns - 1
    for _ in range(AGREEMENTS):
        worth = online_knapsack_values(asked, prices, shares, OFFERS, rows, columns)
        drop = worth[idle] - worth[idle - asked[:, 0] * columns - asked[:, 1]]
        prices = (prices + drop * (shares @ size) / max(shares @ drop, 1e-9)) / 2
    table: Float64 = online_knapsack_values(asked, prices, shares, OFFERS, rows, columns)
    table *= WHOLE / max(float(table[idle]), 1e-9)
    return table


def served_tables(figures: MixFigures) -> tuple[Float64, Float64]:
    """Return tables of the share of a node's value that its CPU and its memory can serve.

    The jobs of the mix need different amounts of CPU. Let the share of future jobs of kind i be distributed uniformly
    between 0 and 1. Then r times the CPU that these jobs alone would need serves E min(r / share, 1) = r (1 - ln r) of
    the value.

    Returns
    -------
    tuple of arrays
        Tables, shape (2 * sizes, STEPS), CPU and memory in turn; and their steps per thousandth of a CPU core and per
        MiB for each thousandth of value, shape (2, sizes).
    """
    sizes = len(figures.cell_memory)
    tables, steps = np.ones((2 * sizes, STEPS)), np.zeros((2, sizes))
    for size in range(sizes):
        largest = np.maximum(np.maximum(figures.cell_memory[size], figures.cell_core[size]), 1)
        fits = largest <= FULL
        for row, asked in enumerate((figures.cpu, figures.memory)):
            needs = np.maximum(asked * (FULL // largest) / (WHOLE * np.maximum(figures.gpus, 1)), 1e-3)[fits]
            shares = figures.share[fits]
            if not len(needs):
                continue
            reach = min(needs.max(), ENOUGH * (shares * needs).sum() / shares.sum())
            steps[row, size] = (STEPS - 1) / reach
            ratio = np.clip(np.arange(STEPS)[None, :] / steps[row, size] / needs[:, None], 1e-12, 1.0)
            served = ratio * (1 - np.log(ratio))
            served[:, 0] = 0.0
            tables[2 * size + row] = shares @ served / shares.sum()
    return tables, steps


def hosting_table(figures: MixFigures, most: int) -> tuple[Int64, Float64]:
    """Return a table of the value of jobs with several devices that a node can host, each kind separately.

    Parameters
    ----------
    most
        Maximum number of devices of a node.

    Returns
    -------
    tuple of arrays
        Steps of CPU, shape (S,), and the table by kind and number of steps reached, and by number of idle devices,
        shape (kinds * (S + 1), most + 1).
    """
    work = np.minimum(np.maximum(figures.cell_memory, figures.cell_core).min(axis=0, initial=FULL), FULL)
    several = np.flatnonzero((figures.gpus > 1) & (figures.gpus <= most))
    steps = np.unique([times * figures.cpu[t] for t in several for times in range(1, most // figures.gpus[t] + 1)])
    steps = steps.astype(np.int64)
    table = np.zeros((len(figures.allowed), len(steps) + 1, most + 1))
    for t in several:
        brings = figures.share[t] * WHOLE / FULL * work[t] * figures.gpus[t]
        for times in range(1, most // figures.gpus[t] + 1):
            met = np.searchsorted(steps, times * figures.cpu[t], side="right")
            for kind in np.flatnonzero(figures.allowed[:, t]):
                table[kind, met:, times * figures.gpus[t] :] += brings
    return steps, table.reshape(-1, most + 1)


def bound_groups(figures: MixFigures) -> tuple[UInt8, Float64]:
    """Return the sets of kinds of nodes to which some jobs of the mix are restricted, and unions of two of them.

    Returns
    -------
    tuple of arrays
        Kinds in each set, shape (sets, kinds), and the share of the mix's GPU work that only this set can serve, shape
        (sets,).
    """
    kinds, usable = figures.allowed.shape[0], figures.allowed.any(axis=1)
    own = np.unique(figures.allowed.T, axis=0)
    narrow = [row for row in own if row.any() and not np.array_equal(row != 0, usable)]
    sets = {row.tobytes(): row for row in narrow}
    for one in narrow:
        for other in narrow:
            union = one | other
            if not np.array_equal(union != 0, usable):
                sets.setdefault(union.tobytes(), union)
    if not sets:
        return np.zeros((0, kinds), np.uint8), np.zeros(0)
    group = np.stack(list(sets.values()))
    work = (
        figures.share
        * figures.gpus
        * np.minimum(np.maximum(figures.cell_memory, figures.cell_core).min(axis=0, initial=FULL), FULL)
    )
    inside = (figures.allowed.T[None, :, :] <= group[:, None, :]).all(axis=2) & figures.allowed.any(axis=0)
    return np.ascontiguousarray(group), inside @ (work / max(work.sum(), 1e-9))
