"""Logs as they are written, where a cluster can tell them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from seaway.domain.errors import RejectedError


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log.

    Attributes
    ----------
    text
        Without what ends it.
    place
        Where it is, in words of its cluster's own, without a space: to go on after it.
    """

    text: str
    place: str


class NoContainerError(RejectedError):
    """A replica has no container of a name, and will have none: it names those that there are."""

    def __init__(self, name: str, there: Sequence[str]) -> None:
        super().__init__(f"there is no container {name!r}; there is {', '.join(there) or 'none'}", where="container")


Give = Callable[[Sequence[LogLine]], None]
"""Takes lines, on any thread; it does not wait."""


@runtime_checkable
class Following(Protocol):
    """A backend that tells lines as they are written; not every one does."""

    def follow_log(  # which log, and from where
        self, copy: str, replica: int, tail: int, after: str, give: Give, container: str = ""
    ) -> Future[None]:
        """Give the lines of a replica as they are written, until its log ends or the future is cancelled.

        Parameters
        ----------
        tail
            With how many of the lines that are there already it begins.
        after
            Only lines after this place, all of them; empty for the last `tail`. One that is not known any more, as of
            a pod that was re-created, is before all lines.
        container
            Of which container; empty for the first.

        Returns
        -------
        future
            Ends with the log; with `RejectedError` where there is none, `NoContainerError` where there will be none,
            with `UnavailableError` where the cluster does not answer, or not any more.

        Raises
        ------
        RejectedError, UnavailableError
            As the future, where that is known at once.
        """
