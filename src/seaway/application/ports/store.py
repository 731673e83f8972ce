"""Interface to the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from seaway.application.changes import Change, Outcome
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
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.notifications import Delivery, DeliveryState, Notification, NotifierState
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Pool, Tenant

Row = TypeVar("Row")

MAX_ROWS = 1000
"""Maximum number of rows of one query."""


class JobSort(Enum):
    """Order of a list of jobs. Jobs without a value are last."""

    NAME = "name"
    QUEUE = "queue"
    TENANT = "tenant"
    SUBMITTED_BY = "submitted_by"
    STATE = "state"
    SUBMITTED = "submitted"
    STARTED = "started"
    ENDED = "ended"
    DURATION = "duration"
    """Time from the first start to the end, or until now."""
    GPU_HOURS = "gpu_hours"
    """Not an order of the store, like `COST`: see `seaway.application.fleet.costs`."""
    COST = "cost"


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter of audit entries. Empty fields do not filter.

    Attributes
    ----------
    actor
        Name of the caller.
    contains
        Part of the operation, the object or the changes, in upper or lower case.
    since_ns, until_ns
        Begin of the time, and its end, which is not part of it; 0 for no bound.
    without
        Verbs to leave out.
    """

    actor: str = ""
    contains: str = ""
    since_ns: int = 0
    until_ns: int = 0
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Filter of jobs. None and empty fields do not filter.

    Deleted jobs are excluded unless `states` includes them.

    Attributes
    ----------
    name
        Substring of the name.
    named
        Exact name.
    label
        Key and value of a label.
    before
        Exclusive bound of the job ID, for the next page of a list.
    predecessor
        ID of a job that they come after.
    array
        ID of the array of tasks; empty for jobs that are no tasks, None for both.
    sort, descending
        Order of the list; None for the default.
    offset
        Number of jobs before the page, in an order other than the default.
    now_ns
        Current time, for durations of unfinished jobs.
    ids
        IDs of the jobs, at most `MAX_ROWS`.
    """

    tenant: str = ""
    queue: str = ""
    states: frozenset[JobState] = frozenset()
    cluster: str = ""
    name: str = ""
    named: str = ""
    submitted_by: str = ""
    label: tuple[str, str] | None = None
    submitted_from_ns: int | None = None
    submitted_until_ns: int | None = None
    before: str = ""
    predecessor: str = ""
    array: str | None = ""
    ended_from_ns: int | None = None
    ended_until_ns: int | None = None
    sort: JobSort | None = None
    descending: bool = False
    offset: int = 0
    now_ns: int = 0
    ids: tuple[str, ...] = ()


USAGE_STEPS_S: Mapping[int, int] = {60: 6 * 3600, 900: 2 * 86_400, 3600: 35 * 86_400}
"""Lengths of the steps of stored use, and the age at which they are removed, seconds.

A longer step is made from stored shorter ones once it is over.
"""


@dataclass(frozen=True, slots=True)
class UsageFilter:
    """Filter of samples of use, and their sums.

    Attributes
    ----------
    step_s
        Length of the stored steps.
    from_ns, until_ns
        First start of a stored step, and the end of their starts, exclusive.
    over_s
        Length of the returned steps. They start at multiples of it since 1970.
    kind, name, tenant
        Only those of a kind, a name or a tenant; empty for all.
    by
        Whether sums are separate by ``name`` and by ``tenant``; the others are empty.
    """

    step_s: int
    from_ns: int
    until_ns: int
    over_s: int
    kind: str = ""
    name: str = ""
    tenant: str = ""
    by: tuple[str, ...] = ("name", "tenant")


@dataclass(frozen=True, slots=True)
class Retention:
    """Maximum age of rows in nanoseconds; None for no limit.

    Attributes
    ----------
    jobs_ns
        Finished jobs with attempts and events, from the end of the job. Deleted jobs are removed immediately.
    audit_ns, samples_ns, keys_ns
        Entries of the audit log and last uses of credentials; samples of clusters, links and shadows; idempotency keys.
    """

    jobs_ns: int | None
    audit_ns: int | None
    samples_ns: int | None
    keys_ns: int | None


class Store(Protocol):
    """Storage of records. Thread-safe.

    Each method raises `UnavailableError` while the database does not respond or has no space, and recovers with the
    database.
    """

    def lead(self, owner: str) -> None:
        """Become the only writing process. `commit` raises InvariantError in the previous one.

        Also creates the default tenant, pool and queue if they do not exist.
        """

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes in one durable transaction. Each change is stored in full or not at all.

        Raises
        ------
        UnavailableError
            If it is unknown whether anything was stored.
        InvariantError
            If another process is the leader.
        """

    def touch(self) -> None:
        """Write to the database without a change, to learn whether it stores changes. Raises as `commit`."""

    def last_event(self, before_ns: int | None = None) -> int:
        """Return the ID of the latest event, or of the latest before a time; 0 if there is none."""

    def job(self, job_id: str) -> JobRecord | None:
        """Return a job."""

    def known(self, job_ids: Sequence[str]) -> dict[str, int | None]:
        """Return the existing ones of these jobs with their end times; None for an unfinished job.

        Any number is allowed.

        Deleted jobs are included until they are pruned.
        """

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobRecord]:
        """Return up to `limit` jobs: newest first, tasks of an array by index, or in the order of the filter."""

    def job_numbers(self, wanted: JobFilter) -> list[int]:
        """Return the numbers of the IDs (`seaway.domain.job_spec`) of all jobs of a filter, in no order.

        The order and the offset of the filter do not apply.
        """

    def grouped_jobs(self, wanted: JobFilter, by: str) -> list[tuple[int, str, str]]:
        """Return the number of the ID, the state and the group of all jobs of a filter, in no order.

        Parameters
        ----------
        by
            ``submitted_by``, ``queue`` or ``tenant``, or ``label:`` and the key of a label. The group of jobs without
            the label has an empty name.
        """

    def count_jobs(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count jobs by state."""

    def array_at(self, job_id: str) -> JobRecord | None:
        """Return the array that reserved an ID for one of its tasks, whether the task is stored or not."""

    def task_counts(self, arrays: Sequence[str]) -> dict[str, dict[JobState, int]]:
        """Count the stored tasks of arrays by state."""
        ...

    def task_clusters(self, arrays: Sequence[str]) -> dict[str, dict[tuple[str, ...], int]]:
        """Count the tasks of arrays that started, by the clusters of their latest attempt."""

    def live_jobs(self) -> Iterator[JobRecord]:
        """Return all unfinished jobs, oldest first."""

    def held_attempts(self) -> Iterator[Attempt]:
        """Return all attempts with allocations, by job and number."""

    def ended_uses(self, since_ns: int) -> Iterator[EndedUse]:
        """Return what attempts held that ended at a time or later."""

    def held_uses(self, since_ns: int = 0, job_ids: Sequence[str] = (), *, ended: bool = False) -> Iterator[HeldUse]:
        """Return what attempts hold, and what those held that ended at a time or later, in no order.

        Parameters
        ----------
        job_ids
            IDs of at most `MAX_ROWS` jobs; arrays have the attempts of their tasks. Empty for all jobs.
        ended
            Whether to return only those of ended attempts.
        """

    def count_ended(self, before_ns: int) -> int:
        """Count the attempts that ended before a time."""

    def completed_runs(self, most: int) -> list[CompletedRun]:
        """Return the last attempts of the `most` latest completed jobs, newest job first.

        Attempts that were not observed running are omitted.
        """

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return the attempts of a job by number."""

    def pending_commands(self) -> Iterator[PendingCommand]:
        """Return all pending commands, oldest first."""

    def events(self, after: int, limit: int, *, tenant: str = "", job_id: str = "") -> list[Event]:
        """Return events with an ID above `after`, in order; optionally of one tenant and the fleet, or of one job."""

    def fleet_events(self, limit: int) -> list[Event]:
        """Return the latest events of the fleet, newest first."""

    def key(self, tenant: str, key: str) -> IdempotencyKey | None:
        """Return the record of a used idempotency key."""

    def tokens(self) -> list[Token]:
        """Return all tokens, including revoked ones."""

    def last_uses(self) -> list[LastUse]:
        """Return the last use of each credential, by name, issuer and token."""

    def tenants(self) -> list[Tenant]:
        """Return all tenants, by name."""

    def pools(self) -> list[Pool]:
        """Return all pools, by name."""

    def queues(self) -> list[Queue]:
        """Return all queues, by name."""

    def reservations(self) -> list[AdvanceReservation]:
        """Return all advance reservations, by name."""

    def notifications(self) -> list[Notification]:
        """Return all notifications, by tenant and name."""

    def notifier_state(self) -> NotifierState | None:
        """Return the progress of the notifier; None if it never ran."""

    def delivery(self, delivery_id: str) -> Delivery | None:
        """Return a message; None if it does not exist."""

    def deliveries(
        self,
        *,
        tenant: str | None = None,
        receiver: str = "",
        state: DeliveryState | None = None,
        limit: int,
        before: str = "",
    ) -> list[Delivery]:
        """Return messages, newest first.

        Parameters
        ----------
        tenant
            Tenant of the notification; None for all.
        receiver
            Name of the notification; empty for all.
        state
            State; None for all.
        before
            Exclusive bound of the ID, for the next page; empty for the first one.
        """

    def delivery_counts(self) -> dict[tuple[str, str, DeliveryState], int]:
        """Count messages by tenant, receiver and state."""

    def workdirs(self) -> list[WorkdirRecord]:
        """Return all stored archives, by tenant and digest."""

    def workdir_parts(self) -> list[WorkdirPart]:
        """Return all parts of archives without their content, by tenant, digest and number."""

    def workdir_part(self, tenant: str, digest: str, number: int) -> WorkdirPart | None:
        """Return a part of an archive."""

    def cordons(self) -> list[Cordon]:
        """Return all cordons."""

    def saved_filters(self, owner: str = "") -> list[SavedFilter]:
        """Return the saved filters of a user, or all, by owner and name."""

    def unreadable(self) -> list[str]:
        """Return tables and keys of damaged rows, with the names of jobs. They are left out of lists.

        Rows that were repaired or removed are forgotten, some at each call.
        """

    def acknowledgements(self) -> list[Acknowledgement]:
        """Return the acknowledgements of alerts that have not cleared."""

    def firing_alerts(self) -> list[FiringAlert]:
        """Return the alerts that fired when they were last stored."""

    def cluster_facts(self) -> list[ClusterFacts]:
        """Return the facts of clusters that operators set."""

    def cluster_reports(self) -> list[ClusterReport]:
        """Return the connections to clusters, as last stored."""

    def cluster_inventories(self) -> list[ClusterInventory]:
        """Return the last reported inventories of clusters."""

    def scale_windows(self) -> list[ScaleWindow]:
        """Return the recent numbers of replicas of all jobs that wait to shrink, by job."""

    def job_uses(self, job_ids: Sequence[str]) -> list[JobUse]:
        """Return the stored use of the GPUs of some jobs, by job."""

    def cluster_names(self) -> list[ClusterName]:
        """Return all current and former names of clusters, by name."""

    def network(self) -> NetworkRecord | None:
        """Return the network configuration; None if none was ever stored."""

    def agents(self) -> list[AgentRecord]:
        """Return the records of all agents that ever reported, by gateway."""

    def paths(self) -> list[PathRecord]:
        """Return the selected and confirmed paths, by source and target."""

    def policies(self) -> list[PolicyRecord]:
        """Return all uploaded trained policies, by name."""

    def evaluations(self) -> list[EvaluationRecord]:
        """Return all stored evaluations, by name."""

    def audit(self, before: int, limit: int, wanted: AuditFilter | None = None) -> list[AuditEntry]:
        """Return matching audit entries with an ID below `before` (0 for the latest), newest first."""

    def cluster_samples(self, cluster: str, from_ns: int, limit: int, after: str = "") -> list[ClusterSample]:
        """Return samples of a cluster (all for an empty name) since a time, oldest first and by cluster.

        At exactly `from_ns`, only clusters whose names sort after `after` are included.
        """

    def usage_samples(self, wanted: UsageFilter) -> list[UsageSample]:
        """Return samples of use, summed up over longer steps, by start, kind, name and tenant."""

    def link_samples(
        self, source: str, target: str, from_ns: int, limit: int, after: tuple[str, str] = ("", "")
    ) -> list[LinkSample]:
        """Return samples of a link (any end for an empty name) since a time, oldest first and by its ends.

        At exactly `from_ns`, only links whose ends sort after `after` are included.
        """

    def shadows(self, queue: str, limit: int, before: int = 0) -> list[ShadowResult]:
        """Return comparisons of a queue (all for an empty name) with an ID below `before` (0 for all), newest first."""

    def prune(self, retention: Retention, now_ns: int) -> dict[str, int]:
        """Remove rows older than `retention`, in small transactions; return the number of rows by table.

        Samples of use are removed at the ages of `USAGE_STEPS_S`.
        Unfinished jobs, and attempts with allocations, stay regardless of age.
        """

    def ping(self) -> None:
        """Check that the database responds; raise `UnavailableError` otherwise."""

    def close(self) -> None:
        """Close the database."""
