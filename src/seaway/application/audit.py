"""Audit log, stored in batches and independently of the audited requests."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from itertools import islice

from seaway.application.changes import Change
from seaway.application.records import AuditEntry
from seaway.application.writer import Writer
from seaway.domain.errors import SeawayError

MAX_WAITING = 20_000
"""Maximum number of entries in the queue. Further entries are dropped and counted."""

MAX_TOGETHER = 1000

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
        self._storing = asyncio.Lock()
        self.dropped = 0

    def note(self, entry: AuditEntry) -> None:
        """Add an entry without blocking."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            return
        self._waiting.append(entry)

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
