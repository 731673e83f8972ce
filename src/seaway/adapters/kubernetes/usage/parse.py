"""Parser of exporter pages. For any input, its result has a limited size and only plausible values.

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
"""Upper bound of a device's memory in bytes. DCGM exports larger values for unknown ones."""

WHOLE_MILLI = 1000
PERCENT = 10
"""Thousandths in a percentage point."""


class Metric(Enum):
    """Quantity that a metric measures."""

    MEMORY = "memory"
    CORES = "cores"


@dataclass(frozen=True, slots=True)
class Labels:
    """Label names of an exporter.

    Attributes
    ----------
    uuids
        Labels of the device; the first label that is set counts.
    namespace, pod, container
        Labels of the user; empty for metrics of whole devices.
    part
        Label that separates series of one value.
    """

    uuids: tuple[str, ...]
    part: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Metric of an exporter.

    Attributes
    ----------
    times
        Factor from its value to bytes, or to thousandths of a device's cores.
    labels
        Labels of its series.
    """

    what: Metric
    times: int
    labels: Labels

    @property
    def of_containers(self) -> bool:
        """True for metrics of containers, not of whole devices."""
        return bool(self.labels.container)

    @property
    def most(self) -> int:
        """Maximum plausible value."""
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
"""Metrics by name. If a page has several metrics of one quantity, the first in this order counts.

The pod labels of DCGM are ignored: kubelet's device IDs are not the cards that HAMi allocates.
"""


MAX_SERIES = 8192
"""Maximum number of series of a page.

A node with 16 cards, each shared by 100 containers, has less than half of this.
"""

MAX_LINES = 65_536
"""Maximum number of lines of a page, including other metrics, comments and empty lines."""

LONGEST_LINE = 2048

MAX_ESCAPES = 32
"""Maximum number of backslashes in a line. The parser's run time grows with the square of this number."""

_NAME = re.compile(rb"[A-Za-z_:][A-Za-z0-9_:]*")

Place = tuple[str, str, str, str]
"""UUID, namespace, pod, container; the last three are empty for a whole device."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Parsed page.

    Attributes
    ----------
    devices
        Use by UUID.
    containers
        Use by pod and device, and by the container's name.
    broken
        Number of invalid series, which are skipped.
    """

    devices: dict[str, Used]
    containers: dict[Held, dict[str, Used]]
    broken: int


def read_page(page: bytes) -> Reading:
    """Parse a page in Prometheus' text format. Parsing takes about 30 us per relevant series."""
    reported: defaultdict[str, defaultdict[Place, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
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
        except Exception:  # noqa: BLE001  # the parser may raise any error for an invalid text
            broken += 1
            continue
        reported[name][place][part] = value
    found: defaultdict[Place, dict[Metric, int]] = defaultdict(dict)
    for name, figure in FIGURES.items():
        for place, parts in reported[name].items() if name in reported else ():
            value_of = _sum_parts(figure, parts)
            if value_of is not None:
                found[place].setdefault(figure.what, value_of)
    return _accepted(found, broken)


def _read_series(line: bytes, figure: Figure) -> tuple[Place, str, int]:
    """Parse one line.

    Raises
    ------
    ValueError
        When it is too long, lacks a label, or has an impossible value; the parser raises this and other exceptions.
    """
    if len(line) > LONGEST_LINE or line.count(b"\\") > MAX_ESCAPES:
        raise ValueError("too long")
    (family,) = text_string_to_metric_families(line.decode())
    (sample,) = family.samples
    labels, names = sample.labels, figure.labels
    uuid = next((labels[each] for each in names.uuids if labels.get(each)), "")
    holder = tuple(labels[each] for each in (names.namespace, names.pod, names.container) if each)
    if not uuid or not all(holder):
        raise ValueError("it has no owner")
    value = round(sample.value * figure.times)
    if figure.of_containers and figure.what is Metric.CORES:
        value = min(value, WHOLE_MILLI)  # the sum of rounded values of a container's processes
    if not 0 <= value <= figure.most:
        raise ValueError("the value is impossible")
    namespace, pod, container = holder or ("", "", "")
    return (uuid, namespace, pod, container), labels.get(names.part, ""), value


def _sum_parts(figure: Figure, parts: dict[str, int]) -> int | None:
    """Return one value for the series of a metric.

    For MIG instances, only memory is added up; cores are per instance.
    """
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
