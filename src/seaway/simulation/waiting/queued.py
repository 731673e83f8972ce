"""Waiting jobs in a tree of queues, with shares, limits, backfill and preemption."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from seaway.domain.amounts import CPU, GPUS, Amounts, capacity_of, held_amounts, requested_amounts, total_of
from seaway.domain.job import Job
from seaway.domain.queues import Backfill, Queue, children_of
from seaway.scheduling.allocations import allocations_of
from seaway.scheduling.arrays import Int64
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.backfill import NEVER_S, FreeOverTime, within
from seaway.scheduling.queueing.discipline import SortKey
from seaway.scheduling.queueing.lanes import FirstJob, LaneName, LaneOrder
from seaway.scheduling.queueing.preemption import (
    Candidate,
    DisplacementRules,
    VictimSearch,
    may_displace_any,
    priority_below,
)
from seaway.scheduling.queueing.registry import FairShare
from seaway.scheduling.queueing.tree import Owner, QueueNode, QueueTree
from seaway.simulation.waiting.world import World, always

MAX_TESTED = 500
"""Maximum number of jobs of a lane that are tried at each moment."""

MAX_SAMPLES = 2000
"""Approximate number of moments at which shares are compared."""

NS_PER_S = 1_000_000_000

_WITHOUT_PLANS = frozenset({Backfill.NONE, Backfill.GREEDY})

Sharer = TypeVar("Sharer")


class Queued:
    """Waiting jobs in the order of the default queue discipline.

    Reservations of `Backfill.EASY` and `Backfill.CONSERVATIVE` count amounts of the whole fleet. A displaced job starts
    again from its beginning.

    Parameters
    ----------
    tree
        The queues and tenants.
    queues
        All queues.
    stop
        Ends a running job by its number, and releases what it holds.

    Attributes
    ----------
    preempted
        Number of displaced jobs.
    preempted_gpu_s
        GPUs times seconds that displaced jobs ran in vain.
    """

    def __init__(self, world: World, tree: QueueTree, queues: Sequence[Queue], stop: Callable[[int], None]) -> None:
        self._world = world
        self._stop = stop
        self._queues = {queue.name: queue for queue in queues}
        capacity = total_of(map(capacity_of, world.snapshot.clusters))
        self._tree = tree
        self._discipline = FairShare()
        self._order = LaneOrder(self._tree, self._discipline)
        self._lanes: defaultdict[LaneName, list[tuple[SortKey, int]]] = defaultdict(list)
        self._requests: dict[int, Amounts] = {}
        self._running: dict[int, tuple[Candidate, float, int]] = {}  # with its share of the pool and its start
        self._attempts: defaultdict[int, int] = defaultdict(int)
        self._kinds = _numbered(map(world.kind, range(len(world.queue))))
        self._alike = _numbered((self._kinds[at], job.queue, job.tenant) for at, job in enumerate(world.queue.jobs))
        self._refused: dict[int, int] = {}  # kinds that do not fit now, each with a job of it
        self._fruitless: set[int] = set()  # kinds that neither fit nor have victims, until a job starts or ends
        resource = GPUS if capacity.get(GPUS) else CPU
        times_s = [job.arrives_s for job in world.queue.jobs]
        step_s = max(1, (times_s[-1] - times_s[0]) // MAX_SAMPLES) if times_s else 1
        self._errors = _ShareErrors(self._tree, queues, resource, step_s)
        self.preempted = 0
        self.preempted_gpu_s = 0.0

    def freed(self, numbers: Sequence[int], nodes: Int64) -> None:
        """Count jobs that ended, and allow new tries."""
        for number in numbers:
            del self._running[number]
            self._tree.release(self._key(number))
        for number in self._world.may_fit(list(self._refused.values()), nodes):
            del self._refused[self._kinds[number]]
        self._fruitless.clear()

    def join(self, number: int) -> None:
        """Add a job."""
        job, lane = self._world.queue.jobs[number], self._lane(number)
        key = self._discipline.job_key(job, job.arrives_s * NS_PER_S, self._queues[job.queue])
        insort(self._lanes[lane], ((*key[:2], number), number))
        self._errors.wait(lane, self._requested(number))

    def schedule(self, now_s: int) -> None:
        """Start the jobs that may start now, in order."""
        moment = _Moment(self._world, now_s)
        next_at = {lane: 0 for lane, line in self._lanes.items() if line}
        for lane in next_at if len(next_at) > 1 else ():
            self._put(lane, 0)
        while next_at:
            first = self._order.first() if len(next_at) > 1 else next(iter(next_at))
            assert first is not None
            line, at, backfill = self._lanes[first], next_at[first], self._queues[first[0]].backfill
            entry = line[at]
            if self._starts(entry[1], moment):
                del line[bisect_left(line, entry)]  # a displaced job may have joined before it
                self._errors.wait(first, self._requested(entry[1]), -1)
            elif backfill is Backfill.NONE:
                for other in [each for each in next_at if each[0] == first[0]]:
                    self._order.drop(other)
                    del next_at[other]
                continue
            else:
                at += 1
            if moment.reserves_no_more(backfill, first[0]):
                while at < len(line) and self._alike[line[at][1]] in self._fruitless:
                    at += 1
            next_at[first] = at
            if at >= min(len(line), MAX_TESTED):
                self._order.drop(first)
                del next_at[first]
            elif len(next_at) > 1:
                self._put(first, at)
        self._errors.record(now_s)

    def _put(self, lane: LaneName, at: int) -> None:
        key, number = self._lanes[lane][at]
        self._order.put(lane, FirstJob(key, self._requested(number)))

    def _requested(self, number: int) -> Amounts:
        kind = self._kinds[number]
        if (known := self._requests.get(kind)) is None:
            job = self._world.queue.jobs[number]
            known = self._requests[kind] = requested_amounts(job.demand, job.replicas)
        return known

    def _lane(self, number: int) -> LaneName:
        job = self._world.queue.jobs[number]
        return job.queue, job.tenant

    def _owner(self, number: int) -> Owner:
        job = self._world.queue.jobs[number]
        return Owner(job.queue, job.tenant)

    def _key(self, number: int) -> tuple[str, int]:
        return str(number), self._attempts[number]

    def _starts(self, number: int, moment: _Moment) -> bool:
        """Start a job if it fits, its limits have room, and it delays no reservation."""
        need, lasts_s = self._world.needs[number], int(self._world.lasts_s[number])
        kind = self._kinds[number]
        limited = self._tree.hit(self._owner(number), self._requested(number)) is not None
        plan = None
        if not limited and kind not in self._refused and within(need, self._world.free()):
            if not moment.may_start(need, lasts_s):
                moment.reserve(self._backfill(number), number, self._queue(number))
                return False
            plan = self._world.start(number, always)
            if plan is None:
                self._refused[kind] = number
        if plan is None:
            plan = self._displace(number, moment)
        if plan is None:
            if not limited:
                moment.reserve(self._backfill(number), number, self._queue(number))
            return False
        self._hold(number, plan, moment.now_s)
        moment.started(need, lasts_s)
        return True

    def _queue(self, number: int) -> str:
        return self._world.queue.jobs[number].queue

    def _backfill(self, number: int) -> Backfill:
        return self._queues[self._queue(number)].backfill

    def _hold(self, number: int, plan: Plan, now_s: int) -> None:
        job, key, owner = self._world.queue.jobs[number], self._key(number), self._owner(number)
        amounts = held_amounts(job.demand, plan.placements(), plan.snapshot.device)
        (allocation,) = allocations_of(plan)
        priority = job.priority + self._queues[job.queue].points(now_s - job.arrives_s)
        candidate = Candidate(key, owner, amounts, allocation, allocation.nodes, priority, 0.0)
        self._running[number] = candidate, self._tree.node(job.queue).share_of(amounts), now_s
        self._tree.hold(key, owner, amounts)
        self._fruitless.clear()

    def _displace(self, number: int, moment: _Moment) -> Plan | None:
        """End running jobs for a waiting one, if the rules of the queues allow it, and start it."""
        victims = [] if self._alike[number] in self._fruitless else self._victims(number, moment.now_s)
        if not victims:
            self._fruitless.add(self._alike[number])
            return None
        if not moment.may_replace(number, {each: self._running[each][2] for each in victims}):
            return None
        for each in victims:
            self._end(each, moment.now_s)
        return self._world.start(number, always)

    def _victims(self, number: int, now_s: int) -> list[int]:
        """Return the running jobs to end for a waiting one; none if the rules of the queues do not allow it."""
        policy = self._world.policy
        job, owner, requested = self._world.queue.jobs[number], self._owner(number), self._requested(number)
        if not isinstance(policy, Profile) or not may_displace_any(self._tree.node(job.queue), requested):
            return []
        if not (candidates := list(self._candidates(now_s, job))):
            return []
        running = (each for each, _, _ in self._running.values())
        rules = DisplacementRules(self._tree, owner, job.priority, requested, running)
        found = VictimSearch(self._world.snapshot, policy, job, rules).find(candidates)
        return [int(each.key[0]) for each in found.victims] if found else []

    def _end(self, number: int, now_s: int) -> None:
        """End a running job, which waits again with its age."""
        gone, _, since_s = self._running.pop(number)
        self._tree.release(self._key(number))
        self._attempts[number] += 1
        self._stop(number)
        self.preempted += 1
        self.preempted_gpu_s += gone.amounts.get(GPUS, 0) / 1000 * (now_s - since_s)
        self._refused.clear()
        self.join(number)

    def _candidates(self, now_s: int, waiting: Job) -> Iterator[Candidate]:
        """Yield the running jobs that may ever be displaced by a waiting one."""
        mine = self._queues[waiting.queue]
        for each, share, since_s in self._running.values():
            queue = self._queues[each.owner.queue]
            if each.priority >= priority_below(mine, waiting.priority, queue.name):
                continue
            if queue.preemptible and now_s - since_s >= queue.min_runtime_s:
                each.lost = share * (now_s - since_s)
                yield each

    def share_error(self) -> float | None:
        """Return the mean distance of shares from fair shares over time, 0 to 1; None without two sharers."""
        return self._errors.mean()

    def __iter__(self) -> Iterator[int]:
        return (number for line in self._lanes.values() for _, number in line)


def _numbered(values: Iterable[Hashable]) -> list[int]:
    """Return a number for each value, equal ones for equal values."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(each, len(known)) for each in values]


class _Moment:
    """Reservations of jobs that do not start at a moment."""

    def __init__(self, world: World, now_s: int) -> None:
        self._world = world
        self._free: FreeOverTime | None = None
        self._reserved: set[str] = set()
        self.now_s = now_s

    def may_start(self, need: Int64, lasts_s: int) -> bool:
        """Report whether a job would delay no reservation."""
        if self._free is None or not lasts_s:
            return True
        return self._free.earliest_start(need, lasts_s, self.now_s) == self.now_s

    def may_replace(self, number: int, victims: Mapping[int, int]) -> bool:
        """Report whether a job would delay no reservation once others have ended; if so, count their ends.

        Parameters
        ----------
        victims
            Numbers of the jobs that end, with their starts, seconds.
        """
        needs, lasts_s = self._world.needs, self._world.lasts_s
        if self._free is None:
            return True
        for times in (1, -1):
            for each, since_s in victims.items():
                left_s = lasts_s[each] if lasts_s[each] >= NEVER_S else since_s + lasts_s[each] - self.now_s
                self._free.add(self.now_s, int(left_s), times * needs[each])
            if times > 0 and self.may_start(needs[number], int(lasts_s[number])):
                return True
        return False

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
            self._free = FreeOverTime(self._world.free(), self.now_s, ends[:, 0], self._world.needs[ends[:, 1]])
        return self._free

    def _next_end_s(self) -> int:
        """Return the time from which the amounts of a job that does not fit now may change."""
        return max(self.now_s, self._world.ends[0][0]) if self._world.ends else self.now_s + 1


# Share errors.


class _ShareErrors:
    """Mean distance of the shares of tenants in their queues from weighted max-min shares.

    The distance at a moment is the sum of all amounts beyond fair shares, divided by the sum of the fair shares.
    """

    def __init__(self, tree: QueueTree, queues: Sequence[Queue], resource: str, step_s: int) -> None:
        self._tree = tree
        self._children = children_of(queues)
        self._waiting: defaultdict[LaneName, int] = defaultdict(int)
        self._resource = resource
        self._step_s = step_s
        self._last: tuple[int, float] | None = None
        self._total = self._span_s = 0.0

    def wait(self, lane: LaneName, requested: Amounts, times: int = 1) -> None:
        """Count a job that waits (`times` is 1), or no longer does (-1)."""
        self._waiting[lane] += times * requested.get(self._resource, 0)

    def record(self, now_s: int) -> None:
        """Count the distance since the last call, and compute the present one."""
        if self._last is not None:
            if now_s < self._last[0] + self._step_s:
                return
            self._total += self._last[1] * (now_s - self._last[0])
            self._span_s += now_s - self._last[0]
        self._last = now_s, self._distance()

    def mean(self) -> float | None:
        """Return the mean distance over time."""
        return self._total / self._span_s if self._span_s else None

    def _distance(self) -> float:
        held, demands = defaultdict[LaneName, int](int), dict[LaneName, int]()
        for queue, tenant, amounts in self._tree.uses():
            held[queue, tenant] = amounts.get(self._resource, 0)
        for lane in held.keys() | self._waiting.keys():
            demands[lane] = held[lane] + self._waiting.get(lane, 0)
        fair = fair_amounts(self._tree, self._children, demands, self._resource)
        total = sum(fair.values())
        return sum(max(0.0, held[lane] - fair[lane]) for lane in demands) / total if total else 0.0


def fair_amounts(
    tree: QueueTree, children: Mapping[str, Sequence[Queue]], demands: Mapping[LaneName, int], resource: str
) -> dict[LaneName, float]:
    """Return the weighted max-min share of a resource of each lane.

    Guarantees go first, then the rest is divided by weight among those that demand more, down to tenants in queues.
    """
    by_queue: defaultdict[str, dict[LaneName, int]] = defaultdict(dict)
    for lane, amount in demands.items():
        by_queue[lane[0]][lane] = amount

    def demand_of(name: str) -> float:
        node = tree.node(name)
        own = sum(by_queue[name].values()) + sum(demand_of(each.name) for each in children.get(name, ()))
        return min(own, node.limit.get(resource, own))

    fair: dict[LaneName, float] = {}

    def divide(name: str, amount: float) -> None:
        if name and (lanes := by_queue.get(name)):
            weights = {lane: float(tree.tenant(*lane).weight) for lane in lanes}
            fair.update(_filled(amount, lanes, weights, {}))
        parts: dict[QueueNode, float] = {tree.node(each.name): demand_of(each.name) for each in children.get(name, ())}
        weights_of = {node: float(node.queue.weight) for node in parts}
        guarantees = {node: float(node.guarantee.get(resource, 0)) for node in parts}
        for node, part in _filled(amount, parts, weights_of, guarantees).items():
            divide(node.queue.name, part)

    roots = children.get("", ())
    capacity = max((tree.node(each.name).capacity.get(resource, 0) for each in roots), default=0)
    divide("", capacity)
    return fair


def _filled(
    amount: float, demands: Mapping[Sharer, float], weights: Mapping[Sharer, float], first: Mapping[Sharer, float]
) -> dict[Sharer, float]:
    """Divide an amount: first up to a guarantee, then by weight up to the demands."""
    got = {each: min(first.get(each, 0.0), demand) for each, demand in demands.items()}
    left = amount - sum(got.values())
    open_ = {each for each, demand in demands.items() if demand > got[each] and weights[each] > 0}
    while left > 1e-9 and open_:
        total = sum(weights[each] for each in open_)
        level = min((demands[each] - got[each]) / weights[each] for each in open_)
        step = min(level, left / total)
        for each in open_:
            got[each] += step * weights[each]
        left -= step * total
        open_ = {each for each in open_ if demands[each] - got[each] > 1e-9}
    return got
