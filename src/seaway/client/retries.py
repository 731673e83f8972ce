"""Retry policy of calls, without sending or sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import httpx

from seaway.client.problems import RETRIED, error_of, retry_after_s
from seaway.domain.backoff import backoff
from seaway.domain.errors import UnavailableError


def _pass_over(why: str) -> None:
    """Ignore the reason of a wait."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits of retries.

    Attributes
    ----------
    patience_s
        Seconds for which an idempotent call is retried before its failure is raised; 0 for no retries.
    first_s, most_s
        First and maximum pause. It doubles in between, with random jitter, so that clients do not retry together.
    clock
        Monotonic clock, seconds.
    random
        Source of the jitter.
    on_wait
        Called with each new message of a server that asks clients to wait: it is starting, or another one is the
        leader. The call is retried automatically.
    """

    patience_s: float = 30.0
    first_s: float = 0.1
    most_s: float = 5.0
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)
    on_wait: Callable[[str], None] = _pass_over

    def pause_s(self, failures: int) -> float:
        """Return the pause in seconds after a number of failures in a row, from 1."""
        return backoff(failures, self.first_s, self.most_s, self.random)


class Retries:
    """Retries of one call.

    Parameters
    ----------
    server
        URL in errors if it cannot be reached.
    repeatable
        Whether the call may be sent again if it is unknown whether it arrived.
    """

    def __init__(self, pace: Pace, server: str, *, repeatable: bool) -> None:
        self._pace = pace
        self._server = server
        self._repeatable = repeatable
        self._failures = 0
        self._reported = ""
        self._ends = pace.clock() + pace.patience_s

    def answered(self, response: httpx.Response) -> float | None:
        """Return the pause before the next try; None to accept the answer."""
        if response.status_code not in RETRIED or not self._repeatable:
            return None
        pause = self._pause()
        if response.headers.get("Retry-After"):
            pause = max(pause, float(retry_after_s(response)))
        if self._too_late(pause):
            return None
        self._tell(str(error_of(response)))
        return pause

    def refused(self, response: httpx.Response) -> float:
        """Return the pause before a refused stream is requested again.

        Raises
        ------
        SeawayError
            When a retry is pointless.
        """
        pause = self.answered(response)
        if pause is None:
            raise error_of(response)
        return pause

    def ended(self) -> float:
        """Return the pause before a stream that ended is requested again; raise as `lost`."""
        return self.lost(httpx.ReadError("the stream ended"))

    def lost(self, error: httpx.TransportError) -> float:
        """Return the pause before the next try after a call without an answer.

        Raises
        ------
        UnavailableError
            When it may not be sent again, or the time for retries is over.
        """
        unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        pause = self._pause()
        if not (unsent or self._repeatable) or self._too_late(pause):
            raise unreachable(self._server, error) from error
        return pause

    def _tell(self, why: str) -> None:
        if why != self._reported:
            self._reported = why
            self._pace.on_wait(why)

    def _pause(self) -> float:
        self._failures += 1
        return self._pace.pause_s(self._failures)

    def _too_late(self, pause: float) -> bool:
        return self._pace.clock() + pause > self._ends


def unreachable(server: str, error: httpx.TransportError) -> UnavailableError:
    """Return the error for a server that cannot be reached, with a hint."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return UnavailableError(f"{server} cannot be reached: {_plain(error)}; is `seaway up` running there?")
    if isinstance(error, httpx.TimeoutException):
        return UnavailableError(f"{server} does not answer in time")
    return UnavailableError(f"the connection to {server} broke: {_plain(error)}")


def _plain(error: Exception) -> str:
    return str(error) or type(error).__name__
