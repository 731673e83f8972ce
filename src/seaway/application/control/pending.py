"""Waiting jobs, in the order of a queue discipline.

Jobs with equal requests and similar durations are of one kind. If one job of a kind does not fit, no job of that kind
fits until the fleet changes. Kinds that do not fit are set aside, and are later tried again in order.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush, heapreplace
from typing import ClassVar
from weakref import WeakValueDictionary

from seaway.application.control.rejections import NEVER_REFUSED, Refusals
from seaway.application.records import JobRecord
from seaway.application.transitions import ELSEWHERE
from seaway.domain.job import Job
from seaway.domain.job_state import JobState
from seaway.scheduling.infeasibility_cache import RequestedAmounts, requested_amounts, rule_key
from seaway.scheduling.queueing.discipline import QueueDiscipline, SortKey

SCAN_FACTOR = 8
"""Number of jobs that are checked for each requested job."""


MAX_SKIPPED = 1024
"""Number of kinds that are skipped without a try before other threads can acquire the lock."""


class Rules:
    """Requirements of jobs except amounts. Equal requirements share one instance, so comparison by identity works."""

    __slots__ = ("__weakref__",)

    _known: ClassVar[WeakValueDictionary[Hashable, Rules]] = WeakValueDictionary()

    @classmethod
    def of(cls, asked: Hashable) -> Rules:
        """Return the rules of all jobs with these requirements."""
        return cls._known.setdefault(asked, cls())


class Kind:
    """Requirements of jobs that fit in the same places. Equal requirements share one instance.

    Attributes
    ----------
    rules, asked
        The two parts of the request of a replica.
    alone
        Whether these jobs have a single replica. If one of them is rejected, no node has room.
    """

    __slots__ = ("__weakref__", "alone", "asked", "rules")

    _known: ClassVar[WeakValueDictionary[Hashable, Kind]] = WeakValueDictionary()

    def __init__(self, job: Job) -> None:
        self.rules: Rules = Rules.of(rule_key(job.demand))
        self.asked: RequestedAmounts = requested_amounts(job.demand)
        self.alone: bool = job.replicas == 1

    @classmethod
    def of(cls, queue: str, length: int, job: Job) -> Kind:
        """Return the kind of all jobs in one queue with the same request and a similar duration."""
        key = (queue, length, job.demand, job.replicas, job.gang, job.single_cluster, job.between_replicas)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(job)
        return known


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Waiting job.

    Attributes
    ----------
    record
        The job as stored.
    job
        The job in the scheduler's form.
    kind
        Kind, shared by jobs that fit in the same places.
    order
        Sort key of the queue discipline.
    """

    record: JobRecord
    job: Job
    kind: Kind
    order: SortKey

    @property
    def queue(self) -> str:
        """Name of the job's queue."""
        return self.record.spec.queue


def entry(
    record: JobRecord, clusters: frozenset[str], discipline: QueueDiscipline, refusals: Refusals = NEVER_REFUSED
) -> Entry:
    """Create the entry of a waiting job.

    Parameters
    ----------
    clusters
        Clusters of the pool of its queue; empty for all.
    refusals
        Places that it avoids.
    """
    spec = record.spec
    job = spec.job(record.id, clusters)
    if refusals.devices or refusals.places:
        job = replace(job, demand=refusals.retained(job.demand))
    ends_s = spec.max_duration_s
    length = -1 if ends_s is None else ends_s.bit_length()  # short jobs may fit before a reservation begins
    return Entry(record, job, Kind.of(spec.queue, length, job), discipline.key(job, record.submitted_ns))


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

    def first(self, waits: Callable[[Entry], bool]) -> Ranked | None:
        """Return the first job that still waits."""
        while self.heap:
            if waits(self.heap[0][2]):
                return self.heap[0]
            heappop(self.heap)
        return None


class Waiting:
    """The waiting jobs.

    Parameters
    ----------
    discipline
        Order in which jobs are tried.
    """

    def __init__(self, discipline: QueueDiscipline) -> None:
        self.discipline = discipline
        self._entries: dict[str, Entry] = {}
        self._kinds: defaultdict[str, dict[Kind, _JobHeap]] = defaultdict(dict)  # by tenant
        self._queues: defaultdict[tuple[str, str], _JobHeap] = defaultdict(_JobHeap)  # by tenant and queue
        self._untried: defaultdict[str, list[Ranked]] = defaultdict(
            list
        )  # by tenant: a heap of the first job of each kind
        self._aside: defaultdict[str, dict[Kind, Ranked]] = defaultdict(dict)  # the same for rejected kinds
        self._refused: set[Kind] = set()
        self._fresh: OrderedDict[str, None] = OrderedDict()
        self._count = 0

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

    def first(self, tenant: str, queue: str) -> Entry | None:
        """Return the first job of a tenant in a queue."""
        first = self._queues[tenant, queue].first(self._waits)
        return first[2] if first else None

    def fresh(self, most: int) -> list[Entry]:
        """Return up to `most` jobs that were tried but are not stored as queued yet, each once."""
        tried: list[Entry] = []
        for _ in range(min(len(self._fresh), SCAN_FACTOR * most)):
            job_id, _ = self._fresh.popitem(last=False)
            waits = self._entries.get(job_id)
            if waits is None or not _is_fresh(waits.record):
                continue
            if waits.kind in self._refused:
                tried.append(waits)
            else:
                self._fresh[job_id] = None
            if len(tried) >= most:
                break
        return tried

    # Changes.

    def put(self, entry: Entry) -> None:
        """Add a job; replace an older record of it."""
        self._entries[entry.record.id] = entry
        if _is_fresh(entry.record):
            self._fresh[entry.record.id] = None
        self._count += 1
        ranked, tenant = (entry.order, self._count, entry), entry.record.spec.tenant
        self._queues[tenant, entry.queue].push(ranked, self._waits)
        line = self._kinds[tenant].setdefault(entry.kind, _JobHeap())
        line.push(ranked, self._waits)
        if line.heap[0] is not ranked:
            return
        if entry.kind in self._refused:
            self._aside[tenant][entry.kind] = ranked
        else:
            heappush(self._untried[tenant], ranked)

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Return jobs from `take` to their queues."""
        for each in entries:
            self.put(each)

    def remove(self, job_id: str) -> None:
        """Remove a job, if it waits."""
        self._entries.pop(job_id, None)

    # Trying.

    def try_all(self) -> None:
        """Allow a new try of every kind after a change of the fleet."""
        self._refused.clear()
        for tenant in {*self._untried, *self._aside}:
            aside = self._aside[tenant]
            for kind in {each[2].kind for each in self._untried[tenant]}:
                first = None if kind in aside else self._first(tenant, kind)
                if first:
                    aside[kind] = first
            self._untried[tenant] = sorted(aside.values())  # nearly sorted already, and a sorted list is a heap
            aside.clear()

    def refuse(self, kind: Kind) -> None:
        """Mark a kind as not fitting until the fleet changes."""
        self._refused.add(kind)

    @property
    def idle(self) -> bool:
        """True if there is nothing to try."""
        return not any(self._next(tenant) for tenant in list(self._untried))

    def take(
        self, most: int, alike: Callable[[Entry], Hashable], infeasible: Callable[[Entry], bool] = lambda _: False
    ) -> list[Entry]:
        """Remove and return the next jobs to try, up to `most`, while `alike` returns the same value for them.

        Kinds that `infeasible` rejects are skipped and marked as refused. After many skipped kinds, the jobs collected
        until then are returned, possibly none.
        """
        skipped = 0
        tenants = sorted(tenant for tenant in list(self._untried) if self._next(tenant))
        taken: list[Entry] = []
        sort: Hashable = None
        while tenants and len(taken) < most:
            tenant = self.discipline.next_tenant(tenants)
            first = self._next(tenant)
            while first and infeasible(first):
                self._pass_over(tenant)
                skipped += 1
                if skipped >= MAX_SKIPPED:
                    return taken
                first = self._next(tenant)
            if first is None:
                tenants.remove(tenant)
                continue
            if taken and alike(first) != sort:
                break
            sort = alike(first)
            self._pop(tenant)
            taken.append(first)
            self.discipline.taken(first.job)
        return taken

    def _next(self, tenant: str) -> Entry | None:
        heap = self._untried[tenant]
        while heap:
            kind = heap[0][2].kind
            first = self._first(tenant, kind)
            if first and kind not in self._refused:
                if first is heap[0]:
                    return first[2]
                heapreplace(heap, first)
                continue
            heappop(heap)
            if first:
                self._aside[tenant][kind] = first
        return None

    def _pass_over(self, tenant: str) -> None:
        """Refuse the kind of the job that `_next` returned."""
        ranked = heappop(self._untried[tenant])
        self._aside[tenant][ranked[2].kind] = ranked
        self._refused.add(ranked[2].kind)

    def _pop(self, tenant: str) -> None:
        """Remove the job that `_next` returned. The next job of its kind replaces it."""
        _, _, gone = heappop(self._untried[tenant])
        del self._entries[gone.record.id]
        following = self._first(tenant, gone.kind)
        if following:
            heappush(self._untried[tenant], following)

    def _first(self, tenant: str, kind: Kind) -> Ranked | None:
        """Return the first waiting job of a kind; remove a kind without jobs."""
        line = self._kinds[tenant].get(kind)
        if line is None:
            return None
        first = line.first(self._waits)
        if first is None:
            del self._kinds[tenant][kind]
        return first

    def _waits(self, entry: Entry) -> bool:
        return self._entries.get(entry.record.id) is entry


def _is_fresh(record: JobRecord) -> bool:
    return record.state is not JobState.QUEUED or record.reason.endswith(ELSEWHERE)
