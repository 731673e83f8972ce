"""Operations on links between gateways: figures, measurements and history."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from seaway.api.http.pipeline import pipeline_of
from seaway.api.http.queries import Moment, Word, sample_after, sample_token
from seaway.api.http.replies import json_reply
from seaway.api.http.routes import PREFIX, operation, router
from seaway.application.fleet.overview import Overview
from seaway.application.network.views import Asked
from seaway.application.ports.store import MAX_ROWS
from seaway.application.records import Role
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason
from seaway.wire.fields import at_ns
from seaway.wire.links import (
    LinkFigure,
    LinkList,
    LinkMatrix,
    NetLinks,
    known_link_fields,
    matrix_fields,
    net_link_fields,
    net_sample_fields,
    worst_first,
)
from seaway.wire.metrics import require_among

routes = router("fleet")

OfSource = Annotated[Word, Query(description="Filter by source gateway.")]
OfTarget = Annotated[Word, Query(description="Filter by target gateway.")]
OfCluster = Annotated[Word, Query(description="Filter by the cluster at either end.")]
OfGateway = Annotated[Word, Query(description="Filter by the gateway at either end.")]
OfSite = Annotated[Word, Query(description="Filter by the user site at either end.")]
Worst = Annotated[
    LinkFigure | None,
    Query(description="Sort by this figure, worst first and unknown last. Default: by names."),
]
Most = Annotated[int | None, Query(ge=1, le=MAX_ROWS, description="Maximum number of links. Default: all.")]
Shown = Annotated[LinkFigure, Query(description="Figure to return.")]
Since = Annotated[Moment, Query(description="Start time, like 2026-11-21T10:00:00Z.")]
Until = Annotated[Moment, Query(description="End time.")]
AfterSample = Annotated[str, Query(max_length=2000, description="Value from the `Link` header of the previous page.")]


@operation(routes, "GET", "/fleet/links", Role.VIEWER, {200: LinkList})
async def list_links(  # noqa: PLR0913  # query parameters
    request: Request,
    *,
    source: OfSource = "",
    target: OfTarget = "",
    cluster: OfCluster = "",
    gateway: OfGateway = "",
    site: OfSite = "",
    worst: Worst = None,
    limit: Most = None,
) -> Response:
    """List links with their figures for decisions, smoothed and raw measurements, age, path and state.

    Links without measurements are included.
    """
    overview = pipeline_of(request).plane.overview

    def look() -> dict[str, Any]:
        found = overview.links(_asked(overview, source, target, cluster=cluster, gateway=gateway, site=site))
        if worst is not None:
            found.sort(key=lambda each: worst_first(each, worst))
        return {"links": [known_link_fields(each) for each in found[:limit]], "total": len(found)}

    return json_reply(await pipeline_of(request).threads.read(look))


@operation(routes, "GET", "/fleet/links/matrix", Role.VIEWER, {200: LinkMatrix})
async def get_link_matrix(request: Request, figure: Shown = LinkFigure.LATENCY) -> Response:
    """Return one figure of all links as a matrix of source and target gateways."""
    overview = pipeline_of(request).plane.overview
    return json_reply(
        await pipeline_of(request).threads.read(lambda: matrix_fields(overview.links(), overview.sides(), figure))
    )


@operation(routes, "GET", "/links", Role.VIEWER, {200: NetLinks})
async def list_measured_links(
    request: Request,
    source: OfSource = "",
    target: OfTarget = "",
    cluster: OfCluster = "",
    since: Since = "",
    until: Until = "",
    after: AfterSample = "",
) -> Response:
    """List the latest measurements of links, or those of a period. Links without measurements are omitted.

    A period has one sample per interval, oldest first; `at` is the time of its latest round. A `Link` header with
    `rel="next"` refers to the next page.
    """
    if since and until and at_ns(since) > at_ns(until):
        raise RejectedError(Reason("not_before", since=since), where="until")
    pipeline = pipeline_of(request)
    overview, store = pipeline.plane.overview, pipeline.plane.store

    def now() -> list[dict[str, Any]]:
        sides, asked = overview.sides(), _asked(overview, source, target, cluster=cluster)
        return [net_link_fields(each, sides) for each in overview.links(asked) if each.counts]

    def before() -> tuple[list[dict[str, Any]], str]:
        sides, until_ns = overview.sides(), at_ns(until) if until else None
        from_ns, (near, far) = sample_after(after, 2) or (at_ns(since) if since else 0, ("", ""))
        rows = store.link_samples(source, target, from_ns, MAX_ROWS, (near, far))
        asked = _asked(overview, source, target, cluster=cluster, gone=bool(rows))
        wanted = [each for each in rows if until_ns is None or each.at_ns <= until_ns]
        last = rows[-1] if len(rows) == MAX_ROWS and len(wanted) == len(rows) else None
        following = sample_token(last.at_ns, last.source, last.target) if last else ""
        return [net_sample_fields(each, sides) for each in wanted if asked(each.source, each.target)], following

    if not (since or until or after):
        return json_reply(await pipeline.threads.read(now))
    samples, following = await pipeline.threads.read(before)
    query = {"source": source, "target": target, "cluster": cluster, "until": until, "after": following}
    path = f"{PREFIX}/links?{urlencode({name: value for name, value in query.items() if value})}"
    return json_reply(samples, headers={"link": f'<{path}>; rel="next"'} if following else None)


def _asked(
    overview: Overview,
    source: str,
    target: str,
    *,
    cluster: str = "",
    gateway: str = "",
    site: str = "",
    gone: bool = False,
) -> Asked:
    """Return a filter of links by their gateways; `gone` also accepts gateways that may have been removed.

    Raises
    ------
    RejectedError
        If a gateway, cluster or site is unknown.
    """
    sides = overview.sides() if source or target or cluster or gateway or site else {}
    for end, what in ((source, "source"), (target, "target"), (gateway, "gateway")):
        if end and not gone:
            require_among(end, sides, what)
    gateways_by_cluster: list[set[str]] = [{gateway}] if gateway else []
    if cluster:
        require_among(cluster, overview.cluster_names(), "cluster")
        gateways_by_cluster.append({name for name, side in sides.items() if cluster in side.cluster.split(",")})
    if site:
        require_among(site, sorted({side.site for side in sides.values() if side.site}), "site")
        gateways_by_cluster.append({name for name, side in sides.items() if side.site == site})

    def asked(near: str, far: str) -> bool:
        return (
            source in {"", near}
            and target in {"", far}
            and all(near in each or far in each for each in gateways_by_cluster)
        )

    return asked
