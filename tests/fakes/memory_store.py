"""A store in memory, in dictionaries, that can be made to fail.

It passes the same suite as the real ones (`tests.conformance.store_suite`).

>>> store = MemoryStore()
>>> store.lead("me")
>>> store.fail_next()
>>> store.ping()
Traceback (most recent call last):
    ...
seaway.domain.errors.UnavailableError: the store is set to fail
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from threading import RLock
from typing import Any, TypeVar, cast

from seaway.application.changes import Change, Outcome, Record
from seaway.application.ports.store import (
    MAX_ROWS,
    USAGE_STEPS_S,
    AuditFilter,
    JobFilter,
    JobSort,
    Retention,
    UsageFilter,
)
from seaway.application.records import (
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
from seaway.domain.errors import InvariantError, RejectedError, SupersededError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.notifications import Delivery, DeliveryState, Notification, NotifierState
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import DEFAULT, Pool, Tenant

Kind = TypeVar("Kind")
Key = tuple[Any, ...]

KEYS: dict[type[Any], Callable[[Any], Key]] = {
    JobRecord: lambda row: (row.id,),
    Attempt: lambda row: (row.job_id, row.number),
    PendingCommand: lambda row: (row.job_id, row.attempt, row.cluster, row.verb),
    Event: lambda row: (row.id,),
    IdempotencyKey: lambda row: (row.tenant, row.key),
    Token: lambda row: (row.id,),
    AuditEntry: lambda row: (row.id,),
    Cordon: lambda row: (row.cluster, row.node),
    ClusterFacts: lambda row: (row.cluster,),
    ClusterReport: lambda row: (row.cluster,),
    ClusterInventory: lambda row: (row.cluster,),
    ScaleWindow: lambda row: (row.job_id,),
    JobUse: lambda row: (row.job_id,),
    ClusterName: lambda row: (row.name,),
    ClusterSample: lambda row: (row.at_ns, row.cluster),
    LinkSample: lambda row: (row.at_ns, row.source, row.target),
    UsageSample: lambda row: (row.step_s, row.at_ns, row.kind, row.name, row.tenant),
    SavedFilter: lambda row: (row.owner, row.name),
    Acknowledgement: lambda row: (row.name, row.of),
    FiringAlert: lambda row: (row.name, row.of),
    NetworkRecord: lambda row: (row.id,),
    AgentRecord: lambda row: (row.gateway,),
    PathRecord: lambda row: (row.source, row.target),
    EvaluationRecord: lambda row: (row.name,),
    PolicyRecord: lambda row: (row.name,),
    ShadowResult: lambda row: (row.id,),
    Tenant: lambda row: (row.name,),
    Pool: lambda row: (row.name,),
    AdvanceReservation: lambda row: (row.name,),
    Queue: lambda row: (row.name,),
    Notification: lambda row: (row.tenant, row.name),
    Delivery: lambda row: (row.id,),
    NotifierState: lambda row: (row.id,),
    WorkdirRecord: lambda row: (row.tenant, row.digest),
    WorkdirPart: lambda row: (row.tenant, row.digest, row.number),
    LastUse: lambda row: (row.name, row.issuer, row.token_id),
}
"""Types whose rows get an id when they have none."""

NUMBERED = (Event, AuditEntry, ShadowResult)
"""Kinds whose rows get an id when they have none."""


class _Conflict(Exception):  # noqa: N818  # not an error: how a change is given up
    """A change cannot be stored."""


@dataclass(slots=True)
class MemoryDatabase:
    """Data that several stores can share, as processes share a database.

    Attributes
    ----------
    rows
        Rows by kind and key.
    latest
        Highest id so far, by kind.
    epoch
        Number of times that a process became the writer.
    available
        Whether it answers.
    """

    rows: dict[type[Any], dict[Key, Any]] = field(default_factory=lambda: {kind: {} for kind in KEYS})
    latest: dict[type[Any], int] = field(default_factory=lambda: dict.fromkeys(NUMBERED, 0))
    epoch: int = 0
    available: bool = True
    lock: RLock = field(default_factory=RLock)


class MemoryStore:
    """Implements `seaway.application.ports.store.Store`.

    Parameters
    ----------
    database
        The database; None for a new one.

    Attributes
    ----------
    commits
        Every batch given to `commit`, in order, for tests that check the writes.
    """

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        self.database = database or MemoryDatabase()
        self.commits: list[list[Change]] = []
        self._epoch = -1
        self._failures: list[tuple[Exception, bool]] = []

    def fail_next(self, error: Exception | None = None, *, times: int = 1, after: bool = False) -> None:
        """Make the next calls raise.

        Parameters
        ----------
        error
            The error; None for an `UnavailableError`.
        times
            Number of calls.
        after
            Let `commit` store everything first, as when only its answer is lost; other calls succeed.
        """
        self._failures += [(error or UnavailableError("the store is set to fail"), after)] * times

    def set_available(self, available: bool) -> None:
        """Make every call raise `UnavailableError` from now on, or none."""
        self.database.available = available

    def lead(self, owner: str) -> None:
        """Become the writer, and create the default tenant, pool and queue."""
        self._answer()
        with self.database.lock:
            self.database.epoch += 1
            self._epoch = self.database.epoch
            for row in (Tenant(DEFAULT), Pool(DEFAULT), Queue(DEFAULT)):
                self.database.rows[type(row)].setdefault((DEFAULT,), row)

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store each change wholly or not at all."""
        self._answer()
        with self.database.lock:
            if self._epoch != self.database.epoch:
                raise SupersededError("another process writes now")
            self.commits.append(list(changes))
            outcomes = [self._store(change) for change in changes]
        if self._failures and self._failures[0][1]:
            raise self._failures.pop(0)[0]
        return outcomes

    def touch(self) -> None:
        """Raise as `commit`."""
        self._answer()
        if self._epoch != self.database.epoch:
            raise SupersededError("another process writes now")

    def last_event(self, before_ns: int | None = None) -> int:
        """Return the id of the latest event."""
        self._answer()
        if before_ns is None:
            return self.database.latest[Event]
        return max((row.id for row in self._rows(Event) if row.at_ns < before_ns), default=0)

    def job(self, job_id: str) -> JobRecord | None:
        """Return a job."""
        return self._row(JobRecord, (job_id,))

    def known(self, job_ids: Sequence[str]) -> dict[str, int | None]:
        """Return which of these jobs exist, with their end times."""
        found = ((job_id, self._row(JobRecord, (job_id,))) for job_id in job_ids)
        return {job_id: row.ended_ns for job_id, row in found if row}

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobRecord]:
        """Return jobs from new to old."""
        _require_page(wanted)
        found = [row for row in self._rows(JobRecord) if _wanted(row, wanted)]
        if wanted.sort:
            found.sort(key=lambda row: row.id, reverse=True)
            values = {row.id: _sort_value(row, wanted) for row in found}
            known = [row for row in found if values[row.id] is not None]
            known.sort(key=lambda row: values[row.id], reverse=wanted.descending)
            if wanted.descending:  # jobs with equal values stay from new to old
                known = [row for _, same in groupby(known, lambda row: values[row.id]) for row in _newest_first(same)]
            found = [*known, *(row for row in found if values[row.id] is None)]
            return found[wanted.offset : wanted.offset + min(limit, MAX_ROWS)]
        return sorted(found, key=lambda row: row.id, reverse=not wanted.array)[: min(limit, MAX_ROWS)]

    def job_numbers(self, wanted: JobFilter) -> list[int]:
        """Return the numbers of the IDs of all jobs of a filter."""
        return [ids.decode(row.id) or 0 for row in self._rows(JobRecord) if _wanted(row, wanted)]

    def grouped_jobs(self, wanted: JobFilter, by: str) -> list[tuple[int, str, str]]:
        """Return the number of the ID, the state and the group of all jobs of a filter."""
        kind, _, key = by.partition(":")

        def group(row: JobRecord) -> str:
            if kind == "label":
                return row.spec.labels.get(key, "")
            return row.submitted_by if kind == "submitted_by" else getattr(row.spec, kind)

        rows = (row for row in self._rows(JobRecord) if _wanted(row, wanted))
        return [(ids.decode(row.id) or 0, row.state.value, group(row)) for row in rows]

    def count_jobs(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count jobs by state."""
        _require_page(wanted)
        return dict(Counter(row.state for row in self._rows(JobRecord) if _wanted(row, wanted)))

    def array_at(self, job_id: str) -> JobRecord | None:
        """Return the array that reserved an id for one of its tasks."""
        for row in self._rows(JobRecord):
            if row.is_array and row.spec.array and 0 < ids.id_distance(row.id, job_id) <= row.spec.array.last + 1:
                return row
        return None

    def task_counts(self, arrays: Sequence[str]) -> dict[str, dict[JobState, int]]:
        """Count the stored tasks of arrays by state."""
        rows = self._rows(JobRecord)
        return {array: dict(Counter(row.state for row in rows if row.array == array)) for array in arrays}

    def task_clusters(self, arrays: Sequence[str]) -> dict[str, dict[tuple[str, ...], int]]:
        """Count the tasks of arrays that started, by the clusters of their latest attempt."""
        rows = [row for row in self._rows(JobRecord) if row.started_ns is not None]
        return {array: dict(Counter(row.clusters for row in rows if row.array == array)) for array in arrays}

    def live_jobs(self) -> Iterator[JobRecord]:
        """Return every unfinished job, old to new."""
        return iter(sorted((row for row in self._rows(JobRecord) if not row.state.final), key=lambda row: row.id))

    def held_attempts(self) -> Iterator[Attempt]:
        """Return every attempt that holds devices."""
        return iter(_by_key(row for row in self._rows(Attempt) if row.state.holds))

    def ended_uses(self, since_ns: int) -> Iterator[EndedUse]:
        """Return what attempts held that ended at a time or later."""
        for row in _by_key(self._rows(Attempt)):
            if row.ended_ns is not None and row.ended_ns >= since_ns and (job := self.job(row.job_id)):
                yield EndedUse(job.spec.queue, job.spec.tenant, row.amounts, row.created_ns, row.ended_ns)

    def held_uses(self, since_ns: int = 0, job_ids: Sequence[str] = (), *, ended: bool = False) -> Iterator[HeldUse]:
        """Return what attempts hold or held."""
        for row in self._rows(Attempt):
            job = self.job(row.job_id)
            if not job or (job_ids and not {job.id, job.array} & {*job_ids}):
                continue
            if (row.ended_ns is None and not ended) or (row.ended_ns is not None and row.ended_ns >= since_ns):
                where = (job.array or job.id, job.spec.queue, job.spec.tenant)
                task, key = job.id if job.array else "", (ids.decode(row.job_id) or 0, row.number)
                yield HeldUse(*where, row.amounts, row.placements, row.created_ns, row.ended_ns, task, key)

    def count_ended(self, before_ns: int) -> int:
        """Count the attempts that ended before a time."""
        return sum(row.ended_ns is not None and row.ended_ns < before_ns for row in self._rows(Attempt))

    def completed_runs(self, most: int) -> list[CompletedRun]:
        """Return the last attempts of the latest completed jobs."""
        runs = [
            CompletedRun(job.spec.tenant, job.submitted_by, job.spec.name, attempt.running_ns, job.ended_ns)
            for job in sorted(self._rows(JobRecord), key=lambda row: row.id, reverse=True)
            if job.state is JobState.COMPLETED and job.ended_ns is not None
            for attempt in self.attempts(job.id)
            if attempt.number == job.attempt and attempt.running_ns is not None
        ]
        return runs[:most]

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return a job's attempts."""
        return _by_key(row for row in self._rows(Attempt) if row.job_id == job_id)

    def pending_commands(self) -> Iterator[PendingCommand]:
        """Return the pending commands, oldest first."""
        order = lambda row: (row.created_ns, row.job_id, row.attempt, row.cluster, row.verb.value)  # noqa: E731
        return iter(sorted(self._rows(PendingCommand), key=order))

    def events(self, after: int, limit: int, *, tenant: str = "", job_id: str = "") -> list[Event]:
        """Return events in order."""
        found = (
            row
            for row in self._rows(Event)
            if row.id > after and (not tenant or row.tenant in (tenant, "")) and (not job_id or row.job_id == job_id)
        )
        return _by_key(found)[: min(limit, MAX_ROWS)]

    def fleet_events(self, limit: int) -> list[Event]:
        """Return the latest events of the fleet, newest first."""
        return _by_key(row for row in self._rows(Event) if not row.job_id)[::-1][: min(limit, MAX_ROWS)]

    def key(self, tenant: str, key: str) -> IdempotencyKey | None:
        """Return the use of an idempotency key."""
        return self._row(IdempotencyKey, (tenant, key))

    def tokens(self) -> list[Token]:
        """Return all tokens, old to new."""
        return sorted(self._rows(Token), key=lambda row: (row.created_ns, row.id))

    def last_uses(self) -> list[LastUse]:
        """Return the last use of each credential."""
        return sorted(self._rows(LastUse), key=lambda row: (row.name, row.issuer, row.token_id))

    def tenants(self) -> list[Tenant]:
        """Return all tenants."""
        return _by_key(self._rows(Tenant))

    def pools(self) -> list[Pool]:
        """Return all pools."""
        return _by_key(self._rows(Pool))

    def reservations(self) -> list[AdvanceReservation]:
        """Return all advance reservations."""
        return _by_key(self._rows(AdvanceReservation))

    def queues(self) -> list[Queue]:
        """Return all queues."""
        return _by_key(self._rows(Queue))

    def notifications(self) -> list[Notification]:
        """Return all notifications."""
        return _by_key(self._rows(Notification))

    def notifier_state(self) -> NotifierState | None:
        """Return the progress of the notifier."""
        return self._row(NotifierState, (1,))

    def delivery(self, delivery_id: str) -> Delivery | None:
        """Return a message that is not accepted."""
        return self._row(Delivery, (delivery_id,))

    def deliveries(
        self,
        *,
        tenant: str | None = None,
        receiver: str = "",
        state: DeliveryState | None = None,
        limit: int,
        before: str = "",
    ) -> list[Delivery]:
        """Return messages that are not accepted, new to old."""
        found = [
            row
            for row in self._rows(Delivery)
            if tenant in (None, row.tenant)
            and receiver in ("", row.receiver)
            and state in (None, row.state)
            and (not before or row.id < before)
        ]
        return sorted(found, key=lambda row: row.id, reverse=True)[: min(limit, MAX_ROWS)]

    def delivery_counts(self) -> dict[tuple[str, str, DeliveryState], int]:
        """Count messages that are not accepted."""
        return dict(Counter((row.tenant, row.receiver, row.state) for row in self._rows(Delivery)))

    def workdirs(self) -> list[WorkdirRecord]:
        """Return all stored archives."""
        return _by_key(self._rows(WorkdirRecord))

    def workdir_parts(self) -> list[WorkdirPart]:
        """Return all parts of archives without their content."""
        return [replace(row, content="") for row in _by_key(self._rows(WorkdirPart))]

    def workdir_part(self, tenant: str, digest: str, number: int) -> WorkdirPart | None:
        """Return a part of an archive."""
        return self._row(WorkdirPart, (tenant, digest, number))

    def cordons(self) -> list[Cordon]:
        """Return all cordons."""
        return _by_key(self._rows(Cordon))

    def saved_filters(self, owner: str = "") -> list[SavedFilter]:
        """Return the saved filters of a user, or all."""
        return _by_key(row for row in self._rows(SavedFilter) if owner in ("", row.owner))

    def unreadable(self) -> list[str]:
        """Return nothing: records in memory are not decoded."""
        return []

    def acknowledgements(self) -> list[Acknowledgement]:
        """Return the acknowledgements of alerts that have not cleared."""
        return _by_key(self._rows(Acknowledgement))

    def firing_alerts(self) -> list[FiringAlert]:
        """Return the firing alerts."""
        return _by_key(self._rows(FiringAlert))

    def cluster_facts(self) -> list[ClusterFacts]:
        """Return the facts of clusters that operators set."""
        return _by_key(self._rows(ClusterFacts))

    def job_uses(self, job_ids: Sequence[str]) -> list[JobUse]:
        """Return the stored use of the GPUs of some jobs."""
        return [row for row in _by_key(self._rows(JobUse)) if row.job_id in job_ids]

    def cluster_reports(self) -> list[ClusterReport]:
        """Return the connections to clusters."""
        return _by_key(self._rows(ClusterReport))

    def cluster_inventories(self) -> list[ClusterInventory]:
        """Return the inventories of clusters."""
        return _by_key(self._rows(ClusterInventory))

    def scale_windows(self) -> list[ScaleWindow]:
        """Return the recent numbers of replicas of all jobs that wait to shrink."""
        return _by_key(self._rows(ScaleWindow))

    def cluster_names(self) -> list[ClusterName]:
        """Return all current and former names of clusters."""
        return _by_key(self._rows(ClusterName))

    def network(self) -> NetworkRecord | None:
        """Return the wanted network between gateways."""
        return next(iter(self._rows(NetworkRecord)), None)

    def agents(self) -> list[AgentRecord]:
        """Return the records of agents."""
        return _by_key(self._rows(AgentRecord))

    def paths(self) -> list[PathRecord]:
        """Return the chosen and confirmed paths."""
        return _by_key(self._rows(PathRecord))

    def policies(self) -> list[PolicyRecord]:
        """Return all uploaded policies."""
        return _by_key(self._rows(PolicyRecord))

    def evaluations(self) -> list[EvaluationRecord]:
        """Return all stored evaluations."""
        return _by_key(self._rows(EvaluationRecord))

    def audit(self, before: int, limit: int, wanted: AuditFilter | None = None) -> list[AuditEntry]:
        """Return audit entries, new to old."""
        wanted = wanted or AuditFilter()
        found = _by_key(
            row
            for row in self._rows(AuditEntry)
            if (not before or row.id < before)
            and wanted.actor in ("", row.actor)
            and row.verb not in wanted.without
            and wanted.since_ns <= row.at_ns < (wanted.until_ns or row.at_ns + 1)
            and wanted.contains.casefold() in f"{row.verb} {row.target} {row.changes}".casefold()
        )
        return found[::-1][: min(limit, MAX_ROWS)]

    def cluster_samples(self, cluster: str, from_ns: int, limit: int, after: str = "") -> list[ClusterSample]:
        """Return samples, oldest first."""
        found = (
            row
            for row in self._rows(ClusterSample)
            if (row.at_ns, row.cluster) > (from_ns, after) and cluster in ("", row.cluster)
        )
        return _by_key(found)[: min(limit, MAX_ROWS)]

    def usage_samples(self, wanted: UsageFilter) -> list[UsageSample]:
        """Return samples of use, summed up over longer steps."""
        found: dict[Key, UsageSample] = {}
        for row in self._rows(UsageSample):
            if row.step_s != wanted.step_s or not wanted.from_ns <= row.at_ns < wanted.until_ns:
                continue
            names: dict[str, Any] = {each: getattr(row, each) for each in ("kind", "name", "tenant")}
            if any(getattr(wanted, each) not in ("", value) for each, value in names.items()):
                continue
            start_ns = row.at_ns - row.at_ns % (wanted.over_s * 1_000_000_000)
            name, tenant = (names[each] if each in wanted.by else "" for each in ("name", "tenant"))
            start = replace(row, step_s=wanted.over_s, at_ns=start_ns, name=name, tenant=tenant)
            key = start_ns, row.kind, start.name, start.tenant
            found[key] = start if key not in found else _summed(found[key], start)
        return [found[key] for key in sorted(found)]

    def link_samples(
        self, source: str, target: str, from_ns: int, limit: int, after: tuple[str, str] = ("", "")
    ) -> list[LinkSample]:
        """Return samples, oldest first."""
        found = (
            row
            for row in self._rows(LinkSample)
            if (row.at_ns, row.source, row.target) > (from_ns, *after)
            and source in ("", row.source)
            and target in ("", row.target)
        )
        return _by_key(found)[: min(limit, MAX_ROWS)]

    def shadows(self, queue: str, limit: int, before: int = 0) -> list[ShadowResult]:
        """Return comparisons, new to old."""
        rows = self._rows(ShadowResult)
        found = _by_key(row for row in rows if queue in ("", row.queue) and (not before or row.id < before))
        return found[::-1][: min(limit, MAX_ROWS)]

    def prune(self, retention: Retention, now_ns: int) -> dict[str, int]:
        """Remove the records that `retention` no longer covers."""
        self._answer()
        with self.database.lock:
            busy = {row.job_id for row in self._rows(Attempt) if row.state.holds}
            busy |= {row.job_id for row in self._rows(PendingCommand)}
            falls = {
                row.id
                for row in self._rows(JobRecord)
                if row.state is JobState.DELETED or _over(row, retention.jobs_ns, now_ns)
            }
            tasks = [row for row in self._rows(JobRecord) if row.array]
            over = {row.id for row in tasks if row.array in falls and row.state.final and row.id not in busy}
            needed = {row.array for row in tasks if row.id not in over}
            over |= falls - busy - needed - {row.id for row in tasks}
            newest = self.database.latest[Event]
            self._drop(JobUse, lambda row: row.job_id in over)
            return {
                "jobs": self._drop(JobRecord, lambda row: row.id in over),
                "attempts": self._drop(Attempt, lambda row: row.job_id in over),
                "events": self._drop(
                    Event,
                    lambda row: (
                        row.id != newest
                        and (row.job_id in over if row.job_id else _old(row.at_ns, retention.jobs_ns, now_ns))
                    ),
                ),
                "last_uses": self._drop(LastUse, lambda row: _old(row.used_ns, retention.audit_ns, now_ns)),
                "audit": self._drop(AuditEntry, lambda row: _old(row.at_ns, retention.audit_ns, now_ns)),
                "deliveries": self._drop(Delivery, lambda row: _old(row.created_ns, retention.jobs_ns, now_ns)),
                "keys": self._drop(IdempotencyKey, lambda row: _old(row.created_ns, retention.keys_ns, now_ns)),
                **{
                    name: self._drop(kind, lambda row: _old(row.at_ns, retention.samples_ns, now_ns))
                    for name, kind in (
                        ("cluster_samples", ClusterSample),
                        ("link_samples", LinkSample),
                        ("shadows", ShadowResult),
                    )
                },
                "usage_samples": self._drop(
                    UsageSample, lambda row: row.at_ns < now_ns - USAGE_STEPS_S[row.step_s] * 1_000_000_000
                ),
            }

    def ping(self) -> None:
        """Raise unless available."""
        self._answer()

    def close(self) -> None:
        """Do nothing."""

    def _answer(self) -> None:
        """Raise the error of `fail_next` or `set_available`."""
        if not self.database.available:
            raise UnavailableError("the store was set to be unavailable")
        if self._failures and not self._failures[0][1]:
            raise self._failures.pop(0)[0]

    def _row(self, kind: type[Kind], key: Key) -> Kind | None:
        self._answer()
        with self.database.lock:
            return cast("Kind | None", self._with_spec(self.database.rows[kind].get(key)))

    def _rows(self, kind: type[Kind]) -> list[Kind]:
        self._answer()
        with self.database.lock:
            return [self._with_spec(row) for row in self.database.rows[kind].values()]

    def _with_spec(self, row: Any) -> Any:  # noqa: ANN401  # rows of any kind
        """Return a task with the spec of its array, and any other row unchanged."""
        if not isinstance(row, JobRecord) or not row.array:
            return row
        array = self.database.rows[JobRecord].get((row.array,))
        return row if array is None or array.spec is row.spec else replace(row, spec=array.spec)

    def _drop(self, kind: type[Any], falls: Callable[[Any], bool]) -> int:
        """Remove the rows for which `falls` is true; return how many."""
        rows = self.database.rows[kind]
        gone = [key for key, row in rows.items() if falls(row)]
        for key in gone:
            del rows[key]
        return len(gone)

    def _store(self, change: Change) -> Outcome:
        """Store one change, or roll it back."""
        before: list[tuple[type[Any], Key, Any]] = []
        latest = dict(self.database.latest)
        try:
            for row in change.insert:
                self._write(row, before, new=True)
            for row in change.update:
                self._write(row, before, new=False)
            for row in change.put:
                self._write(row, before, new=None)
            for row in change.delete:
                key = KEYS[type(row)](row)
                before.append((type(row), key, self.database.rows[type(row)].pop(key, None)))
        except _Conflict:
            self.database.latest = latest
            for kind, key, row in reversed(before):
                if row is None:
                    self.database.rows[kind].pop(key, None)
                else:
                    self.database.rows[kind][key] = row
            return Outcome.CONFLICT
        return Outcome.STORED

    def _write(self, row: Record, before: list[tuple[type[Any], Key, Any]], new: bool | None) -> None:
        """Write one row; `new` states whether it must be there (False), must not (True), or may (None)."""
        kind = type(row)
        _require_id(row)
        if isinstance(row, NUMBERED):
            row = row if row.id else replace(row, id=self.database.latest[kind] + 1)
            self.database.latest[kind] = max(self.database.latest[kind], row.id)
        key, rows = KEYS[kind](row), self.database.rows[kind]
        old = rows.get(key)
        if new is not None and new is (old is not None):
            raise _Conflict
        if (
            new is False
            and isinstance(row, JobRecord)
            and isinstance(old, JobRecord)
            and old.version != row.version - 1
        ):
            raise _Conflict
        before.append((kind, key, old))
        rows[key] = row


def _require_id(row: Record) -> None:
    """Reject an invalid id of a job, as databases with numeric ids do."""
    if isinstance(row, JobRecord):
        job_id = row.id
    else:
        job_id = getattr(row, "job_id", "")
        if not job_id and isinstance(row, Event):
            return
    if isinstance(row, JobRecord | Attempt | PendingCommand | Event | IdempotencyKey) and not ids.decode(job_id):
        raise InvariantError(f"{job_id!r} is not an id of a job; draw it from seaway.domain.job_spec.JobIds")


def _require_page(wanted: JobFilter) -> None:
    """Reject a page before an invalid id."""
    if wanted.before and not ids.decode(wanted.before):
        raise RejectedError(f"{wanted.before!r} is not an id of a job", where="before")


def _wanted(row: JobRecord, wanted: JobFilter) -> bool:
    """Report whether a filter selects a job."""
    states = wanted.states or frozenset(JobState) - {JobState.DELETED}
    checks = (
        row.state in states,
        wanted.tenant in ("", row.spec.tenant),
        wanted.queue in ("", row.spec.queue),
        not wanted.cluster or wanted.cluster in row.clusters,
        wanted.name in row.spec.name,
        wanted.named in ("", row.spec.name),
        wanted.submitted_by in ("", row.submitted_by),
        not wanted.ids or row.id in wanted.ids,
        wanted.label is None or row.spec.labels.get(wanted.label[0]) == wanted.label[1],
        wanted.submitted_from_ns is None or row.submitted_ns >= wanted.submitted_from_ns,
        wanted.submitted_until_ns is None or row.submitted_ns < wanted.submitted_until_ns,
        wanted.ended_from_ns is None or (row.ended_ns or 0) >= wanted.ended_from_ns,
        wanted.ended_until_ns is None or (row.ended_ns is not None and row.ended_ns < wanted.ended_until_ns),
        not wanted.before or (row.id > wanted.before if wanted.array else row.id < wanted.before),
        not wanted.predecessor or any(each.job == wanted.predecessor for each in row.spec.after),
        wanted.array in (None, row.array),
    )
    return all(checks)


def _newest_first(rows: Iterable[JobRecord]) -> list[JobRecord]:
    return sorted(rows, key=lambda row: row.id, reverse=True)


def _sort_value(row: JobRecord, wanted: JobFilter) -> Any:  # noqa: ANN401  # a number or a text
    """Return the value by which a list is sorted; None for a job without one."""
    started_ns, ended_ns = row.started_ns, row.ended_ns
    until_ns = wanted.now_ns if ended_ns is None else ended_ns
    values: dict[JobSort, Any] = {
        JobSort.NAME: row.spec.name,
        JobSort.QUEUE: row.spec.queue,
        JobSort.TENANT: row.spec.tenant,
        JobSort.SUBMITTED_BY: row.submitted_by,
        JobSort.STATE: row.state.value,
        JobSort.SUBMITTED: row.submitted_ns,
        JobSort.STARTED: started_ns,
        JobSort.ENDED: ended_ns,
        JobSort.DURATION: None if started_ns is None else until_ns - started_ns,
    }
    return values[wanted.sort] if wanted.sort else None


def _summed(one: UsageSample, other: UsageSample) -> UsageSample:
    """Return one sample for both, with their sums and the longest wait."""
    fields = ("samples", "gpu_milli", "gpu_milli_used", "measured", "gpu_milli_measured", "running", "waiting")
    sums = {name: getattr(one, name) + getattr(other, name) for name in (*fields, "started", "waited_s")}
    return replace(one, **sums, longest_wait_s=max(one.longest_wait_s, other.longest_wait_s))


def _by_key(rows: Iterable[Kind]) -> list[Kind]:
    return sorted(rows, key=lambda row: KEYS[type(row)](row))


def _old(at_ns: int, keep_ns: int | None, now_ns: int) -> bool:
    return keep_ns is not None and at_ns < now_ns - keep_ns


def _over(job: JobRecord, keep_ns: int | None, now_ns: int) -> bool:
    """Report whether the retention of a finished job is over."""
    ended_ns = job.changed_ns if job.ended_ns is None else job.ended_ns
    return job.state.final and _old(ended_ns, keep_ns, now_ns)
