"""Calls about jobs. A job is identified by its id or name. The only unfinished job of a name takes precedence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, Unpack
from uuid import uuid4

from seaway.client.call import PREFIX, Answer, Call, Data, Model, Nothing, Paged, Text, get, page_size, part, send
from seaway.client.errors import RejectedError

if TYPE_CHECKING:
    from seaway.wire.events import EventList, EventOut
    from seaway.wire.explanations import DryRunBatch, DryRunOut, ReasonOut
    from seaway.wire.job_in import JobIn
    from seaway.wire.job_out import (
        AttemptList,
        CostOut,
        GpuUseOut,
        JobBatch,
        JobCount,
        JobGroupList,
        JobOut,
        JobPage,
        SavedFilterList,
        SavedFilterOut,
        UnusedGpusList,
        Workflow,
    )

JOB: Answer[JobOut] = Model("seaway.wire.job_out", "JobOut")
JOBS: Answer[JobPage] = Model("seaway.wire.job_out", "JobPage")
BATCH: Answer[JobBatch] = Model("seaway.wire.job_out", "JobBatch")
WORKFLOW: Answer[Workflow] = Model("seaway.wire.job_out", "Workflow")
DRY_RUNS: Answer[DryRunBatch] = Model("seaway.wire.explanations", "DryRunBatch")
SAVED_FILTER: Answer[SavedFilterOut] = Model("seaway.wire.job_out", "SavedFilterOut")
SAVED_FILTERS: Answer[SavedFilterList] = Model("seaway.wire.job_out", "SavedFilterList")
UNUSED: Answer[UnusedGpusList] = Model("seaway.wire.job_out", "UnusedGpusList")
GROUPS: Answer[JobGroupList] = Model("seaway.wire.job_out", "JobGroupList")
COUNT: Answer[JobCount] = Model("seaway.wire.job_out", "JobCount")
ATTEMPTS: Answer[AttemptList] = Model("seaway.wire.job_out", "AttemptList")
COST: Answer[CostOut] = Model("seaway.wire.job_out", "CostOut")
GPU_USE: Answer[GpuUseOut] = Model("seaway.wire.job_out", "GpuUseOut")
DRY_RUN: Answer[DryRunOut] = Model("seaway.wire.explanations", "DryRunOut")
REASON: Answer[ReasonOut] = Model("seaway.wire.explanations", "ReasonOut")
EVENTS: Answer[EventList] = Model("seaway.wire.events", "EventList")

T = TypeVar("T")


class Seen(Protocol):
    """Version of a job, such as a job as it was read."""

    @property
    def id(self) -> str:
        """ID of the job."""

    @property
    def version(self) -> int:
        """Version of the job."""


class JobFields(TypedDict, total=False):
    """Fields of a job as keyword arguments; see `seaway.wire.job_in.JobIn`."""

    name: str
    tenant: str
    queue: str
    priority: int
    gateway: str
    replicas: int
    gang: bool | None
    spread: str | None
    template: str
    resources: Mapping[str, Any]
    network: Mapping[str, Any]
    between_replicas: Mapping[str, Any]
    placement: Mapping[str, Any]
    run: Mapping[str, Any]
    volumes: Sequence[str | Mapping[str, Any]]
    workdir: str
    setup: Sequence[str]
    init_containers: Sequence[Mapping[str, Any]]
    containers: Sequence[Mapping[str, Any]]
    restart_policy: str
    max_restarts: int | None
    time_limit_warning: str | Mapping[str, Any] | None
    expected_duration: str
    time_limit: str
    lease: str
    retries: int
    labels: Mapping[str, str]
    preemptible: bool | None
    checkpoint: Mapping[str, Any] | None
    expose: Mapping[str, Any]
    data: Mapping[str, Any]
    after: Sequence[str | Mapping[str, str]]
    standby: Mapping[str, Any] | None
    array: str
    matrix: Mapping[str, Sequence[Any]]
    notify: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]


class JobFilter(TypedDict, total=False):
    """Filter of jobs. Omitted fields do not filter.

    Attributes
    ----------
    tenant, queue, cluster, submitted_by
        Exact values.
    state
        Any of these.
    name
        Part of the name.
    label
        Such as ``team=a``.
    submitted_from, submitted_until, ended_from, ended_until
        Times with their zone, such as ``2026-11-21T10:00:00Z``.
    sort
        Order, such as ``ended`` or ``-gpu_hours`` for the largest first.
    gpu_hours
        True to return the GPU-hours of each job.
    cost
        True to return the GPU time and the cost of each job.
    """

    tenant: str
    queue: str
    cluster: str
    submitted_by: str
    state: str | Sequence[str]
    name: str
    label: str
    submitted_from: str
    submitted_until: str
    ended_from: str
    ended_until: str
    sort: str
    gpu_hours: bool
    cost: bool
    starts: bool


def submit(
    job: JobIn | Mapping[str, Any] | str | None = None, *, key: str = "", **given: Unpack[JobFields]
) -> Call[JobOut]:
    """Submit a job; it is stored when this returns.

    Parameters
    ----------
    job
        The job, or YAML, which is sent unchanged; None for a job in keyword arguments.
    key
        Idempotency key: a second job with the same key is not submitted. Empty generates one for this call, so that it
        can be retried.
    """
    call = _submit_call(JOB, job, given)
    return replace(call, headers={**call.headers, "Idempotency-Key": key or uuid4().hex})


def dry_run(job: JobIn | Mapping[str, Any] | str | None = None, **given: Unpack[JobFields]) -> Call[DryRunOut]:
    """Run the scheduler for a job without submitting it; nothing is stored. `job` is as in `submit`."""
    return replace(_submit_call(DRY_RUN, job, given), query={"dry_run": True})


def submit_batch(jobs: Sequence[JobIn | Mapping[str, Any]], *, key: str = "") -> Call[JobBatch]:
    """Submit several jobs, all or none. They may come after each other by name; `key` is as in `submit`."""
    call = send("POST", "/jobs:batch", BATCH, {"jobs": [written(each, {}) for each in jobs]})
    return replace(call, headers={**call.headers, "Idempotency-Key": key or uuid4().hex})


def dry_run_batch(jobs: Sequence[JobIn | Mapping[str, Any]]) -> Call[DryRunBatch]:
    """Run the scheduler for each of several jobs without submitting any, as if its predecessors had ended."""
    call = send("POST", "/jobs:batch", DRY_RUNS, {"jobs": [written(each, {}) for each in jobs]})
    return replace(call, query={"dry_run": True})


def job(job: str) -> Call[JobOut]:
    """Return a job."""
    return get(f"/jobs/{part(job)}", JOB)


def jobs(*, limit: int | None = None, after: str = "", **wanted: Unpack[JobFilter]) -> Paged[JobOut]:
    """List jobs, newest first or in the order of `sort`.

    Parameters
    ----------
    limit
        Limit of jobs; None for all.
    after
        Continuation token: `next` of the previous page.
    """
    query = {**wanted, "after": after or None, "limit": page_size(limit)}
    return Paged(get("/jobs", JOBS, query), "jobs", limit=limit)


def workflow(job: str) -> Call[Workflow]:
    """Return a job with its predecessors and followers, and theirs."""
    return get(f"/jobs/{part(job)}/workflow", WORKFLOW)


def tasks(job: str, *, state: str | Sequence[str] = (), limit: int | None = None, after: str = "") -> Paged[JobOut]:
    """List the tasks of an array by index; `state` and `after` are as in `jobs`."""
    query = {"state": state or None, "after": after or None, "limit": page_size(limit)}
    return Paged(get(f"/jobs/{part(job)}/tasks", JOBS, query), "jobs", limit=limit)


def count(**wanted: Unpack[JobFilter]) -> Call[JobCount]:
    """Count jobs by state."""
    return get("/job-counts", COUNT, {**wanted})


def groups(by: str, **wanted: Unpack[JobFilter]) -> Call[JobGroupList]:
    """Count jobs by group, with their GPUs, and GPU time and cost of the last 30 days.

    Parameters
    ----------
    by
        ``user``, ``queue``, ``tenant``, or ``label:`` and the key of a label.
    """
    return get("/job-groups", GROUPS, {"by": by, **wanted})


def unused_gpus(*, tenant: str = "", queue: str = "", submitted_by: str = "", limit: int = 100) -> Call[UnusedGpusList]:
    """List running jobs by the GPU time that they held and did not use in the last hour, where it is measured."""
    query = {"tenant": tenant or None, "queue": queue or None, "submitted_by": submitted_by or None, "limit": limit}
    return get("/unused-gpus", UNUSED, query)


def saved_filters() -> Call[SavedFilterList]:
    """List your saved filters of jobs."""
    return get("/saved-filters", SAVED_FILTERS)


def put_saved_filter(name: str, query: str) -> Call[SavedFilterOut]:
    """Create or replace a saved filter; `query` has the query parameters of the page of jobs."""
    return send("PUT", f"/saved-filters/{part(name)}", SAVED_FILTER, {"query": query})


def delete_saved_filter(name: str) -> Call[None]:
    """Delete a saved filter."""
    return send("DELETE", f"/saved-filters/{part(name)}", Nothing())


def update(job: str, changes: Mapping[str, Any], *, seen: Seen | None = None, dry_run: bool = False) -> Call[JobOut]:
    """Change a job. A running one restarts if the change requires it.

    Parameters
    ----------
    changes
        A merge patch (RFC 7396): omitted fields stay; None resets a field to its default.
    seen
        The job that the change is based on: raises `StaleError` if the server has another version. None changes any
        version.
    dry_run
        Validate the change, and return the changed job without storing it.
    """
    call = send("PATCH", f"/jobs/{part(job)}", JOB, changes)
    match = {} if seen is None else {"If-Match": f'"{seen.id}.{seen.version}"'}
    headers = {**call.headers, "Content-Type": "application/merge-patch+json", **match}
    query = {"dry_run": True} if dry_run else {}
    return Call(call.method, call.path, JOB, query, headers, call.content, repeatable=dry_run or seen is None)


def cancel(job: str, reason: str = "") -> Call[JobOut]:
    """Cancel a job; its record stays."""
    return _step(job, "cancel", reason)


def suspend(job: str, reason: str = "") -> Call[JobOut]:
    """Stop a job until a user resumes it."""
    return _step(job, "suspend", reason)


def resume(job: str, reason: str = "") -> Call[JobOut]:
    """Return a suspended job to its queue."""
    return _step(job, "resume", reason, repeatable=False)


def failover(job: str, reason: str = "") -> Call[JobOut]:
    """Make the standby of a service active; the answer is its job."""
    return _step(job, "failover", reason, repeatable=False)


def renew(job: str, reason: str = "") -> Call[JobOut]:
    """Renew the lease of a running job; the answer has the new `expires_at`."""
    return _step(job, "renew", reason)


def retry(job: str, reason: str = "") -> Call[JobOut]:
    """Run a failed, cancelled or skipped job again, or the failed tasks of an array."""
    return _step(job, "retry", reason, repeatable=False)


def delete(job: str) -> Call[None]:
    """Cancel an unfinished job, and remove the job from lists."""
    return send("DELETE", f"/jobs/{part(job)}", Nothing(), repeatable=False)


def explain(job: str) -> Call[ReasonOut]:
    """Explain the state and placement of a job."""
    return get(f"/jobs/{part(job)}/explain", REASON)


def events(job: str | None = None, *, after: int = 0, since: str = "", limit: int | None = None) -> Paged[EventOut]:
    """List the events of a job in order, or all visible ones.

    Parameters
    ----------
    after
        ID of an event; only those after it.
    since
        A time with its zone, such as ``2026-11-21T10:00:00Z``; only events from it on.
    limit
        Limit of events, the oldest first; None for all.
    """
    path = "/events/history" if job is None else f"/jobs/{part(job)}/events"
    query = {"after": after, "since": since or None, "limit": page_size(limit)}
    return Paged(get(path, EVENTS, query), "events", limit=limit)


def attempts(
    job: str, *, after: int = 0, first: int = 0, replicas: int | None = None, specs: bool = False
) -> Call[AttemptList]:
    """List the placements of a job, attempt by attempt: the first 1,000 after number `after`.

    Parameters
    ----------
    first, replicas
        First replica, and number of replicas; None for all following ones.
    specs
        Whether to return the specification of each attempt.
    """
    query = {"after": after or None, "first": first or None, "replicas": replicas, "specs": specs or None}
    return get(f"/jobs/{part(job)}/attempts", ATTEMPTS, query)


def cost(job: str) -> Call[CostOut]:
    """Return the GPU time and the cost of a job, of all attempts until now."""
    return get(f"/jobs/{part(job)}/cost", COST)


def gpu_use(job: str, *, limit: int = 100, span: str = "hour") -> Call[GpuUseOut]:
    """Return the measured use of a job's GPUs: now, for at most `limit` slices, and over time, in total.

    Parameters
    ----------
    span
        Length of the time until now: ``hour``, ``day``, ``week`` or ``month``.
    """
    return get(f"/jobs/{part(job)}/gpu-use", GPU_USE, {"limit": limit, "span": span})


def manifest(job: str, *, kind: Literal["yaml", "json"] = "yaml", after: int = 0) -> Call[str]:
    """Return the objects of a job in its clusters, as YAML documents or as a JSON list.

    It has at most 1,000 of them; `after` is the number of objects to skip.
    """
    headers = {"Accept": f"application/{kind}"}
    path = get(f"/jobs/{part(job)}/manifest", Text()).path
    return Call("GET", path, Text(), {"after": after} if after else {}, headers)


def logs(  # noqa: PLR0913  # parameters of the query
    job: str,
    *,
    replica: int = 0,
    container: str = "",
    tail: int = 100,
    since: str = "",
    contains: str = "",
    attempt: int = 0,
    timestamps: bool = False,
) -> Call[str]:
    """Return the last lines of a replica's log, of the first container or a named one, if its cluster stores logs.

    Parameters
    ----------
    since
        Only lines from this time on, with its zone, such as ``2026-11-21T10:00:00Z``.
    contains
        Only lines with this text, in upper or lower case.
    attempt
        Number of an attempt; 0 for the latest.
    timestamps
        True to begin each line with its time.
    """
    query = {
        "replica": replica,
        "tail": tail,
        "container": container or None,
        "since": since or None,
        "contains": contains or None,
        "attempt": attempt or None,
        "timestamps": True if timestamps else None,
    }
    return get(f"/jobs/{part(job)}/logs", Text(), query)


def exec_session(  # as options of the command line
    job: str,
    command: Sequence[str] = (),
    *,
    replica: int = 0,
    container: str = "",
    stdin: bool = False,
    tty: bool = False,
) -> Call[None]:
    """Describe a session that runs a command in a container of a job, by default a shell.

    Parameters
    ----------
    container
        Name of a container; empty for the first.
    stdin, tty
        Whether there are input and a terminal.
    """
    return _session(job, "exec", list(command), replica, container, stdin=stdin, tty=tty)


def attach_session(
    job: str, *, replica: int = 0, container: str = "", stdin: bool = False, tty: bool = False
) -> Call[None]:
    """Describe a session with the main process of a container of a job; the arguments are as in `exec_session`."""
    return _session(job, "attach", (), replica, container, stdin=stdin, tty=tty)


def port_session(job: str, port: int, *, replica: int = 0) -> Call[None]:
    """Describe a session with a port of a replica of a job."""
    return get(f"/jobs/{part(job)}/port-forward", Nothing(), {"port": port, "replica": replica or None})


def _session(
    job: str, kind: str, command: Sequence[str], replica: int, container: str, *, stdin: bool, tty: bool
) -> Call[None]:
    query = {"command": command, "replica": replica or None, "container": container or None}
    flags = {"stdin": stdin or None, "tty": tty or None}
    return get(f"/jobs/{part(job)}/{kind}", Nothing(), {**query, **flags})


def normalised(job: str) -> Call[dict[str, Any]]:
    """Return the normalised job, which the scheduler uses."""
    return get(f"/jobs/{part(job)}/normalised", Data())


def written(job: JobIn | Mapping[str, Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job for the API; keyword arguments override its fields."""
    if job is None or isinstance(job, Mapping):
        return {**(job or {}), **given}
    return {**job.model_dump(mode="json", exclude_unset=True), **given}


def _submit_call(answer: Answer[T], job: JobIn | Mapping[str, Any] | str | None, given: Mapping[str, Any]) -> Call[T]:
    if not isinstance(job, str):
        return send("POST", "/jobs", answer, written(job, given))
    if given:
        raise RejectedError(f"{', '.join(given)} cannot be combined with a job in YAML; set it there")
    return Call("POST", f"{PREFIX}/jobs", answer, {}, {"Content-Type": "application/yaml"}, job.encode())


def _step(job: str, step: str, reason: str, *, repeatable: bool = True) -> Call[JobOut]:
    body = {"reason": reason} if reason else None
    return send("POST", f"/jobs/{part(job)}/{step}", JOB, body, repeatable=repeatable)
