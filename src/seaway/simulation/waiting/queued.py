"""Waiting jobs in a tree of queues, with shares, limits, backfill and preemption."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np

from seaway.domain.amounts import CPU, GPUS, Amounts, capacity_of, requested_amounts, total_of
from seaway.domain.job import Job
from seaway.domain.queues import Backfill, Elastic, Order, Queue, children_of
from seaway.scheduling.arrays import Int64
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.backfill import NEVER_S, FreeOverTime, within
from seaway.scheduling.queueing.discipline import SortKey
from seaway.scheduling.queueing.lanes import FirstJob, LaneName, LaneOrder
from seaway.scheduling.queueing.model_shares import NONE, PoolShares, pool_shares, without_models
from seaway.scheduling.queueing.preemption import (
    Candidate,
    DisplacementRules,
    VictimSearch,
    by_queue,
    may_displace_any,
    may_ever_displace,
    priority_below,
)
from seaway.scheduling.queueing.registry import FairShare
from seaway.scheduling.queueing.tree import Owner, QueueNode, QueueTree
from seaway.simulation.waiting.elastic import Running, Runs, joined, more_of, split
from seaway.simulation.waiting.shares import ShareErrors
from seaway.simulation.waiting.world import World, always

MAX_TESTED = 500
"""Maximum number of jobs of a lane that are tried at each moment."""

MAX_SAMPLES = 2000
"""Approximate number of moments at which shares are compared."""

NS_PER_S = 1_000_000_000

_WITHOUT_PLANS = frozenset({Backfill.NONE, Backfill.GREEDY})

_Waiting: TypeAlias = tuple[SortKey, int]
"""Sort key and number of a waiting job."""


class _Line:
    """Waiting jobs of a lane in order, all and by group."""

    __slots__ = ("groups", "jobs")

    def __init__(self) -> None:
        self.jobs: list[_Waiting] = []
        self.groups: dict[int, list[_Waiting]] = {}

    def put(self, job: _Waiting, group: int) -> None:
        """Add a job."""
        insort(self.jobs, job)
        insort(self.groups.setdefault(group, []), job)

    def remove(self, job: _Waiting, group: int) -> None:
        """Remove a job."""
        of_group = self.groups[group]
        for line in (self.jobs, of_group):
            del line[bisect_left(line, job)]
        if not of_group:
            del self.groups[group]


class _Wanted(NamedTuple):
    """Request of a kind of jobs, as `seaway.scheduling.queueing.model_shares.Wanted`."""

    models: frozenset[str]
    requested: Amounts


class Queued:
    """Waiting jobs in the order of the default queue discipline.

    Reservations of `Backfill.EASY` and `Backfill.CONSERVATIVE` count amounts of the whole fleet. A displaced job starts
    again from its beginning. Jobs without a chance, by the free amounts and the rules of queues, are not tried, unless
    they get a reservation or keep others from starting. While jobs need single GPU models, each queue first starts jobs
    within its parts of the free ones, as in the control loop.

    Elastic jobs get more replicas once no waiting job fits, and shrink before another job is displaced.

    Parameters
    ----------
    tree
        The queues and tenants.
    queues
        All queues.
    runs
        Running jobs, which it stops and resizes.

    Attributes
    ----------
    preempted
        Number of displaced jobs.
    preempted_gpu_s
        GPUs times seconds that displaced jobs ran in vain.
    grows_s
        Next time at which a job may get more replicas, because its queue's cool-down ends; None if there is none.
    """

    def __init__(self, world: World, tree: QueueTree, queues: Sequence[Queue], runs: Runs) -> None:
        self._world = world
        self._runs = runs
        self._queues = {queue.name: queue for queue in queues}
        capacity = total_of(map(capacity_of, world.snapshot.clusters))
        self._tree = tree
        self._discipline = FairShare()
        self._order = LaneOrder(self._tree, self._discipline)
        self._keys: dict[LaneName, tuple[_Waiting, SortKey]] = {}  # a job of each lane, with the key of its tenant
        self._outdated = tree.watch()  # lanes whose keys may have changed
        self._next: dict[LaneName, _Waiting] = {}  # the job of each lane in the order
        self._lines: defaultdict[str, dict[str, _Line]] = defaultdict(dict)  # by queue and tenant
        self._running: dict[int, Running] = {}
        self._attempts: defaultdict[int, int] = defaultdict(int)
        self._taken = defaultdict[int, set[str]](set)  # jobs of other queues that a job displaced
        jobs = world.queue.jobs
        self._kinds = _numbered(map(world.kind, range(len(jobs))))
        self._groups = _numbered((self._kinds[at], job.queue, job.tenant) for at, job in enumerate(jobs))
        self._kind_of = dict(zip(self._groups, self._kinds, strict=True))  # by group
        self._lane_of = {group: self._lane(number) for number, group in enumerate(self._groups)}
        first = np.unique(np.array(self._kinds, np.int64), return_index=True)[1]
        self._needs_of = world.needs[first]  # by kind
        self._requests = [requested_amounts(jobs[at].demand, jobs[at].replicas) for at in first]
        models = ((name.casefold() for name in jobs[at].demand.devices.models) for at in first)
        self._wanted = [_Wanted(frozenset(of), each) for of, each in zip(models, self._requests, strict=True)]
        self._needs_models = any(each.models for each in self._wanted)
        self._leaves = [queue.name for queue in queues if queue.name not in children_of(queues)]
        self._shares: dict[str, PoolShares] = {}  # by pool
        self._basis: Sequence[Hashable] = ()  # kinds that wait in each leaf, or what it holds without any
        self._narrowed: dict[tuple[int, frozenset[str]], JobQueue] = {}
        self._lasts_s: list[int] = world.lasts_s.tolist()
        self._refused: dict[int, int] = {}  # kinds that do not fit now, each with a job of it
        self._fruitless: set[int] = set()  # groups that neither fit nor have victims, until a job starts or ends
        lends = any(job.elastic and self._queues[job.queue].elastic is Elastic.LEND for job in jobs)
        self._displacing = {each.name for each in queues if lends or may_ever_displace(self._tree.node(each.name))}
        self._lending: set[int] = set()  # running jobs with replicas that leave for any waiting one
        resource = GPUS if capacity.get(GPUS) else CPU
        times_s = [job.arrives_s for job in jobs]
        step_s = max(1, (times_s[-1] - times_s[0]) // MAX_SAMPLES) if times_s else 1
        self._errors = ShareErrors(self._tree, queues, resource, step_s)
        self.preempted = 0
        self.preempted_gpu_s = 0.0
        self.grows_s: int | None = None

    def freed(self, numbers: Sequence[int], nodes: Int64) -> None:
        """Count jobs that ended, and allow new tries."""
        for number in numbers:
            self._forget(number)
        for number in self._world.may_fit(list(self._refused.values()), nodes):
            del self._refused[self._kinds[number]]
        self._fruitless.clear()

    def join(self, number: int) -> None:
        """Add a job."""
        job = self._world.queue.jobs[number]
        key = self._discipline.job_key(job, job.arrives_s * NS_PER_S, self._queues[job.queue])
        line = self._lines[job.queue].setdefault(self._lane(number)[1], _Line())
        line.put(((*key[:2], number), number), self._groups[number])
        self._errors.wait((job.queue, job.tenant), self._requested(number))

    def schedule(self, now_s: int) -> None:
        """Start the jobs that may start now, in order."""
        if self._needs_models:
            self._divide_models(now_s)
        moment = _Moment(self._world, now_s, self._next)
        self._find_live(moment)
        if moment.live:
            self._try_all(moment)
        self._grow_all(moment)
        self._errors.record(now_s)

    def _divide_models(self, now_s: int) -> None:
        """Start the jobs that fit into the parts of their queues of each GPU model, without displacing others."""
        waiting = defaultdict[str, dict[QueueNode, list[_Wanted]]](dict)
        basis = list[Hashable]()
        for queue in self._leaves:
            node, lines = self._tree.node(queue), self._lines[queue].values()
            groups = ((group, jobs[0][1]) for line in lines for group, jobs in line.groups.items())
            kinds = frozenset(self._kind_of[group] for group, number in groups if not self._is_limited(number))
            waiting[node.queue.pool][node] = [self._wanted[kind] for kind in kinds]
            basis.append(kinds or frozenset(node.use.held.items()))
        if basis != self._basis:
            found = {pool: pool_shares(self._tree, pool, of, self._world.snapshot) for pool, of in waiting.items()}
            self._shares, self._basis = {pool: each for pool, each in found.items() if each}, basis
        self._divide()
        if any(each.divides_any for each in self._shares.values()):
            moment = _Moment(self._world, now_s, self._next, divides=True)
            self._find_live(moment)
            if moment.live:
                self._try_all(moment)

    def _divide(self) -> None:
        for each in self._shares.values():
            each.divide()

    def _share_of(self, group: int) -> tuple[PoolShares, QueueNode, _Wanted] | None:
        """Return the pool and queue of a group of jobs; None if it takes no part in the division of models."""
        node, wanted = self._tree.node(self._lane_of[group][0]), self._wanted[self._kind_of[group]]
        pool = self._shares.get(node.queue.pool)
        return (pool, node, wanted) if pool and pool.participates(node, wanted) else None

    def _waits_for_others(self, group: int, moment: _Moment) -> bool:
        """Report whether jobs wait until all queues have started jobs within their parts of GPU models."""
        if not moment.divides or group in moment.deferred:
            return moment.divides
        known = self._share_of(group)
        return known is not None and not known[0].has_part(*known[1:])

    def _start_within_part(self, number: int, moment: _Moment) -> Plan | None:
        """Start a job on the GPU models of which its queue still gets a part."""
        known = self._share_of(group := self._groups[number])
        left = known[0].take(*known[1:]) if known else NONE
        key = self._kinds[number], left or NONE
        if left and key not in self._narrowed:
            snapshot = self._world.snapshot
            job = without_models(self._world.queue.jobs[number], left, snapshot)
            self._narrowed[key] = JobQueue(snapshot, [job])
        plan = None if left is None else self._world.start(number, always, self._narrowed.get(key))
        if plan is None:
            moment.deferred.add(group)
            self._divide()
        return plan

    def _find_live(self, moment: _Moment) -> None:
        """Find the waiting jobs that have a chance now: by the free amounts, or with victims."""

        @cache
        def displaces(queue: str, kind: int) -> bool:
            return self._may_displace_any(queue, self._requests[kind])

        fitting = set(np.flatnonzero((self._needs_of <= self._world.free()).all(axis=1)).tolist())
        moment.fitting, moment.live, moment.lanes = fitting - self._refused.keys(), set(), set()
        moment.displacing = set()
        for queue, lines in self._lines.items():
            displacing = queue in self._displacing and not moment.divides
            for tenant, line in lines.items() if moment.fitting or displacing else ():
                for group in line.groups:
                    kind = self._kind_of[group]
                    if self._waits_for_others(group, moment):
                        continue
                    if displacing and group not in self._fruitless and displaces(queue, kind):
                        moment.displacing.add(group)
                    elif kind not in moment.fitting:
                        continue
                    moment.live.add(group)
                    moment.lanes.add((queue, tenant))

    def _try_all(self, moment: _Moment) -> None:
        """Try jobs in order, until none has a chance. Each lane is in the order with its next job to try.

        It stays there, since most lanes begin with the same job at the next moment.
        """
        for queue in self._lines:
            self._put_all(queue, moment)
        while moment.next and moment.live:
            lane = self._order.first() if len(moment.next) > 1 else next(iter(moment.next))
            assert lane is not None
            job, queue, displaced = moment.next[lane], lane[0], len(moment.displaced)
            moment.passed[lane] = job
            moment.tried[lane] += 1
            started = self._starts(job[1], moment)
            if not started:
                self._drop_infeasible(moment)
            if started:
                self._leave(lane, job)
                self._find_live(moment)
            elif self._queues[queue].backfill is Backfill.NONE:
                moment.closed.add(queue)
            if len(moment.displaced) > displaced:
                for each in self._lines:
                    self._put_all(each, moment)
            elif started or moment.heads.get(queue) == lane:
                self._put_all(queue, moment)
            else:
                self._put(lane, moment)
            if lane[1] not in self._lines[queue]:
                self._drop(lane, moment)

    def _drop_infeasible(self, moment: _Moment) -> None:
        """Drop the groups that cannot start any more, so that no further job is tried and planned in vain.

        They do not fit, or each of their jobs would delay a reservation, and they displace no other.
        """
        for group in list(moment.live):
            kind, lane = self._kind_of[group], self._lane_of[group]
            if group in moment.displacing and group not in self._fruitless:
                continue
            if self._waits_for_others(group, moment):
                moment.live.discard(group)
                continue
            if kind not in moment.fitting or kind in self._refused:
                moment.live.discard(group)
                continue
            room_s, passed = moment.room_s(self._needs_of[kind]), moment.passed.get(lane)
            known = moment.in_time.get(group)
            if known and self._lasts_s[known[1]] <= room_s and (passed is None or known > passed):
                continue
            jobs = islice(moment.after(self._lines[lane[0]][lane[1]].groups[group], passed), MAX_TESTED)
            if found := next((job for job in jobs if self._lasts_s[job[1]] <= room_s), None):
                moment.in_time[group] = found
            else:
                moment.live.discard(group)

    def _put_all(self, queue: str, moment: _Moment) -> None:
        """Put all lanes of a queue in the order that may have a job to try."""
        self._find_head(queue, moment)
        head, planned = moment.heads.get(queue), self._queues[queue].backfill is Backfill.CONSERVATIVE
        for tenant in self._lines[queue]:
            lane = queue, tenant
            if planned or lane == head or lane in moment.lanes or lane in moment.next:
                self._put(lane, moment)

    def _put(self, lane: LaneName, moment: _Moment) -> None:
        """Put a lane in the order with its next job to try; drop it if there is none."""
        job = self._following(lane, moment)
        if job is None:
            self._drop(lane, moment)
        elif moment.next.get(lane) is not job:
            moment.next[lane] = job
            self._order.put(lane, self._first_job(job))

    def _drop(self, lane: LaneName, moment: _Moment) -> None:
        if moment.next.pop(lane, None):
            self._order.drop(lane)

    def _find_head(self, queue: str, moment: _Moment) -> None:
        """Find the lane with the next job of a queue that gets a reservation, or before which no other may start."""
        moment.heads.pop(queue, None)
        backfill = self._queues[queue].backfill
        if backfill is not Backfill.NONE and moment.reserves_no_more(backfill, queue):
            return
        firsts: dict[LaneName, _Waiting] = {}
        for tenant, line in self._lines[queue].items():
            lane = queue, tenant
            if first := next(moment.after(line.jobs, moment.passed.get(lane)), None):
                firsts[lane] = first
        if len(firsts) == 1:
            moment.heads[queue] = next(iter(firsts))
        elif firsts:
            moment.heads[queue] = min(firsts, key=lambda lane: self._tenant_key(lane, firsts[lane]))

    def _tenant_key(self, lane: LaneName, job: _Waiting) -> SortKey:
        """Return the position of a tenant in its queue with its next job."""
        for queue, tenant in self._outdated:
            if queue:
                self._keys.pop((queue, tenant), None)
            else:
                self._keys.clear()
        self._outdated.clear()
        known = self._keys.get(lane)
        if known is None or known[0] is not job:
            known = self._keys[lane] = job, self._order.tenant_key(lane, self._first_job(job))
        return known[1]

    def _following(self, lane: LaneName, moment: _Moment) -> _Waiting | None:
        """Return the next job of a lane to try; None without one.

        Jobs without a chance only count for a reservation, or where no other job may start before them.
        """
        queue, line, after = lane[0], self._lines[lane[0]].get(lane[1]), moment.passed.get(lane)
        if line is None or queue in moment.closed or moment.tried[lane] >= MAX_TESTED:
            return None
        backfill = self._queues[queue].backfill
        if backfill is Backfill.CONSERVATIVE or moment.heads.get(queue) == lane:
            return next(moment.after(line.jobs, after), None)
        found: list[_Waiting] = []
        for group in (line.groups.keys() & moment.live) - self._fruitless if backfill is not Backfill.NONE else ():
            kind, jobs = self._kind_of[group], moment.after(line.groups[group], after)
            if kind in moment.fitting and kind not in self._refused:
                room_s = moment.room_s(self._needs_of[kind])
                first = next((job for job in jobs if self._lasts_s[job[1]] <= room_s), None)
            else:
                first = next(jobs, None) if queue in self._displacing else None
            if first:
                found.append(first)
        return min(found, default=None)

    def _leave(self, lane: LaneName, job: _Waiting) -> None:
        """Remove a job that started from its line."""
        line, number = self._lines[lane[0]][lane[1]], job[1]
        line.remove(job, self._groups[number])
        if not line.jobs:
            del self._lines[lane[0]][lane[1]]
        owner = self._owner(number)
        self._errors.wait((owner.queue, owner.tenant), self._requested(number), -1)

    def _first_job(self, job: _Waiting) -> FirstJob:
        return FirstJob(job[0], self._requested(job[1]))

    def _requested(self, number: int) -> Amounts:
        return self._requests[self._kinds[number]]

    def _lane(self, number: int) -> LaneName:
        """Return the line that a job waits in: that of its tenant only where tenants share the queue."""
        job = self._world.queue.jobs[number]
        return job.queue, job.tenant if self._queues[job.queue].order is Order.FAIR else ""

    def _owner(self, number: int) -> Owner:
        job = self._world.queue.jobs[number]
        return Owner(job.queue, job.tenant)

    def _key(self, number: int) -> tuple[str, int]:
        return str(number), self._attempts[number]

    def _starts(self, number: int, moment: _Moment) -> bool:
        """Start a job if it fits, its limits have room, and it delays no reservation."""
        need, lasts_s = self._world.needs[number], self._lasts_s[number]
        kind = self._kinds[number]
        limited = self._is_limited(number)
        plan = None
        if not limited and kind not in self._refused and within(need, self._world.free()):
            if not moment.may_start(need, lasts_s):
                moment.reserve(self._backfill(number), number, self._queue(number))
                return False
            plan = self._start_within_part(number, moment) if moment.divides else self._world.start(number, always)
            if plan is None and not moment.divides:
                self._refused[kind] = number
        if plan is None and not moment.divides:
            plan = self._displace(number, moment)
        if plan is None:
            self._reserve(number, moment)
            return False
        self._hold(number, plan, moment.now_s)
        if moment.divides:
            self._divide()
        moment.started(need, lasts_s)
        return True

    def _reserve(self, number: int, moment: _Moment) -> None:
        """Reserve the earliest start of a job that does not fit, if only other jobs prevent it."""
        known = self._share_of(self._groups[number])
        if not self._is_limited(number) and (known is None or known[0].is_below_share(known[1])):
            moment.reserve(self._backfill(number), number, self._queue(number))

    def _is_limited(self, number: int) -> bool:
        return self._tree.hit(self._owner(number), self._requested(number)) is not None

    def _queue(self, number: int) -> str:
        return self._world.queue.jobs[number].queue

    def _backfill(self, number: int) -> Backfill:
        return self._queues[self._queue(number)].backfill

    def _hold(self, number: int, plan: Plan, now_s: int) -> None:
        job = self._world.queue.jobs[number]
        priority = job.priority + self._queues[job.queue].points(now_s - job.arrives_s)
        running = self._run(number, plan, priority)
        running.since_s, lasts_s = now_s, self._lasts_s[number]
        running.ends_s = now_s + lasts_s if lasts_s < NEVER_S else NEVER_S

    def _run(self, number: int, plan: Plan, priority: int) -> Running:
        """Count a job with its replicas."""
        job = self._world.queue.jobs[number]
        running = self._running[number] = Running.of(job, self._key(number), plan, priority)
        running.share = self._tree.node(job.queue).share_of(running.candidate.amounts)
        running.restart = self._tree.loss(job.queue, running.candidate.amounts, 0)
        self._tree.hold(running.candidate.key, running.candidate.owner, running.candidate.amounts)
        self._fruitless.clear()
        self._lending.discard(number)
        if running.spare and self._queues[job.queue].elastic is Elastic.LEND:
            self._lending.add(number)
        return running

    def _resize(self, number: int, plan: Plan, now_s: int) -> None:
        """Let a running job continue with other replicas."""
        before = self._running[number]
        after = self._run(number, plan, before.candidate.priority)
        after.since_s, after.ends_s = before.since_s, before.end_of(after.size, now_s)
        after.rests_s = now_s + self._queues[self._queue(number)].grow_cooldown_s
        self._world.holds[number] = self._replica_needs(number) * after.size
        self._runs.resize(number, plan, after.ends_s)

    def _replica_needs(self, number: int) -> Int64:
        needs: Int64 = self._world.needs[number] // self._world.queue.jobs[number].replicas
        return needs

    def _forget(self, number: int) -> Running:
        """Remove a job that ended."""
        self._tree.release(self._key(number))
        self._world.holds[number] = self._world.needs[number]
        self._lending.discard(number)
        return self._running.pop(number)

    # Elastic jobs.

    def _grow_all(self, moment: _Moment) -> None:
        """Give elastic jobs more replicas, in the order of their starts. These leave all reserved places free."""
        growing, self.grows_s = list[int](), None
        for number, each in self._running.items():
            queue = self._queue(number)
            job = self._world.queue.jobs[number]
            if each.size >= job.max_replicas or job.between_replicas.min_bandwidth_mbps:
                continue
            if self._queues[queue].backfill in (Backfill.NONE, Backfill.CONSERVATIVE) and self._lines[queue]:
                continue
            if each.rests_s > moment.now_s:
                self.grows_s = min(self.grows_s or each.rests_s, each.rests_s)
            else:
                growing.append(number)
        if growing:
            self._reserve_all(moment)
        for number in growing:
            if plan := self._more(number, moment):
                self._resize(number, plan, moment.now_s)

    def _reserve_all(self, moment: _Moment) -> None:
        """Reserve the starts of the jobs that were not tried, since they cannot start now."""
        for queue, lines in self._lines.items():
            for _ in range(MAX_TESTED if self._queues[queue].backfill not in _WITHOUT_PLANS else 0):
                self._find_head(queue, moment)
                if (lane := moment.heads.get(queue)) is None:
                    break
                moment.passed[lane] = job = next(moment.after(lines[lane[1]].jobs, moment.passed.get(lane)))
                self._reserve(job[1], moment)

    def _more(self, number: int, moment: _Moment) -> Plan | None:
        """Place more replicas of an elastic job; return its plan with them, or None if none fits."""
        job, running = self._world.queue.jobs[number], self._running[number]
        owner, need, request = self._owner(number), self._replica_needs(number), job.demand.request

        def has_room(replicas: int, amounts: Amounts) -> bool:
            return moment.may_start(need * replicas, NEVER_S) and self._tree.hit(owner, amounts, str(number)) is None

        free = self._world.free()[need > 0] // need[need > 0]
        most = min(job.max_replicas - running.size, int(free.min(initial=job.max_replicas)))
        possible = range(most, 0, -1)
        if not (most := next((each for each in possible if has_room(each, requested_amounts(job.demand, each))), 0)):
            return None
        hits = self._tree.model_hits(owner, requested_amounts(job.demand, 1)) if request.gpus else {}
        for wanted in more_of(without_models(job, hits, self._world.snapshot), running.plan, most):
            more = self._runs.decide(JobQueue(self._world.snapshot, [wanted]))
            if placed := int(more.placed.sum()):
                if has_room(placed, more.amounts(request)):
                    moment.resized(running, need, placed)
                    return joined(running.plan, more)
                self._runs.release(more)
        return None

    # Preemption.

    def _displace(self, number: int, moment: _Moment) -> Plan | None:
        """Let running jobs shrink or end for a waiting one, if the rules of the queues allow it, and start it."""
        victims = [] if self._groups[number] in self._fruitless else self._victims(number, moment.now_s)
        if not victims:
            self._fruitless.add(self._groups[number])
            return None
        gone = defaultdict[int, set[int]](set)
        for victim in victims:
            gone[int(victim.job_key[0])] |= victim.replicas
        running = {each: self._running[each] for each in gone}
        leaves = [(running[each], self._replica_needs(each), len(replicas)) for each, replicas in gone.items()]
        if not moment.may_replace(number, leaves):
            return None
        for each in victims:
            if each.whole is None:
                if each.owner.queue != self._queue(number):
                    self._taken[number].add(each.key[0])
                self._end(int(each.key[0]), moment)
        for other, replicas in gone.items():
            if other in self._running:
                leaving, left = split(self._running[other].plan, replicas)
                self._runs.release(leaving)
                self._resize(other, left, moment.now_s)
                self._refused.clear()
        return self._world.start(number, always)

    def _may_displace_any(self, queue: str, requested: Amounts) -> bool:
        """Report cheaply whether a waiting job of a queue could displace or shrink any running one."""
        return bool(self._lending) or may_displace_any(self._tree.node(queue), requested)

    def _victims(self, number: int, now_s: int) -> Sequence[Candidate]:
        """Return the running jobs and replicas to end for a waiting job; none if no rule of the queues allows it."""
        policy = self._world.policy
        job, owner, requested = self._world.queue.jobs[number], self._owner(number), self._requested(number)
        if not isinstance(policy, Profile) or not self._may_displace_any(job.queue, requested):
            return ()
        if not (candidates := list(self._candidates(now_s, job))):
            return ()
        running = by_queue(each.candidate for each in self._running.values())
        spared = self._taken.get(number, ())
        rules = DisplacementRules(self._tree, owner, job.priority, requested, running, spared)
        found = VictimSearch(self._world.snapshot, policy, job, rules).find(candidates)
        return found.victims if found else ()

    def _end(self, number: int, moment: _Moment) -> None:
        """End a running job, which waits again with its age."""
        gone = self._forget(number)
        self._attempts[number] += 1
        self._runs.stop(number)
        self.preempted += 1
        self.preempted_gpu_s += gone.candidate.amounts.get(GPUS, 0) / 1000 * (moment.now_s - gone.since_s)
        self._refused.clear()
        moment.displaced.add(number)
        self.join(number)

    def _candidates(self, now_s: int, waiting: Job) -> Iterator[Candidate]:
        """Yield the running jobs and replicas that may ever be displaced by a waiting job."""
        mine = self._queues[waiting.queue]
        for running in self._running.values():
            each, ran_s = running.candidate, now_s - running.since_s
            queue = self._queues[each.owner.queue]
            lends = queue.elastic is Elastic.LEND
            if lends:
                yield from running.spare
            if not queue.preemptible or each.priority >= priority_below(mine, waiting.priority, queue.name):
                continue
            if not lends:
                yield from running.spare
            if ran_s >= queue.min_runtime_s:
                each.lost = running.share * ran_s + running.restart
                yield each

    def share_error(self) -> float | None:
        """Return the mean distance of shares from fair shares over time, 0 to 1; None without two sharers."""
        return self._errors.mean()

    def __iter__(self) -> Iterator[int]:
        return (number for lines in self._lines.values() for line in lines.values() for _, number in line.jobs)


def _numbered(values: Iterable[Hashable]) -> list[int]:
    """Return a number for each value, equal ones for equal values."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(each, len(known)) for each in values]


class _Moment:
    """State of the tries at a moment: reservations of jobs that do not start, and the next job of each lane.

    Attributes
    ----------
    fitting
        Kinds whose amounts are free.
    live, lanes, displacing
        Groups of jobs that have a chance to start, lanes with these, and those groups that may displace others.
    next, passed, tried
        Next job to try, last tried job, and number of tried jobs of each lane.
    displaced
        Jobs that ended for others. They are not tried again at once.
    heads
        Lane of each queue whose next job counts even without a chance.
    closed
        Queues without backfill whose first job does not start.
    in_time
        A job of a live group that would delay no reservation so far.
    divides
        Whether jobs start only within the parts of their queues of each GPU model.
    deferred
        Groups of jobs without such a part, or that do not fit there.
    """

    def __init__(self, world: World, now_s: int, following: dict[LaneName, _Waiting], *, divides: bool = False) -> None:
        self._world = world
        self._free: FreeOverTime | None = None
        self._reserved: set[str] = set()
        self.now_s = now_s
        self.fitting: set[int] = set()
        self.live: set[int] = set()
        self.lanes: set[LaneName] = set()
        self.displacing: set[int] = set()
        self.next = following
        self.passed: dict[LaneName, _Waiting] = {}
        self.tried: Counter[LaneName] = Counter()
        self.displaced: set[int] = set()
        self.closed: set[str] = set()
        self.heads: dict[str, LaneName] = {}
        self.in_time: dict[int, _Waiting] = {}
        self.divides = divides
        self.deferred: set[int] = set()

    def after(self, line: Sequence[_Waiting], job: _Waiting | None) -> Iterator[_Waiting]:
        """Yield the jobs of a line after one of it, or all, without those that were displaced now."""
        at = bisect_right(line, job) if job else 0
        return (each for each in islice(line, at, None) if each[1] not in self.displaced)

    def room_s(self, need: Int64) -> int:
        """Return how long a job that starts now may run without delay of a reservation, seconds."""
        return NEVER_S if self._free is None else self._free.longest(need, self.now_s)

    def may_start(self, need: Int64, lasts_s: int) -> bool:
        """Report whether a job would delay no reservation."""
        return lasts_s <= self.room_s(need)

    def may_replace(self, number: int, leaves: Sequence[tuple[Running, Int64, int]]) -> bool:
        """Report whether a job would delay no reservation once replicas of others have left; if so, count that.

        Parameters
        ----------
        leaves
            Jobs with the amounts of each of their replicas, and the number of replicas that leave.
        """
        if self._free is None:
            return True
        for times in (1, -1):
            for running, need, gone in leaves:
                self.resized(running, need, -gone, times)
            if times > 0 and self.may_start(self._world.needs[number], int(self._world.lasts_s[number])):
                return True
        return False

    def resized(self, running: Running, need: Int64, more: int, times: int = 1) -> None:
        """Count a job that gets more replicas or, if `more` is negative, fewer; undo that if `times` is -1."""
        if self._free is None:
            return
        size, now_s = running.size + more, self.now_s
        ends_s = running.end_of(size, now_s) if size else now_s
        for replicas, until_s in ((running.size, running.ends_s), (-size, ends_s)):
            lasts_s = until_s if until_s >= NEVER_S else until_s - now_s
            if replicas and lasts_s:
                self._free.add(now_s, lasts_s, times * replicas * need)

    def started(self, need: Int64, lasts_s: int) -> None:
        """Count a job that started."""
        if self._free:
            self._free.add(self.now_s, lasts_s, -need)

    def reserves_no_more(self, backfill: Backfill, queue: str) -> bool:
        """Report whether no further job of a queue gets a reservation."""
        return backfill in _WITHOUT_PLANS or (backfill is Backfill.EASY and queue in self._reserved)

    def reserve(self, backfill: Backfill, number: int, queue: str) -> None:
        """Reserve the earliest start of a job, of the first in its queue only with EASY backfill."""
        if self.reserves_no_more(backfill, queue):
            return
        self._reserved.add(queue)
        free, need, lasts_s = self._plan(), self._world.needs[number], max(1, int(self._world.lasts_s[number]))
        starts_s = free.earliest_start(need, lasts_s, self._next_end_s())
        if starts_s >= 0:
            free.add(starts_s, lasts_s, -need)

    def _plan(self) -> FreeOverTime:
        if self._free is None:
            ends = np.array([each[:2] for each in self._world.ends], np.int64).reshape(-1, 2)
            self._free = FreeOverTime(self._world.free(), self.now_s, ends[:, 0], self._world.holds[ends[:, 1]])
        return self._free

    def _next_end_s(self) -> int:
        """Return the time from which the amounts of a job that does not fit now may change."""
        return max(self.now_s, self._world.ends[0][0]) if self._world.ends else self.now_s + 1
