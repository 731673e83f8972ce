"""Operations on jobs."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from types import MappingProxyType

from seaway.application.changes import Change, Outcome
from seaway.application.control.tenancy import Names
from seaway.application.pairs import Copy, both_respecified, switched
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import JobFilter, Store
from seaway.application.records import NS_PER_S, AuditEntry, IdempotencyKey
from seaway.application.transitions import (
    ACCEPTED,
    ELSEWHERE,
    accepted,
    awaits_text,
    job_event,
    later_task_reason,
    moved,
    renewed,
    respecified,
    respecified_array,
    stepped,
    stopped,
)
from seaway.application.writer import Writer
from seaway.domain.arrays import indexes_text, stored_indexes, taken, without
from seaway.domain.attempt import Attempt
from seaway.domain.dependencies import cycle_in
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnknownError
from seaway.domain.job_record import JobRecord, Pair
from seaway.domain.job_spec import NO_CLUSTER, JobIds, JobSpec, decode, following_id, id_distance
from seaway.domain.job_state import FOLLOWS, JobState
from seaway.domain.reasons import Reason, also

TRIES = 5
"""Number of retries of an operation after concurrent changes."""

NO_JOBS: Mapping[str, JobRecord] = MappingProxyType({})

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
    obstacle
        Returns the reason why a service cannot switch to its standby, which is None if it is cold; empty if it can.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        random: Random,
        names: Names,
        obstacle: Callable[[JobRecord, JobRecord | None], str],
    ) -> None:
        self._obstacle = obstacle
        self._store = store
        self._writer = writer
        self._clock = clock
        self._ids = JobIds(random)
        self._names = names

    async def submit(
        self,
        specs: Sequence[JobSpec],
        actor: str,
        key: SubmitKey | None = None,
        noted: Noted | None = None,
        known: Mapping[str, JobRecord] = NO_JOBS,
    ) -> tuple[list[JobRecord], bool]:
        """Store jobs that passed admission, all or none. Callers check `replayed` first.

        Parameters
        ----------
        noted
            Returns the audit entry to store together with new jobs.
        known
            Stored predecessors of the jobs, by ID.

        Returns
        -------
        tuple of list of JobRecord and bool
            The jobs, and whether they are new; False if `key` already belongs to them.

        Raises
        ------
        ConflictError
            If `key` was used with another body, or for a deleted job, or a quota has no room for another waiting job.
        RejectedError
            If jobs come after each other in a cycle, or after a name that several of them have.
        UnavailableError
            If the jobs could not be stored.
        """
        require_order(specs)
        for _ in range(TRIES):
            now_ns = self._clock.now_ns()
            first = self._ids.generate(now_ns, sum(map(_reserved, specs)))
            jobs = _new_jobs(specs, first, actor, now_ns, known)
            change = Change()
            for job in jobs:
                change.add(accepted(job))
            if key:
                change.insert.append(IdempotencyKey(specs[0].tenant, key.key, key.digest, jobs[0].id, now_ns))
            if noted:
                change.insert.append(noted(jobs[0].id))
            outcome = None
            try:
                for job in jobs:
                    self._names.count_waiting(job)
                outcome = await self._writer.stored_soon(change)
            finally:
                if outcome is not Outcome.STORED:
                    for job in jobs:
                        self._names.waiting.drop(job.id)
            if outcome is Outcome.STORED:
                return jobs, True
            if key and (found := await self.replayed(key, specs)):
                return found, False
        raise ConflictError(Reason("job_not_stored"))

    async def replayed(self, key: SubmitKey, specs: Sequence[JobSpec]) -> list[JobRecord]:
        """Return the jobs of an already used key; none for a new key.

        Raises
        ------
        ConflictError
            If the key was used with another body, or for a deleted job.
        """
        return await asyncio.to_thread(self._used, key, specs)

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
            self._names.waiting.require_size(job, spec)
            outputs = job.spec.data.others
            if spec.after != job.spec.after:
                self._require_no_cycle(job, spec)
                job, outputs = replace(job, awaits=spec.after, reason=awaits_text(spec.after, NO_JOBS)), ()
            wanted = replace(spec, data=replace(spec.data, others=outputs))
            if job.is_array:
                return respecified_array(job, wanted, actor, now_ns, changes)
            may_stay = self._may_stay(job, attempt, wanted)
            if (other := self._other(job)) and not other[0].state.final:
                stay = may_stay, self._may_stay(*other, wanted)
                asked = job, attempt
                return both_respecified(asked, other, wanted, actor, now_ns, may_stay=stay, changes=changes)
            wanted = replace(wanted, copy_of=job.spec.copy_of)
            return respecified(job, attempt, wanted, actor, now_ns, may_stay=may_stay, changes=changes)

        return self._take(job_id, version, step)

    def cancel(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Cancel a job; its record remains. A second call has no effect."""
        return self._stop(job_id, JobState.CANCELLED, actor, reason or Reason("cancelled", who=actor), version)

    def suspend(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Stop a job until a user resumes it."""
        return self._stop(job_id, JobState.SUSPENDED, actor, reason or Reason("suspended", who=actor), version)

    def delete(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """End a job if it is unfinished, and remove it from lists."""
        return self._stop(job_id, JobState.DELETED, actor, reason or Reason("deleted", who=actor), version)

    def resume(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Return a suspended job to its queue."""

        def step(job: JobRecord, _: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            if job.state is not JobState.SUSPENDED:
                raise ConflictError(Reason("only_suspended_resume", state=job.state.value))
            why = reason or Reason("resumed", who=actor)
            after = moved(_started_again(job), JobState.HELD if job.awaits else JobState.QUEUED, why, now_ns)
            change = stepped(after, actor)
            other = self._other(job)
            if other and other[0].state is JobState.SUSPENDED:
                change.add(stepped(moved(_started_again(other[0]), JobState.QUEUED, why, now_ns), actor))
            return after, change

        return self._take(job_id, version, step)

    def failover(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Make the standby of a service active, and return its job. A service with a cold one moves there.

        Raises
        ------
        ConflictError
            If the job has no standby, or the standby cannot become active.
        """
        why = Reason("requested", who=actor, why=reason)

        def step(job: JobRecord, attempt: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            if job.spec.standby is None:
                raise ConflictError(Reason("no_standby"))
            other = self._other(job)
            if other is None and job.spec.has_warm_standby:
                raise ConflictError(Reason("no_standby_yet", state=job.state.value, why=job.reason))
            active, standby = (other[0], job) if other and job.is_standby else (job, other[0] if other else None)
            if obstacle := self._obstacle(active, standby):
                raise ConflictError(Reason("standby_cannot_switch", why=obstacle))
            if standby:
                leads, _, change = switched(active, standby, why, actor, now_ns)
                return leads, change
            pair = replace(job.pair or Pair(), left=", ".join(job.clusters), lost_ns=None, switched_ns=None)
            return stopped(replace(job, pair=pair), attempt, JobState.QUEUED, also(why, ELSEWHERE), actor, now_ns)

        return self._take(job_id, version, step)

    def renew(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Let the lease of a running job count from now again.

        Raises
        ------
        ConflictError
            If the job has no lease, or does not run.
        """
        return self._renew(job_id, f"{actor}: {reason}" if reason else actor, version)

    def _renew(self, job_id: str, actor: str, version: int | None = None, *, event: bool = True) -> JobRecord:
        def step(job: JobRecord, _: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            if not job.spec.lease_s:
                raise ConflictError(Reason("no_lease"))
            if job.expires_ns is None or not job.state.placed:
                raise ConflictError(Reason("lease_needs_run", state=job.state.value))
            return renewed(job, actor, now_ns, event=event)

        return self._take(job_id, version, step)

    def used(self, job_id: str, actor: str) -> None:
        """Renew the lease of a job that a user uses, such as by a session. Other jobs do not change.

        It is cheap, so that sessions can call it for all their traffic: a lease is renewed at most once a minute.
        """
        job, now_ns = self._store.job(job_id), self._clock.now_ns()
        if job is None or not (job.spec.lease_s and job.expires_ns and job.state.placed):
            return
        if job.expires_ns - now_ns > job.spec.lease_s * NS_PER_S - MIN_RENEWAL_NS:
            return
        with suppress(ConflictError, UnknownError):  # it ended meanwhile
            self._renew(job_id, actor, event=False)

    def retry(self, job_id: str, actor: str, reason: str = "", version: int | None = None) -> JobRecord:
        """Run a failed, cancelled or skipped job again, or the failed tasks of an array.

        Jobs that were skipped because of it, and because of these, wait for their predecessors again.
        """
        job, said = self.find(job_id), reason or Reason("retried", who=actor)
        self._names.waiting.require_size(job, job.spec)
        if job.is_array and job.state is not JobState.SKIPPED:
            return self._retry_array(job, actor, said, version)

        def step(job: JobRecord, _: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            if job.state not in RETRIED:
                raise ConflictError(Reason("only_failed_retried", state=job.state.value))
            array = self.find(job.array) if job.array else None
            after = _retried(job, said, now_ns)
            change = stepped(after, actor)
            change.add(self._with_followers(job, actor, now_ns))
            if array and array.state.final:
                change.add(stepped(_revived(array, said, now_ns), actor))
            return after, change

        return self._take(job_id, version, step)

    def find(self, job_id: str) -> JobRecord:
        """Return a job.

        Raises
        ------
        UnknownError
            If the job does not exist.
        """
        job = stored_job(self._store, job_id)
        if job is None or job.state is JobState.DELETED:
            raise UnknownError(Reason("not_found", kind="job", name=job_id))
        return job

    def _stop(self, job_id: str, state: JobState, actor: str, reason: str, version: int | None) -> JobRecord:
        def step(job: JobRecord, attempt: Attempt | None, now_ns: int) -> tuple[JobRecord, Change]:
            if job.state is state and not job.spec.scaled_to_zero:
                return job, Change()
            other = self._other(job)
            if job.state is state:  # its triggers do not start it again
                copies = [job, *([other[0]] if other and other[0].spec.scaled_to_zero else ())]
                stay = [
                    replace(_started_again(each), reason=reason, changed_ns=now_ns, version=each.version + 1)
                    for each in copies
                ]
                return stay[0], Change(update=[*stay], insert=[job_event(each, actor, "updated") for each in stay])
            after, change = stopped(job, attempt, state, reason, actor, now_ns)
            if other and state in FOLLOWS[other[0].state]:
                change.add(stopped(*other, state, reason, actor, now_ns)[1])
            return after, change

        return self._take(job_id, version, step)

    def _take(self, job_id: str, version: int | None, step: _Step) -> JobRecord:
        """Apply a step to the stored job; retry after concurrent changes."""
        for _ in range(TRIES):
            job = self.find(job_id)
            if version is not None and job.version != version:
                raise StaleError(Reason("changed_version", version=job.version, given=version))
            attempts = self._store.attempts(job_id)
            after, change = step(job, attempts[-1] if attempts else None, self._clock.now_ns())
            if not job.version and change:
                change = self._started(after, change)
            if not change or self._writer.commit([change]) == [Outcome.STORED]:
                return after
        raise ConflictError(Reason("job_changes_fast"))

    def _other(self, job: JobRecord) -> Copy | None:
        """Return the other copy of a service with a warm standby; None without one."""
        other = self._store.job(job.other) if job.other else None
        if other is None or other.other != job.id:
            return None
        attempts = self._store.attempts(other.id)
        return other, attempts[-1] if attempts else None

    def _may_stay(self, job: JobRecord, attempt: Attempt | None, spec: JobSpec) -> bool:
        """Report whether the placement of a job is still allowed with a new specification."""
        if attempt is None:
            return True
        in_pool = spec.queue == job.spec.queue or self._reaches(spec.queue, attempt.clusters)
        return in_pool and (spec.standby is None or len(attempt.clusters) == 1)

    def _started(self, task: JobRecord, change: Change) -> Change:
        """Return the change of a task that is stored for the first time, with the one of its array."""
        array = self.find(task.array)
        rest = indexes_text(without(stored_indexes(array.unstarted), task.index))
        array = replace(array, unstarted=rest, version=array.version + 1)
        others = [each for each in change.update if each is not task]
        return replace(change, insert=[task, *change.insert], update=[array, *others])

    def _with_followers(self, job: JobRecord, actor: str, now_ns: int) -> Change:
        """Return the change of the jobs that were skipped because of a job, directly or by others."""
        change, rest, again = Change(), [job], {job.id}
        while rest:
            before = rest.pop()
            wanted = JobFilter(states=frozenset({JobState.SKIPPED}), predecessor=before.id)
            for each in self._store.jobs(wanted, RETRIED_TOGETHER):
                if each.id in again or len(again) > RETRIED_TOGETHER or not _skipped_for(each, before):
                    continue
                again.add(each.id)
                rest.append(each)
                reason = Reason("retried_with", job=f"{before.spec.name} ({before.id})")
                change.add(stepped(_retried(each, reason, now_ns), actor))
        return change

    def _retry_array(self, array: JobRecord, actor: str, reason: str, version: int | None) -> JobRecord:
        """Return the failed tasks of an array to its queue; after a cancellation, also the cancelled ones."""
        again = {JobState.FAILED, JobState.SKIPPED} | ({JobState.CANCELLED} & {array.state})
        wanted, count = JobFilter(states=frozenset(again), array=array.id), 0
        while tasks := self._store.jobs(wanted, RETRIED_TOGETHER):
            array = self._take(array.id, version, lambda job, _, now_ns: _again(job, tasks, actor, reason, now_ns))
            wanted, count, version = replace(wanted, before=tasks[-1].id), count + len(tasks), None
        if not count and not (array.state.final and array.unstarted):
            raise ConflictError(Reason("no_task_failed", state=array.state.value))
        if not count:
            array = self._take(array.id, version, lambda job, _, now_ns: _again(job, [], actor, reason, now_ns))
        self._take(array.id, None, lambda job, _, now_ns: (job, self._with_followers(job, actor, now_ns)))
        return array

    def _reaches(self, queue: str, clusters: Iterable[str]) -> bool:
        """Report whether the pool of a queue contains all given clusters; False for a missing pool."""
        pools = {pool.name: pool.clusters for pool in self._store.pools()}
        allowed = next(
            (pools.get(each.pool, NO_CLUSTER) for each in self._store.queues() if each.name == queue), NO_CLUSTER
        )
        return not allowed or allowed.issuperset(clusters)

    def _require_no_cycle(self, job: JobRecord, spec: JobSpec) -> None:
        """Check that no predecessor in a changed specification comes after the job."""
        predecessors = {job.id: [each.job for each in spec.after]}
        names, rest = {job.id: spec.name}, [each.job for each in spec.after]
        while rest:
            found = self._store.job(job_id) if (job_id := rest.pop()) not in predecessors else None
            if found and not found.state.final:
                predecessors[job_id], names[job_id] = [each.job for each in found.awaits], found.spec.name
                rest += predecessors[job_id]
        if cycle := cycle_in(predecessors):
            named = [f"{names[each]} ({each})" for each in cycle]
            raise RejectedError(_cycle_text(named), where="after")

    def _used(self, key: SubmitKey, specs: Sequence[JobSpec]) -> list[JobRecord]:
        used = self._store.key(specs[0].tenant, key.key)
        if used is None:
            return []
        if used.digest != key.digest:
            raise ConflictError(Reason("key_of_other_request", key=key.key))
        found = [job for job in map(self._store.job, _ids_of(used.job_id, specs)) if job]
        if len(found) < len(specs):
            raise ConflictError(Reason("key_of_deleted_job", key=key.key))
        return found


MIN_RENEWAL_NS = 60 * NS_PER_S
"""Minimum time between two renewals of a lease by use."""

RETRIED = frozenset({JobState.FAILED, JobState.CANCELLED, JobState.SKIPPED})
RETRIED_TOGETHER = 500
"""Maximum number of tasks that one transaction returns to their queue."""


def _started_again(job: JobRecord) -> JobRecord:
    """Return a job with its minimum of replicas, at least one, if its triggers want none."""
    if not job.spec.scaled_to_zero:
        return job
    return replace(job, spec=replace(job.spec, replicas=job.spec.least_replicas))


def _retried(job: JobRecord, reason: str, now_ns: int) -> JobRecord:
    """Return a job that runs again from the start. It waits for its predecessors again."""
    awaits = () if job.array else job.spec.after
    state = JobState.HELD if awaits else JobState.PENDING
    past = {"started_ns": None, "ended_ns": None, "not_before_ns": None, "failures": 0, "completed": 0}
    spec = replace(job.spec, data=replace(job.spec.data, others=())) if awaits else job.spec
    return moved(job, state, reason, now_ns, awaits=awaits, spec=spec, **past)


def _skipped_for(job: JobRecord, predecessor: JobRecord) -> bool:
    """Report whether a predecessor is the reason why a job was skipped."""
    reason = job.reason
    if not isinstance(reason, Reason) or reason.code != "predecessor_is":
        return False
    return f"({predecessor.id})" in str(reason.params["job"])


def _revived(array: JobRecord, reason: str, now_ns: int) -> JobRecord:
    """Return a finished array of which tasks run again."""
    after = replace(array, state=JobState.QUEUED, reason=reason, changed_ns=now_ns, ended_ns=None)
    return replace(after, version=array.version + 1)


def _again(
    array: JobRecord, tasks: Sequence[JobRecord], actor: str, reason: str, now_ns: int
) -> tuple[JobRecord, Change]:
    """Return the change of an array of which tasks run again."""
    change = Change()
    if array.state.final:
        array = _revived(array, reason, now_ns)
        change.add(stepped(array, actor))
    for task in tasks:
        change.add(stepped(_retried(task, reason, now_ns), actor))
    return array, change


def _new_jobs(
    specs: Sequence[JobSpec], first: str, actor: str, now_ns: int, known: Mapping[str, JobRecord]
) -> list[JobRecord]:
    """Return the records of new jobs, whose IDs follow each other. Names of jobs of the request become IDs."""
    ids = _ids_of(first, specs)
    by_name = {spec.name: job_id for spec, job_id in zip(specs, ids, strict=True)}
    jobs = []
    for spec, job_id in zip(specs, ids, strict=True):
        job = JobRecord(job_id, spec, JobState.PENDING, now_ns, now_ns, actor, ACCEPTED)
        if spec.array:
            job = replace(job, unstarted=spec.array.indexes)
        if spec.after:
            after = tuple(replace(each, job=by_name.get(each.job, each.job)) for each in spec.after)
            job = replace(job, spec=replace(spec, after=after), state=JobState.HELD, awaits=after)
        jobs.append(job)
    if any(job.awaits for job in jobs):
        named = {**known, **{job.id: job for job in jobs}}
        return [replace(job, reason=awaits_text(job.awaits, named)) if job.awaits else job for job in jobs]
    return jobs


def require_order(specs: Sequence[JobSpec]) -> None:
    """Check the order of the jobs of a request, which refer to each other by name.

    Raises
    ------
    RejectedError
        If jobs come after each other in a cycle, or after a name that several jobs have.
    """
    names = Counter(spec.name for spec in specs)
    for at, spec in enumerate(specs):
        if several := next((each.job for each in spec.after if names[each.job] > 1), ""):
            where = f"jobs[{at}].after" if len(specs) > 1 else "after"
            raise RejectedError(Reason("same_names", count=names[several], name=several), where=where)
    cycle = cycle_in({spec.name: [each.job for each in spec.after if each.job in names] for spec in specs})
    if cycle:
        at = next(at for at, spec in enumerate(specs) if spec.name == cycle[0])
        raise RejectedError(_cycle_text(cycle), where=f"jobs[{at}].after" if len(specs) > 1 else "after")


def _cycle_text(jobs: Sequence[str]) -> Reason:
    return Reason("cycle_of_jobs", way=" → ".join(jobs))


def _reserved(spec: JobSpec) -> int:
    """Return the number of IDs that a job needs: its own, and one for each index of an array."""
    return 1 if spec.array is None else spec.array.last + 2


def _ids_of(first: str, specs: Sequence[JobSpec]) -> list[str]:
    """Return the IDs of the jobs of a request, of which the first one is given."""
    if len(specs) == 1:
        return [first]
    return [following_id(first, at) for at in accumulate(map(_reserved, specs[:-1]), initial=0)]


def stored_job(store: Store, job_id: str) -> JobRecord | None:
    """Return a job, or a task that is not stored yet, with version 0."""
    if (found := store.job(job_id)) or decode(job_id) is None:
        return found
    array = store.array_at(job_id)
    index = id_distance(array.id, job_id) - 1 if array else 0
    if array is None or not any(index in each for each in stored_indexes(array.unstarted)):
        return None
    return _later_task(array, index)


def _later_task(array: JobRecord, index: int) -> JobRecord:
    """Return a task that is not stored yet: pending, or as its array."""
    state = array.state if array.state.final else JobState.PENDING
    return replace(array.task(index), state=state, reason=later_task_reason(array), version=0)


def later_tasks(array: JobRecord, limit: int, after: int = 0) -> list[JobRecord]:
    """Return the next tasks of an array that are not stored yet.

    Parameters
    ----------
    after
        Index from which tasks are returned.
    """
    rest = (each[bisect_left(each, after) :] for each in stored_indexes(array.unstarted))
    indexes, _ = taken([each for each in rest if each], limit)
    return [_later_task(array, index) for index in indexes]


def tasks_of(store: Store, array: JobRecord, states: Set[JobState], after: str, limit: int) -> list[JobRecord]:
    """Return tasks of an array by index, also those that are not stored yet, which are pending or as their array.

    Parameters
    ----------
    states
        States to match; empty for all.
    after
        ID of the task before the first one; empty for none.
    """
    found = store.jobs(JobFilter(states=frozenset(states), array=array.id, before=after), limit)
    state = array.state if array.state.final else JobState.PENDING
    if not states or state in states:
        found += later_tasks(array, limit, id_distance(array.id, after) if after else 0)
        found.sort(key=lambda job: job.id)
    return found[:limit]


def workflow(store: Store, job: JobRecord, tenant: str, most: int) -> tuple[list[JobRecord], bool]:
    """Return the jobs that a job is connected with by dependencies, and itself, oldest first.

    Parameters
    ----------
    tenant
        Tenant of the jobs; empty for all.
    most
        Maximum number of jobs, the closest ones.

    Returns
    -------
    tuple of list of JobRecord and bool
        The jobs, and whether there are more.
    """
    found, rest = {job.id: job}, deque([job])
    while rest:
        each = rest.popleft()
        around = [*(store.job(earlier.job) for earlier in each.spec.after)]
        around += store.jobs(JobFilter(tenant=tenant, predecessor=each.id), most + 1)
        for other in around:
            if other is None or other.id in found or other.state is JobState.DELETED:
                continue
            if tenant not in ("", other.spec.tenant):
                continue
            if len(found) >= most:
                return sorted(found.values(), key=lambda job: job.id), True
            found[other.id] = other
            rest.append(other)
    return sorted(found.values(), key=lambda job: job.id), False


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
        raise ConflictError(Reason("final_stays", state=job.state.value))
    if job.array:
        raise ConflictError(Reason("task_of_array", array=job.array))
    _require_same_tasks(job.spec, spec)
    if spec.tenant != job.spec.tenant:
        raise RejectedError(Reason("tenant_stays"), where="tenant")
    if spec.after != job.spec.after and job.state is not JobState.HELD:
        raise ConflictError(Reason("only_held_get_predecessors", state=job.state.value))


def _require_same_tasks(before: JobSpec, after: JobSpec) -> None:
    """Check that a change leaves the tasks of an array as they are, except for the limit of tasks at once."""
    was, now = before.array, after.array
    if (was is None) != (now is None) or (was and now and (was.indexes, was.matrix) != (now.indexes, now.matrix)):
        raise RejectedError(Reason("array_stays"), where="array")
