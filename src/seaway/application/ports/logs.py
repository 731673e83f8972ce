"""Streaming of logs, for backends that support it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from seaway.domain.errors import RejectedError


@dataclass(frozen=True, slots=True)
class LogLine:
    """Line of a log.

    Attributes
    ----------
    text
        The line without its line ending.
    place
        Position in a format of the cluster, without spaces; used to continue after it.
    """

    text: str
    place: str


class NoContainerError(RejectedError):
    """Missing container of a replica, permanently; names the existing ones."""

    def __init__(self, name: str, there: Sequence[str]) -> None:
        super().__init__(f"container {name!r} not found; available: {', '.join(there) or 'none'}", where="container")


Give = Callable[[Sequence[LogLine]], None]
"""Non-blocking receiver of lines, called on any thread."""


@runtime_checkable
class Following(Protocol):
    """Backend that streams logs; optional."""

    def follow_log(  # which log, and from where
        self, copy: str, replica: int, tail: int, after: str, give: Give, container: str = ""
    ) -> Future[None]:
        """Stream the lines of a replica until its log ends or the future is cancelled.

        Parameters
        ----------
        tail
            Number of existing lines at the start.
        after
            Stream all lines after this place; empty for the last `tail`. A place that is not known any more, for
            example of a re-created pod, counts as before all lines.
        container
            Name of the container; empty for the first.

        Returns
        -------
        future
            Ends with the log; with `RejectedError` if there is none, with `NoContainerError` if there will be none,
            with `UnavailableError` if the cluster does not answer, or not any more.

        Raises
        ------
        RejectedError, UnavailableError
            As the future, if this is known immediately.
        """
