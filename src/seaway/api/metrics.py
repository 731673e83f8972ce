"""Metrics of Seaway, of GPUs and of links as Prometheus text; those of GPUs and links also as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated

from fastapi import Query, Request, Response

from seaway.api.http.meter import MEDIA_TYPE, Meter
from seaway.api.http.pipeline import pipeline_of, plane_of, who_of
from seaway.api.http.queries import Word
from seaway.api.http.replies import in_pieces
from seaway.api.http.routes import operation, router
from seaway.application.network.views import LinkView, Side
from seaway.application.records import Role
from seaway.application.views import DeviceUse
from seaway.wire.link_metrics import LINK_METRICS, LinkMetric, all_named, as_series, as_text
from seaway.wire.metrics import METRICS, Metric, MetricsOut, as_json, prometheus, require_among

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

    A filter by metric or cluster omits Seaway's own metrics. Names of queues, of other tenants' pods and of unmanaged
    pods are visible to operators and admins only. Other callers see one series per device without names for them.
    """
    asked = await _asked(request, metric, cluster)
    own = b"" if metric or cluster else await _own(request)
    of_links = as_text(asked.links, asked.sides, asked.link_metrics, asked.cluster)
    of_gpus = prometheus(asked.uses, asked.metrics, who_of(request).tenant)
    return in_pieces(request, chain([own], of_gpus, of_links), MEDIA_TYPE)


@operation(routes, "GET", "/metrics", Role.VIEWER, {200: MetricsOut})
async def list_metrics(request: Request, metric: OfName = "", cluster: OfCluster = "") -> Response:
    """List the metrics of clusters, devices, vGPUs and links.

    The visibility of pods is the same as in `/metrics`.
    """
    asked = await _asked(request, metric, cluster)
    of_links = as_series(asked.links, asked.sides, asked.link_metrics, asked.cluster)
    series = as_json(asked.uses, asked.metrics, who_of(request).tenant, of_links)
    return in_pieces(request, series, "application/json")


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
    listeners, by_queue = len(request.app.state.hub), not who_of(request).tenant
    return await pipeline.threads.read(meter.text, pipeline.plane, pipeline.audit, listeners, by_queue=by_queue)
