"""Waiting jobs of a replay, and the rules by which they start: greedy, without backfill, EASY and conservative."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np

from seaway.domain.device import WHOLE_DEVICE_MILLI, Device
from seaway.domain.job import Demand
from seaway.domain.node import Node
from seaway.domain.queues import Backfill, Order
from seaway.scheduling.arrays import Int64, UInt8
from seaway.scheduling.columns import DEMAND_BANDWIDTH, JOB_DEMAND, JOB_REPLICAS
from seaway.scheduling.engine import Policy, decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.allocate import restore_rows
from seaway.scheduling.kernels.queries import fitting_demands
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.backfill import (
    DELAYS,
    FITS_NOWHERE,
    NEVER_S,
    WAITING_KIND,
    WAITING_LASTS_S,
    WAITING_NEED,
    FreeOverTime,
    free_amounts,
    next_startable,
    within,
)
from seaway.scheduling.snapshot.snapshot import Snapshot

Kind = tuple[int, int, int, bool, int]
"""Requests that fit in the same places: priority (negative), row of the demand, replicas, gang, and bandwidth."""

Key = tuple[int, int]
"""Position of a job in the order of waiting jobs. The smallest key goes first."""


@dataclass(slots=True)
class World:
    """State of a replay, as the rules of waiting jobs see it.

    Attributes
    ----------
    start
        Starts a job by its number now, if it fits and a check allows its plan. Returns the plan, or None.
    ends
        Heap of the running jobs with an end: time, number and plan.
    held
        Numbers of the jobs that the policy deferred.
    needs
        Least amounts that each job holds, shape (J, 4), see `free`.
    lasts_s
        Duration of each job, seconds, shape (J,); `NEVER_S` without an end.
    """

    snapshot: Snapshot
    queue: JobQueue
    policy: Profile | Policy
    start: Callable[[int, Callable[[Plan], bool]], Plan | None]
    ends: list[tuple[int, int, Plan]]
    held: set[int]
    needs: Int64 = field(init=False)
    lasts_s: Int64 = field(init=False)

    def __post_init__(self) -> None:
        """Compute the amounts and durations of all jobs."""
        jobs, rows = self.queue.jobs, self.queue.rows[:, JOB_DEMAND]
        amounts = np.zeros((int(rows.max(initial=-1)) + 1, 4), np.int64)
        for row, number in zip(*np.unique(rows, return_index=True), strict=True):
            amounts[row] = _needed_amounts(jobs[number].demand)
        self.needs = amounts[rows] * self.queue.rows[:, JOB_REPLICAS, None]
        ends = (NEVER_S if job.expected_duration_s is None else job.expected_duration_s for job in jobs)
        self.lasts_s = np.fromiter(ends, np.int64, len(jobs))

    def free(self) -> Int64:
        """Return the free amounts of the whole fleet, shape (4,)."""
        return free_amounts(self.snapshot.arrays.clusters)

    def kind(self, number: int) -> Kind:
        """Return the kind of a job."""
        job = self.queue.jobs[number]
        between_mbps = job.between_replicas.min_bandwidth_mbps
        return -job.priority, int(self.queue.rows[number, JOB_DEMAND]), job.replicas, job.gang, between_mbps


GPU_MILLI = 3
"""Index of the GPU cores, thousandths of a device, in amounts."""


def _needed_amounts(demand: Demand) -> tuple[int, int, int, int]:
    request = demand.request.filled()
    gpu_memory_mib, gpu_milli = request.gpus * request.gpu_memory_mib, request.gpus * request.gpu_milli
    return request.cpu_milli, request.memory_mib, gpu_memory_mib, gpu_milli


def always(_: Plan) -> bool:
    """Allow every plan."""
    return True


class WaitingJobs(Protocol):
    """Waiting jobs, and the rule by which they start. Iteration yields their numbers."""

    def freed(self, nodes: Int64) -> None:
        """Take note that jobs ended on some nodes, shape (X,), possibly repeated."""

    def join(self, number: int) -> None:
        """Add a job that has just arrived."""

    def schedule(self, now_s: int) -> None:
        """Start the jobs that may start now."""

    def __iter__(self) -> Iterator[int]: ...


def waiting_jobs(world: World, order: Order, backfill: Backfill) -> WaitingJobs:
    """Create the waiting jobs of a replay, none at first."""
    key = _keys(world, order)
    match backfill:
        case Backfill.GREEDY:
            return _Greedy(world, key)
        case Backfill.CONSERVATIVE:
            return _Planned(world, key, in_arrival_order=order is Order.FIFO)
        case _:
            return _Ordered(world, key, easy=backfill is Backfill.EASY)


def _keys(world: World, order: Order) -> Callable[[int], Key]:
    jobs = world.queue.jobs
    match order:
        case Order.FIFO:
            return lambda number: (0, number)
        case Order.SHORTEST:
            return lambda number: (int(world.lasts_s[number]), number)
        case _:
            return lambda number: (-jobs[number].priority, number)


@dataclass(slots=True)
class _Greedy:
    """Every job that fits starts. Jobs are grouped by kind, so that a kind that does not fit is tried only once."""

    world: World
    key: Callable[[int], Key]
    kinds: dict[Kind, list[Key]] = field(default_factory=dict)
    needs: dict[Kind, Int64] = field(default_factory=dict)

    def freed(self, nodes: Int64) -> None:
        """Try the queue once from the front, and start the jobs that fit."""
        nodes = np.unique(nodes)
        heads = self._heads(self._may_fit(nodes, list(self.kinds)))
        while heads:
            (_, number), kind = heappop(heads)
            if self.world.start(number, always) is not None:
                self._leave(kind)
                heads = self._heads(self._may_fit(nodes, [kind for _, kind in heads] + [kind] * (kind in self.kinds)))

    def join(self, number: int) -> None:
        """Start a job. It waits if it does not fit, or if an equal job waits."""
        kind = self.world.kind(number)
        if kind in self.kinds or self.world.start(number, always) is None:
            heappush(self.kinds.setdefault(kind, []), self.key(number))
            self.needs.setdefault(kind, self.world.needs[number])

    def schedule(self, now_s: int) -> None:
        """Start nothing: jobs start when they arrive, and when others end."""

    def _heads(self, kinds: Iterable[Kind]) -> list[tuple[Key, Kind]]:
        heads = [(self.kinds[kind][0], kind) for kind in kinds]
        heapify(heads)
        return heads

    def _leave(self, kind: Kind) -> None:
        heappop(self.kinds[kind])
        if not self.kinds[kind]:
            del self.kinds[kind]

    def _may_fit(self, freed: Int64, kinds: list[Kind]) -> list[Kind]:
        """Return the kinds that may fit after jobs ended on the nodes `freed`, shape (X,).

        A waiting job did not fit before, so it can only fit on these nodes, unless it waits for bandwidth or was
        deferred. This is true for profiles; other policies may consider other nodes.
        """
        if not kinds or not isinstance(self.world.policy, Profile):
            return kinds
        snapshot = self.world.snapshot
        enough = (np.array([self.needs[kind] for kind in kinds]) <= self.world.free()).all(axis=1)
        lines = np.array([kind[1] for kind in kinds], np.int64)
        may_fit = fitting_demands(snapshot.arrays, snapshot.demands.arrays, lines, freed) != 0
        may_fit |= snapshot.demands.arrays.amounts[lines, DEMAND_BANDWIDTH] > 0
        held = {self.world.kind(number) for number in self.world.held}
        may_fit |= np.array([kind[4] > 0 or kind in held for kind in kinds], np.bool_)
        return [kinds[at] for at in np.flatnonzero(may_fit & enough)]

    def __iter__(self) -> Iterator[int]:
        return (number for same in self.kinds.values() for _, number in same)


class _Table:
    """Waiting jobs in order, as columns for `next_startable`.

    Attributes
    ----------
    numbers
        Numbers of the jobs, in order.
    rows
        Columns of the jobs, shape (W or more, 6).
    refused
        Why each kind does not start now, shape (K,).
    """

    def __init__(self, world: World, key: Callable[[int], Key]) -> None:
        self._world = world
        self._key = key
        self._keys: list[Key] = []
        self._kinds: dict[Kind, int] = {}
        self.numbers: list[int] = []
        self.rows: Int64 = np.zeros((64, WAITING_NEED + 4), np.int64)
        self.refused: UInt8 = np.zeros(64, np.uint8)

    def put(self, number: int) -> None:
        """Add a job at its place in the order."""
        key = self._key(number)
        at, end = bisect_right(self._keys, key), len(self.numbers)
        if end == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        if at < end:
            self.rows[at + 1 : end + 1] = self.rows[at:end]
        row = self.rows[at]
        row[WAITING_KIND], row[WAITING_LASTS_S] = self._kind(number), self._world.lasts_s[number]
        row[WAITING_NEED:] = self._world.needs[number]
        self._keys.insert(at, key)
        self.numbers.insert(at, number)

    def remove(self, at: int) -> None:
        """Remove the job at a place of the order."""
        end = len(self.numbers)
        self.rows[at : end - 1] = self.rows[at + 1 : end]
        del self._keys[at], self.numbers[at]

    def _kind(self, number: int) -> int:
        kind = self._kinds.setdefault(self._world.kind(number), len(self._kinds))
        if kind == len(self.refused):
            self.refused = np.concatenate([self.refused, np.zeros_like(self.refused)])
        return kind


class _Ordered:
    """The first job starts as soon as it fits. With EASY backfill, others may start if they do not delay it.

    References
    ----------
    Mu'alem, Feitelson: Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2
    with Backfilling. IEEE TPDS 12(6), 2001, doi:10.1109/71.932708.
    """

    def __init__(self, world: World, key: Callable[[int], Key], *, easy: bool) -> None:
        self._world = world
        self._easy = easy
        self._table = _Table(world, key)
        self._reservation = _Reservation(world)

    def freed(self, nodes: Int64) -> None:
        """Allow a new try of every kind."""
        self._table.refused[:] = 0

    def join(self, number: int) -> None:
        """Add a job."""
        self._table.put(number)

    def schedule(self, now_s: int) -> None:
        """Start jobs from the front; then, with backfill, others behind the first that does not fit."""
        table = self._table
        if not table.numbers:
            return
        free = self._world.free()
        while table.numbers and self._starts(0, free, always):
            table.remove(0)
            free = self._world.free()
        if self._easy and len(table.numbers) > 1:
            self._backfill(now_s, free)

    def _backfill(self, now_s: int, free: Int64) -> None:
        table, reservation = self._table, self._reservation
        if reservation.reserve(table.numbers[0], free):
            table.refused[table.refused == DELAYS] = 0
        room_s, at = min(reservation.starts_s - now_s, NEVER_S - 1), 1
        while True:
            at = next_startable(at, len(table.numbers), table.rows, table.refused, free, room_s, reservation.extra)
            if at < 0:
                return
            in_time = bool(table.rows[at, WAITING_LASTS_S] <= room_s)
            if self._starts(at, free, always if in_time else reservation.allows):
                if not in_time:
                    reservation.extra -= table.rows[at, WAITING_NEED:]
                table.remove(at)
                free = self._world.free()

    def _starts(self, at: int, free: Int64, allows: Callable[[Plan], bool]) -> bool:
        """Start a job if it fits and is allowed to; note why it does not."""
        table, row = self._table, self._table.rows[at]
        if table.refused[row[WAITING_KIND]] == FITS_NOWHERE or not within(row[WAITING_NEED:], free):
            return False
        denied: list[Plan] = []

        def checked(plan: Plan) -> bool:
            if allows(plan):
                return True
            denied.append(plan)
            return False

        plan = self._world.start(table.numbers[at], checked)
        if plan is None:
            table.refused[row[WAITING_KIND]] = DELAYS if denied else FITS_NOWHERE
        return plan is not None

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._table.numbers))


class _Reservation:
    """Earliest start of the first waiting job, and what others may use beyond that time.

    Attributes
    ----------
    starts_s
        Earliest start, seconds; `NEVER_S` if the ends of the running jobs do not let it start.
    extra
        Amounts that are left beside the job at that time, shape (4,).
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = -1
        self._future: Snapshot | None = None
        self._counts_decide = counts_decide(world)
        self.starts_s = 0
        self.extra: Int64 = np.zeros(4, np.int64)

    def reserve(self, number: int, free: Int64) -> bool:
        """Reserve for a job, unless that is done already; report whether it was not.

        Running jobs end when they are expected to, and jobs that start do not delay it. So the time stays right.
        """
        if number == self._number:
            return False
        self._number = number
        need = self._world.needs[number]
        ends = sorted(self._world.ends)
        self.starts_s, self._future = NEVER_S, None
        for at, (end_s, ended, _) in enumerate(ends, 1):
            free = free + self._world.needs[ended]
            same = at < len(ends) and ends[at][0] == end_s
            if same or not within(need, free):
                continue
            if self._counts_decide or self._fits_after(number, [plan for *_, plan in ends[:at]]):
                self.starts_s = end_s
                break
        self.extra = free - need
        return True

    def allows(self, plan: Plan) -> bool:
        """Report whether the job still fits at its time if the jobs of a plan run then; if so, they do."""
        if self._future is None:
            return True
        lines = plan.decisions.copy()
        restore_rows(self._future.arrays, self._future.demands.arrays, lines, plan.slices)
        if self._fits(self._number):
            return True
        self._future.release(lines, plan.slices, np.arange(len(lines)))
        return False

    def _fits_after(self, number: int, ended: Iterable[Plan]) -> bool:
        """Report whether a job fits once some jobs have ended; if so, retain that state of the fleet."""
        self._future = self._world.snapshot.copy()
        for plan in ended:
            self._future.release(plan.decisions.copy(), plan.slices, np.arange(len(plan.decisions)))
        if self._fits(number):
            return True
        self._future = None
        return False

    def _fits(self, number: int) -> bool:
        """Report whether a job fits the future fleet, which is not changed."""
        assert self._future is not None
        job = self._world.queue.part(number, number + 1)
        plan = decide(self._future, job, self._world.policy, overdue={0}, dry_run=True)
        self._future.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))
        return bool(plan.jobs_placed[0])


def counts_decide(world: World) -> bool:
    """Report whether a job fits exactly when enough nodes are free: the nodes are alike, and each replica fills one."""
    nodes = {_figures(node) for node in world.snapshot.nodes}
    if len(nodes) != 1 or len(world.snapshot.clusters) != 1:
        return False
    cpu_milli, memory_mib, devices = nodes.pop()
    for number in np.unique(world.queue.rows[:, JOB_DEMAND], return_index=True)[1]:
        demand = world.queue.jobs[number].demand
        request = demand.request.filled()
        fills = 2 * request.cpu_milli > cpu_milli or 2 * request.memory_mib > memory_mib
        whole = request.gpu_milli == WHOLE_DEVICE_MILLI and 2 * request.gpus > len(devices)
        if not (fills or whole) or demand != Demand(demand.request):
            return False
    return True


def _figures(node: Node) -> tuple[int, int, tuple[Device, ...]]:
    return node.cpu_milli, node.memory_mib, tuple(replace(each, uuid="") for each in node.devices)


class _Planned:
    """Each job has a planned start, the earliest one that delays no job before it.

    Plans count amounts. A job that does not fit at its time for another reason gets the next time.

    References
    ----------
    Mu'alem, Feitelson, as above (conservative backfilling).
    """

    def __init__(self, world: World, key: Callable[[int], Key], *, in_arrival_order: bool) -> None:
        self._world = world
        self._key = key
        self._in_arrival_order = in_arrival_order
        self._plan = FreeOverTime(world.free(), 0)
        self._starts: list[tuple[int, int]] = []  # planned times and numbers, a heap
        self._waiting: dict[int, int] = {}  # numbers with their planned times; -1 for never
        self._arrived: list[int] = []

    def freed(self, nodes: Int64) -> None:
        """Take note of nothing: the plan has the ends of jobs."""

    def join(self, number: int) -> None:
        """Add a job. It is planned together with the others of this moment."""
        self._arrived.append(number)

    def schedule(self, now_s: int) -> None:
        """Plan the jobs that arrived, and start those that are due."""
        self._plan.forget_before(now_s)
        if self._arrived and not self._in_arrival_order:
            self._plan_all_again(now_s)
        else:
            for number in self._arrived:
                self._place(number, now_s)
        self._arrived.clear()
        due = []
        while self._starts and self._starts[0][0] <= now_s:
            due.append(heappop(self._starts)[1])
        for number in due:
            if self._world.start(number, always) is None:
                self._postpone(number)
            else:
                del self._waiting[number]

    def _place(self, number: int, after_s: int) -> None:
        need, lasts_s = self._world.needs[number], int(self._world.lasts_s[number])
        starts_s = self._plan.earliest_start(need, lasts_s, after_s)
        self._waiting[number] = starts_s
        if starts_s >= 0:
            self._plan.add(starts_s, lasts_s, -need)
            heappush(self._starts, (starts_s, number))

    def _postpone(self, number: int) -> None:
        """Plan a job for the next time at which another ends; it never starts if none does."""
        self._withdraw(number)
        self._waiting[number] = -1
        if self._world.ends:
            self._place(number, self._world.ends[0][0])

    def _withdraw(self, number: int) -> None:
        need, lasts_s = self._world.needs[number], int(self._world.lasts_s[number])
        self._plan.add(self._waiting[number], lasts_s, need)

    def _plan_all_again(self, now_s: int) -> None:
        """Plan all jobs in order, since a job that arrived may go before others."""
        for number, starts_s in self._waiting.items():
            if starts_s >= 0:
                self._withdraw(number)
        self._starts.clear()
        for number in sorted([*self._waiting, *self._arrived], key=self._key):
            self._place(number, now_s)

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._waiting))
