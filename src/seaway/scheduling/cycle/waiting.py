"""Waiting jobs, in the order of a queue discipline.

The jobs of a tenant in a queue are a lane. In a lane, jobs with equal requests and similar durations are of one kind.
If one job of a kind does not fit, no job of that kind fits until the fleet changes. Kinds that do not fit are set
aside, and are later tried again in order. Kinds without room under a limit are set aside until the use of that queue
falls.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Set
from copy import copy
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush, heapreplace, nsmallest
from itertools import islice

from seaway.domain.amounts import MODEL_PREFIX, Amounts
from seaway.domain.gpu_models import covers
from seaway.domain.queues import Backfill
from seaway.scheduling.cycle.jobs import Entry, Kind
from seaway.scheduling.queueing.discipline import QueueDiscipline, SortKey
from seaway.scheduling.queueing.lanes import FirstJob, LaneName, LaneOrder
from seaway.scheduling.queueing.tree import LimitHit, QueueTree

SCAN_FACTOR = 8
"""Number of jobs that are checked for each requested job."""


MAX_SKIPPED = 1024
"""Number of kinds that are skipped without a try before other threads can acquire the lock."""


MAX_CHECKED = 8192
"""Number of kinds that are checked when all are tried again."""


BEFORE_ALL: SortKey = (-math.inf,)
"""Sort key that goes before all others."""


MAX_AHEAD = 16
"""Number of jobs of a lane of which one can prevent the reservation of another queue."""


MAX_SIZES = 4096
"""Number of sizes of jobs for which usual amounts are known."""


MAX_PARTED = 64
"""Number of jobs of a refused kind of which shorter ones get a kind of their own."""


Ranked = tuple[SortKey, int, Entry]
"""Sort key, insertion number and entry of a job. The number distinguishes several entries of one job."""


@dataclass(slots=True, eq=False)
class _JobHeap:
    """Heap of jobs. Outdated entries are dropped at the top, or all together once they are the majority."""

    heap: list[Ranked] = field(default_factory=list)
    swept: int = 64

    def push(self, ranked: Ranked, waits: Callable[[Entry], bool]) -> None:
        """Add a job."""
        heappush(self.heap, ranked)
        if len(self.heap) > 2 * self.swept:
            self.heap = [each for each in self.heap if waits(each[2])]
            heapify(self.heap)
            self.swept = max(64, len(self.heap))

    def fork(self) -> _JobHeap:
        """Return a heap of the same jobs."""
        return _JobHeap(self.heap.copy(), self.swept)

    def ordered(self) -> Iterator[Ranked]:
        """Yield the jobs in order, also outdated entries. The heap must not change in the meantime."""
        rest = [(self.heap[0], 0)] if self.heap else []
        while rest:
            ranked, at = heappop(rest)
            yield ranked
            for below in range(2 * at + 1, min(2 * at + 3, len(self.heap))):
                heappush(rest, (self.heap[below], below))

    def first(self, waits: Callable[[Entry], bool]) -> Ranked | None:
        """Return the first job that still waits."""
        while self.heap:
            if waits(self.heap[0][2]):
                return self.heap[0]
            heappop(self.heap)
        return None


@dataclass(slots=True, eq=False)
class _Lane:
    """Waiting jobs of one tenant in one queue.

    Attributes
    ----------
    jobs, kinds
        All jobs, and the jobs of each kind.
    untried
        Heap of the first job of each kind.
    aside
        First job of each rejected kind.
    refused
        Kinds that do not fit for this tenant. They may fit for others.
    limited
        First job of each kind without room under a limit, with that limit.
    closed
        Limit that leaves no room for any job; None if some may have room.
    least
        Lower bounds of the amounts that any job requests, for some resources.
    """

    name: LaneName
    jobs: _JobHeap = field(default_factory=_JobHeap)
    kinds: dict[Kind, _JobHeap] = field(default_factory=dict)
    untried: list[Ranked] = field(default_factory=list)
    aside: dict[Kind, Ranked] = field(default_factory=dict)
    refused: set[Kind] = field(default_factory=set)
    limited: dict[Kind, tuple[Ranked, LimitHit]] = field(default_factory=dict)
    closed: LimitHit | None = None
    least: dict[str, int] = field(default_factory=dict)

    def fork(self) -> _Lane:
        """Return a lane of the same jobs, which changes on its own."""
        return _Lane(
            self.name,
            self.jobs.fork(),
            {kind: line.fork() for kind, line in self.kinds.items()},
            self.untried.copy(),
            self.aside.copy(),
            self.refused.copy(),
            self.limited.copy(),
            self.closed,
            self.least.copy(),
        )

    def line(self, kind: Kind) -> _JobHeap:
        """Return the jobs of a kind, possibly of a new one."""
        line = self.kinds.get(kind)
        if line is None:
            line = self.kinds[kind] = _JobHeap()
            for name, least in self.least.items():
                self.least[name] = min(least, kind.requested.get(name, 0))
        return line

    def least_of(self, resource: str) -> int:
        """Return a lower bound of the amount of a resource that any job requests."""
        if resource not in self.least:
            self.least[resource] = min((kind.requested.get(resource, 0) for kind in self.kinds), default=0)
        return self.least[resource]


class Waiting:
    """The waiting jobs.

    Jobs from `take` count in the tree, with the amounts that such jobs usually hold, until they are put back.

    Parameters
    ----------
    discipline
        Order in which jobs are tried.
    tree
        The queues with the amounts that they hold.

    Attributes
    ----------
    blocked
        First job of each kind of a lane that was set aside without a try, since it has no room under a limit. Also
        those that certainly do not fit, if they may displace others or are the first of a lane. See `take_blocked`.
    """

    def __init__(self, discipline: QueueDiscipline, tree: QueueTree) -> None:
        self.discipline = discipline
        self.tree = tree
        self._order = LaneOrder(tree, discipline)
        self._all_order = LaneOrder(tree, discipline)  # also of lanes whose jobs are set aside
        self._outdated: set[LaneName] = set()  # lanes whose first job may be another one in `_all_order`
        self._entries: dict[str, Entry] = {}
        self._lanes: defaultdict[str, dict[str, _Lane]] = defaultdict(dict)  # by queue and tenant
        self._shared: set[LaneName] = set()  # lanes that a fork has, too, and that are copied at their next use
        self._touched: set[LaneName] = set()  # lanes whose first job may be another one
        self._limited_at: defaultdict[str, set[LaneName]] = defaultdict(set)  # by key of what has the limit
        self._refused: set[Kind] = set()
        self._exhausted: defaultdict[tuple[LaneName, Kind], set[str]] = defaultdict(set)
        self._needing: dict[tuple[LaneName, Kind], None] = {}  # kinds that need some models, also of jobs that are gone
        self._fresh: OrderedDict[str, None] = OrderedDict()
        self._count = 0
        self._vacated: set[LaneName] = set()  # lanes that a job left, so that another one may be the first
        self._usual: dict[Hashable, Amounts] = {}
        self.blocked: dict[tuple[LaneName, Kind], Entry] = {}

    def fork(self, tree: QueueTree) -> Waiting:
        """Return the same jobs over a copy of the tree. Lanes are copied when one of both needs them."""
        self._follow()
        self._shared = {(queue, tenant) for queue, tenants in self._lanes.items() for tenant in tenants}
        twin = copy(self)
        twin._unshare(tree)  # noqa: SLF001  # of this class
        return twin

    def _unshare(self, tree: QueueTree) -> None:
        """Copy all that changes, after a shallow copy, except lanes."""
        self.tree = tree
        self._order, self._all_order = self._order.fork(tree), self._all_order.fork(tree)
        self._shared, self._outdated, self._vacated = self._shared.copy(), self._outdated.copy(), self._vacated.copy()
        self._touched, self._refused = self._touched.copy(), self._refused.copy()
        self._entries, self._needing, self._usual = self._entries.copy(), self._needing.copy(), self._usual.copy()
        self._fresh, self.blocked = OrderedDict(), self.blocked.copy()
        self._lanes = defaultdict(dict, {queue: tenants.copy() for queue, tenants in self._lanes.items()})
        self._limited_at = defaultdict(set, {key: lanes.copy() for key, lanes in self._limited_at.items()})
        self._exhausted = defaultdict(set, {kind: models.copy() for kind, models in self._exhausted.items()})

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._entries

    def get(self, job_id: str) -> Entry | None:
        """Return a waiting job."""
        return self._entries.get(job_id)

    def entries(self) -> Iterable[Entry]:
        """Return all waiting jobs, unordered."""
        return self._entries.values()

    def ids(self) -> Set[str]:
        """Return the IDs of all waiting jobs."""
        return self._entries.keys()

    def refused(self, without: Container[str] = ()) -> frozenset[str]:
        """Return the IDs of the jobs of kinds that have been tried on the present fleet and do not fit.

        Parameters
        ----------
        without
            Names of queues to leave out.
        """
        return frozenset(
            entry.id
            for lane in self._all_lanes()
            if lane.name[0] not in without
            for kind, line in lane.kinds.items()
            if self._is_refused(lane, kind)
            for _, _, entry in line.heap
            if self._waits(entry)
        )

    def in_turn(self, queue: str) -> Iterator[Entry]:
        """Yield the first job of each tenant in a queue, that of the tenant whose turn it is first.

        Tenants without room under a limit are left out.
        """
        for lane in self._in_order(queue):
            if first := next(self._open_jobs(lane.name), None):
                yield first

    def is_behind(self, entry: Entry) -> bool:
        """Report whether a job, which may not be submitted yet, is behind another one in a queue without backfill."""
        lane = next(iter(self._in_order(entry.queue)), None) if self._strict(entry.queue) else None
        first = self._leader(lane) if lane else None
        if first is None or first[2] is entry:
            return False
        ahead = first[2].lane != entry.lane or first[0] < entry.order or first[2].id in self.tree.claimants
        return entry.id in self or ahead

    def leads(self, entry: Entry) -> bool:
        """Report whether no other job of a queue goes before a waiting job."""
        lane = next(iter(self._in_order(entry.queue)), None)
        first = self._leader(lane) if lane else None
        return first is None or first[2] is entry

    def is_aside(self, entry: Entry) -> bool:
        """Report whether a job is not tried now."""
        lane = self._lane(entry.lane)
        if lane is None or self._is_refused(lane, entry.kind):
            return True
        return entry.kind in lane.limited or lane.name not in self._order

    def first_alike(self, entry: Entry) -> Entry | None:
        """Return the first job of a job's kind and tenant; None if none waits."""
        lane = self._lane(entry.lane)
        first = self._first(lane, entry.kind) if lane else None
        return first[2] if first else None

    def alike(self, entry: Entry, most: int, without: Callable[[Entry], bool] = lambda _: False) -> list[Entry]:
        """Return the first jobs of a job's kind and tenant, with that job, in order, without some."""
        lane = self._lane(entry.lane)
        line = lane.kinds.get(entry.kind) if lane else None
        waiting = (each for each in line.heap if self._waits(each[2]) and not without(each[2])) if line else ()
        return [each[2] for each in nsmallest(most, waiting)]

    def fresh(self, most: int) -> list[Entry]:
        """Return up to `most` jobs that were tried but are not stored as queued yet, each once."""
        tried: list[Entry] = []
        aside: dict[tuple[LaneName, Kind], bool] = {}
        self._follow()
        for _ in range(min(len(self._fresh), SCAN_FACTOR * most)):
            job_id, _ = self._fresh.popitem(last=False)
            waits = self._entries.get(job_id)
            if waits is None:
                continue
            alike = waits.lane, waits.kind
            if alike not in aside:
                aside[alike] = self.is_aside(waits)
            if aside[alike]:
                tried.append(waits)
            else:
                self._fresh[job_id] = None
            if len(tried) >= most:
                break
        return tried

    def ahead(self, entry: Entry, competes: Callable[[Entry], bool]) -> Iterator[Entry]:
        """Yield a job of each lane of other queues that goes before a job in its pool, without those at a limit.

        Parameters
        ----------
        competes
            Report whether a job counts.
        """
        self._follow_all()
        for name in self._all_order.before(entry.queue, entry.kind.requested):
            if first := self._first_open(name, competes):
                yield first

    def _follow_all(self) -> None:
        """Renew the first jobs of changed lanes in the order of all."""
        outdated, self._outdated = self._outdated | self._touched, set()
        for name in outdated:
            if first := next(self._open_jobs(name), None):
                self._all_order.put(name, FirstJob(first.order, first.kind.requested))
            else:
                self._all_order.drop(name)

    def _first_open(self, name: LaneName, competes: Callable[[Entry], bool]) -> Entry | None:
        """Return the first job of a lane that counts, without those at a limit."""
        open_jobs = (each for each in self._open_jobs(name) if competes(each) and self.hit(each) is None)
        return next(open_jobs, None)

    def _open_jobs(self, name: LaneName) -> Iterator[Entry]:
        """Yield some of the first jobs of a lane, without those at a limit."""
        lane = self._lane(name)
        if lane and not lane.closed:
            waiting = (each for _, _, each in lane.jobs.ordered() if self._waits(each))
            for each in islice(waiting, MAX_AHEAD):
                if each.kind not in lane.limited:
                    yield each

    def open_kinds(self) -> Iterator[tuple[str, Kind]]:
        """Yield the queue and kind of waiting jobs, without those at a limit."""
        for lane in self._all_lanes():
            for kind in list(lane.kinds) if not lane.closed else ():
                if kind not in lane.limited and self._first(lane, kind):
                    yield lane.name[0], kind

    def needing_models(self) -> Iterator[tuple[str, Kind]]:
        """Yield the queue and kind of waiting jobs that need some GPU models."""
        for name, kind in list(self._needing):
            lane = self._lane(name)
            if lane is None or self._first(lane, kind) is None:
                del self._needing[name, kind]
            else:
                yield name[0], kind

    def limit_of(self, entry: Entry) -> LimitHit | None:
        """Return the limit that leaves no room for a waiting job; None if all have room."""
        if hit := self.hit(entry):
            return hit
        lane = self._lane(entry.lane)
        known = lane.limited.get(entry.kind) if lane else None
        return known[1] if known else None

    def hit(self, entry: Entry) -> LimitHit | None:
        """Return the limit that has no room for the least amounts of a job; None if all have room."""
        if hit := self.tree.hit(entry.owner, entry.kind.requested, entry.id):
            return hit
        models = entry.kind.models
        hits = self.model_hits(entry) if models else {}
        return next(iter(hits.values())) if hits and _all_exhausted(self.tree.products(models), hits) else None

    def model_hits(self, entry: Entry) -> dict[str, LimitHit]:
        """Return the GPU products without room for a job under the limits of its queues, with the limit of each."""
        if not entry.job.demand.request.gpus:
            return {}
        exhausted = self._exhausted.get((entry.lane, entry.kind), ())
        return self.tree.model_hits(entry.owner, entry.kind.requested, exhausted, entry.id)

    # Changes.

    def put(self, entry: Entry, *, fresh: bool = False) -> None:
        """Add a job; replace an older record of it. A fresh one is among those of `fresh` once it was tried."""
        self._entries[entry.id] = entry
        if fresh:
            self._fresh[entry.id] = None
        self._count += 1
        ranked, (queue, tenant) = (entry.order, self._count, entry), entry.lane
        lane = self._lane(entry.lane)
        if lane is None:
            lane = self._lanes[queue][tenant] = _Lane(entry.lane)
        lane.jobs.push(ranked, self._waits)
        line = lane.line(entry.kind)
        line.push(ranked, self._waits)
        if entry.kind.models:
            self._needing[entry.lane, entry.kind] = None
        self._touched.add(entry.lane)
        if lane.closed and not self._stays_closed(lane, lane.closed):  # it requests less than the jobs before
            self._reopen(lane)
        if line.heap[0] is not ranked:
            return
        if lane.closed:
            self.blocked[lane.name, entry.kind] = entry  # it may displace a job that counts under the limit
        if entry.kind in lane.limited:
            lane.limited[entry.kind] = (ranked, lane.limited[entry.kind][1])
            self.blocked[lane.name, entry.kind] = entry
        elif self._is_refused(lane, entry.kind):
            lane.aside[entry.kind] = ranked
            self.blocked[lane.name, entry.kind] = entry
        else:
            heappush(lane.untried, ranked)

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Return jobs from `take` to their queues."""
        for each in entries:
            self.tree.release(each.next_attempt)
            self.put(each)

    def note_stored(self, job_id: str) -> None:
        """Record that a job is not fresh any more."""
        self._fresh.pop(job_id, None)

    def remove(self, job_id: str) -> None:
        """Remove a job, if it waits."""
        self._fresh.pop(job_id, None)
        if gone := self._entries.pop(job_id, None):
            self._touched.add(gone.lane)
            self._vacated.add(gone.lane)

    # Jobs that are not tried now.

    def take_blocked(self) -> list[Entry]:
        """Return the jobs in `blocked` and the first jobs of lanes that another one left, and clear both."""
        self._follow()
        for name in self._vacated:
            lane = next(iter(self._in_order(name[0])), None) if self._strict(name[0]) else self._lane(name)
            first = lane.jobs.first(self._waits) if lane else None
            if lane and first and self._sets_aside(lane, first[2].kind):
                self.blocked[lane.name, first[2].kind] = first[2]
        self._vacated.clear()
        found, self.blocked = [*self.blocked.values()], {}
        return found

    def set_aside(self, of: Callable[[str], bool]) -> Iterator[Entry]:
        """Yield the first job of each kind that is not tried now, in order; without backfill, only that of its queue.

        Jobs may come and go in the meantime.

        Parameters
        ----------
        of
            Report whether jobs of a queue count.
        """
        self._follow_all()
        counts = {queue: of(queue) for queue in self._lanes}
        others = ((queue, tenant) for queue, lanes in self._lanes.items() if counts[queue] for tenant in lanes)
        names = dict.fromkeys((*(each for each in self._all_order.lanes() if counts.get(each[0])), *others))
        for name in names:
            if one := self._lane(name):
                aside = (self._first(one, kind) for kind in [*one.kinds] if self._sets_aside(one, kind))
                found = sorted(filter(None, aside))
                for _, _, entry in found[:1] if self._strict(name[0]) else found:
                    if not self.is_behind(entry):
                        yield entry

    def _sets_aside(self, lane: _Lane, kind: Kind) -> bool:
        return lane.closed is not None or kind in lane.limited or self._is_refused(lane, kind)

    # Trying.

    def try_all(
        self,
        rejects_in: Callable[[str], Callable[[Entry], bool] | None] = lambda _: None,
        in_time: Callable[[Entry], bool] = lambda _: True,
    ) -> None:
        """Allow a new try of every kind after a change of the fleet, except those that certainly do not fit.

        Of more than `MAX_CHECKED` kinds, the others are skipped in their turn, since a check of all would take long.

        Parameters
        ----------
        rejects_in
            Returns which jobs of a queue certainly do not fit now, and need not be tried for any other purpose; None
            for none.
        in_time
            Report whether a job may use reserved capacity, see `part`.
        """
        self._refused.clear()
        self._exhausted.clear()
        parted, checked = list[Entry](), 0
        rejects_of = {queue: rejects_in(queue) for queue, lanes in self._lanes.items() if lanes}
        for lane in self._all_lanes():
            rejects = rejects_of[lane.name[0]]
            before, found = [*lane.untried], self._take_all(lane)
            leading = lane.jobs.first(self._waits)
            for ranked in found:
                entry = ranked[2]
                kind = entry.kind
                checked += 1
                if rejects is None or checked > MAX_CHECKED or not rejects(entry):
                    lane.untried.append(ranked)
                    continue
                lane.aside[kind] = ranked
                lane.refused.add(kind)
                if (line := lane.kinds.get(kind)) and len(line.heap) > 1:
                    parted.append(entry)
                if leading and leading[2] is entry:
                    self.blocked[lane.name, kind] = entry
            if lane.untried != before:
                self._touched.add(lane.name)
        for each in parted:
            self.part(each, in_time)

    def _take_all(self, lane: _Lane) -> list[Ranked]:
        """Take the first job of each kind of a lane, in order, except those at a limit."""
        aside, untried = lane.aside, {each[2].kind for each in lane.untried}
        lane.aside, lane.untried = {}, []
        lane.refused.clear()
        found = [each if self._waits(each[2]) else self._first(lane, kind) for kind, each in aside.items()]
        found += [self._first(lane, kind) for kind in untried if kind not in aside and kind not in lane.limited]
        return sorted(filter(None, found))  # a sorted list is a heap

    def offer(self, entry: Entry) -> None:
        """Allow a try of a job's kind, if it is refused."""
        lane = self._lane(entry.lane)
        ranked = lane.aside.pop(entry.kind, None) if lane else None
        if lane and ranked:
            self._refused.discard(entry.kind)
            lane.refused.discard(entry.kind)
            heappush(lane.untried, ranked)
            self._touched.add(lane.name)

    def heads(self, of: Callable[[str], bool], competes: Callable[[Entry], bool]) -> list[Entry]:
        """Return the first job in the order of each pool of some queues, without those at a limit.

        Parameters
        ----------
        of
            Report whether jobs of a queue count.
        competes
            Report whether a job counts.
        """
        found = list[Entry]()
        self._follow_all()
        pools = self._all_order.pools()
        for name in self._all_order.lanes():
            pool = self.tree.node(name[0]).queue.pool
            if pool in pools and of(name[0]) and (first := self._first_open(name, competes)):
                found.append(first)
                pools.remove(pool)
                if not pools:
                    break
        return found

    def try_queue(self, queue: str) -> None:
        """Allow a new try of the refused kinds of a queue."""
        for lane in self._lanes_of(queue):
            self._refused.difference_update(lane.aside)
            lane.untried += lane.aside.values()
            heapify(lane.untried)
            lane.aside = {}
            lane.refused.clear()
            self._touched.add(lane.name)

    def passes_over(self, queue: str) -> bool:
        """Report whether a job of a queue has been set aside, so that others of the queue can pass it."""
        return any(each.aside or each.limited or each.closed for each in self._lanes_of(queue))

    def refuse(self, kind: Kind, name: LaneName | None = None) -> None:
        """Mark a kind as not fitting until the fleet changes, in all lanes or one."""
        if name is None:
            self._refused.add(kind)
        elif lane := self._lane(name):
            lane.refused.add(kind)
            self._touched.add(name)

    def part(self, refused: Entry, in_time: Callable[[Entry], bool]) -> None:
        """Give shorter jobs of a refused job's kind and tenant kinds of their own, so that they are tried.

        Jobs of a kind can differ in their durations. Those that end before reservations begin may fit all the same.

        Parameters
        ----------
        in_time
            Report whether a job ends before the reservations of others begin.
        """
        lane = self._lane(refused.lane)
        line = lane.kinds.get(refused.kind) if lane else None
        if line is None or len(line.heap) < 2 or in_time(refused):
            return
        for each in [each for _, _, each in line.heap[:MAX_PARTED] if self._waits(each) and in_time(each)]:
            self.put(replace(each, kind=Kind.of(each.queue, each.kind, each.max_duration_s or 0, each.job)))

    def limit(self, entry: Entry, hit: LimitHit) -> None:
        """Set the kind of a waiting job aside, since it would exceed a limit, until the use of that queue falls.

        For a limit of a GPU model, jobs of the kind are tried on other models first.
        """
        self._follow()
        if hit.resource.startswith(MODEL_PREFIX):
            model = hit.resource.removeprefix(MODEL_PREFIX)
            exhausted = self._exhausted[entry.lane, entry.kind]
            if model not in exhausted:
                exhausted.add(model)
                return
        lane = self._lane(entry.lane)
        if lane and (first := self._first(lane, entry.kind)):
            self._set_limited(lane, first, hit)

    @property
    def idle(self) -> bool:
        """True if there is nothing to try."""
        self._follow()
        while (name := self._order.first()) is not None:
            lane = self._lane(name)
            if lane and self._next(lane):
                return False
            self._order.drop(name)
        return True

    def take(
        self,
        most: int,
        alike: Callable[[Entry], Hashable],
        infeasible: Callable[[Entry], bool] = lambda _: False,
        may_ask: Callable[[Entry], bool] = lambda _: False,
        in_time: Callable[[Entry], bool] = lambda _: True,
        last: Callable[[Entry], bool] = lambda _: False,
    ) -> list[Entry]:
        """Remove and return the next job to try, and probably those behind it, up to `most`.

        These are the next ones if all jobs before them start, and hold the amounts that jobs of their kinds usually
        hold. They have room under all limits, and `alike` returns the same value for all. Jobs without room under a
        limit are set aside. Kinds that `infeasible` rejects are skipped and marked as refused. After many skipped
        kinds, the jobs collected until then are returned, possibly none.

        Parameters
        ----------
        may_ask
            Report whether a job that is not tried may displace others, see `blocked`.
        in_time
            Report whether a job may use reserved capacity, see `part`.
        last
            Report whether a job must be the last of those that are returned.
        """
        skipped, swept = 0, False
        taken: list[Entry] = []
        sort: Hashable = None
        while len(taken) < most and skipped < MAX_SKIPPED:
            self._follow()
            name = self._order.first()
            if name is None:
                break
            lane = self._lane(name)
            first = self._next(lane) if lane else None
            if lane is None or first is None:
                self._order.drop(name)
            elif hit := self.hit(first):
                if taken:
                    break  # jobs before it may not start
                self.blocked[lane.name, first.kind] = first
                self._close_or_limit(lane, hit)
                skipped += 1
            elif infeasible(first):
                if taken and not self.only(taken[0].lane):
                    break
                names = [lane.name] if swept else self._order.lanes()  # all at once, since that is cheaper
                skipped += max(1, self._skip(names, MAX_SKIPPED - skipped, infeasible, may_ask, in_time))
                swept = True
            else:
                its_sort = alike(first) if most > 1 else None
                if taken and its_sort != sort:
                    break
                sort = its_sort
                self._pop(lane)
                taken.append(first)
                self.tree.hold(first.next_attempt, first.owner, self.usual(first.kind))
                if last(first):
                    break
        return taken

    def usual(self, kind: Kind) -> Amounts:
        """Return the amounts that the latest job of the size of a kind got; the least ones for a new size."""
        return self._usual.get(kind.size, kind.requested)

    def note_usual(self, kind: Kind, amounts: Amounts) -> None:
        """Record the amounts of a job that starts."""
        if len(self._usual) > MAX_SIZES:
            self._usual.clear()
        self._usual[kind.size] = amounts

    def only(self, lane: LaneName) -> bool:
        """Report whether no lane but one has jobs to try."""
        return self._order.only(lane)

    def _skip(
        self,
        names: Iterable[LaneName],
        most: int,
        infeasible: Callable[[Entry], bool],
        may_ask: Callable[[Entry], bool],
        in_time: Callable[[Entry], bool],
    ) -> int:
        """Skip up to `most` jobs with room under all limits at the beginning of lanes; return their number."""
        skipped = 0
        for name in names:
            lane = self._lane(name)
            first = lane.jobs.first(self._waits) if lane else None
            entry = self._next(lane) if lane else None
            while lane and entry and skipped < most and not self.hit(entry) and infeasible(entry):
                if (first and first[2] is entry) or may_ask(entry):
                    self.blocked[lane.name, entry.kind] = entry
                self._pass_over(lane)
                self.part(entry, in_time)
                skipped += 1
                entry = self._next(lane)
            if skipped >= most:
                break
        return skipped

    def _follow(self) -> None:
        """Try lanes again whose limits may have room, and renew the first jobs of changed lanes."""
        tree = self.tree
        for name in tree.fell & self._limited_at.keys() if tree.fell else ():
            for lane_name in self._limited_at.pop(name):
                lane = self._lane(lane_name)
                if lane and lane.closed and self._stays_closed(lane, lane.closed):
                    self._limited_at[name].add(lane_name)
                elif lane:
                    self._reopen(lane)
        tree.fell.clear()
        if self._touched:
            touched, self._touched = self._touched, set()
            self._outdated |= touched
            for lane_name in touched:
                self._renew(lane_name)

    def _stays_closed(self, lane: _Lane, hit: LimitHit) -> bool:
        """Report whether the limit that closed a lane still leaves no room for any of its jobs."""
        holder = self.tree.holder(hit.holder.key)
        if holder is None or "user" in holder.names:
            return False
        most = holder.limit.get(hit.resource)
        return most is not None and holder.use.amount(hit.resource) + lane.least_of(hit.resource) > most

    def _reopen(self, lane: _Lane) -> None:
        """Allow a new try of the kinds that had no room under a limit."""
        lane.closed = None
        for kind, (ranked, _) in lane.limited.items():
            self._exhausted.pop((lane.name, kind), None)
            if self._is_refused(lane, kind):
                lane.aside[kind] = ranked
            else:
                lane.untried.append(ranked)
        heapify(lane.untried)
        lane.limited.clear()
        self._touched.add(lane.name)

    def _renew(self, name: LaneName) -> None:
        """Renew the first job of a lane in the order; remove a lane without jobs."""
        lane = self._lane(name)
        if lane and lane.jobs.first(self._waits) is None:
            del self._lanes[name[0]][name[1]]
            lane = None
        if self._strict(name[0]):
            self._renew_strict(name[0])
        elif lane is None or lane.closed or (first := self._next(lane)) is None:
            self._order.drop(name)
        else:
            self._order.put(name, FirstJob(first.order, first.kind.requested))

    def _renew_strict(self, queue: str) -> None:
        """Renew the order of a queue without backfill: only the first job of all its tenants can be tried."""
        for lane in self._lanes_of(queue):
            self._order.drop(lane.name)
        for lane in self._in_order(queue)[:1]:
            if not lane.closed and (entry := self._next(lane)):
                self._order.put(lane.name, FirstJob(entry.order, entry.kind.requested))

    def _in_order(self, queue: str) -> list[_Lane]:
        """Return the lanes of a queue with jobs, that of the tenant whose turn it is first.

        Without backfill, a job for which others have ended goes before all, also before these.
        """
        winners = self.tree.claimants if self._strict(queue) else ()
        keys = {
            lane.name: (
                first[2].id not in winners,
                self._order.tenant_key(lane.name, FirstJob(first[0], first[2].kind.requested)),
            )
            for lane in self._lanes_of(queue)
            if (first := self._leader(lane))
        }
        return [self._lanes[queue][tenant] for _, tenant in sorted(keys, key=lambda name: keys[name])]

    def _leader(self, lane: _Lane) -> Ranked | None:
        """Return the first job of a lane: without backfill, one for which others have ended goes before all."""
        if self.tree.claimants and self._strict(lane.name[0]):
            found = (entry for job_id in self.tree.claimants if (entry := self._entries.get(job_id)))
            winners = [(entry.order, 0, entry) for entry in found if entry.lane == lane.name]
            if winners:
                return min(winners)
        return lane.jobs.first(self._waits)

    def _strict(self, queue: str) -> bool:
        return self.tree.node(queue).queue.backfill is Backfill.NONE

    def _lane(self, name: LaneName) -> _Lane | None:
        lane = self._lanes[name[0]].get(name[1])
        if lane and self._shared and name in self._shared:
            self._shared.discard(name)
            lane = self._lanes[name[0]][name[1]] = lane.fork()
        return lane

    def _lanes_of(self, queue: str) -> list[_Lane]:
        return [lane for tenant in [*self._lanes.get(queue, ())] if (lane := self._lane((queue, tenant)))]

    def _all_lanes(self) -> list[_Lane]:
        return [lane for queue in [*self._lanes] for lane in self._lanes_of(queue)]

    def _is_refused(self, lane: _Lane, kind: Kind) -> bool:
        return kind in self._refused or kind in lane.refused

    def _next(self, lane: _Lane) -> Entry | None:
        """Return the next job of a lane to try; without backfill, only its first job."""
        heap, only = lane.untried, self._leader(lane) if self._strict(lane.name[0]) else None
        if only and (first := self._first(lane, only[2].kind)) and first[2] is only[2] and heap[:1] != [first]:
            rest = [each for each in heap if each[2].kind is not only[2].kind]
            if len(rest) < len(heap):  # of those that are untried, a winner is tried first
                heap[:] = [(BEFORE_ALL, *first[1:]), *sorted(rest)]
        while heap:
            kind = heap[0][2].kind
            first = self._first(lane, kind)
            if first and not self._is_refused(lane, kind) and kind not in lane.limited:
                if first[2] is not heap[0][2]:
                    heapreplace(heap, first)
                    continue
                return None if only and only[2] is not first[2] else first[2]
            heappop(heap)
            if first and kind not in lane.limited:
                lane.aside[kind] = first
        return None

    def _close_or_limit(self, lane: _Lane, hit: LimitHit) -> None:
        """Set the job that `_next` returned aside for a limit, or the whole lane if no job of it has room."""
        if self._stays_closed(lane, hit):
            lane.closed = hit
            self._outdated.add(lane.name)
            self._limited_at[hit.holder.key].add(lane.name)
            self._order.drop(lane.name)
        else:
            self._set_limited(lane, _popped(lane), hit)

    def _set_limited(self, lane: _Lane, first: Ranked, hit: LimitHit) -> None:
        lane.limited[first[2].kind] = (first, hit)
        lane.aside.pop(first[2].kind, None)
        self._limited_at[hit.holder.key].add(lane.name)
        self._touched.add(lane.name)

    def _pass_over(self, lane: _Lane) -> None:
        """Refuse the kind of the job that `_next` returned, in its lane."""
        ranked = _popped(lane)
        lane.aside[ranked[2].kind] = ranked
        lane.refused.add(ranked[2].kind)
        self._touched.add(lane.name)

    def _pop(self, lane: _Lane) -> None:
        """Remove the job that `_next` returned. The next job of its kind replaces it."""
        _, _, gone = heappop(lane.untried)
        del self._entries[gone.id]
        following = self._first(lane, gone.kind)
        if following:
            heappush(lane.untried, following)
        self._touched.add(lane.name)

    def _first(self, lane: _Lane, kind: Kind) -> Ranked | None:
        """Return the first waiting job of a kind; remove a kind without jobs."""
        line = lane.kinds.get(kind)
        if line is None:
            return None
        first = line.first(self._waits)
        if first is None:
            del lane.kinds[kind]
        return first

    def _waits(self, entry: Entry) -> bool:
        return self._entries.get(entry.id) is entry


def _popped(lane: _Lane) -> Ranked:
    """Remove the next job of a lane to try, and return it with its own place in the order."""
    _, number, entry = heappop(lane.untried)
    return entry.order, number, entry


def _all_exhausted(products: Iterable[str], hits: Collection[str]) -> bool:
    """Report whether some names or products of `hits` cover all of some products."""
    return all(each in hits or any(covers(name, each) for name in hits) for each in products)
