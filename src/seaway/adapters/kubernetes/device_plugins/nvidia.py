"""NVIDIA's device plugin and the labels of its feature discovery: the number of cards, without identities.

The ID of a card or MIG instance consists of its node's name and a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seaway.adapters.kubernetes.device_plugins.findings import Findings
from seaway.adapters.kubernetes.device_plugins.resources import MAX_CARDS, Amounts
from seaway.adapters.kubernetes.device_plugins.vendors import (
    UNKNOWN_NVIDIA,
    compute_slices,
    nvidia_label_model,
    profile_slices,
)
from seaway.adapters.kubernetes.device_plugins.views import Access, DevicePlugin, DeviceResources
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.domain.device import WHOLE_DEVICE_MILLI, Device, DeviceMode, MigProfile
from seaway.domain.reasons import Reason

WHOLE = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_INSTANCE = re.compile(r"nvidia\.com/(mig-(.+?))(?:\.shared)?")
_SUFFIX = re.compile(r"-MIG-(.+)$")


@dataclass(frozen=True, slots=True)
class _Kind:
    """Devices of one resource: cards, or MIG instances of one profile.

    Attributes
    ----------
    replicas
        Number of pods that may share a device.
    labelled
        Number of devices in the labels; None without such a label.
    """

    resource: str
    model: str
    memory_mib: int
    replicas: int
    labelled: int | None
    mps: bool = False
    profile: str = ""
    every_card: bool = False
    """True if `labelled` also counts cards that are partitioned into instances."""


def read(node: NodeObject, findings: Findings) -> None:
    """Find the cards and instances that the plugin counts in a node's status."""
    amounts = Amounts(node, findings)
    resources = sorted({*node.status.allocatable, *node.status.capacity})
    for resource in resources:
        if resource in WHOLE and (amounts.capacity(resource) or amounts.allocatable(resource)):
            _count(_cards(resource, node, findings), amounts, findings)
        elif (found := _INSTANCE.fullmatch(resource)) and amounts.capacity(resource):
            _count(_instances(resource, found[1], found[2], node, findings), amounts, findings)


def _cards(resource: str, node: NodeObject, findings: Findings) -> _Kind | None:
    labels = node.metadata.labels
    product = labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
    cut = _SUFFIX.search(product)
    profile = cut[1] if cut else ""
    if profile == "INVALID":
        findings.unusable(resource, "the node's MIG instances do not match its strategy; all are ignored")
        return None
    if not product:
        findings.uncertain(resource, "no label names the cards; they count without model and memory")
    return _Kind(
        resource,
        nvidia_label_model(product[: cut.start()] if cut else product),
        _number(labels, "nvidia.com/gpu.memory", findings) or 0,
        max(_number(labels, "nvidia.com/gpu.replicas", findings) or 1, 1),
        _number(labels, "nvidia.com/gpu.count", findings),
        labels.get("nvidia.com/gpu.sharing-strategy") == "mps",
        profile,
        labels.get("nvidia.com/mig.strategy") == "mixed",
    )


def _instances(resource: str, stem: str, profile: str, node: NodeObject, findings: Findings) -> _Kind:
    labels, prefix = node.metadata.labels, f"nvidia.com/{stem}"
    product = _SUFFIX.sub("", labels.get(f"{prefix}.product", "") or labels.get("nvidia.com/gpu.product", ""))
    if f"{prefix}.memory" not in labels:
        findings.uncertain(resource, "no label has the size of the instances; they count without memory")
    return _Kind(
        resource,
        nvidia_label_model(product.removesuffix("-SHARED")),
        _number(labels, f"{prefix}.memory", findings) or 0,
        max(_number(labels, f"{prefix}.replicas", findings) or 1, 1),
        _number(labels, f"{prefix}.count", findings),
        labels.get(f"{prefix}.sharing-strategy", labels.get("nvidia.com/gpu.sharing-strategy")) == "mps",
        profile,
    )


def _number(labels: dict[str, str], key: str, findings: Findings) -> int | None:
    """Return the number in a label; None without the label."""
    text = labels.get(key)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    findings.broken(key, f"{text[:60]!r} is not a number")
    return None


def _count(kind: _Kind | None, amounts: Amounts, findings: Findings) -> None:
    """Add the devices of one resource, the last ones as not allocatable: the status does not identify them."""
    if kind is None:
        return
    allocatable = amounts.allocatable(kind.resource)
    total, rest = divmod(max(amounts.capacity(kind.resource), allocatable), kind.replicas)
    if total > MAX_CARDS:
        findings.broken(kind.resource, f"{total} cards are more than a node can have; all are ignored")
        return
    alive = min(allocatable // kind.replicas, total)
    if rest:
        findings.uncertain(kind.resource, f"its amount is not a multiple of the {kind.replicas} replicas in the labels")
    lacks = "" if alive >= total else Reason("few_allocatable", count=alive, total=total, resource=kind.resource)
    if lacks:
        findings.unusable(kind.resource, lacks)
    kind = _checked(kind, total, findings)
    for number in range(total):
        _add(kind, number, "" if number < alive else lacks, findings)


def _checked(kind: _Kind, total: int, findings: Findings) -> _Kind:
    """Compare the status with the labels, which describe only one model.

    Devices beyond the number in the label have an unknown model.
    """
    if kind.labelled is None or kind.labelled == total or (kind.every_card and kind.labelled > total):
        return kind
    text = f"{kind.labelled} by the labels, {total} by the node's status"
    if kind.labelled > total:
        findings.uncertain(kind.resource, text)
        return kind
    findings.uncertain(kind.resource, f"{text}: are there several models? They are counted, without model and memory")
    return _Kind(kind.resource, UNKNOWN_NVIDIA, 0, kind.replicas, total, kind.mps, kind.profile)


def _add(kind: _Kind, number: int, reason: str, findings: Findings) -> None:
    uuid = findings.own_device(f"mig-{kind.profile}-{number}" if kind.profile else f"gpu-{number}")
    core_milli = WHOLE_DEVICE_MILLI
    mode = DeviceMode.MPS if kind.mps else DeviceMode.SHARED if kind.replicas > 1 else DeviceMode.WHOLE
    profiles: tuple[MigProfile, ...] = ()
    slices = profile_slices(kind.profile)
    if kind.profile:
        core_milli = min(slices * WHOLE_DEVICE_MILLI // compute_slices(kind.model), WHOLE_DEVICE_MILLI)
        if kind.replicas == 1:
            mode = DeviceMode.MIG
            name = kind.profile.replace("gb.", "gb+")  # resources have no plus sign
            profiles = (MigProfile(name, kind.memory_mib, core_milli, slices, 1, (0,)),)
    device = Device(
        uuid,
        len(findings.devices),
        kind.model,
        kind.memory_mib,
        core_milli=core_milli,
        share_limit=kind.replicas,
        healthy=not reason,
        mode=mode,
        mig_profiles=profiles,
        even_shares=mode is not DeviceMode.MIG,
        reason=reason,
    )
    terms = DeviceResources(DevicePlugin.COUNTING, "NVIDIA", kind.resource, isolated=kind.replicas == 1 or kind.mps)
    findings.add(kind.resource, device, Access(uuid, "", terms))
