"""No backfill, and EASY backfill: the first job is never delayed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from seaway.domain.device import WHOLE_DEVICE_MILLI, Device
from seaway.domain.job import Demand
from seaway.domain.node import Node
from seaway.scheduling.arrays import Int64, UInt8
from seaway.scheduling.columns import JOB_DEMAND
from seaway.scheduling.engine import decide
from seaway.scheduling.kernels.allocate import restore_rows
from seaway.scheduling.plan import Plan
from seaway.scheduling.queueing.backfill import (
    DELAYS,
    FITS_NOWHERE,
    NEVER_S,
    WAITING_KIND,
    WAITING_LASTS_S,
    WAITING_NEED,
    next_startable,
    within,
)
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.waiting.world import Key, Kind, World, always


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


class Ordered:
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

    def freed(self, numbers: Sequence[int], nodes: Int64) -> None:
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
