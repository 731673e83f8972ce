"""One who follows events, and what he wants of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from seaway.application.access import Who
from seaway.application.records import Event

MOST_BYTES = 1 << 20
"""What waits for one listener; beyond that it is left behind."""

ADMINISTRATIVE = frozenset({"tenant", "queue", "pool", "policy", "strays"})
"""Kinds of the fleet's own events that tell of other tenants; names of strays hold ids of their jobs."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Which events somebody wants.

    Attributes
    ----------
    tenant
        Of one tenant and of the fleet; empty for all.
    job_id
        Of one job; empty for all.
    confined
        Whether who asks belongs to a tenant and may not know of others.
    """

    tenant: str
    job_id: str
    confined: bool

    def wants(self, event: Event) -> bool:
        """Tell whether an event is among them."""
        if self.job_id:
            return event.job_id == self.job_id
        if event.tenant:
            return self.tenant in ("", event.tenant)
        return not (self.confined and event.kind in ADMINISTRATIVE)


class Listener:
    """What waits to be sent to one who follows; all of it shared with others.

    Attributes
    ----------
    sent
        Up to which event everything was handed on.
    lagging
        Whether something was left out since.
    closed
        Whether the stream ends.
    """

    def __init__(self, who: Who, wish: Wish) -> None:
        self.who = who
        self.wish = wish
        self.sent = 0
        self.lagging = False
        self.closed = False
        self.wake = asyncio.Event()
        self._waiting: list[bytes] = []
        self._size = 0
        self._reaches = 0

    def give(self, piece: bytes, reaches: int) -> None:
        """Hand on some bytes, which reach up to an event; 0 for a heartbeat."""
        if self.lagging:
            return
        if self._size + len(piece) > MOST_BYTES:
            self.lagging = True
            self._waiting.clear()
        else:
            self._waiting.append(piece)
            self._size += len(piece)
            self._reaches = reaches or self._reaches
        self.wake.set()

    def take(self) -> bytes:
        """Take everything that waits."""
        self.wake.clear()
        pieces, self._waiting, self._size = self._waiting, [], 0
        self.sent = max(self.sent, self._reaches)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def catch_up(self, reaches: int) -> None:
        """Begin again after what was left out; everything up to `reaches` is read elsewhere."""
        self.lagging = False
        self._waiting, self._size, self._reaches = [], 0, reaches

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self.wake.set()
