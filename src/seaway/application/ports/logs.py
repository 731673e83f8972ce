"""Streaming of logs, for backends that support it, and storage of those of ended jobs."""

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
        Opaque position, without spaces; a stream can continue after it.
    """

    text: str
    place: str


class NoContainerError(RejectedError):
    """Permanently missing container of a replica. The message lists the existing containers."""

    def __init__(self, name: str, there: Sequence[str]) -> None:
        super().__init__(f"container {name!r} not found; available: {', '.join(there) or 'none'}", where="container")


class LogArchive(Protocol):
    """Storage of the logs of ended workloads."""

    @property
    def position(self) -> int | None:
        """ID of the last event that the writer handled; None before its first run."""

    def advance(self, position: int) -> None:
        """Store the ID of an event as the position."""

    def put(self, tenant: str, copy: str, replica: int, container: str, lines: Sequence[str]) -> None:
        """Store the log of a container of a replica of a tenant; an empty name is the first container.

        Lines have times.
        """

    def get(self, copy: str, replica: int, container: str) -> list[str] | None:
        """Return a stored log; None if there is none."""

    def drop(self, job_id: str) -> None:
        """Remove the logs of all attempts of a job."""


Give = Callable[[Sequence[LogLine]], None]
"""Non-blocking callback for lines, called on any thread."""


@runtime_checkable
class Following(Protocol):
    """Backend that streams logs; optional."""

    def follow_log(  # which log, and from where
        self, copy: str, replica: int, tail: int, after: str, give: Give, container: str = "", since_ns: int = 0
    ) -> Future[None]:
        """Stream the lines of a replica until its log ends or the future is cancelled.

        Parameters
        ----------
        tail
            Number of existing lines to start with.
        after
            Position after which to start; empty for the last `tail` lines. An unknown position, for example of a
            re-created pod, starts at the first line.
        container
            Name of the container; empty for the first.
        since_ns
            Only lines from this second on, nanoseconds since 1970.

        Returns
        -------
        future
            Completes when the log ends. Fails with `RejectedError` if the log does not exist, `NoContainerError` if it
            never will, and `UnavailableError` if the cluster does not respond or stops responding.

        Raises
        ------
        RejectedError, UnavailableError
            As the future, for errors that are known immediately.
        """
