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
from seaway.scheduling.arrays import Float64
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_MEMORY,
    DEMAND_BANDWIDTH,
    DEMAND_GPU_CORE,
    JOB_DEMAND,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    PLAN_NODE,
    SLICE_DEVICE,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.kernels.allocate import restore_rows
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.snapshot.aggregates import asked_sums


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
