"""Requests and views of archives with working directories of jobs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel

from seaway.application.ports.buckets import Upload
from seaway.application.records import PART_BYTES, WorkdirRecord
from seaway.application.workdirs import Workdirs
from seaway.wire.fields import moment
from seaway.wire.message import Incoming, Shown, fields_of

MAX_BYTES = 1 << 40


class WorkdirIn(Incoming):
    """An archive whose parts were sent, or will be."""

    size_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)]
    """Size of the archive, bytes."""


class WorkdirPartIn(RootModel[bytes]):
    """Part of an archive: bytes of a tar file that is compressed with gzip."""

    model_config = ConfigDict(json_schema_extra={"examples": ["..."]})


class WorkdirUpload(Shown):
    """Request that stores an archive, or a part of it, in the bucket."""

    url: str
    """URL for a PUT with this content, valid for an hour. It needs no other credentials."""
    headers: dict[str, str]
    """Headers to send: the size, and the checksum of a whole archive."""
    offset_bytes: int
    """Position of the content in the archive, bytes."""
    size_bytes: int
    """Size of the content, bytes."""


class WorkdirSent(Shown):
    """Progress of an archive."""

    digest: str
    """Digest of the archive."""
    stored: bool
    """True if it is stored, and jobs may name it."""
    missing: list[int]
    """Numbers of the parts to send, from 0. Then complete the archive again."""
    uploads: list[WorkdirUpload]
    """Requests that send what the bucket lacks. Then complete the archive again. Empty if the server wants parts."""


class WorkdirOut(Shown):
    """A stored archive."""

    digest: str
    """Digest of its content, for the field `workdir` of jobs."""
    size_bytes: int
    """Size, bytes."""
    created_by: str
    """Name of the token that sent it."""
    created_at: str
    """Time at which it was complete."""
    used_at: str
    """Last time at which it was sent, or at which a job needed it."""
    needed: bool
    """True if an unfinished job needs it, so that it cannot be removed."""


class WorkdirList(Shown):
    """Archives of a tenant, and its limits."""

    workdirs: list[WorkdirOut]
    """Stored archives, the last used first."""
    used_bytes: int
    """Size of all archives of the tenant, bytes."""
    limit_bytes: int
    """Maximum size of an archive, bytes."""
    quota_bytes: int
    """Maximum size of all archives of the tenant, bytes."""
    part_bytes: int
    """Size of all parts of an archive but the last one, bytes."""


def workdir_list_fields(workdirs: Workdirs, tenant: str) -> dict[str, Any]:
    """Return the archives and the limits of a tenant.

    Raises
    ------
    UnavailableError
        If the jobs are not known yet.
    """
    needed = workdirs.require_needed()
    return {
        "workdirs": [_fields(each, needed=(tenant, each.digest) in needed) for each in workdirs.of_tenant(tenant)],
        "used_bytes": workdirs.used_bytes(tenant),
        "limit_bytes": workdirs.limits.archive_bytes,
        "quota_bytes": workdirs.limits.tenant_bytes,
        "part_bytes": PART_BYTES,
    }


def workdir_sent_fields(digest: str, missing: list[int] | list[Upload]) -> dict[str, Any]:
    """Return the progress of an archive."""
    uploads = [{**asdict(each), "headers": dict(each.headers)} for each in missing if isinstance(each, Upload)]
    parts = [each for each in missing if isinstance(each, int)]
    return {"digest": digest, "stored": not missing, "missing": parts, "uploads": uploads}


def _fields(record: WorkdirRecord, *, needed: bool) -> dict[str, Any]:
    times = {"created_at": moment(record.created_ns), "used_at": moment(record.used_ns)}
    return fields_of(WorkdirOut, record, needed=needed, **times)
