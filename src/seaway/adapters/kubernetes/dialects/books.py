"""What a pod's records come to, container by container."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from seaway.adapters.kubernetes.dialects.records import (
    MIG_RECORD,
    VOLCANO_RECORD,
    MigAllocation,
    Record,
    Taken,
    mig_allocations,
)
from seaway.adapters.kubernetes.dialects.views import Held, NodeView, Trouble, TroubleKind
from seaway.adapters.kubernetes.objects.pod import PodObject
from seaway.domain.device import MILLI_PER_PERCENT_POINT, MigProfile


def held_by_records(
    pod: PodObject, found: Sequence[Record], view: NodeView | None, troubles: list[Trouble]
) -> list[Held]:
    """Return the devices that a pod holds by its records.

    Where the records tell containers apart, init containers and the others share: of each device the larger of the
    largest init container and the sum of the others counts, and nothing of init containers that have all ended.
    Otherwise, and of devices of which a version of HAMi gives out that does not let them share, all is added up.
    """
    held: list[Held] = []
    instances, broken = mig_allocations(pod.metadata.annotations)
    troubles += broken
    for record in found:
        troubles += record.troubles
        first = _first_container(pod, record)
        shares = [_held(taken, first, record, view) for taken in record.taken]
        if record.key != VOLCANO_RECORD:
            shares = _with_instances(record.taken, shares, instances)
        held += shares if first is None else _collapsed(pod, shares, view)
    held += _alone(instances, view, troubles)
    return held


def _first_container(pod: PodObject, record: Record) -> int | None:
    """Return which container a record's first slot is, init containers first; None when the slots tell nothing.

    HAMi v2.10.0 leaves slots without devices out, so that a record of another length than the pod's says only which
    devices the pod holds.
    """
    init, apps = len(pod.spec.init_containers), len(pod.spec.containers)
    if record.slots == init + apps:
        return 0
    return init if record.key == VOLCANO_RECORD and record.slots == apps else None


def _held(taken: Taken, first: int | None, record: Record, view: NodeView | None) -> Held:
    container = -1 if first is None else first + taken.slot
    access = view.by_native.get(taken.id) if view else None
    if access is None:
        return Held(container, taken.id, taken.memory, taken.cores * MILLI_PER_PERCENT_POINT)
    unit = access.terms.record_unit_mib if record.key == VOLCANO_RECORD else 1
    return Held(container, access.uuid, taken.memory * unit, access.core_milli(taken.cores))


def _with_instances(taken: Sequence[Taken], shares: list[Held], instances: list[MigAllocation]) -> list[Held]:
    """Give shares their MIG instances, by place where that fits and else by card; what is used is taken out."""
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


def _alone(instances: Sequence[MigAllocation], view: NodeView | None, troubles: list[Trouble]) -> list[Held]:
    """Return MIG instances that no record goes with; they are there, so they are held."""
    held = []
    for instance in instances:
        text = f"an instance of card {instance.uuid} is not among the allocated devices"
        troubles.append(Trouble(TroubleKind.UNCERTAIN, MIG_RECORD, text))
        profile = _profile(instance, view)
        memory_mib, core_milli = (profile.memory_mib, profile.core_milli) if profile else (0, 0)
        held.append(Held(-1, instance.uuid, memory_mib, core_milli, instance.profile, instance.start))
    return held


def _profile(instance: MigAllocation, view: NodeView | None) -> MigProfile | None:
    device = view.devices.get(instance.uuid) if view else None
    profiles = device.mig_profiles if device else ()
    return next((profile for profile in profiles if profile.name == instance.profile), None)


def _collapsed(pod: PodObject, shares: Sequence[Held], view: NodeView | None) -> list[Held]:
    """Let init containers share with the others, but for MIG instances and devices of which all is added up."""
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
        _raise_to(staying, uuid, peak)
    return staying


def _raise_to(staying: list[Held], uuid: str, peak: Held) -> None:
    """Raise what is held of a device to what its init containers need, without another share."""
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
    """Tell whether all init containers but sidecars have ended well."""
    ended = {
        status.name
        for status in pod.status.init_container_statuses
        if status.state.terminated is not None and status.state.terminated.exit_code == 0
    }
    return all(container.name in ended for container in pod.spec.init_containers if not container.sidecar)
