"""The audit log, written beside the requests it tells of: what comes together is stored together."""

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
"""Entries that wait for a database that does not answer; what comes on top is counted and dropped."""

MAX_TOGETHER = 1000

log = logging.getLogger(__name__)


class AuditLog:
    """Takes entries at once and stores them soon.

    Attributes
    ----------
    dropped
        Entries that found no room while the database did not answer.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: deque[AuditEntry] = deque()
        self._storing = asyncio.Lock()
        self.dropped = 0

    def note(self, entry: AuditEntry) -> None:
        """Take an entry; never waits."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            return
        self._waiting.append(entry)

    def __len__(self) -> int:
        return len(self._waiting)

    async def store(self) -> None:
        """Store what waits. What cannot be stored goes on waiting."""
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
