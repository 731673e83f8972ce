"""The only writer of the database. It stores changes of all threads in groups, one transaction per group.

A durable transaction takes the same time for one or a hundred changes. So changes that arrive during a transaction form
the next group.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import replace

from seaway.application.changes import Change, Outcome
from seaway.application.histogram import Timing
from seaway.application.ports.store import Store
from seaway.application.records import AuditEntry, Event
from seaway.domain.errors import ConflictError, SupersededError, UnavailableError
from seaway.domain.reasons import Reason, reason_of

log = logging.getLogger(__name__)

MAX_TOGETHER = 512
"""Maximum number of changes in one transaction."""

BUSY = 4
GATHER_S = 0.003
"""Seconds to wait for more changes after a large group. A transaction costs as much as ten changes."""

IDLE_S = 3
"""Seconds without changes after which the writer tests the database."""

MAX_WAITING = 20_000
"""Maximum number of waiting changes. Above it, callers have to retry later."""

Listener = Callable[[Sequence[Change]], None]
ReloadRequest = Callable[[], None]
_Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Outcome]"] | Future[list[Outcome]]


class RequestEntry:
    """Audit entry of a request, stored in one transaction with the first change of the request.

    Parameters
    ----------
    make
        Returns the entry for a change.

    Attributes
    ----------
    stored
        The stored entry; None until a change is stored.
    """

    def __init__(self, make: Callable[[Change], AuditEntry]) -> None:
        self._make = make
        self.stored: AuditEntry | None = None

    def commit(self, changes: Sequence[Change], commit: Callable[[Sequence[Change]], list[Outcome]]) -> list[Outcome]:
        """Store changes, with the entry if it is not stored yet."""
        if self.stored is not None:
            return commit(changes)
        entry = self._make(changes[0])
        changes[0].insert.append(entry)
        outcomes = commit(changes)
        if outcomes[0] is Outcome.STORED:
            self.stored = entry
        return outcomes


REQUEST_ENTRY: ContextVar[RequestEntry | None] = ContextVar("request_entry", default=None)
"""Audit entry of the current request; None outside of requests that change something."""


class Writer:
    """Group commit of changes. Listeners are notified of stored changes in order.

    Attributes
    ----------
    stored, groups
        Number of stored changes and transactions.
    took
        Durations of stored transactions.
    failures
        Number of groups whose result is unknown.
    trouble
        Error of the last group or test; empty if it was stored.
    soon
        Number of changes from callers that wait for the result, such as a submit.
    superseded
        Reason why nothing is stored since another process became the leader; empty while this process is the leader.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[tuple[Sequence[Change], _Waiter]] = deque()
        self._some = threading.Condition()
        self._listeners: list[Listener] = []
        self._reload_requests: list[ReloadRequest] = []
        self._unreadable: set[str] = set()
        self._last_event: int | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._storing = threading.Lock()
        self.stored = 0
        self.groups = 0
        self.took = Timing()
        self.failures = 0
        self.trouble = ""
        self._tried_s = time.monotonic()
        self.soon = 0
        self.superseded = ""
        self._on_superseded: list[Callable[[], None]] = []
        self.setting_up = threading.Lock()
        """Lock for changes of queues, pools, tenants and tokens, which depend on what else is stored."""

    def unreadable(self) -> list[str]:
        """Return the tables and keys of damaged rows, as `Store.unreadable` does.

        Listeners reload their state if a row was repaired or removed, since no change says so.
        """
        before, found = self._unreadable, self._store.unreadable()
        self._unreadable = {*found}
        if before - self._unreadable:
            self._request_reloads()
        return found

    def on_superseded(self, call: Callable[[], None]) -> None:
        """Register a function to call when another process becomes the leader, or call it now if one did.

        The writer calls it in the thread that detects the change. The function must not wait for a change to be stored.
        """
        self._on_superseded.append(call)
        if self.superseded:
            call()

    def listen(self, listener: Listener, reload: ReloadRequest | None = None) -> None:
        """Register `listener`, called with each stored group of changes before its callers continue.

        Parameters
        ----------
        reload
            Called after a failed group that may have been stored. Caches of stored records must then be reloaded.
        """
        self._listeners.append(listener)
        if reload:
            self._reload_requests.append(reload)

    def start(self) -> None:
        """Start the thread. Without the thread, callers store their changes themselves."""
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Store the waiting changes and end the thread."""
        with self._some:
            self._stopping = True
            self._some.notify_all()
        if self._thread:
            self._thread.join()

    @property
    def waiting(self) -> int:
        """Number of changes that wait to be stored, without those in flight."""
        with self._some:
            return sum(len(changes) for changes, _ in self._waiting)

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes and wait for the result. In a request, the first ones include its audit entry.

        Raises
        ------
        UnavailableError
            If it is unknown whether anything was stored, or if another process is the leader.
        """
        if not changes:
            return []
        entry = REQUEST_ENTRY.get()
        return entry.commit(changes, self._commit) if entry else self._commit(changes)

    def _commit(self, changes: Sequence[Change]) -> list[Outcome]:
        if self._thread is None:
            return self._store_group(changes)
        answer: Future[list[Outcome]] = Future()
        self._bring(changes, answer)
        return answer.result()

    def require(self, change: Change) -> None:
        """Store one change and wait for the result.

        Raises
        ------
        ConflictError
            If another change of a row came first.
        """
        if self.commit([change]) != [Outcome.STORED]:
            raise ConflictError(Reason("changed_at_once"))

    async def stored_soon(self, change: Change) -> Outcome:
        """Store one change without blocking the event loop."""
        self.soon += 1
        loop = asyncio.get_running_loop()
        if self._thread is None:
            return self._store_group([change])[0]
        answer: asyncio.Future[Outcome] = loop.create_future()
        self._bring([change], (loop, answer))
        return await answer

    def _bring(self, changes: Sequence[Change], waiter: _Waiter) -> None:
        with self._some:
            if self._stopping:
                raise UnavailableError(Reason("seaway_stops"))
            if len(self._waiting) >= MAX_WAITING:
                raise UnavailableError(Reason("store_overloaded"), retry_after_s=1)
            self._waiting.append((changes, waiter))
            self._some.notify()

    def _run(self) -> None:
        busy = False
        while True:
            with self._some:
                while not self._waiting and not self._stopping:
                    self._some.wait()
                if not self._waiting:
                    return
            if busy:
                time.sleep(GATHER_S)
            with self._some:
                group = self._take()
            busy = len(group) >= BUSY
            self._serve(group)

    def _take(self) -> list[tuple[Sequence[Change], _Waiter]]:
        """Remove the changes of the next transaction from the queue, at least one entry."""
        group, size = [self._waiting.popleft()], 0
        size = len(group[0][0])
        while self._waiting and size + len(self._waiting[0][0]) <= MAX_TOGETHER:
            group.append(self._waiting.popleft())
            size += len(group[-1][0])
        return group

    def _serve(self, group: list[tuple[Sequence[Change], _Waiter]]) -> None:
        try:
            outcomes = self._store_group([change for changes, _ in group for change in changes])
        except Exception as error:  # noqa: BLE001  # every failure has to reach the waiting callers
            _answer([(waiter, error) for _, waiter in group])
            return
        at = 0
        answers: list[tuple[_Waiter, list[Outcome] | Exception]] = []
        for changes, waiter in group:
            answers.append((waiter, outcomes[at : at + len(changes)]))
            at += len(changes)
        _answer(answers)

    def _store_group(self, changes: Sequence[Change]) -> list[Outcome]:
        with self._storing:
            if self.superseded:
                raise UnavailableError(self.superseded)
            self._tried_s = time.monotonic()
            self._number_events(changes)
            began_s = time.perf_counter()
            try:
                outcomes = self._store.commit(changes)
            except SupersededError as error:
                self._give_up(str(error))
                raise UnavailableError(self.superseded) from error
            except BaseException as error:
                self.failures += 1
                self.trouble = reason_of(error)
                self._last_event = None  # it may have been stored after all
                self._request_reloads()
                raise
            self.took.note(time.perf_counter() - began_s)
            self.trouble = ""
            self.groups += 1
            self.stored += len(changes)
            self._notify(
                [change for change, outcome in zip(changes, outcomes, strict=True) if outcome is Outcome.STORED]
            )
        return outcomes

    def _request_reloads(self) -> None:
        for reload in self._reload_requests:
            reload()

    def test(self) -> None:
        """Write to the database if no change came for a while, so that `trouble` is current, as on a full disk."""
        if self.superseded or time.monotonic() - self._tried_s < IDLE_S:
            return
        with self._storing:
            self._tried_s = time.monotonic()
            try:
                self._store.touch()
                self.trouble = ""
            except SupersededError as error:
                self._give_up(str(error))
            except UnavailableError as error:
                self.trouble = str(error)

    def _give_up(self, why: str) -> None:
        """Stop storing, and call the functions registered with `on_superseded`."""
        self.superseded = why
        log.info("%s", why)
        for call in self._on_superseded:
            call()

    def _notify(self, stored: Sequence[Change]) -> None:
        """Notify all listeners. A failing listener affects neither the others nor the callers."""
        for listener in self._listeners:
            try:
                listener(stored)
            except Exception:
                log.exception("a listener failed on stored changes")

    def _number_events(self, changes: Sequence[Change]) -> None:
        """Assign IDs to new events in the order of storage."""
        if self._last_event is None:
            try:
                self._last_event = self._store.last_event()
            except BaseException as error:
                self.failures += 1
                self.trouble = reason_of(error)
                raise
        for change in changes:
            for at, record in enumerate(change.insert):
                if isinstance(record, Event):
                    self._last_event += 1
                    change.insert[at] = replace(record, id=self._last_event)


def _answer(answers: Sequence[tuple[_Waiter, list[Outcome] | Exception]]) -> None:
    """Answer all waiting callers; wake each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Outcome], list[Outcome] | Exception]]]
    by_loop = defaultdict(list)
    for waiter, answer in answers:
        if isinstance(waiter, tuple):
            by_loop[waiter[0]].append((waiter[1], answer))
        elif isinstance(answer, Exception):
            waiter.set_exception(answer)
        else:
            waiter.set_result(answer)
    for loop, waiters in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, waiters)


def _resolve(waiters: Sequence[tuple[asyncio.Future[Outcome], list[Outcome] | Exception]]) -> None:
    for future, answer in waiters:
        if future.done():  # the caller is gone
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer[0])
