"""Audit log, stored independently of the requests it records and in batches."""

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
"""Maximum number of entries that wait for the database; others are dropped and counted."""

MAX_TOGETHER = 1000

log = logging.getLogger(__name__)


class AuditLog:
    """Queue of audit entries, which are stored soon after.

    Attributes
    ----------
    dropped
        Entries dropped because the queue was full while the database did not answer.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: deque[AuditEntry] = deque()
        self._storing = asyncio.Lock()
        self.dropped = 0

    def note(self, entry: AuditEntry) -> None:
        """Add an entry without waiting."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            return
        self._waiting.append(entry)

    def __len__(self) -> int:
        return len(self._waiting)

    async def store(self) -> None:
        """Store all queued entries. Entries that cannot be stored stay queued."""
        async with self._storing:
            while self._waiting:
                entries = list(islice(self._waiting, MAX_TOGETHER))
                try:
                    await self._writer.stored_soon(Change(insert=list(entries)))
                except SeawayError as error:
                    log.warning("the audit log waits: %s", error)
                    return
                for _ in entries:
                    self._waiting.popleft()
