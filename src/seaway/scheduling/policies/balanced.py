"""Policy `balanced`: free resources, distance, topology, hardware, price and memory size, each with a weight.

Each aim is a plugin of its own, scaled over the feasible nodes, so an explanation shows which of them decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.domain.facts import Location
from seaway.domain.reasons import Reason
from seaway.scheduling.arrays import FleetArrays, Int64
from seaway.scheduling.columns import (
    DEMAND_GPU_MEMORY,
    DEMAND_MASK,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_MIG,
    DEVICE_NODE,
    DEVICE_OPEN,
    DEVICE_SLOTS_FREE,
    MIG_MEMORY,
    NODE_CLUSTER,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
)
from seaway.scheduling.framework import Cycle, Plugin, Scores
from seaway.scheduling.plugins.clusters import hardware_score, node_microprices, user_latency_ns
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.profile import MAX_WEIGHT
from seaway.scheduling.snapshot.demands import FULL, UNKNOWN
from seaway.scheduling.snapshot.links import UNKNOWN_NS
from seaway.scheduling.snapshot.rule_masks import FleetCache
from seaway.scheduling.snapshot.snapshot import Snapshot

NS_PER_KM = 10_000
"""Round-trip time of one kilometre of optical fibre, nanoseconds: light travels 200,000 km per second in glass."""


@dataclass(frozen=True, slots=True)
class BalancedWeights:
    """Weights of the aims; integers from 0, not all 0. An aim of weight 0 is left out.

    Attributes
    ----------
    free
        The node with the least left after the placement, so that large free parts stay usable.
    distance
        Round-trip time from the user's gateway, measured, or estimated from the great-circle distance.
    topology
        Closeness to the job's earlier replicas: same zone, same cluster, same region.
    hardware
        Special hardware is left free for jobs that request it.
    price
        Price of a GPU per hour.
    memory
        Match of the size of devices, so that large devices are left free for jobs that need them.
    """

    free: int = 1
    distance: int = 1
    topology: int = 1
    hardware: int = 1
    price: int = 1
    memory: int = 0

    def __post_init__(self) -> None:
        """Reject weights that are not valid integers, and weights that are all 0."""
        for name, weight in asdict(self).items():
            if type(weight) is not int or not 0 <= weight <= MAX_WEIGHT:
                raise RejectedError(Reason("whole_number_between", value=repr(weight), most=MAX_WEIGHT), where=name)
        if not any(astuple(self)):
            raise RejectedError(Reason("a_weight_above_0"))

    @classmethod
    def of(cls, weights: Mapping[str, object]) -> BalancedWeights:
        """Return the weights by name, with defaults for missing ones; raises as the constructor."""
        known = [each.name for each in fields(cls)]
        for name in weights:
            if name not in known:
                raise RejectedError(Reason("not_an_aim", name=name, names=tuple(known)), where=name)
        return cls(**weights)  # type: ignore[arg-type]  # checked by the constructor


def balanced_scores(weights: BalancedWeights) -> tuple[tuple[Plugin, int], ...]:
    """Return the score plugins of the policy with their weights, after the plugin that chooses devices.

    With `free` alone it is best fit, which is compiled.
    """
    aims: tuple[Plugin, ...] = (BestFit(), Distance(), Topology(), SpareHardware(), Price(), MemoryMatch())
    chosen = tuple((plugin, weight) for plugin, weight in zip(aims, astuple(weights), strict=True) if weight)
    alone = len(chosen) == 1 and weights.free
    return chosen if alone else ((DeviceChoice(weights.free, weights.memory), 1), *chosen)


class DeviceChoice:
    """Choice of the devices of a node by the weights of `free` and `memory`; best fit if both are 0.

    The other aims are equal for all devices of a node.
    """

    name = "DeviceChoice"

    def __init__(self, free: int, memory: int) -> None:
        self._free, self._memory = (free, memory) if free or memory else (1, 0)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return keys of devices, least first: the free part, and the size if the job requests an amount of memory.

        Both are scaled to 0-1000 over the devices of the node.
        """
        fleet, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        asked = int(demands.amounts[cycle.demand_index, DEMAND_GPU_MEMORY])
        own = slice(fleet.nodes[NODE_DEVICE_FIRST, node], fleet.nodes[NODE_DEVICE_END, node])
        sizes = _sufficient_sizes(fleet, asked)[own] if asked else np.zeros(own.stop - own.start, np.int64)
        left = np.clip(BestFit().device_keys(cycle, node), 0, WHOLE)
        keys: Scores = self._free * left + self._memory * (sizes * WHOLE // max(int(sizes.max(initial=0)), 1))
        return keys


WHOLE = 1000
"""Key of the largest device of a node, and of a device that is free as a whole."""


class Distance:
    """Score by the round-trip time from the user's gateway to the node's cluster, the shortest first.

    Where it is not measured, it is estimated from the great-circle distance, if both locations are known. Otherwise it
    counts as the longest. For a job without a user gateway, all nodes are equal.
    """

    name = "Distance"

    def score(self, cycle: Cycle) -> Scores:
        """Return the negative round-trip time of each node, shape (N,), nanoseconds."""
        homes = cycle.snapshot.arrays.nodes[NODE_CLUSTER]
        gateway = cycle.job.demand.gateway
        if not gateway:
            return np.zeros(len(homes), np.int64)
        return _least_first(distance_ns(cycle.snapshot, gateway)[homes], UNKNOWN_NS, cycle)


def distance_ns(snapshot: Snapshot, gateway: str) -> Int64:
    """Return the measured or estimated round-trip time from a gateway, shape (C,); `UNKNOWN_NS` if it is unknown."""
    found = user_latency_ns(snapshot, gateway)
    here = _location_of(snapshot, gateway)
    for c, cluster in enumerate(snapshot.clusters):
        there = cluster.facts.location
        if found[c] == UNKNOWN_NS and here and there:
            found[c] = int(here.distance_km(there) * NS_PER_KM)
    return found


def _location_of(snapshot: Snapshot, gateway: str) -> Location | None:
    """Return the location of a gateway, or else of a cluster behind it; None if both are unknown."""
    own = (each.location for each in snapshot.fleet.gateways if each.name == gateway)
    behind = (each.facts.location for each in snapshot.clusters if each.gateway == gateway)
    return next((each for each in (*own, *behind) if each), None)


class Topology:
    """Score by closeness to the job's earlier replicas: the same zone, then the same cluster, then the same region.

    In a cluster of unknown zones, all nodes are close. For the first replica, all nodes are equal.
    """

    name = "Topology"

    def score(self, cycle: Cycle) -> Scores:
        """Return the sum over the earlier replicas of 3 to 0 for each node, shape (N,)."""
        homes = cycle.snapshot.arrays.nodes[NODE_CLUSTER]
        zones, regions = _places(cycle.snapshot)
        total = np.zeros(len(homes), np.int64)
        for placed in cycle.placed:
            same_cluster = homes == homes[placed]
            same_zone = (zones == zones[placed]) & ((zones > 0) | same_cluster)
            same_region = (regions == regions[placed]) & (regions > 0)
            total += np.select([same_zone, same_cluster, same_region], [3, 2, 1], 0)
        return total


class Places(NamedTuple):
    """Numbers of the zone and the region of each node, shape (N,); 0 if unknown."""

    zones: Int64
    regions: Int64


def _number_places(snapshot: Snapshot) -> Places:
    numbers: dict[tuple[str, ...], int] = {}
    rows = []
    for c, node in zip(snapshot.arrays.nodes[NODE_CLUSTER].tolist(), snapshot.nodes, strict=True):
        facts = snapshot.clusters[c].facts
        region, zone = node.region or facts.region, node.zone or (facts.zones[0] if len(facts.zones) == 1 else "")
        rows.append(
            [
                numbers.setdefault(key, len(numbers) + 1) if key[-1] else 0
                for key in (("zone", region, zone), ("region", region))
            ]
        )
    table = np.array(rows, np.int64).reshape(-1, 2)
    return Places(table[:, 0], table[:, 1])


_places = FleetCache(_number_places)


class SpareHardware:
    """Score by special hardware of the cluster that the job does not request, less is better."""

    name = "SpareHardware"

    def score(self, cycle: Cycle) -> Scores:
        """Return the score of each node, shape (N,), 0-100."""
        scores: Scores = hardware_score(cycle.snapshot, cycle.job)[cycle.snapshot.arrays.nodes[NODE_CLUSTER]]
        return scores


class Price:
    """Score by the price of a GPU per hour, the lowest first; an unknown price counts as the highest.

    For a job without GPUs, all nodes are equal.
    """

    name = "Price"

    def score(self, cycle: Cycle) -> Scores:
        """Return the negative price of each node, shape (N,), millionths."""
        prices = node_microprices(cycle.snapshot)
        if not cycle.demand.request.gpus:
            return np.zeros(len(prices), np.int64)
        return _least_first(prices, UNKNOWN, cycle)


class MemoryMatch:
    """Score by the size of devices: the share of a device's memory that the job requests, the largest first.

    Only devices with room count, and of a device in MIG mode the smallest sufficient profile. For a job that requests
    no amount of memory, all nodes are equal.
    """

    name = "MemoryMatch"

    def score(self, cycle: Cycle) -> Scores:
        """Return the share of the best device of each node, shape (N,), 0-100."""
        fleet, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        amounts, devices = demands.amounts[cycle.demand_index], fleet.devices
        scores = np.zeros(fleet.nodes.shape[1], np.int64)
        asked = int(amounts[DEMAND_GPU_MEMORY])
        if asked:
            sizes = _sufficient_sizes(fleet, asked)
            usable = (
                (demands.device_ok[amounts[DEMAND_MASK]] != 0)
                & (devices[DEVICE_OPEN] != 0)
                & (devices[DEVICE_SLOTS_FREE] > 0)
                & (devices[DEVICE_MEMORY_FREE] >= asked)
                & (sizes >= asked)
            )
            np.maximum.at(scores, devices[DEVICE_NODE][usable], asked * FULL // sizes[usable])
        return scores


def _sufficient_sizes(fleet: FleetArrays, asked: int) -> Int64:
    """Return the memory of each device, or of its smallest MIG profile with `asked` MiB, 0 without one, shape (D,)."""
    sizes = fleet.devices[DEVICE_MEMORY].astype(np.int64)
    for geometry, (first, end) in enumerate(pairwise(fleet.mig_first.tolist())):
        profiles = fleet.mig[first:end, MIG_MEMORY]
        sizes[fleet.devices[DEVICE_MIG] == geometry] = min(profiles[profiles >= asked].tolist(), default=0)
    return sizes


def _least_first(figures: Int64, unknown: int, cycle: Cycle) -> Scores:
    """Return negative figures; unknown ones count as just above the highest of the feasible nodes."""
    known = figures < unknown
    highest = figures[known & cycle.feasible].max(initial=0)
    return -np.where(known, figures, highest + 1)
