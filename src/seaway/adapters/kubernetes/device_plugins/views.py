"""What is read off nodes and pods, whichever dialect they speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from seaway.domain.device import MILLI_PER_PERCENT_POINT, WHOLE_DEVICE_MILLI, Device
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice


class DevicePlugin(Enum):
    """Who says what devices there are and who holds them."""

    HAMI = "hami"
    """Annotations of HAMi."""
    HAMI_STATUS = "hami-status"
    """Cards that HAMi counts in the node's status, as their vendor registers nothing."""
    VOLCANO = "volcano"
    """Annotations of Volcano's vGPU plugin."""
    NVIDIA_PLUGIN = "nvidia-plugin"
    """NVIDIA's device plugin and the labels of its feature discovery: numbers, no cards."""
    DRA = "dra"
    """Resource slices and claims."""


class ProblemKind(Enum):
    """What is the matter with something that was read."""

    BROKEN = "broken"
    """It does not follow its format; it was left out."""
    UNUSABLE = "unusable"
    """It was understood, and takes no new work."""
    UNCERTAIN = "uncertain"
    """It was taken as well as could be, and may be otherwise."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that whoever runs the cluster should know.

    Attributes
    ----------
    where
        The annotation, label, resource or object.
    text
        What is the matter, one line.
    """

    kind: ProblemKind
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """What a cluster may have named otherwise than HAMi's and Volcano's charts do.

    Attributes
    ----------
    nvidia_count, nvidia_memory, nvidia_memory_percent, nvidia_cores
        Resources of NVIDIA cards under HAMi.
    volcano_memory_factor
        MiB in one unit of Volcano's device memory; no node says it.
    """

    nvidia_count: str = "nvidia.com/gpu"
    nvidia_memory: str = "nvidia.com/gpumem"
    nvidia_memory_percent: str = "nvidia.com/gpumem-percentage"
    nvidia_cores: str = "nvidia.com/gpucores"
    volcano_memory_factor: int = 1


@dataclass(frozen=True, slots=True)
class DeviceResources:
    """How devices of one kind are asked for.

    Attributes
    ----------
    vendor
        The dialect's word for them, as in its annotations.
    count, memory, memory_percent, cores
        Names of the resources; empty for none. Memory as a share of each device is the only way to ask devices of
        different sizes for all they have.
    memory_unit_mib
        MiB in one unit of the memory resource.
    record_unit_mib
        MiB in one unit of memory in the dialect's annotations.
    pin
        Annotation of a pod that takes ids of devices; empty when none can be chosen.
    isolated
        Whether a slice gets no more memory than it asked for.
    driver
        Of DRA: the driver.
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
    """What the figure for cores in an annotation means."""

    SHARE = "share"
    """So many of the device's own cores."""
    PERCENT = "percent"
    """Percent points of an unscaled device."""
    BITS = "bits"
    """A mask with a bit for each core."""


def core_steps(cores: int, unit: CoreUnit) -> int:
    """Return in how many steps a device is given out of which a dialect counts so many cores."""
    return WHOLE_DEVICE_MILLI // MILLI_PER_PERCENT_POINT if unit is CoreUnit.PERCENT else min(cores, WHOLE_DEVICE_MILLI)


@dataclass(frozen=True, slots=True)
class Part:
    """A partition of a device, or all of it, that DRA lists as a device of its own."""

    profile: str = ""
    start: int = -1


@dataclass(frozen=True, slots=True)
class Access:
    """How one device is asked for, and known in records.

    Attributes
    ----------
    uuid
        Its id in Seaway.
    plugin_id
        Its id in the dialect, where that has one.
    cores
        How many cores the dialect gives it, in its own unit.
    core_unit
        What the dialect's figures for cores mean.
    pool, parts
        Of DRA: the pool, and what each device name in it stands for.
    shared
        Of DRA: whether several claims may hold it.
    init_adds
        Whether what init containers hold of it is added to what the others hold, for as long as their pod lives.
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

    def core_milli(self, figure: int) -> int:
        """Turn the dialect's figure for cores into thousandths of the device."""
        if self.core_unit is CoreUnit.PERCENT:
            return figure * MILLI_PER_PERCENT_POINT
        cores = figure.bit_count() if self.core_unit is CoreUnit.BITS else figure
        return min(cores * WHOLE_DEVICE_MILLI // max(self.cores, 1), WHOLE_DEVICE_MILLI)


@dataclass(frozen=True)
class NodeView:
    """A node with its devices, how to ask for each, and what is wrong with it.

    Attributes
    ----------
    accesses
        One for each device of the node, in their order.
    reachable
        Whether its kubelet does; one that is cordoned takes nothing new, and may answer.
    """

    node: Node
    accesses: tuple[Access, ...] = ()
    problems: tuple[Problem, ...] = ()
    reachable: bool = True

    @cached_property
    def devices(self) -> dict[str, Device]:
        """The devices by their id in Seaway."""
        return {device.uuid: device for device in self.node.devices}

    @cached_property
    def by_uuid(self) -> dict[str, Access]:
        """The accesses by their device's id in Seaway."""
        return {access.uuid: access for access in self.accesses}

    @cached_property
    def by_plugin_id(self) -> dict[str, Access]:
        """The accesses by their device's id in its dialect."""
        return {access.plugin_id: access for access in self.accesses if access.plugin_id}

    @cached_property
    def by_part(self) -> dict[tuple[str, str, str], tuple[Access, Part]]:
        """What driver, pool and device name of a resource claim's result stand for."""
        return {
            (access.resources.driver, access.pool, name): (access, part)
            for access in self.accesses
            for name, part in access.parts.items()
        }


@dataclass(frozen=True, slots=True)
class Held:
    """A share of a device that a pod holds.

    Attributes
    ----------
    container
        Which container, init containers first; -1 when that cannot be told.
    uuid
        The device's id in Seaway; empty when only the number of devices is known. An id that the node does not
        know stands as it was read.
    resource
        For a device that is not known: the resource that counts it.
    claim
        The resource claim, ``namespace/name``; it holds until it is deallocated, whatever becomes of the pod.
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
        """The share as the domain has it."""
        return DeviceSlice(self.uuid, self.memory_mib, self.core_milli, self.mig_profile, self.mig_start)


@dataclass(frozen=True, slots=True)
class PodView:
    """What a pod takes of its node.

    Attributes
    ----------
    node
        Where it is, or is to be; empty while no one has decided.
    alive
        False when it ended: it gave back CPU and memory, and all devices but those of claims.
    held
        Devices that it holds, or held before it ended.
    cpu_milli, memory_mib
        What it takes besides, thousandths of a core and MiB.
    final
        Whether the pod need not be read again when more, or something else, is known of its node and its claims.
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
        """What of `held` counts now."""
        return self.held if self.alive else tuple(each for each in self.held if each.claim)
