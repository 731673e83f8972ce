"""Atomic groups of row changes, and the feed of their events."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice

from seaway.application.records import (
    Acknowledgement,
    AgentRecord,
    AuditEntry,
    ClusterFacts,
    ClusterInventory,
    ClusterName,
    ClusterReport,
    ClusterSample,
    Cordon,
    Difference,
    EvaluationRecord,
    Event,
    FiringAlert,
    IdempotencyKey,
    JobUse,
    LastUse,
    LinkSample,
    NetworkRecord,
    PathRecord,
    PendingCommand,
    PolicyRecord,
    SavedFilter,
    ScaleWindow,
    ShadowResult,
    Token,
    UsageSample,
    WorkdirPart,
    WorkdirRecord,
)
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.notifications import Delivery, Notification, NotifierState
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Pool, Tenant

Record = (
    JobRecord
    | Attempt
    | PendingCommand
    | Event
    | IdempotencyKey
    | Token
    | AuditEntry
    | ClusterFacts
    | ClusterReport
    | ClusterInventory
    | ScaleWindow
    | JobUse
    | Cordon
    | ClusterName
    | ClusterSample
    | LinkSample
    | UsageSample
    | SavedFilter
    | Acknowledgement
    | FiringAlert
    | NetworkRecord
    | AgentRecord
    | PathRecord
    | EvaluationRecord
    | PolicyRecord
    | ShadowResult
    | Tenant
    | Pool
    | Queue
    | AdvanceReservation
    | Notification
    | Delivery
    | NotifierState
    | WorkdirRecord
    | WorkdirPart
    | LastUse
)


@dataclass(slots=True)
class Change:
    """Atomic set of row changes.

    Attributes
    ----------
    insert
        New rows. An existing row is a conflict.
    update
        Rows to replace, by key. A `JobRecord` is a conflict unless its version is the stored version plus one. A
        missing `Attempt` or `Token` is a conflict too.
    put
        Rows to insert or replace, by key.
    delete
        Rows to remove, by the key of the given value. Missing rows are ignored.
    differences
        Changed fields, where an event names them too; the audit entry of a request compares the records otherwise.
    """

    insert: list[Record] = field(default_factory=list)
    update: list[Record] = field(default_factory=list)
    put: list[Record] = field(default_factory=list)
    delete: list[Record] = field(default_factory=list)
    differences: tuple[Difference, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.insert or self.update or self.put or self.delete)

    def add(self, other: Change) -> None:
        """Merge another change into this one."""
        self.insert += other.insert
        self.update += other.update
        self.put += other.put
        self.delete += other.delete


class Outcome(Enum):
    """Result of storing a change."""

    STORED = auto()
    CONFLICT = auto()
    """Nothing was stored: another change of a row came first, or a row to insert already exists."""


MAX_STORED = 20_000
"""Number of events in memory. Slower readers read from the store."""


class Feed:
    """The latest events in order. New events wake waiting readers."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=MAX_STORED)
        self._wakers: set[Callable[[], None]] = set()
        self._lock = threading.Lock()

    def publish(self, changes: Sequence[Change]) -> None:
        """Add the events of stored changes."""
        fresh = [record for change in changes for record in change.insert if isinstance(record, Event)]
        if not fresh:
            return
        with self._lock:
            self._events.extend(fresh)
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    def forget(self) -> None:
        """Clear the feed after a possible gap. Subscribers then read from the store."""
        with self._lock:
            self._events.clear()

    @property
    def last(self) -> int:
        """ID of the latest event in memory; 0 if there is none."""
        with self._lock:
            return self._events[-1].id if self._events else 0

    def since(self, after: int) -> list[Event] | None:
        """Return the events after ID `after`; None if some are no longer in memory."""
        with self._lock:
            if not self._events:
                return None
            first = self._events[0].id
            if after < first - 1:
                return None
            count = 0  # IDs can have gaps after conflicts, so search from the end
            for event in reversed(self._events):
                if event.id <= after:
                    break
                count += 1
            return list(islice(self._events, len(self._events) - count, None))

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` on the writer's thread for new events; return a function that unsubscribes."""
        with self._lock:
            self._wakers.add(wake)

        def stop() -> None:
            with self._lock:
                self._wakers.discard(wake)

        return stop
