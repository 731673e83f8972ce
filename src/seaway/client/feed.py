"""Event and log streams: parsing, and position for a resumption.

References
----------
WHATWG HTML Living Standard, section 9.2, Server-sent events.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import orjson

from seaway.client.call import PREFIX, Call, Data, part
from seaway.client.connection import CONNECT_S, READ_TIMEOUT_S, Pace, Retries, request
from seaway.client.errors import AnswerError, UnknownError, WaitedTooLongError
from seaway.domain.job_state import FINAL

if TYPE_CHECKING:
    import httpx

    from seaway.wire.events import EventOut
    from seaway.wire.job_out import JobOut


OVER = frozenset(state.value for state in FINAL)
"""Names of final states in events."""

LARGEST = 1 << 20
"""Limit of a line in bytes."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Event of a stream: its id, and its JSON."""

    id: int
    body: dict[str, Any]

    def event(self) -> EventOut:
        """Return the event."""
        from seaway.wire.events import EventOut

        return EventOut.model_validate(self.body)


class Reader:
    """Parser of an event stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def read(self, chunk: bytes) -> list[Observation]:
        """Parse a chunk, and return complete events.

        Raises
        ------
        AnswerError
            When this is no event stream.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LARGEST:
            raise AnswerError("a line of the event stream is too long")
        return [received for line in lines if (received := self._line(line.removesuffix(b"\r")))]

    def _line(self, line: bytes) -> Observation | None:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            return None  # `event`, `id` and `retry` are redundant; `:` is a heartbeat
        if not self._data:
            return None
        data, self._data = b"\n".join(self._data), []
        try:
            body = orjson.loads(data)
            return Observation(int(body["id"]), body)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise AnswerError("the stream contains an invalid event") from None


class Feed:
    """Event stream of one job or of all, with its position and end.

    Parameters
    ----------
    job_id
        Id of a job; empty for all visible events.
    after
        Id of the last known event; None for new events only.
    since
        Time with its zone; earlier events are skipped, but still end the stream of a job.
    """

    def __init__(self, job_id: str = "", after: int | None = None, since: str = "") -> None:
        self._over = False
        self._since = since
        self._job_id = job_id
        self._after = after
        self._reader = Reader()

    def is_over(self) -> bool:
        """Report whether the stream is complete, because the job has ended."""
        return self._over

    def call(self) -> Call[dict[str, Any]]:
        """Return the request for the present position, and reset the parser."""
        self._reader = Reader()
        headers = {"Accept": "text/event-stream"}
        if self._after is not None:
            headers["Last-Event-ID"] = str(self._after)
        query = {"job": self._job_id or None, "since": self._since or None}
        return Call("GET", f"{PREFIX}/events", Data(), query, headers)

    def read(self, chunk: bytes) -> list[Observation]:
        """Parse a chunk, and return new events."""
        fresh = []
        for received in self._reader.read(chunk):
            if self._over or (self._after is not None and received.id <= self._after):
                continue
            self._after = received.id
            if not self._since or _time(received.body["at"]) >= _time(self._since):
                fresh.append(received)
            self._over = bool(self._job_id) and received.body.get("state") in OVER
        return fresh


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


class LogFeed:
    """Log stream of a job's replica, with its position and end.

    Parameters
    ----------
    tail
        Number of existing lines to begin with.
    container
        Name of a container; empty for the first.
    since
        Time of the first line, with its zone; empty for any.
    """

    def __init__(  # which log, and which lines
        self, job: str, replica: int = 0, tail: int = 100, container: str = "", since: str = ""
    ) -> None:
        self._path = f"{PREFIX}/jobs/{part(job)}/logs/follow"
        self._query = {"replica": replica, "tail": tail, "container": container or None, "since": since or None}
        self._after = ""
        self._over = False
        self._rest = b""
        self._fields: dict[bytes, bytes] = {}

    def is_over(self) -> bool:
        """Report whether the stream is complete, because the job has ended."""
        return self._over

    def call(self) -> Call[dict[str, object]]:
        """Return the request for the present position, and reset the parser."""
        self._rest, self._fields = b"", {}
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self._after} if self._after else {})
        return Call("GET", self._path, Data(), self._query, headers)

    def read(self, chunk: bytes) -> list[str]:
        """Parse a chunk, and return complete lines.

        Raises
        ------
        UnknownError
            When the job has ended without a readable log.
        AnswerError
            When this is no log stream.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LARGEST:
            raise AnswerError("a line of the log stream is too long")
        return [text for line in lines if (text := self._line(line)) is not None]

    def _line(self, line: bytes) -> str | None:
        if line:
            name, _, value = line.partition(b":")
            self._fields[name] = value.removeprefix(b" ")
            return None
        fields, self._fields = self._fields, {}
        if b"data" not in fields:
            return None  # a heartbeat
        try:
            data = orjson.loads(fields[b"data"])
            if fields.get(b"event") == b"end":
                self._end(str(data.get("reason", "")))
                return None
            self._after = fields[b"id"].decode("ascii")
            return str(data["text"])
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
            raise AnswerError("the stream contains an invalid log line") from None

    def _end(self, reason: str) -> None:
        self._over = True
        if reason:
            raise UnknownError(reason)


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
            raise WaitedTooLongError(f"the job is not {self._until} after {round(self._timeout_s or 0, 1):g} s")
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
        import httpx

        timeout = httpx.Timeout(CONNECT_S, read=self._left_s(READ_TIMEOUT_S))
        return {**request(self._stream.call()), "timeout": timeout}

    def read(self, chunk: bytes) -> list[T]:
        """Parse a chunk, and return complete items; reset the count of failures."""
        self._tries = self._retries()
        return self._stream.read(chunk)

    def continues(self) -> bool:
        """Report whether to continue to read after a chunk."""
        if self._stream.is_over():
            return False
        self._left_s(READ_TIMEOUT_S)
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
