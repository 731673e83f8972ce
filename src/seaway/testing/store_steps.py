"""What the cases of `seaway.testing.stores` are made of."""

from __future__ import annotations

from collections.abc import Callable

from seaway.application.changes import Change, Outcome
from seaway.application.ports.store import Store
from seaway.application.records import JobRecord
from seaway.testing import records as make

Opening = Callable[[], Store]
Case = Callable[[Opening], None]

STORED, CONFLICT = Outcome.STORED, Outcome.CONFLICT


def led(opening: Opening) -> Store:
    """Return a store that may write."""
    store = opening()
    store.lead("test")
    return store


def store_all(store: Store, *changes: Change) -> None:
    """Store changes, none of which may be in conflict."""
    assert store.commit(changes) == [STORED] * len(changes)


def submitted(store: Store, *jobs: JobRecord) -> None:
    """Store jobs with an event each, as a submit does."""
    store_all(store, *(Change(insert=[job, make.event_of(job)]) for job in jobs))
