"""Plans by amounts: expected starts of waiting jobs, as if no job came any more.

A plan takes the jobs in the order of the queue discipline, as if each started at once. Each gets the earliest start
that delays no job before it, and that all limits allow. It counts amounts, not nodes and devices, so a start is an
estimate. A job that has been tried on the present fleet and does not fit starts at the earliest when a job or a
reservation ends. A start behind a job without a known end is unknown. If durations are learned, a job of which nothing
is known is planned with the median of the latest runs.

In queues with conservative backfill, jobs start when the plan says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from seaway.domain.amounts import CPU, GPU_MEMORY, GPUS, JOBS, MEMORY, MODEL_PREFIX, Amounts, amount_of
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Cluster
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.job_record import JobRecord
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill, Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Tenant
from seaway.scheduling.arrays import Int64
from seaway.scheduling.cycle.displace import Preemptor
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.reserve import Reservations
from seaway.scheduling.cycle.state import State
from seaway.scheduling.queueing.backfill import NEVER_S, FreeOverTime
from seaway.scheduling.queueing.discipline import QueueDiscipline
from seaway.scheduling.queueing.lanes import FirstJob, LaneName, LaneOrder
from seaway.scheduling.queueing.tree import RESTART_COST_S, GpuWeights, Holder, Key, Owner, QueueTree

MAX_PLANNED = 2000
"""Maximum number of jobs with a planned start. Jobs behind them have none."""

NS_PER_S = 1_000_000_000

_RESOURCES = (GPUS, GPU_MEMORY, CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """Expected start of a waiting job.

    Attributes
    ----------
    rank
        Number of jobs of the whole fleet that are expected to be tried before it.
    starts_ns
        Expected start by the wall clock; None if it is unknown.
    ends_ns
        Expected end by the wall clock; None if it is unknown.
    clusters
        Clusters that the job may use; empty for all.
    by_amounts
        Whether amounts are counted, and not nodes and devices.
    """

    rank: int
    starts_ns: int | None
    ends_ns: int | None = None
    clusters: frozenset[str] = frozenset()
    by_amounts: bool = True

    def later(self, jobs: int, shift_ns: int) -> PlannedStart:
        """Return the same start behind other jobs, by another clock."""
        starts_ns, ends_ns = (None if each is None else each + shift_ns for each in (self.starts_ns, self.ends_ns))
        return replace(self, rank=self.rank + jobs, starts_ns=starts_ns, ends_ns=ends_ns)


@dataclass(frozen=True, slots=True)
class LaterTasks:
    """Tasks of an array that wait until others of it start or end.

    Attributes
    ----------
    array
        The array.
    count
        Number of these tasks.
    placed
        IDs of the tasks that hold devices. With those in the queue, they count in the limit of the array.
    """

    array: JobRecord
    count: int
    placed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Running:
    """Attempt that holds amounts until its expected end, seconds from now; `NEVER_S` if that is unknown."""

    owner: Owner
    amounts: Amounts
    clusters: tuple[str, ...]
    ends_s: int
    placements: tuple[Placement, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanState:
    """Inputs of a plan.

    Attributes
    ----------
    clusters
        Clusters that accept new work.
    attempts
        Attempts that have not ended, each with the user of its job and the nanoseconds until its expected end; None if
        that is unknown.
    entries
        Waiting jobs.
    reserved_s
        Start of each reservation by job ID, seconds from now.
    advance
        Advance reservations, with the UUIDs of the GPUs of those of a number of GPUs.
    winners
        IDs of the jobs that displaced others, whose places and room under limits are reserved.
    foreseen
        Later displacements by job ID: the attempts that end for it, and the time, seconds from now.
    typical_s
        Duration that stands for unknown ones, seconds; None if none does.
    refused
        IDs of the jobs that do not fit on the present fleet, except in queues with conservative backfill.
    later
        Tasks of arrays that are not in the queue yet, with the entry of one of them.
    """

    now_ns: int
    discipline: QueueDiscipline
    queues: Sequence[Queue]
    tenants: Sequence[Tenant]
    clusters: Sequence[Cluster]
    capacities: Mapping[str, Amounts] = field(default_factory=dict)
    gpu_weights: GpuWeights = field(default_factory=dict)
    restart_cost_s: float = RESTART_COST_S
    past: Mapping[LaneName, Amounts] = field(default_factory=dict)
    attempts: Sequence[tuple[Attempt, str, int | None]] = ()
    entries: Sequence[Entry] = ()
    reserved_s: Mapping[str, int] = field(default_factory=dict)
    advance: Mapping[AdvanceReservation, frozenset[str]] = field(default_factory=dict)
    winners: frozenset[str] = frozenset()
    foreseen: Mapping[str, tuple[frozenset[Key], int]] = field(default_factory=dict)
    typical_s: int | None = None
    refused: frozenset[str] = frozenset()
    later: Sequence[tuple[LaterTasks, Entry]] = ()

    def planned_s(self, entry: Entry) -> int | None:
        """Return the duration of a waiting job in the plan, seconds; None if it has no end, or none is known."""
        known_s = entry.max_duration_s
        return self.typical_s if known_s is None and not entry.spec.restarts else known_s

    def follows(self, most: int) -> bool:
        """Report whether at most some jobs run or wait, so that each can be followed, and none starts by this plan."""
        count, planned = len(self.attempts) + len(self.entries), frozenset(self.planned)
        if count + sum(each.count for each, _ in self.later) > most:
            return False
        return all(each.queue not in planned for each in self.entries)

    @property
    def planned(self) -> Sequence[str]:
        """Names of the queues whose jobs start when the plan says so."""
        return [queue.name for queue in self.queues if queue.backfill is Backfill.CONSERVATIVE]

    def of_jobs(self, of: State, reservations: Reservations, preemptor: Preemptor) -> PlanState:
        """Return the same inputs with the jobs of a state at its time, and what its tree says. It may be a fork."""
        now_ns, monotonic_ns = of.clock.now_ns(), of.clock.monotonic_ns()
        return replace(
            self,
            now_ns=now_ns,
            capacities=of.tree.capacities,
            gpu_weights=of.tree.gpu_weights,
            restart_cost_s=of.tree.restart_cost_s,
            past=of.tree.past,
            refused=of.waiting.refused(without=self.planned),
            attempts=[
                (
                    attempt,
                    job.submitted_by if (job := of.jobs.get(key[0])) else "",
                    of.expected_rest_ns(key, now_ns, self.typical_s),
                )
                for key, attempt in of.attempts.items()
            ],
            entries=list(of.waiting.entries()),
            reserved_s={
                each.entry.id: max(0, each.starts_ns - monotonic_ns) // NS_PER_S
                for each in reservations.made()
                if each.starts_ns is not None
            },
            winners=frozenset(each.id for each in reservations.claims()),
            foreseen={
                job_id: (each.victims, max(0, each.at_ns - monotonic_ns) // NS_PER_S)
                for job_id, each in preemptor.foreseen.items()
            },
        )


def running(state: PlanState) -> list[tuple[Key, Running]]:
    """Return the attempts of a state with their expected ends. Replicas that leave are apart, and end now."""
    return [found for each, user, rest_ns in state.attempts for found in _running(each, user, rest_ns)]


def _running(attempt: Attempt, user: str, rest_ns: int | None) -> Iterator[tuple[Key, Running]]:
    spec, key = attempt.spec, (attempt.job_id, attempt.number)
    ends_s = NEVER_S if rest_ns is None else -(-rest_ns // NS_PER_S)
    whole = Running(Owner(spec.queue, spec.tenant, user), attempt.amounts, attempt.clusters, ends_s, attempt.holding)
    leaving = tuple(each for each in attempt.holding if each.leaving)
    if not leaving:
        yield key, whole
        return
    gone = {name: amount * len(leaving) // len(attempt.holding) for name, amount in attempt.amounts.items()}
    stay = {name: amount - gone[name] for name, amount in attempt.amounts.items()}
    stays = tuple(each for each in attempt.holding if not each.leaving)
    for own, amounts, placements, until_s in ((key, stay, stays, ends_s), ((key[0], -key[1]), gone, leaving, 0)):
        clusters = tuple(dict.fromkeys(each.cluster for each in placements))
        yield own, replace(whole, amounts=amounts, placements=placements, clusters=clusters, ends_s=until_s)


# Order.


def in_order(discipline: QueueDiscipline, tree: QueueTree, entries: Iterable[Entry]) -> Iterable[Entry]:
    """Yield waiting jobs in the order of a discipline, as if each started at once. They count in the tree."""
    lanes: defaultdict[LaneName, list[Entry]] = defaultdict(list)
    for each in entries:
        lanes[each.lane].append(each)
    order = LaneOrder(tree, discipline)
    for name, line in lanes.items():
        line.sort(key=lambda each: each.order, reverse=True)
        order.put(name, FirstJob(line[-1].order, line[-1].kind.requested))
    while (lane := order.first()) is not None:
        line = lanes[lane]
        entry = line.pop()
        tree.hold(entry.next_attempt, entry.owner, entry.kind.requested)
        if line:
            order.put(lane, FirstJob(line[-1].order, line[-1].kind.requested))
        else:
            order.drop(lane)
        yield entry


# Starts.


@dataclass(frozen=True, slots=True)
class _Region:
    """Clusters and GPU products that some jobs may use, empty for all, and advance reservations of others.

    Jobs without a time limit may not start before these reservations either, so with `endless` they begin now.
    """

    clusters: frozenset[str]
    models: frozenset[str]
    closed: frozenset[AdvanceReservation] = frozenset()
    endless: bool = False

    def has(self, cluster: str, model: str) -> bool:
        """Report whether a job may use a model in a cluster; its CPU and memory if the model is empty."""
        return _in(cluster, self.clusters) and (not (model and self.models) or model in self.models)


_Cell = tuple[str, str]
"""A cluster, and a GPU model in it; empty for the CPU and memory of its nodes."""


@dataclass(frozen=True, slots=True)
class _Reserved:
    """Capacity of some advance reservations, and what running jobs hold of it."""

    cells: Mapping[_Cell, Int64]
    held: Sequence[Running]


@dataclass(slots=True)
class _Plan:
    """Free amounts over time of each region and each limit, in seconds from now."""

    state: PlanState
    attempts: Sequence[tuple[Key, Running]]
    tree: QueueTree
    change_s: int = field(init=False)  # when the next job or reservation ends; `NEVER_S` if that is unknown
    usable: frozenset[str] = field(init=False)
    cells: Mapping[_Cell, Int64] = field(init=False)
    reserved: dict[frozenset[AdvanceReservation], _Reserved] = field(default_factory=dict)
    regions: dict[_Region, FreeOverTime] = field(default_factory=dict)
    limits: dict[str, FreeOverTime] = field(default_factory=dict)
    overlaps: dict[tuple[_Region, _Region], float] = field(default_factory=dict)
    left: dict[AdvanceReservation, FreeOverTime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the clusters that accept new work, their capacity, and when something ends."""
        ends_s = [each.ends_s for _, each in self.attempts]
        ends_s += [max(0, each.ends_ns - self.state.now_ns) // NS_PER_S for each in self.state.advance]
        self.change_s = min(ends_s, default=NEVER_S)
        self.usable = frozenset(cluster.name for cluster in self.state.clusters if cluster.nodes)
        self.cells = _cells(self.state.clusters, frozenset((each, "") for each in self.usable), frozenset())

    def start(self, entry: Entry, after_s: int) -> int:
        """Plan a job, and return its start; -1 if it is unknown."""
        need, lasts_s = entry.kind.requested, self.state.planned_s(entry)
        lasts = NEVER_S if lasts_s is None else max(1, lasts_s)
        region = _region_of(entry, self.tree, self.state.advance)
        plans = [(self.regions[region], _vector(need, _RESOURCES))]
        holders = self.tree.limits_of(entry.owner)
        plans += [(self._limit(each), _vector({**need, JOBS: 1}, sorted(each.limit))) for each in holders]
        after_s = max(after_s, self._reserved_s(entry.id, region))
        starts_s = _earliest(plans, lasts, after_s)
        if starts_s == 0 and entry.id in self.state.refused:  # there is room in total, but not for its replicas
            starts_s = _earliest(plans, lasts, self.change_s) if self.change_s < NEVER_S else -1
        victims, at_s = self.state.foreseen.get(entry.id, (frozenset(), NEVER_S))
        if victims and not 0 <= starts_s <= max(after_s, at_s):
            self._displace(victims, at_s)
            self.change_s = min(self.change_s, at_s)
            starts_s = _earliest(plans, lasts, max(after_s, at_s))
        if starts_s < 0:
            return -1
        self.change_s = min(self.change_s, starts_s + lasts)
        for plan, vector in plans[1:]:
            plan.add(starts_s, lasts, -vector)
        own, inside = self._own_reservation(entry, region, starts_s, lasts)
        for other, plan in self.regions.items():
            if not (shared := self._overlap(region, other)):
                continue
            plan.add(starts_s, lasts, -(plans[0][1] * shared).astype(np.int64))
            if own in other.closed:  # others leave this free already
                since_s, until_s = self._times_s(own, other)
                since_s, until_s = max(since_s, starts_s), min(until_s, starts_s + lasts)
                if since_s < until_s:
                    plan.add(since_s, until_s - since_s, (inside * shared).astype(np.int64))
        return starts_s

    def _reserved_s(self, job_id: str, region: _Region) -> int:
        """Return the earliest start in the place that is reserved for a job; 0 without one.

        That place is chosen without the capacity of advance reservations, whose end may free an earlier one.
        """
        ends_s = [self._times_s(each, region)[1] for each in region.closed]
        return min([self.state.reserved_s.get(job_id, 0), *ends_s])

    def _displace(self, victims: frozenset[Key], at_s: int) -> None:
        """Let running jobs end at a time, unless they end before."""
        for key, each in self.attempts:
            lasts_s = each.ends_s if each.ends_s >= NEVER_S else each.ends_s - at_s
            if key not in victims or lasts_s <= 0:
                continue
            for region, plan in self.regions.items():
                plan.add(at_s, lasts_s, self._part(each, region))
            for holder in self.tree.limits_of(each.owner):
                self._limit(holder).add(at_s, lasts_s, _vector({**each.amounts, JOBS: 1}, sorted(holder.limit)))

    def _own_reservation(
        self, entry: Entry, region: _Region, starts_s: int, lasts_s: int
    ) -> tuple[AdvanceReservation | None, Int64]:
        """Return the reservation with room for a planned job of its holder, and what the job holds of it."""
        need = _vector(entry.kind.requested, _RESOURCES)
        for each in self.state.advance:
            if not each.is_held_by(entry.spec.tenant, entry.queue):
                continue
            reserved = self._reserved(frozenset({each}))
            total = _total(reserved.cells, region)
            if each not in self.left:
                used = ((held.ends_s, self._part(held, region)) for held in reserved.held)
                self.left[each] = _free_over_time(total, used)
            inside = np.where(total > 0, need, 0)
            if inside.any() and self.left[each].earliest_start(inside, lasts_s, starts_s) == starts_s:
                self.left[each].add(starts_s, lasts_s, -inside)
                return each, inside
        return None, need

    def add_region(self, region: _Region) -> None:
        """Add a region with what running jobs leave free. All regions are added before the first job is planned."""
        used = ((each.ends_s, self._part(each, region)) for _, each in self.attempts)
        plan = self.regions[region] = _free_over_time(_total(self.cells, region), used)
        times_s = {each: self._times_s(each, region) for each in region.closed}
        for starts_s, ends_s in pairwise(sorted({at_s for times in times_s.values() for at_s in times})):
            active = frozenset(each for each, (since_s, until_s) in times_s.items() if since_s <= starts_s < until_s)
            reserved = self._reserved(active)
            plan.add(starts_s, ends_s - starts_s, -_total(reserved.cells, region))
            for held in reserved.held:  # jobs that still run hold a part of it already
                if (until_s := min(held.ends_s, ends_s)) > starts_s:
                    plan.add(starts_s, until_s - starts_s, self._part(held, region))

    def _times_s(self, reservation: AdvanceReservation, region: _Region) -> tuple[int, int]:
        """Return the time in which jobs of a region leave a reservation free, seconds from now."""
        times_ns = 0 if region.endless else reservation.starts_ns, reservation.ends_ns
        starts_s, ends_s = (max(0, at_ns - self.state.now_ns) // NS_PER_S for at_ns in times_ns)
        return starts_s, ends_s

    def _reserved(self, active: frozenset[AdvanceReservation]) -> _Reserved:
        """Return the capacity of reservations that are active at the same time. A place of several counts once."""
        known = self.reserved.get(active)
        if known is None:
            places = frozenset().union(*(each.places for each in active))
            uuids = frozenset().union(*(self.state.advance[each] for each in active))
            held = (_within(each, places, uuids) for _, each in self.attempts)
            cells = _cells(self.state.clusters, places, uuids)
            known = self.reserved[active] = _Reserved(cells, [each for each in held if each.clusters])
        return known

    def _part(self, running: Running, region: _Region) -> Int64:
        """Return what a running job holds in the usable clusters of a region."""
        found = sum(each in self.usable and _in(each, region.clusters) for each in running.clusters)
        inside = found / (len(running.clusters) or 1)
        if region.models and inside:
            gpus = running.amounts.get(GPUS, 0)
            own = sum(running.amounts.get(MODEL_PREFIX + each, 0) for each in region.models)
            inside *= own / gpus if gpus else 1.0
        return (_vector(running.amounts, _RESOURCES) * inside).astype(np.int64)

    def _overlap(self, region: _Region, other: _Region) -> float:
        """Return the share of a region's GPUs that are part of another region."""
        if region == other:
            return 1.0
        known = self.overlaps.get((region, other))
        if known is None:
            own = {cell: int(each[0]) for cell, each in self.cells.items() if region.has(*cell)}
            common = sum(gpus_milli for cell, gpus_milli in own.items() if other.has(*cell))
            total = sum(own.values())
            known = self.overlaps[region, other] = common / total if total else 0.0
        return known

    def _limit(self, holder: Holder) -> FreeOverTime:
        plan = self.limits.get(holder.key)
        if plan is None:
            names = sorted(holder.limit)
            used = (
                (each.ends_s, _vector({**each.amounts, JOBS: 1}, names))
                for _, each in self.attempts
                if holder in self.tree.limits_of(each.owner)
            )
            plan = self.limits[holder.key] = _free_over_time(
                np.array([holder.limit[name] for name in names], np.int64), used
            )
        return plan


def _region_of(entry: Entry, tree: QueueTree, advance: Iterable[AdvanceReservation]) -> _Region:
    spec = entry.spec
    closed = frozenset(each for each in advance if not each.is_held_by(spec.tenant, entry.queue))
    endless = bool(closed) and spec.time_limit_s is None
    return _Region(entry.job.demand.nodes.clusters, tree.products(entry.kind.models), closed, endless)


def _cells(
    clusters: Iterable[Cluster], places: frozenset[tuple[str, str]], uuids: frozenset[str]
) -> Mapping[_Cell, Int64]:
    """Return the amounts of `_RESOURCES` that some places and GPUs have, by cell."""
    found: defaultdict[_Cell, list[int]] = defaultdict(lambda: [0] * len(_RESOURCES))
    for cluster in clusters:
        for node in cluster.nodes:
            whole = bool({(cluster.name, ""), (cluster.name, node.name)} & places)
            if whole:
                rest = found[cluster.name, ""]
                rest[_RESOURCES.index(CPU)] += node.cpu_milli
                rest[_RESOURCES.index(MEMORY)] += node.memory_mib
            for device in node.devices:
                if whole or device.uuid in uuids:
                    of_model = found[cluster.name, device.model.casefold()]
                    of_model[_RESOURCES.index(GPUS)] += WHOLE_DEVICE_MILLI
                    of_model[_RESOURCES.index(GPU_MEMORY)] += device.memory_mib
    return {cell: np.array(amounts, np.int64) for cell, amounts in found.items()}


def _total(cells: Mapping[_Cell, Int64], region: _Region) -> Int64:
    """Return the amounts of a region's cells."""
    return sum((each for cell, each in cells.items() if region.has(*cell)), np.zeros(len(_RESOURCES), np.int64))


def _within(running: Running, places: frozenset[tuple[str, str]], uuids: frozenset[str]) -> Running:
    """Return what a running job holds in some places and of some GPUs; without clusters if that is nothing."""
    whole = slices = held = 0
    clusters: dict[str, None] = {}
    for each in running.placements:
        inside = bool({(each.cluster, ""), (each.cluster, each.node)} & places)
        count = len(each.slices) if inside else sum(one.uuid in uuids for one in each.slices)
        whole, slices, held = whole + inside, slices + len(each.slices), held + count
        if inside or count:
            clusters[each.cluster] = None
    amounts = {
        name: amount * whole // len(running.placements) if name in (CPU, MEMORY) else amount * held // (slices or 1)
        for name, amount in running.amounts.items()
        if clusters
    }
    return replace(running, amounts=amounts, clusters=tuple(clusters))


def _in(cluster: str, clusters: frozenset[str]) -> bool:
    return not clusters or cluster in clusters


def _vector(amounts: Amounts, names: Sequence[str]) -> Int64:
    return np.array([amount_of(amounts, name) for name in names], np.int64)


def _free_over_time(capacity: Int64, used: Iterable[tuple[int, Int64]]) -> FreeOverTime:
    """Return what jobs leave free until each of them ends."""
    rows = sorted(used, key=lambda each: each[0])
    plan = FreeOverTime(capacity - sum((amounts for _, amounts in rows), np.zeros_like(capacity)), 0)
    for ends_s, amounts in rows:
        if ends_s < NEVER_S and amounts.any():
            plan.add(ends_s, NEVER_S, amounts)
    return plan


def _earliest(plans: Sequence[tuple[FreeOverTime, Int64]], lasts_s: int, after_s: int) -> int:
    """Return the earliest time at which all plans have room; -1 if there is none."""
    starts_s, agreed = after_s, 0
    while agreed < len(plans):
        for plan, vector in plans:
            found = plan.earliest_start(vector, lasts_s, starts_s)
            if found < 0:
                return -1
            agreed = agreed + 1 if found == starts_s else 1
            starts_s = found
            if agreed >= len(plans):
                break
    return starts_s


class _ArrayLimits:
    """Ends of the tasks of arrays with a limit of tasks at once."""

    def __init__(self, state: PlanState, attempts: Sequence[tuple[Key, Running]]) -> None:
        self._ends_s: dict[str, list[int]] = {}
        self._limits: dict[str, int] = {}
        for tasks, _ in state.later:
            if tasks.array.spec.array and (limit := tasks.array.spec.array.limit):
                self._limits[tasks.array.id] = limit
                self._ends_s[tasks.array.id] = sorted(each.ends_s for key, each in attempts if key[0] in tasks.placed)

    def start(self, plan: _Plan, entry: Entry, after_s: int) -> int:
        """Plan a job after the tasks that it waits for; return its start, -1 if it is unknown."""
        array = entry.array
        ends_s = self._ends_s.get(array)
        if ends_s is None:
            return plan.start(entry, after_s)
        if len(ends_s) >= self._limits[array]:
            after_s = max(after_s, heappop(ends_s))
        starts_s = plan.start(entry, after_s) if after_s < NEVER_S else -1
        lasts_s = plan.state.planned_s(entry)
        heappush(ends_s, NEVER_S if starts_s < 0 or lasts_s is None else starts_s + max(1, lasts_s))
        return starts_s


def later_entries(state: PlanState, most: int) -> Iterator[Entry]:
    """Yield an entry for each task that is not in the queue yet, up to `most` of an array. Their IDs do not exist."""
    queues = {each.name: each for each in state.queues}
    for tasks, one in state.later:
        queue = queues.get(one.queue) or Queue(one.queue)
        last = tasks.array.task(tasks.array.spec.array.last if tasks.array.spec.array else 0).id
        for number in range(min(tasks.count, most)):
            job_id = f"{last}~{number:06}"  # behind all tasks in the queue
            job = replace(one.job, name=job_id)
            yield replace(one, id=job_id, job=job, order=state.discipline.job_key(job, one.submitted_ns, queue))


def planned(
    state: PlanState, attempts: Sequence[tuple[Key, Running]], most: int = MAX_PLANNED
) -> Mapping[str, PlannedStart]:
    """Plan the first waiting jobs in order, with the tasks of arrays that are not in the queue yet.

    Parameters
    ----------
    attempts
        Running attempts, see `running`.
    most
        Maximum number of planned jobs and tasks.
    """
    later = list(later_entries(state, most))
    tree = QueueTree(state.queues, state.capacities, state.tenants, state.gpu_weights, state.restart_cost_s)
    tree.set_past(state.past)
    plan = _Plan(state, attempts, tree)
    for region in {
        _region_of(each, tree, state.advance) for each in (*state.entries, *(one for _, one in state.later))
    }:
        plan.add_region(region)
    tree.hold_all((key, each.owner, each.amounts) for key, each in attempts)
    found: dict[str, PlannedStart] = {}
    limits, unqueued = _ArrayLimits(state, attempts), {each.id for each in later}
    first = {each.id: plan.start(each, 0) for each in state.entries if each.id in state.winners}
    strict = {queue.name for queue in state.queues if queue.backfill is Backfill.NONE}
    latest_s: dict[str, int] = {}
    for rank, entry in enumerate(in_order(state.discipline, tree, [*state.entries, *later])):
        if rank >= most:
            break
        after_s = latest_s.get(entry.queue, 0)
        starts_s = first.get(entry.id, -1)
        if entry.id not in first and after_s >= 0:
            starts_s = limits.start(plan, entry, after_s)
        if entry.queue in strict:
            latest_s[entry.queue] = starts_s
        if entry.id in unqueued:
            continue
        at_ns = state.now_ns + starts_s * NS_PER_S if starts_s >= 0 else None
        lasts_s = entry.max_duration_s
        ends_ns = None if at_ns is None or lasts_s is None else at_ns + lasts_s * NS_PER_S
        found[entry.id] = PlannedStart(rank, at_ns, ends_ns, entry.job.demand.nodes.clusters)
    return found
