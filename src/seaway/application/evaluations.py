"""Stored evaluations of policies, for the selection of policies."""

from __future__ import annotations

import threading

from seaway.application.changes import Change
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import EvaluationRecord, Event
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, UnknownError

MOST = 100
"""Maximum number of stored evaluations."""


class Evaluations:
    """Storage and removal of evaluations. Any thread can call every method."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._store, self._writer, self._clock = store, writer, clock
        self._changing = threading.Lock()

    def retained(self) -> list[EvaluationRecord]:
        """Return all evaluations, by name."""
        return self._store.evaluations()

    def look_up(self, name: str) -> EvaluationRecord:
        """Return an evaluation.

        Raises
        ------
        UnknownError
            If there is none of that name.
        """
        for each in self.retained():
            if each.name == name:
                return each
        raise UnknownError(f"evaluation {name[:63]!r} not found")

    def keep(self, name: str, rows: str, actor: str) -> tuple[EvaluationRecord, bool]:
        """Store an evaluation; storing the same one again has no effect.

        Returns
        -------
        tuple
            The evaluation, and whether it is new.

        Raises
        ------
        ConflictError
            If there is another one of its name, or there are too many.
        """
        with self._changing:
            there = {each.name: each for each in self.retained()}
            if name in there and there[name].rows == rows:
                return there[name], False
            if name in there:
                raise ConflictError(f"another evaluation {name!r} exists; remove it first, or choose another name")
            if len(there) >= MOST:
                raise ConflictError(f"there are {MOST} evaluations already; remove one first")
            record = EvaluationRecord(name, rows, actor, self._clock.now_ns())
            self._store_with_event(Change(insert=[record]), f"evaluation {name} stored", actor)
        return record, True

    def remove(self, name: str, actor: str) -> None:
        """Remove an evaluation; raises as `look_up`."""
        with self._changing:
            self._store_with_event(Change(delete=[self.look_up(name)]), f"evaluation {name} removed", actor)

    def _store_with_event(self, change: Change, reason: str, actor: str) -> None:
        change.insert.append(Event(self._clock.now_ns(), "policy", reason, actor))
        self._writer.require(change)
