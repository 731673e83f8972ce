"""Views of a job: explanation, events, attempts, manifest, logs, and the job in the scheduler's form."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import orjson
import yaml
from fastapi import Query, Request, Response
from fastapi.responses import PlainTextResponse

from seaway.api.http.bodies import chosen
from seaway.api.http.pipeline import RequestPipeline, caller_of, pipeline_of
from seaway.api.http.queries import LARGEST_ID, Moment, find
from seaway.api.http.replies import Reply, encoded_page, json_reply
from seaway.api.http.routes import operation, router
from seaway.api.jobs import JobRef
from seaway.application.fleet.costs import Cost
from seaway.application.fleet.overview import MAX_LINES
from seaway.application.ports.store import MAX_ROWS
from seaway.application.records import Role
from seaway.domain.attempt import Attempt
from seaway.domain.usage import UsageSpan
from seaway.wire.events import EventList, event_fields
from seaway.wire.explanations import ReasonOut, reason_fields
from seaway.wire.fields import at_ns
from seaway.wire.job_in import MAX_REPLICAS
from seaway.wire.job_out import (
    AttemptList,
    CostOut,
    GpuUseOut,
    attempt_fields,
    copy_fields,
    cost_fields,
    gpu_use_fields,
    ring_fields,
    spec_fields,
)
from seaway.wire.normalised import NormalisedJob, normalised_fields

MAX_REPLICA = MAX_REPLICAS - 1
MAX_OBJECTS = 1_000
"""Maximum number of objects in one response."""

ContainerName = Annotated[
    str,
    Query(
        max_length=63,
        examples=["proxy"],
        description="Container of its pod, including terminated ones; empty for the first.",
    ),
]

SinceEvent = Annotated[Moment, Query(description="Begin with events of this time, like 2026-11-21T10:00:00Z.")]
AfterEvent = Annotated[int, Query(ge=0, le=LARGEST_ID, description="Return only events after this one.")]
EventLimit = Annotated[int, Query(ge=1, le=MAX_ROWS)]

routes = router("jobs")


@operation(routes, "GET", "/jobs/{job}/explain", Role.VIEWER, {200: ReasonOut}, errors=(404,))
async def explain_job(request: Request, job: JobRef) -> Response:
    """Explain the state of a job."""
    pipeline, found = pipeline_of(request), await find(request, job)
    reason = await pipeline.threads.read(pipeline.plane.overview.reason, found, caller_of(request).may_see)
    return json_reply(reason_fields(reason))


async def begin_of(pipeline: RequestPipeline, since: str, after: int) -> int:
    """Return the ID of the event after which a list begins."""
    if not since:
        return after
    return max(after, await pipeline.threads.read(pipeline.plane.store.last_event, at_ns(since)))


@operation(routes, "GET", "/jobs/{job}/events", Role.VIEWER, {200: EventList}, errors=(404,))
async def list_job_events(
    request: Request, job: JobRef, since: SinceEvent = "", after: AfterEvent = 0, limit: EventLimit = MAX_ROWS
) -> Response:
    """List the events of a job, in order."""
    pipeline, found = pipeline_of(request), await find(request, job)
    begin = await begin_of(pipeline, since, after)

    def page() -> bytes:
        rows = pipeline.plane.store.events(begin, limit, job_id=found.id)
        return encoded_page("events", rows, event_fields, lambda row, _: row.id, limit)

    return Reply(await pipeline.threads.read(page))


@operation(routes, "GET", "/jobs/{job}/attempts", Role.VIEWER, {200: AttemptList}, errors=(404,))
async def list_attempts(
    request: Request,
    job: JobRef,
    after: Annotated[int, Query(ge=0, le=LARGEST_ID, description="Return only attempts after this one.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = MAX_ROWS,
    first: Annotated[int, Query(ge=0, le=MAX_REPLICA, description="First replica to return.")] = 0,
    replicas: Annotated[int, Query(ge=1, le=MAX_REPLICAS, description="Number of replicas to return.")] = MAX_REPLICAS,
    specs: Annotated[bool, Query(description="Return the specification of each attempt.")] = False,
) -> Response:
    """List the placements of a job by attempt, and the workloads of the latest attempt."""
    pipeline, found = pipeline_of(request), await find(request, job)
    rows = [
        each for each in await pipeline.threads.read(pipeline.plane.store.attempts, found.id) if each.number > after
    ]
    overview = pipeline.plane.overview
    workloads = await pipeline.threads.read(overview.workloads, found)
    live = [each for each in rows[-1:] if each.state.live and each.spec.ring]
    ring = await pipeline.threads.read(overview.ring, live[0]) if live else []
    wanted, listed = range(first, first + replicas), rows[:limit]
    costs = await pipeline.threads.read(overview.costs.of_attempts, listed)
    ends_ns = await pipeline.threads.read(overview.expected_end_ns, rows[-1]) if rows else None
    content = caller_of(request).reads_job_content

    def page() -> bytes:
        def fields(row: tuple[Attempt, Cost]) -> dict[str, Any]:
            attempt, cost = row
            spec = spec_fields(attempt.spec, content=content) if specs else None
            return attempt_fields(attempt, wanted, cost, ends_ns if attempt is rows[-1] else None, spec)

        def following(row: tuple[Attempt, Cost], _: int) -> int | None:
            return row[0].number if row[0] is not rows[-1] else None

        more = {
            "workloads": [copy_fields(each, wanted, found.spec.ports) for each in workloads],
            "ring": ring_fields(ring),
        }
        return encoded_page("attempts", zip(listed, costs, strict=True), fields, following, limit, more)

    return Reply(await pipeline.threads.read(page))


@operation(routes, "GET", "/jobs/{job}/cost", Role.VIEWER, {200: CostOut}, errors=(404,))
async def get_cost(request: Request, job: JobRef) -> Response:
    """Return the GPU time and the cost of a job, of all attempts until now; of an array, those of its tasks."""
    pipeline, found = pipeline_of(request), await find(request, job)
    costs = await pipeline.threads.read(pipeline.plane.overview.costs.of_jobs, [found.id])
    return json_reply(cost_fields(costs[found.id]))


@operation(routes, "GET", "/jobs/{job}/gpu-use", Role.VIEWER, {200: GpuUseOut}, errors=(404,))
async def get_gpu_use(
    request: Request,
    job: JobRef,
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS, description="Number of slices to return.")] = 100,
    span: Annotated[UsageSpan, Query(description="Length of the time until now, of the samples.")] = UsageSpan.HOUR,
) -> Response:
    """Return the use of a job's GPUs that exporters report: now, by slice, and over time, in total."""
    pipeline, found = pipeline_of(request), await find(request, job)
    slices, samples = await pipeline.threads.read(pipeline.plane.overview.gpu_use, found, span)
    return json_reply(gpu_use_fields(slices, samples, limit))


@operation(
    routes,
    "GET",
    "/jobs/{job}/manifest",
    Role.VIEWER,
    {
        200: {
            "description": 'Objects. A `Link` header with `rel="next"` refers to the next page.',
            "content": {
                "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
                "application/yaml": {"schema": {}},  # one document for each object
            },
        }
    },
    errors=(404, 406, 409),
)
async def get_manifest(
    request: Request,
    job: JobRef,
    after: Annotated[int, Query(ge=0, le=LARGEST_ID, description="Number of objects to skip.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_OBJECTS)] = MAX_OBJECTS,
) -> Response:
    """Return the objects of a job in its clusters, as JSON or YAML by `Accept`."""
    caller_of(request).require_job_content()
    kind = chosen(request, "application/yaml", "application/json")
    pipeline, found = pipeline_of(request), await find(request, job)

    def write() -> tuple[bytes, bool]:
        objects = pipeline.plane.overview.manifests(found)
        part = objects[after : after + limit]
        written = orjson.dumps(part) if kind == "application/json" else _yaml(part)
        return written, after + limit < len(objects)

    written, more = await pipeline.threads.heavy(write)
    path = f"/api/v1/jobs/{found.id}/manifest?after={after + limit}&limit={limit}"
    return Response(written, headers={"link": f'<{path}>; rel="next"'} if more else None, media_type=kind)


@operation(routes, "GET", "/jobs/{job}/logs", Role.VIEWER, {200: "text/plain"}, errors=(404, 409))
async def get_logs(  # noqa: PLR0913, PLR0917  # parameters of the query
    request: Request,
    job: JobRef,
    replica: Annotated[int, Query(ge=0, le=MAX_REPLICA)] = 0,
    tail: Annotated[int, Query(ge=1, le=MAX_LINES, description="Number of lines, counted from the end.")] = 100,
    container: ContainerName = "",
    since: Annotated[Moment, Query(description="Only lines from this second on, like 2026-11-21T10:00:00Z.")] = "",
    contains: Annotated[
        str, Query(max_length=200, description="Only lines with this text, in upper or lower case.")
    ] = "",
    attempt: Annotated[int, Query(ge=0, le=LARGEST_ID, description="Number of an attempt; 0 for the latest.")] = 0,
    timestamps: Annotated[bool, Query(description="True to begin each line with its time.")] = False,
) -> Response:
    """Return the last log lines of a container of a replica, if its cluster has them, or Seaway has stored them.

    A search looks at the last 10,000 lines.
    """
    caller_of(request).require_job_content()
    pipeline, found = pipeline_of(request), await find(request, job)
    log = await pipeline.threads.read(pipeline.plane.overview.latest_log, found, replica, container, attempt)
    read = partial(log.lines, times=timestamps)
    since_ns = max(0, at_ns(since)) if since else 0
    lines = await pipeline.threads.ask_cluster(log.backend.cluster, read, tail, since_ns, contains)
    return PlainTextResponse("".join(f"{line}\n" for line in lines))


@operation(routes, "GET", "/jobs/{job}/normalised", Role.VIEWER, {200: NormalisedJob}, errors=(404,))
async def get_normalised(request: Request, job: JobRef) -> Response:
    """Return a job in the scheduler's form."""
    found = await find(request, job)
    return json_reply(normalised_fields(found, pipeline_of(request).plane.overview.clusters_of(found)))


_Plain: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Plain):  # type: ignore[misc]  # either of the two
    """Dumper without aliases, as `kubectl` expects."""

    def ignore_aliases(self, data: object) -> bool:
        """Disable aliases."""
        return True


def _yaml(objects: list[dict[str, Any]]) -> bytes:
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text.encode()
