"""Queues, pools, tenants and reservations, and numbers of waiting jobs, from stored changes."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from seaway.application.changes import Change, Record
from seaway.domain.errors import ConflictError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import NO_CLUSTER, JobSpec
from seaway.domain.queues import Queue, children_of
from seaway.domain.reasons import Params, Reason, also
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Pool, Quota, Tenant


class WaitingCounts:
    """Number of waiting jobs of each queue, tenant and user, also of jobs that are about to be stored. Thread-safe.

    Also the size of what the unfinished jobs of each tenant request.

    Parameters
    ----------
    most_mib
        Maximum of this size, MiB; 0 for none.
    """

    def __init__(self, most_mib: int = 0) -> None:
        self._most_mib = most_mib
        self._sizes: dict[str, tuple[str, int, int]] = {}  # tenant, identity and bytes of each unfinished specification
        self._bytes: Counter[str] = Counter()  # by tenant
        self._lock = threading.Lock()
        self._unstored: dict[str, JobRecord] = {}
        self._of: dict[str, tuple[str, str, str, int]] = {}  # tenant, queue, user and number of each waiting job
        self._counts: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)  # by tenant

    def reset(self, jobs: Iterable[JobRecord]) -> None:
        """Replace all jobs."""
        with self._lock:
            self._of.clear()
            self._counts.clear()
            self._sizes.clear()
            self._bytes.clear()
            for job in (*self._unstored.values(), *jobs):
                self._put(job)

    def put(self, job: JobRecord) -> None:
        """Apply a stored job."""
        with self._lock:
            self._unstored.pop(job.id, None)
            self._put(job)

    def drop(self, job_id: str) -> None:
        """Remove a job, if it counts."""
        with self._lock:
            self._unstored.pop(job_id, None)
            self._remove(job_id)
            self._remove_size(job_id)

    def add(self, job: JobRecord, quota: Quota | None, pool: str, in_pool: Callable[[str], bool]) -> None:
        """Count a job that is about to be stored.

        Parameters
        ----------
        quota
            Quota of its tenant in the pool of its queue; None for none.
        in_pool
            Report of whether a queue has that pool.

        Raises
        ------
        ConflictError
            If the tenant or the user has the maximum number of waiting jobs already, or the unfinished jobs of the
            tenant would be too large.
        """
        tenant, user = job.spec.tenant, job.submitted_by
        with self._lock:
            self._put_size(job)
            if job.id in self._sizes:
                size = self._sizes[job.id][2]
                try:
                    self._require_size(job.spec.tenant, self._bytes[job.spec.tenant] - size, size)
                except ConflictError:
                    self._remove_size(job.id)
                    raise
            if quota and (quota.max_waiting, quota.user_max_waiting) != (None, None):
                counts = [(of, count) for (queue, of), count in self._counts[tenant].items() if in_pool(queue)]
                every = sum(count for _, count in counts)
                holder = partial(Reason, "tenant_named", tenant=tenant)
                _require_room(holder, pool, every, job.waiting, quota.max_waiting)
                own = sum(count for of, count in counts if of == user)
                holder = partial(Reason, "user_of_tenant", user=user, tenant=tenant)
                _require_room(holder, pool, own, job.waiting, quota.user_max_waiting)
            self._unstored[job.id] = job
            self._put(job)

    def require_size(self, job: JobRecord, spec: JobSpec) -> None:
        """Raise ConflictError if the unfinished jobs of a tenant would be too large with a job's new specification."""
        if self._most_mib and not job.array:
            with self._lock:
                held = self._bytes[spec.tenant] - (self._sizes[job.id][2] if job.id in self._sizes else 0)
                self._require_size(spec.tenant, held, _size(spec))

    def _require_size(self, tenant: str, held: int, more: int) -> None:
        if held and held + more > self._most_mib << 20:
            raise ConflictError(Reason("unfinished_too_large", tenant=tenant, mib=held >> 20, most=self._most_mib))

    def _put(self, job: JobRecord) -> None:
        self._put_size(job)
        self._remove(job.id)
        if number := job.waiting:
            tenant, lane = job.spec.tenant, (job.spec.queue, job.submitted_by)
            self._of[job.id] = (tenant, *lane, number)
            self._counts[tenant][lane] += number

    def _put_size(self, job: JobRecord) -> None:
        """Count what a job requests. That of an array counts once, for all its tasks."""
        if not self._most_mib or job.array:
            return
        if job.state.final:
            self._remove_size(job.id)
        elif job.id not in self._sizes or self._sizes[job.id][1] != id(job.spec):
            self._remove_size(job.id)
            self._sizes[job.id] = (job.spec.tenant, id(job.spec), _size(job.spec))
            self._bytes[job.spec.tenant] += self._sizes[job.id][2]

    def _remove_size(self, job_id: str) -> None:
        if known := self._sizes.pop(job_id, None):
            self._bytes[known[0]] -= known[2]

    def _remove(self, job_id: str) -> None:
        if known := self._of.pop(job_id, None):
            counts, lane = self._counts[known[0]], known[1:3]
            counts[lane] -= known[3]
            if not counts[lane]:
                del counts[lane]


def _size(spec: JobSpec) -> int:
    """Return the size of a specification as JSON, bytes."""
    return len(msgspec.json.encode(spec, enc_hook=str))


def _require_room(holder: Callable[[], Reason], pool: str, waiting: int, more: int, most: int | None) -> None:
    if most is None or not more or waiting + more <= most:
        return
    params: Params = {"holder": holder(), "waiting": waiting, "pool": pool, "most": most}
    if more > 1:
        raise ConflictError(Reason("waiting_full_for_array", **params, tasks=more))
    raise ConflictError(also(Reason("waiting_full", **params), Reason("submit_after_start")))


class Names:
    """Queues, pools, tenants and reservations by name. One thread changes them; any thread can read them.

    Parameters
    ----------
    most_mib
        Maximum size of what the unfinished jobs of a tenant request, MiB; 0 for none.

    Attributes
    ----------
    waiting
        Numbers of waiting jobs.
    """

    def __init__(self, most_mib: int = 0) -> None:
        self.waiting = WaitingCounts(most_mib)
        self.queues: dict[str, Queue] = {}
        self.pools: dict[str, Pool] = {}
        self.tenants: dict[str, Tenant] = {}
        self.reservations: dict[str, AdvanceReservation] = {}
        self._children: Mapping[str, Sequence[Queue]] = {}

    def reset(
        self,
        queues: Iterable[Queue],
        pools: Iterable[Pool],
        tenants: Iterable[Tenant],
        reservations: Iterable[AdvanceReservation] = (),
    ) -> None:
        """Replace all records."""
        self.queues = {queue.name: queue for queue in queues}
        self.pools = {pool.name: pool for pool in pools}
        self.tenants = {tenant.name: tenant for tenant in tenants}
        self.reservations = {each.name: each for each in reservations}
        self._children = children_of(self.queues.values())

    def take(self, changes: Iterable[Change]) -> None:
        """Apply stored changes in their order."""
        for change in changes:
            for record in change.delete:
                self.drop(record)
            for records in (change.insert, change.update, change.put):
                for record in records:
                    self.put(record)

    def put(self, record: Record) -> bool:
        """Apply a record; report whether it can change the order, limits or allowed clusters of jobs."""
        match record:
            case Queue():
                self.queues[record.name] = record
                self._children = children_of(self.queues.values())
            case Pool():
                self.pools[record.name] = record
            case Tenant():
                self.tenants[record.name] = record
            case AdvanceReservation():
                self.reservations[record.name] = record
            case JobRecord():
                self.waiting.put(record)
        return isinstance(record, Queue | Pool | Tenant | AdvanceReservation)

    def drop(self, record: Record) -> bool:
        """Apply the removal of a record; return as `put`."""
        match record:
            case Queue():
                self.queues.pop(record.name, None)
                self._children = children_of(self.queues.values())
            case Pool():
                self.pools.pop(record.name, None)
            case Tenant():
                self.tenants.pop(record.name, None)
            case AdvanceReservation():
                self.reservations.pop(record.name, None)
            case JobRecord():
                self.waiting.drop(record.id)
        return isinstance(record, Queue | Pool | Tenant | AdvanceReservation)

    def count_waiting(self, job: JobRecord) -> None:
        """Count a job that is about to be stored as waiting; `waiting.drop` reverses it.

        Raises
        ------
        ConflictError
            If its tenant has no room for another waiting or unfinished job.
        """
        tenant, queue = self.tenants.get(job.spec.tenant), self.queues.get(job.spec.queue)
        pool = queue.pool if queue else ""
        quota = tenant.quotas.get(pool) if tenant else None

        def in_pool(name: str) -> bool:
            known = self.queues.get(name)
            return known is not None and known.pool == pool

        self.waiting.add(job, quota, pool, in_pool)

    def clusters_of(self, queue: str) -> frozenset[str]:
        """Return the clusters of a queue's pool; empty for all, `NO_CLUSTER` if the queue or pool is missing.

        Raises
        ------
        UnavailableError
            If the queues are not loaded yet. At least one queue always exists.
        """
        if not self.queues:
            raise UnavailableError(Reason("control_plane_starts"), retry_after_s=1)
        known = self.queues.get(queue)
        pool = self.pools.get(known.pool) if known else None
        return pool.clusters if pool else NO_CLUSTER

    def leaves(self, name: str) -> list[Queue]:
        """Return the queues without children below a queue; none if the queue itself has no children."""
        below = list(self._children.get(name, ()))
        found = []
        while below:
            queue = below.pop()
            children = self._children.get(queue.name, ())
            below += children
            if not children:
                found.append(queue)
        return sorted(found, key=lambda each: each.name)

    def lacking(self, name: str) -> str:
        """Return a message with the fix if a queue or its pool is missing; empty if both exist."""
        queue = self.queues.get(name)
        if queue is None:
            return Reason("no_queue", queue=name)
        return "" if queue.pool in self.pools else Reason("no_pool", pool=queue.pool)
