"""Dynamic Resource Allocation: cards in the resource slices of NVIDIA's and HAMi's drivers.

A driver lists a card with dynamic MIG once as a whole and once per possible instance. These become one device with
profiles. Static instances are separate devices.

References
----------
Kubernetes API, v1.36: resource.k8s.io/v1.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from seaway.adapters.kubernetes import quantities
from seaway.adapters.kubernetes.device_plugins.findings import LARGEST, MAX_QUOTED, Findings, named
from seaway.adapters.kubernetes.device_plugins.resources import MAX_CARDS
from seaway.adapters.kubernetes.device_plugins.vendors import compute_slices, nvidia_model, profile_slices
from seaway.adapters.kubernetes.device_plugins.views import (
    Access,
    CoreUnit,
    DevicePlugin,
    DeviceResources,
    Held,
    NodeView,
    Part,
    Problem,
    ProblemKind,
    core_steps,
)
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.adapters.kubernetes.objects.dra import ClaimResult, ResourceClaim, ResourceSlice, SliceDevice
from seaway.domain.device import WHOLE_DEVICE_MILLI, Device, DeviceMode, MigProfile
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class ClaimView:
    """Devices of a claim on one node.

    Attributes
    ----------
    name
        Name of the claim, ``namespace/name``.
    users
        UIDs of the pods that may use it, in order. A claim without users holds its devices until it is deallocated.
    """

    name: str
    held: tuple[Held, ...] = ()
    users: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_claim(claim: ResourceClaim, view: NodeView) -> ClaimView:
    """Return the node's devices that a claim holds; exclude devices with admin access."""
    name = f"{claim.metadata.namespace}/{claim.metadata.name}"
    results = claim.status.allocation.devices.results if claim.status.allocation else ()
    held: list[Held] = []
    problems: list[Problem] = []
    for result in results:
        found = view.by_part.get((result.driver, result.pool, result.device))
        if found is None or result.admin_access:
            continue
        try:
            held.append(replace(_held(result, *found, view.devices[found[0].uuid]), claim=name))
        except RejectedError as error:
            problems.append(
                Problem(ProblemKind.BROKEN, f"claim {name}: {result.device}", f"{error}; all of it counts as allocated")
            )
            held.append(replace(_all(view.devices[found[0].uuid]), claim=name))
    users = tuple(user.uid for user in claim.status.reserved_for if user.resource in {"", "pods"})
    return ClaimView(name, tuple(held), users, tuple(problems))


def _held(result: ClaimResult, access: Access, part: Part, device: Device) -> Held:
    if part.profile:
        profile = next(profile for profile in device.mig_profiles if profile.name == part.profile)
        return Held(-1, device.uuid, profile.memory_mib, profile.core_milli, part.profile, part.start)
    if not access.shared or not result.consumed_capacity:
        return _all(device)
    memory_mib, core_milli = device.memory_mib, 0
    for name, amount in result.consumed_capacity.items():
        match name.rpartition("/")[2]:
            case "memory":
                memory_mib = min(quantities.mebibytes(amount), LARGEST)
            case "cores":
                core_milli = min(access.core_milli(quantities.integer(amount)), LARGEST)
    return Held(-1, device.uuid, memory_mib, core_milli)


def _all(device: Device) -> Held:
    return Held(-1, device.uuid, device.memory_mib, device.core_milli)


@dataclass(frozen=True, slots=True)
class Listed:
    """A device of a pool."""

    driver: str
    pool: str
    device: SliceDevice

    @property
    def where(self) -> str:
        """Driver, pool and name."""
        return f"{self.driver}/{self.pool}/{self.device.name}"

    def text(self, name: str) -> str:
        """Return a string attribute; empty if there is none."""
        attribute = self.device.attributes.get(name) or self.device.attributes.get(f"{self.driver}/{name}")
        return (attribute.text or "") if attribute else ""

    def number(self, name: str) -> int | None:
        """Return an integer attribute; None if there is none."""
        attribute = self.device.attributes.get(name) or self.device.attributes.get(f"{self.driver}/{name}")
        return attribute.whole if attribute else None

    def memory_mib(self) -> int:
        """Return the memory, rounded down.

        Raises
        ------
        RejectedError
            When the memory is missing or invalid.
        """
        amount = self.device.capacity.get("memory") or self.device.capacity.get(f"{self.driver}/memory")
        if amount is None:
            raise RejectedError("no capacity of memory")
        return quantities.mebibytes(amount.value, down=True)

    @property
    def taints(self) -> str:
        """Taints that prevent new workloads, which drivers set on bad devices; empty for none."""
        if not self.device.taints:
            return ""
        keep = [each for each in self.device.taints if each.effect in {"NoSchedule", "NoExecute"}]
        written = [
            f"{each.key}={each.value}:{each.effect}" if each.value else f"{each.key}:{each.effect}" for each in keep
        ]
        return _tainted(", ".join(written)[:MAX_QUOTED]) if keep else ""


@lru_cache(64)
def _tainted(taints: str) -> Reason:
    """Return the reason of a device with taints. The cache shares it among devices."""
    return Reason("tainted", taints=taints)


def listed(node: str, slices: Iterable[ResourceSlice], findings: Findings) -> Iterator[Listed]:
    """Yield the devices on a node.

    Of each pool, use only the newest generation, and only if all its slices are present.
    """
    pools: defaultdict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        pools[each.spec.driver, each.spec.pool.name].append(each)
    for (driver, pool), found in sorted(pools.items()):
        if not any(_is_on_node(node, each, device) for each in found for device in each.spec.devices):
            continue
        newest = max(each.spec.pool.generation for each in found)
        retained = [each for each in found if each.spec.pool.generation == newest]
        wanted = max(each.spec.pool.resource_slice_count for each in retained)
        if len({each.metadata.name for each in retained}) != wanted:
            text = (
                f"generation {newest} has {len(retained)} of {wanted} slices; the pool is left out until it is complete"
            )
            findings.broken(f"{driver}/{pool}", text)
            continue
        for each in sorted(retained, key=lambda one: one.metadata.name):
            yield from (Listed(driver, pool, device) for device in each.spec.devices if _is_on_node(node, each, device))


def _is_on_node(node: str, each: ResourceSlice, device: SliceDevice) -> bool:
    return (device.node_name or each.spec.node_name) == node


NVIDIA_DRIVER = "gpu.nvidia.com"
HAMI_DRIVER = "hami-core-gpu.project-hami.io"
UNKNOWN_DRIVERS = frozenset({"ascend.project-hami.io", "dra.hygon.com"})
"""Drivers of GPUs and NPUs that Seaway cannot decode yet."""

WHOLE_PROFILE = "full"
"""Profile for a whole card that supports instances."""

MAX_SHARES = 100
"""Maximum number of claims that share a card; the driver itself sets no limit."""

NVIDIA = DeviceResources(DevicePlugin.DRA, "NVIDIA", driver=NVIDIA_DRIVER)
HAMI = DeviceResources(DevicePlugin.DRA, "NVIDIA", driver=HAMI_DRIVER)

_MINOR = re.compile(r"(?:hami-)?gpu-([0-9]{1,4})(?:-.*)?")
_SLICE = re.compile(r"memory-slice-([0-7])")
_NONE = ("0", 0)
_PARTITION = re.compile(r"gpu-[0-9]{1,4}-mig-(.+)-[0-9]+-[0-9]+")


@dataclass(slots=True)
class _Card:
    """Listed devices of one card."""

    whole: Listed | None = None
    instances: list[Listed] = field(default_factory=list)
    partitions: list[Listed] = field(default_factory=list)


def read(node: NodeObject, slices: Iterable[ResourceSlice], findings: Findings) -> None:
    """Find the cards in the resource slices of a node."""
    found = list(listed(node.metadata.name, slices, findings))
    for unknown in sorted({each.driver for each in found if each.driver in UNKNOWN_DRIVERS}):
        findings.broken(unknown, "Seaway cannot read this driver's devices yet")
    for each in found:
        if each.driver == HAMI_DRIVER:
            _guarded(_add_whole, each, findings)
    for minor, card in _cards([each for each in found if each.driver == NVIDIA_DRIVER], findings).items():
        _add_card(minor, card, findings)


def _cards(found: list[Listed], findings: Findings) -> dict[int, _Card]:
    """Group the listed devices by card."""
    cards: defaultdict[int, _Card] = defaultdict(_Card)
    for each in found:
        minor = _index(each)
        if minor is None:
            findings.broken(each.where, "its name does not say which card it is")
        elif each.text("type") == "gpu":
            cards[minor].whole = each
        elif each.text("uuid"):
            cards[minor].instances.append(each)
        elif each.device.consumes_counters:
            cards[minor].partitions.append(each)
        else:
            findings.broken(each.where, "neither a card, nor an instance of one")
    return dict(sorted(cards.items()))


def _index(each: Listed) -> int | None:
    found = _MINOR.fullmatch(each.device.name)
    return int(found[1]) if found else None


def _add_card(minor: int, card: _Card, findings: Findings) -> None:
    """Add a card, or its instances. Some driver versions list a card in addition to its instances."""
    if card.instances:
        for each in card.instances:
            _guarded(_add_instance, each, findings)
    elif card.partitions:
        _add_divisible(minor, card, findings)
    elif card.whole:
        _guarded(_add_whole, card.whole, findings)


def _guarded(add: Callable[[Listed, Findings], None], each: Listed, findings: Findings) -> None:
    try:
        add(each, findings)
    except RejectedError as error:
        findings.broken(each.where, str(error))


def _add_whole(each: Listed, findings: Findings) -> None:
    minor = each.number("minor")
    several = each.device.allow_multiple_allocations
    shared = DeviceMode.HAMI_CORE if each.driver == HAMI_DRIVER else DeviceMode.SHARED
    device = Device(
        named(each.text("uuid"), "uuid"),
        minor if minor is not None and 0 <= minor < MAX_CARDS else _index(each) or 0,
        nvidia_model(each.text("productName")),
        each.memory_mib(),
        share_limit=MAX_SHARES if several else 1,
        numa=_numa(each),
        pcie_switch=_root(each, findings),
        healthy=not each.taints,
        reason=each.taints,
        mode=shared if several else DeviceMode.WHOLE,
        core_steps=core_steps(100, CoreUnit.PERCENT) if several else WHOLE_DEVICE_MILLI,
        even_shares=not several,
    )
    _keep(each, device, {each.device.name: Part()}, findings)


def _add_instance(each: Listed, findings: Findings) -> None:
    """Add a static instance as a device with one profile and one placement."""
    profile = named(each.text("profile"), "profile")
    model = nvidia_model(each.text("productName"))
    memory_mib = each.memory_mib()
    mig = MigProfile(profile, memory_mib, _core_milli(profile, model), profile_slices(profile), 1, (0,))
    device = Device(
        named(each.text("uuid"), "uuid"),
        len(findings.devices),
        model,
        memory_mib,
        core_milli=mig.core_milli,
        share_limit=1,
        healthy=not each.taints,
        reason=each.taints,
        mode=DeviceMode.MIG,
        mig_profiles=(mig,),
    )
    _keep(each, device, {each.device.name: Part(profile, 0)}, findings)


def _add_divisible(minor: int, card: _Card, findings: Findings) -> None:
    """Add a card with dynamic MIG."""
    model = nvidia_model((card.whole or card.partitions[0]).text("productName"))
    parts: dict[str, Part] = {}
    places: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for each in card.partitions:
        try:
            profile, memory_mib, start, size = _partition(each)
        except RejectedError as error:
            findings.broken(each.where, str(error))
        else:
            parts[each.device.name] = Part(profile, start)
            places[profile, memory_mib, size].append(start)
    profiles = {
        name: MigProfile(name, memory, _core_milli(name, model), profile_slices(name), size, tuple(sorted(starts)))
        for (name, memory, size), starts in places.items()
    }
    sample = card.whole or card.partitions[0]
    memory_mib = max((profile.memory_mib for profile in profiles.values()), default=0)
    if card.whole:
        try:
            memory_mib = card.whole.memory_mib()
            uuid = named(card.whole.text("uuid"), "uuid")
        except RejectedError as error:
            findings.broken(card.whole.where, str(error))
            return
        profiles[WHOLE_PROFILE] = MigProfile(WHOLE_PROFILE, memory_mib, WHOLE_DEVICE_MILLI, 7, 8, (0,))
        parts[card.whole.device.name] = Part(WHOLE_PROFILE, 0)
    else:
        uuid = findings.own_device(f"gpu-{minor}")
    if not profiles:
        return
    device = Device(
        uuid,
        minor,
        model,
        memory_mib,
        share_limit=8,
        numa=_numa(sample),
        pcie_switch=_root(sample, findings),
        healthy=not sample.taints,
        reason=sample.taints,
        mode=DeviceMode.MIG,
        mig_profiles=tuple(profiles.values()),
    )
    _keep(sample, device, parts, findings)


def _partition(each: Listed) -> tuple[str, int, int, int]:
    """Return profile, memory, first memory slice and number of memory slices of a possible instance."""
    in_name = _PARTITION.fullmatch(each.device.name)
    profile = named(each.text("profile") or (in_name[1] if in_name else ""), "profile")
    taken = sorted(
        int(found[1])
        for use in each.device.consumes_counters
        for counter, amount in use.counters.items()
        if (found := _SLICE.fullmatch(counter)) and amount.value not in _NONE
    )
    if not taken or taken != list(range(taken[0], taken[0] + len(taken))):
        raise RejectedError("it takes no memory slices, or not one after the other")
    return profile, each.memory_mib(), taken[0], len(taken)


def _core_milli(profile: str, model: str) -> int:
    """Return an instance's thousandths of the card's cores, rounded down so that all instances fit the card."""
    return min(profile_slices(profile) * WHOLE_DEVICE_MILLI // compute_slices(model), WHOLE_DEVICE_MILLI)


def _numa(each: Listed) -> int:
    for name in ("numaNode", "numa", "resource.kubernetes.io/numaNode"):
        found = each.number(name)
        if found is not None and 0 <= found < 1024:
            return found
    return 0


def _root(each: Listed, findings: Findings) -> int:
    """Return the number of the PCIe root of a card on its node; -1 without one."""
    root = each.text("resource.kubernetes.io/pcieRoot")
    return findings.pcie_roots.setdefault(root, len(findings.pcie_roots)) if root else -1


def _keep(each: Listed, device: Device, parts: dict[str, Part], findings: Findings) -> None:
    access = Access(
        device.uuid,
        "",
        HAMI if each.driver == HAMI_DRIVER else NVIDIA,
        core_unit=CoreUnit.PERCENT,
        pool=each.pool,
        parts=parts,
        shared=each.device.allow_multiple_allocations,
    )
    findings.add(each.where, device, access)
