"""The live feed: the latest events in memory, for everybody who follows."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from seaway.application.changes import Change
from seaway.application.records import Event

MAX_STORED = 20_000
"""Number of events in memory. Slower readers read from the store."""


class Feed:
    """The latest events in order. Waiting readers are woken for new ones."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=MAX_STORED)
        self._wakers: set[Callable[[], None]] = set()
        self._lock = threading.Lock()

    def publish(self, changes: Sequence[Change]) -> None:
        """Take over the events of changes that were stored."""
        fresh = [record for change in changes for record in change.insert if isinstance(record, Event)]
        if not fresh:
            return
        with self._lock:
            self._events.extend(fresh)
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    def forget(self) -> None:
        """Forget all events: some may be missing here that are stored, so everybody reads on from the store."""
        with self._lock:
            self._events.clear()

    @property
    def last(self) -> int:
        """Id of the latest event in memory; 0 without one."""
        with self._lock:
            return self._events[-1].id if self._events else 0

    def since(self, after: int) -> list[Event] | None:
        """Return the events after the one with id `after`; None when memory does not reach back so far."""
        with self._lock:
            if not self._events:
                return None
            first = self._events[0].id
            if after < first - 1:
                return None
            count = 0  # ids may have holes where a change was in conflict: look from the end
            for event in reversed(self._events):
                if event.id <= after:
                    break
                count += 1
            return list(islice(self._events, len(self._events) - count, None))

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called, on the writer's thread, whenever there are new events; return how to stop that."""
        with self._lock:
            self._wakers.add(wake)

        def stop() -> None:
            with self._lock:
                self._wakers.discard(wake)

        return stop
