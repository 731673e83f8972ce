"""Metrics of Seaway, GPUs and links as Prometheus text; those of GPUs and links also as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Annotated

from fastapi import Query, Request, Response

from seaway.api.http.meter import MEDIA_TYPE, Clients, Meter
from seaway.api.http.pipeline import caller_of, pipeline_of, plane_of
from seaway.api.http.queries import Word
from seaway.api.http.replies import stream_gzip
from seaway.api.http.routes import operation, router
from seaway.api.sessions import SessionTable
from seaway.application.network.views import FRESH, LinkView, Side
from seaway.application.records import Role
from seaway.application.views import DeviceUse
from seaway.domain.network import PPM
from seaway.wire.metrics import JSON, METRICS, PROMETHEUS, Metric, MetricsOut, Style, as_json, prometheus, require_among


class Between(Enum):
    """Types of links by their ends. A link to a user site has no metrics."""

    USER_TO_CLUSTER = "UserToCluster"
    CLUSTER_TO_CLUSTER = "ClusterToCluster"


@dataclass(frozen=True, slots=True)
class LinkMetric:
    """Metric of links. `value` returns None if unknown, and the series is omitted."""

    between: Between
    says: str
    value: Callable[[LinkView], float | None]


def _latency_ns(link: LinkView) -> int | None:
    return link.latest.latency_ns if link.latest else None


def _jitter_ns(link: LinkView) -> int | None:
    return link.latest.jitter_ns if link.latest and link.latest.latency_ns is not None else None


def _loss(link: LinkView) -> float | None:
    if link.latest is None:
        return None
    return link.latest.loss_ppm / PPM if link.latest.loss_ppm % PPM else link.latest.loss_ppm // PPM


_VALUES: dict[str, tuple[str, Callable[[LinkView], float | None]]] = {
    "Bandwidth": (
        "Free bandwidth {}: spare capacity of both interfaces, Mbit/s.",
        lambda link: link.free_mbps,
    ),
    "Latency": ("Mean round-trip time {}, nanoseconds.", _latency_ns),
    "Jitter": ("Largest deviation of a round-trip time from the mean {}, nanoseconds.", _jitter_ns),
    "PacketLoss": ("Share of unanswered probes {}, 0-1.", _loss),
    "PacketLossBound": (
        "Upper bound of the loss {} while the window has no loss, 0-1.",
        lambda link: None if link.loss_bound_ppm is None else link.loss_bound_ppm / PPM,
    ),
}

_WAYS = {
    Between.USER_TO_CLUSTER: "from a user's gateway to a cluster's",
    Between.CLUSTER_TO_CLUSTER: "from a cluster's gateway to another's",
}

LINK_METRICS = {
    f"{between.value}{name}": LinkMetric(between, says.format(way), value)
    for between, way in _WAYS.items()
    for name, (says, value) in _VALUES.items()
}
"""Metrics by name, in output order."""


def all_named(name: str) -> tuple[dict[str, Metric], dict[str, LinkMetric]]:
    """Return the GPU or link metric with a name; all metrics for an empty name.

    Raises
    ------
    RejectedError
        If no metric has that name; the message suggests the nearest name.
    """
    if not name:
        return METRICS, LINK_METRICS
    require_among(name, [*METRICS, *LINK_METRICS], "metric")
    return (
        {name: METRICS[name]} if name in METRICS else {},
        {name: LINK_METRICS[name]} if name in LINK_METRICS else {},
    )


def as_text(
    links: Sequence[LinkView], sides: Mapping[str, Side], metrics: dict[str, LinkMetric], cluster: str = ""
) -> Iterator[bytes]:
    """Yield metrics as Prometheus text, one piece per metric.

    Parameters
    ----------
    sides
        Cluster or site of each gateway.
    cluster
        Cluster at either end of the links; empty for all links.
    """
    for name, metric, rows in _series(links, sides, metrics, cluster, PROMETHEUS):
        lines = [f"{name}{labels}}} {known}\n" for labels, link in rows if (known := metric.value(link)) is not None]
        yield f"# HELP {name} {metric.says}\n# TYPE {name} gauge\n{''.join(lines)}".encode()


def as_series(
    links: Sequence[LinkView], sides: Mapping[str, Side], metrics: dict[str, LinkMetric], cluster: str = ""
) -> Iterator[tuple[str, bytes]]:
    """Yield metrics as JSON: the name of each, and its series separated by ``,``; see `as_text`."""
    for name, metric, rows in _series(links, sides, metrics, cluster, JSON):
        series = [f'{labels},"value":{known}}}' for labels, link in rows if (known := metric.value(link)) is not None]
        yield name, ",".join(series).encode()


_Row = tuple[str, LinkView]


def _series(
    links: Sequence[LinkView], sides: Mapping[str, Side], metrics: dict[str, LinkMetric], cluster: str, style: Style
) -> Iterator[tuple[str, LinkMetric, list[_Row]]]:
    rows = _rows(links, sides, cluster, style) if metrics else {}
    for name, metric in metrics.items():
        yield name, metric, rows[metric.between]


def _rows(
    links: Iterable[LinkView], sides: Mapping[str, Side], cluster: str, style: Style
) -> dict[Between, list[_Row]]:
    """Return links with their formatted labels, which all metrics share."""
    rows: dict[Between, list[_Row]] = {each: [] for each in Between}
    source_is, target_is = style.key("source"), style.key("target")
    from_is = {
        Between.USER_TO_CLUSTER: style.key("site"),
        Between.CLUSTER_TO_CLUSTER: style.key("source_cluster"),
    }
    cluster_is, quote = style.key("cluster"), style.quote
    for link in links:
        source, target = sides.get(link.source), sides.get(link.target)
        if link.state not in FRESH or source is None or target is None or not target.cluster:
            continue
        if cluster and cluster not in {*source.cluster.split(","), *target.cluster.split(",")}:
            continue
        between = Between.USER_TO_CLUSTER if source.site else Between.CLUSTER_TO_CLUSTER
        labels = (
            f"{{{cluster_is}{quote(target.cluster)},{source_is}{quote(link.source)},{target_is}{quote(link.target)},"
            f"{from_is[between]}{quote(source.site or source.cluster)}"
        )
        rows[between].append((labels, link))
    return rows


text_routes, routes = router("metrics", prefix=""), router("metrics")

OfName = Annotated[Word, Query(description=f"Only this metric: {', '.join([*METRICS, *LINK_METRICS])}.")]
OfCluster = Annotated[Word, Query(description="Filter by cluster; links that begin or end there are included.")]


@dataclass(frozen=True, slots=True)
class MetricsQuery:
    """Filter of metrics by name and cluster."""

    metrics: dict[str, Metric]
    uses: list[DeviceUse]
    link_metrics: dict[str, LinkMetric]
    cluster: str
    links: list[LinkView] = field(default_factory=list)
    sides: dict[str, Side] = field(default_factory=dict)


@operation(text_routes, "GET", "/metrics", Role.VIEWER, {200: "text/plain"})
async def metrics(request: Request, metric: OfName = "", cluster: OfCluster = "") -> Response:
    """Return metrics of Seaway, clusters, devices, vGPUs and links in Prometheus text format.

    A filter by metric or cluster excludes Seaway's own metrics. Only operators and admins see the names of queues, of
    other tenants' pods and of unmanaged pods. For other callers, these pods form one series per device without names.
    """
    asked = await _asked(request, metric, cluster)
    own = b"" if metric or cluster else await _own(request)
    of_links = as_text(asked.links, asked.sides, asked.link_metrics, asked.cluster)
    of_gpus = prometheus(asked.uses, asked.metrics, caller_of(request).tenant)
    return stream_gzip(request, chain([own], of_gpus, of_links), MEDIA_TYPE)


@operation(routes, "GET", "/metrics", Role.VIEWER, {200: MetricsOut})
async def list_metrics(request: Request, metric: OfName = "", cluster: OfCluster = "") -> Response:
    """List the metrics of clusters, devices, vGPUs and links.

    The visibility of pods is the same as in `/metrics`.
    """
    asked = await _asked(request, metric, cluster)
    of_links = as_series(asked.links, asked.sides, asked.link_metrics, asked.cluster)
    series = as_json(asked.uses, asked.metrics, caller_of(request).tenant, of_links)
    return stream_gzip(request, series, "application/json")


async def _asked(request: Request, metric: str, cluster: str) -> MetricsQuery:
    overview = plane_of(request).overview

    def look() -> MetricsQuery:
        of_gpus, of_links = all_named(metric)
        if cluster:
            require_among(cluster, overview.cluster_names(), "cluster")
        uses = overview.gpu_uses(cluster) if of_gpus else []
        if not of_links:
            return MetricsQuery(of_gpus, uses, of_links, cluster)
        return MetricsQuery(of_gpus, uses, of_links, cluster, overview.links(), overview.sides())

    return await pipeline_of(request).threads.read(look)


async def _own(request: Request) -> bytes:
    pipeline, meter = pipeline_of(request), request.app.state.meter
    assert isinstance(meter, Meter)
    listeners, by_queue = len(request.app.state.hub), not caller_of(request).tenant
    table: SessionTable = request.app.state.sessions
    clients = Clients(listeners, request.app.state.connections, table.by_kind())
    return await pipeline.threads.read(meter.text, pipeline.plane, pipeline.audit, clients, by_queue=by_queue)
