"""Packings of jobs on a fleet, their state during a search, and the problem in plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from seaway.domain.errors import InvariantError
from seaway.domain.placement import Placement
from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.arrays import Float64, UInt8
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_GATEWAY,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_MEMORY,
    DEMAND_BANDWIDTH,
    DEMAND_CPU,
    DEMAND_EXCLUSIVE,
    DEMAND_GATEWAY,
    DEMAND_GPU_CORE,
    DEMAND_GPUS,
    DEMAND_GROUP,
    DEMAND_MEMORY,
    DEVICE_CORE,
    DEVICE_MEMORY,
    DEVICE_MIG,
    DEVICE_SLOTS,
    JOB_DEMAND,
    NODE_CLUSTER,
    NODE_CPU,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_MEMORY,
    NODE_PODS,
    PLAN_NODE,
    SLICE_DEVICE,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.allocate import restore_rows
from seaway.scheduling.kernels.candidates import fitting_nodes
from seaway.scheduling.kernels.fit import WHOLE_MILLI, core_needed, device_fits, memory_needed
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.snapshot.aggregates import asked_sums
from seaway.scheduling.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assignment of a job to a node and devices.

    Attributes
    ----------
    node
        Index of the node.
    devices
        Indices of the devices of which the job has a slice.
    """

    node: int
    devices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Packing:
    """Jobs that fit on a fleet at the same time.

    Attributes
    ----------
    placed
        Placements, in an order in which the engine accepts them.
    bound
        Upper bound of the number of jobs in any packing.
    """

    placed: tuple[Placement, ...]
    bound: int

    @property
    def count(self) -> int:
        """Number of placed jobs."""
        return len(self.placed)

    @property
    def proven(self) -> bool:
        """True if the packing is proven to be optimal."""
        return self.count >= self.bound


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a search.

    Attributes
    ----------
    count, bound
        Best values so far, see `Packing`.
    done
        Completed share of the effort, 0-1.
    """

    count: int
    bound: int
    done: float


Listener = Callable[[Progress], None]
"""Callback for the progress of a search."""


def replayed(instance: Instance, assignments: Mapping[int, Assignment], bound: int) -> Packing:
    """Allocate a packing on the engine, job after job, and return the result.

    Parameters
    ----------
    assignments
        Assignments by number of the job in the instance.

    Raises
    ------
    InvariantError
        When the engine rejects an assignment.
    """
    order = _order(instance)
    episode = Episode(replace(instance, jobs=tuple(instance.jobs[j] for j in order)), EpisodeOptions(offers=1))
    nodes = episode.snapshot.arrays.nodes
    for j in order:
        assignment = assignments.get(j)
        if assignment is None:
            episode.wait()
            continue
        devices = range(nodes[NODE_DEVICE_FIRST, assignment.node], nodes[NODE_DEVICE_END, assignment.node])
        if not episode.place_on_node(assignment.node, [d not in assignment.devices for d in devices]):
            raise InvariantError(f"job {instance.jobs[j].name!r} does not fit where it was packed")
    return Packing(tuple(episode.plan().placements()), bound)


def _order(instance: Instance) -> list[int]:
    """Sort jobs without a request for cores first, because a device without free cores does not accept them."""
    episode = Episode(instance)
    cores = episode.snapshot.demands.arrays.amounts[episode.queue.rows[:, JOB_DEMAND], DEMAND_GPU_CORE]
    return sorted(range(len(instance.jobs)), key=lambda j: bool(cores[j]))


POLICY = "bestfit"
"""Policy that places jobs during a search."""


class PackingState:
    """State of a search: a fleet with a part of the jobs.

    Parameters
    ----------
    instance
        Fleet, and jobs with one replica each.

    Attributes
    ----------
    snapshot, queue
        Present state of the fleet, and all jobs.
    shares
        Requests of each job as shares of the capacity of CPU, memory, device memory, device cores and bandwidth,
        shape (J, 5).

    Raises
    ------
    RejectedError
        As in `seaway.learning.episodes.episode.Episode`.
    """

    def __init__(self, instance: Instance) -> None:
        episode = Episode(instance)
        self.snapshot = episode.snapshot
        self.queue = episode.queue
        self.shares = self._shares()
        self._policy = make_policy(POLICY)
        self._allocations: dict[int, Allocation] = {}

    @property
    def placed(self) -> list[int]:
        """Numbers of the placed jobs."""
        return list(self._allocations)

    @property
    def waiting(self) -> list[int]:
        """Numbers of the other jobs, in order."""
        return [j for j in range(len(self.queue)) if j not in self._allocations]

    def add(self, order: Sequence[int]) -> list[int]:
        """Try to place jobs in order, and return those that were placed."""
        plan = decide(self.snapshot, self.queue.take(np.array(order, np.int64)), self._policy)
        new = {j: allocation for j, allocation in zip(order, allocations_of(plan), strict=True) if allocation.holds_any}
        self._allocations.update(new)
        return list(new)

    def remove(self, jobs: Iterable[int]) -> dict[int, Allocation]:
        """Remove jobs, and return their allocations for `restore`."""
        removed = {}
        for j in jobs:
            allocation = self._allocations.pop(j)
            removed[j] = allocation.copy()
            allocation.release(self.snapshot)
        return removed

    def restore(self, removed: dict[int, Allocation]) -> None:
        """Restore removed jobs. Their resources must be free."""
        for allocation in removed.values():
            restore_rows(self.snapshot.arrays, self.snapshot.demands.arrays, allocation.decisions, allocation.slices)
        self._allocations.update(removed)

    def allocations(self) -> dict[int, Allocation]:
        """Return copies of the allocations of all placed jobs."""
        return {j: allocation.copy() for j, allocation in self._allocations.items()}

    def jobs_on(self, nodes: Iterable[int]) -> list[int]:
        """Return the placed jobs on some nodes."""
        wanted = set(nodes)
        return [j for j, allocation in self._allocations.items() if int(allocation.decisions[0, PLAN_NODE]) in wanted]

    def assignments(self) -> dict[int, Assignment]:
        """Return the assignments of all placed jobs."""
        return {
            j: Assignment(int(allocation.decisions[0, PLAN_NODE]), tuple(allocation.slices[:, SLICE_DEVICE].tolist()))
            for j, allocation in self._allocations.items()
        }

    def _shares(self) -> Float64:
        snapshot, lines = self.snapshot, self.queue.rows[:, JOB_DEMAND]
        rows = [CLUSTER_CPU, CLUSTER_MEMORY, CLUSTER_GPU_MEMORY, CLUSTER_GPU_CORE]
        capacity = [*snapshot.arrays.clusters[rows].sum(axis=1), snapshot.arrays.bandwidth.sum()]
        mbps = snapshot.demands.arrays.amounts[lines, DEMAND_BANDWIDTH]
        requested = np.array([asked_sums(snapshot, int(k)).mean(axis=1) for k in lines])
        shares: Float64 = np.column_stack([requested, mbps]) / np.maximum(capacity, 1)
        return shares


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """Resources of a slice of a device, or of the whole device.

    Attributes
    ----------
    memory_mib, core_milli, slots
        Memory, cores, and number of slice slots.
    """

    memory_mib: int
    core_milli: int
    slots: int


class PackingProblem:
    """Packing problem in plain numbers. Jobs with equal demands are one kind.

    Parameters
    ----------
    snapshot
        Fleet without allocations.
    queue
        Jobs with one replica each.

    Attributes
    ----------
    kinds
        Indices of demands in ``snapshot.demands``, one per kind.
    jobs
        Numbers of the jobs of each kind, in order of arrival.
    nodes
        Feasible nodes of each kind on the empty fleet.
    shares
        Resources of a slice, by kind and feasible device.
    bandwidth, gateways
        Bandwidth of links and gateways, as in `seaway.scheduling.arrays.FleetArrays`.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue) -> None:
        self._snapshot = snapshot
        self._fleet, self._amounts = snapshot.arrays, snapshot.demands.arrays.amounts
        self.bandwidth, self.gateways = self._fleet.bandwidth.copy(), self._fleet.gateways.copy()
        self.jobs: dict[int, list[int]] = {}
        for j, k in enumerate(queue.rows[:, JOB_DEMAND].tolist()):
            self.jobs.setdefault(k, []).append(j)
        self.kinds = list(self.jobs)
        self.nodes = {k: self._nodes_of(k) for k in self.kinds}
        self.shares = {
            (k, d): self._share(k, d)
            for k in self.kinds
            if self.gpus(k)
            for n in self.nodes[k]
            for d in self.devices(n)
            if device_fits(self._fleet, snapshot.demands.arrays, k, d)
        }

    def gpus(self, k: int) -> int:
        """Return the number of devices of a job."""
        return int(self._amounts[k, DEMAND_GPUS])

    def cpu_memory(self, k: int) -> tuple[int, int]:
        """Return the CPU, thousandths of a core, and the memory, MiB, of a job."""
        return int(self._amounts[k, DEMAND_CPU]), int(self._amounts[k, DEMAND_MEMORY])

    def link(self, k: int, n: int) -> tuple[int, int, int]:
        """Return the link of a job on a node: source and target gateways, and Mbit/s; 0 Mbit/s for no link."""
        source, mbps = int(self._amounts[k, DEMAND_GATEWAY]), int(self._amounts[k, DEMAND_BANDWIDTH])
        target = int(self._fleet.clusters[CLUSTER_GATEWAY, self.cluster(n)])
        return source, target, mbps if source >= 0 and target >= 0 and source != target else 0

    def cluster(self, n: int) -> int:
        """Return the cluster of a node."""
        return int(self._fleet.nodes[NODE_CLUSTER, n])

    def devices(self, n: int) -> range:
        """Return the devices of a node."""
        return range(self._fleet.nodes[NODE_DEVICE_FIRST, n], self._fleet.nodes[NODE_DEVICE_END, n])

    def capacity(self, n: int) -> tuple[int, int, int]:
        """Return the CPU, thousandths of a core, the memory, MiB, and the pods of a node."""
        cpu, memory, pods = self._fleet.nodes[[NODE_CPU, NODE_MEMORY, NODE_PODS], n].tolist()
        return cpu, memory, pods

    def device_capacity(self, d: int) -> DeviceShare:
        """Return the resources of a device."""
        return DeviceShare(*self._fleet.devices[[DEVICE_MEMORY, DEVICE_CORE, DEVICE_SLOTS], d].tolist())

    @property
    def additive(self) -> bool:
        """True if jobs fit together whenever the sums of their requests fit.

        This is not so with MIG devices, jobs that require an idle device, and jobs that require devices of one NUMA
        node.
        """
        rules = self._amounts[self.kinds][:, [DEMAND_EXCLUSIVE, DEMAND_GROUP]]
        used = sorted({d for _, d in self.shares})
        return not rules.any() and bool((self._fleet.devices[DEVICE_MIG, used] < 0).all())

    def _nodes_of(self, k: int) -> list[int]:
        fits: UInt8 = np.zeros(len(self._snapshot.nodes), np.uint8)
        fitting_nodes(self._fleet, self._snapshot.demands.arrays, k, fits)
        nodes: list[int] = np.flatnonzero(fits).tolist()
        return nodes

    def _share(self, k: int, d: int) -> DeviceShare:
        demands = self._snapshot.demands.arrays
        memory, core = memory_needed(self._fleet, demands, k, d), core_needed(self._fleet, demands, k, d)
        capacity = self.device_capacity(d)
        whole_device = core == WHOLE_MILLI == capacity.core_milli
        return DeviceShare(int(memory), int(core), capacity.slots if whole_device else 1)
