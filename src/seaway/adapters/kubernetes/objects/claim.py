"""Resource claims: what was given out of resource slices.

References
----------
Kubernetes API, v1.36: resource.k8s.io/v1.
"""

from __future__ import annotations

import msgspec

from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.objects.part import Part, Quantity


class ClaimResult(Part, frozen=True):
    """A device given to a claim; `consumed_capacity` only of devices that several claims may share."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    share_id: str = msgspec.field(default="", name="shareID")
    consumed_capacity: dict[str, Quantity] = {}


class ClaimDevices(Part, frozen=True):
    """The devices of an allocation."""

    results: tuple[ClaimResult, ...] = ()


class Allocation(Part, frozen=True):
    """What was given to a claim."""

    devices: ClaimDevices = ClaimDevices()
    allocation_timestamp: str = ""


class ClaimUser(Part, frozen=True):
    """Who may use a claim's devices; `resource` is ``pods``."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Part, frozen=True):
    """How far a claim is; without an allocation it holds nothing."""

    allocation: Allocation | None = None
    reserved_for: tuple[ClaimUser, ...] = ()


class ResourceClaim(Part, frozen=True):
    """A pod's claim to devices."""

    metadata: Meta = Meta()
    status: ClaimStatus = ClaimStatus()
