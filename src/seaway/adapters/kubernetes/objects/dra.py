"""Resource slices and claims of Dynamic Resource Allocation.

References
----------
Kubernetes API, v1.36: resource.k8s.io/v1.
"""

from __future__ import annotations

import msgspec

from seaway.adapters.kubernetes.objects.core import Meta, Part, Quantity, TaintMark


class Attribute(Part, frozen=True):
    """Property of a device; at most one of the four fields is set."""

    text: str | None = msgspec.field(default=None, name="string")
    whole: int | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    version: str | None = None


class Amount(Part, frozen=True):
    """Capacity of a device, or a counter."""

    value: Quantity = "0"


class CounterSet(Part, frozen=True):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Amount] = {}


class CounterUse(Part, frozen=True):
    """Counters that a device uses while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Amount] = {}


class SliceDevice(Part, frozen=True):
    """A device in a resource slice."""

    name: str = ""
    attributes: dict[str, Attribute] = {}
    capacity: dict[str, Amount] = {}
    consumes_counters: tuple[CounterUse, ...] = ()
    taints: tuple[TaintMark, ...] = ()
    allow_multiple_allocations: bool = False
    node_name: str = ""


class ResourcePool(Part, frozen=True):
    """Pool of a slice, its generation, and the number of slices in that generation."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Part, frozen=True):
    """Specification of a slice."""

    driver: str = ""
    node_name: str = ""
    pool: ResourcePool = ResourcePool()
    devices: tuple[SliceDevice, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Part, frozen=True):
    """Devices that a driver offers."""

    metadata: Meta = Meta()
    spec: SliceSpec = SliceSpec()


class ClaimResult(Part, frozen=True):
    """Device allocated to a claim; `consumed_capacity` is only set for devices that several claims may share."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    share_id: str = msgspec.field(default="", name="shareID")
    consumed_capacity: dict[str, Quantity] = {}


class ClaimDevices(Part, frozen=True):
    """Devices of an allocation."""

    results: tuple[ClaimResult, ...] = ()


class Allocation(Part, frozen=True):
    """Allocation of a claim."""

    devices: ClaimDevices = ClaimDevices()
    allocation_timestamp: str = ""


class ClaimUser(Part, frozen=True):
    """User of a claim's devices; `resource` is ``pods``."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Part, frozen=True):
    """Status of a claim. A claim without an allocation holds no devices."""

    allocation: Allocation | None = None
    reserved_for: tuple[ClaimUser, ...] = ()


class ResourceClaim(Part, frozen=True):
    """A pod's claim to devices."""

    metadata: Meta = Meta()
    status: ClaimStatus = ClaimStatus()
