"""Operations on jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from seaway.application.changes import Change, Outcome
from seaway.application.control.tenancy import Names
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import Attempt, AuditEntry, IdempotencyKey, JobRecord
from seaway.application.transitions import ACCEPTED, accepted, moved, respecified, stepped, stopped
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnknownError
from seaway.domain.job_spec import NO_CLUSTER, JobIds, JobSpec
from seaway.domain.job_state import JobState

TRIES = 5
"""Number of retries of an operation after concurrent changes."""

Noted = Callable[[str], AuditEntry]
_Step = Callable[[JobRecord, Attempt | None, int], tuple[JobRecord, Change]]


@dataclass(frozen=True, slots=True)
class SubmitKey:
    """Idempotency key. A repeated submit with the same body returns the existing job."""

    key: str
    digest: str


class Jobs:
    """Submission, changes and termination of jobs.

    Parameters
    ----------
    names
        Queues and quotas, with the numbers of waiting jobs.
    """

    def __init__(self, store: Store, writer: Writer, clock: Clock, random: Random, names: Names) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._ids = JobIds(random)
        self._names = names

    async def submit(
        self, spec: JobSpec, actor: str, key: SubmitKey | None = None, noted: Noted | None = None
    ) -> tuple[JobRecord, bool]:
        """Store a job that passed admission. Callers check `replayed` first.

        Parameters
        ----------
        noted
            Returns the audit entry to store together with a new job.

        Returns
        -------
        tuple of JobRecord and bool
            The job, and whether it is new; False if `key` already belongs to the job.

        Raises
        ------
        ConflictError
            If `key` was used with another body, or for a deleted job, or a quota has no room for another waiting job.
        UnavailableError
            If the job could not be stored.
        """
        for _ in range(TRIES):
            now_ns = self._clock.now_ns()
            job = JobRecord(
                id=self._ids.generate(now_ns),
                spec=spec,
                state=JobState.PENDING,
                submitted_ns=now_ns,
                changed_ns=now_ns,
                submitted_by=actor,
                reason=ACCEPTED,
            )
            change = accepted(job)
            if key:
                change.insert.append(IdempotencyKey(spec.tenant, key.key, key.digest, job.id, now_ns))
            if noted:
                change.insert.append(noted(job.id))
            self._names.count_waiting(job)
            outcome = None
            try:
                outcome = await self._writer.stored_soon(change)
            finally:
                if outcome is not Outcome.STORED:
                    self._names.waiting.drop(job.id)
            if outcome is Outcome.STORED:
                return job, True
            if key and (known := await asyncio.to_thread(self._used, spec.tenant, key)):
                return known, False
        raise ConflictError("the job could not be stored; send it again")

    async def replayed(self, tenant: str, key: SubmitKey) -> JobRecord | None:
        """Return the job of an already used key; None for a new key.

        Raises
        ------
        ConflictError
            If the key was used with another body, or for a deleted job.
        """
        return await asyncio.to_thread(self._used, tenant, key)

    def change(
        self, job_id: str, spec: JobSpec, actor: str, version: int | None = None, changes: str = ""
    ) -> JobRecord:
        """Change the spec of a job. A running job restarts if necessary.

        Parameters
        ----------
        version
            Version that the change is based on; None for any.
        changes
            Description of the change for its event; empty for none.

        Raises
        ------
        StaleError
            If the job has another version.
        ConflictError
            If the job is finished.
        """

        def step(job: JobRecord, attempt: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            require_changeable(job, spec)
            may_stay = attempt is None or spec.queue == job.spec.queue or self._reaches(spec.queue, attempt.clusters)
            return respecified(job, attempt, spec, actor, now_ns, may_stay=may_stay, changes=changes)

        return self._take(job_id, version, step)

    def cancel(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Cancel a job; its record remains. A second call has no effect."""
        return self._stop(job_id, JobState.CANCELLED, actor, reason or f"cancelled by {actor}", version)

    def suspend(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Stop a job until a user resumes it."""
        return self._stop(job_id, JobState.SUSPENDED, actor, reason or f"suspended by {actor}", version)

    def delete(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """End a job if it is unfinished, and remove it from lists."""
        return self._stop(job_id, JobState.DELETED, actor, reason or f"deleted by {actor}", version)

    def resume(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Return a suspended job to its queue."""

        def step(job: JobRecord, _: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            if job.state is not JobState.SUSPENDED:
                raise ConflictError(f"the job is {job.state.value}; only a suspended job can be resumed")
            after = moved(job, JobState.QUEUED, reason or f"resumed by {actor}", now_ns)
            return after, stepped(after, actor)

        return self._take(job_id, version, step)

    def find(self, job_id: str) -> JobRecord:
        """Return a job.

        Raises
        ------
        UnknownError
            If the job does not exist.
        """
        job = self._store.job(job_id)
        if job is None or job.state is JobState.DELETED:
            raise UnknownError(f"job {job_id!r} not found")
        return job

    def _stop(self, job_id: str, state: JobState, actor: str, reason: str, version: int | None) -> JobRecord:
        def step(job: JobRecord, attempt: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            if job.state is state:
                return job, Change()
            return stopped(job, attempt, state, reason, actor, now_ns)

        return self._take(job_id, version, step)

    def _take(self, job_id: str, version: int | None, step: _Step) -> JobRecord:
        """Apply a step to the stored job; retry after concurrent changes."""
        for _ in range(TRIES):
            job = self.find(job_id)
            if version is not None and job.version != version:
                raise StaleError(f"the job is at version {job.version}, not {version}; read it again")
            attempts = self._store.attempts(job_id)
            after, change = step(job, attempts[-1] if attempts else None, self._clock.now_ns())
            if not change or self._writer.commit([change]) == [Outcome.STORED]:
                return after
        raise ConflictError("the job changes too fast; try again")

    def _reaches(self, queue: str, clusters: Iterable[str]) -> bool:
        """Report whether the pool of a queue contains all given clusters; False for a missing pool."""
        pools = {pool.name: pool.clusters for pool in self._store.pools()}
        allowed = next(
            (pools.get(each.pool, NO_CLUSTER) for each in self._store.queues() if each.name == queue), NO_CLUSTER
        )
        return not allowed or allowed.issuperset(clusters)

    def _used(self, tenant: str, key: SubmitKey) -> JobRecord | None:
        used = self._store.key(tenant, key.key)
        if used is None:
            return None
        if used.digest != key.digest:
            raise ConflictError(f"the idempotency key {key.key!r} was used for another request")
        job = self._store.job(used.job_id)
        if job is None:
            raise ConflictError(f"the idempotency key {key.key!r} was used for a deleted job; use another")
        return job


def require_changeable(job: JobRecord, spec: JobSpec) -> None:
    """Check that a job can change to a new spec.

    Raises
    ------
    ConflictError
        If the job is finished.
    RejectedError
        If the change moves it to another tenant.
    """
    if job.state.final:
        raise ConflictError(f"the job is {job.state.value}; a finished job cannot change; submit it again")
    if spec.tenant != job.spec.tenant:
        raise RejectedError("a job stays with its tenant", where="tenant")
