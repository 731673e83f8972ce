"""Responses: JSON, problem details, entity tags and compression."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from seaway.application.records import JobRecord
from seaway.domain.errors import RejectedError
from seaway.wire.job_out import job_fields
from seaway.wire.problem import MEDIA_TYPE, problem_fields

TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    412: "Precondition failed",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Unprocessable content",
    428: "Precondition required",
    429: "Too many requests",
    500: "Internal server error",
    503: "Service unavailable",
}


class Reply(Response):
    """Response of encoded JSON, or without a body."""

    media_type = "application/json"


def json_reply(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:  # noqa: ANN401
    """Return a response of JSON."""
    return Reply(orjson.dumps(content), status, headers)


def nothing() -> Response:
    """Return a response without content."""
    return Response(status_code=204)


def problem(
    status: int,
    detail: str,
    path: str,
    error: RejectedError | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a response of problem details."""
    title = TITLES.get(status, "Error")
    body = orjson.dumps(problem_fields(status, title, detail, path, error), option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status, headers, media_type=MEDIA_TYPE)


def tag(job: JobRecord) -> str:
    """Return the entity tag of a version of a job; it contains the ID, since another job may have the name later."""
    return f'"{job.id}.{job.version}"'


def job_reply(job: JobRecord, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """Return a response with a job."""
    return json_reply(job_fields(job), status, {"etag": tag(job), **(headers or {})})


def tags_in(header: str) -> list[str]:
    """Return the entity tags in a header; weak ones are treated as strong."""
    return [each.strip().removeprefix("W/") for each in header.split(",") if each.strip()]


def is_known(request: Request, job: JobRecord) -> bool:
    """Report whether the client has this version of a job."""
    header = request.headers.get("if-none-match")
    return header is not None and ("*" in (tags := tags_in(header)) or tag(job) in tags)


LEVEL = 1
"""Fastest compression level; metrics are repetitive, so it is sufficient."""

AS_GZIP = 31
"""Value of `wbits` for gzip with the largest window."""


def in_pieces(request: Request, pieces: Iterable[bytes], media: str) -> StreamingResponse:
    """Return a streaming response, compressed if the client accepts gzip; a thread produces the pieces."""
    headers = {"vary": "accept-encoding"}
    if takes_gzip(request.headers.get("accept-encoding", "")):
        return StreamingResponse(packed(pieces), media_type=media, headers={**headers, "content-encoding": "gzip"})
    return StreamingResponse(iter(pieces), media_type=media, headers=headers)


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Compress pieces of text."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, AS_GZIP)
    for piece in pieces:
        if some := packer.compress(piece):
            yield some
    yield packer.flush()


def takes_gzip(header: str) -> bool:
    """Report whether a client accepts gzip explicitly."""
    for part in header.split(",")[:32]:
        coding, *parameters = (each.strip().lower() for each in part.split(";"))
        if coding == "gzip":
            return not any(_is_nothing(each) for each in parameters)
    return False


def _is_nothing(parameter: str) -> bool:
    return parameter.startswith("q=") and not parameter[2:].strip("0.")
