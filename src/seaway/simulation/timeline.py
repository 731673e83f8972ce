"""Replay of a trace on a virtual clock: jobs arrive, wait, run and end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush

import numpy as np

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    DEMAND_BANDWIDTH,
    JOB_DEMAND,
    PLAN_LINK_MISSED,
    PLAN_NODE,
    SLICE_CORE,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.queries import fitting_demands
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import (
    COMPLETE_POLICIES,
    Counts,
    Curve,
    Float64,
    Outcome,
    Shares,
    Waits,
    could_place,
    quantile,
    use,
    used_shares,
)
from seaway.simulation.replay import capacity_milli, last_of, percent, requested_milli
from seaway.simulation.stopwatch import PolicyMaker, Stopwatch, warm_up

Kind = tuple[int, int, int, bool, int]
"""Key of equal waiting jobs: priority (negative), row of the demand, replicas, gang."""


def replay_with_departures(
    fleet: Fleet, jobs: Sequence[Job], make: PolicyMaker, progress: Callable[[int], None] = lambda _: None
) -> Outcome:
    """Replay jobs that arrive at their time, wait until they fit, run, and end.

    A job that does not fit waits in a queue, ordered by priority, then by arrival. When jobs end, the queue is tried
    once from the front. Every job that now fits starts, also before others that still do not fit. Use is reported as
    means over time.

    Parameters
    ----------
    fleet
        Fleet without allocations.
    jobs
        Jobs, which arrive at `arrives_s`. Those that arrive in the same second do so in the given order.
    progress
        Called with the number of jobs that arrived so far.
    """
    run = _Run(fleet, jobs, make)
    for now in run.moments():
        run.end_due(now)
        run.admit_due(now)
        run.record(now)
        progress(run.arrived)
    return run.outcome()


@dataclass(slots=True)
class _Waiting:
    """Queue that groups jobs by kind, so that a kind that does not fit is tried only once."""

    kinds: dict[Kind, deque[int]] = field(default_factory=dict)

    def join(self, kind: Kind, number: int) -> None:
        self.kinds.setdefault(kind, deque()).append(number)

    def start_fitting(self, may_fit: Callable[[list[Kind]], list[Kind]], start: Callable[[int], bool]) -> None:
        """Try the queue once from the front and start the jobs that fit.

        Parameters
        ----------
        may_fit
            Returns the kinds that may fit now. Others are not tried.
        start
            Starts a job by its number, and returns whether it started.
        """
        heads = self._heads(may_fit(list(self.kinds)))
        while heads:
            _, number, kind = heappop(heads)
            if start(number):
                self._leave(kind)
                heads = self._heads(may_fit([kind for *_, kind in heads] + [kind] * (kind in self.kinds)))

    def _heads(self, kinds: Iterable[Kind]) -> list[tuple[int, int, Kind]]:
        heads = [(kind[0], self.kinds[kind][0], kind) for kind in kinds]
        heapify(heads)
        return heads

    def _leave(self, kind: Kind) -> None:
        """Remove the first job of a kind from the queue."""
        self.kinds[kind].popleft()
        if not self.kinds[kind]:
            del self.kinds[kind]

    def __iter__(self) -> Iterator[int]:
        return (number for same in self.kinds.values() for number in same)


class _Run:
    """State of a replay: running jobs with their ends, and waiting jobs."""

    def __init__(self, fleet: Fleet, jobs: Sequence[Job], make: PolicyMaker) -> None:
        self._fleet = fleet
        self._snapshot = Snapshot(fleet)
        self._queue = JobQueue(self._snapshot, sorted(jobs, key=lambda job: job.arrives_s))
        warm_up(self._snapshot, self._queue, make)
        self._policy = make()
        self._clock = Stopwatch(self._snapshot, self._policy)
        self._capacity = capacity_milli(self._snapshot)
        self._waiting = _Waiting()
        self._ends: list[tuple[int, int, Plan]] = []
        self._now_s = 0
        self._waits_s: list[int] = []
        self._held: set[Kind] = set()
        self._astray = 0
        self._held_milli = 0
        self._asked_milli = 0
        self._points: list[tuple[int, int, int]] = []
        self._use_s: Float64 = np.zeros_like(used_shares(self._snapshot.arrays.clusters))
        self.arrived = 0

    def moments(self) -> Iterator[int]:
        """Yield the time of each event until no more jobs arrive or end."""
        while self.arrived < len(self._queue) or self._ends:
            due = [self._ends[0][0]] if self._ends else []
            if self.arrived < len(self._queue):
                due.append(self._queue.jobs[self.arrived].arrives_s)
            yield min(due)

    def end_due(self, now_s: int) -> None:
        """End jobs that are due, then start waiting jobs that now fit."""
        self._pass_time(now_s)
        freed: list[int] = []
        while self._ends and self._ends[0][0] <= now_s:
            _, _, plan = heappop(self._ends)
            freed += plan.decisions[plan.placed, PLAN_NODE].tolist()
            self._release(plan)
        if freed and self._waiting.kinds:
            self._waiting.start_fitting(partial(self._may_fit, np.unique(freed)), self._start)

    def admit_due(self, now_s: int) -> None:
        """Admit jobs that are due. A job waits if it does not fit, or if an equal job waits."""
        while self.arrived < len(self._queue) and self._queue.jobs[self.arrived].arrives_s <= now_s:
            number = self.arrived
            self.arrived += 1
            self._asked_milli += requested_milli(self._queue.jobs[number])
            kind = self._kind(number)
            if kind in self._waiting.kinds or not self._start(number):
                self._waiting.join(kind, number)

    def record(self, now_s: int) -> None:
        """Add a point to the curve."""
        self._points.append((now_s, self._asked_milli, self._held_milli))

    def outcome(self) -> Outcome:
        """Return the results."""
        time_s, asked, held = np.array(self._points, np.int64).reshape(-1, 3).T
        curve = Curve(percent(asked, self._capacity), percent(held, self._capacity), time_s.astype(np.float64))
        span_s = int(time_s[-1] - time_s[0]) if time_s.size else 0
        shares = self._use_s / span_s if span_s else used_shares(self._snapshot.arrays.clusters)
        waits_s = np.array(self._waits_s, np.float64)
        return Outcome(
            policy=self._policy.name,
            counts=self._counts(),
            shares=Shares(last_of(curve.arrived_pct), mean_over_time(curve)),
            use=use(shares),
            speed=self._clock.speed(),
            curve=curve,
            waits=Waits(
                float(waits_s.mean()) if waits_s.size else None,
                quantile(waits_s, 0.5),
                quantile(waits_s, 0.99),
                span_s,
            ),
        )

    def _counts(self) -> Counts:
        """Count the jobs by result. A job that waits at the end is refused if it does not fit the empty fleet."""
        empty, policy = Snapshot(self._fleet), make_policy(COMPLETE_POLICIES)
        left = list(self._waiting)
        refused = sum(not could_place(empty, JobQueue(empty, [self._queue.jobs[number]]), policy) for number in left)
        failed = len(left) - refused + self._astray
        return Counts(len(self._queue), len(self._queue) - refused - failed, refused, failed)

    def _pass_time(self, now_s: int) -> None:
        if self._points:
            self._use_s += (now_s - self._now_s) * used_shares(self._snapshot.arrays.clusters)
        self._now_s = now_s

    def _kind(self, number: int) -> Kind:
        job = self._queue.jobs[number]
        between_mbps = job.between_replicas.min_bandwidth_mbps
        return -job.priority, int(self._queue.rows[number, JOB_DEMAND]), job.replicas, job.gang, between_mbps

    def _start(self, number: int) -> bool:
        """Try to place a job. Return whether it runs now, even if its links violate its bounds.

        A policy can defer it while other jobs with an end run.
        """
        job = self._queue.part(number, number + 1)
        plan = self._clock.decide(job, may_wait=bool(self._ends))
        kind = self._kind(number)
        if plan.deferred:
            self._held.add(kind)
        else:
            self._held.discard(kind)
        self._held_milli += int(plan.slices[:, SLICE_CORE].sum())
        astray = bool(plan.decisions[:, PLAN_LINK_MISSED].any())
        placed = bool(plan.jobs_placed[0])
        if not placed and not astray:
            self._release(plan)
            return False
        self._astray += not placed
        waited = job.jobs[0]
        self._waits_s.append(self._now_s - waited.arrives_s)
        if waited.expected_duration_s is not None:
            heappush(self._ends, (self._now_s + waited.expected_duration_s, number, plan))
        return True

    def _release(self, plan: Plan) -> None:
        self._held_milli -= int(plan.slices[:, SLICE_CORE].sum())
        self._snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))

    def _may_fit(self, freed: Int64, kinds: list[Kind]) -> list[Kind]:
        """Return the kinds that may fit after jobs ended on the nodes `freed`, shape (X,).

        A waiting job did not fit before, so it can only fit on these nodes, unless it waits for bandwidth or was
        deferred. This is true for profiles; other policies may consider other nodes.
        """
        if not isinstance(self._policy, Profile):
            return kinds
        lines = np.array([kind[1] for kind in kinds], np.int64)
        demands = self._snapshot.demands.arrays
        may_fit = fitting_demands(self._snapshot.arrays, demands, lines, freed) != 0
        may_fit |= demands.amounts[lines, DEMAND_BANDWIDTH] > 0
        may_fit |= np.array([kind[4] > 0 or kind in self._held for kind in kinds], np.bool_)
        return [kinds[at] for at in np.flatnonzero(may_fit)]


def mean_over_time(curve: Curve) -> float | None:
    """Return the mean allocation over time; None if it is unknown."""
    if curve.time_s is None or not curve.time_s.size or np.isnan(curve.allocated_pct[-1]):
        return None
    lasts_s = np.diff(curve.time_s)
    if not lasts_s.sum():
        return last_of(curve.allocated_pct)
    return float(np.average(curve.allocated_pct[:-1], weights=lasts_s))
