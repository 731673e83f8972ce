"""Conversion of problem details to exceptions."""

from __future__ import annotations

from typing import Any

import httpx
import orjson

from seaway.client.errors import AnswerError
from seaway.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvariantError,
    RejectedError,
    SeawayError,
    StaleError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)

RETRY_AFTER_S = 5
"""Pause if the server does not send one."""


MAX_RETRY_AFTER_S = 3600


SHOWN = 200
"""Limit of characters of an unknown answer in an error."""


def error_of(response: httpx.Response) -> SeawayError:
    """Return the exception of an error response that has been read."""
    status = response.status_code
    reported = _problem(response)
    detail = str(reported.get("detail") or reported.get("title") or _unexplained(response))
    if status in PLAIN:
        return PLAIN[status](detail)
    if status < httpx.codes.BAD_REQUEST or status == httpx.codes.METHOD_NOT_ALLOWED:
        return AnswerError(f"this is not an answer of a Seaway server: {_unexplained(response)}; is the URL right?")
    if status in RETRIED or status in LATER:
        return UnavailableError(detail, retry_after_s=retry_after_s(response))
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return InvariantError(f"the server failed: {detail}")
    return _rejected(UnknownError if status in GONE else RejectedError, detail, reported.get("errors"))


PLAIN: dict[int, type[SeawayError]] = {
    httpx.codes.UNAUTHORIZED: UnauthenticatedError,
    httpx.codes.FORBIDDEN: ForbiddenError,
    httpx.codes.CONFLICT: ConflictError,
    httpx.codes.PRECONDITION_FAILED: StaleError,
}
"""Errors with a message only."""


RETRIED = frozenset({httpx.codes.BAD_GATEWAY, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.GATEWAY_TIMEOUT})
"""Statuses after which a retry makes sense."""


LATER = frozenset({httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS})
"""Statuses for timeouts and rate limits, where the request itself is valid."""


GONE = frozenset({httpx.codes.NOT_FOUND, httpx.codes.GONE})


def retry_after_s(response: httpx.Response) -> int:
    """Return the server's pause before a retry, in seconds."""
    reported = response.headers.get("Retry-After", "")
    return min(int(reported), MAX_RETRY_AFTER_S) if reported.isdecimal() else RETRY_AFTER_S


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        reported = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return {}
    return reported if isinstance(reported, dict) else {}


def _unexplained(response: httpx.Response) -> str:
    start = " ".join(response.text[:SHOWN].split())
    return f"{response.status_code} {response.reason_phrase}{f': {start}' if start else ''}"


def _rejected(kind: type[RejectedError], detail: str, errors: object) -> RejectedError:
    """Return one exception for a problem and its fields."""
    fields = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    reported = [RejectedError(str(each.get("message", detail)), where=str(each.get("field", ""))) for each in fields]
    if not reported:
        return kind(detail)
    return kind(reported[0].message, where=reported[0].where, also=tuple(reported[1:]))
