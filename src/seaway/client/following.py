"""A stream that is followed over as many connections as it takes; nothing here sends or waits."""

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
    """Knows when a wait ends.

    Parameters
    ----------
    until
        ``running`` ends too when the job is over without having run.
    timeout_s
        After how many seconds to give up; None for never.
    now_s
        Seconds of the clock that `left_s` is asked by.
    """

    def __init__(self, until: Until, timeout_s: float | None, now_s: float) -> None:
        self._wanted = OVER | {"running"} if until == "running" else OVER
        self._until = until
        self._timeout_s = timeout_s
        self._ends_s = None if timeout_s is None else now_s + timeout_s

    def done(self, job: JobOut) -> bool:
        """Tell whether a job is where it was waited for."""
        return job.state in self._wanted

    def matters(self, received: Observation) -> bool:
        """Tell whether an event is a reason to look at the job."""
        return received.body.get("state") in self._wanted

    def left_s(self, now_s: float, most_s: float) -> float:
        """Return for how long to listen, at most `most_s`.

        Raises
        ------
        WaitedTooLongError
            When the time is over.
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
        """Tell whether nothing more will come."""

    def call(self) -> Call[Any]:
        """Return what to ask for now; starts to read again."""

    def read(self, chunk: bytes) -> list[T]:
        """Take in what came, and return what is whole and new."""


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
        """Tell whether nothing more will come."""
        return self._stream.is_over()

    def request(self) -> dict[str, Any]:
        """Return what to ask for now, as httpx takes it."""
        timeout = httpx.Timeout(CONNECT_S, read=self._left_s(SILENCE_S))
        return {**request(self._stream.call()), "timeout": timeout}

    def read(self, chunk: bytes) -> list[T]:
        """Take in what came, and return what is whole; failures before this count no more."""
        self._tries = self._retries()
        return self._stream.read(chunk)

    def goes_on(self) -> bool:
        """Tell whether to read on after what came was taken."""
        if self._stream.is_over():
            return False
        self._left_s(SILENCE_S)
        return True

    def ended(self, response: httpx.Response) -> float:
        """Return how long to pause after an answer's end, or one that says no and was read.

        Raises
        ------
        SeawayError
            When asking again makes no sense, or was tried for long enough.
        """
        return self._left_s(self._tries.ended() if response.is_success else self._tries.refused(response))

    def lost(self, error: httpx.TransportError) -> float:
        """Return how long to pause after a connection broke, or was not made; raises as `Retries.lost`."""
        return self._left_s(self._tries.lost(error))

    def _left_s(self, most_s: float) -> float:
        return self._wait.left_s(self._pace.clock(), most_s)

    def _retries(self) -> Retries:
        return Retries(self._pace, self._server, repeatable=True)
