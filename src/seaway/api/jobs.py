"""Operations on jobs: submit, get, list, change and actions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from seaway.api.http.bodies import JSON, MERGE_PATCH, YAML, merged, read, read_either, read_large, read_patch
from seaway.api.http.pipeline import DRY_RUN, MADE, NOTED, caller_of, header_of, pipeline_of, plane_of
from seaway.api.http.queries import MAX_DEFAULT, JobQuery, StatesQuery, Word, find, page_after, page_token, tenant_asked
from seaway.api.http.replies import (
    BadRequestError,
    Reply,
    encoded_page,
    is_known,
    job_reply,
    json_reply,
    nothing,
    shown_tag,
    tag,
    tags_in,
    version_tag,
)
from seaway.api.http.routes import IF_MATCH, IF_NONE_MATCH, MESSAGES, Handler, Header, operation, router
from seaway.application.fleet.costs import Cost, Costs
from seaway.application.fleet.job_groups import job_groups
from seaway.application.fleet.overview import Overview
from seaway.application.jobs import TRIES, SubmitKey, require_changeable, require_order, tasks_of, workflow
from seaway.application.ports.store import MAX_ROWS, JobFilter, JobSort, Store
from seaway.application.records import Role
from seaway.application.views import Sees
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.errors import ConflictError, ForbiddenError, RejectedError, StaleError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import DEFAULT, unknown_name
from seaway.wire.explanations import DryRunBatch, DryRunOut, dry_run_fields
from seaway.wire.fields import LINE_PATTERN, Line, moment_or_none
from seaway.wire.job_in import JobBatchIn, JobIn, JobPatch
from seaway.wire.job_out import (
    JobBatch,
    JobCount,
    JobGroupList,
    JobOut,
    JobPage,
    SavedFilterIn,
    SavedFilterList,
    SavedFilterOut,
    UnusedGpusList,
    Workflow,
    cost_fields,
    count_fields,
    group_fields,
    job_fields,
    saved_filter_fields,
    unused_fields,
)
from seaway.wire.job_text import changes_text, job_text
from seaway.wire.message import Incoming
from seaway.wire.reading import read_value
from seaway.wire.yaml import MAX_VALUES

RANKED = frozenset({JobSort.COST, JobSort.GPU_HOURS})
"""Orders for which the costs of all jobs are computed."""

LONGEST_KEY = 255
"""Maximum length of an idempotency key, characters."""

routes = router("jobs")

JobRef = Annotated[
    str, Path(description="ID of a job, or its name. If several jobs have the name, the only unfinished one is meant.")
]
KEY = Header("Idempotency-Key", "A repeated submit with the same key and body returns the existing job.", LONGEST_KEY)
DryRun = Annotated[bool, Query(description="Dry run: return the decision and store nothing.")]


def _one_of(stored: type[BaseModel], trial: type[BaseModel], said: str) -> dict[str, Any]:
    """Return the description of a response that is either of a dry run or of a repeated request."""
    MESSAGES.update((stored, trial))
    either = [{"$ref": f"#/components/schemas/{each.__name__}"} for each in (stored, trial)]
    return {"description": said, "content": {"application/json": {"schema": {"anyOf": either}}}}


_SUBMITTED: dict[int, Any] = {
    201: JobOut,
    200: _one_of(JobOut, DryRunOut, "The result of a dry run, or the existing job for a repeated idempotency key."),
}

_ALL_SUBMITTED: dict[int, Any] = {
    201: JobBatch,
    200: _one_of(JobBatch, DryRunBatch, "The results of a dry run, or the jobs of a repeated idempotency key."),
}


async def submit(request: Request) -> Response:
    """Submit a job on the fast path, without the framework."""
    given, body = await read_either(request, JobIn)
    spec = _own(request, given)
    (job, *_), new = await _stored(request, [spec], _key(request, body))
    headers = {"location": f"/api/v1/jobs/{job.id}"}
    if not new:
        headers["idempotency-replayed"] = "true"
    return job_reply(job, 201 if new else 200, headers)


async def _stored(
    request: Request, specs: Sequence[JobSpec], key: SubmitKey | None, *, batch: bool = False
) -> tuple[list[JobRecord], bool]:
    """Check and store jobs; return them, and whether they are new."""
    jobs = plane_of(request).jobs
    found = await jobs.replayed(key, specs) if key else []
    new = not found
    if new:  # a stored job stays valid, whatever admission decides now
        specs, known = await _admitted(request, specs, batch=batch)
        noted = partial(pipeline_of(request).accepted, request)
        found, new = await jobs.submit(specs, caller_of(request).name, key, noted, known)
        request.scope[NOTED] = new
    request.scope[MADE] = found[0].id
    return found, new


async def _admitted(
    request: Request, specs: Sequence[JobSpec], *, batch: bool = False
) -> tuple[Sequence[JobSpec], dict[str, JobRecord]]:
    """Check the jobs of a request; return them with IDs of stored predecessors, and these predecessors by ID.

    Parameters
    ----------
    batch
        Whether it is a request for several jobs, so that errors name the job.

    Raises
    ------
    RejectedError
        With the problems of all jobs.
    """
    names, known = {spec.name for spec in specs}, dict[str, JobRecord]()
    admitted, wrong = [], []
    for at, spec in enumerate(specs):
        try:
            await _admit(request, spec)
            admitted.append(await _resolved(request, spec, names, known) if spec.after else spec)
        except RejectedError as error:
            wrong.append(error.below(f"jobs[{at}]") if batch else error)
    if wrong:
        raise RejectedError.together(wrong)
    return admitted, known


async def _resolved(request: Request, spec: JobSpec, names: Set[str], known: dict[str, JobRecord]) -> JobSpec:
    """Return a job with IDs of its stored predecessors, and add these to `known`.

    Parameters
    ----------
    names
        Names of jobs of the same request, which take precedence.

    Raises
    ------
    RejectedError
        If a predecessor does not exist, or is not visible to the caller.
    """
    after = []
    for at, each in enumerate(spec.after):
        resolved = each
        if each.job not in names:
            try:
                found = await find(request, each.job)
            except RejectedError as error:
                raise RejectedError(error.message, where=f"after[{at}].job") from None
            if found.array:
                said = Reason("task_not_array", array=found.array)
                raise RejectedError(said, where=f"after[{at}].job")
            known[found.id], resolved = found, replace(each, job=found.id)
        after.append(resolved)
    return replace(spec, after=tuple(after))


@operation(
    routes, "POST", "/jobs", Role.USER, _SUBMITTED, errors=(404, 409), body=JobIn, media=(JSON, YAML[0]), headers=(KEY,)
)
async def submit_job(request: Request, dry_run: DryRun = False) -> Response:
    """Submit a job.

    The response is sent after the job is stored. With `dry_run`, the scheduler decides on the current fleet. The
    response then has the placement, or the reason why the job would wait.
    """
    if not dry_run:
        return await submit(request)
    request.scope[DRY_RUN] = True
    pipeline = pipeline_of(request)
    given, _ = await read_either(request, JobIn)
    (spec,), _ = await _admitted(request, [_own(request, given)])
    dry_run_of = pipeline.plane.overview.dry_run
    who = caller_of(request)
    return json_reply(dry_run_fields(await pipeline.threads.heavy(dry_run_of, spec, who.name, who.may_see)))


@operation(
    routes,
    "POST",
    "/jobs:batch",
    Role.USER,
    _ALL_SUBMITTED,
    errors=(404, 409),
    body=JobBatchIn,
    media=(JSON, YAML[0]),
    headers=(KEY,),
)
async def submit_jobs(request: Request, dry_run: DryRun = False) -> Response:
    """Submit several jobs in one transaction, all or none.

    A job may come after others of the request, by name. With `dry_run`, the scheduler decides on the current fleet for
    each job alone, as if its predecessors had ended.
    """
    pipeline, given = pipeline_of(request), await read_large(request, JobBatchIn, MAX_VALUES)
    specs, wrong = [], []
    for at, each in enumerate(given.jobs):
        try:
            specs.append(_own(request, each))
            if specs[-1].tenant != specs[0].tenant:
                raise RejectedError(Reason("same_for_all"), where="tenant")
        except RejectedError as error:
            wrong.append(error.below(f"jobs[{at}]"))
    if wrong:
        raise RejectedError.together(wrong)
    if dry_run:
        request.scope[DRY_RUN] = True
        require_order((await _admitted(request, specs, batch=True))[0])
        dry_run_of, who = pipeline.plane.overview.dry_run, caller_of(request)
        trials = [await pipeline.threads.heavy(dry_run_of, spec, who.name, who.may_see) for spec in specs]
        return json_reply({"jobs": [dry_run_fields(each) for each in trials]})
    jobs, new = await _stored(request, specs, _key(request, await request.body()), batch=True)
    fields = {"jobs": [job_fields(each) for each in jobs]}
    return json_reply(fields, 201 if new else 200, {} if new else {"idempotency-replayed": "true"})


@operation(routes, "GET", "/jobs", Role.VIEWER, {200: JobPage}, errors=(404,))
async def list_jobs(request: Request, query: Annotated[JobQuery, Query()]) -> Response:
    """List jobs by page, newest first or in the order of `sort`, without deleted ones."""
    pipeline = pipeline_of(request)
    now_ns = pipeline.plane.clock.now_ns()
    wanted = query.filter(tenant_asked(caller_of(request), query.tenant), now_ns)
    run = pipeline.threads.heavy if wanted.sort in RANKED else pipeline.threads.read
    page = await run(_page, pipeline.plane.store, pipeline.plane.overview, query, wanted, caller_of(request).may_see)
    if page.startswith(NO_JOBS):
        await _require_known(request, query)
    return Reply(page)


NO_JOBS = b'{"jobs":[]'
"""Begin of an empty page."""


async def _require_known(request: Request, query: JobQuery) -> None:
    """Check that the queue and the cluster of a filter exist, since an empty list would hide a wrong name.

    Raises
    ------
    RejectedError
        If one does not exist, or is not visible to the caller.
    """
    pipeline, who = pipeline_of(request), caller_of(request)
    if query.queue:
        queues = await pipeline.threads.read(pipeline.plane.store.queues)
        if query.queue not in (known := {each.name for each in queues if who.may_see(each.tenant)}):
            raise unknown_name("queue", query.queue, known)
    if query.cluster:
        clusters = await pipeline.threads.read(pipeline.plane.overview.clusters)
        if query.cluster not in (known := {each.name for each in clusters}):
            raise unknown_name("cluster", query.cluster, known)


CHUNK = 100
"""Rows that are read from the store at once. A page of large jobs ends before its limit, and needs no more of them."""


def _page(store: Store, overview: Overview, query: JobQuery, wanted: JobFilter, sees: Sees) -> bytes:
    """Encode a page of jobs."""

    def following(row: _Listed, count: int) -> str:
        return page_token(str(wanted.offset + count) if wanted.sort else row.job.id)

    def fields(row: _Listed) -> dict[str, Any]:
        shown = {**job_fields(row.job, row.counts), "held_gpus": row.held_milli / WHOLE_DEVICE_MILLI}
        if row.cost and query.gpu_hours:
            shown["gpu_hours"] = round(row.cost.gpu_hours, 3)
        if row.cost and query.cost:
            shown["cost"] = cost_fields(row.cost)
        if query.starts:
            shown["estimated_start"] = moment_or_none(row.starts_ns)
        return shown

    priced = query.gpu_hours or query.cost
    rows = _listed(store, overview, wanted, query.limit, sees, priced=priced, planned=query.starts)
    return encoded_page("jobs", rows, fields, following, query.limit)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A job of a list, with its GPUs, the numbers of its tasks and, if requested, its cost and expected start."""

    job: JobRecord
    counts: Mapping[JobState, int] | None
    held_milli: int
    cost: Cost | None
    starts_ns: int | None


def _listed(
    store: Store, overview: Overview, wanted: JobFilter, limit: int, sees: Sees, *, priced: bool, planned: bool
) -> Iterator[_Listed]:
    """Yield the jobs of a page, and read them in chunks."""
    for rows in _chunks(store, overview.costs, wanted, limit):
        counts = store.task_counts([row.id for row in rows if row.is_array])
        cost_of = overview.costs.of_jobs([row.id for row in rows]) if priced else {}
        starts = overview.expected_starts(rows) if planned else {}
        held_of = overview.held_gpus({row.id for row in rows})
        for row in overview.present(rows, sees):
            yield _Listed(row, counts.get(row.id), held_of.get(row.id, 0), cost_of.get(row.id), starts.get(row.id))


def _chunks(store: Store, costs: Costs, wanted: JobFilter, limit: int) -> Iterator[list[JobRecord]]:
    if wanted.sort in RANKED:
        ranked = costs.ranked(wanted, limit)
        for at in range(0, len(ranked), CHUNK):
            ids = tuple(ranked[at : at + CHUNK])
            found = {row.id: row for row in store.jobs(JobFilter(ids=ids, array=None), CHUNK)}
            yield [found[job_id] for job_id in ids if job_id in found]
        return
    read = 0
    while read < limit:
        size = min(CHUNK, limit - read)
        rows = store.jobs(wanted, size)
        yield rows
        if len(rows) < size:
            return
        read += size
        wanted = replace(wanted, offset=wanted.offset + size) if wanted.sort else replace(wanted, before=rows[-1].id)


class TaskQuery(BaseModel):
    """Filter of tasks. Omitted fields do not filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    state: StatesQuery = []
    """States to match; repeat for several."""
    after: Annotated[str, Field(max_length=100)] = ""
    """Value of `next` from the previous page."""
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = MAX_DEFAULT
    """Maximum number of tasks on a page."""


@operation(routes, "GET", "/jobs/{job}/tasks", Role.VIEWER, {200: JobPage}, errors=(404, 409))
async def list_tasks(request: Request, job: JobRef, query: Annotated[TaskQuery, Query()]) -> Response:
    """List the tasks of an array by index, also those that have not started. A task is a job."""
    pipeline, found = pipeline_of(request), await find(request, job)
    if not found.is_array:
        raise ConflictError(Reason("not_an_array"))
    states, after = frozenset(map(JobState, query.state)), page_after(query.after)
    parameters = caller_of(request).reads_job_content

    def page() -> bytes:
        stored = tasks_of(pipeline.plane.store, found, states, after, query.limit)
        held_of = pipeline.plane.overview.held_gpus({row.id for row in stored})
        rows = list(pipeline.plane.overview.present(stored, caller_of(request).may_see))

        def fields(row: JobRecord) -> dict[str, Any]:
            held = held_of.get(row.id, 0) / WHOLE_DEVICE_MILLI
            return {**job_fields(row, parameters=parameters), "held_gpus": held}

        return encoded_page("jobs", rows, fields, lambda row, _: page_token(row.id), query.limit)

    return Reply(await pipeline.threads.read(page))


@operation(routes, "GET", "/job-counts", Role.VIEWER, {200: JobCount}, errors=(404,))
async def count_jobs(request: Request, query: Annotated[JobQuery, Query()]) -> Response:
    """Count jobs by state, and the tasks that wait or run."""
    pipeline = pipeline_of(request)
    tenant = tenant_asked(caller_of(request), query.tenant)
    wanted = query.model_copy(update={"after": "", "sort": ""}).filter(tenant, 0)

    def count() -> dict[str, Any]:
        counts = pipeline.plane.store.count_jobs(wanted)
        if wanted != JobFilter(tenant=tenant, queue=wanted.queue):
            return count_fields(counts, None)
        uses = [
            each
            for each in pipeline.plane.overview.queue_usage()
            if tenant in {"", each.tenant} and wanted.queue in {"", each.queue}
        ]
        return count_fields(counts, (sum(each.waiting for each in uses), sum(each.running for each in uses)))

    return json_reply(await pipeline.threads.read(count))


@operation(routes, "GET", "/unused-gpus", Role.VIEWER, {200: UnusedGpusList})
async def list_unused_gpus(
    request: Request,
    tenant: Word = "",
    queue: Word = "",
    submitted_by: Word = "",
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = MAX_DEFAULT,
) -> Response:
    """List running jobs by the GPU time that they held and did not use in the last hour, where it is measured."""
    pipeline, own = pipeline_of(request), tenant_asked(caller_of(request), tenant)

    def page() -> dict[str, Any]:
        wanted = [
            each
            for each in pipeline.plane.overview.unused_gpus()
            if own in {"", each.job.spec.tenant}
            and queue in {"", each.job.spec.queue}
            and submitted_by in {"", each.job.submitted_by}
        ]
        return {"jobs": [unused_fields(each) for each in wanted[:limit]]}

    return json_reply(await pipeline.threads.read(page))


LABEL = "label:"


class JobGroupQuery(JobQuery):
    """Filter of jobs, and the field by which they are grouped."""

    by: Annotated[str, Field(pattern=r"^(user|queue|tenant|label:.{1,317})$")]
    """`user`, `queue`, `tenant`, or `label:` and the key of a label."""


@operation(routes, "GET", "/job-groups", Role.VIEWER, {200: JobGroupList}, errors=(404,))
async def list_job_groups(request: Request, query: Annotated[JobGroupQuery, Query()]) -> Response:
    """Count jobs by user, queue, tenant or label, with their GPUs, and GPU time and cost of the last 30 days."""
    pipeline = pipeline_of(request)
    tenant = tenant_asked(caller_of(request), query.tenant)
    wanted = query.model_copy(update={"after": "", "sort": ""}).filter(tenant, 0)
    by = "submitted_by" if query.by == "user" else query.by
    if by.startswith(LABEL) and not caller_of(request).reads_job_content:
        by = LABEL  # values of labels are content of jobs
    store, costs = pipeline.plane.store, pipeline.plane.overview.costs

    def groups() -> dict[str, Any]:
        return {"groups": [group_fields(each) for each in job_groups(store, costs, wanted, by)]}

    return json_reply(await pipeline.threads.heavy(groups))


FilterName = Annotated[str, Path(min_length=1, max_length=63, pattern=LINE_PATTERN, description="Name of the filter.")]


@operation(routes, "GET", "/saved-filters", Role.VIEWER, {200: SavedFilterList})
async def list_saved_filters(request: Request) -> Response:
    """List your saved filters of jobs."""
    pipeline = pipeline_of(request)
    rows = await pipeline.threads.read(pipeline.plane.saved_filters.all_of, caller_of(request).owner)
    return json_reply({"filters": [saved_filter_fields(row) for row in rows]})


@operation(
    routes,
    "PUT",
    "/saved-filters/{name}",
    Role.VIEWER,
    {200: SavedFilterOut},
    errors=(409,),
    body=SavedFilterIn,
)
async def put_saved_filter(request: Request, name: FilterName) -> Response:
    """Create or replace one of your saved filters."""
    pipeline, given = pipeline_of(request), await read(request, SavedFilterIn)
    put = pipeline.plane.saved_filters.put
    return json_reply(
        saved_filter_fields(await pipeline.threads.write(put, caller_of(request).owner, name, given.query))
    )


@operation(routes, "DELETE", "/saved-filters/{name}", Role.VIEWER, {204: None}, errors=(404,))
async def delete_saved_filter(request: Request, name: FilterName) -> Response:
    """Delete one of your saved filters."""
    pipeline = pipeline_of(request)
    await pipeline.threads.write(pipeline.plane.saved_filters.delete, caller_of(request).owner, name)
    return nothing()


@operation(routes, "GET", "/jobs/{job}", Role.VIEWER, {200: JobOut, 304: None}, errors=(404,), headers=(IF_NONE_MATCH,))
async def get_job(request: Request, job: JobRef) -> Response:
    """Return a job."""
    stored, pipeline = await find(request, job), pipeline_of(request)
    found = await pipeline.threads.read(_present, pipeline.plane.overview, stored, caller_of(request).may_see)
    reply = partial(job_reply, found, content=caller_of(request).reads_job_content)
    if found.spec.standby:  # what it shows of the standby can change without a new version
        return reply(standby=await pipeline.threads.read(pipeline.plane.overview.standby_of, found))
    if is_known(request, found) and not (found.is_array and found.state.waits):  # its tasks change meanwhile
        return Response(status_code=304, headers={"etag": shown_tag(found)})
    if found.is_array:
        return reply(counts=await pipeline_of(request).threads.read(_counts, request, found))
    if not (found.state.placed and (found.spec.ports or found.spec.restarts)):
        return reply()
    return reply(workloads=await pipeline.threads.read(pipeline.plane.overview.workloads, found))


def _present(overview: Overview, job: JobRecord, sees: Sees) -> JobRecord:
    return next(overview.present([job], sees))


MAX_WORKFLOW = 200
"""Maximum number of jobs in a workflow."""


@operation(routes, "GET", "/jobs/{job}/workflow", Role.VIEWER, {200: Workflow}, errors=(404,))
async def get_workflow(request: Request, job: JobRef) -> Response:
    """Return a job with its predecessors and followers, and theirs, at most 200 jobs."""
    pipeline, found = pipeline_of(request), await find(request, job)
    tenant = caller_of(request).tenant
    sees, overview = caller_of(request).may_see, pipeline.plane.overview

    def look() -> dict[str, Any]:
        jobs, more = workflow(pipeline.plane.store, found, tenant, MAX_WORKFLOW)
        return {"jobs": [job_fields(each) for each in overview.present(jobs, sees)], "more": more}

    return json_reply(await pipeline.threads.read(look))


def _counts(request: Request, array: JobRecord) -> Mapping[JobState, int]:
    return plane_of(request).store.task_counts([array.id])[array.id]


@operation(
    routes, "PUT", "/jobs/{job}", Role.USER, {200: JobOut}, errors=(404, 409, 412, 428), body=JobIn, headers=(IF_MATCH,)
)
async def replace_job(request: Request, job: JobRef) -> Response:
    """Replace the specification of a job.

    A running job restarts if the change requires it. `If-Match` is required, so that no concurrent change is lost.
    """
    found = await find(request, job)
    if request.headers.get("if-match") is None:
        raise BadRequestError(428, "send If-Match with the ETag of the expected version, or * for any")
    version = required_version(request, found)
    return await _change(request, found, await read(request, JobIn), version)


@operation(
    routes,
    "PATCH",
    "/jobs/{job}",
    Role.USER,
    {200: JobOut},
    errors=(404, 409, 412),
    body=JobPatch,
    media=(MERGE_PATCH, JSON),
    headers=(IF_MATCH,),
)
async def update_job(request: Request, job: JobRef, dry_run: DryRun = False) -> Response:
    """Change the specification of a job with a merge patch (RFC 7396).

    Fields that the patch does not name stay unchanged; null resets a field to its default. With `dry_run`, the change
    is checked, and the response has the changed job.
    """
    request.scope[DRY_RUN] = dry_run
    found = await find(request, job)
    version = required_version(request, found)
    patch = await read_patch(request)
    for _ in range(TRIES):
        given = read_value(JobIn, merged(job_text(found.spec), patch))
        try:
            return await _change(request, found, given, found.version)
        except StaleError:
            if version is not None:
                raise
            found = await find(request, job)  # without If-Match, the latest version is meant
    raise ConflictError(Reason("job_changes_fast"))


async def _change(request: Request, job: JobRecord, given: JobIn, version: int | None) -> Response:
    pipeline, who = pipeline_of(request), caller_of(request)
    spec = pipeline.plane.admission.with_template_traits(given.spec(job.spec.tenant))
    spec = replace(spec, data=replace(spec.data, others=job.spec.data.others))
    if spec.after != job.spec.after:
        spec = await _resolved(request, spec, frozenset(), {})
    require_changeable(job, spec)
    _require_own_priority(request, spec, job.spec.priority)
    await pipeline.threads.admit(pipeline.plane.admission.admit, spec, who.tenant, job.spec)
    if request.scope.get(DRY_RUN):
        return job_reply(replace(job, spec=spec))
    said = changes_text(job_text(job.spec), job_text(spec))
    return job_reply(await pipeline.threads.write(pipeline.plane.jobs.change, job.id, spec, who.name, version, said))


def _own(request: Request, given: JobIn) -> JobSpec:
    """Return the requested job, with the caller's tenant as the default.

    Raises
    ------
    ForbiddenError
        If the tenant is not visible to the caller.
    """
    who = caller_of(request)
    spec = given.spec(who.tenant or DEFAULT)
    if not who.may_see(spec.tenant):
        raise ForbiddenError(Reason("job_of_other_tenant", tenant=spec.tenant))
    return plane_of(request).admission.with_template_traits(spec)


async def _admit(request: Request, spec: JobSpec) -> None:
    """Check a job by admission. A long check does not block other requests."""
    pipeline, who = pipeline_of(request), caller_of(request)
    _require_own_priority(request, spec)
    if not pipeline.plane.admission.admits_at_once(spec, who.tenant):
        await pipeline.threads.admit(pipeline.plane.admission.admit, spec, who.tenant)


def _require_own_priority(request: Request, spec: JobSpec, before: int = 0) -> None:
    """Check that the caller may set the priority of a job, which is `before` so far.

    Raises
    ------
    RejectedError
        If it exceeds the limit of users.
    """
    most = max(plane_of(request).settings.control.max_user_priority, before)
    if spec.priority > most and not caller_of(request).may(Role.OPERATOR):
        raise RejectedError(Reason("priority_too_high", most=most, priority=spec.priority), where="priority")


def required_version(request: Request, job: JobRecord) -> int | None:
    """Return the version that a request requires; None for any.

    Raises
    ------
    StaleError
        If it is not the current version.
    """
    header = request.headers.get("if-match")
    if header is None or (tags := tags_in(header)) == ["*"]:
        return None
    if tag(job) not in map(version_tag, tags):
        raise StaleError(Reason("changed_tag", version=job.version, tag=tag(job)))
    return job.version


def _key(request: Request, body: bytes) -> SubmitKey | None:
    key = header_of(request, b"idempotency-key")
    if key is None:
        return None
    if not key or len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise RejectedError(Reason("key_letters", most=LONGEST_KEY), where="Idempotency-Key")
    return SubmitKey(key, hashlib.sha256(body).hexdigest())


Step = Callable[[str, str, str, int | None], JobRecord]


class ActionIn(Incoming):
    """Reason for an action on a job."""

    reason: Line = ""
    """A sentence for people. Default: the name of the token."""


def step(path: str) -> Callable[[Handler], Handler]:
    """Declare an action on a job. The body, which has the reason, is optional."""
    return operation(
        routes,
        "POST",
        f"/jobs/{{job}}/{path}",
        Role.USER,
        {200: JobOut},
        errors=(404, 409, 412),
        body=ActionIn,
        headers=(IF_MATCH,),
        body_needed=False,
    )


@step("cancel")
async def cancel_job(request: Request, job: JobRef) -> Response:
    """Cancel a job. Its record remains. Repeated calls have no effect."""
    return job_reply(await _take(request, job, pipeline_of(request).plane.jobs.cancel))


@step("suspend")
async def suspend_job(request: Request, job: JobRef) -> Response:
    """Stop a job until a user resumes it."""
    return job_reply(await _take(request, job, pipeline_of(request).plane.jobs.suspend))


@step("resume")
async def resume_job(request: Request, job: JobRef) -> Response:
    """Return a suspended job to its queue."""
    return job_reply(await _take(request, job, pipeline_of(request).plane.jobs.resume))


@step("failover")
async def failover_job(request: Request, job: JobRef) -> Response:
    """Make the standby of a service active. The response is its job; a service with a cold standby moves there."""
    return job_reply(await _take(request, job, pipeline_of(request).plane.jobs.failover))


@step("renew")
async def renew_job(request: Request, job: JobRef) -> Response:
    """Renew the lease of a running job: it counts from now again. The response has the new `expires_at`."""
    return job_reply(await _take(request, job, pipeline_of(request).plane.jobs.renew))


@step("retry")
async def retry_job(request: Request, job: JobRef) -> Response:
    """Run a failed, cancelled or skipped job again, or the failed tasks of an array.

    A cancelled array also runs the tasks that were cancelled with it.
    """
    plane, found = plane_of(request), await find(request, job)
    workdir = found.spec.runtime.workdir
    if workdir and not plane.workdirs.admits(found.spec.tenant, workdir):
        raise ConflictError(Reason("directory_removed"))
    return job_reply(await _take(request, found.id, plane.jobs.retry))


@operation(routes, "DELETE", "/jobs/{job}", Role.USER, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_job(request: Request, job: JobRef) -> Response:
    """Delete a job: stop it if it is unfinished, and remove it from lists."""
    await _take(request, job, pipeline_of(request).plane.jobs.delete)
    return nothing()


async def _take(request: Request, job: str, step: Step) -> JobRecord:
    """Run an action, with the reason from the body if present."""
    found = await find(request, job)
    version = required_version(request, found)
    has_body = request.method != "DELETE" and await request.body()
    reason = (await read(request, ActionIn)).reason if has_body else ""
    return await pipeline_of(request).threads.write(step, found.id, caller_of(request).name, reason, version)
