"""Packings: which jobs are in, and where."""

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
class Seat:
    """Place of a job.

    Attributes
    ----------
    node
        Index of the node.
    devices
        Indices of its devices that the job has a slice of.
    """

    node: int
    devices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Packing:
    """Jobs that a fleet holds at once.

    Attributes
    ----------
    placed
        Where each of them is, in an order in which the engine takes them one after the other.
    bound
        No packing holds more jobs than this.
    """

    placed: tuple[Placement, ...]
    bound: int

    @property
    def count(self) -> int:
        """Number of placed jobs."""
        return len(self.placed)

    @property
    def proven(self) -> bool:
        """True if no packing holds more."""
        return self.count >= self.bound


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a search.

    Attributes
    ----------
    count, bound
        As in `Packing`, so far.
    done
        Share of the effort that is spent, 0-1.
    """

    count: int
    bound: int
    done: float


Listener = Callable[[Step], None]
"""Called regularly with the progress of the search."""


def packed(instance: Instance, seats: Mapping[int, Seat], bound: int) -> Packing:
    """Book a packing on the engine, job after job, and return it as it was booked.

    Parameters
    ----------
    seats
        Where each job is, by its number in the instance.

    Raises
    ------
    InvariantError
        When the engine does not take a job where it is meant to be.
    """
    order = _order(instance)
    episode = Episode(replace(instance, jobs=tuple(instance.jobs[j] for j in order)), EpisodeOptions(offers=1))
    nodes = episode.snapshot.arrays.nodes
    for j in order:
        seat = seats.get(j)
        if seat is None:
            episode.wait()
            continue
        devices = range(nodes[NODE_DEVICE_FIRST, seat.node], nodes[NODE_DEVICE_END, seat.node])
        if not episode.place_on_node(seat.node, [d not in seat.devices for d in devices]):
            raise InvariantError(f"job {instance.jobs[j].name!r} does not fit where it was packed")
    return Packing(tuple(episode.plan().placements()), bound)


def _order(instance: Instance) -> list[int]:
    """Put jobs that ask for no cores first: a device whose cores are all given out takes none of them any more."""
    episode = Episode(instance)
    cores = episode.snapshot.demands.arrays.amounts[episode.queue.rows[:, JOB_DEMAND], DEMAND_GPU_CORE]
    return sorted(range(len(instance.jobs)), key=lambda j: bool(cores[j]))


TIGHTEST = "bestfit"
"""The policy that says where a job goes that is tried: where least is left."""


class PackingState:
    """A fleet that jobs are packed into.

    Parameters
    ----------
    instance
        Fleet and jobs; of one replica each.

    Attributes
    ----------
    snapshot, queue
        The fleet as it is now, and its jobs.
    shares
        What each job asks for of all that there is of CPU, memory, device memory, device cores and bandwidth,
        shape (J, 5).

    Raises
    ------
    RejectedError
        As `seaway.learning.episodes.episode.Episode` does.
    """

    def __init__(self, instance: Instance) -> None:
        episode = Episode(instance)
        self.snapshot = episode.snapshot
        self.queue = episode.queue
        self.shares = self._shares()
        self._policy = make_policy(TIGHTEST)
        self._held: dict[int, Allocation] = {}

    @property
    def held(self) -> list[int]:
        """Numbers of the jobs that are in."""
        return list(self._held)

    @property
    def waiting(self) -> list[int]:
        """Numbers of the jobs that are not, in order."""
        return [j for j in range(len(self.queue)) if j not in self._held]

    def put(self, order: Sequence[int]) -> list[int]:
        """Try jobs one after the other; return those that found room."""
        plan = decide(self.snapshot, self.queue.take(np.array(order, np.int64)), self._policy)
        new = {j: booking for j, booking in zip(order, allocations_of(plan), strict=True) if booking.holds_any}
        self._held.update(new)
        return list(new)

    def take_out(self, jobs: Iterable[int]) -> dict[int, Allocation]:
        """Take jobs out; return what they held, for `put_back`."""
        out = {}
        for j in jobs:
            booking = self._held.pop(j)
            out[j] = booking.copy()
            booking.release(self.snapshot)
        return out

    def put_back(self, out: dict[int, Allocation]) -> None:
        """Put jobs back where they were, which must be free again."""
        for booking in out.values():
            restore_rows(self.snapshot.arrays, self.snapshot.demands.arrays, booking.decisions, booking.slices)
        self._held.update(out)

    def retained(self) -> dict[int, Allocation]:
        """Return copies of what all jobs hold."""
        return {j: booking.copy() for j, booking in self._held.items()}

    def on_nodes(self, nodes: Iterable[int]) -> list[int]:
        """Return the jobs that are on some nodes."""
        wanted = set(nodes)
        return [j for j, booking in self._held.items() if int(booking.decisions[0, PLAN_NODE]) in wanted]

    def seats(self) -> dict[int, Seat]:
        """Say where each job is."""
        return {
            j: Seat(int(booking.decisions[0, PLAN_NODE]), tuple(booking.slices[:, SLICE_DEVICE].tolist()))
            for j, booking in self._held.items()
        }

    def _shares(self) -> Float64:
        snapshot, lines = self.snapshot, self.queue.rows[:, JOB_DEMAND]
        rows = [CLUSTER_CPU, CLUSTER_MEMORY, CLUSTER_GPU_MEMORY, CLUSTER_GPU_CORE]
        there = [*snapshot.arrays.clusters[rows].sum(axis=1), snapshot.arrays.bandwidth.sum()]
        mbps = snapshot.demands.arrays.amounts[lines, DEMAND_BANDWIDTH]
        asked = np.array([asked_sums(snapshot, int(k)).mean(axis=1) for k in lines])
        shares: Float64 = np.column_stack([asked, mbps]) / np.maximum(there, 1)
        return shares


@dataclass(frozen=True, slots=True)
class Slot:
    """Resources that one slice of a kind takes of one device.

    Attributes
    ----------
    memory_mib, core_milli, slots
        Memory, cores, and number of slice slots.
    """

    memory_mib: int
    core_milli: int
    slots: int


class Needs:
    """Kinds of jobs, those with equal demands, and where each fits alone.

    Parameters
    ----------
    snapshot
        With nothing on it.
    queue
        Jobs of one replica each.

    Attributes
    ----------
    kinds
        Lines of ``snapshot.demands``, one a kind.
    jobs
        The numbers of the jobs of each kind, in order of arrival.
    nodes
        The nodes that each kind fits on.
    slots
        What a slice of a kind takes of each device that takes it, by kind and device.
    bandwidth, gateways
        What links can carry, and what gateways can, as in `seaway.scheduling.arrays.FleetArrays`.
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
        self.slots = {
            (k, d): self._slot(k, d)
            for k in self.kinds
            if self.gpus(k)
            for n in self.nodes[k]
            for d in self.devices(n)
            if device_fits(self._fleet, snapshot.demands.arrays, k, d)
        }

    def gpus(self, k: int) -> int:
        """Return how many devices a job of a kind needs."""
        return int(self._amounts[k, DEMAND_GPUS])

    def cpu_memory(self, k: int) -> tuple[int, int]:
        """Return what a job of a kind needs of its node: CPU milli, and memory in MiB."""
        return int(self._amounts[k, DEMAND_CPU]), int(self._amounts[k, DEMAND_MEMORY])

    def link(self, k: int, n: int) -> tuple[int, int, int]:
        """Return what a job of a kind takes on a node: gateways from and to, Mbit/s; 0 Mbit/s for nothing."""
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
        """Return the CPU milli, the memory in MiB and the pods of a node."""
        cpu, memory, pods = self._fleet.nodes[[NODE_CPU, NODE_MEMORY, NODE_PODS], n].tolist()
        return cpu, memory, pods

    def device_capacity(self, d: int) -> Slot:
        """Return what a device has."""
        return Slot(*self._fleet.devices[[DEVICE_MEMORY, DEVICE_CORE, DEVICE_SLOTS], d].tolist())

    @property
    def additive(self) -> bool:
        """True if jobs fit together wherever their needs add up to no more than there is.

        They need not where devices are cut into MIG instances, nor where a job wants a device that is idle when it
        comes, or devices of one NUMA node.
        """
        rules = self._amounts[self.kinds][:, [DEMAND_EXCLUSIVE, DEMAND_GROUP]]
        used = sorted({d for _, d in self.slots})
        return not rules.any() and bool((self._fleet.devices[DEVICE_MIG, used] < 0).all())

    def _nodes_of(self, k: int) -> list[int]:
        fits: UInt8 = np.zeros(len(self._snapshot.nodes), np.uint8)
        fitting_nodes(self._fleet, self._snapshot.demands.arrays, k, fits)
        nodes: list[int] = np.flatnonzero(fits).tolist()
        return nodes

    def _slot(self, k: int, d: int) -> Slot:
        demands = self._snapshot.demands.arrays
        memory, core = memory_needed(self._fleet, demands, k, d), core_needed(self._fleet, demands, k, d)
        there = self.device_capacity(d)
        alone = core == WHOLE_MILLI == there.core_milli
        return Slot(int(memory), int(core), there.slots if alone else 1)
