"""Look-up of jobs by ID or name, within the visible tenants, and page tokens of lists."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

import orjson
from fastapi import Query, Request

from seaway.api.http.pipeline import pipeline_of, who_of
from seaway.application.access import Caller
from seaway.application.ports.store import JobFilter, Store
from seaway.application.records import JobRecord
from seaway.domain import job_spec as ids
from seaway.domain.errors import RejectedError, UnknownError
from seaway.domain.job_state import JobState
from seaway.domain.tenancy import NAME

After = Annotated[str, Query(max_length=100, description="Value of `next` from the previous page.")]
NOT_OURS = "is not what 'next' of the page before said"


async def find(request: Request, job: str) -> JobRecord:
    """Return the job with an ID, or the latest job with a name.

    Raises
    ------
    UnknownError
        If there is none, or it is not visible to the caller.
    """
    pipeline = pipeline_of(request)
    return await pipeline.threads.read(_find, pipeline.plane.store, who_of(request), job)


def tenant_asked(who: Caller, tenant: str) -> str:
    """Return the tenant to filter by for a caller that requests `tenant`; empty for all tenants.

    Raises
    ------
    UnknownError
        If the tenant is not visible to the caller.
    """
    if not who.may_see(tenant):
        raise UnknownError(f"tenant {tenant[:63]!r} not found", where="tenant")
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
        raise RejectedError(NOT_OURS, where="after")
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
        raise RejectedError(NOT_OURS, where="after")
    return int(text)


def sample_token(at_ns: int, *names: str) -> str:
    """Return the token of the page after a sample."""
    return page_token(orjson.dumps([at_ns, *names]).decode())


def sample_after(token: str, names: int) -> tuple[int, tuple[str, ...]] | None:
    """Return the time and the `names` names of the last sample before a page; None for the first page.

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
        raise RejectedError(NOT_OURS, where="after")
    return at_ns, tuple(read)


def _find(store: Store, who: Caller, job: str) -> JobRecord:
    found = store.job(job) if ids.decode(job) is not None else None
    if found is None and NAME.fullmatch(job):
        found = next(iter(store.jobs(JobFilter(tenant=who.tenant, named=job), 1)), None)
    if found is None or found.state is JobState.DELETED or not who.may_see(found.spec.tenant):
        raise UnknownError(f"job {job[:63]!r} not found")
    return found
