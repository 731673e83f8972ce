"""Live feed: the latest events in memory, for all subscribers."""

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
        """Clear the feed, since stored events may be missing in it. Subscribers then read from the store."""
        with self._lock:
            self._events.clear()

    @property
    def last(self) -> int:
        """ID of the latest event in memory; 0 without one."""
        with self._lock:
            return self._events[-1].id if self._events else 0

    def since(self, after: int) -> list[Event] | None:
        """Return the events after ID `after`; None if memory does not have all of them."""
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
        """Call `wake` on the thread of the writer for new events; return a function that ends this."""
        with self._lock:
            self._wakers.add(wake)

        def stop() -> None:
            with self._lock:
                self._wakers.discard(wake)

        return stop
