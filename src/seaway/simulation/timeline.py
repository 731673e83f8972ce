"""Replay of a trace on a virtual clock: jobs arrive, wait, run and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.queues import Backfill, Order, Queue, Reclaim
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import DEFAULT
from seaway.scheduling.arrays import Float64, Int64
from seaway.scheduling.columns import PLAN_LINK_MISSED, PLAN_NODE, SLICE_CORE
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import (
    COMPLETE_POLICIES,
    FREE_ROWS,
    Counts,
    Curve,
    Outcome,
    Shares,
    UseOverTime,
    could_place,
    use,
    waits_of,
)
from seaway.simulation.replay import capacity_milli, last_of, percent
from seaway.simulation.stopwatch import WARM_UP_JOBS, PolicyMaker, Stopwatch, warm_up
from seaway.simulation.waiting.conservative import Planned
from seaway.simulation.waiting.discipline import ONE_QUEUE, Discipline
from seaway.simulation.waiting.easy import Ordered
from seaway.simulation.waiting.greedy import Greedy
from seaway.simulation.waiting.queued import Queued
from seaway.simulation.waiting.world import GPU_MILLI, Key, WaitingJobs, World, needed_amounts


def replay_with_departures(
    fleet: Fleet,
    jobs: Sequence[Job],
    make: PolicyMaker,
    progress: Callable[[int], None] = lambda _: None,
    discipline: Discipline = ONE_QUEUE,
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
    if discipline.queues or discipline.order is Order.FAIR or any(job.elastic for job in jobs):
        return _replay_in_queues(fleet, jobs, make, progress, discipline)
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
        self.waiting = _waiting_jobs(world, discipline)

    def moments(self) -> Iterator[int]:
        """Yield the time of each event until no more jobs arrive or end."""
        while self.arrived < len(self._queue) or self._ends:
            due = [self._ends[0][0]] if self._ends else []
            if self.arrived < len(self._queue):
                due.append(self._queue.jobs[self.arrived].arrives_s)
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
            self._release(plan)
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
        shares = self._use.shares(self._snapshot.arrays.clusters)
        counts = _counts(self._fleet, self._queue.jobs, list(self.waiting), self._astray)
        return _outcome(self._clock, self._queue.jobs, self._starts_s, counts, self._points, self._capacity, shares)

    def _pass_time(self, now_s: int) -> None:
        if self._points:
            self._use.add(now_s - self._now_s, self._snapshot.arrays.clusters)
        self._now_s = now_s

    def _start(self, number: int, allows: Callable[[Plan], bool]) -> Plan | None:
        """Try to place a job. Return its plan if it runs now, even if its links violate its bounds.

        A policy can defer it while other jobs with an end run.
        """
        plan = self._clock.decide(self._queue.part(number, number + 1), may_wait=bool(self._ends))
        if plan.deferred:
            self._held.add(number)
        else:
            self._held.discard(number)
        self._held_milli += int(plan.slices[:, SLICE_CORE].sum())
        astray = bool(plan.decisions[:, PLAN_LINK_MISSED].any())
        placed = bool(plan.jobs_placed[0])
        if not (placed or astray) or not allows(plan):
            self._release(plan)
            return None
        self._astray += not placed
        self._starts_s[number] = self._now_s
        lasts_s = self._queue.jobs[number].expected_duration_s
        if lasts_s is not None:
            heappush(self._ends, (self._now_s + lasts_s, number, plan))
        else:
            self._endless[number] = plan
        return plan

    def _release(self, plan: Plan) -> None:
        """Release what replicas hold."""
        self._held_milli -= int(plan.slices[:, SLICE_CORE].sum())
        self._snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))


def _replay_in_queues(
    fleet: Fleet, jobs: Sequence[Job], make: PolicyMaker, progress: Callable[[int], None], discipline: Discipline
) -> Outcome:
    """Replay jobs in a tree of queues, or in one queue that tenants share."""
    queues = discipline.queues
    if not queues:
        queues = (Queue(DEFAULT, order=discipline.order, backfill=discipline.backfill, reclaim=Reclaim.NEVER),)
        jobs = [job if job.queue == DEFAULT else replace(job, queue=DEFAULT) for job in jobs]
    jobs = sorted(jobs, key=lambda job: job.arrives_s)
    snapshot = Snapshot(fleet)
    warm_up(snapshot, JobQueue(snapshot, jobs[:WARM_UP_JOBS]), make)
    policy = make()
    if not isinstance(policy, Profile):
        raise RejectedError(Reason("no_queues", name=policy.name))
    clock, capacity, used = Stopwatch(snapshot, policy), capacity_milli(snapshot), UseOverTime(snapshot.arrays.clusters)
    run = Queued(snapshot, jobs, policy, clock, replace(discipline, queues=queues))
    points: list[tuple[int, int, int]] = []
    arrived = asked_milli = 0
    clusters = run.clusters()
    for now_s in run.moments():
        since, arrived = arrived, run.arrived
        asked_milli += sum(each.replicas * needed_amounts(each.demand)[GPU_MILLI] for each in jobs[since:arrived])
        if points:
            used.add(now_s - points[-1][0], clusters)
        clusters = run.clusters()
        points.append((now_s, asked_milli, capacity - int(clusters[FREE_ROWS[GPU_MILLI]].sum())))
        progress(arrived)
    shares, counts = used.shares(clusters), _counts(fleet, jobs, run.waiting)
    return replace(_outcome(clock, jobs, run.starts_s, counts, points, capacity, shares), sharing=run.sharing())


def _counts(fleet: Fleet, jobs: Sequence[Job], left: Sequence[int], astray: int = 0) -> Counts:
    """Count the jobs by result. A job that waits at the end is refused if it does not fit the empty fleet.

    Parameters
    ----------
    left
        Numbers of the jobs that wait at the end.
    astray
        Number of jobs that ran with links that violated their bounds.
    """
    empty, policy = Snapshot(fleet), make_policy(COMPLETE_POLICIES)
    refused = sum(not could_place(empty, JobQueue(empty, [jobs[number]]), policy) for number in left)
    failed = len(left) - refused + astray
    return Counts(len(jobs), len(jobs) - refused - failed, refused, failed)


def _outcome(
    clock: Stopwatch,
    jobs: Sequence[Job],
    starts_s: Int64,
    counts: Counts,
    points: Sequence[tuple[int, int, int]],
    capacity_milli: int,
    shares: Float64,
) -> Outcome:
    """Return the results of a replay.

    Parameters
    ----------
    points
        Times, seconds, with the requested and allocated GPU cores from then on, thousandths.
    shares
        Mean use of clusters, see `UseOverTime.shares`.
    """
    time_s, asked, held = np.array(points, np.int64).reshape(-1, 3).T
    curve = Curve(percent(asked, capacity_milli), percent(held, capacity_milli), time_s.astype(np.float64))
    span_s = int(time_s[-1] - time_s[0]) if time_s.size else 0
    return Outcome(
        policy=clock.policy,
        counts=counts,
        shares=Shares(last_of(curve.arrived_pct), mean_over_time(curve)),
        use=use(shares),
        speed=clock.speed(),
        curve=curve,
        waits=waits_of(jobs, starts_s, span_s),
        starts_s=starts_s,
    )


def _waiting_jobs(world: World, discipline: Discipline) -> WaitingJobs:
    """Create the waiting jobs of a replay, none at first."""
    order, backfill = discipline.order, discipline.backfill
    key = _keys(world, order)
    match backfill:
        case Backfill.GREEDY:
            return Greedy(world, key)
        case Backfill.CONSERVATIVE:
            return Planned(world, key, in_arrival_order=order is Order.FIFO)
        case _:
            return Ordered(world, key, easy=backfill is Backfill.EASY)


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
