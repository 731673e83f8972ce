"""SQL store with one writer and many readers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Select, Table, and_, func, literal, or_, select, tuple_

from seaway.adapters.sqlalchemy import codec
from seaway.adapters.sqlalchemy import maintenance as pruning
from seaway.adapters.sqlalchemy import statements as job_queries
from seaway.adapters.sqlalchemy.engines import Engines, answering, open_engines
from seaway.adapters.sqlalchemy.schema import bring_up
from seaway.adapters.sqlalchemy.tables import (
    ACKNOWLEDGEMENTS,
    AGENTS,
    ATTEMPTS,
    AUDIT,
    CLUSTER_FACTS,
    CLUSTER_INVENTORIES,
    CLUSTER_NAMES,
    CLUSTER_REPORTS,
    CLUSTER_SAMPLES,
    CORDONS,
    DELIVERIES,
    EVALUATIONS,
    EVENTS,
    FIRING_ALERTS,
    JOB_SPECS,
    JOB_USES,
    JOBS,
    KEYS,
    LAST_USES,
    LINK_SAMPLES,
    NETWORK,
    NOTIFICATIONS,
    NOTIFIER,
    PATHS,
    PENDING_COMMANDS,
    POLICIES,
    POOLS,
    QUEUES,
    RESERVATIONS,
    SAVED_FILTERS,
    SCALE_WINDOWS,
    SHADOWS,
    TENANTS,
    TOKENS,
    USAGE_SAMPLES,
    WORKDIR_PARTS,
    WORKDIRS,
)
from seaway.adapters.sqlalchemy.writer import Writer
from seaway.application.changes import Change, Outcome
from seaway.application.ports.store import MAX_ROWS, AuditFilter, JobFilter, Retention, UsageFilter
from seaway.application.records import (
    NS_PER_S,
    Acknowledgement,
    AgentRecord,
    AuditEntry,
    ClusterFacts,
    ClusterInventory,
    ClusterName,
    ClusterReport,
    ClusterSample,
    CompletedRun,
    Cordon,
    EndedUse,
    EvaluationRecord,
    Event,
    FiringAlert,
    HeldUse,
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
from seaway.domain import job_spec as ids
from seaway.domain.attempt import Attempt
from seaway.domain.errors import InvariantError, RejectedError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import FINAL, AttemptState, JobState
from seaway.domain.notifications import Delivery, DeliveryState, Notification, NotifierState
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Pool, Tenant

Kind = TypeVar("Kind")
Question = Select[Any]

USES_AT_ONCE = 10_000
"""Number of uses of attempts in one query. Each query sorts those that are left."""


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RejectedError, InvariantError)
"""Errors of the decoder of a damaged row."""

LOOKED_AT = 20
"""Number of damaged rows that are looked at again at a time."""

JOB_KEYS = {"jobs": ("id",), "attempts": ("job_id",)}
"""Columns with the number of a job, whose ID is its text, by table."""

log = logging.getLogger(__name__)


class SqlStore:
    """Implementation of `seaway.application.ports.store.Store`; open it with `seaway.adapters.sqlalchemy.open_store`.

    Parameters
    ----------
    engines
        Engines of a database with existing tables.
    """

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._writer = Writer(engines.write)
        self._set_aside: dict[str, Callable[[], bool]] = {}  # a check whether it is still damaged, by place

    def __repr__(self) -> str:
        return f"SqlStore({self._engines.read.url.render_as_string(hide_password=True)!r})"

    def lead(self, owner: str) -> None:
        """Become the only process that writes."""
        self._writer.lead(owner)

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes in one durable transaction."""
        return self._writer.commit(changes)

    def touch(self) -> None:
        """Write the lease again."""
        self._writer.touch()

    def last_event(self, before_ns: int | None = None) -> int:
        """Return the ID of the latest event."""
        question = select(EVENTS.c.id).order_by(EVENTS.c.id.desc()).limit(1)
        found = self._rows(question if before_ns is None else question.where(EVENTS.c.at_ns < before_ns))
        return int(found[0][0]) if found else 0

    def job(self, job_id: str) -> JobRecord | None:
        """Return a job."""
        number = codec.number(job_id)
        found = self._read(codec.read_job, _JOBS.where(JOBS.c.id == number)) if number is not None else []
        return found[0] if found else None

    def known(self, job_ids: Sequence[str]) -> dict[str, int | None]:
        """Return the existing jobs among the given ones, with their end times."""
        names = {number: job_id for job_id in job_ids if (number := codec.number(job_id)) is not None}
        found: dict[str, int | None] = {}
        numbers = list(names)
        for first in range(0, len(numbers), MAX_ROWS):
            some = JOBS.c.id.in_(numbers[first : first + MAX_ROWS])
            found |= {
                names[number]: ended_ns
                for number, ended_ns in self._rows(select(JOBS.c.id, JOBS.c.ended_ns).where(some))
            }
        return found

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobRecord]:
        """Return jobs from new to old."""
        return self._read(self._job_reader(), job_queries.page(wanted, min(limit, MAX_ROWS)))

    def _job_reader(self) -> Callable[[Sequence[Any]], JobRecord]:
        """Return a decoder of jobs. It reads the spec of an array once for its tasks, whose rows are without it."""

        @lru_cache(maxsize=8)
        def spec_of(array: int) -> str:
            return str(self._rows(select(JOB_SPECS.c.spec).where(JOB_SPECS.c.job_id == array))[0][0])

        def read(row: Sequence[Any]) -> JobRecord:
            *fields, array, spec = row
            return codec.read_job((*fields, spec_of(array) if spec is None else spec))

        return read

    def job_numbers(self, wanted: JobFilter) -> list[int]:
        """Return the numbers of the IDs of all jobs of a filter."""
        with answering(), self._engines.read.connect() as connection:
            found = connection.execute(job_queries.job_numbers(wanted))
            return [number for (number,) in found.cursor.fetchall()]  # without an object for each row

    def grouped_jobs(self, wanted: JobFilter, by: str) -> list[tuple[int, str, str]]:
        """Return the number of the ID, the state and the group of all jobs of a filter."""
        with answering(), self._engines.read.connect() as connection:
            found = connection.execute(job_queries.grouped(wanted, by))
            return [(number, state, name or "") for number, state, name in found.cursor.fetchall()]

    def count_jobs(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count jobs by state."""
        return {JobState(state): count for state, count in self._rows(job_queries.counts(wanted))}

    def array_at(self, job_id: str) -> JobRecord | None:
        """Return the array that reserved an ID for one of its tasks."""
        number = codec.number(job_id)
        before = select(JOBS.c.id).where(JOBS.c.id < (number or 0)).order_by(JOBS.c.id.desc()).limit(1)
        near = self._read(codec.read_job, _JOBS.where(JOBS.c.id == before.scalar_subquery())) if number else []
        array = self.job(near[0].array) if near and near[0].array else near[0] if near else None
        tasks = array.spec.array if array else None
        return array if array and tasks and ids.id_distance(array.id, job_id) <= tasks.last + 1 else None

    def task_counts(self, arrays: Sequence[str]) -> dict[str, dict[JobState, int]]:
        """Count the stored tasks of arrays by state."""
        rows = self._tasks_by(JOBS.c.state, arrays)
        return {array: {JobState(state): count for state, count in found} for array, found in rows.items()}

    def task_clusters(self, arrays: Sequence[str]) -> dict[str, dict[tuple[str, ...], int]]:
        """Count the tasks of arrays that started, by the clusters of their latest attempt."""
        rows = self._tasks_by(JOBS.c.clusters, arrays, JOBS.c.started_ns.is_not(None))
        return {array: {codec.read_names(names): count for names, count in found} for array, found in rows.items()}

    def _tasks_by(
        self, column: Column[str], arrays: Sequence[str], *wanted: ColumnElement[bool]
    ) -> dict[str, list[tuple[str, int]]]:
        """Count the stored tasks of arrays by a column."""
        ids_by_number = {number: array for array in arrays if (number := codec.number(array)) is not None}
        found: dict[str, list[tuple[str, int]]] = {array: [] for array in ids_by_number.values()}
        question = select(JOBS.c.array_id, column, func.count()).where(JOBS.c.array_id.in_(ids_by_number), *wanted)
        for number, value, count in self._rows(question.group_by(JOBS.c.array_id, column)) if found else ():
            found[ids_by_number[number]].append((value, count))
        return found

    def live_jobs(self) -> Iterator[JobRecord]:
        """Return all unfinished jobs, from old to new."""
        live = sorted(state.value for state in JobState if state not in FINAL)
        return self._stream(self._job_reader(), _LIVE.where(JOBS.c.state.in_(live)), JOBS, ["id"])

    def held_attempts(self) -> Iterator[Attempt]:
        """Return all attempts that hold devices."""
        held = sorted(state.value for state in AttemptState if state.holds)
        question = select(ATTEMPTS).where(ATTEMPTS.c.state.in_(held))
        return self._stream(codec.read_attempt, question, ATTEMPTS, ["job_id", "number"])

    def ended_uses(self, since_ns: int) -> Iterator[EndedUse]:
        """Return what attempts held that ended at a time or later."""
        columns = (ATTEMPTS.c.ended_ns, ATTEMPTS.c.job_id, ATTEMPTS.c.number)
        question = (
            select(*columns, JOBS.c.queue, JOBS.c.tenant, ATTEMPTS.c.amounts, ATTEMPTS.c.created_ns)
            .join_from(ATTEMPTS, JOBS, JOBS.c.id == ATTEMPTS.c.job_id)
            .where(ATTEMPTS.c.ended_ns >= since_ns)
            .order_by(*columns)
            .limit(MAX_ROWS)
        )
        page = self._rows(question)
        while page:
            for ended_ns, _, _, queue, tenant, amounts, created_ns in page:
                yield EndedUse(queue, tenant, codec.read_amounts(amounts), created_ns, ended_ns)
            if len(page) < MAX_ROWS:
                return
            page = self._rows(question.where(_after(columns, tuple(page[-1][:3]))))

    def held_uses(self, since_ns: int = 0, job_ids: Sequence[str] = (), *, ended: bool = False) -> Iterator[HeldUse]:
        """Return what attempts hold or held."""
        numbers = [codec.number(job_id) or -1 for job_id in job_ids]
        question, order = job_queries.held_uses(since_ns, numbers, ended=ended)
        page = self._rows(question.limit(USES_AT_ONCE))
        while page:
            yield from map(codec.read_held_use, page)
            if len(page) < USES_AT_ONCE:
                break
            page = self._rows(question.where(_after(order, tuple(page[-1][1:3]))).limit(USES_AT_ONCE))

    def count_ended(self, before_ns: int) -> int:
        """Count the attempts that ended before a time."""
        question = select(func.count()).select_from(ATTEMPTS).where(ATTEMPTS.c.ended_ns < before_ns)
        return int(self._rows(question)[0][0])

    def completed_runs(self, most: int) -> list[CompletedRun]:
        """Return the last attempts of the latest completed jobs."""
        fields = (JOBS.c.tenant, JOBS.c.submitted_by, JOBS.c.name, ATTEMPTS.c.running_ns, JOBS.c.ended_ns)
        last = and_(ATTEMPTS.c.job_id == JOBS.c.id, ATTEMPTS.c.number == JOBS.c.attempt)
        question = (
            select(JOBS.c.id, *fields)
            .join_from(JOBS, ATTEMPTS, last)
            .where(JOBS.c.state == JobState.COMPLETED.value, ATTEMPTS.c.running_ns.is_not(None))
            .order_by(JOBS.c.id.desc())
        )
        found: list[CompletedRun] = []
        page = self._rows(question.limit(min(most, MAX_ROWS)))
        while page:
            found += (CompletedRun(*row[1:]) for row in page)
            rest = min(most - len(found), MAX_ROWS)
            page = self._rows(question.where(JOBS.c.id < page[-1][0]).limit(rest)) if rest else []
        return found

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return a job's attempts."""
        question = select(ATTEMPTS).where(ATTEMPTS.c.job_id == codec.number(job_id)).order_by(ATTEMPTS.c.number)
        return self._read(codec.read_attempt, question)

    def pending_commands(self) -> Iterator[PendingCommand]:
        """Return the pending commands, oldest first."""
        order = ["created_ns", *(column.name for column in PENDING_COMMANDS.primary_key.columns)]
        return self._stream(codec.read_pending_command, select(PENDING_COMMANDS), PENDING_COMMANDS, order)

    def events(self, after: int, limit: int, *, tenant: str = "", job_id: str = "") -> list[Event]:
        """Return events in order."""
        question = select(EVENTS).where(EVENTS.c.id > after)
        if tenant:
            question = question.where(EVENTS.c.tenant.in_((tenant, "")))
        if job_id:
            question = question.where(EVENTS.c.job_id == (codec.number(job_id) or -1))
        return self._read(codec.read_event, question.order_by(EVENTS.c.id).limit(min(limit, MAX_ROWS)))

    def fleet_events(self, limit: int) -> list[Event]:
        """Return the latest events of the fleet, newest first."""
        question = select(EVENTS).where(EVENTS.c.job_id == 0).order_by(EVENTS.c.id.desc()).limit(min(limit, MAX_ROWS))
        return self._read(codec.read_event, question)

    def key(self, tenant: str, key: str) -> IdempotencyKey | None:
        """Return the use of an idempotency key."""
        found = self._read(codec.read_key, select(KEYS).where(KEYS.c.tenant == tenant, KEYS.c.key == key))
        return found[0] if found else None

    def tokens(self) -> list[Token]:
        """Return all tokens, old to new."""
        return self._read(codec.read_token, select(TOKENS).order_by(TOKENS.c.created_ns, TOKENS.c.id))

    def last_uses(self) -> list[LastUse]:
        """Return the last use of each credential."""
        table = LAST_USES
        return self._read(_plain(LastUse), select(table).order_by(table.c.name, table.c.issuer, table.c.token_id))

    def tenants(self) -> list[Tenant]:
        """Return all tenants."""
        return self._read(codec.read_tenant, select(TENANTS).order_by(TENANTS.c.name))

    def pools(self) -> list[Pool]:
        """Return all pools."""
        return self._read(codec.read_pool, select(POOLS).order_by(POOLS.c.name))

    def queues(self) -> list[Queue]:
        """Return all queues."""
        return self._read(codec.read_queue, select(QUEUES).order_by(QUEUES.c.name))

    def reservations(self) -> list[AdvanceReservation]:
        """Return all advance reservations."""
        return self._read(codec.read_reservation, select(RESERVATIONS).order_by(RESERVATIONS.c.name))

    def notifications(self) -> list[Notification]:
        """Return all notifications."""
        question = select(NOTIFICATIONS).order_by(NOTIFICATIONS.c.tenant, NOTIFICATIONS.c.name)
        return self._read(codec.read_notification, question)

    def notifier_state(self) -> NotifierState | None:
        """Return the progress of the notifier."""
        return next(iter(self._read(_plain(NotifierState), select(NOTIFIER))), None)

    def delivery(self, delivery_id: str) -> Delivery | None:
        """Return a message."""
        found = self._read(codec.read_delivery, select(DELIVERIES).where(DELIVERIES.c.id == delivery_id))
        return found[0] if found else None

    def deliveries(
        self,
        *,
        tenant: str | None = None,
        receiver: str = "",
        state: DeliveryState | None = None,
        limit: int,
        before: str = "",
    ) -> list[Delivery]:
        """Return messages, new to old."""
        table = DELIVERIES
        question = select(table).order_by(table.c.id.desc()).limit(min(limit, MAX_ROWS))
        if tenant is not None:
            question = question.where(table.c.tenant == tenant)
        if receiver:
            question = question.where(table.c.receiver == receiver)
        if state:
            question = question.where(table.c.state == state.value)
        return self._read(codec.read_delivery, question.where(table.c.id < before) if before else question)

    def delivery_counts(self) -> dict[tuple[str, str, DeliveryState], int]:
        """Count messages."""
        key = (DELIVERIES.c.tenant, DELIVERIES.c.receiver, DELIVERIES.c.state)
        rows = self._rows(select(*key, func.count()).group_by(*key))
        return {(tenant, receiver, DeliveryState(state)): count for tenant, receiver, state, count in rows}

    def workdirs(self) -> list[WorkdirRecord]:
        """Return all stored archives."""
        return self._read(_plain(WorkdirRecord), select(WORKDIRS).order_by(WORKDIRS.c.tenant, WORKDIRS.c.digest))

    def workdir_parts(self) -> list[WorkdirPart]:
        """Return all parts of archives without their content."""
        key = tuple(WORKDIR_PARTS.primary_key.columns)
        question = select(*key, literal(""), WORKDIR_PARTS.c.at_ns).order_by(*key)
        return self._read(_plain(WorkdirPart), question)

    def workdir_part(self, tenant: str, digest: str, number: int) -> WorkdirPart | None:
        """Return a part of an archive."""
        table = WORKDIR_PARTS
        wanted = (table.c.tenant == tenant, table.c.digest == digest, table.c.number == number)
        return next(iter(self._read(_plain(WorkdirPart), select(table).where(*wanted))), None)

    def cordons(self) -> list[Cordon]:
        """Return all cordons."""
        return self._read(codec.read_cordon, select(CORDONS).order_by(CORDONS.c.cluster, CORDONS.c.node))

    def saved_filters(self, owner: str = "") -> list[SavedFilter]:
        """Return the saved filters of a user, or all."""
        question = select(SAVED_FILTERS).order_by(SAVED_FILTERS.c.owner, SAVED_FILTERS.c.name)
        wanted = question.where(SAVED_FILTERS.c.owner == owner) if owner else question
        return self._read(_plain(SavedFilter), wanted)

    def unreadable(self) -> list[str]:
        """Return tables and keys of damaged rows. They are left out of lists.

        Those that were repaired or removed are forgotten: each call looks at `LOOKED_AT` rows again.
        """
        with suppress(UnavailableError):
            for place, damaged in [*self._set_aside.items()][:LOOKED_AT]:
                still = damaged()
                self._set_aside.pop(place, None)
                if still:
                    self._set_aside[place] = damaged  # last, so that the next call looks at others
        return sorted(self._set_aside.copy())

    def acknowledgements(self) -> list[Acknowledgement]:
        """Return the acknowledgements of alerts that have not cleared."""
        question = select(ACKNOWLEDGEMENTS).order_by(ACKNOWLEDGEMENTS.c.name, ACKNOWLEDGEMENTS.c.of)
        return self._read(_plain(Acknowledgement), question)

    def firing_alerts(self) -> list[FiringAlert]:
        """Return the alerts that fired when they were last stored."""
        question = select(FIRING_ALERTS).order_by(FIRING_ALERTS.c.name, FIRING_ALERTS.c.of)
        return self._read(_plain(FiringAlert), question)

    def cluster_facts(self) -> list[ClusterFacts]:
        """Return the facts of clusters that operators set."""
        return self._read(codec.read_cluster_facts, select(CLUSTER_FACTS).order_by(CLUSTER_FACTS.c.cluster))

    def cluster_reports(self) -> list[ClusterReport]:
        """Return the connections to clusters, as last stored."""
        return self._read(codec.read_cluster_report, select(CLUSTER_REPORTS).order_by(CLUSTER_REPORTS.c.cluster))

    def cluster_inventories(self) -> list[ClusterInventory]:
        """Return the last reported inventories of clusters."""
        question = select(CLUSTER_INVENTORIES).order_by(CLUSTER_INVENTORIES.c.cluster)
        return self._read(codec.read_cluster_inventory, question)

    def scale_windows(self) -> list[ScaleWindow]:
        """Return the recent numbers of replicas of all jobs that wait to shrink."""
        return self._read(codec.read_scale_window, select(SCALE_WINDOWS).order_by(SCALE_WINDOWS.c.job_id))

    def job_uses(self, job_ids: Sequence[str]) -> list[JobUse]:
        """Return the stored use of the GPUs of some jobs."""
        numbers = [number for each in job_ids if (number := codec.number(each)) is not None]
        question = select(JOB_USES).where(JOB_USES.c.job_id.in_(numbers)).order_by(JOB_USES.c.job_id)
        return self._read(codec.read_job_use, question)

    def cluster_names(self) -> list[ClusterName]:
        """Return all current and former names of clusters."""
        return self._read(_plain(ClusterName), select(CLUSTER_NAMES).order_by(CLUSTER_NAMES.c.name))

    def network(self) -> NetworkRecord | None:
        """Return the specification of the network between gateways."""
        return next(iter(self._read(_plain(NetworkRecord), select(NETWORK))), None)

    def agents(self) -> list[AgentRecord]:
        """Return the records of all agents."""
        return self._read(_plain(AgentRecord), select(AGENTS).order_by(AGENTS.c.gateway))

    def paths(self) -> list[PathRecord]:
        """Return the chosen and confirmed paths."""
        return self._read(_plain(PathRecord), select(PATHS).order_by(PATHS.c.source, PATHS.c.target))

    def policies(self) -> list[PolicyRecord]:
        """Return all imported policies."""
        return self._read(codec.read_policy, select(POLICIES).order_by(POLICIES.c.name))

    def evaluations(self) -> list[EvaluationRecord]:
        """Return all stored evaluations."""
        return self._read(_plain(EvaluationRecord), select(EVALUATIONS).order_by(EVALUATIONS.c.name))

    def audit(self, before: int, limit: int, wanted: AuditFilter | None = None) -> list[AuditEntry]:
        """Return audit entries, new to old."""
        question = select(AUDIT).order_by(AUDIT.c.id.desc()).limit(min(limit, MAX_ROWS))
        if before:
            question = question.where(AUDIT.c.id < before)
        if wanted is None:
            return self._read(codec.read_audit, question)
        if wanted.actor:
            question = question.where(AUDIT.c.actor == wanted.actor)
        if wanted.since_ns:
            question = question.where(AUDIT.c.at_ns >= wanted.since_ns)
        if wanted.until_ns:
            question = question.where(AUDIT.c.at_ns < wanted.until_ns)
        if wanted.without:
            question = question.where(AUDIT.c.verb.not_in(wanted.without))
        if wanted.contains:
            among = (AUDIT.c.verb, AUDIT.c.target, AUDIT.c.changes)
            question = question.where(or_(*(each.icontains(wanted.contains, autoescape=True) for each in among)))
        return self._read(codec.read_audit, question)

    def cluster_samples(self, cluster: str, from_ns: int, limit: int, after: str = "") -> list[ClusterSample]:
        """Return samples, oldest first."""
        table = CLUSTER_SAMPLES
        question = select(table).where(table.c.at_ns >= from_ns).order_by(table.c.at_ns, table.c.cluster)
        if after:
            question = question.where(_after([table.c.at_ns, table.c.cluster], (from_ns, after)))
        if cluster:
            question = question.where(table.c.cluster == cluster)
        return self._read(_plain(ClusterSample), question.limit(min(limit, MAX_ROWS)))

    def usage_samples(self, wanted: UsageFilter) -> list[UsageSample]:
        """Return samples of use, summed up over longer steps."""
        table, over_ns = USAGE_SAMPLES, wanted.over_s * NS_PER_S
        start_ns = (table.c.at_ns - table.c.at_ns % over_ns).label("start_ns")
        names = [table.c[each] for each in wanted.by]
        key = [start_ns, table.c.kind, *names]
        sums = [
            func.max(column) if column.name == "longest_wait_s" else func.sum(column)
            for column in list(table.columns)[5:]
        ]
        question = (
            select(*key, *sums)
            .where(table.c.step_s == wanted.step_s)
            .where(table.c.at_ns >= wanted.from_ns, table.c.at_ns < wanted.until_ns)
            .group_by("start_ns", *key[1:])
            .order_by(*key)
        )
        for column, value in (
            (table.c.kind, wanted.kind),
            (table.c.name, wanted.name),
            (table.c.tenant, wanted.tenant),
        ):
            question = question.where(column == value) if value else question
        fields = ("at_ns", "kind", *wanted.by)
        values = list(table.columns.keys())[5:]
        found = []
        for row in self._rows(question):
            given: dict[str, Any] = dict(zip(fields, row, strict=False))
            given.update(zip(values, map(int, row[len(fields) :]), strict=True))
            found.append(UsageSample(wanted.over_s, **given))
        return found

    def link_samples(
        self, source: str, target: str, from_ns: int, limit: int, after: tuple[str, str] = ("", "")
    ) -> list[LinkSample]:
        """Return samples, oldest first."""
        table = LINK_SAMPLES
        question = select(table).where(table.c.at_ns >= from_ns)
        if any(after):
            question = question.where(_after([table.c.at_ns, table.c.source, table.c.target], (from_ns, *after)))
        if source:
            question = question.where(table.c.source == source)
        if target:
            question = question.where(table.c.target == target)
        ordered = question.order_by(table.c.at_ns, table.c.source, table.c.target)
        return self._read(_plain(LinkSample), ordered.limit(min(limit, MAX_ROWS)))

    def shadows(self, queue: str, limit: int, before: int = 0) -> list[ShadowResult]:
        """Return comparisons, new to old."""
        question = select(SHADOWS).order_by(SHADOWS.c.id.desc()).limit(min(limit, MAX_ROWS))
        question = question.where(SHADOWS.c.id < before) if before else question
        return self._read(_plain(ShadowResult), question.where(SHADOWS.c.queue == queue) if queue else question)

    def prune(self, retention: Retention, now_ns: int) -> dict[str, int]:
        """Remove expired rows in small transactions."""
        with answering():
            return pruning.prune(self._engines, retention, now_ns)

    def ping(self) -> None:
        """Raise `UnavailableError` if the database does not answer."""
        self._rows(select(1))

    def close(self) -> None:
        """Close all connections."""
        self._engines.dispose()

    def _rows(self, question: Question) -> Sequence[Sequence[Any]]:
        with answering(), self._engines.read.connect() as connection:
            return connection.execute(question).all()

    def _read(self, read: Callable[[Sequence[Any]], Kind], question: Question) -> list[Kind]:
        """Return decoded rows. A row that cannot be decoded is set aside, and named in the log."""
        rows = self._rows(question)
        try:
            return [read(row) for row in rows]
        except UNREADABLE:
            return list(self._readable(read, rows, question))

    def _readable(
        self, read: Callable[[Sequence[Any]], Kind], rows: Sequence[Sequence[Any]], question: Question
    ) -> Iterator[Kind]:
        """Yield the rows that can be decoded. Name each other one in the log, once."""
        for row in rows:
            try:
                yield read(row)
            except UNREADABLE as error:
                place, column = _place(question, row), question.selected_columns[0]
                if place not in self._set_aside:
                    self._set_aside[place] = partial(self._is_damaged, read, question.where(column == row[0]))
                    log.error(
                        "the row of the table %s cannot be read, and is set aside: %s; restore a backup or remove it",
                        place,
                        " ".join(str(error).split())[:300],
                    )

    def _is_damaged(self, read: Callable[[Sequence[Any]], object], question: Question) -> bool:
        try:
            for row in self._rows(question):
                read(row)
        except UNREADABLE:
            return True
        return False

    def _stream(
        self, read: Callable[[Sequence[Any]], Kind], question: Question, table: Table, order: list[str]
    ) -> Iterator[Kind]:
        """Read rows in pages by a unique order, so that no cursor stays open."""
        columns = [table.c[name] for name in order]
        places = [list(table.columns).index(column) for column in columns]
        question = question.order_by(*columns).limit(MAX_ROWS)
        page = self._rows(question)
        while page:
            yield from self._readable(read, page, question)
            if len(page) < MAX_ROWS:
                return
            last = tuple(page[-1][place] for place in places)
            page = self._rows(question.where(_after(columns, last)))


_LIVE = select(*job_queries.JOB_WITH_SPEC).join_from(JOBS, JOB_SPECS, JOB_SPECS.c.job_id == job_queries.SPEC_ID)
_JOBS = select(*JOBS.columns, JOB_SPECS.c.spec).join_from(JOBS, JOB_SPECS, JOB_SPECS.c.job_id == job_queries.SPEC_ID)


def _place(question: Question, row: Sequence[Any]) -> str:
    """Return the table and the key of a row, with the ID and the name of a job."""
    column = question.selected_columns[0]
    key = ids.encode(row[0]) if column.name in JOB_KEYS.get(column.table.name, ()) else row[0]
    values = dict(zip(question.selected_columns.keys(), row, strict=False))
    name = values.get("name", key)
    return f"{column.table.name} with {column.name} {key!r}{f' ({name})' if name != key else ''}"


def _after(columns: Sequence[Any], last: tuple[Any, ...]) -> Any:  # noqa: ANN401  # SQLAlchemy's own
    """Return the condition for rows that come after `last`."""
    if len(columns) == 1:
        return columns[0] > last[0]
    return or_(columns[0] > last[0], and_(columns[0] == last[0], tuple_(*columns[1:]) > tuple_(*last[1:])))


def _plain(kind: Callable[..., Kind]) -> Callable[[Sequence[Any]], Kind]:
    """Return a decoder for records whose fields are the columns in order."""
    return lambda row: kind(*row)


def open_store(url: str, *, readers: int = 8) -> SqlStore:
    """Open a store, and migrate its tables to the newest schema version.

    Parameters
    ----------
    url
        ``sqlite:///path``, ``mysql://user:password@host/name`` (or ``mariadb://``) or
        ``postgresql://user:password@host/name``.
    readers
        Number of threads that can read concurrently.

    Raises
    ------
    RejectedError
        When the URL is invalid, its driver is not installed, or a newer Seaway created the tables.
    UnavailableError
        When the database does not answer.
    """
    engines = open_engines(url, readers)
    try:
        with answering():
            bring_up(engines.write)
    except BaseException:
        engines.dispose()
        raise
    return SqlStore(engines)
