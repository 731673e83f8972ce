"""Node and device selection of pods, and device requests, in the terms of each device plugin.

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
from seaway.adapters.kubernetes.templates.manifest import Group, Path, Pin
from seaway.adapters.kubernetes.templates.names import DEVICES
from seaway.domain.device import MILLI_PER_PERCENT_POINT, WHOLE_DEVICE_MILLI, DeviceMode
from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job import GpuTopology, ResourceRequest
from seaway.domain.placement import DeviceSlice
from seaway.domain.reasons import Reason

HOSTNAME = "kubernetes.io/hostname"
"""Label that selects a node."""

MODES = {"nvidia.com/use-gpuuuid": "nvidia.com/vgpu-mode", "volcano.sh/vgpu-use-gpuuuid": "volcano.sh/vgpu-mode"}
"""Annotation of the sharing mode, by the annotation that selects devices."""

POLICIES = {"nvidia.com/use-gpuuuid": "hami.io/gpu-scheduler-policy"}
"""Annotation of the policy that chooses devices, by the annotation that selects devices."""

VOLCANO_PIN = "volcano.sh/vgpu-use-gpuuuid"
"""Annotation of Volcano that selects devices, since 1.14; older versions ignore it."""

BY_SIZE = frozenset({"enflame.com/drs-gcu"})
"""Devices that are requested only by memory and cores, one per replica, identified by their slice resource."""

TOTALS = frozenset({"mthreads.com/vgpu"})
"""Devices whose memory and cores are requested as a sum, identified by the resource that counts them."""

AT_LEAST_ONE = frozenset({"amd.com/gpucores"})
"""Core resources whose request may not be 0, because HAMi would then allocate all cores."""

Accesses = Callable[[str, str], Access | None]
"""Function that returns the access to a device, by node and device; None if the device is gone."""


class NotThereError(RejectedError):
    """Error for a placement on a node or device that no longer exists. Another placement may succeed."""


@dataclass(frozen=True)
class Devices:
    """Devices of a group with their accesses.

    Attributes
    ----------
    terms
        Their common resources; those of the first device if a device plugin counts several kinds.
    parts
        Device shares of a replica, for each part.
    """

    terms: DeviceResources
    parts: tuple[tuple[tuple[DeviceSlice, Access], ...], ...]

    @property
    def all(self) -> tuple[tuple[DeviceSlice, Access], ...]:
        """Device shares of all parts."""
        return tuple(taken for part in self.parts for taken in part)

    @property
    def selector(self) -> dict[str, str]:
        """Node labels that pods with these devices must select."""
        return {label: value for _, access in self.all for label, value in access.selector.items()}

    @property
    def instances(self) -> bool:
        """True if the devices are MIG instances."""
        return any(taken.mig_profile for taken, _ in self.all)


def devices_of(group: Group, accesses: Accesses) -> Devices | None:
    """Return the devices of a group; None if it has none.

    Raises
    ------
    RejectedError
        When a device is gone, or the devices of one replica are requested in different ways.
    """
    parts = tuple(
        tuple((taken, _access(accesses, each.node, taken.uuid)) for taken in each.slices) for each in group.places()
    )
    terms = [access.resources for part in parts for _, access in part]
    if not terms:
        return None
    counted = all(each.plugin is DevicePlugin.COUNTING for each in terms)
    if (not counted and len(set(terms)) > 1) or len({len(part) for part in parts}) > 1:
        raise RejectedError(Reason("modes_differ"))
    return Devices(terms[0], parts)


def device_limits(devices: Devices, request: ResourceRequest) -> dict[str, str]:
    """Return the resource limits of a replica's container; empty for resource claims."""
    terms = devices.terms
    if terms.plugin is DevicePlugin.DRA:
        return {}
    if terms.plugin is DevicePlugin.COUNTING:
        amounts: Counter[str] = Counter()
        for _, access in devices.parts[0]:
            amounts[access.resources.count] += access.units
        return {name: str(amount) for name, amount in amounts.items()}
    each = len(devices.parts[0])
    times = each if terms.count in TOTALS else 1
    limits = {} if terms.count in BY_SIZE else {terms.count: str(each)}
    if terms.count in BY_SIZE and each > 1:
        raise RejectedError(Reason("one_device_only", vendor=terms.vendor), where="resources.gpus")
    if terms.memory:
        limits |= _memory(devices, request, times)
    cores = times * _cores(devices, request)
    whole = devices.parts[0][0][1]
    if whole.core_unit is CoreUnit.BITS:  # cards are requested by number or by cores, never both
        return limits if cores >= whole.cores else {terms.cores: str(each * cores)}
    if terms.cores and (cores or terms.cores not in AT_LEAST_ONE):
        limits[terms.cores] = str(cores)
    return limits


def node_pin(group: Group, hostname: Callable[[str], str], labels: dict[str, str], spec: Path) -> Pin:
    """Return the pin of a pod template to its nodes.

    Parameters
    ----------
    hostname
        Maps a node's name to its label.
    labels
        Other required labels of the node.
    spec
        Path of the pod template's spec.

    Notes
    -----
    A pin to several nodes only lists them. The cluster's scheduler assigns the replicas to these nodes.
    """
    hosts = sorted({hostname(node) for node in group.nodes})
    if len(hosts) == 1:
        return Pin((*spec, "nodeSelector"), {**labels, HOSTNAME: hosts[0]})
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hosts}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return Pin((*spec, "affinity"), {"nodeAffinity": required})


def device_pins(devices: Devices, annotations: Path, topology: GpuTopology = GpuTopology.ANY) -> tuple[Pin, ...]:
    """Return the annotations that select the devices, or record the reserved devices if the plugin cannot select.

    Parameters
    ----------
    annotations
        Path of the pod template's annotations.
    topology
        Connection between the devices of a replica. HAMi applies it too, if it chooses from several replicas' devices.
    """
    if devices.terms.plugin is DevicePlugin.COUNTING:
        return (Pin((*annotations, DEVICES), ",".join(sorted({access.uuid for _, access in devices.all}))),)
    pin = devices.terms.pin or (VOLCANO_PIN if devices.terms.plugin is DevicePlugin.VOLCANO else "")
    if not pin or devices.terms.plugin is DevicePlugin.DRA:
        return ()
    ids = sorted({access.plugin_id or access.uuid for _, access in devices.all})
    pins = [Pin((*annotations, pin), ",".join(ids))]
    if devices.instances and pin in MODES:
        pins.append(Pin((*annotations, MODES[pin]), DeviceMode.MIG.value))
    if topology is not GpuTopology.ANY and pin in POLICIES:
        pins.append(Pin((*annotations, POLICIES[pin]), "topology-aware"))
    return tuple(pins)


def _access(accesses: Accesses, node: str, uuid: str) -> Access:
    access = accesses(node, uuid)
    if access is None:
        raise NotThereError(f"node {node!r} has no device {uuid!r} any more")
    return access


def _memory(devices: Devices, request: ResourceRequest, times: int) -> dict[str, str]:
    """Return the memory request, one number for all devices.

    MIG instances request the memory of their profile, so that the smallest fitting profile is that profile. If two
    profiles differ, the smaller number lets the device plugin choose as Seaway does: the smallest profile with room.
    """
    terms = devices.terms
    amounts = {taken.memory_mib for taken, _ in devices.all}
    if len(amounts) > 1 and not devices.instances:
        percent = request.filled().gpu_memory_percent
        if not percent or not terms.memory_percent:
            raise InvariantError(f"one request cannot have devices with {sorted(amounts)} MiB of memory")
        return {terms.memory_percent: str(percent)}
    return {terms.memory: str(times * -(-min(amounts) // terms.memory_unit_mib))}


def _cores(devices: Devices, request: ResourceRequest) -> int:
    """Return the core request for each device, in the plugin's unit.

    For a MIG instance, use the job's request. Seven instances of the smallest profile count for more than a device, so
    the seventh could not get its nominal cores.
    """
    taken = [request.filled().gpu_milli] if devices.instances else [each.core_milli for each, _ in devices.all]
    milli = min(max(taken), WHOLE_DEVICE_MILLI)
    access = devices.parts[0][0][1]
    if access.core_unit is CoreUnit.PERCENT:
        return -(-milli // MILLI_PER_PERCENT_POINT)
    return -(-milli * access.cores // WHOLE_DEVICE_MILLI)


CLAIM = "devices"
"""Name of the claim in a pod."""

NVIDIA_MIG = "mig.nvidia.com"
"""Device class of NVIDIA's MIG instances; other classes have the name of their driver."""

Taken = tuple[DeviceSlice, Access]


def claim_spec(devices: Devices) -> dict[str, Any]:
    """Return the spec of a ResourceClaimTemplate: a request for each device of a replica, without selection."""
    requests = [{"name": f"device-{place}", "exactly": _exactly(taken)} for place, taken in enumerate(devices.parts[0])]
    return {"spec": {"devices": {"requests": requests}}}


def claim_pins(devices: Devices) -> tuple[Pin, ...]:
    """Return the pins of each request to its device.

    If several parts share a template, each request matches any device of the group.
    """
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
    """Return a CEL expression that matches any of the candidates."""
    reported = dict.fromkeys(map(_is, candidates))
    return next(iter(reported)) if len(reported) == 1 else " || ".join(f"({each})" for each in reported)


def _is(taken: Taken) -> str:
    """Return a CEL expression that matches one device.

    A static MIG instance has its own ID; a dynamic one has only the ID of its card. If the card's ID is unknown, Seaway
    created one with slashes. The expression then contains only the profile.
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
    """Return a CEL text literal. It has the syntax of JSON."""
    return json.dumps(value)
