"""The metrics of exporters that tell what is used, by every name that they have had.

References
----------
HAMi, ``cmd/vGPUmonitor/metrics.go``: ``hami_`` names since v2.9, the others before, and beside them where it is told to
write legacy metrics. NVIDIA dcgm-exporter, ``etc/default-counters.csv``, and the names of its first version.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MIB = 1 << 20
MOST_BYTES = 1 << 44
"""More memory than a device has: DCGM writes figures like this where it knows none."""

WHOLE_MILLI = 1000
PERCENT = 10
"""Thousandths in a percent point."""


class What(Enum):
    """What a metric measures."""

    MEMORY = "memory"
    CORES = "cores"


@dataclass(frozen=True, slots=True)
class Labels:
    """What an exporter calls things.

    Attributes
    ----------
    uuids
        The device; whichever of these is there.
    namespace, pod, container
        Who uses it; empty for metrics of whole devices.
    part
        What sets apart the series that make up one figure together.
    """

    uuids: tuple[str, ...]
    part: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric.

    Attributes
    ----------
    times
        What makes bytes, or thousandths of a device's cores, of its value.
    labels
        What its series are told apart by.
    """

    what: What
    times: int
    labels: Labels

    @property
    def of_containers(self) -> bool:
        """Whether it is of containers rather than of whole devices."""
        return bool(self.labels.container)

    @property
    def most(self) -> int:
        """More than this nothing can be."""
        return MOST_BYTES if self.what is What.MEMORY else WHOLE_MILLI


_HAMI_DEVICE, _OLD_HAMI_DEVICE = Labels(("device_uuid",)), Labels(("deviceuuid",))
_HAMI_VGPU = Labels(("device_uuid",), "vdevice_index", "namespace", "pod", "container")
_OLD_HAMI_VGPU = Labels(("deviceuuid",), "vdeviceid", "podnamespace", "podname", "ctrname")
_DCGM = Labels(("UUID", "uuid"), "GPU_I_ID")

FIGURES: dict[str, Figure] = {
    "hami_host_gpu_memory_used_bytes": Figure(What.MEMORY, 1, _HAMI_DEVICE),
    "HostGPUMemoryUsage": Figure(What.MEMORY, 1, _OLD_HAMI_DEVICE),
    "DCGM_FI_DEV_FB_USED": Figure(What.MEMORY, MIB, _DCGM),
    "dcgm_fb_used": Figure(What.MEMORY, MIB, _DCGM),
    "hami_host_gpu_utilization_ratio": Figure(What.CORES, PERCENT, _HAMI_DEVICE),
    "HostCoreUtilization": Figure(What.CORES, PERCENT, _OLD_HAMI_DEVICE),
    "DCGM_FI_DEV_GPU_UTIL": Figure(What.CORES, PERCENT, _DCGM),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Figure(What.CORES, WHOLE_MILLI, _DCGM),
    "dcgm_gpu_utilization": Figure(What.CORES, PERCENT, _DCGM),
    "hami_vgpu_memory_used_bytes": Figure(What.MEMORY, 1, _HAMI_VGPU),
    "vGPU_device_memory_usage_in_bytes": Figure(What.MEMORY, 1, _OLD_HAMI_VGPU),
    "hami_container_device_utilization_ratio": Figure(What.CORES, PERCENT, _HAMI_VGPU),
    "Device_utilization_desc_of_container": Figure(What.CORES, PERCENT, _OLD_HAMI_VGPU),
}
"""By name; of several on one page that tell the same, the first here counts.

The pods that DCGM names are left out: kubelet's ids of devices are not the cards that HAMi hands out.
"""
