"""Logs as they are written, where a cluster can tell them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


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


Give = Callable[[Sequence[LogLine]], None]
"""Takes lines, on any thread; it does not wait."""


@runtime_checkable
class Following(Protocol):
    """A backend that tells lines as they are written; not every one does."""

    def follow_log(self, copy: str, replica: int, tail: int, after: str, give: Give) -> Future[None]:
        """Give the lines of a replica as they are written, until its log ends or the future is cancelled.

        Parameters
        ----------
        tail
            With how many of the lines that are there already it begins.
        after
            Only lines after this place, all of them; empty for the last `tail`. One that is not known any more, as of
            a pod that was made anew, is before all lines.

        Returns
        -------
        future
            Ends with the log; with `RejectedError` where there is none, with `UnavailableError` where the cluster does
            not answer, or not any more.

        Raises
        ------
        RejectedError, UnavailableError
            As the future, where that is known at once.
        """
