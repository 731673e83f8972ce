"""Stream over several connections, without sending or sleeping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import httpx

from seaway.client.call import Call
from seaway.client.connection import CONNECT_S, SILENCE_S, request
from seaway.client.errors import WaitedTooLongError
from seaway.client.feed import OVER, Observation
from seaway.client.retries import Pace, Retries

if TYPE_CHECKING:
    from seaway.wire.job_out import JobOut


Until = Literal["running", "finished"]


class Wait:
    """End and time limit of a wait for a job.

    Parameters
    ----------
    until
        ``running`` also ends when the job ends without having run.
    timeout_s
        Time limit in seconds; None for no limit.
    now_s
        Present time in seconds of the clock for `left_s`.
    """

    def __init__(self, until: Until, timeout_s: float | None, now_s: float) -> None:
        self._wanted = OVER | {"running"} if until == "running" else OVER
        self._until = until
        self._timeout_s = timeout_s
        self._ends_s = None if timeout_s is None else now_s + timeout_s

    def done(self, job: JobOut) -> bool:
        """Report whether a job has reached the requested state."""
        return job.state in self._wanted

    def matters(self, received: Observation) -> bool:
        """Report whether an event is a reason to read the job."""
        return received.body.get("state") in self._wanted

    def left_s(self, now_s: float, most_s: float) -> float:
        """Return the remaining time in seconds, at most `most_s`.

        Raises
        ------
        WaitedTooLongError
            When the time limit is exceeded.
        """
        if self._ends_s is None:
            return most_s
        if now_s >= self._ends_s:
            raise WaitedTooLongError(f"the job is not {self._until} after {self._timeout_s:g} s")
        return min(most_s, self._ends_s - now_s)


T = TypeVar("T")


class Stream(Protocol[T]):
    """A stream that resumes at its position after a connection broke."""

    def is_over(self) -> bool:
        """Report whether the stream is complete."""

    def call(self) -> Call[Any]:
        """Return the request for the present position, and reset the parser."""

    def read(self, chunk: bytes) -> list[T]:
        """Parse a chunk, and return complete new items."""


class Following(Generic[T]):
    """Next request of a stream, and the pause before it, until the stream ends.

    Parameters
    ----------
    stream
        The stream.
    server
        URL in errors if it cannot be reached.
    wait
        Total time limit; exceeding it raises `WaitedTooLongError`. None for no limit.
    """

    def __init__(self, stream: Stream[T], pace: Pace, server: str, wait: Wait | None = None) -> None:
        self._stream = stream
        self._pace = pace
        self._server = server
        self._wait = wait or Wait("finished", None, 0.0)
        self._tries = self._retries()

    def is_over(self) -> bool:
        """Report whether the stream is complete."""
        return self._stream.is_over()

    def request(self) -> dict[str, Any]:
        """Return the next request as arguments of httpx."""
        timeout = httpx.Timeout(CONNECT_S, read=self._left_s(SILENCE_S))
        return {**request(self._stream.call()), "timeout": timeout}

    def read(self, chunk: bytes) -> list[T]:
        """Parse a chunk, and return complete items; reset the count of failures."""
        self._tries = self._retries()
        return self._stream.read(chunk)

    def goes_on(self) -> bool:
        """Report whether to continue to read after a chunk."""
        if self._stream.is_over():
            return False
        self._left_s(SILENCE_S)
        return True

    def ended(self, response: httpx.Response) -> float:
        """Return the pause after the end of a response, or after an error response.

        Raises
        ------
        SeawayError
            When a retry is pointless, or the time for retries is over.
        """
        return self._left_s(self._tries.ended() if response.is_success else self._tries.refused(response))

    def lost(self, error: httpx.TransportError) -> float:
        """Return the pause after a connection failure; raise as `Retries.lost`."""
        return self._left_s(self._tries.lost(error))

    def _left_s(self, most_s: float) -> float:
        return self._wait.left_s(self._pace.clock(), most_s)

    def _retries(self) -> Retries:
        return Retries(self._pace, self._server, repeatable=True)
