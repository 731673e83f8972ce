"""Upper bound of the allocation of a trace with full knowledge, from a fluid relaxation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from seaway.domain.cluster import Fleet
from seaway.domain.errors import InvariantError
from seaway.domain.job import Job
from seaway.scheduling.arrays import Float64, Int64
from seaway.scheduling.columns import (
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPUS,
    DEVICE_CORE,
    NODE_CPU,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.kernels.fit import WHOLE_MILLI
from seaway.scheduling.policies.job_mix import NodeKinds, TypicalJob, node_kinds, typical_jobs
from seaway.scheduling.policies.seaway.knapsack import fill_values, filling
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.replay import arrivals_until_requested

IMPROVES = 1e-6
"""Minimum reduced cost, relative to the value of a device, of a pattern that is added to the programme."""


@dataclass(frozen=True, slots=True)
class FluidProblem:
    """Jobs and nodes of the fluid problem.

    Attributes
    ----------
    cpu, gpus, count
        CPU (thousandths of a core) and devices that a job of each kind requests, and number of jobs, shape (I,).
    core
        Cores of each device that a job of each kind requests, thousandths of a device, shape (I,).
    share
        The same as a share of a device of each kind of node, thousandths, at least 1;
        `seaway.scheduling.policies.job_mix.UNFIT` if the job is not allowed there; shape (kinds, I).
    group_kind, group_devices, group_cpu, group_nodes
        Groups of equal nodes: kind, devices and CPU (thousandths of a core) of one node, and number of nodes, shape
        (G,).
    """

    cpu: Int64
    gpus: Int64
    core: Int64
    count: Float64
    share: Int64
    group_kind: Int64
    group_devices: Int64
    group_cpu: Int64
    group_nodes: Int64

    def may_use(self, job: int, group: int) -> bool:
        """Report whether a job fits an empty node of a group."""
        return bool(
            self.share[self.group_kind[group], job] <= WHOLE_MILLI
            and self.gpus[job] <= self.group_devices[group]
            and self.cpu[job] <= self.group_cpu[group]
        )

    def work(self, job: int) -> int:
        """Return the cores that a job requests on all its devices, thousandths of a device."""
        return int(self.core[job] * self.gpus[job])


@dataclass(frozen=True, slots=True)
class FluidSolution:
    """Solution of the fluid problem.

    Attributes
    ----------
    value
        GPU cores in use at the optimum, thousandths of a device.
    job_price
        Gain from one more job of each kind, shape (I,).
    cpu_price, device_price
        Gain from one more thousandth of a CPU core and one more device of each group, shape (G,).
    """

    value: float
    job_price: Float64
    cpu_price: Float64
    device_price: Float64


def fluid_problem(snapshot: Snapshot, jobs: list[TypicalJob], scale: float = 1.0) -> FluidProblem:
    """Return the fluid problem for kinds of jobs on an empty fleet, with their counts times `scale`."""
    kinds: NodeKinds = node_kinds(snapshot, jobs)
    amounts = snapshot.demands.arrays.amounts[[snapshot.demands.index(job.demand) for job in jobs]]
    nodes = snapshot.arrays.nodes
    devices = nodes[NODE_DEVICE_END] - nodes[NODE_DEVICE_FIRST]
    shape = np.stack([kinds.kind, devices, nodes[NODE_CPU]], axis=1)[devices > 0].astype(np.int64)
    groups, counts = np.unique(shape.reshape(-1, 3), axis=0, return_counts=True)
    return FluidProblem(
        cpu=amounts[:, DEMAND_CPU],
        gpus=amounts[:, DEMAND_GPUS],
        core=amounts[:, DEMAND_GPU_CORE],
        count=np.array([job.count for job in jobs], np.float64) * scale,
        share=_core_shares(snapshot, kinds, amounts),
        group_kind=groups[:, 0],
        group_devices=groups[:, 1],
        group_cpu=groups[:, 2],
        group_nodes=counts.astype(np.int64),
    )


def _core_shares(snapshot: Snapshot, kinds: NodeKinds, amounts: Int64) -> Int64:
    """Return the share of a device of each kind of node that each job requests, thousandths, shape (kinds, I)."""
    devices = snapshot.arrays.devices[DEVICE_CORE].astype(np.int64)
    if not len(devices):
        return kinds.share
    first = np.minimum(snapshot.arrays.nodes[NODE_DEVICE_FIRST, kinds.example], len(devices) - 1)
    total = np.maximum(devices[first], 1)[:, None]
    asked = np.maximum(-(-amounts[None, :, DEMAND_GPU_CORE] * WHOLE_MILLI // total), 1)
    shares: Int64 = np.where(kinds.share <= WHOLE_MILLI, asked, kinds.share)
    return shares


class _Programme:
    """Linear programme, with the meaning of its rows."""

    def __init__(self, problem: FluidProblem) -> None:
        self.problem = problem
        self.jobs = [int(i) for i in np.flatnonzero((problem.gpus > 0) & (problem.count > 0))]
        self.groups = len(problem.group_nodes)
        self.sizes = [self._sizes_of(g) for g in range(self.groups)]
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("threads", 1)
        self.solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.cpu_row = len(self.jobs)
        self.device_row = self.cpu_row + self.groups
        self.size_row = (
            self.device_row
            + self.groups
            + np.concatenate(([0], np.cumsum([len(sizes) for sizes in self.sizes]))).astype(int)
        )
        self.patterns: set[tuple[int, ...]] = set()
        self._add_rows()
        self._add_jobs()

    def _shares_device(self, job: int, group: int) -> bool:
        p = self.problem
        return bool(p.share[p.group_kind[group], job] < WHOLE_MILLI)

    def _sizes_of(self, group: int) -> Int64:
        p = self.problem
        sharing = [i for i in self.jobs if p.may_use(i, group) and self._shares_device(i, group)]
        return np.unique(p.share[p.group_kind[group], sharing])

    def _add_rows(self) -> None:
        p, least = self.problem, -highspy.kHighsInf
        for i in self.jobs:
            self.solver.addRow(least, p.count[i], 0, [], [])
        for g in range(self.groups):
            self.solver.addRow(least, float(p.group_nodes[g] * p.group_cpu[g]), 0, [], [])
        for g in range(self.groups):
            self.solver.addRow(least, float(p.group_nodes[g] * p.group_devices[g]), 0, [], [])
        for sizes in self.sizes:
            for _ in sizes:
                self.solver.addRow(least, 0.0, 0, [], [])

    def _add_jobs(self) -> None:
        p = self.problem
        for row, i in enumerate(self.jobs):
            for g in range(self.groups):
                if not p.may_use(i, g):
                    continue
                place, amount = self.device_row + g, float(p.gpus[i])
                if self._shares_device(i, g):
                    share = p.share[p.group_kind[g], i]
                    place = int(self.size_row[g] + np.searchsorted(self.sizes[g], share))
                rows, amounts = [row, self.cpu_row + g, place], [1.0, float(p.cpu[i]), amount]
                self.solver.addCol(float(p.work(i)), 0.0, highspy.kHighsInf, 3, rows, amounts)

    def add_pattern(self, group: int, counts: Int64) -> bool:
        """Add a pattern of slices for the devices of a group. Return whether it is new."""
        key = (group, *(int(count) for count in counts))
        if key in self.patterns:
            return False
        self.patterns.add(key)
        used = np.flatnonzero(counts)
        rows = [self.device_row + group, *(int(self.size_row[group] + s) for s in used)]
        amounts = [1.0, *(-float(counts[s]) for s in used)]
        self.solver.addCol(0.0, 0.0, highspy.kHighsInf, len(rows), rows, amounts)
        return True

    def add_better_patterns(self, duals: Float64) -> bool:
        """Add the best pattern of each group at the current prices, if it improves the objective."""
        added = False
        for g, sizes in enumerate(self.sizes):
            if not len(sizes):
                continue
            values = np.maximum(duals[self.size_row[g] : self.size_row[g] + len(sizes)], 0.0)
            worth, last = fill_values(sizes, values, WHOLE_MILLI)
            if worth[-1] > duals[self.device_row + g] + IMPROVES * WHOLE_MILLI:
                added |= self.add_pattern(g, filling(sizes, last, WHOLE_MILLI))
        return added


def solve_fluid(problem: FluidProblem) -> FluidSolution:
    """Solve the fluid problem.

    Raises
    ------
    InvariantError
        If the solver finds no optimum, although the problem always has one.
    """
    programme = _Programme(problem)
    for g, sizes in enumerate(programme.sizes):
        for s, size in enumerate(sizes):
            alone = np.zeros(len(sizes), np.int64)
            alone[s] = WHOLE_MILLI // size
            programme.add_pattern(g, alone)
    solver = programme.solver
    while True:
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kModelEmpty:  # no job fits any node
            free = np.zeros(programme.groups)
            return FluidSolution(0.0, np.zeros(len(problem.cpu)), free, free)
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise InvariantError(f"the fluid problem has no optimum: {solver.getModelStatus()}")
        duals = np.array(solver.getSolution().row_dual)
        if not programme.add_better_patterns(duals):
            break
    prices = np.zeros(len(problem.cpu))
    prices[programme.jobs] = duals[: len(programme.jobs)]
    return FluidSolution(
        value=float(solver.getInfo().objective_function_value),
        job_price=prices,
        cpu_price=duals[programme.cpu_row : programme.device_row],
        device_price=duals[programme.device_row : programme.device_row + programme.groups],
    )


def bound_pct(fleet: Fleet, jobs: Sequence[Job]) -> float | None:
    """Return an upper bound of the GPU cores that any policy can allocate when 100% are requested.

    The relaxation pools the CPU of equal nodes, ignores their memory and jobs without a GPU, and can reject jobs. The
    bound may therefore be unreachable.

    Parameters
    ----------
    fleet
        Fleet without allocations.
    jobs
        Jobs in order of arrival; those after 100% do not count.

    Returns
    -------
    float or None
        Percentage of the fleet's GPU cores; None for a fleet without GPU cores.
    """
    capacity = sum(device.core_milli for device in fleet.devices)
    if not capacity:
        return None
    kinds = typical_jobs(
        [job for job in arrivals_until_requested(fleet, jobs, 1.0) if job.demand.request.gpus], share=1.0
    )
    return 100 * solve_fluid(fluid_problem(Snapshot(fleet), kinds)).value / capacity if kinds else 0.0
