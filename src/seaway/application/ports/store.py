"""Where everything is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from seaway.application.changes import Change, Outcome
from seaway.application.records import (
    AgentRecord,
    Attempt,
    AuditEntry,
    ClusterName,
    ClusterSample,
    Cordon,
    EvaluationRecord,
    Event,
    IdempotencyKey,
    JobRecord,
    LinkSample,
    NetworkRecord,
    PathRecord,
    PendingCommand,
    PolicyRecord,
    ShadowResult,
    Token,
)
from seaway.domain.job_state import JobState
from seaway.domain.tenancy import Pool, Queue, Tenant

Row = TypeVar("Row")

MAX_ROWS = 1000
"""Rows that one question returns at most."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are asked for; what is None or empty does not filter.

    Deleted jobs are left out unless `states` asks for them.

    Attributes
    ----------
    name
        A part of the name.
    named
        The whole name.
    label
        A label's key and value.
    before
        Only jobs whose id sorts before this one: the next page of a list that goes from new to old.
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


@dataclass(frozen=True, slots=True)
class Retention:
    """Rows older than this go, nanoseconds; None keeps them for ever.

    Attributes
    ----------
    jobs_ns
        Jobs that are over, with attempts and events, counted from their end. Deleted ones go at once.
    audit_ns, samples_ns, keys_ns
        Entries of the audit log; samples of clusters, links and shadows; idempotency keys.
    """

    jobs_ns: int | None
    audit_ns: int | None
    samples_ns: int | None
    keys_ns: int | None


class Store(Protocol):
    """Keeps records. Every method may be called from any thread.

    Each raises `UnavailableError` while the database does not answer or has no room, and works again
    when it does.
    """

    def lead(self, owner: str) -> None:
        """Become the one process that writes; whoever was it before gets InvariantError from `commit`.

        Also puts the default tenant, pool and queue in place when they are not there.
        """

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Store changes in one transaction that outlives a crash, each wholly or not at all.

        Raises
        ------
        UnavailableError
            Nothing is known to be stored.
        InvariantError
            Another process writes now.
        """

    def last_event(self) -> int:
        """Return the id of the latest event; 0 without one."""

    def job(self, job_id: str) -> JobRecord | None:
        """Return a job."""

    def known(self, job_ids: Sequence[str]) -> dict[str, int | None]:
        """Return which of these jobs there are, however many, with when they ended; None for one that is not over.

        Deleted jobs are among them until they are pruned.
        """

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobRecord]:
        """Return jobs from new to old, `limit` at most."""

    def count_jobs(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count jobs by state."""

    def live_jobs(self) -> Iterator[JobRecord]:
        """Return every unfinished job, old to new."""

    def held_attempts(self) -> Iterator[Attempt]:
        """Return every attempt that holds devices, by job and number."""

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return a job's attempts by number."""

    def pending_commands(self) -> Iterator[PendingCommand]:
        """Return everything that clusters are still to be told, oldest first."""

    def events(self, after: int, limit: int, *, tenant: str = "", job_id: str = "") -> list[Event]:
        """Return events with an id above `after`, in order; of one tenant and the fleet, or of one job."""

    def key(self, tenant: str, key: str) -> IdempotencyKey | None:
        """Return what an idempotency key was used for."""

    def tokens(self) -> list[Token]:
        """Return all tokens, revoked ones too."""

    def tenants(self) -> list[Tenant]:
        """Return all tenants, by name."""

    def pools(self) -> list[Pool]:
        """Return all pools, by name."""

    def queues(self) -> list[Queue]:
        """Return all queues, by name."""

    def cordons(self) -> list[Cordon]:
        """Return all cordons."""

    def cluster_names(self) -> list[ClusterName]:
        """Return all names that clusters have or had, by name."""

    def network(self) -> NetworkRecord | None:
        """Return how the network between gateways is meant to be; None when that was never said."""

    def agents(self) -> list[AgentRecord]:
        """Return what is known of every agent that reported, by gateway."""

    def paths(self) -> list[PathRecord]:
        """Return which paths were chosen or confirmed, by source and target."""

    def policies(self) -> list[PolicyRecord]:
        """Return all trained policies that were brought, by name."""

    def evaluations(self) -> list[EvaluationRecord]:
        """Return all evaluations that are kept, by name."""

    def audit(self, before: int, limit: int) -> list[AuditEntry]:
        """Return audit entries with an id below `before` (0 for the latest), new to old."""

    def cluster_samples(self, cluster: str, from_ns: int, limit: int, after: str = "") -> list[ClusterSample]:
        """Return samples of a cluster (all for an empty name) from a moment on, oldest first and by cluster.

        Of that first moment, only those of clusters whose names come behind `after`.
        """

    def link_samples(
        self, source: str, target: str, from_ns: int, limit: int, after: tuple[str, str] = ("", "")
    ) -> list[LinkSample]:
        """Return samples of a link (any end for an empty name) from a moment on, oldest first and by its ends.

        Of that first moment, only those of links whose ends come behind `after`.
        """

    def shadows(self, queue: str, limit: int, before: int = 0) -> list[ShadowResult]:
        """Return comparisons of a queue (all for an empty name), new to old, with an id below `before` (0 for all)."""

    def prune(self, retention: Retention, now_ns: int) -> dict[str, int]:
        """Remove what is older than `retention` allows, in small transactions; return rows by table.

        Unfinished jobs, and attempts that hold devices, stay however old they are.
        """

    def ping(self) -> None:
        """Raise `UnavailableError` unless the database answers."""

    def close(self) -> None:
        """Let go of the database."""
