"""Fan-out of live events: each event is encoded once, and listeners with equal subscriptions share the bytes.

The hub runs on the event loop. Several times a second, it reads new events from the feed. It encodes them once per
subscription (to a tenant, a job, or everything) and queues the bytes for each listener. Nothing is queued for a slow
listener, which later reads the missed events from the feed or the store.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import orjson

from seaway.api.http.pipeline import Threads
from seaway.application.access import Access, Caller
from seaway.application.changes import MAX_STORED, Feed
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import Event
from seaway.domain.errors import SeawayError, UnavailableError
from seaway.domain.reasons import Reason
from seaway.wire.events import event_fields

MAX_BYTES = 1 << 20
"""Maximum size of the queue of one listener, bytes. A full queue accepts no more events."""

SHARED = frozenset(
    {
        "agent",
        "cluster",
        "cluster_facts",
        "cluster_removed",
        "cordoned",
        "drained",
        "network",
        "path",
        "rescheduling_halted",
        "uncordoned",
    }
)
"""Kinds of fleet events that callers of a tenant may see. All others may concern other tenants."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """Filter of events.

    Attributes
    ----------
    tenant
        Tenant whose events, with those of the fleet, are included; empty for all.
    job_id
        Job whose events are included; empty for all.
    confined
        True if the caller belongs to a tenant and may not see others.
    """

    tenant: str
    job_id: str
    confined: bool

    def wants(self, event: Event) -> bool:
        """Report whether an event matches."""
        if self.job_id:
            return event.job_id == self.job_id
        if event.tenant:
            return self.tenant in ("", event.tenant)
        return not self.confined or event.kind in SHARED


class Listener:
    """Queue of one listener; encoded events are shared with other listeners.

    Attributes
    ----------
    sent
        ID of the last event sent.
    lagging
        True if events were dropped since then.
    closed
        True if the stream ends.
    """

    def __init__(self, who: Caller, subscription: Subscription) -> None:
        self.who = who
        self.subscription = subscription
        self.sent = 0
        self.lagging = False
        self.closed = False
        self.wake = asyncio.Event()
        self._waiting: list[bytes] = []
        self._size = 0
        self._reaches = 0

    def give(self, piece: bytes, reaches: int) -> None:
        """Queue encoded events up to the ID `reaches`; 0 for a heartbeat."""
        if self.lagging:
            return
        if self._size + len(piece) > MAX_BYTES:
            self.lagging = True
            self._waiting.clear()
        else:
            self._waiting.append(piece)
            self._size += len(piece)
            self._reaches = reaches or self._reaches
        self.wake.set()

    def take(self) -> bytes:
        """Return all queued bytes."""
        self.wake.clear()
        pieces, self._waiting, self._size = self._waiting, [], 0
        self.sent = max(self.sent, self._reaches)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def catch_up(self, reaches: int) -> None:
        """Reset the queue after dropped events. Events up to `reaches` are read elsewhere."""
        self.lagging = False
        self._waiting, self._size, self._reaches = [], 0, reaches

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self.wake.set()


MAX_LISTENERS = 10_000
MAX_PER_CALLER = 1000
TICK_S = 0.05
HEARTBEAT_S = 15.0
HEARTBEAT = b":\n\n"


class Hub:
    """Distribution of events to listeners.

    Parameters
    ----------
    feed, store
        Sources of the latest and of older events.
    access
        Checks that the token of a listener is still valid.
    threads
        Threads for reads from the store.
    """

    def __init__(self, feed: Feed, store: Store, access: Access, threads: Threads) -> None:
        self.last = 0
        self._feed = feed
        self._store = store
        self._access = access
        self._threads = threads
        self._listeners: dict[Subscription, set[Listener]] = defaultdict(set)
        self._count = 0
        self._callers: Counter[str] = Counter()
        self._encoded: OrderedDict[int, bytes] = OrderedDict()
        self._news: asyncio.Event | None = None
        self._woken = False
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    def __len__(self) -> int:
        return self._count

    async def join(self, listener: Listener) -> None:
        """Add a listener. It receives all events after `last` as of the return.

        Raises
        ------
        UnavailableError
            If there are too many listeners, in total or of one caller, or the server shuts down.
        """
        if self._callers[listener.who.key] >= MAX_PER_CALLER:
            raise UnavailableError(Reason("streams_of_token", most=MAX_PER_CALLER))
        if self._closed or self._count >= MAX_LISTENERS:
            raise UnavailableError(Reason("streams_full") if not self._closed else Reason("shuts_down"))
        async with self._starting:
            if self._task is None:
                await self._start()
        self._listeners[listener.subscription].add(listener)
        self._callers[listener.who.key] += 1
        self._count += 1

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        group = self._listeners.get(listener.subscription, set())
        if listener in group:
            group.remove(listener)
            self._count -= 1
            self._callers[listener.who.key] -= 1
            if not self._callers[listener.who.key]:
                del self._callers[listener.who.key]
            if not group:
                del self._listeners[listener.subscription]

    def close(self) -> None:
        """End all streams and reject new ones, so that the server can stop."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        for listener in self._listeners_of_all():
            listener.close()

    async def missed(self, after: int, upto: int, subscription: Subscription) -> tuple[Sequence[Event], int]:
        """Return a part of a subscription's events between two IDs, and the last ID that the part covers."""
        events = self._feed.since(after)
        if events is not None:
            events = [event for event in events if event.id <= upto]
            part = events[:MAX_ROWS]
            return [event for event in part if subscription.wants(event)], part[-1].id if len(part) < len(
                events
            ) else upto
        rows = await self._threads.read(
            self._store.events,
            after,
            MAX_ROWS,
            tenant="" if subscription.job_id else subscription.tenant,
            job_id=subscription.job_id,
        )
        reached = rows[-1].id if len(rows) == MAX_ROWS else upto
        return [event for event in rows if event.id <= upto and subscription.wants(event)], reached

    def encode(self, events: Sequence[Event]) -> bytes:
        """Return encoded events. Each event is encoded only once."""
        return b"".join(self._encoded.get(event.id) or self._encode(event) for event in events)

    def _encode(self, event: Event) -> bytes:
        written = b"id: %d\ndata: %b\n\n" % (event.id, orjson.dumps(event_fields(event)))
        self._encoded[event.id] = written
        while len(self._encoded) > MAX_STORED:
            self._encoded.popitem(last=False)
        return written

    async def _start(self) -> None:
        loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        news = self._news

        def wake() -> None:
            if not self._woken:
                self._woken = True
                with suppress(RuntimeError):  # the loop is closed: there are no listeners
                    loop.call_soon_threadsafe(news.set)

        self.last = self._feed.last or await self._threads.read(self._store.last_event)
        stop = self._feed.subscribe(wake)
        self._task = asyncio.create_task(self._run(news))
        self._task.add_done_callback(lambda _: stop())
        wake()

    async def _run(self, news: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        beat = loop.time() + HEARTBEAT_S
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(beat):
                    await news.wait()
            news.clear()
            self._woken = False
            with suppress(SeawayError):  # the store does not answer: retry in the next round
                await self._distribute()
            if loop.time() >= beat:
                beat = loop.time() + HEARTBEAT_S
                self._send_heartbeats()
            await asyncio.sleep(TICK_S)

    async def _distribute(self) -> None:
        while True:
            events = self._feed.since(self.last)
            if events is None:
                events = await self._threads.read(self._store.events, self.last, MAX_ROWS)
            if not events:
                return
            self.last = events[-1].id
            for subscription, group in self._listeners.items():
                if bytes_of := self.encode([event for event in events if subscription.wants(event)]):
                    for listener in group:
                        self._give(listener, bytes_of, self.last)
            if len(events) < MAX_ROWS:
                return

    def _send_heartbeats(self) -> None:
        for listener in self._listeners_of_all():
            self._give(listener, HEARTBEAT, 0)

    def _give(self, listener: Listener, piece: bytes, reaches: int) -> None:
        """Queue bytes for a listener, or end its stream if its token is no longer valid."""
        if self._access.holds(listener.who):
            listener.give(piece, reaches)
        else:
            listener.close()

    def _listeners_of_all(self) -> list[Listener]:
        return [listener for group in self._listeners.values() for listener in group]
