"""Devices: GPUs or NPUs of a node, which jobs share in slices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

WHOLE_DEVICE_MILLI = 1000
"""Cores of one unscaled device in thousandths, which are 100 percent points in HAMi."""

MILLI_PER_PERCENT_POINT = 10
"""Thousandths of a device in one of the vGPU layer's percent points."""


class DeviceMode(Enum):
    """Sharing mode of a device. The values are HAMi's terms, if it has one."""

    HAMI_CORE = "hami-core"
    """HAMi's library or another vGPU layer limits the memory and cores of each slice."""
    MIG = "mig"
    MPS = "mps"
    WHOLE = "whole"
    """Not shared: one pod has the whole device."""
    SHARED = "shared"
    """Time slicing between pods without limits."""


MIG_NAME = re.compile(r"([12347])g\.([1-9][0-9]{0,3})gb(?:\+[a-z][a-z.]{0,9})?")
"""Name of a MIG profile, with its compute slices and its nominal memory in GB: ``3g.40gb``, ``1g.10gb+me``."""

MIG_SIZES = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
"""Memory slices (of eight) of profiles by compute slices (of seven)."""


def mig_figures(name: str) -> tuple[int, int]:
    """Return the compute slices and the nominal memory in GB of a MIG profile; 0 and 0 if its name does not say."""
    found = MIG_NAME.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One size of an instance on a device in MIG mode.

    Attributes
    ----------
    name
        NVIDIA's name, such as ``3g.20gb``.
    memory_mib
        Memory of an instance, MiB.
    core_milli
        Cores of an instance, thousandths of the device, rounded up as in HAMi.
    slice_count
        Compute slices of an instance, 1-7.
    size
        Memory slices that an instance covers, 1-8.
    starts
        Memory slices at which an instance may start.
    """

    name: str
    memory_mib: int
    core_milli: int
    slice_count: int
    size: int
    starts: tuple[int, ...]

    def __post_init__(self) -> None:
        """Reject an instance that exceeds eight memory slices."""
        if not self.starts or min(self.starts) < 0 or max(self.starts) + self.size > 8 or self.size < 1:
            raise RejectedError(Reason("mig_placements", name=self.name))

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
        ID of the device, unique in the fleet.
    index
        Index on the node, from 0.
    model
        Product name, such as ``NVIDIA A100-SXM4-80GB``.
    memory_mib
        Allocatable memory, MiB, with scaling.
    vendor
        Vendor, in the vGPU layer's terms.
    core_milli
        Allocatable cores, thousandths of one device, with scaling.
    share_limit
        Maximum number of containers with a slice.
    numa
        NUMA node.
    island
        Number of the group of devices of the node that NVLink connects; -1 if none is known.
    pcie_switch
        Number of the PCIe switch, or of the group of switches below one root; -1 if unknown.
    healthy
        False if the vGPU layer does not report it as healthy.
    cordoned
        True if it accepts no new slices; running workloads stay.
    mode
        Sharing mode.
    mig_profiles
        Supported profiles in MIG mode.
    mig_single_device
        In MIG mode, whether pods cannot request a number of instances per device. The instances of a replica are then
        all on one device, or on separate devices with one such instance each.
    core_steps
        Number of equal steps of its cores, 1-1,000. A request is rounded up to whole steps.
    memory_step_mib
        Step of memory, MiB: a request is rounded up to whole steps. A share in percent is rounded down, to at least one
        step.
    even_shares
        Whether the device is allocated in `share_limit` equal shares. A slice uses as many shares as its request
        needs, at least one; the steps do not apply.
    reason
        Reason why it accepts no new slices; empty if it does, or if its cluster reports no reason.
    tpu_slice, slice_nodes
        Name of its multi-host TPU slice within the cluster, and the number of nodes of the slice; 1 for other devices.
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
    island: int = -1
    pcie_switch: int = -1
    tpu_slice: str = ""
    slice_nodes: int = 1

    def __post_init__(self) -> None:
        """Reject invalid values."""
        for field, value in (
            ("memory_mib", self.memory_mib),
            ("core_milli", self.core_milli),
            ("share_limit", self.share_limit),
            ("index", self.index),
        ):
            if value < 0:
                raise RejectedError(Reason("device_negative", uuid=self.uuid, field=field, value=value))
        if not 1 <= self.core_steps <= WHOLE_DEVICE_MILLI or self.memory_step_mib < 1:
            raise RejectedError(Reason("device_cores", uuid=self.uuid, most=WHOLE_DEVICE_MILLI))
        if self.mode is DeviceMode.MIG and not self.mig_profiles:
            raise RejectedError(Reason("device_without_profile", uuid=self.uuid))

    def mig_profile(self, name: str) -> MigProfile | None:
        """Return the profile of a name that pods can request; None if the device has none.

        Pods that cannot request a number of instances request the memory of a profile. They get the profile with the
        fewest compute slices among those with the same memory, so the others cannot be requested.
        """
        found = next((each for each in self.mig_profiles if each.name == name), None)
        if found is None or not self.mig_single_device:
            return found
        first = min(each.slice_count for each in self.mig_profiles if each.memory_mib == found.memory_mib)
        return found if found.slice_count == first else None
