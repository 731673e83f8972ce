"""Operations on queues: the queues themselves, their use, their waiting jobs, and shadow policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query, Request, Response

from seaway.api.http.bodies import PRECONDITIONS, precondition_of, read, read_reply, tagged_reply
from seaway.api.http.pipeline import caller_of, pipeline_of
from seaway.api.http.queries import After, Word, find, number_after, page_token, tenant_asked
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, operation, router
from seaway.api.jobs import JobRef
from seaway.api.operators import act, named
from seaway.application.fleet.queues import Place
from seaway.application.fleet.schedule import Grouping, ScheduleFilter
from seaway.application.jobs import later_tasks
from seaway.application.operations import Operations
from seaway.application.ports.store import MAX_ROWS
from seaway.application.records import Role
from seaway.wire.fields import LONGEST_TIME_S
from seaway.wire.message import coded
from seaway.wire.queues import (
    PriorityOut,
    QueueIn,
    QueueList,
    QueueOut,
    QueueStored,
    QueueUsageList,
    ScheduleOut,
    ShadowList,
    ShareList,
    WaitingPage,
    priority_fields,
    queue_fields,
    schedule_fields,
    shadow_fields,
    share_fields,
    tenant_totals_fields,
    totals_fields,
    use_fields,
    waiting_fields,
)

queues, shadows = map(router, ("queues", "policies"))

MAX_EXPLAINED = 100
"""Maximum number of jobs on a page, each with an explanation."""

MAX_SCHEDULED = 1000
"""Maximum number of jobs of a schedule."""


@operation(queues, "GET", "/queues", Role.VIEWER, {200: QueueList})
async def list_queues(request: Request) -> Response:
    """List queues, without those of other tenants."""
    pipeline, who = pipeline_of(request), caller_of(request)
    rows = await pipeline.threads.read(pipeline.plane.store.queues)
    return json_reply({"queues": [queue_fields(row) for row in rows if who.may_see(row.tenant)]})


@operation(
    queues, "GET", "/queues/{name}", Role.VIEWER, {200: QueueOut, 304: None}, errors=(404,), headers=(IF_NONE_MATCH,)
)
async def get_queue(request: Request, name: str) -> Response:
    """Return a queue."""
    store = pipeline_of(request).plane.store
    return read_reply(request, queue_fields(await named(request, "queue", store.queues, name, lambda row: row.tenant)))


@operation(
    queues,
    "PUT",
    "/queues/{name}",
    Role.OPERATOR,
    {200: QueueStored},
    errors=(409, 412),
    body=QueueIn,
    headers=PRECONDITIONS,
)
async def put_queue(request: Request, name: str) -> Response:
    """Create or change a queue: its place in the tree, its share, its tenant, its pool and its policy.

    Omitted fields get their defaults. The tree is checked in the same step: a queue cannot guarantee less than its
    children guarantee together, and a queue with unfinished jobs cannot get children. `warning` describes limits of
    the policy, such as those of baselines. `warnings` name models of no GPU, limits below the use, and
    guarantees beyond the pool.
    """
    given, overview = await read(request, QueueIn), pipeline_of(request).plane.overview
    meant = precondition_of(request, queue_fields)
    queue = await act(request, Operations.put_queue, given.queue(name), meant=meant)
    warning = await pipeline_of(request).threads.read(overview.policy_warning, queue.policy)
    found = await pipeline_of(request).threads.read(pipeline_of(request).plane.quota_warnings.of_queue, queue)
    stored = queue_fields(queue) | ({"warning": coded(warning)} if warning else {})
    return tagged_reply(stored | ({"warnings": [coded(each) for each in found]} if found else {}))


@operation(queues, "DELETE", "/queues/{name}", Role.OPERATOR, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_queue(request: Request, name: str) -> Response:
    """Remove a queue without waiting and running jobs and without children."""
    await act(request, Operations.delete_queue, name, meant=precondition_of(request, queue_fields))
    return nothing()


@operation(shadows, "GET", "/shadows", Role.OPERATOR, {200: ShadowList})
async def list_shadows(
    request: Request, queue: Word = "", after: After = "", limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100
) -> Response:
    """List comparisons of shadow policies with live policies, newest first."""
    pipeline = pipeline_of(request)
    rows = await pipeline.threads.read(pipeline.plane.store.shadows, queue, limit, number_after(after))
    following = page_token(str(rows[-1].id)) if len(rows) == limit else None
    return json_reply({"shadows": [shadow_fields(row) for row in rows], "next": following})


@operation(queues, "GET", "/queue-usage", Role.VIEWER, {200: QueueUsageList})
async def list_queue_usage(request: Request) -> Response:
    """List allocations and waiting jobs by queue and tenant, by queue with its descendants, and by tenant and pool.

    A token of a tenant sees its own queues and those of all tenants. The sums of queues count the jobs of all tenants,
    without names. Sums by tenant, and costs, are those of its own jobs.
    """
    pipeline, who = pipeline_of(request), caller_of(request)
    overview = pipeline.plane.overview

    def look() -> dict[str, Any]:
        costs = overview.costs.by_lane()
        uses, totals = overview.queue_usage(), overview.queue_totals(who.tenant, costs)
        return {
            "uses": [use_fields(row) for row in uses if who.may_see(row.tenant)],
            "queues": [totals_fields(row) for row in totals],
            "tenants": [tenant_totals_fields(row) for row in overview.tenant_totals(costs) if who.may_see(row.tenant)],
        }

    return json_reply(await pipeline.threads.read(look))


@operation(queues, "GET", "/shares", Role.VIEWER, {200: ShareList})
async def list_shares(request: Request) -> Response:
    """List the shares of queues and of the tenants in them: weights, guarantees, and the use now and in the past.

    A token of a tenant sees its own shares.
    """
    pipeline, who = pipeline_of(request), caller_of(request)
    rows = await pipeline.threads.read(pipeline.plane.overview.shares, who.tenant)
    return json_reply({"shares": [share_fields(row) for row in rows]})


@operation(queues, "GET", "/jobs/{job}/priority", Role.VIEWER, {200: PriorityOut}, errors=(404, 409))
async def get_priority(request: Request, job: JobRef) -> Response:
    """Return the factors that order a waiting job: of each queue on its path, of its tenant, and its own.

    Names of other tenants are omitted.
    """
    pipeline, who = pipeline_of(request), caller_of(request)
    overview, found = pipeline.plane.overview, await find(request, job)

    def look() -> dict[str, Any]:
        factors = overview.factors(found)
        if who.tenant:
            factors = [replace(each, ahead=()) for each in factors]
        return priority_fields(found, factors, overview.reason(found, remedies=False).estimated_start_ns)

    return json_reply(await pipeline.threads.read(look))


@operation(queues, "GET", "/queues/{name}/waiting", Role.VIEWER, {200: WaitingPage}, errors=(404,))
async def list_waiting(
    request: Request, name: str, after: After = "", limit: Annotated[int, Query(ge=1, le=MAX_EXPLAINED)] = 25
) -> Response:
    """List the waiting jobs of a queue in the order in which they are tried, with the reasons and expected starts.

    Jobs of other tenants are omitted.
    """
    return await _waiting_page(request, name, caller_of(request).tenant, after, limit)


@operation(queues, "GET", "/waiting-jobs", Role.VIEWER, {200: WaitingPage}, errors=(404,))
async def list_all_waiting(
    request: Request,
    queue: Word = "",
    tenant: Word = "",
    after: After = "",
    limit: Annotated[int, Query(ge=1, le=MAX_EXPLAINED)] = 25,
) -> Response:
    """List the waiting jobs of all queues in the order in which they are tried, with the reasons and expected starts.

    Jobs of other tenants are omitted.
    """
    return await _waiting_page(request, queue, tenant_asked(caller_of(request), tenant), after, limit)


async def _waiting_page(request: Request, queue: str, tenant: str, after: str, limit: int) -> Response:
    pipeline = pipeline_of(request)
    if queue:
        await named(request, "queue", pipeline.plane.store.queues, queue, lambda row: row.tenant)
    first, overview, sees = number_after(after), pipeline.plane.overview, caller_of(request).may_see

    def page() -> dict[str, Any]:
        rows = overview.waiting(queue, tenant)
        shown = rows[first : first + limit]
        counts = pipeline.plane.store.task_counts([row.job.id for row in shown if row.job.is_array])

        def fields(row: Place) -> dict[str, Any]:
            of = later_tasks(row.job, 1)[0] if row.job.is_array else row.job
            return waiting_fields(row, overview.reason(of, sees, remedies=False), counts.get(row.job.id))

        return {
            "jobs": list(map(fields, shown)),
            "total": len(rows),
            "next": page_token(str(first + limit)) if first + limit < len(rows) else None,
        }

    return json_reply(await pipeline.threads.read(page))


@operation(queues, "GET", "/schedule", Role.VIEWER, {200: ScheduleOut}, errors=(404,))
async def get_schedule(  # one parameter for each filter
    request: Request,
    by: Grouping = Grouping.CLUSTER,
    cluster: Word = "",
    queue: Word = "",
    tenant: Word = "",
    within_s: Annotated[int, Query(ge=1, le=LONGEST_TIME_S)] = 86_400,
    limit: Annotated[int, Query(ge=1, le=MAX_SCHEDULED)] = 200,
) -> Response:
    """Return running jobs with their expected ends, and waiting jobs with their expected starts, by cluster or queue.

    Starts within `within_s` seconds count. At most `limit` jobs are returned: large running jobs and early starts of
    each cluster or queue first. A job in several clusters is in the group of each. Jobs of other tenants are omitted.
    """
    pipeline = pipeline_of(request)
    wanted = ScheduleFilter(cluster, queue, tenant_asked(caller_of(request), tenant), within_s)
    if queue:
        await named(request, "queue", pipeline.plane.store.queues, queue, lambda row: row.tenant)
    found = await pipeline.threads.read(pipeline.plane.overview.schedule, by, wanted, limit)
    return json_reply(schedule_fields(found))
