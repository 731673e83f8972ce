"""What a node is worth to a job mix: the tables behind Seaway's own policy.

Jobs of one device are priced by how much of a device they cost when the mix is packed as tightly as
patterns allow (the dual values of a cutting-stock programme, in memory and cores at once); what is free
on a device is worth the best filling at those prices.

References
----------
Gilmore, Gomory: A Linear Programming Approach to the Cutting-Stock Problem. Operations Research 9(6),
1961, doi:10.1287/opre.9.6.849.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from seaway.domain.errors import InvariantError
from seaway.domain.job import Job
from seaway.scheduling.columns import (
    CELLS,
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPU_MEMORY,
    DEMAND_GPU_PERCENT,
    DEMAND_GPUS,
    DEMAND_MASK,
    DEMAND_MEMORY,
    DEVICE_CORE,
    DEVICE_MEMORY,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.kernels.knapsack import fill_cells, filling_of_cells, own_fillings
from seaway.scheduling.mix import Typical, typical_jobs
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.state import Float64, Int32, Int64, UInt8

FULL = CELLS - 1
WHOLE = 1000.0
"""Worth of an idle device."""

MOST_TYPES = 256
"""Kinds of job that tables are made from; of more, an even sample."""

OWN_SHARE = 0.1
"""Share of a device's worth that counts fillings by one kind of job alone. It puts an order into
fillings of equal price; 0.05 to 0.15 gives the same figures."""

STEPS = 512
"""Steps of the tables of how much of a worth is served."""

ENOUGH = 16.0
"""Multiple of the mean need up to which those tables reach; beyond, all is served."""

HOSTING_SHARE = 0.8
"""Weight of what the next job of several devices would bring; 0.4 to 1.2 gives the same figures."""

IMPROVES = 1e-6


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
        Which kinds of node each may use by its rules, shape (kinds, T).
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
    lines = [snapshot.demands.line(each.demand) for each in typical]
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
        allowed = (demands.node_ok[masks].T & demands.device_ok[masks][:, first].T) * has_device[:, None]
        allowed = allowed.astype(np.uint8)
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


def _sample(typical: list[Typical]) -> list[Typical]:
    """Keep an even sample of too many kinds of job, most frequent first."""
    step = -(-len(typical) // MOST_TYPES)
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
        line = np.arange(CELLS)
        return (np.minimum(line[:, None], line[None, :]) * (WHOLE / FULL)).reshape(-1)
    asked, inverse = np.unique(np.stack([memory[fits], core[fits]], axis=1), axis=0, return_inverse=True)
    devices = np.bincount(inverse.reshape(-1), figures.share[fits] * figures.gpus[fits]).astype(np.float64)
    prices = cutting_stock_prices(asked, devices)
    filled, _ = fill_cells(asked, prices, CELLS)
    best = filled * (WHOLE / max(filled[-1], 1e-9))
    shares = np.bincount(inverse.reshape(-1), figures.share[fits])
    worth: Float64 = (1 - OWN_SHARE) * best + OWN_SHARE * own_fillings(asked, shares / shares.sum(), CELLS)
    return worth


def cutting_stock_prices(asked: Int64, devices: Float64) -> Float64:
    """Price pieces by the devices they cost when all are cut with the fewest devices.

    Parameters
    ----------
    asked
        Hundredths of memory and cores that each piece takes, shape (I, 2).
    devices
        How many of each are wanted, shape (I,).

    Returns
    -------
    Float64
        Devices that one more of each piece costs, shape (I,).
    """
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    for wanted in devices:
        solver.addRow(float(wanted), highspy.kHighsInf, 0, [], [])
    for i, piece in enumerate(asked):
        solver.addCol(1.0, 0.0, highspy.kHighsInf, 1, [i], [float(FULL // max(int(piece.max()), 1))])
    while True:
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise InvariantError(f"the cutting-stock programme has no optimum: {solver.getModelStatus()}")
        prices: Float64 = np.maximum(np.array(solver.getSolution().row_dual, np.float64), 0.0)
        filled, last = fill_cells(asked, prices, CELLS)
        if filled[-1] <= 1 + IMPROVES:
            return prices
        counts = filling_of_cells(asked, last, CELLS)
        used = np.flatnonzero(counts)
        solver.addCol(1.0, 0.0, highspy.kHighsInf, len(used), used.astype(np.int32), counts[used].astype(np.float64))


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
    """Table what the next job of several devices would bring to a node.

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
    several = np.flatnonzero((figures.gpus > 1) & (figures.gpus <= most))
    steps = np.unique(figures.cpu[several])
    table = np.zeros((len(figures.allowed), len(steps) + 1, most + 1))
    work = np.minimum(np.maximum(figures.cell_memory, figures.cell_core).min(axis=0, initial=FULL), FULL)
    for t in several:
        met = np.searchsorted(steps, figures.cpu[t], side="right")
        brings = HOSTING_SHARE * figures.share[t] * WHOLE / FULL * work[t] * figures.gpus[t]
        for kind in np.flatnonzero(figures.allowed[:, t]):
            table[kind, met:, figures.gpus[t] :] += brings
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
