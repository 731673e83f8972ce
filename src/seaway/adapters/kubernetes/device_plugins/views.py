"""Decoded nodes and pods, independent of the device plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from seaway.domain.device import MILLI_PER_PERCENT_POINT, WHOLE_DEVICE_MILLI, Device
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice


class DevicePlugin(Enum):
    """Source of devices and allocations."""

    HAMI = "hami"
    """Annotations of HAMi."""
    HAMI_STATUS = "hami-status"
    """Cards that HAMi counts in the node's status, because their vendor has no register."""
    VOLCANO = "volcano"
    """Annotations of Volcano's vGPU plugin."""
    COUNTING = "counting"
    """Plugins of NVIDIA, AMD, Gaudi and TPU, and labels of their feature discovery: numbers without identities."""
    DRA = "dra"
    """Resource slices and claims."""


class ProblemKind(Enum):
    """Kind of a problem."""

    BROKEN = "broken"
    """Invalid data that was skipped."""
    UNUSABLE = "unusable"
    """Valid data about a device or node that accepts no new workloads."""
    UNCERTAIN = "uncertain"
    """Data that was used, but may be wrong."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem that a cluster administrator should know about.

    Attributes
    ----------
    where
        Annotation, label, resource or object of the problem.
    text
        Description in one line.
    """

    kind: ProblemKind
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """Names that a cluster can configure differently from HAMi's and Volcano's charts.

    Attributes
    ----------
    nvidia_count, nvidia_memory, nvidia_memory_percent, nvidia_cores
        Resources of NVIDIA cards under HAMi.
    volcano_memory_factor
        MiB in one unit of Volcano's device memory; nodes do not report it.
    """

    nvidia_count: str = "nvidia.com/gpu"
    nvidia_memory: str = "nvidia.com/gpumem"
    nvidia_memory_percent: str = "nvidia.com/gpumem-percentage"
    nvidia_cores: str = "nvidia.com/gpucores"
    volcano_memory_factor: int = 1


@dataclass(frozen=True, slots=True)
class DeviceResources:
    """Resource names for devices of one kind.

    Attributes
    ----------
    vendor
        Vendor as in the device plugin's annotations.
    count, memory, memory_percent, cores
        Names of the resources; empty for none. Only a percentage can request all memory of devices of different sizes.
    memory_unit_mib
        MiB in one unit of the memory resource.
    record_unit_mib
        MiB in one unit of memory in the device plugin's annotations.
    pin
        Pod annotation that selects devices by ID; empty if the plugin has none.
    isolated
        True if a slice cannot exceed its requested memory.
    driver
        For DRA: the driver.
    """

    plugin: DevicePlugin
    vendor: str
    count: str = ""
    memory: str = ""
    cores: str = ""
    memory_unit_mib: int = 1
    record_unit_mib: int = 1
    pin: str = ""
    isolated: bool = True
    driver: str = ""
    memory_percent: str = ""


class CoreUnit(Enum):
    """Unit of core numbers in an annotation."""

    SHARE = "share"
    """Number of the device's own cores."""
    PERCENT = "percent"
    """Percentage points of an unscaled device."""
    BITS = "bits"
    """Mask with a bit for each core."""


def core_steps(cores: int, unit: CoreUnit) -> int:
    """Return the number of steps in which a device's cores can be allocated."""
    return WHOLE_DEVICE_MILLI // MILLI_PER_PERCENT_POINT if unit is CoreUnit.PERCENT else min(cores, WHOLE_DEVICE_MILLI)


@dataclass(frozen=True, slots=True)
class Part:
    """A partition of a device, or the whole device, that DRA lists as a separate device."""

    profile: str = ""
    start: int = -1


@dataclass(frozen=True, slots=True)
class Access:
    """Access to one device: its resources and its IDs in records.

    Attributes
    ----------
    uuid
        ID in Seaway.
    plugin_id
        ID in the device plugin, if it has one.
    cores
        Number of cores that the device plugin counts, in its own unit.
    core_unit
        Unit of the device plugin's core numbers.
    pool, parts
        For DRA: the pool, and the part of each device name in it.
    shared
        For DRA: True if several claims may hold it.
    init_adds
        True if the use of init containers is added to that of the others while the pod exists.
    selector
        Node labels that pods with the device must select.
    units
        Amount of the resource that one device counts as.
    """

    uuid: str
    plugin_id: str
    resources: DeviceResources
    cores: int = 100
    core_unit: CoreUnit = CoreUnit.SHARE
    pool: str = ""
    parts: Mapping[str, Part] = field(default_factory=dict)
    shared: bool = False
    init_adds: bool = False
    selector: Mapping[str, str] = field(default_factory=dict)
    units: int = 1

    def core_milli(self, figure: int) -> int:
        """Convert the device plugin's core number to thousandths of the device."""
        if self.core_unit is CoreUnit.PERCENT:
            return figure * MILLI_PER_PERCENT_POINT
        cores = figure.bit_count() if self.core_unit is CoreUnit.BITS else figure
        return min(cores * WHOLE_DEVICE_MILLI // max(self.cores, 1), WHOLE_DEVICE_MILLI)


@dataclass(frozen=True)
class NodeView:
    """Node with its devices, the access to each device, and its problems.

    Attributes
    ----------
    accesses
        One access for each device, in the same order.
    reachable
        True if its kubelet responds. A cordoned node can be reachable, but gets no new workloads.
    """

    node: Node
    accesses: tuple[Access, ...] = ()
    problems: tuple[Problem, ...] = ()
    reachable: bool = True

    @cached_property
    def devices(self) -> dict[str, Device]:
        """Devices by their ID in Seaway."""
        return {device.uuid: device for device in self.node.devices}

    @cached_property
    def by_uuid(self) -> dict[str, Access]:
        """Accesses by the device's ID in Seaway."""
        return {access.uuid: access for access in self.accesses}

    @cached_property
    def by_plugin_id(self) -> dict[str, Access]:
        """Accesses by the device's ID in its plugin."""
        return {access.plugin_id: access for access in self.accesses if access.plugin_id}

    @cached_property
    def by_part(self) -> dict[tuple[str, str, str], tuple[Access, Part]]:
        """Access and part by the driver, pool and device name of a resource claim's result."""
        return {
            (access.resources.driver, access.pool, name): (access, part)
            for access in self.accesses
            for name, part in access.parts.items()
        }


@dataclass(frozen=True, slots=True)
class Held:
    """A device share that a pod holds.

    Attributes
    ----------
    container
        Index of the container, init containers first; -1 if unknown.
    uuid
        ID of the device in Seaway; empty if only the number of devices is known. Unknown IDs stay unchanged.
    resource
        For an unknown device: the resource that counts it.
    claim
        The resource claim, ``namespace/name``. It holds the device until deallocation, even after the pod ends.
    """

    container: int
    uuid: str
    memory_mib: int
    core_milli: int
    mig_profile: str = ""
    mig_start: int = -1
    resource: str = ""
    claim: str = ""

    @property
    def slice(self) -> DeviceSlice:
        """The share as an object of the domain."""
        return DeviceSlice(self.uuid, self.memory_mib, self.core_milli, self.mig_profile, self.mig_start)


@dataclass(frozen=True, slots=True)
class PodView:
    """Use of a node by a pod.

    Attributes
    ----------
    node
        Current or chosen node; empty before the decision.
    alive
        False after the pod ended: it released CPU, memory, and all devices except those of claims.
    held
        Devices that it holds, or held before it ended.
    cpu_milli, memory_mib
        CPU in thousandths of a core, and memory in MiB.
    final
        True if later changes of its node and claims cannot affect the view.
    """

    node: str
    alive: bool
    held: tuple[Held, ...] = ()
    cpu_milli: int = 0
    memory_mib: int = 0
    problems: tuple[Problem, ...] = ()
    final: bool = True

    @property
    def holding(self) -> tuple[Held, ...]:
        """Device shares that are in use now."""
        return self.held if self.alive else tuple(each for each in self.held if each.claim)
