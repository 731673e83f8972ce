"""Conversion of errors to responses with a status."""

from __future__ import annotations

import logging

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from seaway.api.http.replies import problem
from seaway.application.login_limit import TooManyFailuresError
from seaway.application.network.reports import TooManyReportsError
from seaway.domain.errors import (
    ConflictError,
    ForbiddenError,
    RejectedError,
    SeawayError,
    StaleError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)
from seaway.wire.reading import message_of

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
    (TooManyFailuresError, 429),
    (TooManyReportsError, 429),
    (UnavailableError, 503),
)
"""Statuses of errors; the first matching class applies. Other errors are internal."""


def status_of(error: Exception) -> int:
    """Return the status of the response to an error."""
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
        return problem(status, "the body did not come in time", path)
    if status == 500:
        log.error("a request to %s failed", path, exc_info=error)
        return problem(status, "internal error; see the server's log", path)
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="seaway"'
    if isinstance(error, TooManyFailuresError | UnavailableError):
        headers["retry-after"] = str(error.retry_after_s)
    return problem(status, str(error), path, headers=headers)


def answer_http(request: Request, error: Exception) -> Response:
    """Return the response to an error of the framework, such as an unknown path."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        error = HTTPException(405, headers={"allow": _allowed(request)})
    return answer(error, request.url.path)


def _allowed(request: Request) -> str:
    """Return the allowed methods of a path; the framework only considers its first matching route."""
    routes = (each for each in request.app.router.routes if each.matches(request.scope)[0] is not Match.NONE)
    return ", ".join(sorted({method for each in routes for method in each.methods}))


def _plain(error: HTTPException) -> str:
    says = {404: "not found; /docs lists all paths", 405: "this cannot be done here"}
    return says.get(error.status_code, str(error.detail))


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
