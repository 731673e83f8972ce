"""How pods are tied to nodes and devices, and ask for their shares, in the words of whatever shares devices out.

References
----------
HAMi v2.10 ``pkg/device``: selection by annotation, MIG profiles by memory, units. Volcano ``docs/user-guide``: vGPU.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seaway.adapters.kubernetes.device_plugins.dra import WHOLE_PROFILE
from seaway.adapters.kubernetes.device_plugins.views import Access, CoreUnit, DevicePlugin, DeviceResources
from seaway.adapters.kubernetes.templates.manifest import Path, Pin
from seaway.adapters.kubernetes.templates.names import DEVICES
from seaway.adapters.kubernetes.templates.parts import Group
from seaway.domain.device import MILLI_PER_PERCENT_POINT, WHOLE_DEVICE_MILLI, DeviceMode
from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job import ResourceRequest
from seaway.domain.placement import DeviceSlice

HOSTNAME = "kubernetes.io/hostname"
"""The label by which a node is chosen."""

MODES = {"nvidia.com/use-gpuuuid": "nvidia.com/vgpu-mode", "volcano.sh/vgpu-use-gpuuuid": "volcano.sh/vgpu-mode"}
"""By the annotation that chooses devices, the one that names a way of sharing."""

VOLCANO_PIN = "volcano.sh/vgpu-use-gpuuuid"
"""What Volcano has to choose devices by, since 1.14; where it is older nothing reads it."""

BY_SIZE = frozenset({"enflame.com/drs-gcu"})
"""Devices, by the resource that counts their slices, of which one is asked for by memory and cores alone."""

TOTALS = frozenset({"mthreads.com/vgpu"})
"""Devices, by the resource that counts them, whose memory and cores are asked for in sum rather than of each."""

AT_LEAST_ONE = frozenset({"amd.com/gpucores"})
"""Resources for cores that may not be 0; left out, HAMi takes all."""

Accesses = Callable[[str, str], Access | None]
"""From the names of a node and a device to how it is asked for; None for what is not there any more."""


class NotThereError(RejectedError):
    """A node or a device that was decided for is not there any more; others may do."""


@dataclass(frozen=True)
class Devices:
    """The devices of a group, with how to ask for them.

    Attributes
    ----------
    terms
        Common to all of them; where a device plugin counts several kinds, those of the first.
    parts
        For each part what a replica takes of each device.
    """

    terms: DeviceResources
    parts: tuple[tuple[tuple[DeviceSlice, Access], ...], ...]

    @property
    def all(self) -> tuple[tuple[DeviceSlice, Access], ...]:
        """What the replicas of all parts take."""
        return tuple(taken for part in self.parts for taken in part)

    @property
    def instances(self) -> bool:
        """Whether they are MIG instances."""
        return any(taken.mig_profile for taken, _ in self.all)


def devices_of(group: Group, accesses: Accesses) -> Devices | None:
    """Look up the devices of a group; None when it has none.

    Raises
    ------
    RejectedError
        When a device is gone, or one replica would have to ask in several ways at once.
    """
    parts = tuple(
        tuple((taken, _access(accesses, part.node, taken.uuid)) for taken in part.slices) for part in group.parts
    )
    terms = [access.resources for part in parts for _, access in part]
    if not terms:
        return None
    counted = all(each.plugin is DevicePlugin.NVIDIA_PLUGIN for each in terms)
    if (not counted and len(set(terms)) > 1) or len({len(part) for part in parts}) > 1:
        raise RejectedError("its devices are shared out in different ways: narrow resources.gpu_vendor or gpu_mode")
    return Devices(terms[0], parts)


def device_limits(devices: Devices, request: ResourceRequest) -> dict[str, str]:
    """Return the resources that a replica's container asks for; none where devices are claimed."""
    terms = devices.terms
    if terms.plugin is DevicePlugin.DRA:
        return {}
    if terms.plugin is DevicePlugin.NVIDIA_PLUGIN:
        return {
            name: str(count) for name, count in Counter(each.resources.count for _, each in devices.parts[0]).items()
        }
    each = len(devices.parts[0])
    times = each if terms.count in TOTALS else 1
    limits = {} if terms.count in BY_SIZE else {terms.count: str(each)}
    if terms.count in BY_SIZE and each > 1:
        raise RejectedError(f"{terms.vendor} gives a replica one device only", where="resources.gpus")
    if terms.memory:
        limits |= _memory(devices, request, times)
    cores = times * _cores(devices, request)
    whole = devices.parts[0][0][1]
    if whole.core_unit is CoreUnit.BITS:  # cards are asked for by number, or cores, never both
        return limits if cores >= whole.cores else {terms.cores: str(each * cores)}
    if terms.cores and (cores or terms.cores not in AT_LEAST_ONE):
        limits[terms.cores] = str(cores)
    return limits


def node_pin(group: Group, hostname: Callable[[str], str], labels: dict[str, str], spec: Path) -> Pin:
    """Tie a pod template to its nodes.

    Parameters
    ----------
    hostname
        From a node's name to its label.
    labels
        Others that the node has to carry.
    spec
        Where the pod template's spec is.

    Notes
    -----
    Several nodes can only be listed: which replica goes to which of them the cluster's scheduler decides.
    """
    hosts = sorted({hostname(node) for node in group.nodes})
    if len(hosts) == 1:
        return Pin((*spec, "nodeSelector"), {**labels, HOSTNAME: hosts[0]})
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hosts}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return Pin((*spec, "affinity"), {"nodeAffinity": required})


def device_pins(devices: Devices, annotations: Path) -> tuple[Pin, ...]:
    """Tie a pod template to its devices by annotations, where anybody heeds them; else note there which were booked.

    Parameters
    ----------
    annotations
        Where the pod template's annotations are.
    """
    if devices.terms.plugin is DevicePlugin.NVIDIA_PLUGIN:
        return (Pin((*annotations, DEVICES), ",".join(sorted({access.uuid for _, access in devices.all}))),)
    pin = devices.terms.pin or (VOLCANO_PIN if devices.terms.plugin is DevicePlugin.VOLCANO else "")
    if not pin or devices.terms.plugin is DevicePlugin.DRA:
        return ()
    ids = sorted({access.plugin_id or access.uuid for _, access in devices.all})
    pins = [Pin((*annotations, pin), ",".join(ids))]
    if devices.instances and pin in MODES:
        pins.append(Pin((*annotations, MODES[pin]), DeviceMode.MIG.value))
    return tuple(pins)


def _access(accesses: Accesses, node: str, uuid: str) -> Access:
    access = accesses(node, uuid)
    if access is None:
        raise NotThereError(f"node {node!r} has no device {uuid!r} any more")
    return access


def _memory(devices: Devices, request: ResourceRequest, times: int) -> dict[str, str]:
    """Say how much memory of each device, by one figure for all of them.

    Instances ask for the memory of their profile, whose smallest that fits is then that profile. Where two differ,
    the smaller figure lets the vGPU layer choose as Seaway did: the smallest profile that has room.
    """
    terms = devices.terms
    amounts = {taken.memory_mib for taken, _ in devices.all}
    if len(amounts) > 1 and not devices.instances:
        percent = request.filled().gpu_memory_percent
        if not percent or not terms.memory_percent:
            raise InvariantError(f"one figure cannot ask devices for {sorted(amounts)} MiB of memory")
        return {terms.memory_percent: str(percent)}
    return {terms.memory: str(times * -(-min(amounts) // terms.memory_unit_mib))}


def _cores(devices: Devices, request: ResourceRequest) -> int:
    """Say how much of each device's cores, in the dialect's unit.

    Of an instance only what was asked for: seven of the smallest book more than a device has, so the seventh would
    not get what its profile is said to be.
    """
    taken = [request.filled().gpu_milli] if devices.instances else [each.core_milli for each, _ in devices.all]
    milli = min(max(taken), WHOLE_DEVICE_MILLI)
    access = devices.parts[0][0][1]
    if access.core_unit is CoreUnit.PERCENT:
        return -(-milli // MILLI_PER_PERCENT_POINT)
    return -(-milli * access.cores // WHOLE_DEVICE_MILLI)


CLAIM = "devices"
"""What a pod calls its claim."""

NVIDIA_MIG = "mig.nvidia.com"
"""The class of NVIDIA's MIG instances; other classes are named like their driver."""

Taken = tuple[DeviceSlice, Access]


def claim_spec(devices: Devices) -> dict[str, Any]:
    """Return the spec of a ResourceClaimTemplate: a request for each device of a replica, not yet saying which."""
    requests = [{"name": f"device-{place}", "exactly": _exactly(taken)} for place, taken in enumerate(devices.parts[0])]
    return {"spec": {"devices": {"requests": requests}}}


def claim_pins(devices: Devices) -> tuple[Pin, ...]:
    """Tie each request to its device; where replicas of several parts share one template, to any of theirs."""
    return tuple(
        Pin(
            ("spec", "spec", "devices", "requests", place, "exactly", "selectors"),
            [{"cel": {"expression": _expression((taken,) if len(devices.parts) == 1 else devices.all)}}],
        )
        for place, taken in enumerate(devices.parts[0])
    )


def _exactly(taken: Taken) -> dict[str, Any]:
    share, access = taken
    if _is_instance(share):
        return {"deviceClassName": NVIDIA_MIG}
    if not access.shared:
        return {"deviceClassName": access.resources.driver}
    cores = min(-(-share.core_milli // MILLI_PER_PERCENT_POINT), 100)
    amounts = {"cores": str(cores), "memory": f"{share.memory_mib}Mi"}
    return {"deviceClassName": access.resources.driver, "capacity": {"requests": amounts}}


def _expression(candidates: tuple[Taken, ...]) -> str:
    """Write in CEL that a device is one of those."""
    told = dict.fromkeys(map(_is, candidates))
    return next(iter(told)) if len(told) == 1 else " || ".join(f"({each})" for each in told)


def _is(taken: Taken) -> str:
    """Write in CEL that a device is this one.

    An instance that is there permanently has an id; one that is cut when it is needed has only that of its card. A card
    of which not even that is known has an id that Seaway made, with slashes: there the profile has to do.
    """
    share, access = taken
    attributes = f"device.attributes[{_text(access.resources.driver)}]"
    uuid = _text(access.plugin_id or access.uuid)
    if not _is_instance(share) or len(access.parts) == 1:
        return f"{attributes}.uuid == {uuid}"
    profile = f"{attributes}.profile == {_text(share.mig_profile)}"
    return profile if "/" in uuid else f"{attributes}.parentUUID == {uuid} && {profile}"


def _is_instance(share: DeviceSlice) -> bool:
    return share.mig_profile not in ("", WHOLE_PROFILE)


def _text(value: str) -> str:
    """Write a text literal; JSON's are CEL's as well."""
    return json.dumps(value)
