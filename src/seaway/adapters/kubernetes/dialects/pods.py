"""Reading a pod: what it takes of its node, and whether it still does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from seaway.adapters.kubernetes.dialects import requests
from seaway.adapters.kubernetes.dialects.books import held_by_records
from seaway.adapters.kubernetes.dialects.claims import read_claim
from seaway.adapters.kubernetes.dialects.records import (
    HAMI_NODE,
    MIG_RECORD,
    NVIDIA_RECORD,
    VOLCANO_NODE,
    Record,
    records,
)
from seaway.adapters.kubernetes.dialects.sizes import LARGEST
from seaway.adapters.kubernetes.dialects.views import Dialect, Held, NodeView, PodView, Trouble, TroubleKind
from seaway.adapters.kubernetes.objects.claim import ResourceClaim
from seaway.adapters.kubernetes.objects.pod import PodObject
from seaway.domain.device import Device

OVER = frozenset({"Succeeded", "Failed"})
_COUNTED = frozenset({Dialect.NVIDIA_PLUGIN, Dialect.HAMI_STATUS})
"""Dialects in which devices may be taken by number alone."""

MOST_COUNTED = 1024
"""More devices than that no pod gets; a larger number must not fill the memory."""


def node_of(pod: PodObject) -> str:
    """Return where a pod is, or will be as its vGPU layer decided; empty while nobody has."""
    annotations = pod.metadata.annotations
    return pod.spec.node_name or annotations.get(HAMI_NODE, "") or annotations.get(VOLCANO_NODE, "")


def read_pod(pod: PodObject, view: NodeView | None, claims: Iterable[ResourceClaim] = ()) -> PodView:
    """Read what a pod takes.

    A pod holds its devices from the moment that the vGPU layer decided, before it is bound, until it has ended or is
    gone; that it is being deleted changes nothing.

    Parameters
    ----------
    view
        Its node; None when that is not known, which leaves ids as they stand in the records.
    claims
        Its resource claims. One that several pods use is held by the first that it is reserved for.
    """
    troubles: list[Trouble] = []
    found = records(pod.metadata.annotations)
    held = held_by_records(pod, found, view, troubles)
    if view is not None:
        if pod.spec.node_name and not found:
            held += _by_number(pod, view, troubles)
        for claim in claims:
            claimed = read_claim(claim, view)
            troubles += claimed.troubles
            if claimed.users[:1] == (pod.metadata.uid,):
                container = _container_of(pod, claim)
                held += [replace(each, container=container) for each in claimed.held]
    held = _sizeable(held, troubles)
    return PodView(
        node_of(pod),
        pod.status.phase not in OVER,
        tuple(held),
        requests.cpu_milli(pod.spec, troubles),
        requests.memory_mib(pod.spec, troubles),
        tuple(dict.fromkeys(troubles)),
        _final(pod, found),
    )


def _sizeable(held: list[Held], troubles: list[Trouble]) -> list[Held]:
    """Leave out what is more of a device than Seaway can count with."""
    if all(each.memory_mib <= LARGEST and each.core_milli <= LARGEST for each in held):
        return held
    kept = []
    for each in held:
        if each.memory_mib <= LARGEST and each.core_milli <= LARGEST:
            kept.append(each)
        else:
            text = f"{each.memory_mib} MiB and {each.core_milli} thousandths of it are more than there can be; left out"
            troubles.append(Trouble(TroubleKind.BROKEN, each.uuid, text))
    return kept


def _final(pod: PodObject, found: Sequence[Record]) -> bool:
    """Tell whether what was read stands whatever else is heard of the pod's node and claims.

    So do records of NVIDIA's cards under HAMi, which have the same ids and units as their node's register, but for
    MIG instances and init containers; and so does a pod that asks for nothing but what every node has.
    """
    if pod.spec.resource_claims or pod.metadata.annotations.get(MIG_RECORD):
        return False
    if found and pod.spec.init_containers:
        return False
    if found or not pod.spec.node_name:
        return all(each.key == NVIDIA_RECORD for each in found)
    return not any(
        "/" in name
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for name in (*container.resources.limits, *container.resources.requests)
    )


def _container_of(pod: PodObject, claim: ResourceClaim) -> int:
    """Return which container uses a claim, init containers first; -1 when none does, or several."""
    called = [(each.name, each.resource_claim_name) for each in pod.spec.resource_claims]
    called += [(each.name, each.resource_claim_name) for each in pod.status.resource_claim_statuses]
    names = {name for name, claimed in called if claimed == claim.metadata.name}
    users = [
        at
        for at, container in enumerate((*pod.spec.init_containers, *pod.spec.containers))
        if any(each.name in names for each in container.resources.claims)
    ]
    return users[0] if len(users) == 1 else -1


def _by_number(pod: PodObject, view: NodeView, troubles: list[Trouble]) -> list[Held]:
    """Return what a pod takes of devices of which it is not said which one."""
    samples: dict[str, Device] = {}
    for access in view.accesses:
        if access.terms.dialect in _COUNTED:
            samples.setdefault(access.terms.count, view.devices[access.uuid])
    numbers = {each: min(requests.devices(pod.spec, each, troubles), MOST_COUNTED) for each in samples}
    return [
        _share(device, resource, container)
        for resource, device in samples.items()
        for container in islice(requests.askers(pod.spec, resource), numbers[resource])
    ]


def _share(device: Device, resource: str, container: int) -> Held:
    """Return a container's even share of a device like this one."""
    profile = device.mig_profiles[0].name if device.mig_profiles else ""
    shares = max(device.share_limit, 1)
    return Held(
        container,
        "",
        device.memory_mib // shares,
        device.core_milli // shares,
        profile,
        0 if profile else -1,
        resource,
    )
