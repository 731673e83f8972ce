"""Synchronous client."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from seaway.client.call import PREFIX, Call, Paged, decoded
from seaway.client.calls import jobs as job_calls
from seaway.client.config import Target
from seaway.client.connection import Pace, Retries, content, import_httpx, request, settings
from seaway.client.feed import Feed, Following, LogFeed, Observation, Stream, Until, Wait
from seaway.client.local import LocalHttp
from seaway.client.methods import Methods

if TYPE_CHECKING:
    import httpx

    from seaway.wire.events import EventOut
    from seaway.wire.job_out import JobOut

T = TypeVar("T")


class Client(Methods):
    """Client of a Seaway server; every method waits for the answer.

    A job is identified by its id or name. Errors are those of `seaway.client.errors`. Idempotent calls are retried if
    the server is unreachable or requests a retry. All tries of a submit have the same key, so that the job is stored
    once.

    Parameters
    ----------
    server, token
        None searches as `seaway.client.config.Target.find` does: environment, profile, this machine's server.
    profile
        Name of a profile; None for the default one.
    timeout_s
        Time limit of an answer in seconds.
    pace
        Limits of retries.
    transport
        Replacement of the network in tests.
    pause
        Sleeps for a number of seconds.
    """

    _light: ClassVar[bool] = False
    """True to call a server on this machine without httpx."""

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        profile: str | None = None,
        timeout_s: float = 30.0,
        pace: Pace | None = None,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.target = Target.find(server, token, profile)
        self._timeout_s = timeout_s
        self._transport = transport
        self._local = LocalHttp(self.target, timeout_s) if self._light and LocalHttp.serves(self.target) else None
        if self._local is None:
            _ = self._http  # its errors are those of the constructor
        self.pace = pace or Pace()
        """Limits of retries for later calls."""
        self._pause = pause

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.target.server!r})"

    def close(self) -> None:
        """Close all connections."""
        if "_http" in self.__dict__:
            self._http.close()

    @cached_property
    def _http(self) -> httpx.Client:
        client: httpx.Client = import_httpx().Client(
            **settings(self.target, self._timeout_s), transport=self._transport
        )
        return client

    def follow(self, job: str | None = None, *, after: int | None = None, since: str = "") -> Iterator[EventOut]:
        """Follow events as they happen; resume after a connection loss.

        Parameters
        ----------
        job
            Job to follow until it ends; None follows all visible events without end.
        after
            Id of the last known event. None starts with a job's first event or, without a job, with new events.
        since
            Time with its zone, such as ``2026-11-21T10:00:00Z``, to start with.
        """
        for received in self.listen(job, after=after, since=since):
            yield received.event()

    def listen(self, job: str | None = None, *, after: int | None = None, since: str = "") -> Generator[Observation]:
        """Follow events as `follow` does, but yield the API's JSON."""
        feed = Feed(after=after, since=since)
        if job is not None:
            feed = Feed(str(self.body(job_calls.job(job))["id"]), after or 0, since)
        yield from self._received(feed)

    def follow_log(
        self, job: str, *, replica: int = 0, container: str = "", tail: int = 100, since: str = ""
    ) -> Generator[str]:
        """Follow the log of a replica, line by line, until the job ends.

        Resume after the last received line when the connection is lost.

        Parameters
        ----------
        container
            Name of a container; empty for the first.
        tail
            Number of existing lines to begin with.
        since
            Only lines from this time on, with its zone, such as ``2026-11-21T10:00:00Z``.
        """
        return self._received(LogFeed(job, replica, tail, container, since))

    def wait(self, job: str, until: Until = "finished", *, timeout_s: float | None = None) -> JobOut:
        """Wait until a job ends or runs; return its state at that time.

        Parameters
        ----------
        until
            ``running`` also returns when the job ends without having run.
        timeout_s
            Time limit in seconds; None for no limit.

        Raises
        ------
        WaitedTooLongError
            When the time limit is exceeded.
        """
        wait = Wait(until, timeout_s, self.pace.clock())
        found = self.send(job_calls.job(job))
        feed = Feed(found.id, 0)
        while not wait.done(found) and not feed.is_over():
            with closing(self._received(feed, wait)) as events:
                for received in events:
                    if wait.matters(received):
                        break
            found = self.send(job_calls.job(found.id))
        return found

    def send(self, call: Call[T]) -> T:
        """Make a call, and read its answer."""
        return call.answer.read(self._content(call))

    def body(self, call: Call[Any]) -> dict[str, Any]:
        """Make a call, and return the JSON of its answer."""
        return decoded(self._content(call))

    def each(self, paged: Paged[T]) -> Iterator[T]:
        """Iterate over a list, page by page, up to its limit."""
        had, call = 0, paged.first if paged.limit != 0 else None
        while call is not None:
            page = self.send(call)
            taken = paged.taken(page, had)
            yield from taken
            had += len(taken)
            call = paged.after(page.next, had)

    def _content(self, call: Call[Any]) -> bytes:
        tries = Retries(self.pace, self.target.server, repeatable=call.repeatable)
        while True:
            try:
                response = (self._local or self._http).request(**request(call))
                pause = tries.answered(response)
            except _transport_errors() as error:
                pause = tries.lost(error)
            else:
                if pause is None:
                    return content(call, response)
            self._pause(pause)

    def _received(self, stream: Stream[T], wait: Wait | None = None) -> Generator[T]:
        following = Following(stream, self.pace, self.target.server, wait)
        while not following.is_over():
            try:
                with self._http.stream(**following.request()) as response:
                    if response.is_success:
                        for chunk in response.iter_bytes():
                            yield from following.read(chunk)
                            if not following.continues():
                                return
                    else:
                        response.read()
                    pause = following.ended(response)
            except _transport_errors() as error:
                pause = following.lost(error)
            self._pause(pause)


class LightClient(Client):
    """Client for a few calls of a server on this machine, without importing httpx, which takes longer than they do."""

    _light = True

    on_change: Callable[[str], None] | None = None
    """Receives each change that the server has made, such as ``PUT /queues/vision``."""

    def _content(self, call: Call[Any]) -> bytes:
        content = super()._content(call)
        if self.on_change and call.changes:
            self.on_change(f"{call.method} {call.path.removeprefix(PREFIX)}")
        return content


def _transport_errors() -> type[httpx.TransportError]:
    """Return the class of errors of connections; called only if there is one."""
    kind: type[httpx.TransportError] = import_httpx().TransportError
    return kind
