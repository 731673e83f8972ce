"""State of the scheduling cycle: waiting and running jobs, queues, and the fleet with their allocations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from seaway.domain.attempt import NS_PER_S, Attempt
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill, Elastic, Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.waiting import Waiting
from seaway.scheduling.cycle.work import ElasticWork
from seaway.scheduling.queueing.model_shares import NO_MODEL, without_models
from seaway.scheduling.queueing.tree import Key, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot


class Clock(Protocol):
    """Time of decisions."""

    def now_ns(self) -> int:
        """Return the wall-clock time, nanoseconds since 1970."""

    def monotonic_ns(self) -> int:
        """Return the monotonic time, nanoseconds since an arbitrary start."""


class Settings(Protocol):
    """Settings of decisions; see `seaway.application.control.settings`."""

    @property
    def batch_size(self) -> int:
        """Maximum number of jobs that are decided together."""

    @property
    def max_tried_per_cycle(self) -> int:
        """Number of jobs that are tried before other threads can acquire the lock."""

    @property
    def max_deferral_s(self) -> float:
        """Maximum deferral of a job, seconds; 0 disables deferral."""

    @property
    def reservations(self) -> bool:
        """True if the first jobs of queues get reservations."""

    @property
    def reservation_timeout_s(self) -> float:
        """Time for which a place is reserved for a job whose start is unknown, seconds."""


class Fleet(Protocol):
    """The fleet with what running jobs and reservations hold.

    Attributes
    ----------
    snapshot
        Snapshot for the engine.
    version
        Counter of changes after which more jobs may fit.
    """

    snapshot: Snapshot
    version: int

    def booking(self, key: Key) -> Allocation | None:
        """Return the allocation of an attempt."""

    def up(self) -> frozenset[str]:
        """Return the names of the clusters that answer."""

    def awaits_reports(self) -> bool:
        """Report whether a cluster has not reported since the start, and is not lost."""


class AdvanceRules(Protocol):
    """Rules of advance reservations: capacity that waiting jobs leave free."""

    def narrow(self, job: Job, spec: JobSpec) -> Job:
        """Return a job that avoids the capacity that is reserved for others."""

    def closed_to(self, spec: JobSpec) -> Iterator[AdvanceReservation]:
        """Yield the reservations whose capacity a job that starts now must not use."""


class FutureRules(AdvanceRules, Protocol):
    """Rules of advance reservations at a time, which does not pass by itself."""

    @property
    def times_ns(self) -> Sequence[int]:
        """Times at which the rules change, nanoseconds since 1970."""

    def at(self, now_ns: int) -> FutureRules:
        """Return the rules at another time, nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """Move of a job to certain nodes by an operator. A restart of the server forgets it.

    Attributes
    ----------
    attempt
        Number of the attempt that ends.
    placements
        Places that are reserved for the next attempt.
    grace_s
        Time until the pods of the attempt are killed, seconds.
    until_ns
        Monotonic time after which the job may start anywhere.
    """

    attempt: int
    placements: tuple[Placement, ...]
    grace_s: int
    until_ns: int

    @property
    def nodes(self) -> frozenset[tuple[str, str]]:
        """Clusters and nodes."""
        return frozenset((each.cluster, each.node) for each in self.placements)


class State(ABC):
    """State of the scheduling cycle.

    Attributes
    ----------
    waiting
        Jobs to place.
    tree
        Queues with the amounts that attempts hold, from the decision until their last allocation is released.
    jobs
        Unfinished jobs, and finished jobs that still have allocations.
    attempts
        Attempts that have not ended.
    assumed
        Attempts of jobs that are decided and about to be stored.
    bookings
        Allocations of attempts, or of their new replicas, that are about to be stored.
    started
        Number of jobs that were decided to start, which seeds random choices.
    seen_version
        Version of the fleet on which the present pass over all jobs began.
    began_ns
        Monotonic time at which attempts began to run. Unlike stored times, it does not follow changes of the clock.
    awaiting_victims
        Queued jobs that displaced others.
    resizing
        Live attempts with more or fewer replicas than their jobs should have, by job.
    extended
        Live attempts of elastic jobs with more than their minimum of replicas, by job.
    resize_after_ns
        Monotonic time before which a job gets no more replicas.
    changed
        Attempts that changed, or whose jobs did, since `Preemptor` followed them.
    moves
        Jobs that operators move to certain nodes, until they are placed. They survive a reload of the state.
    advance
        What waiting jobs must leave free for advance reservations.
    work
        Work that elastic attempts have done.
    """

    clock: Clock
    settings: Settings
    fleet: Fleet
    tree: QueueTree
    waiting: Waiting
    jobs: dict[str, JobRecord]
    attempts: dict[Key, Attempt]
    assumed: dict[Key, Attempt]
    bookings: dict[Key, Allocation]
    started: int
    seen_version: int
    began_ns: dict[Key, int]
    awaiting_victims: set[str]
    resizing: dict[str, Key]
    extended: dict[str, Key]
    resize_after_ns: dict[str, int]
    changed: set[Key]
    moves: dict[str, PlannedMove]
    advance: AdvanceRules
    work: ElasticWork

    @property
    @abstractmethod
    def queues(self) -> Mapping[str, Queue]:
        """The queues, by name."""

    @abstractmethod
    def entry(self, job: JobRecord) -> Entry:
        """Return a job as it waits, or would wait."""

    @abstractmethod
    def end_move(self, job_id: str) -> None:
        """Let a job start on any node again, or record that its move is done."""

    @abstractmethod
    def ends_soon(self, attempt: Attempt) -> bool:
        """Report whether an attempt is being removed, and all clusters that still have a part of it respond."""

    @abstractmethod
    def learned_s(self, key: Key) -> int | None:
        """Return the learned duration of an attempt, seconds; None if it is unknown."""

    def expected_rest_ns(self, key: Key, now_ns: int, typical_s: int | None = None) -> int | None:
        """Return the nanoseconds until the expected end of an attempt by the wall clock; None if it is unknown.

        Parameters
        ----------
        typical_s
            Duration that stands for an unknown one, seconds; None if none does.
        """
        attempt = self.attempts.get(key) or self.assumed[key]
        if not attempt.state.live:
            return 0 if self.ends_soon(attempt) else None
        learned_s = self.learned_s(key)
        if learned_s is None and not attempt.spec.restarts:
            learned_s = typical_s
        rest_ns, shared_ns = attempt.expected_rest_ns(now_ns, learned_s), self.work.rest_ns(key, attempt)
        limit_s = attempt.spec.time_limit_s
        if shared_ns is None or limit_s is None:
            return rest_ns if shared_ns is None else shared_ns
        return min(shared_ns, max(0, limit_s * NS_PER_S - (now_ns - (attempt.running_ns or now_ns))))

    def allowed(self, entry: Entry, left: Collection[str] = ()) -> Job:
        """Return a waiting job without what it may not use: GPU models beyond limits, and what others reserved.

        Parameters
        ----------
        left
            GPU models that it leaves to others, if it may use another one.
        """
        hits = self.waiting.model_hits(entry)
        job = without_models(entry.job, {*hits, *left}, self.fleet.snapshot)
        if left and job.demand.devices.models == {NO_MODEL}:
            job = without_models(entry.job, hits, self.fleet.snapshot)
        return self.advance.narrow(job, entry.spec)

    def backfill_of(self, queue: str) -> Backfill:
        """Return the jobs of a queue that may start before an earlier one."""
        return self.tree.node(queue).queue.backfill

    def assume(self, entry: Entry, attempt: Attempt, booking: Allocation) -> None:
        """Record the attempt of a job that starts, which is not stored yet."""
        self.bookings[entry.next_attempt] = booking
        self.assumed[entry.next_attempt] = attempt

    def withdraw(self, key: Key) -> None:
        """Forget an attempt that is not stored."""
        self.bookings.pop(key, None)
        self.assumed.pop(key, None)
        self.tree.release(key)

    def hold(self, attempt: Attempt) -> None:
        """Count the amounts of an attempt in its queues and quotas. Its job may be unknown during a load."""
        self.tree.hold((attempt.job_id, attempt.number), self.owner(attempt), attempt.amounts)

    def owner(self, attempt: Attempt) -> Owner:
        """Return the queue, tenant and user that an attempt counts in."""
        job = self.jobs.get(attempt.job_id)
        return Owner(attempt.spec.queue, attempt.spec.tenant, job.submitted_by if job else "")

    def current(self, key: Key) -> tuple[JobRecord, Attempt] | None:
        """Return a job and its attempt, if the attempt is live and the job's latest; otherwise None."""
        job, attempt = self.jobs.get(key[0]), self.attempts.get(key)
        if job is None or attempt is None or not attempt.state.live or job.attempt != attempt.number:
            return None
        return job, attempt

    def note_size(self, job_id: str) -> None:
        """Record whether the live attempt of a job has more or fewer replicas than it should have, or could spare.

        Called after each change of a job, which `changed` records, too.
        """
        job = self.jobs.get(job_id)
        key = (job_id, job.attempt if job else 0)
        self.changed.add(key)
        found = self.current(key) if job and job.spec.resizable else None
        if found and found[0].spec.replicas - found[0].completed != len(found[1].remaining):
            self.resizing[job_id] = key
        else:
            self.resizing.pop(job_id, None)
        if found and found[1].spec.elastic and len(found[1].remaining) > found[1].spec.least_replicas:
            self.extended[job_id] = key
        else:
            self.extended.pop(job_id, None)

    def lends(self) -> bool:
        """Report whether some elastic job has replicas that leave for any waiting job."""
        queues = (self.tree.node(self.attempts[key].spec.queue).queue for key in self.extended.values())
        return any(queue.elastic is Elastic.LEND for queue in queues)

    def rest_from_resizes(self, job: JobRecord) -> None:
        """Let a job that was resized have no more replicas for the time that its queue sets."""
        queue = self.queues.get(job.spec.queue) or Queue(job.spec.queue)
        self.resize_after_ns[job.id] = self.clock.monotonic_ns() + queue.grow_cooldown_s * NS_PER_S
