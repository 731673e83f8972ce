"""The one that writes: batches of changes, each change wholly or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, func, select, update
from sqlalchemy.exc import DBAPIError

from seaway.adapters.sqlalchemy.batch import NUMBERED, SCRIBES, Batch, Memory, Step
from seaway.adapters.sqlalchemy.failures import answering, passes, refuses
from seaway.adapters.sqlalchemy.statements import wording
from seaway.adapters.sqlalchemy.tables import ATTEMPTS, LEASE
from seaway.application.changes import Change, Outcome
from seaway.application.records import Attempt, JobRecord
from seaway.domain.errors import DeposedError, InvariantError
from seaway.domain.tenancy import DEFAULT, Pool, Queue, Tenant

TRIES = 3
"""How often a transaction is tried that another one was in the way of."""


class Writer:
    """Stores changes. May be called from any thread; one batch goes after the other.

    Parameters
    ----------
    engine
        Gives connections in transactions.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._words = wording(engine.dialect)
        self._lock = Lock()
        self._epoch = -1
        self._memory = Memory()
        self._mend = False
        self._check = _epoch_text(engine)

    def lead(self, owner: str) -> None:
        """Become the one that writes, and put the default tenant, pool and queue in place."""
        with self._lock, answering(), self._engine.begin() as connection:
            connection.execute(update(LEASE).values(epoch=LEASE.c.epoch + 1, owner=owner[:255]))
            epoch = connection.execute(select(LEASE.c.epoch)).scalar_one()
            latest = {
                kind: connection.execute(select(func.coalesce(func.max(table.c.id), 0))).scalar_one()
                for kind, table in NUMBERED.items()
            }
            self._memory = Memory(latest)
            defaults = Batch(self._memory)
            for row in (Tenant(DEFAULT), Pool(DEFAULT), Queue(DEFAULT)):
                table, _ = SCRIBES[type(row)]
                if connection.execute(select(table.c.name).where(table.c.name == DEFAULT)).first() is None:
                    defaults.add_record(Step.INSERT, row)
            defaults.run(connection, self._words)
        self._epoch = epoch

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes in one transaction; see `seaway.application.ports.store.Store.commit`."""
        with self._lock, answering():
            if not changes:
                return []
            latest = dict(self._memory.latest)
            try:
                return self._commit(changes)
            except UnicodeEncodeError:
                self._memory = Memory(latest)
                return self._commit(changes, mend=True)
            except BaseException:
                self._memory.jobs.clear()
                raise

    def _commit(self, changes: Sequence[Change], *, mend: bool = False) -> list[Outcome]:
        """Try all at once first, then with care."""
        self._mend = mend
        careful = False
        for again in range(TRIES, 0, -1):
            try:
                if not careful and self._together(changes):
                    return [Outcome.STORED] * len(changes)
                careful = True
                return self._carefully(changes)
            except DBAPIError as error:
                if again == 1 or not passes(error):
                    raise
        raise InvariantError("a transaction was neither stored nor given up")

    def _together(self, changes: Sequence[Change]) -> bool:
        """Store all changes, or nothing where one is in the way of the others or of what is stored."""
        latest = dict(self._memory.latest)
        with self._engine.connect() as connection, connection.begin() as transaction:
            self._require_lead(connection)
            for wave in waves(changes):
                batch = self._batch(wave)
                if not _stored(batch, connection, self._words):
                    transaction.rollback()
                    self._memory.latest = latest
                    return False
                self._memory.learn(batch.jobs)
        return True

    def _carefully(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store what can be stored, and find what cannot by halving."""
        self._memory.jobs.clear()
        with self._engine.begin() as connection:
            self._require_lead(connection)
            return [outcome for wave in waves(changes) for outcome in self._halved(connection, wave)]

    def _halved(self, connection: Connection, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes that do not touch the same rows; those of a half that cannot be stored in halves again."""
        latest = dict(self._memory.latest)
        with connection.begin_nested() as savepoint:
            if _stored(batch := self._batch(changes), connection, self._words):
                savepoint.commit()
                self._memory.learn(batch.jobs)
                return [Outcome.STORED] * len(changes)
            savepoint.rollback()
        self._memory.latest = latest
        if len(changes) > 1:
            middle = len(changes) // 2
            return self._halved(connection, changes[:middle]) + self._halved(connection, changes[middle:])
        return [self._row_by_row(connection, changes[0])]

    def _row_by_row(self, connection: Connection, change: Change) -> Outcome:
        """Store a change one row after the other, as it may touch a row twice."""
        latest = dict(self._memory.latest)
        with connection.begin_nested() as savepoint:
            for step, record in records(change):
                batch = Batch(self._memory, mend=self._mend)
                batch.add_record(step, record)
                if not _stored(batch, connection, self._words):
                    savepoint.rollback()
                    self._memory.jobs.clear()
                    self._memory.latest = latest
                    return Outcome.CONFLICT
                self._memory.learn(batch.jobs)
        return Outcome.STORED

    def _batch(self, changes: Sequence[Change]) -> Batch:
        batch = Batch(self._memory, mend=self._mend)
        for change in changes:
            batch.add(change)
        return batch

    def _require_lead(self, connection: Connection) -> None:
        """Check that no one else writes, and see to it that no one begins before the transaction ends.

        Raises
        ------
        DeposedError
            When another process became the one that writes.
        """
        if connection.exec_driver_sql(self._check).scalar() != self._epoch:
            raise DeposedError("another process writes to the database now; this one has to stop")


def waves(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Cut changes into runs in which no row is touched by two of them, so that their order does not matter."""
    if not any(change.update or change.put or change.delete for change in changes):
        yield changes
        return
    start = 0
    touched: set[Any] = set()
    for at, change in enumerate(changes):
        keys = [key for _, record in records(change) if (key := _key(record)) is not None]
        if not touched.isdisjoint(keys):
            yield changes[start:at]
            start = at
            touched.clear()
        touched.update(keys)
    yield changes[start:]


def records(change: Change) -> Iterator[tuple[Step, Any]]:
    """Return the records of a change in order, and what is done to each."""
    for record in change.insert:
        yield Step.INSERT, record
    for record in change.update:
        yield Step.UPDATE, record
    for record in change.put:
        yield Step.PUT, record
    for record in change.delete:
        yield Step.DELETE, record


def _key(record: Any) -> Any:  # noqa: ANN401  # any kind of record, any kind of key
    """Return what tells a record from all others; None for one that has no id yet."""
    kind = type(record)
    if kind is JobRecord:
        return record.id
    if kind is Attempt:
        return (ATTEMPTS.name, record.job_id, record.number)
    if kind in NUMBERED:
        return (kind, record.id) if record.id else None
    table, _ = SCRIBES[kind]
    return (kind, *(getattr(record, column.name) for column in table.primary_key.columns))


def _stored(batch: Batch, connection: Connection, words: Any) -> bool:  # noqa: ANN401
    """Run a batch; return whether nothing was in its way."""
    try:
        return batch.run(connection, words)
    except DBAPIError as error:
        if refuses(error):
            return False
        raise


def _epoch_text(engine: Engine) -> str:
    """Return the question for the epoch, which keeps the row from changing where the database does not do so itself."""
    text = "SELECT epoch FROM lease WHERE id = 1"
    if engine.dialect.name == "sqlite":
        return text
    return f"{text} {'FOR SHARE' if engine.dialect.name == 'postgresql' else 'LOCK IN SHARE MODE'}"
