"""Allocations of jobs in a snapshot, independent of the plans that made them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seaway.domain.job import Job
from seaway.domain.network import NO_NEED
from seaway.domain.placement import DeviceSlice, Placement
from seaway.scheduling.arrays import Int32, Int64
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    DEMAND_BANDWIDTH,
    DEMAND_GATEWAY,
    NODE_CLUSTER,
    PLAN_BANDWIDTH,
    PLAN_DEMAND,
    PLAN_JOB,
    PLAN_NODE,
    PLAN_PODS,
    PLAN_REPLICA,
    PLAN_REPLICA_BANDWIDTH,
    PLAN_RING_TO,
    PLAN_ROWS,
    PLAN_SLICE_END,
    PLAN_SLICE_FIRST,
    SLICE_CORE,
    SLICE_DEVICE,
    SLICE_MEMORY,
    SLICE_MIG,
    SLICE_ROWS,
    SLICE_START,
)
from seaway.scheduling.kernels.allocate import restore_rows
from seaway.scheduling.plan import Plan
from seaway.scheduling.snapshot.encode import smallest_first
from seaway.scheduling.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Allocation:
    """Allocation of a job.

    Attributes
    ----------
    decisions
        One row per replica, shape (R, PLAN_ROWS).
    slices
        Slices of devices, shape (S, SLICE_ROWS).
    """

    decisions: Int64
    slices: Int32

    @property
    def holds_any(self) -> bool:
        """True if it holds resources."""
        return bool((self.decisions[:, PLAN_NODE] >= 0).any())

    @property
    def nodes(self) -> tuple[int, ...]:
        """Numbers of its nodes in the snapshot, each once."""
        return tuple({int(n) for n in self.decisions[:, PLAN_NODE] if n >= 0})

    def part(self, replicas: Collection[int], *, reserves: bool = False) -> Allocation:
        """Return a copy of the rows of some replicas. Bandwidth is reserved for all replicas, and is left out.

        Parameters
        ----------
        reserves
            Whether to include the bandwidth of these rows.
        """
        rows = self.decisions[np.isin(self.decisions[:, PLAN_REPLICA], list(replicas))].copy()
        bounds = rows[:, [PLAN_SLICE_FIRST, PLAN_SLICE_END]].tolist()
        slices = [self.slices[first:end] for first, end in bounds]
        ends = np.cumsum([0, *map(len, slices)])
        rows[:, PLAN_SLICE_FIRST], rows[:, PLAN_SLICE_END] = ends[:-1], ends[1:]
        if not reserves:
            rows[:, [PLAN_BANDWIDTH, PLAN_REPLICA_BANDWIDTH]] = 0
        return Allocation(rows, np.concatenate([*slices, self.slices[:0]]))

    def split(self) -> Mapping[int, Allocation]:
        """Return each replica apart, as `part` does for one of them, in linear time."""
        found = dict[int, Allocation]()
        for at, (replica, first, end) in enumerate(
            self.decisions[:, [PLAN_REPLICA, PLAN_SLICE_FIRST, PLAN_SLICE_END]].tolist()
        ):
            row = self.decisions[at : at + 1].copy()
            row[0, [PLAN_SLICE_FIRST, PLAN_SLICE_END, PLAN_BANDWIDTH, PLAN_REPLICA_BANDWIDTH]] = 0, end - first, 0, 0
            found[replica] = Allocation(row, self.slices[first:end].copy())
        return found

    def copy(self) -> Allocation:
        """Return a copy that can be released on a copy of the snapshot."""
        return Allocation(self.decisions.copy(), self.slices)

    def release(self, snapshot: Snapshot, rows: NDArray[np.intp] | None = None) -> None:
        """Release some rows, or all (None). A second release has no effect."""
        snapshot.release(self.decisions, self.slices, np.arange(len(self.decisions)) if rows is None else rows)

    def restore(self, snapshot: Snapshot) -> None:
        """Allocate the resources of all placed rows, whether or not they are free: the inverse of `release`."""
        restore_rows(snapshot.arrays, snapshot.demands.arrays, self.decisions, self.slices)


def join(allocations: Iterable[Allocation]) -> tuple[Allocation, Int64]:
    """Join the allocations of several jobs, which can then be released in one call.

    Returns
    -------
    tuple
        The joined allocation, and the first row of each job in it with the number of rows at the end, shape (J + 1,).
    """
    parts = [*allocations]
    rows = np.cumsum([0, *(len(each.decisions) for each in parts)])
    offsets = np.cumsum([0, *(len(each.slices) for each in parts)])
    decisions = np.concatenate([np.empty((0, PLAN_ROWS), np.int64), *(each.decisions for each in parts)])
    of_row = np.repeat(np.arange(len(parts)), np.diff(rows))
    decisions[:, PLAN_JOB] = of_row  # replicas of one job share bandwidth
    decisions[:, [PLAN_SLICE_FIRST, PLAN_SLICE_END]] += offsets[of_row, None]
    slices = np.concatenate([np.empty((0, SLICE_ROWS), np.int32), *(each.slices for each in parts)])
    return Allocation(decisions, slices), rows


def allocations_of(plan: Plan) -> Iterator[Allocation]:
    """Yield the allocation of each job of a committed plan, in the order of its queue."""
    jobs = np.arange(len(plan.queue) + 1)
    bounds = np.searchsorted(plan.decisions[:, PLAN_JOB], jobs)
    for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield _cut(plan, first, end)


def _cut(plan: Plan, first: int, end: int) -> Allocation:
    begin, stop = int(plan.decisions[first, PLAN_SLICE_FIRST]), int(plan.decisions[end - 1, PLAN_SLICE_END])
    return _part(plan.decisions, plan.slices, first, begin, end, stop)


def allocate(snapshot: Snapshot, job: Job, placements: Sequence[Placement]) -> Allocation:
    """Allocate the resources of existing placements of a job, whether or not they fit.

    Unknown nodes, devices and gateways, and completed replicas, are ignored.
    """
    return allocate_all(snapshot, ((job, placements, 1),))[0]


def allocate_all(snapshot: Snapshot, held: Iterable[tuple[Job, Sequence[Placement], int]]) -> list[Allocation]:
    """Allocate several jobs like `allocate`, in about half the time for a thousand jobs.

    Parameters
    ----------
    held
        Jobs, their placements, and the number of pods per placement.
    """
    lines: list[list[int]] = []
    taken: list[tuple[int, int, int, int, int]] = []
    ends = [(0, 0)]
    gateways = {"", *(gateway.name for gateway in snapshot.fleet.gateways)}
    for number, (job, placements, pods) in enumerate(held):
        known = job.demand.gateway in gateways
        demand = snapshot.demands.index(job.demand if known else replace(job.demand, gateway="", network=NO_NEED))
        _write(snapshot, demand, placements, pods, lines, taken)
        for line in lines[ends[-1][0] :]:
            line[PLAN_JOB], line[PLAN_REPLICA_BANDWIDTH] = number, job.between_replicas.min_bandwidth_mbps
        if job.ring and len(lines) - ends[-1][0] > 1:
            _close_ring(snapshot, job, lines[ends[-1][0] :])
        ends.append((len(lines), len(taken)))
    plan = np.array(lines, np.int64).reshape(-1, PLAN_ROWS)
    slices = np.array(taken, np.int32).reshape(-1, SLICE_ROWS)
    restore_rows(snapshot.arrays, snapshot.demands.arrays, plan, slices)
    plan[:, PLAN_JOB] = 0  # each allocation has one job
    return [_part(plan, slices, *begin, *end) for begin, end in pairwise(ends)]


def _close_ring(snapshot: Snapshot, job: Job, lines: list[list[int]]) -> None:
    """Note in the row of each replica of a ring the gateway of the next one."""
    arrays = snapshot.arrays
    gateways = {
        line[PLAN_REPLICA]: int(arrays.clusters[CLUSTER_GATEWAY, arrays.nodes[NODE_CLUSTER, line[PLAN_NODE]]])
        for line in lines
        if line[PLAN_NODE] >= 0
    }
    for line in lines:
        following = gateways.get((line[PLAN_REPLICA] + 1) % job.replicas, -1)
        line[PLAN_RING_TO] = following + 1 if following >= 0 else -1


def _write(
    snapshot: Snapshot,
    demand: int,
    placements: Sequence[Placement],
    pods: int,
    lines: list[list[int]],
    taken: list[tuple[int, int, int, int, int]],
) -> None:
    """Append the rows of a job's placements to `lines`, and those of its slices to `taken`."""
    paid: set[int] = set()
    for placement in placements:
        n = -1 if placement.completed else snapshot.node_index.get((placement.cluster, placement.node), -1)
        line = [0] * PLAN_ROWS
        line[PLAN_REPLICA], line[PLAN_DEMAND], line[PLAN_NODE] = placement.replica, demand, n
        line[PLAN_SLICE_FIRST], line[PLAN_PODS] = len(taken), pods
        if n >= 0:
            taken += _slices(snapshot, placement.slices)
            line[PLAN_BANDWIDTH] = _bandwidth(snapshot, demand, n, paid)
        line[PLAN_SLICE_END] = len(taken)
        lines.append(line)


def _part(plan: Int64, slices: Int32, first: int, begin: int, end: int, stop: int) -> Allocation:
    """Return some rows of a plan, and their slices, as an allocation."""
    lines = plan[first:end].copy()
    lines[:, PLAN_SLICE_FIRST : PLAN_SLICE_END + 1] -= begin
    return Allocation(lines, slices[begin:stop].copy())


def _slices(snapshot: Snapshot, slices: Sequence[DeviceSlice]) -> Iterator[tuple[int, int, int, int, int]]:
    """Encode slices as rows, in the order of `seaway.scheduling.columns`."""
    for each in slices:
        d = snapshot.device_index.get(each.uuid)
        if d is None:
            continue
        line = [0] * SLICE_ROWS
        line[SLICE_DEVICE], line[SLICE_MEMORY], line[SLICE_CORE] = d, each.memory_mib, each.core_milli
        line[SLICE_MIG], line[SLICE_START] = _mig_line(snapshot, d, each.mig_profile), each.mig_start
        yield line[0], line[1], line[2], line[3], line[4]


def _mig_line(snapshot: Snapshot, d: int, profile: str) -> int:
    """Return the row of a MIG profile of a device; -1 without one, or if the device no longer has the profile."""
    if not profile:
        return -1
    sizes = smallest_first(snapshot.devices[d])
    for at, size in enumerate(sizes):
        if size.name == profile:
            return int(snapshot.arrays.mig_first[snapshot.geometries[sizes]]) + at
    return -1


def _bandwidth(snapshot: Snapshot, demand: int, n: int, paid: set[int]) -> int:
    """Return the bandwidth that a replica on node `n` reserves. The first replica in a cluster reserves it for all."""
    amounts = snapshot.demands.arrays.amounts[demand]
    cluster = int(snapshot.arrays.nodes[NODE_CLUSTER, n])
    known = amounts[DEMAND_GATEWAY] >= 0 and snapshot.arrays.clusters[CLUSTER_GATEWAY, cluster] >= 0
    if not known or cluster in paid:
        return 0
    paid.add(cluster)
    return int(amounts[DEMAND_BANDWIDTH])
