"""Answers: JSON put together by hand, problems, and versions as entity tags."""

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
    """JSON that is encoded already, or an answer without a body."""

    media_type = "application/json"


def json_reply(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:  # noqa: ANN401
    """Answer with JSON."""
    return Reply(orjson.dumps(content), status, headers)


def nothing() -> Response:
    """Answer that it is done and that there is nothing to say."""
    return Response(status_code=204)


def problem(
    status: int,
    detail: str,
    path: str,
    error: RejectedError | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Answer with problem details."""
    title = TITLES.get(status, "Error")
    body = orjson.dumps(problem_fields(status, title, detail, path, error), option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status, headers, media_type=MEDIA_TYPE)


def tag(job: JobRecord) -> str:
    """Return the entity tag of a job in its version; a name may stand for another job later, so it has the id."""
    return f'"{job.id}.{job.version}"'


def job_reply(job: JobRecord, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """Answer with a job."""
    return json_reply(job_fields(job), status, {"etag": tag(job), **(headers or {})})


def tags_in(header: str) -> list[str]:
    """Split a header that lists entity tags; weak ones count as others do."""
    return [each.strip().removeprefix("W/") for each in header.split(",") if each.strip()]


def is_known(request: Request, job: JobRecord) -> bool:
    """Tell whether who asks has this version already."""
    header = request.headers.get("if-none-match")
    return header is not None and ("*" in (tags := tags_in(header)) or tag(job) in tags)


LEVEL = 1
"""The fastest: of figures of the same things again and again little is left all the same."""

AS_GZIP = 31
"""Value of `wbits` for gzip with the largest window."""


def in_pieces(request: Request, pieces: Iterable[bytes], media: str) -> StreamingResponse:
    """Answer piece by piece, made, and packed where that is asked for, in a thread while the one before is sent."""
    headers = {"vary": "accept-encoding"}
    if takes_gzip(request.headers.get("accept-encoding", "")):
        return StreamingResponse(packed(pieces), media_type=media, headers={**headers, "content-encoding": "gzip"})
    return StreamingResponse(iter(pieces), media_type=media, headers=headers)


def packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pack a text in pieces."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, AS_GZIP)
    for piece in pieces:
        if some := packer.compress(piece):
            yield some
    yield packer.flush()


def takes_gzip(header: str) -> bool:
    """Tell whether gzip is among what a client takes; what it does not name it does not get."""
    for part in header.split(",")[:32]:
        coding, *parameters = (each.strip().lower() for each in part.split(";"))
        if coding == "gzip":
            return not any(_is_nothing(each) for each in parameters)
    return False


def _is_nothing(parameter: str) -> bool:
    return parameter.startswith("q=") and not parameter[2:].strip("0.")
