"""What an exporter's page says of use: whatever is written there, the answer is bounded and has no wrong figures.

References
----------
Prometheus, "Exposition formats": text-based format 0.0.4.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from io import BytesIO

from prometheus_client.parser import text_string_to_metric_families

from seaway.application.ports.usage import Held, Used

MIB = 1 << 20
MAX_BYTES = 1 << 44
"""More memory than a device has: DCGM writes figures like this where it knows none."""

WHOLE_MILLI = 1000
PERCENT = 10
"""Thousandths in a percent point."""


class Metric(Enum):
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

    what: Metric
    times: int
    labels: Labels

    @property
    def of_containers(self) -> bool:
        """Whether it is of containers rather than of whole devices."""
        return bool(self.labels.container)

    @property
    def most(self) -> int:
        """More than this nothing can be."""
        return MAX_BYTES if self.what is Metric.MEMORY else WHOLE_MILLI


_HAMI_DEVICE, _OLD_HAMI_DEVICE = Labels(("device_uuid",)), Labels(("deviceuuid",))
_HAMI_VGPU = Labels(("device_uuid",), "vdevice_index", "namespace", "pod", "container")
_OLD_HAMI_VGPU = Labels(("deviceuuid",), "vdeviceid", "podnamespace", "podname", "ctrname")
_DCGM = Labels(("UUID", "uuid"), "GPU_I_ID")

FIGURES: dict[str, Figure] = {
    "hami_host_gpu_memory_used_bytes": Figure(Metric.MEMORY, 1, _HAMI_DEVICE),
    "HostGPUMemoryUsage": Figure(Metric.MEMORY, 1, _OLD_HAMI_DEVICE),
    "DCGM_FI_DEV_FB_USED": Figure(Metric.MEMORY, MIB, _DCGM),
    "dcgm_fb_used": Figure(Metric.MEMORY, MIB, _DCGM),
    "hami_host_gpu_utilization_ratio": Figure(Metric.CORES, PERCENT, _HAMI_DEVICE),
    "HostCoreUtilization": Figure(Metric.CORES, PERCENT, _OLD_HAMI_DEVICE),
    "DCGM_FI_DEV_GPU_UTIL": Figure(Metric.CORES, PERCENT, _DCGM),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Figure(Metric.CORES, WHOLE_MILLI, _DCGM),
    "dcgm_gpu_utilization": Figure(Metric.CORES, PERCENT, _DCGM),
    "hami_vgpu_memory_used_bytes": Figure(Metric.MEMORY, 1, _HAMI_VGPU),
    "vGPU_device_memory_usage_in_bytes": Figure(Metric.MEMORY, 1, _OLD_HAMI_VGPU),
    "hami_container_device_utilization_ratio": Figure(Metric.CORES, PERCENT, _HAMI_VGPU),
    "Device_utilization_desc_of_container": Figure(Metric.CORES, PERCENT, _OLD_HAMI_VGPU),
}
"""By name; of several on one page that tell the same, the first here counts.

The pods that DCGM names are left out: kubelet's ids of devices are not the cards that HAMi hands out.
"""


MAX_SERIES = 8192
"""What is read of a page: a node of 16 cards, each shared by a hundred containers, has less than half."""

MAX_LINES = 65_536
"""What is looked at of a page at all: what else exporters tell, comments, empty lines."""

LONGEST_LINE = 2048

MAX_ESCAPES = 32
"""Backslashes in a line: the parser takes the square of their number."""

_NAME = re.compile(rb"[A-Za-z_:][A-Za-z0-9_:]*")

Place = tuple[str, str, str, str]
"""Uuid, namespace, pod, container; the last three are empty for a whole device."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says.

    Attributes
    ----------
    devices
        By uuid.
    containers
        Of each pod on each device, by the container's name.
    broken
        Series that make no sense, and were left out.
    """

    devices: dict[str, Used]
    containers: dict[Held, dict[str, Used]]
    broken: int


def read_page(page: bytes) -> Reading:
    """Read a page in Prometheus' text format; takes some 30 us for each series that tells of use."""
    told: defaultdict[str, defaultdict[Place, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    series = broken = 0
    for number, line in enumerate(BytesIO(page)):
        if number >= MAX_LINES or series >= MAX_SERIES:
            broken += 1
            break
        began = _NAME.match(line)
        name = began.group().decode() if began else ""
        if name not in FIGURES:
            continue
        series += 1
        try:
            place, part, value = _read_series(line, FIGURES[name])
        except Exception:  # noqa: BLE001  # whatever a user's text does to the parser
            broken += 1
            continue
        told[name][place][part] = value
    found: defaultdict[Place, dict[Metric, int]] = defaultdict(dict)
    for name, figure in FIGURES.items():
        for place, parts in told[name].items() if name in told else ():
            value_of = _sum_parts(figure, parts)
            if value_of is not None:
                found[place].setdefault(figure.what, value_of)
    return _accepted(found, broken)


def _read_series(line: bytes, figure: Figure) -> tuple[Place, str, int]:
    """Read one line.

    Raises
    ------
    ValueError
        When it is too long, lacks a label, or its value cannot be; the parser raises this and others.
    """
    if len(line) > LONGEST_LINE or line.count(b"\\") > MAX_ESCAPES:
        raise ValueError("too long")
    (family,) = text_string_to_metric_families(line.decode())
    (sample,) = family.samples
    labels, names = sample.labels, figure.labels
    uuid = next((labels[each] for each in names.uuids if labels.get(each)), "")
    holder = tuple(labels[each] for each in (names.namespace, names.pod, names.container) if each)
    if not uuid or not all(holder):
        raise ValueError("it does not say whose")
    value = round(sample.value * figure.times)
    if figure.of_containers and figure.what is Metric.CORES:
        value = min(value, WHOLE_MILLI)  # the sum over a container's processes, each rounded for itself
    if not 0 <= value <= figure.most:
        raise ValueError("it cannot be")
    namespace, pod, container = holder or ("", "", "")
    return (uuid, namespace, pod, container), labels.get(names.part, ""), value


def _sum_parts(figure: Figure, parts: dict[str, int]) -> int | None:
    """Make one figure of its series; of MIG instances only memory adds up, each one's cores are a share of its own."""
    if figure.of_containers:
        return min(sum(parts.values()), figure.most)
    if "" in parts:
        return parts[""]
    return sum(parts.values()) if figure.what is Metric.MEMORY else None


def _accepted(found: dict[Place, dict[Metric, int]], broken: int) -> Reading:
    devices: dict[str, Used] = {}
    containers: defaultdict[Held, dict[str, Used]] = defaultdict(dict)
    for (uuid, namespace, pod, container), figures in found.items():
        used = Used(figures.get(Metric.MEMORY), figures.get(Metric.CORES))
        if container:
            containers[uuid, namespace, pod][container] = used
        else:
            devices[uuid] = used
    return Reading(devices, dict(containers), broken)
