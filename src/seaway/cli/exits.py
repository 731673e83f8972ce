"""Exit codes, for scripts."""

from __future__ import annotations

from seaway.domain.errors import SeawayError, UnavailableError, UnknownError

OK = 0
FAILED = 1
"""The job failed, or nothing matched."""
BAD_INPUT = 2
"""What the user gave is wrong, or does not go with how things are."""
NOT_ALLOWED = 3
"""Not signed in, or not allowed."""
UNAVAILABLE = 4
"""The server cannot be reached, or not now."""


def code_of(error: SeawayError) -> int:
    """Return what to exit with after an error."""
    from seaway.client.errors import AnswerError, ForbiddenError, UnauthenticatedError, WaitedTooLongError

    if isinstance(error, UnauthenticatedError | ForbiddenError):
        return NOT_ALLOWED
    if isinstance(error, UnavailableError | AnswerError):
        return UNAVAILABLE
    if isinstance(error, UnknownError | WaitedTooLongError):
        return FAILED
    return BAD_INPUT


def hint_of(error: SeawayError) -> str:
    """Return what may help, where the error itself does not say; empty for nothing."""
    from seaway.client.errors import UnauthenticatedError

    if isinstance(error, UnauthenticatedError):
        return "sign in with `seaway login`, or set SEAWAY_TOKEN; `seaway config show` says what is used now"
    return ""
