"""Resource claims: which devices each was given."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seaway.adapters.kubernetes import quantities
from seaway.adapters.kubernetes.dialects.sizes import LARGEST
from seaway.adapters.kubernetes.dialects.views import Access, Held, NodeView, Part, Trouble, TroubleKind
from seaway.adapters.kubernetes.objects.claim import ClaimResult, ResourceClaim
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError


@dataclass(frozen=True, slots=True)
class ClaimView:
    """What a claim holds on one node.

    Attributes
    ----------
    name
        ``namespace/name``.
    users
        Uids of the pods that may use it, in order; without any it still holds, until it is deallocated.
    """

    name: str
    held: tuple[Held, ...] = ()
    users: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()


def read_claim(claim: ResourceClaim, view: NodeView) -> ClaimView:
    """Read which of a node's devices a claim holds; those given for administration only are not held."""
    name = f"{claim.metadata.namespace}/{claim.metadata.name}"
    results = claim.status.allocation.devices.results if claim.status.allocation else ()
    held: list[Held] = []
    troubles: list[Trouble] = []
    for result in results:
        found = view.by_part.get((result.driver, result.pool, result.device))
        if found is None or result.admin_access:
            continue
        try:
            held.append(replace(_held(result, *found, view.devices[found[0].uuid]), claim=name))
        except RejectedError as error:
            troubles.append(Trouble(TroubleKind.BROKEN, f"claim {name}: {result.device}", f"{error}; all is held"))
            held.append(replace(_all(view.devices[found[0].uuid]), claim=name))
    users = tuple(user.uid for user in claim.status.reserved_for if user.resource in {"", "pods"})
    return ClaimView(name, tuple(held), users, tuple(troubles))


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
