"""Statements that write many rows, in the SQL of each database.

After each statement another Python thread may run and keep the interpreter for a while. One statement for a thousand
rows is therefore faster, despite the cost of its text. The texts are cached.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, Protocol

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, Table, and_, case, func, or_, select, union_all
from sqlalchemy.engine import Dialect

from seaway.adapters.sqlalchemy import codec
from seaway.adapters.sqlalchemy.codec import Row
from seaway.adapters.sqlalchemy.tables import ATTEMPTS, JOB_CLUSTERS, JOB_LABELS, JOB_PREDECESSORS, JOB_SPECS, JOBS
from seaway.application.ports.store import JobFilter, JobSort
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import FINAL, JobState

MOST = 512
"""Maximum number of rows in one statement."""

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, MOST)
"""Numbers of rows of the statements for SQLite. Missing rows are filled with NULL and write nothing."""

Statement = tuple[str, tuple[Any, ...]]


class StatementWriter(Protocol):
    """Writer of statements in the SQL of one database. It accepts from 1 to `MOST` rows."""

    def insert(self, table: Table, rows: Sequence[Row]) -> Statement:
        """Insert rows."""

    def put(self, table: Table, rows: Sequence[Row]) -> Statement:
        """Insert or replace rows; keys must be unique."""

    def update(self, table: Table, rows: Sequence[Row]) -> Statement:
        """Replace existing rows. If there is a version column, replace only rows with the previous version."""

    def delete(self, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> Statement:
        """Delete rows whose `columns` are equal to those of one of `rows`."""


def statement_writer(dialect: Dialect) -> StatementWriter:
    """Return the statement writer of a database."""
    kinds: dict[str, type[_StatementWriter]] = {
        "sqlite": SqliteStatements,
        "postgresql": PostgresStatements,
        "mysql": MysqlStatements,
    }
    return kinds[dialect.name](dialect)


class _Names:
    """Quoted names of a table and its columns."""

    def __init__(self, dialect: Dialect, table: Table) -> None:
        quote = dialect.identifier_preparer.quote
        self.table = quote(table.name)
        self.columns = [quote(column.name) for column in table.columns]
        self.key = [quote(column.name) for column in table.primary_key.columns]
        self.rest = [name for name in self.columns if name not in self.key]
        self.casts = {
            quote(column.name): "bigint" if isinstance(column.type, BigInteger | Integer) else "text"
            for column in table.columns
        }
        self.versioned = "version" in self.columns
        self.quoted = {column.name: quote(column.name) for column in table.columns}

    @cached_property
    def listed(self) -> str:
        """Columns for an INSERT."""
        return ", ".join(self.columns)


class _StatementWriter:
    """Common part of the statement writers."""

    def __init__(self, dialect: Dialect) -> None:
        self.names = lru_cache(maxsize=None)(lambda table: _Names(dialect, table))
        self.text = lru_cache(maxsize=4096)(self._text)

    def insert(self, table: Table, rows: Sequence[Row]) -> Statement:
        """See `StatementWriter`."""
        return self._statement("insert", table, (), rows)

    def put(self, table: Table, rows: Sequence[Row]) -> Statement:
        """See `StatementWriter`."""
        return self._statement("put", table, (), rows)

    def update(self, table: Table, rows: Sequence[Row]) -> Statement:
        """See `StatementWriter`."""
        return self._statement("update", table, (), rows)

    def delete(self, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> Statement:
        """See `StatementWriter`."""
        return self._statement("delete", table, columns, rows)

    def _statement(self, verb: str, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> Statement:
        """Return a statement for rows."""
        return self.text(verb, table, columns, len(rows)), tuple(chain.from_iterable(rows))

    def _text(self, verb: str, table: Table, columns: tuple[str, ...], size: int) -> str:
        """Return the text of a statement for `size` rows."""
        raise NotImplementedError


def _grid(mark: str, width: int, size: int) -> str:
    """Return `size` rows of placeholders."""
    return ", ".join([f"({', '.join([mark] * width)})"] * size)


def _matches(left: str, right: dict[str, str], names: Sequence[str]) -> str:
    return " AND ".join(f"{left}.{name} = {right[name]}" for name in names)


class SqliteStatements(_StatementWriter):
    """Writer of rows as VALUES, in a few sizes, so that SQLite can reuse parsed statements."""

    def _statement(self, verb: str, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> Statement:
        size = SIZES[bisect_left(SIZES, len(rows))]
        missing = (None,) * (len(rows[0]) * (size - len(rows)))
        return self.text(verb, table, columns, size), tuple(chain(chain.from_iterable(rows), missing))

    def _text(self, verb: str, table: Table, columns: tuple[str, ...], size: int) -> str:
        names = self.names(table)
        values = f"VALUES {_grid('?', len(columns or names.columns), size)}"
        if verb == "delete":
            first, asked = names.quoted[columns[0]], ", ".join(names.quoted[column] for column in columns)
            if len(columns) == 1:
                return f"DELETE FROM {names.table} WHERE {first} IN ({values})"
            narrowed = f"{first} IN (SELECT column1 FROM v)"  # SQLite uses an index for one column, but not for several
            return f"WITH v AS ({values}) DELETE FROM {names.table} WHERE {narrowed} AND ({asked}) IN (SELECT * FROM v)"
        if verb == "update":
            given = {name: f"v.column{at}" for at, name in enumerate(names.columns, 1)}
            sets = ", ".join(f"{name} = {given[name]}" for name in names.rest)
            version = f" AND {names.table}.version = {given['version']} - 1" if names.versioned else ""
            where = _matches(names.table, given, names.key) + version
            return f"UPDATE {names.table} SET {sets} FROM ({values}) AS v WHERE {where}"
        text = f"INSERT INTO {names.table} ({names.listed}) SELECT * FROM ({values}) WHERE column1 IS NOT NULL"
        if verb == "put":
            text += _on_conflict(names)
        return text


class PostgresStatements(_StatementWriter):
    """Writer of rows as one array per column, so that one prepared statement works for any number of rows."""

    def _statement(self, verb: str, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> Statement:
        return self.text(verb, table, columns, 0), tuple(map(_without_nul, zip(*rows, strict=True)))

    def _text(self, verb: str, table: Table, columns: tuple[str, ...], size: int) -> str:
        names = self.names(table)
        given = [names.quoted[column] for column in columns] or names.columns
        arrays = ", ".join(f"%s::{names.casts[name]}[]" for name in given)
        rows = f"unnest({arrays}) AS v ({', '.join(given)})"
        matching = {name: f"v.{name}" for name in given}
        if verb == "delete":
            return f"DELETE FROM {names.table} USING {rows} WHERE {_matches(names.table, matching, given)}"
        if verb == "update":
            sets = ", ".join(f"{name} = v.{name}" for name in names.rest)
            version = f" AND {names.table}.version = v.version - 1" if names.versioned else ""
            where = _matches(names.table, matching, names.key) + version
            return f"UPDATE {names.table} SET {sets} FROM {rows} WHERE {where}"
        text = f"INSERT INTO {names.table} ({names.listed}) SELECT * FROM {rows}"
        if verb == "put":
            text += _on_conflict(names)
        return text


def _without_nul(column: tuple[Any, ...]) -> list[Any]:
    """Replace NUL characters, which PostgreSQL cannot store."""
    return [cell.replace("\0", "\ufffd") if type(cell) is str and "\0" in cell else cell for cell in column]


class MysqlStatements(_StatementWriter):
    """Writer of rows as VALUES for inserts, and as a derived table for updates and deletions."""

    def _text(self, verb: str, table: Table, columns: tuple[str, ...], size: int) -> str:
        names = self.names(table)
        given = [names.quoted[column] for column in columns] or names.columns
        if verb in {"insert", "put"}:
            text = f"INSERT INTO {names.table} ({names.listed}) VALUES {_grid('%s', len(given), size)}"
            if verb == "put":
                sets = names.rest or names.key[:1]
                text += " ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = VALUES({name})" for name in sets)
            return text
        first = "SELECT " + ", ".join(f"%s AS {name}" for name in given)
        more = [f"SELECT {', '.join(['%s'] * len(given))}"] * (size - 1)
        rows = f"({' UNION ALL '.join([first, *more])}) AS v"
        matching = {name: f"v.{name}" for name in given}
        if verb == "delete":
            on = _matches(names.table, matching, given)
            return f"DELETE {names.table} FROM {names.table} JOIN {rows} ON {on}"
        version = f" AND {names.table}.version = v.version - 1" if names.versioned else ""
        on = _matches(names.table, matching, names.key) + version
        pairs = ", ".join(f"{names.table}.{name} = v.{name}" for name in names.rest)
        return f"UPDATE {names.table} JOIN {rows} ON {on} SET {pairs}"


def _on_conflict(names: _Names) -> str:
    """Return the clause for existing rows."""
    sets = ", ".join(f"{name} = excluded.{name}" for name in names.rest)
    action = f"UPDATE SET {sets}" if sets else "NOTHING"
    return f" ON CONFLICT ({', '.join(names.key)}) DO {action}"


Condition = ColumnElement[bool]
Question = Select[Any]

SHOWN = frozenset(JobState) - {JobState.DELETED}
"""Default states in lists."""


SPEC_ID = case((JOBS.c.array_id == 0, JOBS.c.id), else_=JOBS.c.array_id)
"""ID of the job that has the spec of a job: itself, or the array of a task."""


JOB_WITH_SPEC = (*JOBS.columns, JOBS.c.array_id.label("spec_of"), case((JOBS.c.array_id == 0, JOB_SPECS.c.spec)))
"""Columns of a job, the ID of its array, and its spec; NULL for tasks, which share that of their array.

A spec may be a megabyte. Thousands of tasks in one answer would each have a copy of it.
"""

TIMES = frozenset({JobSort.STARTED, JobSort.ENDED, JobSort.DURATION})
"""Orders with an index of finished jobs."""


def held_uses(since_ns: int, numbers: Sequence[int], *, ended: bool) -> tuple[Question, tuple[ColumnElement[int], ...]]:
    """Return the query for the uses of attempts, or of those that ended, and the columns by which its pages follow."""
    order = (ATTEMPTS.c.job_id, ATTEMPTS.c.number)
    held = (JOBS.c.queue, JOBS.c.tenant, ATTEMPTS.c.amounts, ATTEMPTS.c.placements)
    question = select(SPEC_ID, *order, *held, ATTEMPTS.c.created_ns, ATTEMPTS.c.ended_ns)
    question = question.join_from(ATTEMPTS, JOBS, JOBS.c.id == ATTEMPTS.c.job_id).order_by(*order)
    if ended:
        question = question.where(ATTEMPTS.c.ended_ns >= since_ns)
    elif since_ns:
        question = question.where(or_(ATTEMPTS.c.ended_ns.is_(None), ATTEMPTS.c.ended_ns >= since_ns))
    if numbers:
        question = question.where(or_(JOBS.c.id.in_(numbers), JOBS.c.array_id.in_(numbers)))
    return question, order


def _sort_value(wanted: JobFilter) -> ColumnElement[Any]:
    """Return the value by which a list is sorted; null for jobs without one."""
    columns: dict[JobSort, ColumnElement[Any]] = {
        JobSort.SUBMITTED: JOBS.c.submitted_ns,
        JobSort.STARTED: JOBS.c.started_ns,
        JobSort.ENDED: JOBS.c.ended_ns,
        JobSort.DURATION: func.coalesce(JOBS.c.ended_ns, wanted.now_ns) - JOBS.c.started_ns,
    }
    assert wanted.sort is not None
    return columns[wanted.sort] if wanted.sort in columns else JOBS.c[wanted.sort.value]


def _sorted_page(wanted: JobFilter, limit: int) -> Question:
    """Return the query for jobs in another order than the default."""
    if wanted.sort in TIMES and _has_order_by_state(wanted):
        found = _by_time(wanted, limit).subquery("found")
    else:
        value = _sort_value(wanted).label("sort_value")
        ids = _drawn(wanted, select(JOBS.c.id, value), _conditions(wanted), _states(wanted))
        found = ids.order_by(*_value_order(wanted, value)).limit(limit).offset(wanted.offset).subquery("found")
    return (
        select(*JOB_WITH_SPEC)
        .select_from(found)
        .join(JOBS, JOBS.c.id == found.c.id)
        .join(JOB_SPECS, JOB_SPECS.c.job_id == SPEC_ID)
        .order_by(*_value_order(wanted, found.c.sort_value))
    )


def _by_time(wanted: JobFilter, limit: int) -> Question:
    """Return the query for job IDs in the order of a time.

    An index has the times of finished jobs, by state and end. It lacks unfinished ones, which are few and have no end.
    """
    value, states = _sort_value(wanted).label("sort_value"), wanted.states or SHOWN
    order = _value_order(wanted, value)
    by_end = order[1:] if wanted.sort is JobSort.ENDED else order  # without the condition on null, that of the index
    unfinished = select(JOBS.c.id, value).where(JOBS.c.state.in_(sorted(state.value for state in states - FINAL)))
    parts = [unfinished.order_by(*order)]
    for state in sorted(states & FINAL, key=lambda each: each.value):
        finished = select(JOBS.c.id, value).where(JOBS.c.state == state.value, JOBS.c.ended_ns.is_not(None))
        parts.append(finished.order_by(*by_end))
    most = wanted.offset + limit
    found = [part.where(*_conditions(wanted)).limit(most).subquery(f"part{at}") for at, part in enumerate(parts)]
    every = union_all(*map(select, found)).subquery("every")
    total = _value_order(wanted, every.c.sort_value, every.c.id)
    return select(every).order_by(*total).limit(limit).offset(wanted.offset)


def _value_order(
    wanted: JobFilter, value: ColumnElement[Any], number: ColumnElement[int] = JOBS.c.id
) -> tuple[ColumnElement[Any], ...]:
    """Return the order by a value, with null last, and then from new to old."""
    return value.is_(None), value.desc() if wanted.descending else value.asc(), number.desc()


@lru_cache(maxsize=256)
def page(wanted: JobFilter, limit: int) -> Question:
    """Return the query for jobs with their specs in the order of lists. Frequent queries are cached."""
    if wanted.sort:
        return _sorted_page(wanted, limit)
    found = _ids(wanted, limit).subquery("found")
    return (
        select(*JOB_WITH_SPEC)
        .select_from(found)
        .join(JOBS, JOBS.c.id == found.c.id)
        .join(JOB_SPECS, JOB_SPECS.c.job_id == SPEC_ID)
        .order_by(_sorted(wanted, JOBS.c.id))
    )


def counts(wanted: JobFilter) -> Question:
    """Return the query for the number of jobs in each state."""
    return _drawn(wanted, select(JOBS.c.state, func.count()), _conditions(wanted), _states(wanted)).group_by(
        JOBS.c.state
    )


def job_numbers(wanted: JobFilter) -> Question:
    """Return the query for the IDs of all jobs of a filter."""
    return _drawn(wanted, select(JOBS.c.id), _conditions(wanted), _states(wanted))


def grouped(wanted: JobFilter, by: str) -> Question:
    """Return the query for the IDs, states and groups of all jobs of a filter; see `Store.grouped_jobs`."""
    kind, _, key = by.partition(":")
    group: ColumnElement[Any] = JOBS.c[kind] if kind != "label" else _label_of_job(key)
    return _drawn(wanted, select(JOBS.c.id, JOBS.c.state, group), _conditions(wanted), _states(wanted))


def _label_of_job(key: str) -> ColumnElement[Any]:
    own = JOB_LABELS.alias("own")
    found = select(own.c.value).where(own.c.job_id == JOBS.c.id, own.c.name == key)
    return found.correlate(JOBS).scalar_subquery()


def _ids(wanted: JobFilter, limit: int) -> Question:
    """Return the query for job IDs.

    Most indexes order by state before ID. A separate query for each state, with `limit` jobs each, avoids reading and
    sorting a whole index.
    """
    conditions = _conditions(wanted)
    if not _has_order_by_state(wanted):
        question = _drawn(wanted, select(JOBS.c.id), conditions, _states(wanted))
        return question.order_by(_sorted(wanted, _order(wanted))).limit(limit)
    parts = []
    for state in sorted(wanted.states or SHOWN, key=lambda each: each.value):
        part = select(JOBS.c.id).where(JOBS.c.state == state.value, *conditions)
        part = part.order_by(_sorted(wanted, JOBS.c.id)).limit(limit)
        parts.append(select(part.subquery(state.value).c.id))
    every = union_all(*parts).subquery("every")
    return select(every.c.id).order_by(_sorted(wanted, every.c.id)).limit(limit)


def _has_order_by_state(wanted: JobFilter) -> bool:
    """Report whether the indexes for a filter order by state before ID or end."""
    others = wanted.label, wanted.cluster, wanted.submitted_by, wanted.named, wanted.name
    return wanted.array is not None and not any(others)


def _sorted(wanted: JobFilter, column: ColumnElement[int]) -> ColumnElement[int]:
    """Return the order of a list: tasks by index, other jobs from new to old."""
    return column.asc() if wanted.array else column.desc()


def _drawn(wanted: JobFilter, question: Question, conditions: list[Condition], states: Condition) -> Question:
    """Add the tables and conditions of a query."""
    if wanted.label:
        name, value = wanted.label
        question = question.select_from(JOB_LABELS.join(JOBS, JOBS.c.id == JOB_LABELS.c.job_id))
        question = question.where(JOB_LABELS.c.name == name, JOB_LABELS.c.value == value)
    if wanted.cluster:
        link = and_(JOBS.c.id == JOB_CLUSTERS.c.job_id, JOB_CLUSTERS.c.cluster == wanted.cluster)
        if wanted.label:
            question = question.where(select(1).where(link).exists())
        else:
            question = question.select_from(JOB_CLUSTERS.join(JOBS, link))
    return question.where(states, *conditions)


def _order(wanted: JobFilter) -> ColumnElement[int]:
    """Return the ID column of the first table. The index of this table has the required order."""
    if wanted.label:
        return JOB_LABELS.c.job_id
    return JOB_CLUSTERS.c.job_id if wanted.cluster else JOBS.c.id


def _states(wanted: JobFilter) -> Condition:
    """Return the condition on the state."""
    if wanted.states:
        return JOBS.c.state.in_(sorted(state.value for state in wanted.states))
    return JOBS.c.state != JobState.DELETED.value


def _array(wanted: JobFilter) -> int:
    return codec.number(wanted.array) or 0 if wanted.array else 0


def _conditions(wanted: JobFilter) -> list[Condition]:
    """Return the conditions on a job's row, without the condition on its state."""
    exact = (
        (JOBS.c.tenant, wanted.tenant),
        (JOBS.c.queue, wanted.queue),
        (JOBS.c.submitted_by, wanted.submitted_by),
        (JOBS.c.name, wanted.named),
    )
    found: list[Condition] = [column == value for column, value in exact if value]
    if wanted.array is not None:
        found.append(JOBS.c.array_id == _array(wanted))
    if wanted.name:
        named = JOBS.alias("named")  # only its index of names is read
        without = func.replace(named.c.name, wanted.name, "")  # LIKE is case-sensitive only on some databases
        matching = select(named.c.id).where(without != named.c.name)
        if wanted.array is not None:
            matching = matching.where(named.c.array_id == _array(wanted))
        found.append(JOBS.c.id.in_(matching))
    if wanted.ids:
        found.append(JOBS.c.id.in_([codec.number(each) or -1 for each in wanted.ids]))
    times = (
        (JOBS.c.submitted_ns, wanted.submitted_from_ns, wanted.submitted_until_ns),
        (JOBS.c.ended_ns, wanted.ended_from_ns, wanted.ended_until_ns),
    )
    for column, from_ns, until_ns in times:
        found += [column >= from_ns] if from_ns is not None else []
        found += [column < until_ns] if until_ns is not None else []
    if wanted.before:
        before = codec.number(wanted.before)
        if before is None:
            raise RejectedError(f"{wanted.before!r} is not an id of a job", where="before")
        found.append(_order(wanted) > before if wanted.array else _order(wanted) < before)
    if wanted.predecessor:
        link = JOB_PREDECESSORS.c.predecessor == (codec.number(wanted.predecessor) or -1)
        found.append(JOBS.c.id.in_(select(JOB_PREDECESSORS.c.job_id).where(link)))
    return found
