"""Replay of a trace on a virtual clock: jobs arrive, wait, run and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

import numpy as np

from seaway.domain.amounts import capacity_of, total_of
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.job import Job
from seaway.domain.queues import Backfill, Order, Queue, Reclaim
from seaway.domain.tenancy import DEFAULT, Tenant
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import PLAN_LINK_MISSED, PLAN_NODE, SLICE_CORE
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.queueing.backfill import NEVER_S
from seaway.scheduling.queueing.tree import RESTART_COST_S, GpuWeights, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import (
    COMPLETE_POLICIES,
    Counts,
    Curve,
    Outcome,
    Shares,
    Sharing,
    UseOverTime,
    could_place,
    use,
    waits_of,
)
from seaway.simulation.replay import capacity_milli, last_of, percent
from seaway.simulation.stopwatch import PolicyMaker, Stopwatch, warm_up
from seaway.simulation.waiting.conservative import Planned
from seaway.simulation.waiting.easy import Ordered
from seaway.simulation.waiting.elastic import Runs
from seaway.simulation.waiting.greedy import Greedy
from seaway.simulation.waiting.queued import Queued
from seaway.simulation.waiting.world import GPU_MILLI, Key, WaitingJobs, World

S_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Discipline:
    """Order of the waiting jobs of a replay, and the jobs that may overtake.

    Attributes
    ----------
    queues
        Queues, whose own order and backfill apply instead; none for one queue without limits.
    tenants
        Tenants with their weights and quotas; others have the weight 1.
    pools
        Clusters of each pool; none for all. Jobs may use those that their demands allow.
    gpu_weights
        Weights of GPU models in shares, by resource.
    restart_cost_s
        Cost of the restart of a displaced job, see `QueueTree`.
    """

    order: Order = Order.PRIORITY
    backfill: Backfill = Backfill.GREEDY
    queues: tuple[Queue, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    pools: Mapping[str, frozenset[str]] = field(default_factory=dict)
    gpu_weights: GpuWeights = field(default_factory=dict)
    restart_cost_s: float = RESTART_COST_S


def replay_with_departures(
    fleet: Fleet,
    jobs: Sequence[Job],
    make: PolicyMaker,
    progress: Callable[[int], None] = lambda _: None,
    discipline: Discipline = Discipline(),
) -> Outcome:
    """Replay jobs that arrive at their time, wait until they fit, run, and end.

    At each moment, the jobs that are due end first, then jobs arrive, and then waiting jobs start. By default they are
    ordered by priority, then by arrival, and every job that fits starts, also before others that still do not fit. Use
    is reported as means over time.

    Parameters
    ----------
    fleet
        Fleet without allocations.
    jobs
        Jobs, which arrive at `arrives_s`. Those that arrive in the same second do so in the given order.
    progress
        Called with the number of jobs that arrived so far.
    discipline
        Order of the waiting jobs, and their backfill.
    """
    run = _Run(fleet, jobs, make, discipline)
    for now in run.moments():
        run.end_due(now)
        run.admit_due(now)
        run.waiting.schedule(now)
        run.record(now)
        progress(run.arrived)
    return run.outcome()


class _Run:
    """State of a replay: running jobs with their ends, and waiting jobs."""

    def __init__(self, fleet: Fleet, jobs: Sequence[Job], make: PolicyMaker, discipline: Discipline) -> None:
        self._fleet = fleet
        self._snapshot = Snapshot(fleet)
        if not discipline.queues:
            jobs = [job if job.queue == DEFAULT else replace(job, queue=DEFAULT) for job in jobs]
        self._queue = JobQueue(self._snapshot, sorted(jobs, key=lambda job: job.arrives_s))
        warm_up(self._snapshot, self._queue, make)
        self._policy = make()
        self._clock = Stopwatch(self._snapshot, self._policy)
        self._capacity = capacity_milli(self._snapshot)
        self._ends: list[tuple[int, int, Plan]] = []
        self._now_s = 0
        self._starts_s: Int64 = np.full(len(self._queue), -1, np.int64)
        self._endless: dict[int, Plan] = {}
        self._held: set[int] = set()
        self._astray = 0
        self._held_milli = 0
        self._asked_milli = 0
        self._points: list[tuple[int, int, int]] = []
        self._use = UseOverTime(self._snapshot.arrays.clusters)
        self.arrived = 0
        world = World(self._snapshot, self._queue, self._policy, self._start, self._ends, self._held)
        self._needs = world.needs
        self.waiting = _waiting_jobs(world, discipline, self)

    def moments(self) -> Iterator[int]:
        """Yield the time of each event until no more jobs arrive or end."""
        while self.arrived < len(self._queue) or self._ends:
            due = [self._ends[0][0]] if self._ends else []
            if self.arrived < len(self._queue):
                due.append(self._queue.jobs[self.arrived].arrives_s)
            if isinstance(self.waiting, Queued) and self.waiting.grows_s is not None:
                due.append(self.waiting.grows_s)
            yield min(due)

    def end_due(self, now_s: int) -> None:
        """End jobs that are due."""
        self._pass_time(now_s)
        freed: list[int] = []
        ended: list[int] = []
        while self._ends and self._ends[0][0] <= now_s:
            _, number, plan = heappop(self._ends)
            ended.append(number)
            freed += plan.decisions[plan.placed, PLAN_NODE].tolist()
            self.release(plan)
        if freed:
            self.waiting.freed(ended, np.array(freed, np.int64))

    def admit_due(self, now_s: int) -> None:
        """Admit jobs that are due."""
        while self.arrived < len(self._queue) and self._queue.jobs[self.arrived].arrives_s <= now_s:
            number = self.arrived
            self.arrived += 1
            self._asked_milli += int(self._needs[number, GPU_MILLI])
            self.waiting.join(number)

    def record(self, now_s: int) -> None:
        """Add a point to the curve."""
        self._points.append((now_s, self._asked_milli, self._held_milli))

    def outcome(self) -> Outcome:
        """Return the results."""
        time_s, asked, held = np.array(self._points, np.int64).reshape(-1, 3).T
        curve = Curve(percent(asked, self._capacity), percent(held, self._capacity), time_s.astype(np.float64))
        span_s = int(time_s[-1] - time_s[0]) if time_s.size else 0
        return Outcome(
            policy=self._policy.name,
            counts=self._counts(),
            shares=Shares(last_of(curve.arrived_pct), mean_over_time(curve)),
            use=use(self._use.shares(self._snapshot.arrays.clusters)),
            speed=self._clock.speed(),
            curve=curve,
            waits=waits_of(self._queue.jobs, self._starts_s, span_s),
            starts_s=self._starts_s,
            sharing=self._sharing(),
        )

    def _sharing(self) -> Sharing | None:
        """Return how queues and tenants shared the fleet; None without queues."""
        waiting = self.waiting
        if not isinstance(waiting, Queued):
            return None
        return Sharing(waiting.share_error(), waiting.preempted, waiting.preempted_gpu_s / S_PER_HOUR)

    def _counts(self) -> Counts:
        """Count the jobs by result. A job that waits at the end is refused if it does not fit the empty fleet."""
        empty, policy = Snapshot(self._fleet), make_policy(COMPLETE_POLICIES)
        left = list(self.waiting)
        refused = sum(not could_place(empty, JobQueue(empty, [self._queue.jobs[number]]), policy) for number in left)
        failed = len(left) - refused + self._astray
        return Counts(len(self._queue), len(self._queue) - refused - failed, refused, failed)

    def _pass_time(self, now_s: int) -> None:
        if self._points:
            self._use.add(now_s - self._now_s, self._snapshot.arrays.clusters)
        self._now_s = now_s

    def _start(self, number: int, allows: Callable[[Plan], bool], narrowed: JobQueue | None = None) -> Plan | None:
        """Try to place a job. Return its plan if it runs now, even if its links violate its bounds.

        A policy can defer it while other jobs with an end run.

        Parameters
        ----------
        narrowed
            The job with tighter rules; None for the job as it is.
        """
        plan = self._clock.decide(narrowed or self._queue.part(number, number + 1), may_wait=bool(self._ends))
        if plan.deferred:
            self._held.add(number)
        else:
            self._held.discard(number)
        self._held_milli += int(plan.slices[:, SLICE_CORE].sum())
        astray = bool(plan.decisions[:, PLAN_LINK_MISSED].any())
        placed = bool(plan.jobs_placed[0])
        if not (placed or astray) or not allows(plan):
            self.release(plan)
            return None
        self._astray += not placed
        self._starts_s[number] = self._now_s
        lasts_s = self._queue.jobs[number].expected_duration_s
        if lasts_s is not None:
            heappush(self._ends, (self._now_s + lasts_s, number, plan))
        else:
            self._endless[number] = plan
        return plan

    def stop(self, number: int) -> None:
        """End a running job before its time. It waits again."""
        self.release(self._taken_out(number))
        self._starts_s[number] = -1

    def _taken_out(self, number: int) -> Plan:
        at = next((at for at, (_, each, _) in enumerate(self._ends) if each == number), None)
        plan = self._endless.pop(number) if at is None else self._ends.pop(at)[2]
        heapify(self._ends)
        return plan

    def decide(self, wanted: JobQueue) -> Plan:
        """Place replicas of a running job, as many as fit."""
        plan = self._clock.decide(wanted)
        self._held_milli += int(plan.slices[:, SLICE_CORE].sum())
        return plan

    def resize(self, number: int, plan: Plan, ends_s: int) -> None:
        """Let a job continue with other replicas, until another time."""
        self._taken_out(number)
        if ends_s < NEVER_S:
            heappush(self._ends, (ends_s, number, plan))
        else:
            self._endless[number] = plan

    def release(self, plan: Plan) -> None:
        """Release what replicas hold."""
        self._held_milli -= int(plan.slices[:, SLICE_CORE].sum())
        self._snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))


def _waiting_jobs(world: World, discipline: Discipline, runs: Runs) -> WaitingJobs:
    """Create the waiting jobs of a replay, none at first."""
    order, backfill = discipline.order, discipline.backfill
    if discipline.queues or order is Order.FAIR or any(job.elastic for job in world.queue.jobs):
        one = Queue(DEFAULT, order=order, backfill=backfill, reclaim=Reclaim.NEVER)
        discipline = replace(discipline, queues=discipline.queues or (one,))
        return Queued(world, queue_tree(discipline, world.snapshot.clusters), discipline.queues, runs)
    key = _keys(world, order)
    match backfill:
        case Backfill.GREEDY:
            return Greedy(world, key)
        case Backfill.CONSERVATIVE:
            return Planned(world, key, in_arrival_order=order is Order.FIFO)
        case _:
            return Ordered(world, key, easy=backfill is Backfill.EASY)


def queue_tree(discipline: Discipline, clusters: Sequence[Cluster]) -> QueueTree:
    """Return the queues of a replay on some clusters, without use."""
    pools = {queue.pool: frozenset[str]() for queue in discipline.queues} | dict(discipline.pools)
    capacities = {
        name: total_of(capacity_of(each) for each in clusters if not allowed or each.name in allowed)
        for name, allowed in pools.items()
    }
    return QueueTree(
        discipline.queues, capacities, discipline.tenants, discipline.gpu_weights, discipline.restart_cost_s
    )


def _keys(world: World, order: Order) -> Callable[[int], Key]:
    jobs = world.queue.jobs
    match order:
        case Order.FIFO:
            return lambda number: (0, number)
        case Order.SHORTEST:
            return lambda number: (int(world.lasts_s[number]), number)
        case _:
            return lambda number: (-jobs[number].priority, number)


def mean_over_time(curve: Curve) -> float | None:
    """Return the mean allocation over time; None if it is unknown."""
    if curve.time_s is None or not curve.time_s.size or np.isnan(curve.allocated_pct[-1]):
        return None
    lasts_s = np.diff(curve.time_s)
    if not lasts_s.sum():
        return last_of(curve.allocated_pct)
    return float(np.average(curve.allocated_pct[:-1], weights=lasts_s))
