"""Writer of the store: batches of atomic changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, func, select, update
from sqlalchemy.exc import DBAPIError

from seaway.adapters.sqlalchemy.batch import NUMBERED, ROW_WRITERS, Batch, Memory, Step
from seaway.adapters.sqlalchemy.engines import answering, passes, refuses
from seaway.adapters.sqlalchemy.statements import statement_writer
from seaway.adapters.sqlalchemy.tables import ATTEMPTS, LEASE
from seaway.application.changes import Change, Outcome
from seaway.domain.attempt import Attempt
from seaway.domain.errors import InvariantError, SupersededError
from seaway.domain.job_record import JobRecord
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT, Pool, Tenant

SUPERSEDED = "another process writes to the database now; this one has to stop"

TRIES = 3
"""Maximum number of tries for a transaction after deadlocks."""


class Writer:
    """Writer of changes. Any thread may call it; batches run one after another.

    Parameters
    ----------
    engine
        Engine with transactions.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._words = statement_writer(engine.dialect)
        self._lock = Lock()
        self._epoch, self._owner = -1, ""
        self._memory = Memory()
        self._mend = False
        self._check = _epoch_text(engine)

    def lead(self, owner: str) -> None:
        """Become the only writer, and create the default tenant, pool and queue."""
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
                table, _ = ROW_WRITERS[type(row)]
                if connection.execute(select(table.c.name).where(table.c.name == DEFAULT)).first() is None:
                    defaults.add_record(Step.INSERT, row)
            defaults.run(connection, self._words)
        self._epoch, self._owner = epoch, owner[:255]

    def touch(self) -> None:
        """Write the lease again, in two steps, since MySQL ignores an update without a difference."""
        mine = LEASE.c.epoch == self._epoch
        with self._lock, answering(), self._engine.begin() as connection:
            for owner in ("", self._owner):
                if not connection.execute(update(LEASE).where(mine).values(owner=owner)).rowcount:
                    raise SupersededError(SUPERSEDED)

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
        """Store all changes together. If that fails, store the changes without conflict."""
        self._mend = mend
        careful = False
        for again in range(TRIES, 0, -1):
            try:
                if not careful and self._store_all(changes):
                    return [Outcome.STORED] * len(changes)
                careful = True
                return self._store_by_bisection(changes)
            except DBAPIError as error:
                if again == 1 or not passes(error):
                    raise
        raise InvariantError("a transaction was neither committed nor rolled back")

    def _store_all(self, changes: Sequence[Change]) -> bool:
        """Store all changes. Store nothing if one conflicts with others or with stored rows."""
        latest = dict(self._memory.latest)
        with self._engine.connect() as connection, connection.begin() as transaction:
            self._require_leadership(connection)
            for wave in independent_runs(changes):
                batch = self._batch(wave)
                if not _stored(batch, connection, self._words):
                    transaction.rollback()
                    self._memory.latest = latest
                    return False
                self._memory.learn(batch.jobs)
        return True

    def _store_by_bisection(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store the changes without conflicts, and find the others by bisection."""
        self._memory.jobs.clear()
        with self._engine.begin() as connection:
            self._require_leadership(connection)
            return [outcome for wave in independent_runs(changes) for outcome in self._halved(connection, wave)]

    def _halved(self, connection: Connection, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes that affect different rows. On a conflict, split them into halves."""
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
        """Store a change row by row, because it may affect a row twice."""
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

    def _require_leadership(self, connection: Connection) -> None:
        """Check that this process is the writer, and lock the lease until the transaction ends.

        Raises
        ------
        DeposedError
            When another process became the writer.
        """
        if connection.exec_driver_sql(self._check).scalar() != self._epoch:
            raise SupersededError(SUPERSEDED)


def independent_runs(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """Split changes into runs in which no two changes affect the same row, so that their order is irrelevant."""
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
    """Yield the records of a change in order, with the kind of write."""
    for record in change.insert:
        yield Step.INSERT, record
    for record in change.update:
        yield Step.UPDATE, record
    for record in change.put:
        yield Step.PUT, record
    for record in change.delete:
        yield Step.DELETE, record


def _key(record: Any) -> Any:  # noqa: ANN401  # any kind of record, any kind of key
    """Return the identity of a record; None if it has no ID yet."""
    kind = type(record)
    if kind is JobRecord:
        return record.id
    if kind is Attempt:
        return (ATTEMPTS.name, record.job_id, record.number)
    if kind in NUMBERED:
        return (kind, record.id) if record.id else None
    table, _ = ROW_WRITERS[kind]
    return (kind, *(getattr(record, column.name) for column in table.primary_key.columns))


def _stored(batch: Batch, connection: Connection, words: Any) -> bool:  # noqa: ANN401
    """Run a batch; return True if there was no conflict."""
    try:
        return batch.run(connection, words)
    except DBAPIError as error:
        if refuses(error):
            return False
        raise


def _epoch_text(engine: Engine) -> str:
    """Return the query for the epoch. It locks the row, except in SQLite, whose transactions lock the database."""
    text = "SELECT epoch FROM lease WHERE id = 1"
    if engine.dialect.name == "sqlite":
        return text
    return f"{text} {'FOR SHARE' if engine.dialect.name == 'postgresql' else 'LOCK IN SHARE MODE'}"
