"""Responses: JSON, problem details, entity tags and compression."""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from seaway.application.views import StandbyView
from seaway.domain.deployment import Workload
from seaway.domain.errors import (
    ConflictError,
    ForbiddenError,
    RejectedError,
    SeawayError,
    StaleError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason, reason_of
from seaway.wire.job_out import endpoint_fields, job_fields
from seaway.wire.message import with_message
from seaway.wire.problem import MEDIA_TYPE, problem_fields
from seaway.wire.reading import message_of

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
    414: "URI too long",
    415: "Unsupported media type",
    422: "Unprocessable content",
    426: "Upgrade required",
    428: "Precondition required",
    429: "Too many requests",
    431: "Request header fields too large",
    500: "Internal server error",
    503: "Service unavailable",
}


RETRY_AFTER_S = 2
"""Time after which an overloaded or starting server is asked again, seconds."""

PIECE = 64 << 10
"""Bytes of a body that are passed to the connection at once. The rest waits until the client has read them."""

PAGE_BYTES = 4 << 20
"""Size after which a page ends, even if it has fewer rows than requested, bytes."""


class BytesInFlight:
    """Bytes of bodies that clients have not read, in total and by caller.

    Parameters
    ----------
    most
        Maximum number of bytes of all callers.
    of_caller
        Maximum number of bytes of one caller. One body above it is sent if the caller reads no other.
    """

    def __init__(self, most: int = 256 << 20, of_caller: int = 64 << 20) -> None:
        self._most, self._of_caller = most, of_caller
        self._total = 0
        self._callers: Counter[str] = Counter()

    @contextmanager
    def sending(self, caller: str, size: int) -> Iterator[None]:
        """Count a body while it is sent.

        Raises
        ------
        UnavailableError
            If clients, or this caller, have too many unread bytes.
        """
        own = self._callers[caller]
        if (own and own + size > self._of_caller) or (self._total and self._total + size > self._most):
            raise UnavailableError(Reason("too_many_unread"), retry_after_s=RETRY_AFTER_S)
        self._callers[caller] += size
        self._total += size
        try:
            yield
        finally:
            self._total -= size
            self._callers[caller] -= size
            if not self._callers[caller]:
                del self._callers[caller]


class Reply(Response):
    """Response with encoded JSON or without a body."""

    media_type = "application/json"


Row = TypeVar("Row")


def encoded_page(
    name: str,
    rows: Iterable[Row],
    fields: Callable[[Row], Any],
    following: Callable[[Row, int], int | str | None],
    limit: int,
    more: Mapping[str, Any] | None = None,
) -> bytes:
    """Encode a page of rows as JSON, in the calling thread. It ends after `limit` rows or `PAGE_BYTES`.

    Parameters
    ----------
    name
        Field of the rows.
    rows
        Rows, read as far as they are needed.
    fields
        Returns the fields of a row.
    following
        Returns the cursor of the page after a row, from the row and the number of rows until it.
    more
        Further fields between the rows and the cursor.
    """
    pieces, size, cursor = [], 0, None
    for row in rows:
        pieces.append(orjson.dumps(fields(row)))
        size += len(pieces[-1])
        if len(pieces) == limit or size >= PAGE_BYTES:
            cursor = following(row, len(pieces))
            break
    rest = orjson.dumps({**(more or {}), "next": cursor})
    return b'{"%s":[%s],%s' % (name.encode(), b",".join(pieces), rest[1:])


def json_reply(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:  # noqa: ANN401
    """Return a JSON response."""
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
    """Return a response with problem details."""
    title = TITLES.get(status, "Error")
    body = orjson.dumps(problem_fields(status, title, detail, path, error), option=orjson.OPT_NON_STR_KEYS)
    return Response(body, status, headers, media_type=MEDIA_TYPE)


def tag(job: JobRecord) -> str:
    """Return the entity tag of a job's version. It contains the ID, since another job may have the same name later."""
    return f'"{job.id}.{job.version}"'


def shown_tag(job: JobRecord) -> str:
    """Return the entity tag of a job as it is shown: of its version, and of a reason that changes without a new one."""
    if not (job.state.waits or job.spec.elastic):
        return tag(job)
    return f'{tag(job)[:-1]}.{zlib.crc32(job.reason.encode()):x}"'


def version_tag(shown: str) -> str:
    """Return the entity tag of the version in that of a shown job."""
    parts = shown.strip('"').split(".")
    return f'"{".".join(parts[:2])}"'


def job_reply(
    job: JobRecord,
    status: int = 200,
    headers: dict[str, str] | None = None,
    workloads: Sequence[Workload] = (),
    standby: StandbyView | None = None,
    counts: Mapping[JobState, int] | None = None,
    *,
    content: bool = True,
) -> Reply:
    """Return a response with a job, the endpoints of its workloads, its standby, and the numbers of its tasks."""
    fields = {**job_fields(job, counts, content=content, parameters=content), "endpoints": _endpoints(workloads, job)}
    if standby:
        fields["endpoints"] = _endpoints(standby.serving, job)
        more = {"clusters": list(standby.clusters), "state": standby.state, **with_message(standby.reason)}
        fields["standby"] |= {**more, "endpoints": _endpoints(standby.workloads, job)}
    return json_reply(fields, status, {"etag": shown_tag(job), **(headers or {})})


def _endpoints(workloads: Iterable[Workload], job: JobRecord) -> list[dict[str, Any]]:
    return [each for copy in workloads for each in endpoint_fields(copy, job.spec.ports)]


def tags_in(header: str) -> list[str]:
    """Return the entity tags in a header. Weak tags count as strong."""
    return [each.strip().removeprefix("W/") for each in header.split(",") if each.strip()]


def is_known(request: Request, job: JobRecord) -> bool:
    """Report whether the client has this version of a job, with its present reason."""
    header = request.headers.get("if-none-match")
    return header is not None and ("*" in (tags := tags_in(header)) or shown_tag(job) in tags)


LEVEL = 1
"""Fastest compression level, which is sufficient for repetitive metrics."""

AS_GZIP = 31
"""Value of `wbits` for gzip with the largest window."""


def stream_gzip(request: Request, pieces: Iterable[bytes], media: str) -> StreamingResponse:
    """Return a streaming response, compressed if the client accepts gzip. A thread produces the pieces."""
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


MAX_ERRORS = 50

log = logging.getLogger(__name__)


class BadRequestError(SeawayError):
    """An invalid HTTP request.

    Parameters
    ----------
    status
        Status of the response.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


STATUSES: tuple[tuple[type[SeawayError], int], ...] = (
    (UnauthenticatedError, 401),
    (ForbiddenError, 403),
    (UnknownError, 404),
    (RejectedError, 422),
    (StaleError, 412),
    (ConflictError, 409),
    (TooManyError, 429),
    (UnavailableError, 503),
)
"""HTTP status by error class; the first matching class applies. Other errors are internal."""


def status_of(error: Exception) -> int:
    """Return the HTTP status for an error."""
    if isinstance(error, BadRequestError):
        return error.status
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, RequestValidationError):
        return 422
    if isinstance(error, ClientDisconnect):
        return 408
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def answer(error: Exception, path: str) -> Response:
    """Return the response for an error. Internal errors reveal no details."""
    status = status_of(error)
    headers: dict[str, str] = {}
    if isinstance(error, RequestValidationError):
        rejected = _rejected(error)
        return problem(status, str(rejected), path, rejected)
    if isinstance(error, HTTPException):
        return problem(status, _plain(error), path, headers=dict(error.headers or {}))
    if isinstance(error, RejectedError):
        return problem(status, error.message if not error.where else str(error), path, error)
    if isinstance(error, ClientDisconnect):  # disconnected, or too slow; only a slow client reads this
        return problem(status, Reason("body_late"), path)
    if status == 500:
        log.error("a request to %s failed", path, exc_info=error)
        return problem(status, Reason("internal_error"), path)
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="seaway"'
    if isinstance(error, UnavailableError):
        headers["retry-after"] = str(error.retry_after_s)
    return problem(status, reason_of(error), path, headers=headers)


def answer_http(request: Request, error: Exception) -> Response:
    """Return the response for an error of the framework, such as an unknown path."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        error = HTTPException(405, headers={"allow": _allowed(request)})
    return answer(error, request.url.path)


def _allowed(request: Request) -> str:
    """Return the allowed methods of a path. The framework considers only its first matching route."""
    routes = (each for each in request.app.router.routes if each.matches(request.scope)[0] is not Match.NONE)
    return ", ".join(sorted({method for each in routes for method in each.methods}))


def _plain(error: HTTPException) -> str:
    codes = {404: "not_found_path", 405: "method_not_allowed"}
    return Reason(codes[error.status_code]) if error.status_code in codes else str(error.detail)


def _rejected(error: RequestValidationError) -> RejectedError:
    """Return one error for all invalid parameters of a request."""
    reported = {
        ".".join(str(step) for step in each["loc"][1:]): RejectedError(
            message_of(each), where=".".join(str(step) for step in each["loc"][1:])[:100]
        )
        for each in error.errors()[:MAX_ERRORS]
    }
    first, *others = reported.values()
    return RejectedError(first.message, where=first.where, also=tuple(others))
