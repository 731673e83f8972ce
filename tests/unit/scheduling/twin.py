"""Plain reference implementation of the filters, written from the rules rather than from the kernels.

Numbers of rules are those of HAMi v2.10's order of evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, DeviceMode
from seaway.domain.job import Demand, DeviceRules, GpuTopology, Job
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice, Placement


@dataclass
class Card:
    """A device and its slices."""

    device: Device
    held: list[DeviceSlice] = field(default_factory=list)

    @property
    def free_memory(self) -> int:
        """MiB that no container holds."""
        return self.device.memory_mib - sum(each.memory_mib for each in self.held)

    @property
    def free_cores(self) -> int:
        """Thousandths that no container holds; negative where rounded-up MIG profiles add up to more."""
        return self.device.core_milli - sum(each.core_milli for each in self.held)

    def covered(self) -> set[int]:
        """Memory slices under MIG instances."""
        sizes = {profile.name: profile.size for profile in self.device.mig_profiles}
        return {
            each.mig_start + step for each in self.held if each.mig_profile for step in range(sizes[each.mig_profile])
        }

    def instance(self, memory_mib: int, name: str) -> DeviceSlice | None:
        """Allocate the instance of a slice or of a profile; None without a free placement (rule 16)."""
        covered = self.covered()
        for profile in sorted(self.device.mig_profiles, key=lambda each: (each.memory_mib, each.slice_count)):
            if profile.memory_mib < memory_mib or (name and profile.name != name):
                continue
            top_first = profile.name.startswith("1g.") or profile.name.startswith("3g.")
            for start in sorted(profile.starts, reverse=top_first):
                if not covered & set(range(start, start + profile.size)):
                    return DeviceSlice(self.device.uuid, profile.memory_mib, profile.core_milli, profile.name, start)
        return None


NOMINAL_PERCENT = {"1": 12, "2": 25, "3": 50, "4": 50, "7": 100}
"""Share of a device's memory that a MIG profile counts as in scores, by its compute slices."""


@dataclass(frozen=True)
class Slice:
    """Demand on each device, with the defaults of the webhook."""

    memory_mib: int
    percent: int
    cores: int
    mig: str = ""

    @classmethod
    def of(cls, demand: Demand) -> Slice:
        """Apply the defaults: all memory without an amount of memory, and then all cores without an amount of cores."""
        asked = demand.request
        if asked.mig:
            return cls(0, NOMINAL_PERCENT.get(asked.mig[0], 100), 0, asked.mig)
        percent, cores = asked.gpu_memory_percent, asked.gpu_milli
        if asked.gpu_memory_mib == 0 and percent in (0, 100):
            percent, cores = 100, cores or 1_000
        return cls(asked.gpu_memory_mib, percent, min(cores, 1_000))

    def memory_on(self, device: Device) -> int:
        """Memory that the slice takes of a device in MiB, in its steps or shares (rule 10)."""
        step = device.memory_step_mib
        if self.mig:
            return next((each.memory_mib for each in device.mig_profiles if each.name == self.mig), 2**40)
        if device.even_shares:
            return in_shares(self.memory_mib or device.memory_mib * self.percent // 100, device.memory_mib, device)
        if self.memory_mib:
            return math.ceil(self.memory_mib / step) * step
        share = device.memory_mib * self.percent // 100
        return share if step == 1 else max(step, share - share % step)

    def cores_on(self, device: Device) -> int:
        """Thousandths that the slice takes of a device with its steps and shares (rule 9)."""
        if device.even_shares:
            return in_shares(self.cores, device.core_milli, device)
        steps = next(count for count in range(device.core_steps + 1) if count * 1_000 >= self.cores * device.core_steps)
        return steps * 1_000 // device.core_steps


def in_shares(asked: int, total: int, device: Device) -> int:
    """Return the first number of shares that holds the demand; the demand itself where none does."""
    amounts = [total * count // device.share_limit for count in range(1, device.share_limit + 1)]
    return next((amount for amount in amounts if amount >= asked), asked)


def on_request(device: Device, name: str) -> bool:
    """Report whether a pod can request a MIG profile: by name, or by memory if no smaller profile has as much."""
    named = [each for each in device.mig_profiles if each.name == name]
    rivals = [each for each in device.mig_profiles for own in named if each.memory_mib == own.memory_mib]
    return bool(named) and not (
        device.mig_single_device and any(each.slice_count < named[0].slice_count for each in rivals)
    )


def card_takes(card: Card, demand: Demand) -> DeviceSlice | None:
    """Return a container's slice of a device now; None when it is rejected."""
    device, rules, asked = card.device, demand.devices, Slice.of(demand)
    memory, cores, name = asked.memory_on(device), asked.cores_on(device), device.model.lower()
    refusals = (
        not device.healthy,  # 2
        device.cordoned,  # 3
        rules.use_types and not any(part.lower() in name for part in rules.use_types),  # 4
        any(part.lower() in name for part in rules.avoid_types),
        rules.models and name not in [model.lower() for model in rules.models],
        rules.vendors and device.vendor not in rules.vendors,
        rules.modes and device.mode not in rules.modes,
        asked.mig and not on_request(device, asked.mig),
        rules.use_uuids and device.uuid not in rules.use_uuids,  # 6
        device.uuid in rules.avoid_uuids,
        len(card.held) >= device.share_limit,  # 7
        rules.exclusive and card.held,  # 8
        card.free_memory < memory,  # 12
        card.free_cores < cores,  # 13
        device.core_milli == 1_000 and cores == 1_000 and card.held,  # 14
        device.core_milli > 0 and card.free_cores == 0 and cores == 0,  # 15
    )
    if any(refusals):
        return None
    if device.mode is DeviceMode.MIG:
        return card.instance(memory, asked.mig)
    return DeviceSlice(device.uuid, memory, cores)


def holds_two(device: Device, demand: Demand) -> bool:
    """Report whether an empty device would hold two slices of a demand, ignoring other rules."""
    rules = DeviceRules(exclusive=False)
    card = Card(replace(device, healthy=True, cordoned=False))
    for _ in range(2):
        taken = card_takes(card, replace(demand, devices=rules))
        if taken is None:
            return False
        card.held.append(taken)
    return True


def room_on(cards: list[Card], demand: Demand) -> int:
    """Count the slices of a demand that fit on devices (1): one per device, but several in MIG mode.

    If a pod cannot request a number per device, a device that holds two has room for all of them or for none.
    """
    total = 0
    for card in cards:
        trial, count = Card(card.device, list(card.held)), 0
        while count < demand.request.gpus and (slice_ := card_takes(trial, demand)) is not None:
            trial.held.append(slice_)
            count += 1
            if card.device.mode is not DeviceMode.MIG:
                break
        gpus = demand.request.gpus
        alone = card.device.mig_single_device and gpus > 1 and holds_two(card.device, demand)
        total += 0 if alone and count < gpus else count
    return total


def numa(device: Device) -> int:
    """Return the NUMA node of a device."""
    return device.numa


GROUPS: dict[GpuTopology, Callable[[Device], int]] = {
    GpuTopology.SAME_ISLAND: lambda device: device.island,
    GpuTopology.SAME_SWITCH: lambda device: device.pcie_switch,
}
"""Groups of devices, of which a replica must use one."""


class Twin:
    """A fleet with placements."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.cards = {(cluster.name, node.name): [Card(each) for each in node.devices] for cluster, node in fleet.nodes}
        self.used = {at: [0, 0, 0] for at in self.cards}
        self.reserved: dict[tuple[str, str], int] = {}

    def place(self, job: Job, placements: list[Placement]) -> None:
        """Record the placements of a job."""
        for placement in placements:
            at = placement.cluster, placement.node
            self.used[at][0] += job.demand.request.cpu_milli
            self.used[at][1] += job.demand.request.memory_mib
            self.used[at][2] += 1
            for slice_ in placement.slices:
                self.card(placement, slice_).held.append(slice_)
        gateways = {cluster.name: cluster.gateway for cluster in self.fleet.clusters}
        for name in {placement.cluster for placement in placements}:
            if job.demand.network.min_bandwidth_mbps:
                link = job.demand.gateway, gateways[name]
                self.reserve(*link, job.demand.network.min_bandwidth_mbps)
        mbps = job.between_replicas.min_bandwidth_mbps
        pairs = permutations({gateways[placement.cluster] for placement in placements} - {""}, 2)
        for link in self.ring(placements, gateways) if job.ring else pairs:
            self.reserve(*link, mbps)

    @staticmethod
    def ring(placements: list[Placement], gateways: dict[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the gateways of each replica and the next one, by their numbers; the first follows the last."""
        ordered = sorted(placements, key=lambda placement: placement.replica)
        for here, there in zip(ordered, [*ordered[1:], *ordered[:1]], strict=True):
            if gateways[here.cluster] and gateways[there.cluster]:
                yield gateways[here.cluster], gateways[there.cluster]

    def reserve(self, source: str, target: str, mbps: int) -> None:
        """Reserve bandwidth on the link between two gateways and on both interfaces."""
        if source != target:
            for way in ((source, target), (source, "out"), (target, "in")):
                self.reserved[way] = self.reserved.get(way, 0) + mbps

    def interface_free(self, source: str, target: str) -> float:
        """Return the free Mbit/s of the interfaces of gateways on the way from one to another."""
        doors = {gateway.name: gateway for gateway in self.fleet.gateways}
        out, into = doors[source], doors[target]
        left = out.speed_mbps - out.used_out_mbps - self.reserved.get((source, "out"), 0)
        room = into.speed_mbps - into.used_in_mbps - self.reserved.get((target, "in"), 0)
        return min(left if out.speed_mbps else math.inf, room if into.speed_mbps else math.inf)

    def card(self, placement: Placement, slice_: DeviceSlice) -> Card:
        """Return the device of a slice."""
        cards = self.cards[placement.cluster, placement.node]
        return next(card for card in cards if card.device.uuid == slice_.uuid)

    def fitting(self, demand: Demand, paid: set[str]) -> Iterator[bool]:
        """Report for each node whether it fits; clusters in `paid` need no bandwidth."""
        for cluster, node in self.fleet.nodes:
            yield (
                self.link_fits(cluster, demand, cluster.name in paid)
                and node_allowed(cluster, node, demand)
                and self.resources_fit(cluster, node, demand)
                and self.devices_fit(cluster, node, demand)
            )

    def link_fits(self, cluster: Cluster, demand: Demand, paid: bool) -> bool:
        """Report whether the link from the user to a cluster meets every bound."""
        need = demand.network
        if not need.any or (cluster.gateway and cluster.gateway == demand.gateway):
            return True
        for link in self.fleet.links:
            if (link.source, link.target) == (demand.gateway, cluster.gateway):
                free: float = link.free_mbps - self.reserved.get((link.source, link.target), 0)
                free = min(free, self.interface_free(link.source, link.target))
                return link.latency_ns is not None and (
                    (need.max_latency_ns == 0 or link.latency_ns <= need.max_latency_ns)
                    and (need.max_jitter_ns == 0 or link.jitter_ns <= need.max_jitter_ns)
                    and (need.max_loss_ppm == 0 or link.loss_ppm <= need.max_loss_ppm)
                    and (paid or need.min_bandwidth_mbps <= free)
                )
        return False

    def resources_fit(self, cluster: Cluster, node: Node, demand: Demand) -> bool:
        """Report whether a node has the CPU, the memory and a free pod slot."""
        cpu, memory, pods = self.used[cluster.name, node.name]
        asked = demand.request
        enough = asked.cpu_milli <= node.cpu_milli - cpu and asked.memory_mib <= node.memory_mib - memory
        return enough and (node.pods is None or pods < node.pods)

    def devices_fit(self, cluster: Cluster, node: Node, demand: Demand) -> bool:
        """Report whether a node's devices have room, on one NUMA node or in one island if required (5)."""
        cards, gpus = self.cards[cluster.name, node.name], demand.request.gpus
        group = GROUPS.get(demand.devices.topology, numa if demand.devices.same_numa else None)
        if not gpus or group is None:
            return room_on(cards, demand) >= gpus
        numbers = {group(card.device) for card in cards} - {-1}
        return any(room_on([c for c in cards if group(c.device) == each], demand) >= gpus for each in numbers)


def node_allowed(cluster: Cluster, node: Node, demand: Demand) -> bool:
    """Report whether a node matches the constraints of a job, ignoring free resources."""
    rules = demand.nodes
    return (
        node.ready
        and (not rules.clusters or cluster.name in rules.clusters)
        and (not rules.regions or cluster.region in rules.regions)
        and all(each in (cluster.facts.hardware or ()) for each in rules.hardware)
        and all(cluster.facts.labels.get(key) == value for key, value in rules.cluster_labels)
        and all(
            rules.max_microprice is None
            or ((price := cluster.facts.microprice(device.model)) is not None and price <= rules.max_microprice)
            for device in node.devices
        )
        and not {(cluster.name, node.name), (cluster.name, ""), (cluster.name, "*")} & rules.avoid
        and all(node.labels.get(key) == value for key, value in rules.node_labels)
        and all(
            not taint.effect.refuses or any(each.tolerates(taint) for each in rules.tolerations)
            for taint in node.taints
        )
    )
