"""Devices: a GPU or NPU of a node, which jobs share in slices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from seaway.domain.errors import RejectedError

WHOLE_DEVICE_MILLI = 1000
"""Cores of one unscaled device in thousandths; HAMi's 100 percent points."""

MILLI_PER_PERCENT_POINT = 10
"""Thousandths of a device in one of the vGPU layer's percent points."""


class DeviceMode(Enum):
    """Sharing mode of a device. The values are HAMi's terms, if it has one."""

    HAMI_CORE = "hami-core"
    """Each slice is held to its memory and cores, by HAMi's library or another vGPU layer."""
    MIG = "mig"
    MPS = "mps"
    WHOLE = "whole"
    """Not shared: one pod has all of it."""
    SHARED = "shared"
    """Pods take turns, and no one holds them to a share."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One size in which a device in MIG mode can be cut.

    Attributes
    ----------
    name
        NVIDIA's name, like ``3g.20gb``.
    memory_mib
        Memory that an instance books, MiB.
    core_milli
        Cores that an instance books, thousandths of the device (rounded up, as HAMi rounds).
    slice_count
        Compute slices of an instance, 1-7.
    size
        Memory slices that an instance covers, 1-8.
    starts
        Memory slices at which an instance may begin.
    """

    name: str
    memory_mib: int
    core_milli: int
    slice_count: int
    size: int
    starts: tuple[int, ...]

    def __post_init__(self) -> None:
        """Reject an instance that does not lie within eight memory slices."""
        if not self.starts or min(self.starts) < 0 or max(self.starts) + self.size > 8 or self.size < 1:
            raise RejectedError(f"MIG profile {self.name!r}: placements must be within memory slices 0-7")

    @property
    def from_the_top(self) -> bool:
        """True if HAMi tries the highest start first (profiles 1g.* and 3g.*)."""
        return self.name.startswith(("1g.", "3g."))


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or NPU as the vGPU layer of its node reports it.

    Attributes
    ----------
    uuid
        The device's ID, unique in the fleet.
    index
        Its index on the node, from 0.
    model
        Product name, such as ``NVIDIA A100-SXM4-80GB``.
    memory_mib
        Allocatable memory, MiB (scaling included).
    vendor
        Its vendor, in the vGPU layer's terms.
    core_milli
        Allocatable cores, thousandths of one device (scaling included).
    share_limit
        Maximum number of containers with a slice.
    numa
        Its NUMA node.
    healthy
        False when the vGPU layer does not report it as healthy.
    cordoned
        True when it accepts no new slices; running workloads stay.
    mode
        Its sharing mode.
    mig_profiles
        In MIG mode, the possible profiles.
    mig_single_device
        In MIG mode, whether pods cannot request a number of instances per device: those of a replica are then all on
        one device, or on devices with one such instance each.
    core_steps
        Number of equal steps of its cores, 1-1,000: a request is rounded up to whole steps.
    memory_step_mib
        Step of memory, MiB, likewise; a share in percent is rounded down, to one step at least.
    even_shares
        Whether it is allocated in as many even shares as there can be slices: all of it if that is one. A slice uses as
        many shares as its request needs, one at least; the steps do not apply.
    reason
        Why it accepts no new slices; empty while it does, and if its cluster gives no reason.
    """

    uuid: str
    index: int
    model: str
    memory_mib: int
    vendor: str = "NVIDIA"
    core_milli: int = WHOLE_DEVICE_MILLI
    share_limit: int = 10
    numa: int = 0
    healthy: bool = True
    cordoned: bool = False
    mode: DeviceMode = DeviceMode.HAMI_CORE
    mig_profiles: tuple[MigProfile, ...] = ()
    mig_single_device: bool = False
    core_steps: int = WHOLE_DEVICE_MILLI
    memory_step_mib: int = 1
    even_shares: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        """Reject figures that no device can have."""
        for field, value in (
            ("memory_mib", self.memory_mib),
            ("core_milli", self.core_milli),
            ("share_limit", self.share_limit),
            ("index", self.index),
        ):
            if value < 0:
                raise RejectedError(f"device {self.uuid!r}: {field} is {value}, but may not be negative")
        if not 1 <= self.core_steps <= WHOLE_DEVICE_MILLI or self.memory_step_mib < 1:
            raise RejectedError(f"device {self.uuid!r}: cores come in 1 to {WHOLE_DEVICE_MILLI} steps, memory in MiB")
        if self.mode is DeviceMode.MIG and not self.mig_profiles:
            raise RejectedError(f"device {self.uuid!r} is in MIG mode but names no MIG profile")

    @property
    def core_percent(self) -> int:
        """Cores in the vGPU layer's percent points: 100 for one unscaled device."""
        return self.core_milli // MILLI_PER_PERCENT_POINT
