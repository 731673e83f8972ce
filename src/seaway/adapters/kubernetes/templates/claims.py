"""Devices that are asked for by ResourceClaims (Dynamic Resource Allocation).

References
----------
Kubernetes API v1.36, resource.k8s.io/v1; kubernetes-sigs/dra-driver-nvidia-gpu; HAMi-DRA ``pkg/webhook/dra``.
"""

from __future__ import annotations

import json
from typing import Any

from seaway.adapters.kubernetes.dialects.dra import WHOLE_PROFILE
from seaway.adapters.kubernetes.dialects.views import Access
from seaway.adapters.kubernetes.templates.manifest import Pin
from seaway.adapters.kubernetes.templates.pinning import Devices
from seaway.domain.device import MILLI_PER_PERCENT_POINT
from seaway.domain.placement import DeviceSlice

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
        return {"deviceClassName": access.terms.driver}
    cores = min(-(-share.core_milli // MILLI_PER_PERCENT_POINT), 100)
    amounts = {"cores": str(cores), "memory": f"{share.memory_mib}Mi"}
    return {"deviceClassName": access.terms.driver, "capacity": {"requests": amounts}}


def _expression(candidates: tuple[Taken, ...]) -> str:
    """Write in CEL that a device is one of those."""
    told = dict.fromkeys(map(_is, candidates))
    return next(iter(told)) if len(told) == 1 else " || ".join(f"({each})" for each in told)


def _is(taken: Taken) -> str:
    """Write in CEL that a device is this one.

    An instance that is there for good has an id; one that is cut when it is needed has only that of its card. A card
    of which not even that is known has an id that Seaway made, with slashes: there the profile has to do.
    """
    share, access = taken
    attributes = f"device.attributes[{_text(access.terms.driver)}]"
    uuid = _text(access.native or access.uuid)
    if not _is_instance(share) or len(access.parts) == 1:
        return f"{attributes}.uuid == {uuid}"
    profile = f"{attributes}.profile == {_text(share.mig_profile)}"
    return profile if "/" in uuid else f"{attributes}.parentUUID == {uuid} && {profile}"


def _is_instance(share: DeviceSlice) -> bool:
    return share.mig_profile not in ("", WHOLE_PROFILE)


def _text(value: str) -> str:
    """Write a text literal; JSON's are CEL's as well."""
    return json.dumps(value)
