"""Packings: which jobs are in, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from seaway.domain.errors import InvariantError
from seaway.domain.placement import Placement
from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.scheduling.columns import DEMAND_GPU_CORE, JOB_DEMAND, NODE_DEVICE_END, NODE_DEVICE_FIRST


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a job is.

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
        """How many jobs are in."""
        return len(self.placed)

    @property
    def proven(self) -> bool:
        """Whether no packing holds more."""
        return self.count >= self.bound


@dataclass(frozen=True, slots=True)
class Step:
    """How far the search is.

    Attributes
    ----------
    count, bound
        As in `Packing`, until now.
    done
        Share of the effort that is spent, 0-1.
    """

    count: int
    bound: int
    done: float


Listener = Callable[[Step], None]
"""Told now and then how far the search is."""


def booked(instance: Instance, seats: Mapping[int, Seat], bound: int) -> Packing:
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
    cores = episode.snapshot.demands.arrays.amounts[episode.queue.lines[:, JOB_DEMAND], DEMAND_GPU_CORE]
    return sorted(range(len(instance.jobs)), key=lambda j: bool(cores[j]))
