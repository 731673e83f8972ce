"""Live log stream over server-sent events, across attempts, until the job finishes.

References
----------
WHATWG HTML, section 9.2, Server-sent events.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import orjson
from fastapi import Query, Request, Response
from starlette.types import Receive, Scope, Send

from seaway.api.events import MEDIA_TYPE, RETRY
from seaway.api.http.pipeline import RequestPipeline, caller_of, header_of, pipeline_of
from seaway.api.http.queries import Moment, find
from seaway.api.http.routes import Header, operation, router
from seaway.api.hub import HEARTBEAT, Hub, Listener, Subscription
from seaway.api.job_views import MAX_REPLICA, ContainerName
from seaway.api.jobs import JobRef
from seaway.application.fleet.overview import MAX_LINES, Log
from seaway.application.ports.logs import Following, LogLine, NoContainerError
from seaway.application.records import Role
from seaway.domain.errors import ConflictError, RejectedError, SeawayError
from seaway.domain.job_record import JobRecord
from seaway.domain.numbers import whole_number
from seaway.domain.reasons import Reason
from seaway.wire.fields import at_ns

EVERY_S = 1.0
"""Polling interval of clusters that cannot stream logs, seconds."""

PAUSE_S, MAX_PAUSE_S = 0.2, 5.0
"""Minimum and maximum delay before the next read of a log, seconds. The delay doubles while there are no lines."""

MAX_BYTES = 1 << 20
"""Maximum size of the queue of a follower, bytes. While the queue is full, reading from the cluster pauses."""

LAST_LINE = Header("Last-Event-ID", "The last line that you have. Only later lines are sent.", 200)

_PLACE = re.compile(r"([0-9]{1,9})~([0-9A-Za-z._-]{0,150})")

routes = router("jobs")


@operation(
    routes, "GET", "/jobs/{job}/logs/follow", Role.VIEWER, {200: MEDIA_TYPE}, errors=(404, 409), headers=(LAST_LINE,)
)
async def follow_log(
    request: Request,
    job: JobRef,
    replica: Annotated[int, Query(ge=0, le=MAX_REPLICA)] = 0,
    tail: Annotated[int, Query(ge=1, le=MAX_LINES, description="Existing lines, from the end.")] = 100,
    container: ContainerName = "",
    since: Annotated[Moment, Query(description="Only lines from this second on, like 2026-11-21T10:00:00Z.")] = "",
) -> Response:
    """Follow the log of a replica live, across attempts, until the job finishes.

    The data of each event is an object with the line as `text`. Comments between events keep the connection open. The
    last event is named `end`. If there was no log, its `reason` has the cause, for example an unknown container.
    """
    caller_of(request).require_job_content()
    pipeline, found = pipeline_of(request), await find(request, job)
    place = _Place(header_of(request, b"last-event-id") or "")
    await pipeline.threads.read(pipeline.plane.overview.log, found, replica, container)
    since_ns = max(0, at_ns(since)) if since else 0
    listener = Listener(caller_of(request), Subscription("", found.id, confined=True))
    hub: Hub = request.app.state.hub
    await hub.join(listener)
    return LogStream(pipeline, hub, listener, _LogRequest(found.id, replica, container, tail, since_ns), place)


@dataclass(frozen=True, slots=True)
class _LogRequest:
    """Log to follow, the number of its first lines, and the time of the first one."""

    job_id: str
    replica: int
    container: str
    tail: int
    since_ns: int


class _Place:
    """Position in a job's log: the attempt, and a position in the format of its cluster."""

    def __init__(self, text: str) -> None:
        found = _PLACE.fullmatch(text)
        if text and not found:
            raise RejectedError(Reason("use_line_id"), where=LAST_LINE.name)
        self.attempt = int(found[1]) if found else 0
        self.within = found[2] if found else ""

    def encode(self, lines: Sequence[LogLine]) -> bytes:
        """Return encoded lines, and advance the position past them."""
        self.within = lines[-1].place
        return b"".join(
            b"id: %d~%b\ndata: %b\n\n" % (self.attempt, line.place.encode(), orjson.dumps({"text": line.text}))
            for line in lines
        )


class _LineQueue:
    """Queue of lines from the thread of a cluster.

    Parameters
    ----------
    wake
        Event that is set when lines arrive.
    """

    def __init__(self, wake: asyncio.Event) -> None:
        self.full = False
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._lines: list[LogLine] = []
        self._size = 0

    def give(self, lines: Sequence[LogLine]) -> None:
        """Add lines. Thread-safe."""
        with suppress(RuntimeError):  # the loop is closed: the client is gone
            self._loop.call_soon_threadsafe(self._take_in, lines)

    def take(self) -> list[LogLine]:
        """Return the queued lines."""
        lines, self._lines, self._size = self._lines, [], 0
        return lines

    def _take_in(self, lines: Sequence[LogLine]) -> None:
        self.full = self.full or self._size > MAX_BYTES
        if not self.full:  # dropped lines are read again from the last position
            self._lines += lines
            self._size += sum(len(line.text) for line in lines)
        self._wake.set()


class LogStream(Response):
    """Streaming response that lasts until the job finishes or the client disconnects.

    It subscribes to events of the job, which trigger the next read, and to the heartbeat of all streams.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self, pipeline: RequestPipeline, hub: Hub, listener: Listener, subscription: _LogRequest, place: _Place
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._pipeline = pipeline
        self._hub = hub
        self._listener = listener
        self._subscription = subscription
        self._tail = subscription.tail
        self._place = place
        self._pause_s = PAUSE_S
        self._why = ""
        self._send: Send

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send lines until the stream ends."""
        self._send = send
        leaving = asyncio.create_task(self._watch(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send_chunk(RETRY)
            await self._run()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._hub.leave(self._listener)
            leaving.cancel()

    async def _run(self) -> None:
        while not self._listener.closed:
            job = await self._job()
            if job is None:
                return
            log: Log | None = None
            try:
                log = await self._log(job)
                if log is not None:
                    await self._read(log)
            except NoContainerError as error:
                await self._end(str(error))
                return
            except ConflictError as error:  # an attempt with fewer replicas has no such log
                self._why = str(error)
            except SeawayError as error:  # the log does not exist yet or any more, or its cluster does not answer
                self._why = self._why or str(error)
                if job.state.final and log and not self._place.within:
                    await self._tell(_later(log.stored(self._subscription.since_ns), "", self._tail))
            if job.state.final and not self._listener.closed:
                await self._end("" if self._place.within else self._why or "the job never ran")
                return
            await self._wait()

    async def _job(self) -> JobRecord | None:
        """Return the current job; None if the job was removed or the store does not respond, which ends the stream."""
        with suppress(SeawayError):
            return await self._pipeline.threads.read(self._pipeline.plane.store.job, self._subscription.job_id)
        return None

    async def _log(self, job: JobRecord) -> Log | None:
        """Return the log of the job's latest attempt."""
        find_log = self._pipeline.plane.overview.log
        return await self._pipeline.threads.read(
            find_log, job, self._subscription.replica, self._subscription.container
        )

    async def _end(self, why: str) -> None:
        """Send the last event, with the reason if there was no log."""
        await self._send_chunk(b"event: end\ndata: %b\n\n" % orjson.dumps({"reason": why} if why else {}))

    async def _read(self, log: Log) -> None:
        """Send the lines of an attempt's log, and follow it if the cluster can stream logs."""
        if log.attempt != self._place.attempt:
            self._tail = MAX_LINES if self._place.attempt else self._tail
            self._place.attempt, self._place.within = log.attempt, ""
        if isinstance(log.backend, Following):
            await self._listen(log, log.backend)
        else:
            lines = await self._pipeline.threads.ask_cluster(
                log.backend.cluster, log.lines, MAX_LINES, self._subscription.since_ns
            )
            await self._tell(_later(lines, self._place.within, self._tail))
            self._pause_s = EVERY_S

    async def _listen(self, log: Log, backend: Following) -> None:
        inbox = _LineQueue(self._listener.wake)
        since_ns = self._subscription.since_ns
        begin = (log.copy, log.replica, self._tail, self._place.within, inbox.give, log.container, since_ns)
        ask = self._pipeline.threads.ask_cluster
        reading = asyncio.wrap_future(await ask(log.backend.cluster, backend.follow_log, *begin))
        began_s = asyncio.get_running_loop().time()
        reading.add_done_callback(lambda _: self._listener.wake.set())
        try:
            while not self._listener.closed:
                over = inbox.full or reading.done()  # before the last lines are taken
                await self._tell(inbox.take())
                if over:
                    break
                await self._listener.wake.wait()
                if await self._received() and await self._moved_on(log):
                    break
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            if asyncio.get_running_loop().time() - began_s > MAX_PAUSE_S:  # a long read: the log was only quiet
                self._pause_s = PAUSE_S

    async def _moved_on(self, log: Log) -> bool:
        """Report whether the job has another attempt, since the log of an unreachable cluster does not end."""
        job = await self._job()
        return job is None or job.attempt != log.attempt

    async def _tell(self, lines: Sequence[LogLine]) -> None:
        if lines:
            self._pause_s = PAUSE_S
            await self._send_chunk(self._place.encode(lines))

    async def _wait(self) -> None:
        """Wait for the delay, or until an event of the job."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause_s):
                while not self._listener.closed:
                    await self._listener.wake.wait()
                    if await self._received():
                        return
        self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)

    async def _received(self) -> bool:
        """Forward a heartbeat, and report whether there was an event of the job."""
        if self._listener.lagging:
            self._listener.catch_up(self._hub.last)
        said = self._listener.take()
        if HEARTBEAT in said:
            await self._send_chunk(HEARTBEAT)
        return bool(said) and said != HEARTBEAT

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.close()

    async def _send_chunk(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


def _later(lines: Sequence[str], place: str, tail: int) -> list[LogLine]:
    """Return the lines after a position, which is a line number."""
    number = whole_number(place)
    first = max(0, len(lines) - tail) if number is None else number
    return [LogLine(text, str(at + 1)) for at, text in enumerate(lines[first:], first)]
