"""Errors, sorted by what whoever gets one should do about it.

"This job cannot be placed" is not among them: that is a value with reasons, see
`seaway.scheduling.explain`.
"""

from __future__ import annotations


class SeawayError(Exception):
    """Whatever Seaway raises on purpose."""


class RejectedError(SeawayError):
    """The input is wrong and will stay wrong until whoever sent it mends it.

    Parameters
    ----------
    message
        What is wrong and how to mend it, one line.
    where
        Where it stands: a file with line and column, or the path of a field.
    also
        What else is wrong with the same input.
    """

    def __init__(self, message: str, *, where: str = "", also: tuple[RejectedError, ...] = ()) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where
        self.also = also


class UnknownError(RejectedError):
    """What the input names is not there, or is not the asker's to see."""


class UnauthenticatedError(SeawayError):
    """No one known asks, or the token does not hold: send one that does."""


class ForbiddenError(SeawayError):
    """Who asks may not do this: ask a user who may."""


class ConflictError(SeawayError):
    """The state moved on in the meantime: read it again and try again."""


class StaleError(ConflictError):
    """It is not in the version any more that the change was meant for."""


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
