"""Dynamic resource allocation: the cards in resource slices of NVIDIA's driver and of HAMi's.

A card that can be cut into MIG instances at will is listed once whole and once for each instance that could be; these
become one device with profiles. Instances that are there for good are devices of their own.

References
----------
Kubernetes API, v1.36: resource.k8s.io/v1.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from seaway.adapters.kubernetes.dialects.findings import Findings, named
from seaway.adapters.kubernetes.dialects.models import compute_slices, nvidia_model, profile_slices
from seaway.adapters.kubernetes.dialects.pools import Listed, listed
from seaway.adapters.kubernetes.dialects.status import MOST_CARDS
from seaway.adapters.kubernetes.dialects.views import Access, CoreUnit, Dialect, Part, Terms, core_steps
from seaway.adapters.kubernetes.objects.node import NodeObject
from seaway.adapters.kubernetes.objects.slice import ResourceSlice
from seaway.domain.device import WHOLE_DEVICE_MILLI, Device, DeviceMode, MigProfile
from seaway.domain.errors import RejectedError

NVIDIA_DRIVER = "gpu.nvidia.com"
HAMI_DRIVER = "hami-core-gpu.project-hami.io"
UNKNOWN_DRIVERS = frozenset({"ascend.project-hami.io", "dra.hygon.com"})
"""Drivers of GPUs and NPUs whose devices Seaway cannot read yet."""

WHOLE_PROFILE = "full"
"""The profile that stands for all of a card that could also be cut."""

MOST_SHARES = 100
"""Claims that may share a card; the driver itself sets no limit."""

NVIDIA = Terms(Dialect.DRA, "NVIDIA", driver=NVIDIA_DRIVER)
HAMI = Terms(Dialect.DRA, "NVIDIA", driver=HAMI_DRIVER)

_MINOR = re.compile(r"(?:hami-)?gpu-([0-9]{1,4})(?:-.*)?")
_SLICE = re.compile(r"memory-slice-([0-7])")
_NONE = ("0", 0)
_PARTITION = re.compile(r"gpu-[0-9]{1,4}-mig-(.+)-[0-9]+-[0-9]+")


@dataclass(slots=True)
class _Card:
    """All that is listed of one card."""

    whole: Listed | None = None
    instances: list[Listed] = field(default_factory=list)
    partitions: list[Listed] = field(default_factory=list)


def read(node: NodeObject, slices: Iterable[ResourceSlice], findings: Findings) -> None:
    """Find the cards that resource slices list on a node."""
    found = list(listed(node.metadata.name, slices, findings))
    for unknown in sorted({each.driver for each in found if each.driver in UNKNOWN_DRIVERS}):
        findings.broken(unknown, "Seaway cannot read this driver's devices yet")
    for each in found:
        if each.driver == HAMI_DRIVER:
            _guarded(_add_whole, each, findings)
    for minor, card in _cards([each for each in found if each.driver == NVIDIA_DRIVER], findings).items():
        _add_card(minor, card, findings)


def _cards(found: list[Listed], findings: Findings) -> dict[int, _Card]:
    """Sort what is listed by card."""
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
    """Keep a card, or its instances; some versions list a card beside the instances that it was cut into."""
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
        minor if minor is not None and 0 <= minor < MOST_CARDS else _index(each) or 0,
        nvidia_model(each.text("productName")),
        each.memory_mib(),
        share_limit=MOST_SHARES if several else 1,
        numa=_numa(each),
        healthy=not each.taints,
        reason=each.taints,
        mode=shared if several else DeviceMode.WHOLE,
        core_steps=core_steps(100, CoreUnit.PERCENT) if several else WHOLE_DEVICE_MILLI,
        even_shares=not several,
    )
    _keep(each, device, {each.device.name: Part()}, findings)


def _add_instance(each: Listed, findings: Findings) -> None:
    """Keep an instance that is there for good, as a device with one profile and one place."""
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
    """Keep a card that can be cut at will."""
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
        uuid = findings.own(f"gpu-{minor}")
    if not profiles:
        return
    device = Device(
        uuid,
        minor,
        model,
        memory_mib,
        share_limit=8,
        numa=_numa(sample),
        healthy=not sample.taints,
        reason=sample.taints,
        mode=DeviceMode.MIG,
        mig_profiles=tuple(profiles.values()),
    )
    _keep(sample, device, parts, findings)


def _partition(each: Listed) -> tuple[str, int, int, int]:
    """Return profile, memory, first memory slice and number of memory slices of an instance that could be."""
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
    """Return what an instance has of a card's cores; rounded down, so that all instances fit the card."""
    return min(profile_slices(profile) * WHOLE_DEVICE_MILLI // compute_slices(model), WHOLE_DEVICE_MILLI)


def _numa(each: Listed) -> int:
    for name in ("numaNode", "numa", "resource.kubernetes.io/numaNode"):
        found = each.number(name)
        if found is not None and 0 <= found < 1024:
            return found
    return 0


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
