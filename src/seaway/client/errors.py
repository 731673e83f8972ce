"""What a call can end in, sorted by what its caller should do.

`RejectedError`: mend the request; `where` has the field, `also` what else is wrong. `UnknownError`, a kind of
it: what was named is not there, or not yours to see. `UnauthenticatedError`: send a token that holds.
`ForbiddenError`: not with this token. `ConflictError` and, a kind of it, `StaleError`: read again, then try again.
`UnavailableError`: try again after `retry_after_s`. `InvariantError`: the server has a bug.
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
    "WaitedTooLongError",
]


class AnswerError(SeawayError):
    """What answered does not answer as Seaway does."""


class WaitedTooLongError(SeawayError, TimeoutError):
    """A job did not get where it was waited for in the time that was given."""
