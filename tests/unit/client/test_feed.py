from collections.abc import Iterator

import httpx
import orjson
import pytest

from seaway.client.errors import (
    AnswerError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
    WaitedTooLongError,
)
from seaway.client.feed import Feed, Reader
from tests.unit.client.requesting import JOB, Awaiting, Stub, Waiting, event, problem

AttentionParams = Waiting | Awaiting

QUEUED, RUNNING, COMPLETED = event(1, "queued"), event(2, "running"), event(3, "completed")


def stream(*events: dict[str, object], breaks: bool = False) -> httpx.Response:
    """Make a stream of events, that ends or breaks."""

    class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"retry: 2000\n\n: alive\n\n"
            for each in events:
                data = orjson.dumps(each)
                yield b"id: 1\nevent: state\ndata: " + data[:20]
                yield data[20:] + b"\r\n\r\n"
            if breaks:
                raise httpx.ReadError("broke")

        async def __aiter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204  # httpx says what it is
            for chunk in self:
                yield chunk

    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())


def answering(*streams: httpx.Response | Exception, states: tuple[str, ...] = ("running",)) -> Stub:
    """Make a stub that shows a job in one state after the other, and gives one stream after the other."""
    left, shown = list(streams), list(states)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            given = left.pop(0)
            if isinstance(given, Exception):
                raise given
            return given
        return httpx.Response(200, json={**JOB, "state": shown.pop(0) if len(shown) > 1 else shown[0]})

    return Stub([answer])


def last_ids(stub: Stub) -> list[str | None]:
    """Return from where each stream was asked for."""
    streams = [request for request in stub.requests if request.url.path.endswith("/events")]
    return [request.headers.get("last-event-id") for request in streams]


def test_following_goes_on_where_a_stream_broke(ask: AttentionParams) -> None:
    """After a break, an end, a refused connection and a busy server, no event is missing and none comes twice."""
    stub = answering(
        stream(QUEUED, breaks=True),
        httpx.ConnectError("refused"),
        httpx.Response(503, headers={"Retry-After": "2"}),
        stream(QUEUED, RUNNING),
        stream(COMPLETED, event(4, "never")),
    )
    assert [each.id for each in ask(stub, "follow", "train")] == [1, 2, 3]
    assert last_ids(stub) == ["0", "1", "1", "1", "2"]
    assert stub.requests[1].url.params["job"] == JOB["id"]
    assert max(stub.pauses) == 2.0


def test_who_follows_is_reported_once_why_it_waits(ask: AttentionParams) -> None:
    """A message of a server that asks clients to wait is reported when it changes, or again after events."""
    one, other = (problem(503, f"{name} is the leader; this process is a standby") for name in ("a", "b"))
    stub = answering(one, one, other, other, stream(QUEUED), other, other, stream(COMPLETED))
    ask(stub, "follow", "train")
    assert stub.waits == [f"{name} is the leader; this process is a standby" for name in ("a", "b", "b")]


def test_following_since_a_time_skips_what_was_before(ask: AttentionParams) -> None:
    """Earlier events of a job are not shown, and its end ends the stream even if it was before the time."""
    late = {**event(4, "running"), "at": "2026-11-21T10:00:01Z"}
    since = "2026-11-21T11:00:01+01:00"
    stub = answering(stream(QUEUED, late, event(5, "completed")))
    assert [each.id for each in ask(stub, "follow", "train", since=since)] == [4]
    stub = answering(stream(late), problem(401, "revoked"))
    with pytest.raises(UnauthenticatedError, match="revoked"):
        ask(stub, "follow", since=since)
    assert (stub.requests[0].url.params["since"], last_ids(stub)) == (since, [None, "4"])


def test_following_all_begins_with_what_comes(ask: AttentionParams) -> None:
    """Without a job, nothing of the past is asked for, and the end of a job is not the end."""
    stub = answering(stream(COMPLETED, event(4, "queued", "other")), problem(401, "revoked"))
    with pytest.raises(UnauthenticatedError, match="revoked"):
        ask(stub, "follow")
    assert last_ids(stub) == [None, "4"]
    assert "job" not in stub.requests[0].url.params


def test_following_gives_up_after_its_patience(ask: AttentionParams) -> None:
    """A server that stays away is reported after the client's patience, counted from the last sign of life."""
    stub = answering(stream(QUEUED, breaks=True), *[httpx.ConnectError("refused")] * 40)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        ask(stub, "follow", "train")
    assert 25 < stub.now_s <= 31


def test_following_a_job_that_is_not_there_fails(ask: AttentionParams) -> None:
    """A user who follows a job that does not exist is reported so."""
    with pytest.raises(UnknownError, match=r"job .* not found"):
        ask(Stub([problem(404, "job 'x' not found")]), "follow", "x")


def test_waiting_returns_the_job_when_it_is_over(ask: AttentionParams) -> None:
    """Waiting listens instead of asking again and again, and returns the job as it is at the end."""
    stub = answering(stream(QUEUED, RUNNING, COMPLETED), states=("queued", "completed"))
    assert ask(stub, "wait", "train").state == "completed"
    assert [request.url.path.rpartition("/")[2] for request in stub.requests] == ["train", "events", JOB["id"]]


def test_waiting_until_a_job_runs_looks_whether_it_still_does(ask: AttentionParams) -> None:
    """A job that ran and was thrown back is waited for until it runs again."""
    again = event(5, "running")
    stub = answering(stream(QUEUED, RUNNING), stream(again), states=("queued", "deploying", "running"))
    assert ask(stub, "wait", "train", "running").state == "running"
    assert last_ids(stub) == ["0", "2"]


@pytest.mark.parametrize(("until", "state"), [("finished", "failed"), ("running", "running"), ("running", "cancelled")])
def test_waiting_for_what_is_already_so_does_not_wait(ask: AttentionParams, until: str, state: str) -> None:
    """A job that is there already is returned at once; one that is over will not run any more."""
    stub = answering(states=(state,))
    assert ask(stub, "wait", "train", until).state == state
    assert len(stub.requests) == 1


def test_waiting_ends_after_its_time(ask: AttentionParams) -> None:
    """A job that does not get there in the time that was given is an error, also where streams are silent."""
    stub = answering(*[httpx.ReadTimeout("silent")] * 99, states=("queued",))
    with pytest.raises(WaitedTooLongError, match="not finished after 5 s"):
        ask(stub, "wait", "train", timeout_s=5)
    assert 5 <= stub.now_s < 6
    with pytest.raises(TimeoutError):
        ask(answering(*(stream() for _ in range(99)), states=("queued",)), "wait", "train", timeout_s=1)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_events_are_read_however_they_are_cut(size: int) -> None:
    """Chunks may end anywhere, also within a letter; line separators in a text end no line."""
    reported = {**event(7, "failed"), "message": "größer\u2028als\x85gedacht"}
    sent = b": hello\n\ndata: " + orjson.dumps(reported) + b"\n\nid: 8\n\n"
    reader = Reader()
    received = [each for at in range(0, len(sent), size) for each in reader.read(sent[at : at + size])]
    assert [(each.id, each.body) for each in received] == [(7, reported)]


@pytest.mark.parametrize("sent", [b"data: no json\n\n", b"data: {}\n\n", b"data: []\n\n", b"x" * (1 << 21)])
def test_what_is_no_event_is_an_error(sent: bytes) -> None:
    """A stream that Seaway would not send is reported instead of guessed at or kept for ever."""
    with pytest.raises(AnswerError):
        Reader().read(sent)


def test_a_feed_forgets_the_half_event_of_a_broken_stream() -> None:
    """Anything that came before a break in the middle of an event does not get into the next stream."""
    feed = Feed("x", 0)
    feed.call()
    assert feed.read(b'data: {"id": 1') == []
    feed.call()
    assert [each.id for each in feed.read(b'data: {"id": 1, "state": "queued"}\n\n')] == [1]
