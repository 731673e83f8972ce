"""Conversion of changes to the minimum number of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Table

from seaway.adapters.sqlalchemy import codec, tables
from seaway.adapters.sqlalchemy.codec import Row
from seaway.adapters.sqlalchemy.statements import MOST, StatementWriter
from seaway.application.changes import Change
from seaway.application.records import (
    Acknowledgement,
    AgentRecord,
    AuditEntry,
    ClusterFacts,
    ClusterInventory,
    ClusterName,
    ClusterReport,
    ClusterSample,
    Cordon,
    EvaluationRecord,
    Event,
    FiringAlert,
    IdempotencyKey,
    JobUse,
    LastUse,
    LinkSample,
    NetworkRecord,
    PathRecord,
    PendingCommand,
    PolicyRecord,
    SavedFilter,
    ScaleWindow,
    ShadowResult,
    Token,
    UsageSample,
    WorkdirPart,
    WorkdirRecord,
)
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.notifications import Delivery, Notification, NotifierState
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Pool, Tenant


class Step(IntEnum):
    """Kind of write, in order of execution."""

    INSERT = 0
    UPDATE = 1
    PUT = 2
    CLEAR = 3
    """Remove the labels or clusters of jobs."""
    LINK = 4
    """Add the labels or clusters of jobs."""
    DELETE = 5


def _plain(table: Table) -> tuple[Table, Callable[[Any], Row]]:
    return table, attrgetter(*(column.name for column in table.columns))


ROW_WRITERS: dict[type[Any], tuple[Table, Callable[[Any], Row]]] = {
    PendingCommand: (tables.PENDING_COMMANDS, codec.pending_command_row),
    Event: (tables.EVENTS, codec.event_row),
    IdempotencyKey: (tables.KEYS, codec.key_row),
    Token: (tables.TOKENS, codec.token_row),
    AuditEntry: (tables.AUDIT, codec.audit_row),
    Cordon: (tables.CORDONS, codec.cordon_row),
    ClusterFacts: (tables.CLUSTER_FACTS, codec.cluster_facts_row),
    ClusterReport: (tables.CLUSTER_REPORTS, codec.cluster_report_row),
    ClusterInventory: (tables.CLUSTER_INVENTORIES, codec.cluster_inventory_row),
    ScaleWindow: (tables.SCALE_WINDOWS, codec.scale_window_row),
    JobUse: (tables.JOB_USES, codec.job_use_row),
    ClusterName: _plain(tables.CLUSTER_NAMES),
    ClusterSample: _plain(tables.CLUSTER_SAMPLES),
    LinkSample: _plain(tables.LINK_SAMPLES),
    UsageSample: _plain(tables.USAGE_SAMPLES),
    SavedFilter: _plain(tables.SAVED_FILTERS),
    Acknowledgement: _plain(tables.ACKNOWLEDGEMENTS),
    FiringAlert: _plain(tables.FIRING_ALERTS),
    NetworkRecord: _plain(tables.NETWORK),
    AgentRecord: _plain(tables.AGENTS),
    PathRecord: _plain(tables.PATHS),
    EvaluationRecord: _plain(tables.EVALUATIONS),
    PolicyRecord: (tables.POLICIES, codec.policy_row),
    ShadowResult: _plain(tables.SHADOWS),
    Tenant: (tables.TENANTS, codec.tenant_row),
    Pool: (tables.POOLS, codec.pool_row),
    Queue: (tables.QUEUES, codec.queue_row),
    AdvanceReservation: (tables.RESERVATIONS, codec.reservation_row),
    Notification: (tables.NOTIFICATIONS, codec.notification_row),
    Delivery: (tables.DELIVERIES, codec.delivery_row),
    NotifierState: _plain(tables.NOTIFIER),
    WorkdirRecord: _plain(tables.WORKDIRS),
    WorkdirPart: _plain(tables.WORKDIR_PARTS),
    LastUse: _plain(tables.LAST_USES),
}
"""Table and row encoder for each kind of record. Jobs and attempts require more work."""

NUMBERED: dict[type[Any], Table] = {Event: tables.EVENTS, AuditEntry: tables.AUDIT, ShadowResult: tables.SHADOWS}
"""Kinds of records that get an ID if they have none. The ID is the last column of their table."""


@dataclass(frozen=True, slots=True)
class Known:
    """Last stored state of a job, used to skip unchanged parts."""

    spec: JobSpec
    text: str
    clusters: tuple[str, ...]
    final: bool


@dataclass(slots=True)
class Memory:
    """State that a writer keeps between batches.

    Attributes
    ----------
    latest
        Highest assigned ID by kind of record.
    jobs
        Stored states of unfinished jobs by number; the oldest are evicted.
    """

    latest: dict[type[Any], int] = field(default_factory=lambda: dict.fromkeys(NUMBERED, 0))
    jobs: dict[int, Known] = field(default_factory=dict)
    most: int = 32_768

    def learn(self, jobs: dict[int, Known]) -> None:
        """Add stored states of jobs. Finished jobs hardly change again, so that theirs are not worth their memory."""
        for number, known in jobs.items():
            self.jobs.pop(number, None)
            if not known.final:
                self.jobs[number] = known
        while len(self.jobs) > self.most:
            del self.jobs[next(iter(self.jobs))]


class Batch:
    """Rows by kind of write.

    Parameters
    ----------
    memory
        Source of new IDs and of the stored states of jobs.
    mend
        True to replace lone surrogates from external messages, which databases do not store.

    Attributes
    ----------
    jobs
        States of the jobs after the batch is stored.
    """

    def __init__(self, memory: Memory, *, mend: bool = False) -> None:
        self.jobs: dict[int, Known] = {}
        self._mend = mend
        self._memory = memory
        self._rows: dict[tuple[Step, str], tuple[Table, list[Row]]] = {}

    def add(self, change: Change) -> None:
        """Add a change."""
        for step, records in (
            (Step.INSERT, change.insert),
            (Step.UPDATE, change.update),
            (Step.PUT, change.put),
            (Step.DELETE, change.delete),
        ):
            for record in records:
                self.add_record(step, record)

    def add_record(self, step: Step, record: Any) -> None:  # noqa: ANN401  # any kind of record
        """Add the write of one record."""
        kind = type(record)
        if kind is JobRecord:
            self._add_job(step, record)
        elif kind is Attempt:
            self._put(step, tables.ATTEMPTS, codec.attempt_row(record, self._text(record)))
        else:
            table, write = ROW_WRITERS[kind]
            row = write(record)
            if kind in NUMBERED and step is not Step.DELETE:
                row = self._numbered(kind, row)
            self._put(step, table, row)

    def run(self, connection: Connection, words: StatementWriter) -> bool:
        """Execute all writes; return whether every update matched its row."""
        for step, name in sorted(self._rows, key=lambda each: each[0]):
            table, rows = self._rows[step, name]
            if step is Step.PUT or step is Step.LINK:
                rows = _last_of_each(table, rows)
            for start in range(0, len(rows), MOST):
                part = rows[start : start + MOST] if len(rows) > MOST else rows
                changed = connection.exec_driver_sql(*_statement(words, step, table, part)).rowcount
                if step is Step.UPDATE and changed != len(part):
                    return False
        return True

    def _put(self, step: Step, table: Table, row: Row) -> None:
        if self._mend:
            row = tuple(each.encode("utf-8", "replace").decode() if isinstance(each, str) else each for each in row)
        entry = self._rows.get((step, table.name))
        if entry is None:
            self._rows[step, table.name] = (table, [row])
        else:
            entry[1].append(row)

    def _numbered(self, kind: type[Any], row: Row) -> Row:
        """Assign an ID, the last column, to a row without one."""
        latest = self._memory.latest
        number = row[-1] or latest[kind] + 1
        latest[kind] = max(latest[kind], number)
        return row if row[-1] else (*row[:-1], number)

    def _known(self, number: int) -> Known | None:
        return self.jobs.get(number) or self._memory.jobs.get(number)

    def _text(self, attempt: Attempt) -> str:
        """Return the text of an attempt's spec, which usually is the text of the job's spec."""
        known = self._known(codec.require_number(attempt.job_id))
        return known.text if known is not None and known.spec is attempt.spec else codec.spec_text(attempt.spec)

    def _add_job(self, step: Step, job: JobRecord) -> None:
        """Add the writes of a job, its spec, its labels and its clusters. A task has only its row."""
        row = codec.job_row(job)
        number = row[0]
        if job.array:
            self._put(step, tables.JOBS, row)
            return
        if step is Step.DELETE:
            self._put(step, tables.JOBS, row)
            for table in (tables.JOB_SPECS, tables.JOB_LABELS, tables.JOB_CLUSTERS, tables.JOB_PREDECESSORS):
                self._put(Step.CLEAR, table, row)
            return
        known = None if step is Step.INSERT else self._known(number)
        spec, clusters = job.spec, job.clusters
        self._put(step, tables.JOBS, row)
        if known is not None and known.spec is spec:
            text = known.text
        else:
            text = codec.spec_text(spec)
            self._put(Step.INSERT if step is Step.INSERT else Step.PUT, tables.JOB_SPECS, (number, text))
            self._link(step, tables.JOB_LABELS, number, spec.labels.items(), known is None or bool(known.spec.labels))
            earlier = [(codec.require_number(each.job),) for each in spec.after]
            self._link(step, tables.JOB_PREDECESSORS, number, earlier, known is None or bool(known.spec.after))
        if known is None or known.clusters != clusters:
            names = [(cluster,) for cluster in clusters]
            self._link(step, tables.JOB_CLUSTERS, number, names, known is None or bool(known.clusters))
        self.jobs[number] = Known(spec, text, clusters, job.state.final)

    def _link(self, step: Step, table: Table, number: int, names: Iterable[tuple[Any, ...]], clear: bool) -> None:
        """Set the names of a job in a table; `clear` is True if the table may contain other names."""
        if clear and step is not Step.INSERT:
            self._put(Step.CLEAR, table, (number,))
        for name in names:
            self._put(Step.LINK, table, (*name, number))


def _statement(words: StatementWriter, step: Step, table: Table, rows: Sequence[Row]) -> tuple[str, tuple[Any, ...]]:
    """Return the statement of a step."""
    if step is Step.INSERT:
        return words.insert(table, rows)
    if step is Step.UPDATE:
        return words.update(table, rows)
    if step is Step.CLEAR:
        return words.delete(table, ("job_id",), [row[:1] for row in rows])
    if step is Step.DELETE:
        places = _key_places(table)
        names = tuple(column.name for column in table.primary_key.columns)
        return words.delete(table, names, [tuple(row[place] for place in places) for row in rows])
    return words.put(table, rows)


def _key_places(table: Table) -> list[int]:
    """Return the indexes of the key columns in a row."""
    columns = list(table.columns)
    return [columns.index(column) for column in table.primary_key.columns]


def _last_of_each(table: Table, rows: list[Row]) -> list[Row]:
    """Return the last row of each key, because some databases reject duplicate keys in one statement."""
    places = _key_places(table)
    return list({tuple(row[place] for place in places): row for row in rows}.values())
