"""Replay of jobs in a tree of queues: the scheduling cycle on a state of its own, and on a virtual clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import count
from time import perf_counter

import numpy as np

from seaway.domain.amounts import CPU, GPUS
from seaway.domain.attempt import NS_PER_S, Attempt
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.arrays import Int64
from seaway.scheduling.cycle.ahead import Ahead
from seaway.scheduling.cycle.cycle import Cycle
from seaway.scheduling.cycle.fit import Notes
from seaway.scheduling.cycle.fork import FleetCopy, Rehearsal, SetClock
from seaway.scheduling.cycle.jobs import Entry, kind_of
from seaway.scheduling.cycle.plan import PlanState
from seaway.scheduling.cycle.resize import Resizer
from seaway.scheduling.cycle.waiting import Waiting
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.registry import FairShare
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Sharing
from seaway.simulation.stopwatch import Stopwatch
from seaway.simulation.waiting.discipline import Discipline, queue_tree
from seaway.simulation.waiting.shares import ShareErrors

S_PER_HOUR = 3600

MAX_SAMPLES = 2000
"""Approximate number of moments at which shares are compared."""

EPOCH_S = 10**9
"""Wall-clock time of the first second of a trace. Attempts that run have a time above 0."""


@dataclass(frozen=True, slots=True)
class _Settings:
    """Settings of decisions; the defaults of the control loop."""

    batch_size: int = 64
    max_tried_per_cycle: int = 512
    max_deferral_s: float = 300
    reservations: bool = True
    reservation_timeout_s: float = 300


class _Course(Rehearsal):
    """State of a replay, which notes starts.

    Attributes
    ----------
    starts_s
        Last start of each job, shape (J,); -1 for none.
    errors
        Compares shares.
    """

    starts_s: Int64
    errors: ShareErrors

    def submit(self, record: JobRecord, entry: Entry) -> None:
        """Add a job that waits, or let a known one wait again."""
        super().submit(record, entry)
        if record.state is JobState.PREEMPTED:
            self.starts_s[int(record.id)] = -1
        self.errors.wait(entry.lane, entry.kind.requested)

    def assume(self, entry: Entry, attempt: Attempt, booking: Allocation) -> None:
        """Record the attempt of a job that starts."""
        super().assume(entry, attempt, booking)
        self.starts_s[int(entry.id)] = self.clock.now_ns() // NS_PER_S - EPOCH_S
        self.errors.wait(entry.lane, entry.kind.requested, -1)


class Queued:
    """Jobs that wait in queues, and run.

    Parameters
    ----------
    snapshot
        The fleet without allocations.
    jobs
        Jobs in the order of their arrival.
    profile
        Policy of all queues.
    clock
        Measures decisions.
    discipline
        Queues and tenants.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        jobs: Sequence[Job],
        profile: Profile,
        clock: Stopwatch,
        discipline: Discipline,
    ) -> None:
        self._jobs, self._profile, self._clock = jobs, profile, clock
        queues, tree = discipline.queues, queue_tree(discipline, snapshot.clusters)
        self._by_rules = profile.compiled(RULES_OF_FIT) is not None
        self._queues, self._pools = {each.name: each for each in queues}, discipline.pools
        first_s, last_s = (jobs[0].arrives_s, jobs[-1].arrives_s) if jobs else (0, 0)
        times = SetClock((EPOCH_S + first_s) * NS_PER_S, (EPOCH_S + first_s) * NS_PER_S)
        fleet = FleetCopy(snapshot, 0, {}, frozenset(each.name for each in snapshot.clusters))
        waiting = Waiting(FairShare(), tree)
        self._state = state = _Course(times, _Settings(), fleet, waiting, self._queues)
        resource = GPUS if any(each.devices for each in snapshot.nodes) else CPU
        state.starts_s = np.full(len(jobs), -1, np.int64)
        state.errors = ShareErrors(tree, queues, resource, max(1, (last_s - first_s) // MAX_SAMPLES))
        self._cycle = Cycle(state, self, self._watched, rehearses=True)
        resizer = Resizer(state, self, self.profile, self.unready, rehearses=True)
        plan = PlanState(times.now_ns(), waiting.discipline, queues, discipline.tenants, snapshot.clusters)
        self._ahead = Ahead(state, self._cycle, resizer, self._waits, plan, deque(map(_record, count(), jobs)))

    def moments(self) -> Iterator[int]:
        """Let time pass until nothing more happens. Yield the time of each moment after its decisions, seconds."""
        for _ in self._ahead.moments():
            now_s = self._state.clock.now_ns() // NS_PER_S - EPOCH_S
            self._state.errors.record(now_s)
            yield now_s

    @property
    def arrived(self) -> int:
        """Number of jobs that have arrived."""
        return len(self._jobs) - len(self._ahead.arrivals)

    @property
    def starts_s(self) -> Int64:
        """Last start of each job, shape (J,); -1 for none."""
        return self._state.starts_s

    @property
    def waiting(self) -> list[int]:
        """Numbers of the waiting jobs."""
        return sorted(map(int, self._state.waiting.ids()))

    def clusters(self) -> Int64:
        """Return the table of clusters without what is reserved, as in `FleetArrays`."""
        with self._cycle.reservations.all_lifted():
            clusters: Int64 = self._state.fleet.snapshot.arrays.clusters.copy()
        return clusters

    def sharing(self) -> Sharing:
        """Return how queues and tenants shared the fleet."""
        ended = self._ahead.ended.values()
        lost = (each.attempt.amounts.get(GPUS, 0) * each.ran_ns for each in ended)
        return Sharing(self._state.errors.mean(), len(ended), sum(lost) / WHOLE_DEVICE_MILLI / NS_PER_S / S_PER_HOUR)

    # What the cycle asks.

    def profile(self, queue: str) -> Profile:  # see `Policies`
        """Return the policy of a queue."""
        return self._profile

    def unready(self, queue: str) -> str:  # see `Policies`
        """Return the reason why jobs of a queue are not tried yet: none."""
        return ""

    def by_rules(self, queue: str) -> bool:  # see `Policies`
        """Report whether only the filter rules of the policy decide whether a job fits."""
        return self._by_rules

    def more(self, job: JobRecord, attempt: Attempt) -> Job:  # see `Sizes`
        """Return what is asked of the engine for more replicas of a running job."""
        return job.spec.job(job.id, self._clusters_of(job.spec.queue))

    def completed_replicas(self, attempt: Attempt) -> Set[int]:  # see `Sizes`
        """Return the completed replicas of a running job: none before it ends."""
        return frozenset()

    def _waits(self, record: JobRecord) -> Entry:
        spec, queue = record.spec, self._queues[record.spec.queue]
        job = spec.job(record.id, self._clusters_of(spec.queue))
        job = replace(job, replicas=job.replicas - record.completed) if record.completed else job
        order = self._state.waiting.discipline.job_key(job, record.submitted_ns, queue)
        kind = kind_of(job, spec, queue)
        return Entry(record.id, spec, "", job, kind, order, record.attempt, record.submitted_ns, record.completed)

    def _clusters_of(self, queue: str) -> frozenset[str]:
        return self._pools.get(self._queues[queue].pool, frozenset())

    def _watched(self, run: Sequence[Entry]) -> Notes:
        begun = perf_counter()
        replicas = sum(each.job.replicas for each in run)
        return lambda *_: self._clock.note(perf_counter() - begun, len(run), replicas)


def _record(number: int, job: Job) -> JobRecord:
    """Return a job of a replay as one that was submitted. Its ID is its number."""
    elastic = bool(job.max_replicas)
    spec = JobSpec(
        f"job-{number}",
        job.demand,
        job.max_replicas or job.replicas,
        job.gang,
        job.between_replicas,
        job.priority,
        job.tenant,
        job.queue,
        expected_duration_s=job.expected_duration_s,
        single_cluster=job.single_cluster,
        data=job.data,
        one_by_one=job.partial,
        ring=job.ring,
        min_replicas=job.replicas if elastic else 0,
        max_replicas=job.max_replicas,
    )
    arrives_ns = (EPOCH_S + job.arrives_s) * NS_PER_S
    return JobRecord(f"{number:08}", spec, JobState.QUEUED, arrives_ns, arrives_ns, "")
