"""Errors of calls, sorted by remedy.

`RejectedError`: fix the request; `where` has the field, `also` further errors. `UnknownError`, a subclass: not found,
or not visible to you. `UnauthenticatedError`: send a valid token. `ForbiddenError`: the token lacks permission.
`ConflictError` and `StaleError`, a subclass: read again, then retry. `UnavailableError`: retry after `retry_after_s`.
`InvariantError`: a bug of the server.
"""

from __future__ import annotations

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
from seaway.domain.reasons import Reason, reason_of

__all__ = [
    "AnswerError",
    "ConflictError",
    "ForbiddenError",
    "InvariantError",
    "RejectedError",
    "SeawayError",
    "StaleError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnknownError",
    "UpgradeRequiredError",
    "WaitedTooLongError",
    "compiles",
]


def compiles(error: SeawayError) -> bool:
    """Report whether a call failed only because a policy is being compiled, and works after that."""
    reason = reason_of(error)
    return isinstance(reason, Reason) and reason.code == "policies_compile"


class AnswerError(SeawayError):
    """Answer that does not come from a Seaway server."""


class UpgradeRequiredError(RejectedError):
    """Valid request of an operation that needs a web socket."""


class WaitedTooLongError(SeawayError, TimeoutError):
    """Job that did not reach a state within the time limit."""
