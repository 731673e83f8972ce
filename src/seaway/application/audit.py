"""Audit log of requests without a change, stored in batches.

The entry of a request that changes something is stored with the change (`seaway.application.writer.RequestEntry`). An
entry that cannot be stored is written to the log of the process.

Anyone can send requests without a valid credential, as many as they like. So the first request of an address has an
entry of its own, and later ones of the same minute share an entry.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import replace
from itertools import islice

from seaway.application.changes import Change
from seaway.application.login_limit import site
from seaway.application.records import AuditEntry
from seaway.application.writer import Writer
from seaway.domain.errors import SeawayError

MAX_WAITING = 20_000
"""Maximum number of entries in the queue. Further entries are dropped and counted."""

MAX_TOGETHER = 1000

MAX_ADDRESSES = 100
"""Maximum number of addresses with entries of their own in a minute. Requests of further addresses share an entry."""

log = logging.getLogger(__name__)


class AuditLog:
    """Queue of audit entries, stored with a short delay.

    Attributes
    ----------
    dropped
        Number of entries dropped because the queue was full while the database did not respond.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: deque[AuditEntry] = deque()
        self._anonymous: dict[str, AuditEntry | None] = {}
        self._storing = asyncio.Lock()
        self.dropped = 0

    def note(self, entry: AuditEntry) -> None:
        """Add an entry without blocking."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            log.warning("an audit entry is not stored: %s", entry)
            return
        self._waiting.append(entry)

    def note_anonymous(self, entry: AuditEntry) -> bool:
        """Add an entry of a request without a valid credential; report whether it begins a minute."""
        begins, key = not self._anonymous, site(entry.address)
        if key in self._anonymous or len(self._anonymous) < MAX_ADDRESSES:
            first = key not in self._anonymous
        else:
            first, key, entry = False, "", replace(entry, address="")
        if first:
            self._anonymous[key] = None
            self._note_if_half_empty(entry)
        else:
            before = self._anonymous.get(key)
            self._anonymous[key] = replace(entry, requests=before.requests + 1 if before else 1)
        return begins

    def end_minute(self) -> None:
        """Add the entries of further requests without a valid credential."""
        for entry in self._anonymous.values():
            if entry:
                self._note_if_half_empty(entry)
        self._anonymous.clear()

    def _note_if_half_empty(self, entry: AuditEntry) -> None:
        """Add an entry, which leaves half of the queue to callers with a valid credential."""
        if len(self._waiting) < MAX_WAITING // 2:
            self._waiting.append(entry)
        else:
            self.dropped += 1

    def close(self) -> None:
        """Write the entries that could not be stored to the log. The process ends."""
        while self._waiting:
            log.warning("an audit entry is not stored: %s", self._waiting.popleft())

    def __len__(self) -> int:
        return len(self._waiting)

    async def store(self) -> None:
        """Store all queued entries. Entries that cannot be stored stay in the queue."""
        async with self._storing:
            while self._waiting:
                entries = list(islice(self._waiting, MAX_TOGETHER))
                try:
                    await self._writer.stored_soon(Change(insert=list(entries)))
                except SeawayError as error:
                    log.warning("cannot store the audit log, retrying: %s", error)
                    return
                for _ in entries:
                    self._waiting.popleft()
