"""A log that is followed: how its stream is read, and how it goes on after a connection broke.

References
----------
WHATWG HTML Living Standard, section 9.2, Server-sent events.
"""

from __future__ import annotations

import orjson

from seaway.client.call import PREFIX, Call, Data, part
from seaway.client.errors import AnswerError, UnknownError
from seaway.client.feed import LARGEST


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
        """Return what to ask for now; starts to read anew."""
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
            raise AnswerError("the stream holds what is no line of a log") from None

    def _end(self, reason: str) -> None:
        self._over = True
        if reason:
            raise UnknownError(reason)
