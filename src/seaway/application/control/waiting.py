"""Jobs that wait for a place, in the order in which they are to be tried.

Within a tenant, priority goes first, then who came first; tenants take turns. Jobs that ask for the
same are of one kind: when one of a kind does not fit, none of it does until the fleet changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from seaway.application.records import JobRecord
from seaway.domain.job import Job
from seaway.domain.lifecycle import JobState

Order = tuple[int, int, str]

LOOKS = 8
"""Jobs that are looked through for each that is wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A job that waits.

    Attributes
    ----------
    record
        The job as it is stored.
    job
        What the scheduler sees.
    kind
        Equal for jobs that fit in the same places.
    """

    record: JobRecord
    job: Job
    kind: Hashable
    order: Order

    @property
    def queue(self) -> str:
        """Name of the queue it waits in."""
        return self.record.spec.queue


def entry(record: JobRecord, clusters: frozenset[str], avoid: frozenset[str]) -> Entry:
    """Prepare a job to wait.

    Parameters
    ----------
    clusters
        Those of its queue's pool; empty for all.
    avoid
        Devices that it is kept from.
    """
    spec = record.spec
    job = spec.job(record.id, clusters)
    if avoid:
        rules = replace(job.demand.devices, avoid_uuids=job.demand.devices.avoid_uuids | avoid)
        job = replace(job, demand=replace(job.demand, devices=rules))
    kind = (spec.queue, job.demand, job.replicas, job.gang, job.between_replicas)
    return Entry(record, job, kind, (-spec.priority, record.submitted_ns, record.id))


Ranked = tuple[Order, int, Entry]
"""A job behind its place in the order; the number in between tells two entries of one job apart."""


@dataclass(slots=True, eq=False)
class _Kind:
    """Jobs of one tenant and kind, the first on top; what left is dropped when it comes to the top."""

    heap: list[Ranked] = field(default_factory=list)


class Waiting:
    """The jobs that wait."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._kinds: dict[str, dict[Hashable, _Kind]] = {}
        self._untried: dict[str, set[Hashable]] = {}
        self._refused: set[Hashable] = set()
        self._fresh: deque[str] = deque()
        self._last_tenant = ""
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._entries

    def get(self, job_id: str) -> Entry | None:
        """Return a job that waits."""
        return self._entries.get(job_id)

    def first(self, tenant: str, queue: str) -> Entry | None:
        """Return the first job of a tenant in a queue."""
        firsts = [self._first(tenant, kind) for kind in list(self._kinds.get(tenant, ()))]
        own = [each for each in firsts if each and each[2].queue == queue]
        return min(own)[2] if own else None

    def fresh(self, most: int) -> list[Entry]:
        """Return jobs that were tried, but are not stored as queued yet: up to `most`, each once."""
        tried: list[Entry] = []
        for _ in range(min(len(self._fresh), LOOKS * most)):
            job_id = self._fresh.popleft()
            waits = self._entries.get(job_id)
            if waits is None or waits.record.state is JobState.QUEUED:
                continue
            if waits.kind in self._refused:
                tried.append(waits)
            else:
                self._fresh.append(job_id)
            if len(tried) >= most:
                break
        return tried

    def entries(self) -> Iterable[Entry]:
        """Return every job that waits, in no order."""
        return self._entries.values()

    def put(self, entry: Entry) -> None:
        """Let a job wait, in place of an older record of it."""
        self._entries[entry.record.id] = entry
        if entry.record.state is not JobState.QUEUED:
            self._fresh.append(entry.record.id)
        self._push(entry)

    def remove(self, job_id: str) -> None:
        """Let a job wait no longer; one that does not is passed over."""
        self._entries.pop(job_id, None)

    def try_all(self) -> None:
        """Let every kind be tried again: the fleet changed."""
        self._refused.clear()
        self._untried = {tenant: set(kinds) for tenant, kinds in self._kinds.items()}

    def refuse(self, kind: Hashable) -> None:
        """Note that jobs of a kind do not fit for now."""
        self._refused.add(kind)
        for kinds in self._untried.values():
            kinds.discard(kind)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to try."""
        return not any(self._untried.values())

    def take(self, most: int, alike: Callable[[Entry], Hashable]) -> list[Entry]:
        """Take the next jobs to try, up to `most`, as long as `alike` says the same of them.

        They wait no longer, until they are put back.
        """
        heads = {tenant: self._heads(tenant) for tenant in sorted(self._untried)}
        turn = [tenant for tenant, heap in heads.items() if heap]
        turn.sort(key=lambda tenant: (tenant <= self._last_tenant, tenant))
        taken: list[Entry] = []
        sort: Hashable = None
        while turn and len(taken) < most:
            for tenant in list(turn):
                first = heads[tenant][0][2]
                if taken and alike(first) != sort:
                    return taken
                sort = alike(first)
                self._pop(tenant, heads[tenant])
                taken.append(first)
                self._last_tenant = tenant
                if not heads[tenant]:
                    turn.remove(tenant)
                if len(taken) >= most:
                    break
        return taken

    def _heads(self, tenant: str) -> list[Ranked]:
        """Return a heap of the first job of each kind that is to be tried."""
        heads = []
        for kind in list(self._untried[tenant]):
            first = self._first(tenant, kind)
            if first is None:
                self._untried[tenant].discard(kind)
            else:
                heads.append(first)
        heapify(heads)
        return heads

    def _first(self, tenant: str, kind: Hashable) -> Ranked | None:
        """Return the first job of a kind that still waits; forget a kind that has none."""
        known = self._kinds[tenant].get(kind)
        if known is None:
            return None
        heap = known.heap
        while heap:
            if self._entries.get(heap[0][2].record.id) is heap[0][2]:
                return heap[0]
            heappop(heap)
        del self._kinds[tenant][kind]
        return None

    def _pop(self, tenant: str, heads: list[Ranked]) -> None:
        """Take the first job of `heads` away, and let the next of its kind take its place."""
        _, _, first = heappop(heads)
        del self._entries[first.record.id]
        following = self._first(tenant, first.kind)
        if following is None:
            self._untried[tenant].discard(first.kind)
        else:
            heappush(heads, following)

    def _push(self, entry: Entry) -> None:
        tenant = entry.record.spec.tenant
        kinds = self._kinds.setdefault(tenant, {})
        if entry.kind not in kinds:
            kinds[entry.kind] = _Kind()
        self._count += 1
        heappush(kinds[entry.kind].heap, (entry.order, self._count, entry))
        if entry.kind not in self._refused:
            self._untried.setdefault(tenant, set()).add(entry.kind)

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Let jobs that were taken wait on."""
        for each in entries:
            self.put(each)

    def ahead(self, job_id: str) -> int:
        """Count the jobs of the same tenant and queue that are to be tried before a job."""
        own = self._entries[job_id]
        spec = own.record.spec
        return sum(
            1
            for each in self._entries.values()
            if each.order < own.order and each.record.spec.tenant == spec.tenant and each.queue == spec.queue
        )
