"""The audit log's way to the store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from seaway.application import audit
from seaway.application.audit import AuditLog
from seaway.application.records import AuditEntry
from seaway.application.writer import Writer
from tests.fakes.memory_store import MemoryStore

ENTRY = AuditEntry(1, "me", "user", "default", "POST submit_job", "/api/v1/jobs", 201)


def make() -> tuple[MemoryStore, AuditLog]:
    """Make a log over an empty store."""
    store = MemoryStore()
    store.lead("test")
    return store, AuditLog(Writer(store))


def test_entries_are_stored_together_in_their_order() -> None:
    """Anything that was noted is stored in as few changes as it takes."""
    store, log = make()
    for at in range(1500):
        log.note(replace(ENTRY, at_ns=at))
    before = len(store.commits)
    asyncio.run(log.store())
    assert len(store.commits) - before == 2
    assert [entry.at_ns for entry in store.audit(0, 3)] == [1499, 1498, 1497]
    assert len(log) == 0


def test_what_cannot_be_stored_waits() -> None:
    """While the database does not answer, entries wait, and none is stored twice after."""
    store, log = make()
    log.note(ENTRY)
    store.fail_next()
    asyncio.run(log.store())
    assert len(log) == 1
    asyncio.run(log.store())
    asyncio.run(log.store())
    assert len(store.audit(0, 10)) == 1


def test_entries_that_find_no_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, and what is lost is reported."""
    monkeypatch.setattr(audit, "MAX_WAITING", 2)
    _, log = make()
    for _ in range(5):
        log.note(ENTRY)
    assert (len(log), log.dropped) == (2, 3)


def test_entries_that_are_not_stored_are_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An entry without room, and one that still waits when the process ends, is in the log of the process."""
    monkeypatch.setattr(audit, "MAX_WAITING", 1)
    store, log = make()
    log.note(replace(ENTRY, actor="waits"))
    log.note(replace(ENTRY, actor="dropped"))
    assert ["dropped" in each for each in caplog.messages] == [True]
    store.fail_next()
    asyncio.run(log.store())
    log.close()
    assert ["actor='waits'" in each for each in caplog.messages] == [False, False, True]
    assert len(log) == 0
