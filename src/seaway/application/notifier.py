"""Delivery of notifications, at least once.

The writer's thread notes events that someone wants to know. The thread of the notifier stores a message for each
receiver, sends it, and removes it once the receiver has accepted it. Messages are stored together with the number of
the last event, so that after a restart none is missing, and none is stored twice.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import heappop, heappush
from random import Random

from seaway.application.changes import Change
from seaway.application.monitoring.counters import NotifierCounts
from seaway.application.ports.channels import Channels, Message, Result, Vault
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import Event
from seaway.application.writer import Writer
from seaway.domain.backoff import backoff
from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import FINAL, JobState
from seaway.domain.notifications import (
    Channel,
    Delivery,
    DeliveryState,
    Notification,
    NotifierState,
    Occasion,
    is_address,
)

NS_PER_S = 1_000_000_000

FIRST_RETRY_S, LONGEST_RETRY_S = 5.0, 3600.0
"""Delay after the first failure of a message, and maximum delay."""

MAX_WAITING = 10_000
"""Maximum number of waiting messages of a receiver. Further ones are dead letters."""

MAX_NOTED = 20_000
"""Maximum number of events in memory. With more, the notifier reads them from the store."""

AT_ONCE, AT_ONCE_OF_TENANT = 4, 8
"""Maximum number of messages in flight to a receiver, and to all receivers of a tenant by the same channel."""

EVERY_S = 30
"""Interval of the search for long waits, seconds."""

STORED_S = 60
"""Maximum time until the number of the last event is stored, seconds."""

MAX_DELIVERED = 20
"""Number of delivered messages of a receiver that stay stored, without content."""

STOP_S = 2
"""Maximum time of `stop` for the thread, seconds."""

Receiver = tuple[str, str]
"""Tenant, and name of a notification or an e-mail address."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Noted:
    """An event about a job that someone may want to know; `job` is None if it must be read."""

    event: Event
    job: JobRecord | None


class Notifier:
    """Queue of messages, in the database and in memory.

    Parameters
    ----------
    waits
        Returns those waiting jobs for which a function is true, with the begin of their wait by the wall clock.
    reason
        Returns the present reason of a waiting job.
    retry_for_s
        Seconds after which an undelivered message is a dead letter.
    public_url
        URL of the pages without the last slash; empty if unknown.
    """

    def __init__(  # noqa: PLR0913  # wiring
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        waits: Callable[[Callable[[JobRecord], bool]], Iterable[tuple[JobRecord, int]]],
        channels: Channels,
        vault: Vault,
        random: Random,
        *,
        reason: Callable[[JobRecord], str],
        retry_for_s: float = 86_400,
        public_url: str = "",
    ) -> None:
        self._store, self._writer, self._clock, self._random = store, writer, clock, random
        self._waits, self._reason, self._channels, self._vault = waits, reason, channels, vault
        self._retry_for_ns = int(retry_for_s * NS_PER_S)
        self._public_url = public_url
        self._known = {(row.tenant, row.name): row for row in store.notifications()}
        self._noted: deque[_Noted] = deque()
        self._noted_id = 0
        self._drawn_ns = 0
        self._state: NotifierState | None = None
        self._stored_event = 0
        self._stored_at_ns = self._searched_at_ns = self._counted_at_ns = -(1 << 62)
        self._behind = True
        self._heaps: dict[Receiver, list[tuple[int, str]]] = {}
        self._busy: Counter[Receiver] = Counter()
        self._ids: set[str] = set()
        self._failing: set[Receiver] = set()
        self._again: deque[Delivery] = deque()
        self._latest: dict[Receiver, deque[Delivery]] = {}
        self._results: deque[tuple[Delivery, Channel, Result]] = deque()
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.counts = NotifierCounts()
        writer.listen(self._note, self._reload)
        writer.on_superseded(self._stopping.set)

    # The writer's thread.

    def _note(self, changes: Sequence[Change]) -> None:
        """Note stored changes of notifications, and events about jobs."""
        for change in changes:
            for record in change.insert:
                if type(record) is Event:
                    self._noted_id = record.id
                    if _occasions(record):
                        self._note_event(record, change)
            for record in change.put:
                if type(record) is Notification:
                    self._known = {**self._known, (record.tenant, record.name): record}
            for record in change.delete:
                if type(record) is Notification:
                    key = record.tenant, record.name
                    self._known = {each: row for each, row in self._known.items() if each != key}

    def _note_event(self, event: Event, change: Change) -> None:
        rows = (row for rows in (change.update, change.insert) for row in rows if type(row) is JobRecord)
        job = next((row for row in rows if row.id == event.job_id), None)
        if not self._known and job is not None and not job.spec.notify:
            return
        if len(self._noted) >= MAX_NOTED:
            self._behind = True
            return
        self._noted.append(_Noted(event, job))
        self._wake.set()

    def _reload(self) -> None:
        self._behind = True
        self._wake.set()

    # The thread of the notifier.

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and abandon messages in flight. They are sent again after the next start."""
        self._stopping.set()
        self._wake.set()
        if self._thread:
            self._thread.join(STOP_S)
        self._channels.close()

    def _run(self) -> None:
        failed = False
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self.step()
                failed = False
            except SeawayError as error:
                if not failed:
                    log.warning("cannot store notifications, retrying: %s", error)
                failed = True
            except Exception:  # a bug must not end the thread
                if not failed:
                    log.exception("the notifier failed")
                failed = True
            self._wake.wait(1.0 if failed else self._pause_s())

    def _pause_s(self) -> float:
        """Return the time until something is due, seconds."""
        now_ns = self._clock.monotonic_ns()
        due = [heap[0][0] for key, heap in self._heaps.items() if heap and self._may_send(key)]
        return max(0.0, min([EVERY_S, *((each - now_ns) / NS_PER_S for each in due)]))

    def step(self) -> None:
        """Store messages for new events, send those that are due, and store the results.

        After an error, the events are read from the store.
        """
        try:
            self._step()
        except BaseException:
            self._behind = True
            raise

    def _step(self) -> None:
        if self._state is None:
            self._begin()
        self._store_results()
        self._collect()
        self._search_waits()
        self._store_progress()
        while self._again:
            self._queue(self._again.popleft())
        self._send_due()
        self._count()

    def _begin(self) -> None:
        """Read what is stored."""
        found = self._store.notifier_state()
        state = found or NotifierState(self._store.last_event(), self._clock.now_ns())
        self._known = {(row.tenant, row.name): row for row in self._store.notifications()}
        self._heaps = {}
        page = self._store.deliveries(state=DeliveryState.WAITING, limit=MAX_ROWS)
        while page:
            for row in page:
                self._queue(row)
            page = self._store.deliveries(state=DeliveryState.WAITING, limit=MAX_ROWS, before=page[-1].id)
        self._state, self._stored_event, self._behind = state, found.event if found else -1, found is not None

    def requeue(self, rows: Iterable[Delivery]) -> None:
        """Queue dead letters that a user re-sent. Thread-safe."""
        self._again.extend(rows)
        self.recount()

    def _queue(self, row: Delivery) -> None:
        """Queue a stored message. A delay is at most the maximum, even if the clock was set back."""
        delay_ns = min(max(0, row.next_ns - self._clock.now_ns()), int(LONGEST_RETRY_S * NS_PER_S))
        key = row.tenant, row.receiver
        heappush(self._heaps.setdefault(key, []), (self._clock.monotonic_ns() + delay_ns, row.id))

    def _collect(self) -> None:
        """Store messages for the noted events."""
        state = self._state
        assert state is not None
        if self._behind:
            self._behind = False
            self._noted.clear()
            while page := self._store.events(state.event, MAX_ROWS):
                wanted = [each for each in page if _occasions(each)]
                state = replace(state, event=page[-1].id)
                self._keep(self._about(_Noted(each, None) for each in wanted), state)
        upto = self._noted_id
        found = []
        while self._noted:
            each = self._noted.popleft()
            upto = max(upto, each.event.id)
            if each.event.id > state.event:
                found.append(each)
        if upto > state.event:
            self._keep(self._about(found), replace(state, event=upto))

    def _about(self, noted: Iterable[_Noted]) -> list[Delivery]:
        """Return the messages about events."""
        found: list[Delivery] = []
        for each in noted:
            event = each.event
            job = each.job or self._store.job(event.job_id)
            if job is None or job.array or job.is_standby or (ended_before(event, job)):
                continue
            occasions, state = _occasions(event), event.state or job.state.value
            for row, on in self._receivers(job):
                occasion = next((one for one in occasions if one in on), None)
                if occasion and row.changed_ns <= event.at_ns:
                    said = _said(job, occasion, state, event.reason)
                    found.append(self._message(row, job, occasion, said, event.at_ns, state))
        return found

    def _receivers(self, job: JobRecord) -> Iterator[tuple[Notification, tuple[Occasion, ...]]]:
        """Yield the notifications that cover a job, and those that it names, with the occasions of messages."""
        spec = job.spec
        named = {each.to: each.when for each in spec.notify}
        for row in self._known.values():
            on = row.on if row.covers(spec.tenant, spec.queue, (job.id, spec.name)) else ()
            if row.tenant == spec.tenant:
                on += named.get(row.name, ())
            yield row, on
        for to, when in named.items():
            if is_address(to):
                yield Notification.of_address(spec.tenant, to), when

    def receiver(self, tenant: str, name: str) -> Notification | None:
        """Return a notification, or the receiver for an e-mail address; None for an unknown name."""
        found = self._known.get((tenant, name))
        return Notification.of_address(tenant, name) if found is None and is_address(name) else found

    def names_of(self, tenant: str) -> list[str]:
        """Return the names of the notifications of a tenant."""
        return sorted(name for of, name in self._known if of == tenant)

    def _search_waits(self) -> None:
        """Store messages about jobs whose wait exceeded the limit of a notification since the last search.

        The time of the last search is stored with them, so that no job is reported twice.
        """
        now_ns, state = self._clock.monotonic_ns(), self._state
        assert state is not None
        if now_ns - self._searched_at_ns < EVERY_S * NS_PER_S:
            return
        self._searched_at_ns = now_ns
        until_ns = max(self._clock.now_ns(), state.waits_ns)
        found = []
        every = any(Occasion.WAITS_TOO_LONG in row.on for row in self._known.values())
        for job, since_ns in self._waits(lambda job: every or bool(job.spec.notify)):
            for row, on in self._receivers(job):
                limit_ns = since_ns + row.wait_limit_s * NS_PER_S
                if Occasion.WAITS_TOO_LONG in on and state.waits_ns < limit_ns <= until_ns:
                    said = f"job {job.spec.name} has waited for {_time_text(row.wait_limit_s)}", self._reason(job)
                    found.append(self._message(row, job, Occasion.WAITS_TOO_LONG, said, limit_ns, job.state.value))
        after = replace(state, waits_ns=until_ns)
        if found:
            self._keep(found, after)
        self._state = after

    def _keep(self, rows: Sequence[Delivery], state: NotifierState) -> None:
        """Store messages with the progress, and queue them."""
        if rows:
            lengths = Counter[Receiver]()
            for at, row in enumerate(rows):
                key = row.tenant, row.receiver
                if len(self._heaps.get(key, ())) + lengths[key] >= MAX_WAITING:
                    text = f"not sent: {MAX_WAITING} other messages wait for this receiver"
                    rows = [*rows[:at], replace(row, state=DeliveryState.DEAD, error=text), *rows[at + 1 :]]
                lengths[key] += 1
            self._writer.require(Change(insert=[*rows], put=[state]))
            self._stored_event, self._stored_at_ns = state.event, self._clock.monotonic_ns()
            for row in rows:
                if row.state is DeliveryState.WAITING:
                    self._queue(row)
        self._state = state

    def _store_progress(self) -> None:
        """Store the number of the last event from time to time, so that a restart reads few."""
        state, now_ns = self._state, self._clock.monotonic_ns()
        assert state is not None
        if state.event != self._stored_event and now_ns - self._stored_at_ns >= STORED_S * NS_PER_S:
            self._writer.require(Change(put=[state]))
            self._stored_event, self._stored_at_ns = state.event, now_ns

    # Sending.

    def _may_send(self, key: Receiver) -> bool:
        """Report whether another message may be in flight. A receiver that fails gets one at a time."""
        channel = self._channel(key)
        alike = (count for each, count in self._busy.items() if each[0] == key[0] and self._channel(each) is channel)
        return self._busy[key] < (1 if key in self._failing else AT_ONCE) and sum(alike) < AT_ONCE_OF_TENANT

    def _channel(self, key: Receiver) -> Channel | None:
        row = self.receiver(*key)
        return row.channel if row else None

    def _send_due(self) -> None:
        now_ns = self._clock.monotonic_ns()
        for key in list(self._heaps):
            heap = self._heaps[key]
            while heap and heap[0][0] <= now_ns and self._may_send(key) and not self._stopping.is_set():
                _, row_id = heappop(heap)
                row = self._store.delivery(row_id)
                if row is not None and row.state is DeliveryState.WAITING and row_id not in self._ids:
                    self._send(key, row)
            if not heap:
                del self._heaps[key]

    def _send(self, key: Receiver, row: Delivery) -> None:
        notification = self.receiver(*key)
        if notification is None:
            self._writer.require(Change(delete=[row]))
            return
        channel = notification.channel
        self._busy[key] += 1
        self._ids.add(row.id)
        try:
            message = self.message_of(notification, row.id, json.loads(row.body), row.created_ns)
        except (RejectedError, ValueError, LookupError, TypeError) as error:
            damaged = f"the stored message {row.id} cannot be read: {error}"
            why = str(error) if isinstance(error, RejectedError) else damaged
            self._results.append((row, channel, Result(why, final=True)))
            self._wake.set()
            return

        def done(result: Result) -> None:
            self._results.append((row, channel, result))
            self._wake.set()

        self._channels.send(message, done)

    def message_of(self, row: Notification, message_id: str, content: Mapping[str, object], at_ns: int) -> Message:
        """Return a message to send; raises `RejectedError` if the secret cannot be decrypted."""
        secret = self._vault.unseal(row.sealed, f"{row.tenant}/{row.name}") if row.sealed else ""
        data = content["data"]
        if not isinstance(data, dict):
            raise TypeError("data is not an object")
        slack = row.channel is Channel.SLACK
        return Message(
            message_id,
            row.channel,
            str(data["summary"]),
            str(data["reason"]),
            content,
            at_ns,
            url=secret if slack else row.url,
            secret="" if slack else secret,
            addresses=row.addresses,
            link=str(data.get("url", "")),
        )

    def _store_results(self) -> None:
        """Note accepted messages, and schedule the next tries of others."""
        while self._results:
            row, channel, result = self._results[0]
            key = row.tenant, row.receiver
            after = self._after(row, result) if result.error and self.receiver(*key) else None
            self._writer.require(Change(put=[after]) if after else self._delivered(row))
            self._results.popleft()
            self._busy[key] -= 1
            self._busy += Counter()
            self._ids.discard(row.id)
            if after is None:
                self._failing.discard(key)
                self.counts.sent[channel.value] += 1
                continue
            self._failing.add(key)
            self.counts.failed[channel.value] += 1
            if after.state is DeliveryState.WAITING:
                self._queue(after)
            else:
                log.warning("notification %s of job %s is not delivered: %s", row.receiver, row.job_id, result.error)
                self._counted_at_ns = -(1 << 62)

    def _delivered(self, row: Delivery) -> Change:
        """Return the change for a delivered message. The latest ones of a receiver stay stored."""
        key = row.tenant, row.receiver
        if self.receiver(*key) is None:
            return Change(delete=[row])
        if key not in self._latest:
            state = DeliveryState.DELIVERED
            found = self._store.deliveries(tenant=row.tenant, receiver=row.receiver, state=state, limit=MAX_DELIVERED)
            self._latest[key] = deque(reversed(found))
        latest = self._latest[key]
        done = replace(row, body="", state=DeliveryState.DELIVERED, next_ns=self._clock.now_ns(), error="")
        latest.append(done)
        return Change(put=[done], delete=[latest.popleft() for _ in range(len(latest) - MAX_DELIVERED)])

    def _after(self, row: Delivery, result: Result) -> Delivery:
        """Return a message after a failed try."""
        tries, now_ns = row.tries + 1, self._clock.now_ns()
        delay_s = max(backoff(tries, FIRST_RETRY_S, LONGEST_RETRY_S, self._random), result.retry_after_s)
        next_ns = now_ns + int(min(delay_s, LONGEST_RETRY_S) * NS_PER_S)
        over = result.final or next_ns > row.created_ns + self._retry_for_ns
        state = DeliveryState.DEAD if over else DeliveryState.WAITING
        return replace(row, tries=tries, next_ns=next_ns, state=state, error=result.error[:1000])

    def _count(self) -> None:
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._counted_at_ns >= EVERY_S * NS_PER_S:
            self._counted_at_ns = now_ns
            totals = defaultdict[DeliveryState, int](int)
            for (_, _, state), count in self._store.delivery_counts().items():
                totals[state] += count
            self.counts.dead = totals[DeliveryState.DEAD]
        self.counts.waiting = sum(map(len, self._heaps.values())) + len(self._ids)

    def recount(self) -> None:
        """Count the dead letters again, since a user removed some."""
        self._counted_at_ns = -(1 << 62)
        self._wake.set()

    # Contents.

    def _message(  # one parameter for each part
        self, row: Notification, job: JobRecord, occasion: Occasion, said: tuple[str, str], at_ns: int, state: str
    ) -> Delivery:
        now_ns = self._clock.now_ns()
        self._drawn_ns = max(now_ns, self._drawn_ns + 1)
        summary, reason = said
        spec = job.spec
        data = {
            "job": job.id,
            "name": spec.name,
            "tenant": spec.tenant,
            "queue": spec.queue,
            "state": state,
            "summary": summary,
            "reason": reason,
            "attempt": job.attempt,
            "clusters": list(job.clusters),
            "labels": dict(spec.labels),
            "submitted_by": job.submitted_by,
            "submitted_at": moment(job.submitted_ns),
            **({"url": f"{self._public_url}/jobs/{job.id}"} if self._public_url else {}),
        }
        content = {"type": f"job.{occasion}", "timestamp": moment(at_ns), "data": data}
        return Delivery(
            f"msg_{self._drawn_ns:016x}{self._random.getrandbits(64):016x}",
            row.tenant,
            row.name,
            job.id,
            spec.name,
            occasion,
            json.dumps(content, ensure_ascii=False, separators=(",", ":")),
            now_ns,
            now_ns,
        )


_OCCASIONS: dict[str, tuple[Occasion, ...]] = {
    JobState.RUNNING.value: (Occasion.STARTED,),
    JobState.PREEMPTED.value: (Occasion.PREEMPTED,),
    JobState.FAILED.value: (Occasion.FAILED, Occasion.FINISHED),
    **{state.value: (Occasion.FINISHED,) for state in FINAL - {JobState.FAILED}},
}
"""Occasions of each state, the most specific first. A notification gets one message about an event."""


def _occasions(event: Event) -> tuple[Occasion, ...]:
    """Return the occasions of an event; none for most."""
    if event.kind == "state":
        return _OCCASIONS.get(event.state, ())
    return (Occasion.LEASE_EXPIRES,) if event.kind == "lease" else ()


_ENDS = {
    JobState.COMPLETED.value: "has completed",
    JobState.FAILED.value: "has failed",
    JobState.CANCELLED.value: "was cancelled",
    JobState.SKIPPED.value: "was skipped",
    JobState.DELETED.value: "was deleted",
}


_DONE = {
    Occasion.STARTED: "runs",
    Occasion.PREEMPTED: "was preempted",
    Occasion.LEASE_EXPIRES: "is stopped soon unless its lease is renewed",
}


def _said(job: JobRecord, occasion: Occasion, state: str, reason: str) -> tuple[str, str]:
    """Return the summary of a message, and the reason."""
    done = _DONE.get(occasion) or _ENDS[state]
    return f"job {job.spec.name} {done}", reason


def ended_before(event: Event, job: JobRecord) -> bool:
    """Report whether a job had ended before it was deleted."""
    return event.state == JobState.DELETED.value and job.ended_ns != event.at_ns


def moment(at_ns: int) -> str:
    """Format nanoseconds since 1970 as a timestamp."""
    return datetime.fromtimestamp(at_ns // 1000 / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time_text(seconds: int) -> str:
    """Return a duration as text, like ``1 h 30 min``."""
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    parts = (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{rest} s" if rest else "")
    return " ".join(filter(None, parts))
