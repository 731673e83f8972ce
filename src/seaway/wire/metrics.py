"""Metrics of clusters, devices and vGPUs, as Prometheus text and as JSON, in pieces.

A fleet of 80,000 devices has some 600,000 series. Therefore lines are formatted by hand, labels are formatted once per
object, and only one piece of the response is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

import orjson
from pydantic import BaseModel, ConfigDict

from seaway.application.ports.usage import Used, add_up
from seaway.application.views import DeviceUse, Holding
from seaway.domain.device import MILLI_PER_PERCENT_POINT
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, also
from seaway.wire.message import Shown

PIECE = 4096
"""Number of series per piece."""

MIB = 1 << 20
ZONE = "vGPU"
NO_ONE = ("", "", "")
NEAR, SOME = 0.4, 20
PLACES = 4
"""Decimal places of percentages."""


class MetricSeries(BaseModel):
    """A series: its labels and its current value. Labels other than `cluster` depend on the metric."""

    model_config = ConfigDict(extra="allow", frozen=True)

    cluster: str
    value: float


class MetricsOut(Shown):
    """Metrics of GPUs and of links, with their series."""

    code: int
    """Status code, always 200."""
    data: dict[str, list[MetricSeries]]
    """Series by metric."""


class Layer(Enum):
    """Type of the object of a metric."""

    CLUSTER = "cluster"
    DEVICE = "device"
    VGPU = "vGPU"


@dataclass(slots=True)
class Row:
    """Values of a cluster, a device or a vGPU.

    Attributes
    ----------
    labels
        Formatted labels without the closing bracket.
    memory_mib, core_milli
        Allocated amounts.
    memory_limit_mib, core_limit_milli
        Totals.
    shared
        Number of holders.
    used
        Measured use; None if unknown.
    """

    labels: str
    memory_mib: int
    core_milli: int
    memory_limit_mib: int
    core_limit_milli: int
    shared: int = 0
    used: Used | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a layer; `value` returns None if unknown, and the series is omitted."""

    layer: Layer
    says: str
    value: Callable[[Row], float | None]


def _points(milli: int) -> float:
    whole, rest = divmod(milli, MILLI_PER_PERCENT_POINT)
    return milli / MILLI_PER_PERCENT_POINT if rest else whole


def _percent(part: int, whole: int) -> float:
    if not whole:
        return 0
    return round(100 * part / whole, PLACES) if 100 * part % whole else 100 * part // whole


def _used_bytes(row: Row) -> int | None:
    return row.used.memory_bytes if row.used else None


def _used_points(row: Row) -> float | None:
    return _points(row.used.core_milli) if row.used and row.used.core_milli is not None else None


def _age_s(row: Row) -> float | None:
    return round(row.used.age_s, 1) if row.used else None


METRICS: dict[str, Metric] = {
    "ClusterGPUMemoryPercentage": Metric(
        Layer.CLUSTER,
        "Allocated memory of a cluster's devices, percent.",
        lambda row: _percent(row.memory_mib, row.memory_limit_mib),
    ),
    "ClusterGPUCorePercentage": Metric(
        Layer.CLUSTER,
        "Allocated cores of a cluster's devices, percent.",
        lambda row: _percent(row.core_milli, row.core_limit_milli),
    ),
    "GPUDeviceCoreAllocated": Metric(
        Layer.DEVICE,
        "Allocated cores of a device, percent of a whole device.",
        lambda row: _points(row.core_milli),
    ),
    "GPUDeviceCoreLimit": Metric(
        Layer.DEVICE,
        "Allocatable cores of a device, in percent.",
        lambda row: _points(row.core_limit_milli),
    ),
    "GPUDeviceMemoryAllocated": Metric(
        Layer.DEVICE, "Allocated memory of a device, bytes.", lambda row: row.memory_mib * MIB
    ),
    "GPUDeviceMemoryLimit": Metric(
        Layer.DEVICE, "Allocatable memory of a device, bytes.", lambda row: row.memory_limit_mib * MIB
    ),
    "GPUDeviceSharedNum": Metric(Layer.DEVICE, "Number of holders of slices of a device.", lambda row: row.shared),
    "GPUDeviceMemoryUsed": Metric(Layer.DEVICE, "Measured memory use of a device, bytes.", _used_bytes),
    "GPUDeviceCoreUsed": Metric(
        Layer.DEVICE, "Measured core use of a device, percent of a whole device.", _used_points
    ),
    "GPUDeviceUsedAge": Metric(Layer.DEVICE, "Age of the measured use of a device, seconds.", _age_s),
    "vGPUCorePercentage": Metric(
        Layer.VGPU,
        "Cores of a device allocated to a container, percent.",
        lambda row: _percent(row.core_milli, row.core_limit_milli),
    ),
    "vGPUMemoryPercentage": Metric(
        Layer.VGPU,
        "Memory of a device allocated to a container, percent.",
        lambda row: _percent(row.memory_mib, row.memory_limit_mib),
    ),
    "vGPUMemoryAllocated": Metric(
        Layer.VGPU, "Memory of a device allocated to a container, bytes.", lambda row: row.memory_mib * MIB
    ),
    "vGPUPodsDeviceAllocated": Metric(
        Layer.VGPU,
        "Memory of a device allocated to pods, by container, bytes.",
        lambda row: row.memory_mib * MIB,
    ),
    "vGPUMemoryUsed": Metric(Layer.VGPU, "Measured memory use of a device by a container, bytes.", _used_bytes),
    "vGPUCoreUsed": Metric(
        Layer.VGPU,
        "Measured core use of a device by a container, percent of a whole device.",
        _used_points,
    ),
}
"""Metrics by name, in output order."""


def require_among(name: str, known: Iterable[str], what: str) -> None:
    """Check that a name is known.

    Raises
    ------
    RejectedError
        If it is unknown; the message suggests the nearest name, or lists some known names.
    """
    names = list(known)
    if name in names:
        return
    folded = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), folded, 1, NEAR)
    there = Reason("available", names=tuple(names[:SOME])) if names else ""
    meant = Reason("did_you_mean", names=repr(folded[near[0]])) if near else there
    raise RejectedError(also(Reason("not_found", kind=what, name=name[:100]), meant), where=what)


def _json_text(value: str) -> str:
    return orjson.dumps(value).decode()


def _prometheus_text(value: str) -> str:
    if "\\" in value or "\n" in value or '"' in value:
        value = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'"{value}"'


@dataclass(frozen=True, slots=True)
class Style:
    """Format of labels.

    Attributes
    ----------
    before, after
        Text around a label's name.
    quote
        Formats its value.
    """

    before: str
    after: str
    quote: Callable[[str], str]

    def key(self, name: str) -> str:
        """Return the text before the value of a label."""
        return f"{self.before}{name}{self.after}"


PROMETHEUS = Style("", "=", _prometheus_text)
JSON = Style('"', '":', _json_text)


def prometheus(uses: Sequence[DeviceUse], metrics: dict[str, Metric], seen_by: str) -> Iterator[bytes]:
    """Return metrics as Prometheus text, in pieces.

    Parameters
    ----------
    seen_by
        Tenant whose names are visible; empty for all. Allocations of other tenants form one series per device, without
        names.
    """
    for layer, rows in _layers(uses, metrics, seen_by, PROMETHEUS):
        for name, metric in _of(metrics, layer):
            yield f"# HELP {name} {metric.says}\n# TYPE {name} gauge\n".encode()
            value = metric.value
            for piece in _pieces(rows):
                lines = [f"{name}{row.labels}}} {known}\n" for row in piece if (known := value(row)) is not None]
                yield "".join(lines).encode()


def as_json(
    uses: Sequence[DeviceUse], metrics: dict[str, Metric], seen_by: str, others: Iterable[tuple[str, bytes]] = ()
) -> Iterator[bytes]:
    """Return metrics as JSON, the fields of `MetricsOut`, in pieces; see `prometheus`.

    Parameters
    ----------
    others
        Further metrics: their names and their series separated by ``,``.
    """
    begin = '{"code":200,"data":{'
    for layer, rows in _layers(uses, metrics, seen_by, JSON):
        for name, metric in _of(metrics, layer):
            yield f'{begin}"{name}":['.encode()
            begin, separator = "],", ""
            value = metric.value
            for piece in _pieces(rows):
                series = [f'{row.labels},"value":{known}}}' for row in piece if (known := value(row)) is not None]
                if series:
                    yield (separator + ",".join(series)).encode()
                    separator = ","
    for name, written in others:
        yield f'{begin}"{name}":['.encode() + written
        begin = "],"
    yield b"]}}"


def _of(metrics: dict[str, Metric], layer: Layer) -> list[tuple[str, Metric]]:
    return [(name, metric) for name, metric in metrics.items() if metric.layer is layer]


def _pieces(rows: list[Row]) -> Iterator[list[Row]]:
    for first in range(0, len(rows), PIECE):
        yield rows[first : first + PIECE]


def _layers(
    uses: Sequence[DeviceUse], metrics: dict[str, Metric], seen_by: str, style: Style
) -> Iterator[tuple[Layer, list[Row]]]:
    asked = {metric.layer for metric in metrics.values()}
    if not asked:
        return
    if Layer.CLUSTER in asked:
        yield Layer.CLUSTER, _cluster_rows(uses, style)
    if asked == {Layer.CLUSTER}:
        return
    labels = _device_labels(uses, style)
    if Layer.DEVICE in asked:
        yield Layer.DEVICE, list(map(_device_row, uses, labels))
    if Layer.VGPU in asked:
        yield Layer.VGPU, _vgpu_rows(zip(uses, labels, strict=True), seen_by, style)


def _cluster_rows(uses: Iterable[DeviceUse], style: Style) -> list[Row]:
    """Return the sums of each cluster with devices."""
    rows: dict[str, Row] = {}
    for use in uses:
        if use.cluster not in rows:
            rows[use.cluster] = Row(f"{{{style.key('cluster')}{style.quote(use.cluster)}", 0, 0, 0, 0)
        row, device = rows[use.cluster], use.device
        row.memory_limit_mib += device.memory_mib
        row.core_limit_milli += device.core_milli
        for each in use.holdings:
            row.memory_mib += each.memory_mib
            row.core_milli += each.core_milli
    return list(rows.values())


def _device_row(use: DeviceUse, labels: str) -> Row:
    device, holdings = use.device, use.holdings
    memory_mib, core_milli = _sums(holdings) if holdings else (0, 0)
    return Row(labels, memory_mib, core_milli, device.memory_mib, device.core_milli, len(holdings), use.used)


def _vgpu_rows(uses: Iterable[tuple[DeviceUse, str]], seen_by: str, style: Style) -> list[Row]:
    """Return the sums of slices by device and container.

    Slices of other tenants form one row per device, without names.
    """
    namespace_is, pod_is, container_is = (f",{style.key(name)}" for name in ("namespace", "pod", "container"))
    quote, rows = style.quote, []
    for use, labels in uses:
        device = use.device
        for holder in _by_holder(use.holdings, seen_by):
            names = (
                f"{namespace_is}{quote(holder.namespace)}{pod_is}{quote(holder.pod)}"
                f"{container_is}{quote(holder.container)}"
            )
            limits = device.memory_mib, device.core_milli
            rows.append(Row(labels + names, holder.memory_mib, holder.core_milli, *limits, used=holder.used))
    return rows


def _by_holder(holdings: Sequence[Holding], seen_by: str) -> Iterable[Holding]:
    """Merge the shares of each container; merge those of other tenants into one if `seen_by` is set.

    The use is measured per container, so it is the same for all of its shares.
    """
    if len(holdings) == 1 and not seen_by:
        return holdings
    own: dict[tuple[str, str, str], Holding] = {}
    for each in holdings:
        holder = each.namespace, each.pod, each.container
        own[holder] = _joined(own[holder], each, each.used) if holder in own else each
    if not seen_by:
        return own.values()
    hidden = [each for each in own.values() if each.tenant != seen_by]
    if not hidden:
        return own.values()
    (memory_mib, core_milli), used = _sums(hidden), add_up(each.used for each in hidden)
    others = Holding("", *NO_ONE, memory_mib, core_milli, used)
    return [*(each for each in own.values() if each.tenant == seen_by), others]


def _joined(one: Holding, other: Holding, used: Used | None) -> Holding:
    return one._replace(
        memory_mib=one.memory_mib + other.memory_mib, core_milli=one.core_milli + other.core_milli, used=used
    )


def _sums(holdings: Iterable[Holding]) -> tuple[int, int]:
    memory_mib = core_milli = 0
    for each in holdings:
        memory_mib += each.memory_mib
        core_milli += each.core_milli
    return memory_mib, core_milli


def _device_labels(uses: Iterable[DeviceUse], style: Style) -> list[str]:
    """Return the labels of every device. Labels of a node are formatted once."""
    cluster_is, node_is, zone_is = (style.key(name) for name in ("cluster", "nodeid", "zone"))
    index_is, uuid_is = (f",{style.key(name)}" for name in ("deviceidx", "deviceuuid"))
    quote, written = style.quote, []
    cluster = node = there = ""
    for use in uses:
        if use.node != node or use.cluster != cluster:
            cluster, node = use.cluster, use.node
            there = f'{{{cluster_is}{quote(cluster)},{node_is}{quote(node)},{zone_is}"{ZONE}"'
        written.append(f'{there}{index_is}"{use.device.index}"{uuid_is}{quote(use.device.uuid)}')
    return written
