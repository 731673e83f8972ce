"""Error classes, one for each kind of remedy.

A job that cannot be placed is not an error, but a value with reasons; see `seaway.scheduling.explain`.
"""

from __future__ import annotations

from collections.abc import Sequence


class SeawayError(Exception):
    """Base class of all errors that Seaway raises on purpose."""


class RejectedError(SeawayError):
    """Invalid input that the caller must fix.

    Parameters
    ----------
    message
        Problem and remedy, one line.
    where
        Position of the problem: a file with line and column, or the path of a field.
    also
        Further problems of the same input.
    """

    def __init__(self, message: str, *, where: str = "", also: tuple[RejectedError, ...] = ()) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where
        self.also = also

    def below(self, path: str) -> RejectedError:
        """Return the error of an object that is part of another one, at a path in it."""
        where = f"{path}.{self.where}" if self.where else path
        return type(self)(self.message, where=where, also=tuple(each.below(path) for each in self.also))

    def within(self, path: str) -> RejectedError:
        """Return the error of an object by its own fields, without a path such as ``quotas.default.`` to it."""
        where = self.where.removeprefix(path)
        return type(self)(self.message, where=where, also=tuple(each.within(path) for each in self.also))

    @staticmethod
    def together(errors: Sequence[RejectedError]) -> RejectedError:
        """Return one error with all problems of several."""
        first, *others = (part for each in errors for part in (each, *each.also))
        return type(first)(first.message, where=first.where, also=tuple(others))


class UnknownError(RejectedError):
    """The named object does not exist, or is not visible to the caller."""


class UnauthenticatedError(SeawayError):
    """The request has no token, or its token is not valid."""


class ForbiddenError(SeawayError):
    """The caller lacks the permission."""


class ConflictError(SeawayError):
    """The state has changed since the caller read it. Read it again and retry."""


class StaleError(ConflictError):
    """The change is based on an old version of the object."""


class UnavailableError(SeawayError):
    """A dependency of Seaway does not respond.

    Parameters
    ----------
    message
        Name of the dependency and the problem.
    retry_after_s
        Recommended delay before the next try, seconds.
    """

    def __init__(self, message: str, *, retry_after_s: int = 5) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TooManyError(UnavailableError):
    """The caller exceeds a rate limit."""


class InvariantError(SeawayError):
    """A violated internal invariant: a bug in Seaway, never the user's fault."""


class SupersededError(InvariantError):
    """Another process took over an exclusive task of this one, such as writing to the database.

    This process must stop.
    """
