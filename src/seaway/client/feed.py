"""The live stream of events: how it is read, and how it goes on after a connection broke.

References
----------
WHATWG HTML Living Standard, section 9.2, Server-sent events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from seaway.client.call import PREFIX, Call, Data, part
from seaway.client.errors import AnswerError, UnknownError
from seaway.domain.job_state import FINAL

if TYPE_CHECKING:
    from seaway.wire.events import EventOut


OVER = frozenset(state.value for state in FINAL)
"""States, as events name them, after which nothing more happens to a job."""

LARGEST = 1 << 20
"""Bytes that a line of the stream may have."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One event as it came: its id, and its body as the API shows it."""

    id: int
    body: dict[str, Any]

    def event(self) -> EventOut:
        """Return the event."""
        from seaway.wire.events import EventOut

        return EventOut.model_validate(self.body)


class Reader:
    """Takes a stream apart into events."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def read(self, chunk: bytes) -> list[Observation]:
        """Take in what came, and return the events that are whole.

        Raises
        ------
        AnswerError
            When this is no stream of events.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LARGEST:
            raise AnswerError("the stream of events has a line without end")
        return [received for line in lines if (received := self._line(line.removesuffix(b"\r")))]

    def _line(self, line: bytes) -> Observation | None:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            return None  # `event`, `id` and `retry` say nothing that the data does not; `:` is a sign of life
        if not self._data:
            return None
        data, self._data = b"\n".join(self._data), []
        try:
            body = orjson.loads(data)
            return Observation(int(body["id"]), body)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise AnswerError("the stream contains an invalid event") from None


class Feed:
    """Follows events of one job or of all: remembers where it is, and knows when there will be no more.

    Parameters
    ----------
    job_id
        Of which job; empty for all that may be seen.
    after
        Only what came after the event of this id; None for what comes from now on.
    """

    def __init__(self, job_id: str = "", after: int | None = None) -> None:
        self._over = False
        self._job_id = job_id
        self._after = after
        self._reader = Reader()

    def is_over(self) -> bool:
        """Tell whether nothing more will come, since the job is over."""
        return self._over

    def call(self) -> Call[dict[str, Any]]:
        """Return what to ask for now; starts to read again."""
        self._reader = Reader()
        headers = {"Accept": "text/event-stream"}
        if self._after is not None:
            headers["Last-Event-ID"] = str(self._after)
        return Call("GET", f"{PREFIX}/events", Data(), {"job": self._job_id or None}, headers)

    def read(self, chunk: bytes) -> list[Observation]:
        """Take in what came, and return the events that are new."""
        fresh = []
        for received in self._reader.read(chunk):
            if self._over or (self._after is not None and received.id <= self._after):
                continue
            self._after = received.id
            fresh.append(received)
            self._over = bool(self._job_id) and received.body.get("state") in OVER
        return fresh


class LogFeed:
    """Follows the log of a job's replica: remembers which line came last, and knows when there will be no more.

    Parameters
    ----------
    tail
        With how many of the lines that are there already it begins.
    container
        Of which of its containers; empty for the first.
    """

    def __init__(self, job: str, replica: int = 0, tail: int = 100, container: str = "") -> None:
        self._path = f"{PREFIX}/jobs/{part(job)}/logs/follow"
        self._query = {"replica": replica, "tail": tail, "container": container or None}
        self._after = ""
        self._over = False
        self._rest = b""
        self._fields: dict[bytes, bytes] = {}

    def is_over(self) -> bool:
        """Tell whether nothing more will come, since the job is over."""
        return self._over

    def call(self) -> Call[dict[str, object]]:
        """Return what to ask for now; starts to read again."""
        self._rest, self._fields = b"", {}
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self._after} if self._after else {})
        return Call("GET", self._path, Data(), self._query, headers)

    def read(self, chunk: bytes) -> list[str]:
        """Take in what came, and return the lines that are whole.

        Raises
        ------
        UnknownError
            When the job is over and there was nothing to read.
        AnswerError
            When this is no stream of lines.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LARGEST:
            raise AnswerError("the log's stream has a line without end")
        return [text for line in lines if (text := self._line(line)) is not None]

    def _line(self, line: bytes) -> str | None:
        if line:
            name, _, value = line.partition(b":")
            self._fields[name] = value.removeprefix(b" ")
            return None
        fields, self._fields = self._fields, {}
        if b"data" not in fields:
            return None  # a sign of life
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
