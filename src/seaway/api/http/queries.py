"""Query parameters: filters, pages and lookups."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated

import orjson
from fastapi import Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from seaway.api.http.pipeline import caller_of, pipeline_of
from seaway.application.access import Caller
from seaway.application.fleet.search import FleetFilter
from seaway.application.jobs import stored_job
from seaway.application.ports.store import MAX_ROWS, AuditFilter, JobFilter, JobSort, Store
from seaway.domain import job_spec as ids
from seaway.domain.errors import RejectedError, UnknownError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import UNFINISHED, JobState
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import NAME
from seaway.wire.fields import LABEL_PATTERN, LINE_PATTERN, at_ns
from seaway.wire.job_out import StateName

MAX_DEFAULT = 25
TASK = re.compile(r"\d{1,6}", re.ASCII)
"""Index of a task in a reference like ``sweep_7``."""

LONGEST_NS = 2**63 - 1


def require_timestamp(text: str) -> str:
    """Check a timestamp."""
    try:
        at = at_ns(text) if text else 0
    except (ValueError, OverflowError):
        at = -1
    if not 0 <= at <= LONGEST_NS:
        raise PydanticCustomError("moment", "{why}", {"why": Reason("use_timestamp")})
    return text


def require_shown(state: StateName) -> StateName:
    """Check that jobs in a state can be listed."""
    if state == "deleted":
        raise PydanticCustomError("deleted", "{why}", {"why": Reason("deleted_not_shown")})
    return state


def require_sort(sort: str) -> str:
    """Check the order of a list of jobs."""
    if sort and sort.removeprefix("-") not in (names := [each.value for each in JobSort]):
        raise PydanticCustomError("sort", "{why}", {"why": Reason("not_a_sort", names=tuple(names))})
    return sort


Word = Annotated[str, Field(max_length=253, pattern=LINE_PATTERN)]
Moment = Annotated[
    str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(require_timestamp)
]


StatesQuery = Annotated[list[Annotated[StateName, AfterValidator(require_shown)]], Field(max_length=len(JobState))]


class JobQuery(BaseModel):
    """Filter of jobs. Omitted fields do not filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tenant: Word = ""
    """Tenant of the jobs. Default: your own tenant; all tenants for operators and admins."""
    queue: Word = ""
    state: StatesQuery = []
    """States to match; repeat for several."""
    cluster: Word = ""
    """Cluster of the latest attempt."""
    name: Word = ""
    """Substring of the name."""
    submitted_by: Word = ""
    label: Annotated[str, Field(max_length=400, pattern=LABEL_PATTERN)] = ""
    """Key and value of a label, for example `team=a`."""
    submitted_from: Moment = ""
    """Start of the time of submission, for example 2026-11-21T10:00:00Z."""
    submitted_until: Moment = ""
    """End of the time of submission, exclusive."""
    ended_from: Moment = ""
    """Start of the time of the end."""
    ended_until: Moment = ""
    """End of the time of the end, exclusive."""
    sort: Annotated[str, Field(max_length=20), AfterValidator(require_sort)] = ""
    """Order: name, queue, tenant, submitted_by, state, submitted, started, ended, duration, gpu_hours or cost.

    With `-` before it, the largest come first. Default: newest first.
    """
    gpu_hours: bool = False
    """True to return the GPU-hours of each job."""
    cost: bool = False
    """True to return the GPU time and the cost of each job."""
    starts: bool = False
    """True to return the expected start of each waiting job."""
    after: Annotated[str, Field(max_length=100)] = ""
    """Value of `next` from the previous page."""
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = MAX_DEFAULT
    """Maximum number of jobs on a page."""

    def filter(self, tenant: str, now_ns: int) -> JobFilter:
        """Return the filter for the store."""
        key, _, value = self.label.partition("=")
        sort = JobSort(self.sort.removeprefix("-")) if self.sort else None
        return JobFilter(
            tenant=tenant,
            queue=self.queue,
            states=frozenset(map(JobState, self.state)),
            cluster=self.cluster,
            name=self.name,
            submitted_by=self.submitted_by,
            label=(key, value) if key else None,
            submitted_from_ns=at_ns(self.submitted_from) if self.submitted_from else None,
            submitted_until_ns=at_ns(self.submitted_until) if self.submitted_until else None,
            ended_from_ns=at_ns(self.ended_from) if self.ended_from else None,
            ended_until_ns=at_ns(self.ended_until) if self.ended_until else None,
            before="" if sort else page_after(self.after),
            sort=sort,
            descending=self.sort.startswith("-"),
            offset=number_after(self.after) if sort else 0,
            now_ns=now_ns if sort is JobSort.DURATION else 0,
        )


MOST = 2**31 - 1
LIMIT = 100
LARGEST_ID = 2**63 - 1


class MapQuery(BaseModel):
    """Filter of nodes and devices. Omitted fields do not filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cluster: Word = ""
    """Filter by cluster."""
    node: Word = ""
    """Filter by node."""
    name: Word = ""
    """Filter nodes by a substring of the name."""
    device: Word = ""
    """Substring of device UUIDs.

    Nodes match if they have a matching device; this also applies to the next three fields.
    """
    model: Word = ""
    """Substring of device models, for example `A100`."""
    free_memory_mib: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Minimum free memory of devices, MiB."""
    free_core_milli: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Minimum free cores of devices, thousandths."""
    ready: bool | None = None
    """True for nodes and devices that accept new jobs, false for nodes that do not."""
    healthy: bool | None = None
    """False for nodes that are not ready or have an unhealthy device, true for others."""

    @property
    def wanted(self) -> FleetFilter:
        """The filter."""
        return FleetFilter(
            self.cluster,
            self.node,
            self.name,
            self.device,
            self.model,
            self.free_memory_mib,
            self.free_core_milli,
            self.ready,
            self.healthy,
        )


class FleetQuery(MapQuery):
    """Page of nodes, devices or slices that match a filter."""

    after: Annotated[str, Field(max_length=100)] = ""
    """Value of `next` from the previous page."""
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = LIMIT
    """Maximum number of entries on a page."""


QUESTIONS = ("POST what_if",)
"""Verbs of requests that change nothing."""


class AuditQuery(BaseModel):
    """Filter of audit entries. Omitted fields do not filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    before: Annotated[int, Field(ge=0, le=LARGEST_ID)] = 0
    """Return only entries before this one."""
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = LIMIT
    """Maximum number of entries on a page."""
    actor: Word = ""
    """Filter by caller."""
    contains: Word = ""
    """Filter by a part of the operation, the object or the changes."""
    since: Moment = ""
    """Start time, like 2026-11-21T10:00:00Z."""
    until: Moment = ""
    """End time, which is not part of it."""
    questions: bool = False
    """Include what-if questions, which change nothing."""

    @property
    def wanted(self) -> AuditFilter:
        """The filter."""
        since_ns, until_ns = (at_ns(each) if each else 0 for each in (self.since, self.until))
        return AuditFilter(self.actor, self.contains, since_ns, until_ns, () if self.questions else QUESTIONS)


After = Annotated[str, Query(max_length=100, description="Value of `next` from the previous page.")]
INVALID_CURSOR = Reason("not_a_cursor")


async def find(request: Request, job: str) -> JobRecord:
    """Return the job with an ID or a name. An unfinished job takes precedence over finished ones with its name.

    Raises
    ------
    RejectedError
        If the name is ambiguous.
    UnknownError
        If the job does not exist or is not visible to the caller.
    """
    pipeline = pipeline_of(request)
    return await pipeline.threads.read(_find, pipeline.plane.store, caller_of(request), job)


def tenant_asked(who: Caller, tenant: str) -> str:
    """Return the tenant to filter by if the caller requests `tenant`; empty for all tenants.

    Raises
    ------
    UnknownError
        If the tenant is not visible to the caller.
    """
    if not who.may_see(tenant):
        raise UnknownError(Reason("not_found", kind="tenant", name=tenant[:63]), where="tenant")
    return who.tenant or tenant


def page_token(last: str) -> str:
    """Return the token of the page after `last`."""
    return base64.urlsafe_b64encode(f"1:{last}".encode()).decode().rstrip("=")


def page_after(token: str) -> str:
    """Return the last entry before the page of a token; empty for the first page.

    Raises
    ------
    RejectedError
        If the token is invalid.
    """
    if not token:
        return ""
    try:
        read = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        read = ""
    version, _, last = read.partition(":")
    if version != "1" or not last:
        raise RejectedError(INVALID_CURSOR, where="after")
    return last


def number_after(token: str) -> int:
    """Return the number before the page of a token; 0 for the first page.

    Raises
    ------
    RejectedError
        If the token is invalid.
    """
    text = page_after(token) or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise RejectedError(INVALID_CURSOR, where="after")
    return int(text)


def sample_token(at_ns: int, *names: str) -> str:
    """Return the token of the page after a sample."""
    return page_token(orjson.dumps([at_ns, *names]).decode())


def sample_after(token: str, names: int) -> tuple[int, tuple[str, ...]] | None:
    """Return the time and the names (`names` in number) of the last sample before a page; None for the first page.

    Raises
    ------
    RejectedError
        If the token is invalid.
    """
    if not token:
        return None
    try:
        at_ns, *read = orjson.loads(page_after(token))
    except (orjson.JSONDecodeError, TypeError, ValueError):
        at_ns, read = -1, []
    if type(at_ns) is not int or not 0 <= at_ns < 2**63 or [type(each) for each in read] != [str] * names:
        raise RejectedError(INVALID_CURSOR, where="after")
    return at_ns, tuple(read)


def _find(store: Store, who: Caller, job: str) -> JobRecord:
    array, mark, index = job.rpartition("_")
    if mark and TASK.fullmatch(index):
        whole = _find(store, who, array)
        found = stored_job(store, ids.following_id(whole.id, 1 + int(index))) if whole.is_array else None
        found = found if found and found.array == whole.id else None
    else:
        found = stored_job(store, job)
        if found is None and NAME.fullmatch(job):
            found = _named(store, who.tenant, job)
    if found is None or found.state is JobState.DELETED or not who.may_see(found.spec.tenant):
        raise UnknownError(Reason("not_found", kind="job", name=job[:63]))
    return found


MAX_NAMED = 5
"""Maximum number of jobs that the error for an ambiguous name lists."""


def _named(store: Store, tenant: str, name: str) -> JobRecord | None:
    for states, code in ((UNFINISHED, "several_unfinished"), (frozenset[JobState](), "several_jobs")):
        rows = store.jobs(JobFilter(tenant=tenant, named=name, states=states), MAX_NAMED + 1)
        if len(rows) > 1:
            listed = tuple(f"{each.id} ({each.state.value})" for each in rows[:MAX_NAMED])
            jobs = (*listed, "...") if len(rows) > MAX_NAMED else listed
            raise RejectedError(Reason(code, name=name, jobs=jobs), where="job")
        if rows:
            return rows[0]
    return None
