"""Asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from seaway.client.call import Call, Paged, decoded
from seaway.client.calls import jobs as job_calls
from seaway.client.config import Target
from seaway.client.connection import Pace, Retries, content, request, settings
from seaway.client.feed import Feed, Following, LogFeed, Observation, Stream, Until, Wait
from seaway.client.methods import Methods

if TYPE_CHECKING:
    from seaway.wire.events import EventOut
    from seaway.wire.job_out import JobOut

T = TypeVar("T")


class AsyncClient(Methods):
    """Client of a Seaway server, like `seaway.Client` with methods to await.

    A job is identified by its id or name. Errors are those of `seaway.client.errors`. Idempotent calls are retried if
    the server is unreachable or requests a retry. All tries of a submit have the same key, so that the job is stored
    once.

    Parameters
    ----------
    server, token
        None searches as `seaway.client.config.Target.find` does: environment, profile, this machine's server. A
        `Target` as the server contains all settings, and disables the search.
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

    def __init__(
        self,
        server: str | Target | None = None,
        token: str | None = None,
        *,
        profile: str | None = None,
        timeout_s: float = 30.0,
        pace: Pace | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        pause: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self.target = server if isinstance(server, Target) else Target.find(server, token, profile)
        self._http = httpx.AsyncClient(**settings(self.target, timeout_s), transport=transport)
        self.pace = pace or Pace()
        """Limits of retries for later calls."""
        self._pause = pause

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.target.server!r})"

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def follow(
        self, job: str | None = None, *, after: int | None = None, since: str = ""
    ) -> AsyncIterator[EventOut]:
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
        async for received in self.listen(job, after=after, since=since):
            yield received.event()

    async def listen(
        self, job: str | None = None, *, after: int | None = None, since: str = ""
    ) -> AsyncGenerator[Observation]:
        """Follow events as `follow` does, but yield the API's JSON."""
        feed = Feed(after=after, since=since)
        if job is not None:
            feed = Feed(str((await self.body(job_calls.job(job)))["id"]), after or 0, since)
        async for received in self._received(feed):
            yield received

    def follow_log(
        self, job: str, *, replica: int = 0, container: str = "", tail: int = 100, since: str = ""
    ) -> AsyncGenerator[str]:
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

    async def wait(self, job: str, until: Until = "finished", *, timeout_s: float | None = None) -> JobOut:
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
        found = await self.send(job_calls.job(job))
        feed = Feed(found.id, 0)
        while not wait.done(found) and not feed.is_over():
            async with aclosing(self._received(feed, wait)) as events:
                async for received in events:
                    if wait.matters(received):
                        break
            found = await self.send(job_calls.job(found.id))
        return found

    async def send(self, call: Call[T]) -> T:
        """Make a call, and read its answer."""
        return call.answer.read(await self._content(call))

    async def body(self, call: Call[Any]) -> dict[str, Any]:
        """Make a call, and return the JSON of its answer."""
        return decoded(await self._content(call))

    async def each(self, paged: Paged[T]) -> AsyncIterator[T]:
        """Iterate over a list, page by page, up to its limit."""
        had, call = 0, paged.first if paged.limit != 0 else None
        while call is not None:
            page = await self.send(call)
            taken = paged.taken(page, had)
            for item in taken:
                yield item
            had += len(taken)
            call = paged.after(page.next, had)

    async def _content(self, call: Call[Any]) -> bytes:
        tries = Retries(self.pace, self.target.server, repeatable=call.repeatable)
        while True:
            try:
                response = await self._http.request(**request(call))
                pause = tries.answered(response)
            except httpx.TransportError as error:
                pause = tries.lost(error)
            else:
                if pause is None:
                    return content(call, response)
            await self._pause(pause)

    async def _received(self, stream: Stream[T], wait: Wait | None = None) -> AsyncGenerator[T]:
        following = Following(stream, self.pace, self.target.server, wait)
        while not following.is_over():
            try:
                async with self._http.stream(**following.request()) as response:
                    if response.is_success:
                        async for chunk in response.aiter_bytes():
                            for each in following.read(chunk):
                                yield each
                            if not following.continues():
                                return
                    else:
                        await response.aread()
                    pause = following.ended(response)
            except httpx.TransportError as error:
                pause = following.lost(error)
            await self._pause(pause)
