"""Following a log: from line to line, whatever breaks in between."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import orjson
import pytest

from seaway.client.connection import READ_TIMEOUT_S
from seaway.client.errors import AnswerError, UnavailableError, UnknownError
from seaway.client.feed import LogFeed
from tests.unit.client.requesting import Awaiting, Stub, Waiting, problem

AttentionParams = Waiting | Awaiting
END = b"event: end\ndata: {}\n\n"


def line(place: str, text: str) -> bytes:
    """Write a line as the stream has it."""
    return b"id: %b\ndata: %b\n\n" % (place.encode(), orjson.dumps({"text": text}))


def stream(*pieces: bytes, breaks: bool = False) -> httpx.Response:
    """Make a stream that ends or breaks, in chunks that know nothing of lines."""

    class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"retry: 2000\n\n:\n\n"
            for each in pieces:
                yield each[:7]
                yield each[7:]
            if breaks:
                raise httpx.ReadError("broke")

        async def __aiter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204  # httpx says what it is
            for chunk in self:
                yield chunk

    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())


def answering(*streams: httpx.Response | Exception) -> Stub:
    """Make a stub that gives one stream after the other."""
    left = list(streams)

    def answer(_: httpx.Request) -> httpx.Response:
        given = left.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    return Stub([answer])


def test_a_log_goes_on_after_the_line_that_came_last(ask: AttentionParams) -> None:
    """A check whether a connection breaks, or is not even made.

    Every line comes once, in order, and empty ones are lines.
    """
    stub = answering(
        stream(line("1~a.1", "one"), line("1~a.2", ""), breaks=True),
        httpx.ConnectError("refused"),
        stream(line("1~a.3", "three\r")),
        stream(END),
    )
    options = {"replica": 2, "container": "side", "tail": 5, "since": "2026-11-21T10:00:00Z"}
    assert ask(stub, "follow_log", "train", **options) == ["one", "", "three\r"]
    assert [request.headers.get("last-event-id") for request in stub.requests] == [None, "1~a.2", "1~a.2", "1~a.3"]
    assert stub.requests[0].url.path.endswith("/jobs/train/logs/follow")
    assert dict(stub.requests[0].url.params) == {name: str(value) for name, value in options.items()}


def test_a_line_that_was_cut_off_comes_whole_later(ask: AttentionParams) -> None:
    """Anything that the result is before counts for nothing."""
    whole = line("1~a.1", "one")
    stub = answering(stream(whole[:-3], breaks=True), stream(whole, END))
    assert ask(stub, "follow_log", "train") == ["one"]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lines_are_read_however_they_are_cut(size: int) -> None:
    """Also within a character that has several bytes."""
    feed, sent = LogFeed("train"), line("1~a.1", "größer ½ 海 🚢") + line("1~a.2", "ü") + END
    lines = [each for at in range(0, len(sent), size) for each in feed.read(sent[at : at + size])]
    assert lines == ["größer ½ 海 🚢", "ü"]
    assert feed.is_over()


def test_a_unreachable_log_is_asked_for_again(ask: AttentionParams) -> None:
    """No one says whether a connection on which no sign of life comes still leads anywhere."""
    stub = answering(stream(line("1~a.1", "one")), httpx.ReadTimeout("silent"), stream(line("1~a.2", "two"), END))
    assert ask(stub, "follow_log", "train") == ["one", "two"]
    assert {request.extensions["timeout"]["read"] for request in stub.requests} == {READ_TIMEOUT_S}


def test_why_there_was_nothing_to_read_is_reported(ask: AttentionParams) -> None:
    """As when the job is over, and its cluster kept nothing."""
    ended = b'event: end\ndata: {"reason": "its pods are gone"}\n\n'
    with pytest.raises(UnknownError, match="its pods are gone"):
        ask(answering(stream(ended)), "follow_log", "train")


def test_following_a_log_gives_up_after_its_patience(ask: AttentionParams) -> None:
    """A server that never returns is reported; each line that comes makes the patience again."""
    stub = answering(stream(line("1~a.1", "one")), *[httpx.ConnectError("refused") for _ in range(100)])
    with pytest.raises(UnavailableError, match="cannot be reached"):
        ask(stub, "follow_log", "train")
    assert 25 < sum(stub.pauses) <= 30


def test_a_refusal_ends_it(ask: AttentionParams) -> None:
    """Asking again makes no sense for a job that is not there."""
    with pytest.raises(UnknownError):
        ask(answering(problem(404, "job 'train' not found")), "follow_log", "train")


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: []\n\n", b'data: {"text": "x"}\n\n', b"x" * (2 << 20)])
def test_what_is_no_stream_of_lines_is_refused(data: bytes) -> None:
    """Anyone who answers, nothing is held without end."""
    with pytest.raises(AnswerError):
        LogFeed("train").read(data)
