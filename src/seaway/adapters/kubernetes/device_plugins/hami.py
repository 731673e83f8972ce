"""HAMi: cards that its device plugins register in annotations of the node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from seaway.adapters.kubernetes.device_plugins.findings import Findings, bounded, named, not_served, unhealthy
from seaway.adapters.kubernetes.device_plugins.registers import HAMI_CORE, Entry, json_cards, read_register
from seaway.adapters.kubernetes.device_plugins.resources import Amounts
from seaway.adapters.kubernetes.device_plugins.vendors import (
    CORDON_KEY,
    METAX_KEY,
    METAX_SLICES,
    NVIDIA_KEY,
    Vendor,
    nvidia_model,
    registered,
)
from seaway.adapters.kubernetes.device_plugins.views import Access, CoreUnit, core_steps
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.domain.device import MILLI_PER_PERCENT_POINT, WHOLE_DEVICE_MILLI, Device, DeviceMode, MigProfile
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason


def read_metax_register(text: str) -> Iterator[Entry | RejectedError]:
    """Return each card of a register, or the error of an invalid card."""
    return json_cards(text, _entry)


def _entry(at: int, fields: object) -> Entry:
    if not isinstance(fields, dict):
        raise RejectedError("not a JSON object")
    model, healthy = fields.get("model", ""), fields.get("healthy", False)
    if not isinstance(model, str) or not isinstance(healthy, bool):
        raise RejectedError("model must be a text, and healthy true or false")
    return Entry(
        named(fields.get("uuid"), "uuid"),
        at,
        bounded(fields.get("totalDevCount", 0), "totalDevCount"),
        bounded(fields.get("totalVRam", 0), "totalVRam"),
        bounded(fields.get("totalCompute", 0), "totalCompute"),
        model,
        max(bounded(fields.get("numa", 0), "numa", least=-1), 0),
        healthy,
    )


def read_profiles(found: Iterable[object]) -> Iterator[MigProfile | RejectedError]:
    """Yield each profile, or the error of an invalid profile."""
    for at, fields in enumerate(found):
        try:
            yield _profile(fields)
        except RejectedError as error:
            yield RejectedError(f"MIG profile {at}: {error}")


def _profile(fields: object) -> MigProfile:
    if not isinstance(fields, dict):
        raise RejectedError("not a JSON object")
    places = fields.get("placements") or []
    if not isinstance(places, list) or not places:
        raise RejectedError("no list of placements")
    spans = [_place(place) for place in places]
    size = spans[0][1]
    if any(other != size for _, other in spans):
        raise RejectedError("its placements are of different sizes")
    return MigProfile(
        named(fields.get("name"), "name"),
        bounded(fields.get("memoryMB", 0), "memoryMB", least=1),
        bounded(fields.get("core", 0), "core") * MILLI_PER_PERCENT_POINT,
        bounded(fields.get("sliceCount", 0), "sliceCount"),
        size,
        tuple(start for start, _ in spans),
    )


def _place(fields: object) -> tuple[int, int]:
    """Return start and size of a placement."""
    if not isinstance(fields, dict):
        raise RejectedError("a placement is not JSON object")
    return bounded(fields.get("start", 0), "start"), bounded(fields.get("size", 0), "size", least=1)


CORDONED = Reason("cordoned_by", who=CORDON_KEY)

_ONE_OF_A_KIND = re.compile(r"(?:[0-9A-Fa-f]-?){16}")
"""Pattern of globally unique IDs: they contain at least 16 hexadecimal digits."""


def read(node: NodeObject, findings: Findings, *, nvidia: bool = True) -> None:
    """Find the cards of all registers on a node; skip the register of NVIDIA if `nvidia` is False."""
    annotations = node.metadata.annotations
    cordoned = frozenset(uuid.strip() for uuid in annotations.get(CORDON_KEY, "").split(","))
    for vendor in registered(annotations, findings.options):
        if nvidia or not vendor.nvidia:
            _read_vendor(vendor, list(read_register(annotations[vendor.key])), node, cordoned, findings)
    if METAX_KEY in annotations:
        vendor = Vendor(METAX_KEY, "", METAX_SLICES)
        _read_vendor(vendor, list(read_metax_register(annotations[METAX_KEY])), node, cordoned, findings)


def has_nvidia(node: NodeObject) -> bool:
    """Report whether HAMi registers NVIDIA cards on a node."""
    return NVIDIA_KEY in node.metadata.annotations


def _read_vendor(
    vendor: Vendor,
    entries: list[Entry | RejectedError],
    node: NodeObject,
    cordoned: frozenset[str],
    findings: Findings,
) -> None:
    known = [entry for entry in entries if isinstance(entry, Entry)]
    unserved = _unserved(vendor, node, known, findings)
    for entry in entries:
        if isinstance(entry, RejectedError):
            findings.broken(vendor.key, str(entry))
        else:
            _add(vendor, entry, unserved, entry.id in cordoned, findings)
    if node.metadata.annotations.get(vendor.handshake, "").startswith("Deleted"):
        findings.uncertain(vendor.handshake, "HAMi gave up on this node's plugin; it may not place pods here")


def _unserved(vendor: Vendor, node: NodeObject, entries: list[Entry], findings: Findings) -> str:
    """Return the reason why a register is stale; empty if it is served.

    A register remains after its plugin stops.
    """
    amounts = Amounts(node, findings)
    name = vendor.terms.count
    if not vendor.nvidia and not amounts.mentions(name):
        if entries:
            findings.uncertain(vendor.key, f"the node has no {name}; it is unknown whether the plugin still runs")
        return ""
    if not entries:
        return ""
    if amounts.allocatable(name) <= 0:
        reason = Reason("renamed_or_not_served", resource=name) if vendor.nvidia else not_served(name)
        findings.unusable(vendor.key, reason)
        return reason
    shares = sum(entry.count for entry in entries)
    if vendor.nvidia and amounts.capacity(name) == len(entries) < shares:
        text = f"{shares} shares are registered, but {name} is {len(entries)}: another plugin may count whole cards"
        findings.uncertain(vendor.key, text)
    return ""


def _add(vendor: Vendor, entry: Entry, unserved: str, cordoned: bool, findings: Findings) -> None:
    terms = vendor.terms
    where = f"{vendor.key}: {entry.id}"
    mode, profiles, closed = _mode(vendor, entry, where, findings)
    reason = CORDONED if cordoned else unserved or ("" if entry.healthy else unhealthy(vendor.key)) or closed
    cores = vendor.whole_cores or entry.cores or 100
    unique = vendor.nvidia or _ONE_OF_A_KIND.search(entry.id)
    device = Device(
        entry.id if unique else findings.own_device(entry.id),
        entry.index,
        nvidia_model(entry.type) if vendor.nvidia else entry.type or terms.vendor,
        entry.memory,
        terms.vendor,
        entry.cores * MILLI_PER_PERCENT_POINT if vendor.core_unit is CoreUnit.PERCENT else WHOLE_DEVICE_MILLI,
        entry.count,
        entry.numa,
        entry.healthy and not unserved,
        cordoned or bool(closed),
        mode or DeviceMode.HAMI_CORE,
        profiles,
        mig_single_device=mode is DeviceMode.MIG,
        core_steps=core_steps(cores, vendor.core_unit),
        memory_step_mib=terms.memory_unit_mib,
        reason=reason,
    )
    adds = _init_adds(vendor, entry)
    findings.add(where, device, Access(device.uuid, entry.id, terms, cores, vendor.core_unit, init_adds=adds))


def _init_adds(vendor: Vendor, entry: Entry) -> bool:
    """Report whether HAMi may add the use of init containers to that of other containers, as v2.9 does.

    v2.10 uses the larger of the two; earlier versions allocate nothing to init containers. Only NVIDIA's register
    shows the version. For other vendors, the sum covers both cases.
    """
    return not vendor.nvidia or entry.pair_scores is not None


def _mode(
    vendor: Vendor, entry: Entry, where: str, findings: Findings
) -> tuple[DeviceMode | None, tuple[MigProfile, ...], str]:
    """Return the sharing mode of a card; return None and the reason if Seaway cannot place workloads on it."""
    if not vendor.nvidia or entry.mode in {"", HAMI_CORE}:
        return DeviceMode.HAMI_CORE, (), ""
    if entry.mode == DeviceMode.MPS.value:
        return DeviceMode.MPS, (), ""
    if entry.mode != DeviceMode.MIG.value:
        return None, (), _closed(Reason("mode_unknown", mode=entry.mode[:60]), where, findings)
    profiles: dict[str, MigProfile] = {}
    for profile in read_profiles(entry.profiles):
        if isinstance(profile, RejectedError):
            findings.broken(where, str(profile))
        else:
            profiles.setdefault(profile.name, profile)
    if not profiles:
        return None, (), _closed(Reason("mig_without_profiles"), where, findings)
    return DeviceMode.MIG, tuple(profiles.values()), ""


def _closed(why: Reason, where: str, findings: Findings) -> Reason:
    findings.unusable(where, f"{why}; no new work is placed on the card")
    return why
