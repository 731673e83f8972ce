"""Errors, sorted by remedy.

"This job cannot be placed" is not among them: that is a value with reasons, see
`seaway.scheduling.explain`.
"""

from __future__ import annotations


class SeawayError(Exception):
    """Base class of all errors that Seaway raises on purpose."""


class RejectedError(SeawayError):
    """The input is invalid, and stays so until the caller fixes it.

    Parameters
    ----------
    message
        The problem and its remedy, one line.
    where
        Its place: a file with line and column, or the path of a field.
    also
        Further problems of the same input.
    """

    def __init__(self, message: str, *, where: str = "", also: tuple[RejectedError, ...] = ()) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where
        self.also = also


class UnknownError(RejectedError):
    """The named object does not exist, or is not visible to the caller."""


class UnauthenticatedError(SeawayError):
    """No one known asks, or the token does not hold: send one that does."""


class ForbiddenError(SeawayError):
    """The caller lacks the permission."""


class ConflictError(SeawayError):
    """The state moved on in the meantime: read it again and try again."""


class StaleError(ConflictError):
    """The object has another version than the one that the change is based on."""


class UnavailableError(SeawayError):
    """Something that Seaway depends on does not answer.

    Parameters
    ----------
    message
        What does not answer.
    retry_after_s
        After how many seconds another try makes sense.
    """

    def __init__(self, message: str, *, retry_after_s: int = 5) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class InvariantError(SeawayError):
    """A rule that Seaway itself has to keep was broken: a bug, never the user's fault."""


class DeposedError(InvariantError):
    """Another process does what this one alone may do, like writing to the database: this one has to stop."""
