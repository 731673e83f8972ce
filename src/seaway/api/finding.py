"""Finding jobs by id or name, within what who asks may see, and pages of lists."""

from __future__ import annotations

import base64
import binascii

from fastapi import Request

from seaway.api.desk import desk_of, who_of
from seaway.application.access import Who
from seaway.application.ports.store import JobFilter, Store
from seaway.application.records import JobRecord
from seaway.domain import ids
from seaway.domain.errors import RejectedError, UnknownError
from seaway.domain.lifecycle import JobState
from seaway.domain.tenancy import NAME


async def find(request: Request, job: str) -> JobRecord:
    """Find a job by its id, or the latest by its name.

    Raises
    ------
    UnknownError
        When there is none, or not for who asks.
    """
    desk = desk_of(request)
    return await desk.threads.read(_find, desk.plane.store, who_of(request), job)


def tenant_asked(who: Who, tenant: str) -> str:
    """Return whose jobs to show to somebody who asks for those of `tenant`; empty for all.

    Raises
    ------
    UnknownError
        When they are not his to see.
    """
    if not who.may_see(tenant):
        raise UnknownError(f"there is no tenant {tenant[:63]!r}", where="tenant")
    return who.tenant or tenant


def page_token(last: str) -> str:
    """Return what leads to the page after `last`."""
    return base64.urlsafe_b64encode(f"1:{last}".encode()).decode().rstrip("=")


def page_after(token: str) -> str:
    """Return what the page that `token` leads to comes after.

    Raises
    ------
    RejectedError
        When it is none of ours.
    """
    if not token:
        return ""
    try:
        read = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        read = ""
    version, _, last = read.partition(":")
    if version != "1" or not last:
        raise RejectedError("is not what 'next' of the page before said", where="after")
    return last


def _find(store: Store, who: Who, job: str) -> JobRecord:
    found = store.job(job) if ids.decode(job) is not None else None
    if found is None and NAME.fullmatch(job):
        found = next(iter(store.jobs(JobFilter(tenant=who.tenant, named=job), 1)), None)
    if found is None or found.state is JobState.DELETED or not who.may_see(found.spec.tenant):
        raise UnknownError(f"there is no job {job[:63]!r}")
    return found
