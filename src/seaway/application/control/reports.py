"""Reports from clusters."""

from __future__ import annotations

import logging
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass

from seaway.application.ports.backend import Answer, Changes
from seaway.application.records import PendingCommand
from seaway.domain.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class Answered:
    """Answer of a cluster to a command."""

    pending_commands: PendingCommand
    answer: Answer


@dataclass(frozen=True, slots=True)
class Observation:
    """Changes in a cluster.

    Attributes
    ----------
    asked_ns
        Monotonic time of the request. The report does not reflect commands sent later.
    """

    cluster: str
    changes: Changes
    asked_ns: int


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Failed request to a cluster."""

    cluster: str
    reason: str


Report = Answered | Observation | Unreachable


log = logging.getLogger(__name__)


def retained(answer: Answer | Future[Answer], cluster: str) -> Answer:
    """Return an answer; wait for a future. An exception counts as a failed try."""
    try:
        return answer.result() if isinstance(answer, Future) else answer
    except (Exception, CancelledError) as error:  # noqa: BLE001  # `retry_after` logs what is not expected
        return retry_after(error, cluster)


def retry_after(error: BaseException, cluster: str) -> Answer:
    """Return an answer after which the command is retried. Log unexpected errors."""
    if not isinstance(error, UnavailableError | CancelledError):
        log.error("a command to %s failed", cluster, exc_info=error)
    return Answer(done=False, reason=str(error) or type(error).__name__)
