"""Lists of events, and their live stream over server-sent events.

References
----------
WHATWG HTML, section 9.2, Server-sent events.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated

from fastapi import Query, Request, Response
from starlette.types import Receive, Scope, Send

from seaway.api.http.pipeline import caller_of, pipeline_of
from seaway.api.http.queries import LARGEST_ID, Word, find, tenant_asked
from seaway.api.http.replies import json_reply
from seaway.api.http.routes import Header, operation, router
from seaway.api.hub import Hub, Listener, Subscription
from seaway.api.job_views import AfterEvent, EventLimit, SinceEvent, begin_of
from seaway.application.ports.store import MAX_ROWS
from seaway.application.records import Role
from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.reasons import Reason
from seaway.wire.events import EventList, event_fields

RETRY = b"retry: 2000\n\n"
MEDIA_TYPE = "text/event-stream"
LAST_EVENT = Header("Last-Event-ID", "The last event that you have. Takes precedence over `after`.", 20)

OfTenant = Annotated[Word, Query(description="Filter by tenant; events of the fleet are included.")]

routes = router("events")


@operation(routes, "GET", "/events/history", Role.VIEWER, {200: EventList}, errors=(404,))
async def list_events(
    request: Request,
    tenant: OfTenant = "",
    since: SinceEvent = "",
    after: AfterEvent = 0,
    limit: EventLimit = MAX_ROWS,
) -> Response:
    """List the stored events of jobs and the fleet, in order. A page may have fewer events than its limit."""
    pipeline, who = pipeline_of(request), caller_of(request)
    asked = Subscription(tenant_asked(who, tenant), "", bool(who.tenant))
    begin = await begin_of(pipeline, since, after)
    rows = await pipeline.threads.read(pipeline.plane.store.events, begin, limit, tenant=asked.tenant)
    following = rows[-1].id if len(rows) == limit else None
    return json_reply({"events": [event_fields(row) for row in rows if asked.wants(row)], "next": following})


@operation(routes, "GET", "/events", Role.VIEWER, {200: MEDIA_TYPE}, errors=(404,), headers=(LAST_EVENT,))
async def follow_events(
    request: Request,
    after: Annotated[
        int | None, Query(ge=0, le=LARGEST_ID, description="Begin after this event. Default: only new events.")
    ] = None,
    since: SinceEvent = "",
    job: Annotated[Word, Query(description="Filter by job: its ID or name.")] = "",
    tenant: OfTenant = "",
) -> Response:
    """Follow events live.

    The data of each event is an `EventOut`. Comments between events keep the connection open.
    """
    who = caller_of(request)
    job_id = (await find(request, job)).id if job else ""
    subscription = Subscription(tenant_asked(who, tenant), job_id, bool(who.tenant))
    begin = _last_event(request)
    if begin is None and since:
        begin = await begin_of(pipeline_of(request), since, after or 0)
    listener = Listener(who, subscription)
    hub: Hub = request.app.state.hub
    await hub.join(listener)
    if begin is None:
        begin = hub.last if after is None else after
    return Stream(hub, listener, begin)


class Stream(Response):
    """Streaming response that lasts until the client disconnects."""

    media_type = MEDIA_TYPE

    def __init__(self, hub: Hub, listener: Listener, after: int) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._listener = listener
        listener.sent = after
        listener.catch_up(hub.last)
        self._upto = hub.last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the stream ends."""
        leaving = asyncio.create_task(self._watch(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send(send, RETRY)
            with suppress(SeawayError):  # the store does not answer: the client reconnects
                await self._follow(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._hub.leave(self._listener)
            leaving.cancel()

    async def _follow(self, send: Send) -> None:
        listener = self._listener
        await self._catch_up(send, self._upto)
        while not listener.closed:
            await listener.wake.wait()
            if listener.lagging:
                upto = self._hub.last
                listener.catch_up(upto)
                await self._catch_up(send, upto)
            elif not listener.closed:
                await self._send(send, listener.take())

    async def _catch_up(self, send: Send, upto: int) -> None:
        """Send the events between the last sent one and `upto`, after which live events begin."""
        listener = self._listener
        while listener.sent < upto and not listener.closed:
            events, reached = await self._hub.missed(listener.sent, upto, listener.subscription)
            if events:
                await self._send(send, self._hub.encode(events))
            listener.sent = reached

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.close()

    @staticmethod
    async def _send(send: Send, body: bytes) -> None:
        if body:
            await send({"type": "http.response.body", "body": body, "more_body": True})


def _last_event(request: Request) -> int | None:
    text = request.headers.get("last-event-id", "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 20 or int(text) > LARGEST_ID:
        raise RejectedError(Reason("use_event_id"), where="Last-Event-ID")
    return int(text)
