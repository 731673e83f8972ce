"""Metrics: Seaway's own figures and those of every GPU, as Prometheus' text; those of GPUs as JSON too."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from seaway.api.desk import desk_of, plane_of, who_of
from seaway.api.job_query import Word
from seaway.api.meter import MEDIA_TYPE, Meter
from seaway.api.routes import operation, router
from seaway.application.records import Role
from seaway.application.views import DeviceUse
from seaway.wire.metrics import METRICS, Metric, MetricsOut, as_json, metrics_named, prometheus, require_among

text_routes, routes = router("metrics", prefix=""), router("metrics")

OfName = Annotated[Word, Query(description=f"Only this metric: {', '.join(METRICS)}.")]
OfCluster = Annotated[Word, Query(description="Only of this cluster.")]


@operation(text_routes, "GET", "/metrics", Role.VIEWER, {200: "text/plain"})
async def metrics(request: Request, metric: OfName = "", cluster: OfCluster = "") -> Response:
    """Show figures in Prometheus' text format: Seaway's own, and of every cluster, device and vGPU.

    Asked for one metric or one cluster, it leaves Seaway's own figures out. Queues are named to operators and admins,
    and so are pods of other tenants and of nobody: to others, what they hold of a device is one series without names.
    """
    wanted, uses = await _asked(request, metric, cluster)
    own = b"" if metric or cluster else await _own(request)
    return _in_pieces(chain([own], prometheus(uses, wanted, who_of(request).tenant)), MEDIA_TYPE)


@operation(routes, "GET", "/metrics", Role.VIEWER, {200: MetricsOut})
async def list_metrics(request: Request, metric: OfName = "", cluster: OfCluster = "") -> Response:
    """List the metrics of clusters, devices and vGPUs; the pods of other tenants and of nobody as in `/metrics`."""
    wanted, uses = await _asked(request, metric, cluster)
    return _in_pieces(as_json(uses, wanted, who_of(request).tenant), "application/json")


async def _asked(request: Request, metric: str, cluster: str) -> tuple[dict[str, Metric], list[DeviceUse]]:
    overview = plane_of(request).overview

    def look() -> tuple[dict[str, Metric], list[DeviceUse]]:
        wanted = metrics_named(metric)
        if cluster:
            require_among(cluster, overview.cluster_names(), "cluster")
        return wanted, overview.gpu_uses(cluster)

    return await desk_of(request).threads.read(look)


async def _own(request: Request) -> bytes:
    desk, meter = desk_of(request), request.app.state.meter
    assert isinstance(meter, Meter)
    listeners, by_queue = len(request.app.state.hub), not who_of(request).tenant
    return await desk.threads.read(meter.text, desk.plane.overview, desk.audit, listeners, by_queue=by_queue)


def _in_pieces(pieces: Iterator[bytes], media: str) -> Response:
    """Answer piece by piece, made in a thread while the one before is sent."""
    return StreamingResponse(pieces, media_type=media)
