"""Views of the fleet. Every class is created from a view, a record or a sample with the same fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from seaway.application.network.views import Side
from seaway.application.ports.usage import Used
from seaway.application.records import ClusterSample, Cordon, LinkSample
from seaway.application.views import Amount, ClusterView, DeviceView, ModelView, NodeUse, NodeView, SliceView
from seaway.domain.facts import NO_FACTS
from seaway.domain.network import Link
from seaway.domain.usage import UsageBy, UsageSpan
from seaway.wire.facts import (
    FactSource,
    FactsOut,
    LocationOut,
    ModelPrice,
    fact_sources,
    facts_fields,
    model_prices,
    price_or_none,
)
from seaway.wire.fields import Line, Reference, ReferenceOrNone, moment
from seaway.wire.message import CodeOut, Incoming, Shown, fields_of, with_message

if TYPE_CHECKING:
    from seaway.application.fleet.link_history import LinkStep, Spread
    from seaway.application.fleet.search import Found
    from seaway.application.fleet.usage_history import UsageReport, UsageSeries


class AmountOut(Shown):
    """Amount of a resource."""

    total: int
    used: int
    free: int


class CordonOut(Shown):
    """A cluster or node that accepts no new jobs."""

    cluster: str
    node: str
    """Name of the node; empty for the whole cluster."""
    drain: bool
    """True if running jobs move elsewhere."""
    reason: str
    actor: str
    at: str


class CordonIn(Incoming):
    """Cordon of a cluster or of one node."""

    cluster: Reference
    node: ReferenceOrNone = ""
    """Name of the node; empty for the whole cluster."""
    drain: bool = False
    """True if running jobs move elsewhere."""
    reason: Line = ""


class CordonList(Shown):
    """All cordons."""

    cordons: list[CordonOut]


class ClusterOut(Shown):
    """Summary of a cluster."""

    name: str
    state: Literal["up", "stale", "lost", "gone"]
    last_seen_s: int
    """Seconds since the last response, or since the cluster is known if it never responded."""
    reported_at: str | None = None
    """Time of the last response, also of one before a restart; null if it never responded."""
    message: str
    """Reason why the cluster does not respond; empty while it is up or if unknown."""
    reason: CodeOut
    gateway: str
    region: str | None
    """Null if unknown."""
    zones: list[str] = Field(default_factory=list)
    provider: str | None = None
    location: LocationOut | None = None
    hardware: list[str] | None
    """Special hardware; null if unknown, empty if it has none."""
    price_per_gpu_hour: str | None
    """Exact lowest price per GPU and hour, in units of the currency; null if unknown."""
    prices: list[ModelPrice] = Field(default_factory=list)
    """Prices of the models in the cluster."""
    labels: dict[str, str] = Field(default_factory=dict)
    own_facts: FactsOut | None = None
    """Facts that operators set, of those above; null if there are none."""
    sources: dict[str, FactSource] = Field(default_factory=dict)
    """Sources of the facts above without prices, such as of `region` and `labels.team`."""
    cordon: CordonOut | None
    nodes: int
    gpus: int
    gpus_used_milli: int = 0
    """GPUs in use, thousandths. A slice counts as the larger share of cores and memory."""
    cpu_milli: AmountOut
    memory_mib: AmountOut
    gpu_milli: AmountOut
    gpu_memory_mib: AmountOut
    jobs: int
    orphans: list[str]
    """Names of the cluster's orphaned workloads."""
    nodes_not_ready: int = 0
    """Number of nodes that accept no new work by their cluster."""
    gpus_unhealthy: int = 0
    """Number of GPUs that are not reported as healthy. Failed GPUs and those of failed nodes are not free."""


class ClusterList(Shown):
    """All clusters."""

    clusters: list[ClusterOut]


class UsedOut(Shown):
    """Measured use, as opposed to allocated amounts."""

    memory_bytes: int | None
    """Used memory; null if not measured."""
    core_milli: int | None
    """Used cores, thousandths of the whole device; null if not measured."""
    age_s: float
    """Age of the measurement, seconds."""


class AllocatedSlice(Shown):
    """An allocated share of a device and its job. Jobs of other tenants are hidden."""

    cluster: str
    node: str
    uuid: str
    job_id: str
    job: str
    tenant: str
    attempt: int
    replica: int
    memory_mib: int
    core_milli: int
    mig_profile: str
    pod: str = ""
    """Pod that uses the share, `namespace/pod`; empty if unknown."""
    container: str = ""
    used: UsedOut | None = None
    """Measured use by the container; null if unknown or not visible to you."""


class SliceOut(AllocatedSlice):
    """An allocated share of a device, its job, and the capacity of the device."""

    index: int
    """Index of the device on its node, from 0."""
    model: str
    device_memory_mib: int
    device_core_milli: int


class DeviceOut(Shown):
    """A device and its slices."""

    cluster: str
    node: str
    uuid: str
    index: int
    model: str
    vendor: str
    mode: str
    healthy: bool
    message: str
    """Reason why the device, its node or its cluster accepts no new jobs; empty if it does."""
    reason: CodeOut
    share_limit: int
    memory_mib: AmountOut
    core_milli: AmountOut
    slices: list[AllocatedSlice]
    used: UsedOut | None = None
    """Measured use; null without recent measurements."""
    numa: int = 0
    """NUMA node; 0 if the cluster does not report it."""
    island: int | None = None
    """Number of the group of GPUs of the node that NVLink connects; null if none is known."""
    pcie_switch: int | None = None
    """Number of the PCIe switch on the node; null if unknown."""


class FoundOut(Shown):
    """Totals of all matches, on all pages."""

    nodes: int
    devices: int
    """Number of matching devices on these nodes."""
    memory_mib: AmountOut
    """Memory of the matching devices, without clusters that do not respond."""
    core_milli: AmountOut
    schedulable_memory_mib: int
    """Free memory of the matching devices that accept new jobs."""
    unknown: int
    """Number of matching devices in clusters that do not respond."""
    fullness: list[int]
    """Number of matching devices by allocated memory: none, up to a tenth, up to two tenths, and so on."""


class DevicePage(Shown):
    """Devices, by cluster, node and index."""

    devices: list[DeviceOut]
    next: str | None
    first: int = 0
    """Number of matches before this page."""
    found: FoundOut | None = None


class SlicePage(Shown):
    """Slices, by device."""

    slices: list[SliceOut]
    next: str | None
    found: FoundOut | None = None


class ModelOut(Shown):
    """Summary of the devices of one model."""

    model: str
    devices: int
    free: int = 0
    """Devices that accept jobs and that no job uses."""
    memory_mib: AmountOut
    core_milli: AmountOut


class ModelList(Shown):
    """Models, by name."""

    models: list[ModelOut]


class NodeOut(Shown):
    """A node and its devices."""

    cluster: str
    name: str
    ready: bool
    """True if the node accepts new jobs."""
    message: str
    """Reason why the node accepts no new jobs, other than its own cordon; empty if it does."""
    reason: CodeOut
    cordon: CordonOut | None
    cpu_milli: AmountOut
    memory_mib: AmountOut
    pods: AmountOut | None
    """Maximum and current number of pods; null if unknown."""
    jobs: int = 0
    """Number of jobs with replicas on the node, with or without GPUs, of all tenants."""
    devices: list[DeviceOut]


class NodePage(Shown):
    """Nodes, by cluster and rank."""

    nodes: list[NodeOut]
    next: str | None
    first: int = 0
    """Number of matches before this page."""
    found: FoundOut | None = None


class NodeUseOut(Shown):
    """Allocated GPUs of a node."""

    cluster: str
    name: str
    models: list[str]
    """Models of its devices."""
    gpus: int
    unhealthy: int
    """Number of devices that are not healthy."""
    gpu_milli_used: int
    """Allocated GPUs in thousandths. A device counts as the larger share of cores and memory."""
    ready: bool
    """True if the node accepts new jobs."""
    answers: bool
    """False if its cluster reports the node as not ready, for another reason than a cordon."""
    tenants: list[str]
    """Tenants of its jobs. Tokens of one tenant see an empty name for others."""
    jobs: int
    """Number of jobs with replicas on the node, of all tenants."""


class FleetMap(Shown):
    """The use of all matching nodes, by cluster and rank."""

    nodes: list[NodeUseOut]
    found: FoundOut | None = None


class LinkOut(Shown):
    """Measurements between two gateways."""

    source: str
    target: str
    latency_ns: int | None
    """Round-trip time; null if no probe was answered."""
    jitter_ns: int
    loss_ppm: int
    """Lost probes, parts per million."""
    bandwidth_mbps: int
    used_mbps: int
    """Traffic in a sample; in a candidate's link, the bandwidth that is unavailable for reservations."""


class GatewayOut(Shown):
    """Gateway of a cluster or of a user site."""

    name: str
    address: str
    clusters: list[str]
    """Clusters behind the gateway."""
    site: str
    """User site behind the gateway; empty for a gateway of clusters."""
    standby: bool = False
    """True if another gateway carries the traffic of its cluster."""


class GatewayList(Shown):
    """All gateways."""

    gateways: list[GatewayOut]


class ClusterSampleOut(Shown):
    """Use of a cluster at one time."""

    at: str
    cluster: str
    state: str
    nodes: int
    gpus: int
    gpu_milli: AmountOut
    gpu_memory_mib: AmountOut
    cpu_milli: AmountOut
    memory_mib: AmountOut
    jobs: int


class ClusterHistory(Shown):
    """Samples, oldest first."""

    samples: list[ClusterSampleOut]
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


class LinkSampleOut(LinkOut):
    """Measurement of a link at one time."""

    at: str
    path: str
    """Active path; empty for the route of the underlying network."""


class LinkHistory(Shown):
    """Samples, oldest first."""

    samples: list[LinkSampleOut]
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


class RangeOut(Shown):
    """Minimum, mean and maximum within a step."""

    min: int
    mean: float
    max: int


class LinkStepOut(Shown):
    """Summary of a link over one step of time."""

    at: str
    """Time of the first sample."""
    until: str
    """Time of the last sample."""
    samples: int
    latency_ns: RangeOut | None
    """Round-trip time over samples with an answer; null without such samples."""
    jitter_ns: RangeOut | None
    loss_ppm: RangeOut
    bandwidth_mbps: RangeOut | None
    """Bandwidth; null if unknown."""
    used_mbps: RangeOut | None


class LinkSteps(Shown):
    """History of a link in steps, oldest first. Steps without samples are omitted."""

    step_s: int
    steps: list[LinkStepOut]


class UsageStepOut(Shown):
    """Use in a step of time: means of its samples, in thousandths of a GPU."""

    at: str
    """Start of the step."""
    gpu_milli: int
    """GPUs that exist; 0 for tenants and queues."""
    gpu_milli_used: int
    """Allocated GPUs. A slice counts as the larger share of cores and memory."""
    gpu_milli_measured: int | None
    """Measured use of GPU cores; null without a measurement."""
    running: float
    """Jobs with an allocation."""
    waiting: float
    """Waiting jobs."""
    longest_wait_s: int
    """Longest wait of a job that waited in the step, seconds."""
    started: int
    """Jobs that were placed in the step; of a cluster, jobs that started to run there."""
    mean_wait_s: float | None
    """Mean wait of these jobs, seconds; null without any."""


class UsageSeriesOut(Shown):
    """History of a cluster, tenant or queue, or of the fleet."""

    name: str
    """Name of the cluster, tenant or queue; empty for the fleet, and for others together."""
    gpu_hours: float
    """Allocated GPUs times hours."""
    steps: list[UsageStepOut]
    """Steps with samples, oldest first."""


class UsageHistoryOut(Shown):
    """History of use."""

    by: UsageBy
    span: UsageSpan
    step_s: int
    """Length of a step, seconds."""
    since: str
    until: str
    series: list[UsageSeriesOut]
    """Series with the most GPU-hours first."""
    others: UsageSeriesOut | None
    """All other series together; null for none."""


def amount_fields(amount: Amount) -> dict[str, int]:
    """Return the fields of `AmountOut` for an amount."""
    return {"total": amount.total, "used": amount.used, "free": amount.free}


def cordon_fields(cordon: Cordon) -> dict[str, Any]:
    """Return the fields of `CordonOut` for a cordon."""
    return fields_of(
        CordonOut,
        cordon,
        at=moment(cordon.at_ns),
    )


def cluster_fields(view: ClusterView) -> dict[str, Any]:
    """Return the fields of `ClusterOut` for a cluster."""
    facts = facts_fields(view.facts)
    microprices = [view.facts.microprice(model, spot=spot) for model, spot in view.models]
    return fields_of(
        ClusterOut,
        view,
        **{name: facts[name] for name in ("region", "zones", "provider", "location", "hardware", "labels")},
        price_per_gpu_hour=price_or_none(min((each for each in microprices if each is not None), default=None)),
        prices=model_prices(view),
        sources=fact_sources(view),
        own_facts=None if view.own_facts == NO_FACTS else facts_fields(view.own_facts),
        **with_message(view.reason),
        reported_at=None if view.reported_ns is None else moment(view.reported_ns),
        cordon=None if view.cordon is None else cordon_fields(view.cordon),
        cpu_milli=amount_fields(view.cpu_milli),
        memory_mib=amount_fields(view.memory_mib),
        gpu_milli=amount_fields(view.gpu_milli),
        gpu_memory_mib=amount_fields(view.gpu_memory_mib),
    )


def node_fields(view: NodeView, seen_by: str) -> dict[str, Any]:
    """Return the fields of `NodeOut` for a node, as visible to the tenant `seen_by`; empty for all tenants."""
    return {
        "cluster": view.cluster,
        "name": view.name,
        "ready": view.ready,
        **with_message(view.reason),
        "cordon": None if view.cordon is None else cordon_fields(view.cordon),
        "cpu_milli": amount_fields(view.cpu_milli),
        "memory_mib": amount_fields(view.memory_mib),
        "pods": None if view.pods is None else amount_fields(view.pods),
        "jobs": view.jobs,
        "devices": [device_fields(each, seen_by) for each in view.devices],
    }


def node_use_fields(view: NodeUse, seen_by: str) -> dict[str, Any]:
    """Return the fields of `NodeUseOut` for a node, as visible to the tenant `seen_by`; empty for all tenants."""
    return {
        "cluster": view.cluster,
        "name": view.name,
        "models": view.models,
        "gpus": view.gpus,
        "unhealthy": view.unhealthy,
        "gpu_milli_used": view.gpu_milli_used,
        "ready": view.ready,
        "answers": view.answers,
        "tenants": sorted({each if not seen_by or each == seen_by else "" for each in view.tenants}),
        "jobs": view.jobs,
    }


def device_fields(view: DeviceView, seen_by: str) -> dict[str, Any]:
    """Return the fields of `DeviceOut` for a device, as visible to the tenant `seen_by`; empty for all tenants."""
    return {
        "cluster": view.cluster,
        "node": view.node,
        "uuid": view.uuid,
        "index": view.index,
        "model": view.model,
        "vendor": view.vendor,
        "mode": view.mode,
        "healthy": view.healthy,
        **with_message(view.reason),
        "share_limit": view.share_limit,
        "memory_mib": amount_fields(view.memory_mib),
        "core_milli": amount_fields(view.core_milli),
        "slices": [slice_fields(each, view, seen_by) for each in view.slices],
        "used": None if view.used is None else used_fields(view.used),
        "numa": view.numa,
        "island": None if view.island < 0 else view.island,
        "pcie_switch": None if view.pcie_switch < 0 else view.pcie_switch,
    }


def used_fields(used: Used) -> dict[str, Any]:
    """Return the fields of `UsedOut` for a measurement."""
    return {"memory_bytes": used.memory_bytes, "core_milli": used.core_milli, "age_s": round(used.age_s, 1)}


def slice_fields(view: SliceView, device: DeviceView, seen_by: str) -> dict[str, Any]:
    """Return the fields of `AllocatedSlice` for a slice. Callers that may not see the owner get only the amounts."""
    own = not seen_by or view.tenant == seen_by
    return {
        "cluster": device.cluster,
        "node": device.node,
        "uuid": device.uuid,
        "job_id": view.job_id if own else "",
        "job": view.job if own else "",
        "tenant": view.tenant if own else "",
        "attempt": view.attempt if own else 0,
        "replica": view.replica if own else 0,
        "memory_mib": view.memory_mib,
        "core_milli": view.core_milli,
        "mig_profile": view.mig_profile,
        "pod": view.pod if own else "",
        "container": view.container if own else "",
        "used": used_fields(view.used) if own and view.used else None,
    }


def placed_slice_fields(view: SliceView, device: DeviceView, seen_by: str) -> dict[str, Any]:
    """Return the fields of `SliceOut` for a slice; see `slice_fields`."""
    return slice_fields(view, device, seen_by) | {
        "index": device.index,
        "model": device.model,
        "device_memory_mib": device.memory_mib.total,
        "device_core_milli": device.core_milli.total,
    }


def found_fields(found: Found) -> dict[str, Any]:
    """Return the fields of `FoundOut` for the result of a search."""
    return fields_of(
        FoundOut,
        found,
        nodes=len(found.nodes),
        devices=len(found.devices),
        memory_mib=amount_fields(found.memory_mib),
        core_milli=amount_fields(found.core_milli),
    )


def model_fields(view: ModelView) -> dict[str, Any]:
    """Return the fields of `ModelOut` for a model."""
    return fields_of(
        ModelOut,
        view,
        memory_mib=amount_fields(view.memory_mib),
        core_milli=amount_fields(view.core_milli),
    )


def link_fields(link: Link | LinkSample) -> dict[str, Any]:
    """Return the fields of `LinkOut` for a link."""
    return fields_of(LinkOut, link)


def gateway_fields(name: str, side: Side) -> dict[str, Any]:
    """Return the fields of `GatewayOut` for a gateway."""
    clusters = side.cluster.split(",") if side.cluster else []
    return {"name": name, "address": side.address, "clusters": clusters, "site": side.site, "standby": side.standby}


def cluster_sample_fields(sample: ClusterSample) -> dict[str, Any]:
    """Return the fields of `ClusterSampleOut` for a sample."""
    return fields_of(
        ClusterSampleOut,
        sample,
        at=moment(sample.at_ns),
        gpu_milli=amount_fields(Amount(sample.gpu_milli, sample.gpu_milli_used)),
        gpu_memory_mib=amount_fields(Amount(sample.gpu_memory_mib, sample.gpu_memory_mib_used)),
        cpu_milli=amount_fields(Amount(sample.cpu_milli, sample.cpu_milli_used)),
        memory_mib=amount_fields(Amount(sample.memory_mib, sample.memory_mib_used)),
    )


def link_sample_fields(sample: LinkSample) -> dict[str, Any]:
    """Return the fields of `LinkSampleOut` for a sample."""
    return {"at": moment(sample.at_ns), **link_fields(sample), "path": sample.path}


def usage_fields(by: UsageBy, span: UsageSpan, report: UsageReport) -> dict[str, Any]:
    """Return the fields of `UsageHistoryOut` for a history."""
    return {
        "by": by.value,
        "span": span.value,
        "step_s": span.step_s,
        "since": moment(report.from_ns),
        "until": moment(report.until_ns),
        "series": [_series_fields(each) for each in report.series],
        "others": _series_fields(report.others) if report.others else None,
    }


def _series_fields(series: UsageSeries) -> dict[str, Any]:
    return {
        "name": series.name,
        "gpu_hours": round(series.gpu_hours, 3),
        "steps": [
            {
                "at": moment(each.at_ns),
                "gpu_milli": round(each.gpu_milli),
                "gpu_milli_used": round(each.gpu_milli_used),
                "gpu_milli_measured": None if each.gpu_milli_measured is None else round(each.gpu_milli_measured),
                "running": round(each.running, 2),
                "waiting": round(each.waiting, 2),
                "longest_wait_s": each.longest_wait_s,
                "started": each.started,
                "mean_wait_s": round(each.waited_s / each.started, 1) if each.started else None,
            }
            for each in series.steps
        ],
    }


def link_step_fields(step: LinkStep) -> dict[str, Any]:
    """Return the fields of `LinkStepOut` for a step of a link's history."""

    def spread(found: Spread | None) -> dict[str, Any] | None:
        return {"min": found.least, "mean": found.mean, "max": found.most} if found else None

    return {
        "at": moment(step.at_ns),
        "until": moment(step.until_ns),
        "samples": step.samples,
        "latency_ns": spread(step.latency_ns),
        "jitter_ns": spread(step.jitter_ns),
        "loss_ppm": spread(step.loss_ppm),
        "bandwidth_mbps": spread(step.bandwidth_mbps),
        "used_mbps": spread(step.used_mbps),
    }
