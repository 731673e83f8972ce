"""Decoder of pods: the resources that a pod uses on its node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from seaway.adapters.kubernetes.device_plugins import resources as requests
from seaway.adapters.kubernetes.device_plugins.dra import read_claim
from seaway.adapters.kubernetes.device_plugins.findings import LARGEST
from seaway.adapters.kubernetes.device_plugins.records import (
    HAMI_NODE,
    MIG_RECORD,
    NVIDIA_RECORD,
    VOLCANO_NODE,
    VOLCANO_RECORD,
    MigAllocation,
    Record,
    Taken,
    mig_allocations,
    records,
)
from seaway.adapters.kubernetes.device_plugins.views import (
    Access,
    DevicePlugin,
    Held,
    NodeView,
    PodView,
    Problem,
    ProblemKind,
)
from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.adapters.kubernetes.objects.dra import ResourceClaim
from seaway.domain.device import MILLI_PER_PERCENT_POINT, Device, MigProfile


def held_by_records(
    pod: PodObject, found: Sequence[Record], view: NodeView | None, problems: list[Problem]
) -> list[Held]:
    """Return the devices in a pod's records.

    If the records distinguish containers, init containers share devices with the others. For each device, the larger of
    two values counts: the largest init container, or the sum of the others. Init containers that have all ended count
    as nothing.

    In other cases all values are added. This also applies to devices of HAMi versions without such sharing.
    """
    held: list[Held] = []
    instances, broken = mig_allocations(pod.metadata.annotations)
    problems += broken
    for record in found:
        problems += record.problems
        first = _first_container(pod, record)
        shares = [_held(taken, first, record, view) for taken in record.taken]
        if record.key != VOLCANO_RECORD:
            shares = _with_instances(record.taken, shares, instances)
        held += shares if first is None else _collapsed(pod, shares, view)
    held += _alone(instances, view, problems)
    return held


def _first_container(pod: PodObject, record: Record) -> int | None:
    """Return the container of a record's first slot, counting init containers first; None if the slots do not show it.

    HAMi v2.10.0 omits slots without devices. If a record and its pod have different lengths, the record shows only the
    devices.
    """
    init, apps = len(pod.spec.init_containers), len(pod.spec.containers)
    if record.slots == init + apps:
        return 0
    return init if record.key == VOLCANO_RECORD and record.slots == apps else None


def _held(taken: Taken, first: int | None, record: Record, view: NodeView | None) -> Held:
    container = -1 if first is None else first + taken.slot
    access = view.by_plugin_id.get(taken.id) if view else None
    if access is None:
        return Held(container, taken.id, taken.memory, taken.cores * MILLI_PER_PERCENT_POINT)
    unit = access.resources.record_unit_mib if record.key == VOLCANO_RECORD else 1
    return Held(container, access.uuid, taken.memory * unit, access.core_milli(taken.cores))


def _with_instances(taken: Sequence[Taken], shares: list[Held], instances: list[MigAllocation]) -> list[Held]:
    """Assign MIG instances to shares, by place if possible, else by card.

    Remove assigned instances from `instances`.
    """
    if not instances:
        return shares
    places: defaultdict[int, int] = defaultdict(int)
    open_shares: list[int] = []
    found: dict[int, MigAllocation] = {}
    for at, each in enumerate(taken):
        exact = next(
            (i for i in instances if (i.slot, i.place, i.uuid) == (each.slot, places[each.slot], each.id)), None
        )
        places[each.slot] += 1
        if exact is None:
            open_shares.append(at)
        else:
            found[at] = exact
            instances.remove(exact)
    for at in open_shares:
        same_card = next((instance for instance in instances if instance.uuid == taken[at].id), None)
        if same_card is not None:
            found[at] = same_card
            instances.remove(same_card)
    return [
        replace(share, mig_profile=found[at].profile, mig_start=found[at].start) if at in found else share
        for at, share in enumerate(shares)
    ]


def _alone(instances: Sequence[MigAllocation], view: NodeView | None, problems: list[Problem]) -> list[Held]:
    """Return MIG instances without a matching record. They exist, so the pod holds them."""
    held = []
    for instance in instances:
        text = f"an instance of card {instance.uuid} is not among the allocated devices"
        problems.append(Problem(ProblemKind.UNCERTAIN, MIG_RECORD, text))
        profile = _profile(instance, view)
        memory_mib, core_milli = (profile.memory_mib, profile.core_milli) if profile else (0, 0)
        held.append(Held(-1, instance.uuid, memory_mib, core_milli, instance.profile, instance.start))
    return held


def _profile(instance: MigAllocation, view: NodeView | None) -> MigProfile | None:
    device = view.devices.get(instance.uuid) if view else None
    profiles = device.mig_profiles if device else ()
    return next((profile for profile in profiles if profile.name == instance.profile), None)


def _collapsed(pod: PodObject, shares: Sequence[Held], view: NodeView | None) -> list[Held]:
    """Merge the shares of init containers with those of the others.

    MIG instances and devices whose shares add up are not merged.
    """
    if not pod.spec.init_containers:
        return list(shares)
    passing = {at for at, container in enumerate(pod.spec.init_containers) if not container.sidecar}
    adding = {access.uuid for access in view.accesses if access.init_adds} if view else frozenset()
    staying = [each for each in shares if each.container not in passing or each.mig_profile or each.uuid in adding]
    if _init_over(pod):
        return staying
    peaks: dict[str, Held] = {}
    for share in shares:
        if share.container in passing and not share.mig_profile and share.uuid not in adding:
            peak = peaks.get(share.uuid, share)
            peaks[share.uuid] = replace(
                peak,
                memory_mib=max(peak.memory_mib, share.memory_mib),
                core_milli=max(peak.core_milli, share.core_milli),
            )
    for uuid, peak in peaks.items():
        _raise_peak(staying, uuid, peak)
    return staying


def _raise_peak(staying: list[Held], uuid: str, peak: Held) -> None:
    """Raise a device's shares to the request of its init containers, without adding a share."""
    at = [i for i, share in enumerate(staying) if share.uuid == uuid and not share.mig_profile]
    if not at:
        staying.append(peak)
        return
    memory_mib = peak.memory_mib - sum(staying[i].memory_mib for i in at)
    core_milli = peak.core_milli - sum(staying[i].core_milli for i in at)
    first = staying[at[0]]
    staying[at[0]] = replace(
        first,
        memory_mib=first.memory_mib + max(memory_mib, 0),
        core_milli=first.core_milli + max(core_milli, 0),
    )


def _init_over(pod: PodObject) -> bool:
    """Report whether all init containers except sidecars have succeeded."""
    ended = {
        status.name
        for status in pod.status.init_container_statuses
        if status.state.terminated is not None and status.state.terminated.exit_code == 0
    }
    return all(container.name in ended for container in pod.spec.init_containers if not container.sidecar)


OVER = frozenset({"Succeeded", "Failed"})
_COUNTED = frozenset({DevicePlugin.COUNTING, DevicePlugin.HAMI_STATUS})
"""Device plugins that may report devices only by number."""

MAX_COUNTED = 1024
"""Maximum number of devices of a pod, which limits the memory that a wrong number can use."""


def node_of(pod: PodObject) -> str:
    """Return the node of a pod, or the node that its vGPU scheduler chose; empty without either."""
    annotations = pod.metadata.annotations
    return pod.spec.node_name or annotations.get(HAMI_NODE, "") or annotations.get(VOLCANO_NODE, "")


def read_pod(pod: PodObject, view: NodeView | None, claims: Iterable[ResourceClaim] = ()) -> PodView:
    """Decode a pod's use of its node.

    A pod holds its devices from the decision of the vGPU scheduler, before it is bound, until it ends or is gone. A
    terminating pod still holds them.

    Parameters
    ----------
    view
        Node of the pod; None if it is unknown. IDs then stay as in the records.
    claims
        Resource claims of the pod. The first pod in ``reservedFor`` holds a claim that several pods use.
    """
    problems: list[Problem] = []
    found = records(pod.metadata.annotations)
    held = held_by_records(pod, found, view, problems)
    if view is not None:
        if pod.spec.node_name and not found:
            held += _by_number(pod, view, problems)
        for claim in claims:
            claimed = read_claim(claim, view)
            problems += claimed.problems
            if claimed.users[:1] == (pod.metadata.uid,):
                container = _container_of(pod, claim)
                held += [replace(each, container=container) for each in claimed.held]
    held = _sizeable(held, problems)
    return PodView(
        node_of(pod),
        pod.status.phase not in OVER,
        tuple(held),
        requests.cpu_milli(pod.spec, problems),
        requests.memory_mib(pod.spec, problems),
        tuple(dict.fromkeys(problems)),
        _final(pod, found),
    )


def _sizeable(held: list[Held], problems: list[Problem]) -> list[Held]:
    """Skip shares that exceed the limits."""
    if all(each.memory_mib <= LARGEST and each.core_milli <= LARGEST for each in held):
        return held
    retained = []
    for each in held:
        if each.memory_mib <= LARGEST and each.core_milli <= LARGEST:
            retained.append(each)
        else:
            text = f"{each.memory_mib} MiB and {each.core_milli} thousandths of it are more than there can be; left out"
            problems.append(Problem(ProblemKind.BROKEN, each.uuid, text))
    return retained


def _final(pod: PodObject, found: Sequence[Record]) -> bool:
    """Report whether later changes of the node and claims cannot affect the result.

    This applies to HAMi's records of NVIDIA cards, which use the IDs and units of the register, except with MIG
    instances and init containers. It also applies to a pod that requests only resources that every node has.
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
    """Return the container that uses a claim, counting init containers first; -1 for none or several."""
    called = [(each.name, each.resource_claim_name) for each in pod.spec.resource_claims]
    called += [(each.name, each.resource_claim_name) for each in pod.status.resource_claim_statuses]
    names = {name for name, claimed in called if claimed == claim.metadata.name}
    users = [
        at
        for at, container in enumerate((*pod.spec.init_containers, *pod.spec.containers))
        if any(each.name in names for each in container.resources.claims)
    ]
    return users[0] if len(users) == 1 else -1


def _by_number(pod: PodObject, view: NodeView, problems: list[Problem]) -> list[Held]:
    """Return a pod's use of devices that are known only by number."""
    samples: dict[str, Access] = {}
    for access in view.accesses:
        if access.resources.plugin in _COUNTED:
            samples.setdefault(access.resources.count, access)
    held = []
    for resource, access in samples.items():
        number = min(-(-requests.devices(pod.spec, resource, problems) // access.units), MAX_COUNTED)
        containers = islice(requests.requesting_containers(pod.spec, resource), number)
        held += [_share(view.devices[access.uuid], resource, container) for container in containers]
    return held


def _share(device: Device, resource: str, container: int) -> Held:
    """Return a container's share of such a device. All shares of a device are equal."""
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
