"""Value of a node to a job mix: the tables of Seaway's own policy.

Free resources of a device are worth its expected earnings from the next jobs, each accepted or rejected, at consistent
prices. `docs/adr/0006-what-a-node-is-worth.md` has the formulae and results.

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
from seaway.scheduling.policies.job_mix import TypicalJob, typical_jobs
from seaway.scheduling.policies.seaway.knapsack import online_knapsack_values
from seaway.scheduling.snapshot.snapshot import Snapshot

FULL = CELLS - 1
WHOLE = 1000.0
"""Worth of an idle device."""

MAX_TYPES = 96
"""Kinds of job that tables are made from; of more, an even sample."""

OFFERS = 40
"""Jobs of the mix that a device's worth looks ahead to. 24 to 48 do about as well; above, mixes in which
every size is as frequent as any other suffer."""

AGREEMENTS = 10
"""Number of alternating computations of values and prices."""

COARSE = 2
"""Resolution, in hundredths, of the tables with separate memory and cores."""

STEPS = 512
"""Steps of the tables of how much of a worth is served."""

ENOUGH = 16.0
"""Multiple of the mean need up to which those tables reach; beyond, all is served."""


@dataclass(frozen=True, slots=True)
class MixFigures:
    """The kinds of GPU job of a mix, against one fleet.

    Attributes
    ----------
    share
        Share of the mix's GPU jobs, shape (T,); sums to 1.
    gpus, cpu, memory
        What they ask for, shape (T,).
    size
        Which size of device each node has, shape (N,).
    cell_memory, cell_core
        Hundredths of a device of each size that they ask for, shape (sizes, T); more than 100 where
        the device is too small.
    kind
        Which rules allow each node, shape (N,).
    allowed
        Which kinds of node each may use by its rules and its bounds on the network, shape (kinds, T).
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
    """Sort out the mix and the fleet; nodes are judged by their first device."""
    typical = _sample(typical_jobs([job for job in jobs if job.demand.request.gpus], share=1.0))
    lines = [snapshot.demands.index(each.demand) for each in typical]
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
    """Mark the clusters whose links are good enough for each demand, shape (C, T)."""
    network = amounts[:, DEMAND_NETWORK]
    good = demands.cluster_ok[np.maximum(network, 0)].T
    return np.where(network < 0, 1, good).astype(np.uint8)


def _sample(typical: list[TypicalJob]) -> list[TypicalJob]:
    """Keep an even sample of too many kinds of job, most frequent first."""
    step = -(-len(typical) // MAX_TYPES)
    return typical[:: max(step, 1)]


def _hundredths(amounts: Int64, column: int, totals: Int64) -> Int64:
    """Return what is asked of a device in hundredths of each total, shape (sizes, T), rounded up."""
    asked = -(-amounts[None, :, column] * FULL // totals[:, None])
    if column == DEMAND_GPU_MEMORY:
        asked = np.where(amounts[None, :, column] > 0, asked, amounts[None, :, DEMAND_GPU_PERCENT])
    return asked


def device_worths(figures: MixFigures) -> Float64:
    """Table what is free on a device is worth, shape (sizes, CELLS * CELLS), at most about 1,000."""
    tables = [
        _worth_of_size(figures, memory, core)
        for memory, core in zip(figures.cell_memory, figures.cell_core, strict=True)
    ]
    return np.array(tables, np.float64).reshape(-1, CELLS * CELLS)


def _worth_of_size(figures: MixFigures, memory: Int64, core: Int64) -> Float64:
    """Table the worth of each cell for one size of device."""
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
    """Work out what is free on a device is worth, at prices that agree with it.

    A device is worth what it earns from the next `OFFERS` jobs of the mix, each of which it may take or
    leave (the table may; the policy never declines). A job's price is what the worth of an idle device
    drops by when it comes; the two are worked out in turn.

    Parameters
    ----------
    asked
        Units of the first and of the second resource that each kind of job takes, shape (I, 2).
    shares
        How often each comes, shape (I,); sums to 1.
    rows, columns
        Units of an idle device, plus 1.

    Returns
    -------
    Float64
        Shape (rows * columns,), `WHOLE` when idle.
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
    """Table how much of a worth the CPU and the memory of its node can serve.

    Jobs of the mix need CPU in different measure. If a share of what comes, drawn evenly between
    none and all, is like kind i, then r times what it needs serves E min(r / share, 1) = r (1 - ln r)
    of it.

    Returns
    -------
    tuple of arrays
        The tables, shape (2 * sizes, STEPS), CPU and memory in turn, and their steps per CPU milli and
        MiB for each thousandth of worth, shape (2, sizes).
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
    """Table what jobs of several devices that a node could host would bring, each kind by itself.

    Parameters
    ----------
    most
        Devices of the largest node.

    Returns
    -------
    tuple of arrays
        The steps of CPU, shape (S,), and the table by kind and steps met, and number of idle devices,
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
    """Find the sets of kinds that some jobs of the mix are bound to, and unions of two of them.

    Returns
    -------
    tuple of arrays
        Which kinds are in each set, shape (sets, kinds), and the share of the mix's GPU work that only
        the set can serve, shape (sets,).
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
