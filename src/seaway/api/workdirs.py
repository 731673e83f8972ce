"""Operations on archives with working directories of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse, StreamingResponse

from seaway.api.http.bodies import read, require_kind
from seaway.api.http.pipeline import NOTED, caller_of, header_of, pipeline_of
from seaway.api.http.queries import Word, tenant_asked
from seaway.api.http.replies import json_reply, nothing
from seaway.api.http.routes import operation, router
from seaway.application.records import PART_BYTES, Role, WorkdirRecord
from seaway.application.workdirs import require_digest
from seaway.application.writer import REQUEST_ENTRY
from seaway.domain.errors import UnknownError
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import DEFAULT
from seaway.wire.policies import FILE
from seaway.wire.workdirs import (
    WorkdirIn,
    WorkdirList,
    WorkdirPartIn,
    WorkdirSent,
    workdir_list_fields,
    workdir_sent_fields,
)

routes = router("workdirs")

TenantQuery = Annotated[Word, Query(description="Tenant of the jobs. Default: your own tenant, or `default`.")]
Digest = Annotated[str, Path(description="Digest of the archive: `sha256:` and 64 digits.", max_length=71)]
LAST = (1 << 40) // PART_BYTES
NOT_STORED = {"cache-control": "no-store"}
URIS = "text/uri-list"
"""Media type of the URL of an archive in a bucket."""

BYTES = {"description": "The archive.", "content": {FILE: {"schema": {"type": "string", "format": "binary"}}}}


def _tenant(request: Request, tenant: str) -> str:
    """Return the tenant of a request, which must exist."""
    asked = tenant_asked(caller_of(request), tenant) or DEFAULT
    if asked not in pipeline_of(request).plane.controller.names.tenants:
        raise UnknownError(Reason("not_found", kind="tenant", name=asked[:63]), where="tenant")
    return asked


@operation(routes, "GET", "/workdirs", Role.USER, {200: WorkdirList}, errors=(404,))
async def list_workdirs(request: Request, tenant: TenantQuery = "") -> Response:
    """List the stored archives of a tenant, and the limits of their sizes."""
    pipeline, asked = pipeline_of(request), _tenant(request, tenant)
    return json_reply(await pipeline.threads.read(workdir_list_fields, pipeline.plane.workdirs, asked))


@operation(routes, "PUT", "/workdirs/{digest}", Role.USER, {200: WorkdirSent}, errors=(404, 409), body=WorkdirIn)
async def complete_workdir(request: Request, digest: Digest, tenant: TenantQuery = "") -> Response:
    """Complete an archive, a tar file compressed with gzip, that holds the working directory of jobs.

    If parts are missing, the response lists them. If the operator stores archives in a bucket, the response has
    `uploads` instead. Send these, and complete it again. An archive that is stored needs no parts. It is removed some
    time after the last job that needs it.
    """
    pipeline, asked, given = pipeline_of(request), _tenant(request, tenant), await read(request, WorkdirIn)
    name = caller_of(request).name
    found = await pipeline.threads.heavy(pipeline.plane.workdirs.finish, asked, digest, given.size_bytes, name)
    return json_reply(workdir_sent_fields(digest, found))


@operation(
    routes,
    "PUT",
    "/workdirs/{digest}/parts/{number}",
    Role.USER,
    {204: None},
    errors=(404, 409),
    body=WorkdirPartIn,
    media=(FILE,),
)
async def send_workdir_part(
    request: Request, digest: Digest, number: Annotated[int, Path(ge=0, le=LAST)], tenant: TenantQuery = ""
) -> Response:
    """Store a part of an archive, as bytes. All parts but the last one have `part_bytes` of the list of archives."""
    require_kind(request, FILE)
    pipeline, asked = pipeline_of(request), _tenant(request, tenant)
    request.scope[NOTED] = True  # the audit log has an entry of the whole archive
    REQUEST_ENTRY.set(None)
    await pipeline.threads.write(pipeline.plane.workdirs.send_part, asked, digest, number, await request.body())
    return nothing()


@operation(routes, "GET", "/workdirs/{digest}", Role.USER, {200: BYTES}, errors=(404,))
async def get_workdir(request: Request, digest: Digest, tenant: TenantQuery = "") -> Response:
    """Return an archive. Pods of a job have a token for its archive, which ends with the attempt of the job.

    An archive in a bucket is a redirect to a URL that is valid for an hour, and needs no `Authorization`. With the
    header `Accept: text/uri-list`, the response has this URL as its content instead.
    """
    require_digest(digest)
    pipeline = pipeline_of(request)
    record = pipeline.plane.workdirs.record(_tenant(request, tenant), digest)
    if url := await pipeline.threads.read(pipeline.plane.workdirs.url, record):
        if header_of(request, b"accept") == URIS:
            return PlainTextResponse(f"{url}\n", media_type=URIS, headers=NOT_STORED)
        return RedirectResponse(url, headers=NOT_STORED)
    headers = {"content-length": str(record.size_bytes), **NOT_STORED}
    return StreamingResponse(_content(request, record), media_type=FILE, headers=headers)


@operation(routes, "DELETE", "/workdirs/{digest}", Role.USER, {204: None}, errors=(404, 409))
async def delete_workdir(request: Request, digest: Digest, tenant: TenantQuery = "") -> Response:
    """Remove an archive that no unfinished job needs. Jobs that ended cannot be retried without it."""
    require_digest(digest)
    pipeline, asked = pipeline_of(request), _tenant(request, tenant)
    await pipeline.threads.write(pipeline.plane.workdirs.delete, asked, digest)
    return nothing()


async def _content(request: Request, record: WorkdirRecord) -> AsyncIterator[bytes]:
    pipeline = pipeline_of(request)
    for number in record.parts:
        yield await pipeline.threads.read(pipeline.plane.workdirs.part, record, number)
