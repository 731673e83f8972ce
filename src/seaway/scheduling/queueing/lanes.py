"""Selection of the next job over the tree of queues.

A lane is the line of jobs of one tenant in one queue. Each queue keeps its lanes and children in a heap. A change of a
lane or of the use of its queue renews the keys on the way to the root.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from seaway.domain.amounts import Amounts
from seaway.scheduling.queueing.discipline import QueueDiscipline, SortKey
from seaway.scheduling.queueing.tree import QueueNode, QueueTree

LaneName: TypeAlias = tuple[str, str]
"""Queue and tenant."""

ROOT = ""
"""Name of the group of all roots."""

MIN_HEAP = 64
"""Number of entries above which a heap without enough current ones is created again."""

LANES_FIRST, THEN_CHILDREN = 0, 1
"""Jobs that still wait in a queue that got children go first."""

_Key: TypeAlias = tuple[int, SortKey]


@dataclass(frozen=True, slots=True)
class FirstJob:
    """The first job of a lane: its key, and the amounts that it requests at least."""

    key: SortKey
    requested: Amounts


class _Group:
    """Candidates of one queue, or of all roots: lanes and child queues by name."""

    __slots__ = ("_current", "_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[_Key, int, str | LaneName]] = []
        self._current: dict[str | LaneName, tuple[_Key, int]] = {}
        self._number = 0

    def fork(self) -> _Group:
        """Return a group of the same candidates, which changes on its own."""
        twin = copy(self)
        twin._heap, twin._current = self._heap.copy(), self._current.copy()  # noqa: SLF001  # of this class
        return twin

    def put(self, name: str | LaneName, key: _Key) -> None:
        """Add a candidate, or change its key."""
        known = self._current.get(name)
        if known and known[0] == key:
            return
        self._number += 1
        self._current[name] = (key, self._number)
        heappush(self._heap, (key, self._number, name))
        if len(self._heap) > 2 * len(self._current) + MIN_HEAP:
            self._heap = [(key, number, name) for name, (key, number) in self._current.items()]
            heapify(self._heap)

    def drop(self, name: str | LaneName) -> None:
        """Remove a candidate, if it is one."""
        self._current.pop(name, None)

    def in_order(self) -> Iterator[str | LaneName]:
        """Yield all candidates in order. They must not change in the meantime."""
        first = self.first()
        if first is not None:
            yield first  # mostly, no other one is asked for
            yield from sorted(self._current, key=self._current.__getitem__)[1:]

    def before(self, key: _Key) -> list[str | LaneName]:
        """Return the candidates before a key."""
        return [name for name, (known, _) in self._current.items() if known < key]

    def first(self) -> str | LaneName | None:
        """Return the candidate with the smallest key; None without candidates."""
        while self._heap:
            _, number, name = self._heap[0]
            known = self._current.get(name)
            if known and known[1] == number:
                return name
            heappop(self._heap)
        return None


class LaneOrder:
    """Lanes with jobs to try, in the order of a discipline.

    Parameters
    ----------
    tree
        The queues with the amounts that they hold.
    """

    def __init__(self, tree: QueueTree, discipline: QueueDiscipline) -> None:
        self.tree = tree
        self._discipline = discipline
        self._lanes: dict[str, dict[str, FirstJob]] = {}  # by queue and tenant
        self._queues_of: defaultdict[str, set[str]] = defaultdict(set)  # by tenant
        self._queues_in: Counter[str] = Counter()  # number by pool
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._firsts: dict[str, LaneName] = {}  # next lane below each queue
        self._version = (-1, -1)
        self._changed = tree.watch()  # lanes whose keys may have changed

    def fork(self, tree: QueueTree) -> LaneOrder:
        """Return the same order over a copy of the tree, which changes on its own."""
        twin = copy(self)
        twin._unshare(tree)  # noqa: SLF001  # of this class
        return twin

    def _unshare(self, tree: QueueTree) -> None:
        changed, self.tree, self._changed = self._changed, tree, tree.watch()
        self._changed |= changed
        self._lanes = {queue: tenants.copy() for queue, tenants in self._lanes.items()}
        self._queues_of = defaultdict(set, {tenant: queues.copy() for tenant, queues in self._queues_of.items()})
        self._queues_in = self._queues_in.copy()
        self._groups = defaultdict(_Group, {name: group.fork() for name, group in self._groups.items()})
        self._firsts = self._firsts.copy()

    def __contains__(self, lane: LaneName) -> bool:
        return lane[1] in self._lanes.get(lane[0], ())

    def put(self, lane: LaneName, first: FirstJob) -> None:
        """Add a lane, or change its first job."""
        tenants = self._lanes.setdefault(lane[0], {})
        if not tenants:
            self._queues_in[self._pool_of(lane[0])] += 1
        if tenants.get(lane[1]) != first:
            tenants[lane[1]] = first
            self._queues_of[lane[1]].add(lane[0])
            self._changed.add(lane)
            if len(tenants) == 2:
                self._changed.update((lane[0], tenant) for tenant in tenants)  # the only one had no key

    def drop(self, lane: LaneName) -> None:
        """Remove a lane, if it is a candidate."""
        tenants = self._lanes.get(lane[0])
        if tenants and tenants.pop(lane[1], None):
            self._changed.add(lane)
            self._queues_of[lane[1]].discard(lane[0])
            if group := self._groups.get(lane[0]):
                group.drop(lane)
            if not tenants:
                del self._lanes[lane[0]]
                self._queues_in[self._pool_of(lane[0])] -= 1

    def first(self) -> LaneName | None:
        """Return the lane with the next job; None without lanes."""
        self._follow()
        return self._first_in(ROOT)

    def only(self, lane: LaneName) -> bool:
        """Report whether no lane but one has jobs to try."""
        queue, tenant = lane
        return all(name == queue and all(each == tenant for each in self._lanes[name]) for name in self._lanes)

    def lanes(self) -> Iterator[LaneName]:
        """Yield all lanes, each as if those before it were dropped. The order must not change in the meantime."""
        self._follow()
        return self._below(ROOT)

    def pools(self) -> set[str]:
        """Return the pools of all lanes."""
        self._follow()
        return {pool for pool, count in self._queues_in.items() if count}

    def before(self, queue: str, requested: Amounts) -> Iterator[LaneName]:
        """Yield the lanes of other queues that go before a job of a queue in its pool.

        Parameters
        ----------
        requested
            Minimum amounts of the job.
        """
        self._follow()
        own = self.tree.node(queue)
        for node in own.path:
            group = self._groups.get(node.parent.key if node.parent else ROOT)
            key = THEN_CHILDREN, self._discipline.queue_key(node, requested)
            for name in group.before(key) if group else ():
                if isinstance(name, str) and name != node.key and self._pool_of(name) == own.queue.pool:
                    yield from self._below(name)

    def _below(self, name: str) -> Iterator[LaneName]:
        group = self._groups.get(name)
        for each in group.in_order() if group else ():
            if isinstance(each, str):
                yield from self._below(each)
            else:
                yield each

    def tenant_key(self, lane: LaneName, first: FirstJob) -> SortKey:
        """Return the position of a tenant in its queue."""
        tenant = self.tree.tenant(*lane)
        return self._discipline.tenant_key(self.tree.node(lane[0]), tenant, first.key, first.requested)

    def _first_in(self, name: str) -> LaneName | None:
        """Return the next lane below a queue, whose children are up to date."""
        group = self._groups.get(name)
        found = group.first() if group else None
        return self._firsts[found] if isinstance(found, str) else found

    def _follow(self) -> None:
        """Renew the keys of changed lanes and of the queues above them, and all keys after a change of the tree."""
        tree = self.tree
        version = tree.version, tree.past_version
        if self._version != version:
            self._version = version
            self._groups.clear()
            self._firsts.clear()
            self._queues_in = Counter(map(self._pool_of, self._lanes))
            self._changed.update((queue, tenant) for queue, tenants in self._lanes.items() for tenant in tenants)
        if not self._changed:
            return
        changed = [*self._changed]
        self._changed.clear()
        nodes: dict[QueueNode, None] = {}
        for queue, tenant in changed:
            for each in (queue,) if queue else self._queues_of.get(tenant, ()):
                self._renew((each, tenant))
                nodes.update(dict.fromkeys(tree.node(each).path))
        for node in sorted(nodes, key=_depth, reverse=True) if len(changed) > 1 else nodes:
            self._renew_child(node)

    def _pool_of(self, queue: str) -> str:
        return self.tree.node(queue).queue.pool

    def _renew(self, lane: LaneName) -> None:
        """Renew the key of a lane in its queue."""
        queue, tenant = lane
        tenants = self._lanes.get(queue, {})
        if first := tenants.get(tenant):
            self._groups[queue].put(lane, (LANES_FIRST, self.tenant_key(lane, first) if len(tenants) > 1 else ()))

    def _renew_child(self, node: QueueNode) -> None:
        """Renew the key of a queue in the group of its parent."""
        name = node.key
        above = self._groups[node.parent.key if node.parent else ROOT]
        lane = self._first_in(name)
        if lane is None:
            above.drop(name)
            return
        self._firsts[name] = lane
        requested = self._lanes[lane[0]][lane[1]].requested
        above.put(name, (THEN_CHILDREN, self._discipline.queue_key(node, requested)))


def _depth(node: QueueNode) -> int:
    return len(node.path)
