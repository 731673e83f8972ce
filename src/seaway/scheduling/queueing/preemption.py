"""Choice of the running jobs that a waiting job displaces.

Rules say which jobs may be displaced. Among these, the search looks for the set with the least cost after whose removal
the waiting job fits, by a decision of the engine on a copy of the fleet. Elastic jobs first shrink, replica by replica.
They end last. Replicas that a queue lends leave for any waiting job, first those of the job furthest above its share.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import inf
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from seaway.domain.amounts import (
    CPU,
    GPU_CORES,
    GPU_MEMORY,
    GPUS,
    MEMORY,
    NO_AMOUNTS,
    Amounts,
    add,
    total_of,
)
from seaway.domain.job import Job
from seaway.domain.placement import Placement
from seaway.domain.queues import Elastic, Preemption, Preempts, Queue, Reclaim
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    DEMAND_GPUS,
    DEMAND_MASK,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY_FREE,
    DEVICE_MIG,
    DEVICE_OPEN,
    DEVICE_SLOTS_FREE,
    JOB_DEMAND,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_MEMORY_FREE,
    NODE_OPEN,
    PLAN_BANDWIDTH,
    PLAN_NODE,
    PLAN_REPLICA,
    PLAN_REPLICA_BANDWIDTH,
    SLICE_CORE,
    SLICE_DEVICE,
    SLICE_MEMORY,
    SLICE_MIG,
)
from seaway.scheduling.data_locality import pull_ms
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import (
    NO_KINDS,
    Key,
    Owner,
    QueueNode,
    QueueTree,
    below_common_ancestor,
    kind_of,
)
from seaway.scheduling.snapshot.snapshot import Snapshot

MAX_NODES = 16
"""Maximum number of nodes on which sets of victims are compared, those with the least estimated cost first."""

MANY_TIMES = 4
"""Multiple of the replicas of a job that the nodes have room for from which candidates are removed first."""

MAX_COMBINED, MAX_SUBSETS = 10, 8
"""Maximum number of candidates whose sets are compared by amounts, and of sets that the engine then tries."""

MANY = 200
"""Number of candidates above which fewer orders of their removal are compared."""

MAX_PRUNED = 32
"""Maximum number of victims of which each is tried to be left out."""

MAX_TRIES = 400
"""Maximum number of decisions of the engine in one search."""

_RESOURCES = (CPU, MEMORY, GPU_CORES, GPU_MEMORY)

Cost = tuple[float, int, int, int, int]
"""Cost of victims: lost work with restarts, sum of priorities and number of jobs, then of replicas number and sum."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A running job that may be displaced, or a replica by which an elastic one can shrink.

    Attributes
    ----------
    allocation
        What it holds in the snapshot.
    nodes
        Numbers of its nodes in the snapshot, each once.
    priority
        Its priority, with the points that it gained while it waited.
    lost
        Work that is lost with it, since its start or checkpoint, and the cost of its restart, see `QueueTree.loss`.
    spare
        Number of replicas of an elastic job, or of that of a replica, beyond the minimum; None for other jobs.
    whole
        The job of a replica; None for a job. The number in the key of a replica is negative.
    before
        Replica that has to leave before this one, because they share a workload.
    row
        Its amounts of `_RESOURCES`.
    order
        1 for a job, 0 for a replica.
    """

    key: Key
    owner: Owner
    amounts: Amounts
    allocation: Allocation
    nodes: tuple[int, ...]
    priority: int
    lost: float
    spare: int | None = None
    whole: Candidate | None = None
    before: Candidate | None = None
    row: tuple[int, ...] = field(init=False)
    order: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the row."""
        self.row = tuple(self.amounts.get(name, 0) for name in _RESOURCES)
        self.order = int(self.whole is None)

    @property
    def job_key(self) -> Key:
        """Key of the attempt, also of one of its replicas."""
        return self.whole.key if self.whole else self.key

    @property
    def replicas(self) -> frozenset[int]:
        """Numbers of its replicas, or of the one that it is."""
        return frozenset(self.allocation.decisions[:, PLAN_REPLICA].tolist())

    @property
    def spare_amounts(self) -> Amounts:
        """Amounts of the replicas by which it can shrink; none for a replica."""
        if not self.spare or self.whole:
            return NO_AMOUNTS
        return {name: amount * self.spare // len(self.replicas) for name, amount in self.amounts.items()}


def replicas_of(whole: Candidate, leaving: Iterable[Sequence[int]], amounts: Mapping[int, Amounts]) -> list[Candidate]:
    """Return the replicas by which an elastic job can shrink; none if it has its minimum.

    Parameters
    ----------
    leaving
        Numbers of replicas, those of each workload in the order in which they have to leave.
    amounts
        Amounts of each replica.
    """
    found: list[Candidate] = []
    parts = whole.allocation.split() if whole.spare else {}
    for workload in leaving if whole.spare else ():
        before = None
        for replica in workload:
            part = parts[replica]
            key = (whole.key[0], -1 - replica)
            before = Candidate(
                key, whole.owner, amounts[replica], part, part.nodes, whole.priority, 0.0, whole.spare, whole, before
            )
            found.append(before)
    return found


RunningByQueue = Mapping[str, Sequence[Candidate]]
"""Running jobs of each queue."""

_BY_COST = attrgetter("order", "lost", "priority", "key")

_BY_GPUS = frozenset({GPUS})
"""Kinds of resources that jobs may take from others whose guarantees cover only other kinds."""


def by_queue(jobs: Iterable[Candidate]) -> RunningByQueue:
    """Return jobs by their queue."""
    found: defaultdict[str, list[Candidate]] = defaultdict(list)
    for each in jobs:
        found[each.owner.queue].append(each)
    return found


@dataclass(frozen=True, slots=True)
class Displacement:
    """Jobs that make room for another job, and the place that it gets."""

    victims: tuple[Candidate, ...]
    placements: tuple[Placement, ...]

    @property
    def cost(self) -> Cost:
        """Cost of all victims."""
        return cost_of(self.victims)


def cost_of(victims: Iterable[Candidate]) -> Cost:
    """Return the cost of victims. Of jobs, lost work with restarts is first, then priorities, then the number."""
    found = list(victims)
    jobs, replicas = ([each for each in found if each.order == order] for order in (1, 0))
    lost, priorities = sum(each.lost for each in jobs), sum(each.priority for each in jobs)
    return lost, priorities, len(jobs), len(replicas), sum(each.priority for each in replicas)


def may_displace_any(queue: QueueNode, requested: Amounts) -> bool:
    """Report cheaply whether the rules of a queue could let a waiting job of it displace any running job."""
    rules = queue.queue
    if rules.preemption is not Preemption.NEVER or rules.reclaim is Reclaim.FAIR_SHARE:
        return True
    return rules.reclaim is Reclaim.GUARANTEE and any(each.entitled(requested) for each in queue.path)


def may_displace_now(queue: QueueNode) -> bool:
    """Report cheaply whether the rules of a queue could let any waiting job of it displace others now."""
    rules = queue.queue
    if rules.preemption is not Preemption.NEVER or rules.reclaim is Reclaim.FAIR_SHARE:
        return True
    return rules.reclaim is Reclaim.GUARANTEE and any(each.has_guarantee_left for each in queue.path)


def is_lent(candidate: Candidate, queue: Queue) -> bool:
    """Report whether a candidate of a queue is a replica that leaves for any waiting job."""
    return candidate.whole is not None and queue.elastic is Elastic.LEND


Distance = tuple[float, ...]
"""Distance of a job above its share, from the root of the tree to the job. The largest shrinks first."""


def above_share(tree: QueueTree, whole: Candidate) -> Distance:
    """Return how far an elastic job is above its share.

    The parts are those of the root queue, of the queues below it, of the tenant, and of the replicas that the job can
    spare. A queue or tenant within its guarantee is not above its share. Beyond that, a lower priority of a queue is
    first. Of equal jobs, the one of the lowest priority is first.
    """
    queue, tenant = tree.node(whole.owner.queue), tree.tenant(*whole.owner[:2])
    found = list[float]()
    for node in queue.path[::-1]:
        level = _level(node)
        found += [-node.queue.priority, level] if level > 0 else [-inf, level]
    share = queue.share_of(tenant.use.held)
    if tenant.guarantees(dict.fromkeys(tenant.guarantee, 0)):
        share = -1 / (1 + share)
    else:
        share = share / tenant.weight if tenant.weight else inf if share else 0.0
    spared = queue.share_of(whole.amounts) * (whole.spare or 0) / (len(whole.replicas) or 1)
    return (*found, round(share, 9), round(spared, 9), -whole.priority)


def priority_below(waiting: Queue, priority: int, queue: str) -> float:
    """Return the priority below which jobs of a queue may ever be displaced by a job in the queue `waiting`."""
    if queue != waiting.name and waiting.reclaim is not Reclaim.NEVER:
        return inf
    return priority if displaces_by_priority(waiting, within=queue == waiting.name) else -inf


def displaces_by_priority(waiting: Queue, *, within: bool) -> bool:
    """Report whether jobs of a queue may displace others of a lower priority: within the queue, or in others."""
    return waiting.preemption is Preemption.PREEMPT_LOWER_PRIORITY and (within or waiting.preempts is Preempts.ALL)


@dataclass(frozen=True, slots=True)
class _Other:
    """A queue with running jobs, as a waiting job of some queue meets it.

    Attributes
    ----------
    mine, theirs
        The two children of the lowest common ancestor; equal in the same queue.
    guaranteed
        The queue and its ancestors up to `theirs` that have a guarantee.
    lends
        Whether replicas of its elastic jobs leave for any waiting job.
    by_priority
        Whether a job of a higher priority displaces its jobs.
    reclaim
        Other jobs of it that may be displaced.
    """

    node: QueueNode
    mine: QueueNode
    theirs: QueueNode
    guaranteed: Sequence[QueueNode]
    lends: bool
    by_priority: bool
    reclaim: Reclaim


class DisplacementRules:
    """Rules of the queues for the victims of one waiting job, with the use that is left while jobs are removed.

    Parameters
    ----------
    tree
        The queues. `remove` and `restore` change what they hold.
    owner, priority, requested
        Where the waiting job counts, its priority, and the amounts that it holds at least.
    running
        All running jobs of each queue, also those that must not be displaced. They do not change while the rules are
        in use.
    spared
        Names of the jobs that it displaced before. It does not take their places by `FairShare` again, nor those that
        are guaranteed in part.

    Attributes
    ----------
    lacks
        Return the kinds of resources that the waiting job lacks where a running one is. `VictimSearch` sets it.
    """

    def __init__(
        self,
        tree: QueueTree,
        owner: Owner,
        priority: int,
        requested: Amounts,
        running: RunningByQueue,
        spared: Collection[str] = (),
    ) -> None:
        self.tree = tree
        self.owner = owner
        self.priority = priority
        self.requested = requested
        self._running = running
        self._spared = spared
        kinds = frozenset(map(kind_of, requested))
        self.lacks: Callable[[Candidate], frozenset[str]] = lambda _: kinds
        self._others: dict[str, _Other] = {}
        self._removed: set[Key] = set()
        self._shrunk: dict[Key, dict[str, int]] = {}  # amounts of the removed replicas of elastic jobs
        self._lower: defaultdict[str, dict[int, dict[str, int]]] = defaultdict(dict)

    def remove(self, victim: Candidate) -> None:
        """Withdraw a running job, or a replica of one."""
        if victim.whole:
            self._resize(victim.whole, victim.amounts, 1)
        else:
            self.tree.withdraw(victim.key)
            self._removed.add(victim.key)
        self._change_lower(victim, -1)

    def restore(self, victim: Candidate) -> None:
        """Let a removed job or replica run again."""
        if victim.whole:
            self._resize(victim.whole, victim.amounts, -1)
        else:
            self.tree.hold(victim.key, victim.owner, victim.amounts)
            self._removed.discard(victim.key)
        self._change_lower(victim, 1)

    def _resize(self, whole: Candidate, amounts: Amounts, times: int) -> None:
        gone, held = self._shrunk.setdefault(whole.key, {}), dict(whole.amounts)
        add(gone, amounts, times)
        add(held, gone, -1)
        self.tree.hold(whole.key, whole.owner, held)

    def _change_lower(self, victim: Candidate, times: int) -> None:
        for priority, lower in self._lower[victim.owner.queue].items():
            if victim.priority < priority:
                add(lower, victim.amounts, times)

    def _held_by_lower(self, queue: str, priority: int) -> Amounts:
        """Return what the running jobs of a queue with a lower priority hold."""
        lower = self._lower[queue]
        if priority not in lower:
            running = [each for each in self._running.get(queue, ()) if each.priority < priority]
            lower[priority] = total_of(each.amounts for each in running if each.key not in self._removed)
            for each in running if self._shrunk else ():
                add(lower[priority], self._shrunk.get(each.key, NO_AMOUNTS), -1)
        return lower[priority]

    def reaches_by_priority(self, victim: Candidate) -> bool:
        """Report whether the waiting job may displace a running one by its priority, unless a guarantee protects it."""
        return victim.priority < self.priority and self._other(victim.owner.queue).by_priority

    def _other(self, name: str) -> _Other:
        """Return a queue with running jobs. The queues do not change while the rules are in use."""
        if known := self._others.get(name):
            return known
        queue, node = self.tree.node(self.owner.queue), self.tree.node(name)
        mine, theirs = below_common_ancestor(queue, node)
        path = node.path[: node.path.index(theirs) + 1]
        known = self._others[name] = _Other(
            node,
            mine,
            theirs,
            tuple(each for each in path if each.guarantee),
            node.queue.elastic is Elastic.LEND,
            displaces_by_priority(queue.queue, within=node is queue) and theirs.queue.priority <= mine.queue.priority,
            queue.queue.reclaim if node is not queue and queue.queue.pool == node.queue.pool else Reclaim.NEVER,
        )
        return known

    def allow_all(self, victims: Iterable[Candidate], requested: Amounts | None = None) -> bool:
        """Report whether each of some removed jobs and replicas may be the last one, as `allow` does."""
        for each in victims:
            if self.lends(each):
                continue
            self.restore(each)
            allowed = self.allow(each, requested)
            self.remove(each)
            if not allowed:
                return False
        return True

    def lends(self, victim: Candidate) -> bool:
        """Report whether a candidate is a replica that leaves for any waiting job."""
        return victim.whole is not None and is_lent(victim, self.tree.node(victim.owner.queue).queue)

    def allow(self, victim: Candidate, requested: Amounts | None = None) -> bool:
        """Report whether the waiting job may displace a running one, with the present use.

        Lent replicas leave for any job, since shrinking is no preemption.

        By priority, a job displaces those of its queue, and with `Preempts.ALL` those of other queues, also of other
        pools. Other rules between queues apply to the two children of their lowest common ancestor: by priority, the
        other one must not have a higher one. By `Queue.reclaim`, a queue that stays within its guarantee takes from
        those beyond theirs. With `FairShare`, a queue also takes from one with a larger share beyond the guarantee, if
        its own share stays smaller than that, and the other one keeps more than its own is.

        A guarantee protects a job in the kinds of resources that it names and covers. For other kinds, the job can be
        displaced if the waiting one lacks them there: GPUs, or what is guaranteed to its queue. No job displaces
        another twice in this way, since both can need what is guaranteed to either. An elastic job ends only if the
        guarantee does not cover it with its minimum of replicas. It would take its place back at once.

        So the smaller share of the two rises. Jobs that start rise it too, and nothing else does, so siblings cannot
        displace each other in turns. Displacements within a queue lower its share. Therefore, jobs of a lower priority
        than the waiting job or the victim do not count in the shares and guarantees of their queues. Those below a
        sibling still lower its share. Therefore, no job displaces another twice with `FairShare`, so all turns end.

        Parameters
        ----------
        requested
            Amounts that the waiting job gets, if they are known.
        """
        requested = self.requested if requested is None else requested
        other = self._other(victim.owner.queue)
        if victim.whole is not None and other.lends:
            return True
        by_priority = other.by_priority and victim.priority < self.priority
        if other.mine is other.theirs or not (by_priority or other.reclaim is not Reclaim.NEVER):
            return by_priority
        lower = partial(self._held_by_lower, other.node.key, victim.priority)
        spare = victim.spare_amounts  # after it has shrunk, the guarantee may protect the rest

        def left_out() -> Amounts:
            return total_of([lower(), spare]) if spare else lower()

        guaranteed = NO_KINDS.union(*[each.protected(victim.amounts, left_out) for each in other.guaranteed])
        if by_priority and (not guaranteed or self._takes(victim, _BY_GPUS, guaranteed)):
            return True
        return other.reclaim is not Reclaim.NEVER and self._reclaims(victim, other, requested, guaranteed, lower)

    def _takes(self, victim: Candidate, kinds: frozenset[str], guaranteed: frozenset[str]) -> bool:
        """Report whether a running job can be displaced for some kinds of resources though others are guaranteed."""
        if victim.key[0] in self._spared:
            return False
        return bool((kinds & self.lacks(victim)).intersection(map(kind_of, victim.amounts)) - guaranteed)

    def _reclaims(
        self,
        victim: Candidate,
        other: _Other,
        requested: Amounts,
        guaranteed: frozenset[str],
        lower: Callable[[], Amounts],
    ) -> bool:
        """Report whether `Queue.reclaim` allows a victim of another queue.

        Parameters
        ----------
        guaranteed
            Kinds of resources of the victim that are guaranteed to its queue.
        lower
            Return the amounts of jobs of its queue with a lower priority.
        """
        mine, theirs = other.mine, other.theirs
        if not guaranteed and mine.guarantees(requested):
            return True
        if self._takes(victim, mine.entitled(requested), guaranteed):
            return True
        return (
            other.reclaim is Reclaim.FAIR_SHARE
            and victim.key[0] not in self._spared
            and (not guaranteed or self._takes(victim, _BY_GPUS, guaranteed))
            and _weighted(mine, requested) < _weighted(theirs)
            and _level(mine, self._held_by_lower(self.owner.queue, self.priority))
            < _level(theirs, lower(), victim.amounts)
        )


def _level(node: QueueNode, *without: Amounts) -> float:
    """Return the weighted share beyond the guarantee without some amounts; a negative one is not weighted.

    A queue of weight 0 has the largest level from its guarantee on.
    """
    held = dict(node.use.held)
    for amounts in without:
        add(held, amounts, -1)
    share, weight = round(node.distance_from_guarantee(held), 9), node.queue.weight
    return share if share < 0 else share / weight if weight else inf


def _weighted(node: QueueNode, more: Amounts = NO_AMOUNTS) -> float:
    """Return the share beyond the guarantee with further amounts, divided by the weight."""
    share, weight = round(node.share_beyond_guarantee(more), 9), node.queue.weight
    return share / weight if weight else inf if share else 0.0


class VictimSearch:
    """Search for the cheapest victims of one waiting job.

    Parameters
    ----------
    snapshot
        A copy of the fleet, which has the allocations of all candidates. It is changed, and restored at the end.
    job
        The waiting job.
    rules
        Rules for its victims. Their tree is changed during the search, and restored at its end.
    """

    def __init__(self, snapshot: Snapshot, profile: Profile, job: Job, rules: DisplacementRules) -> None:
        self._snapshot = snapshot
        self._profile = profile
        self._job = job
        self._rules = rules
        self._queue = JobQueue(snapshot, [job])
        self._asked: Int64 = np.array([rules.requested.get(name, 0) for name in _RESOURCES], np.int64)
        free = _free(snapshot)
        self._needed: Int64 = self._asked - free
        self._lacks: list[int] = (self._asked - free.clip(0).sum(axis=0)).tolist()  # in all, less what is out
        self._allowed = _allowed_nodes(snapshot, self._queue)
        hit = rules.tree.hit(rules.owner, rules.requested, job.name)
        self._short = {kind_of(hit.resource)} if hit else set[str]()
        if self._asked[2:].any():
            self._short.add(GPUS)  # no sum of free amounts tells whether devices fit
        self._scarce = {}
        for at, name in enumerate((CPU, MEMORY)):
            if free[self._allowed, at].clip(0).sum() < self._asked[at]:
                self._short.add(name)
            self._scarce[name] = free[:, at] * job.replicas < self._asked[at]
        rules.lacks = self._lacking
        self._plan: Plan
        self._out: dict[Key, Candidate] = {}
        self._shrunk = Counter[Key]()  # number of replicas of each elastic job that are out
        self._replicas = defaultdict[Key, list[Candidate]](list)
        self._best: Displacement | None = None
        self._tries = 0

    def find(self, candidates: Sequence[Candidate]) -> Displacement | None:
        """Return the cheapest victims that were found; None if no allowed set makes room.

        Elastic jobs shrink first, those of queues that lend before others. If that is not enough, other jobs end too.
        Only if that is not enough either, an elastic job ends.

        No victim is needless: if any of them stays, the job does not fit, or the rules protect another one. Of more
        than `MAX_PRUNED` victims, none is needless for the place that was found.

        Parameters
        ----------
        candidates
            Running jobs with priorities below that of `priority_below`, and replicas of the elastic ones. Lent replicas
            of any priority.
        """
        for each in candidates:
            if each.whole:
                self._replicas[each.job_key].append(each)
        replicas = [each for each in candidates if each.whole]
        lent = [each for each in replicas if self._rules.lends(each)]
        if found := self._find_lent(lent):
            return found
        others, tried = [each for each in candidates if each.whole or each.spare is None], len(lent)
        for offered in (replicas, others, candidates):
            if len(offered) > tried and (found := self._find(offered)):
                return found
            tried = len(offered)
        return None

    def _find_lent(self, lent: Sequence[Candidate]) -> Displacement | None:
        """Return the cheapest victims among the replicas of the fewest jobs, those furthest above their shares."""
        wholes = {each.job_key: each.whole for each in lent if each.whole}
        order = sorted(wholes, key=lambda key: (above_share(self._rules.tree, wholes[key]), key), reverse=True)

        def of_first(count: int) -> Displacement | None:
            first = {*order[:count]}
            return self._find([each for each in lent if each.job_key in first])

        low, high = 0, min(1, len(order))
        found = of_first(high) if high else None
        while found is None and high < len(order):
            low, high = high, min(2 * high, len(order))
            found = of_first(high)
        while found and high - low > 1:
            middle = (low + high) // 2
            if fewer := of_first(middle):
                found, high = fewer, middle
            else:
                low = middle
        return found

    def _find(self, candidates: Sequence[Candidate]) -> Displacement | None:
        """Return the cheapest victims among some candidates."""
        self._tries, self._best = 0, None
        on = _OnNodes(candidates)
        rules = self._rules
        if not self._allowed.all() and not rules.tree.hit(rules.owner, rules.requested, self._job.name):
            candidates = on.candidates_on(self._allowed)  # others only matter under a limit
            on = _OnNodes(candidates)
        if not candidates or self._room(on, on.amounts).sum() < self._job.replicas:
            return None
        if not any(self._may_leave(each, beyond=True) for each in candidates):
            return None  # no set has a first victim
        with rules.tree.unwatched():
            try:
                self._try_all(candidates, on)
            finally:
                self._put_back(list(self._out))
        return self._best

    def _lacking(self, candidate: Candidate) -> frozenset[str]:
        """Return the kinds of resources that the job lacks on the nodes of a candidate, or under a limit."""
        nodes = list(candidate.nodes)
        return frozenset(self._short.union(name for name, scarce in self._scarce.items() if scarce[nodes].any()))

    def _room(self, on: _OnNodes, freed: Int64) -> Int64:
        """Return about the number of replicas that each node has room for without candidates, shape (N,).

        Parameters
        ----------
        freed
            Amounts that each candidate frees on each of its nodes, shape (X, 4).
        """
        room = self._asked - self._needed
        np.add.at(room, on.nodes, freed[on.which])
        asked = self._asked > 0
        replicas = room[:, asked] * self._job.replicas // self._asked[asked]
        fitting: Int64 = replicas.min(axis=1, initial=self._job.replicas).clip(0) * self._allowed
        return fitting

    def _try_all(self, offered: Sequence[Candidate], on: _OnNodes) -> None:
        """Try sets of candidates, each in the order of their removal."""
        if self._job.replicas == 1:
            for n in self._cheapest_nodes(on):
                found = on.candidates(n)
                if not self._try_subsets(found, self._needed[n]) and len(found) > MAX_COMBINED:
                    self._try_group(found)
            if self._best:
                return
        else:
            cheapest = on.cheapest(MAX_COMBINED + 1)
            succeeds = self._try_subsets(cheapest, np.array(self._lacks, np.int64))
            if succeeds and self._best and cost_of(cheapest[MAX_COMBINED:] or cheapest) >= self._best.cost:
                return  # no set with another candidate costs less
            self._try_group(list(dict.fromkeys(each for n in self._best_nodes(on) for each in on.candidates(n))))
        if self._best is None or len(offered) <= MANY:
            self._try_group(sorted(offered, key=lambda each: (each.order, each.lost / (_size(each.amounts) or 1))))
            self._try_group(sorted(offered, key=_BY_COST))
        if (self._best is None or len(offered) <= MANY) and not all(each.order for each in offered):
            self._try_group(sorted(offered, key=_BY_COST), beyond=True)

    def _cheapest_nodes(self, on: _OnNodes) -> Sequence[int]:
        """Return the nodes with the least estimated loss for room for one replica; of equal ones, near its data."""
        order = np.lexsort((on.lost[on.which], on.order[on.which], on.nodes))
        order = order[on.may_leave[order]]
        nodes, which = on.nodes[order], on.which[order]
        amounts, lost = on.amounts[which].cumsum(axis=0), on.lost[which].cumsum()
        first = np.flatnonzero(np.diff(nodes, prepend=-1))
        before = np.repeat(first, np.diff(first, append=len(nodes)))
        freed = amounts - amounts[before] + on.amounts[which[before]]
        enough = np.flatnonzero(
            (freed >= self._needed[nodes]).all(axis=1)
            & self._snapshot.arrays.nodes[NODE_OPEN, nodes]
            & self._allowed[nodes]
        )
        found, position = np.unique(nodes[enough], return_index=True)
        at = enough[position]
        cost, count = (lost[at] - lost[before[at]] + on.lost[which[before[at]]]).round(6), at - before[at]
        order = np.lexsort((count, cost))
        if self._job.data.places:
            pulls = pull_ms(self._snapshot, self._job.data)
            order = np.lexsort((pulls[self._snapshot.arrays.nodes[NODE_CLUSTER, found]], count, cost))
        return [int(each) for each in found[order[:MAX_NODES]]]

    def _best_nodes(self, on: _OnNodes) -> Sequence[int]:
        """Return nodes with room for several times all replicas, those with the least loss per replica first."""
        room = self._room(on, on.amounts // on.counts.clip(1)[:, None])  # some hold only lost nodes
        lost = np.bincount(on.nodes, on.lost[on.which], len(room))
        nodes = np.unique(on.nodes)
        nodes = nodes[self._allowed[nodes]]
        order = nodes[np.argsort(lost[nodes] / room[nodes].clip(0.01), kind="stable")]
        enough = np.searchsorted(room[order].cumsum(), MANY_TIMES * self._job.replicas)
        return [int(each) for each in order[: max(enough, MAX_NODES)]]

    def _try_subsets(self, found: Sequence[Candidate], needed: Int64) -> bool:
        """Try the cheapest sets among the first candidates whose amounts are enough; report whether one succeeds.

        Of the first set that succeeds, no candidate is needless: the smaller sets are cheaper, and did not succeed.
        """
        few = found[:MAX_COMBINED]
        if not few:
            return False
        chosen = _sets_of(few)
        costs = chosen @ np.array([cost_of([each]) for each in few], np.float64)
        enough = np.flatnonzero((chosen @ _amounts(few) >= needed).all(axis=1))
        order = np.lexsort(costs[enough].T[::-1])
        for at in enough[order[:MAX_SUBSETS]]:
            group = [each for each, taken in zip(few, chosen[at], strict=True) if taken]
            if self._best and cost_of(group) >= self._best.cost:
                return True
            removal = _Removal(group, self._may_leave, self._take_out)
            succeeds = removal.advance(len(group)) and len(removal.taken) == len(group) and self._fits()
            if succeeds:
                self._note(removal.taken)
            self._put_back([each.key for each in removal.taken])
            if succeeds:
                return True
        return False

    def _try_group(self, group: Sequence[Candidate], *, beyond: bool = False) -> None:
        """Remove candidates in order until the job fits, in steps of doubling size, then put back what is needless.

        Parameters
        ----------
        beyond
            Whether elastic jobs may first lose more replicas than they can spare, until it is known which ones help.
        """
        removal = _Removal(group, partial(self._may_leave, beyond=beyond), self._take_out)
        if self._removes_enough(removal):
            self._put_back_needless(removal.taken)
            if beyond and (beyond_minimum := self._beyond_minimum()):
                self._put_back(beyond_minimum)
                removal = _Removal(group, self._may_leave, self._take_out)
                if self._fits() or self._removes_enough(removal):
                    self._put_back_needless([*self._out.values()])
            for whole in [each for each in self._out.values() if each.order and each.spare]:
                self._shrink_instead(whole)
            if not self._beyond_minimum() and self._fits():
                self._note([*self._out.values()])
        self._put_back([*self._out])

    def _removes_enough(self, removal: _Removal) -> bool:
        """Remove candidates until the job fits; report whether it does."""
        step = 1
        while self._tries < MAX_TRIES and removal.advance(step):
            if self._fits():
                return True
            step *= 2
        return False

    def _put_back_needless(self, taken: Iterable[Candidate]) -> None:
        """Put back those of some removed candidates without which the job still fits, the dearest ones first.

        Replicas that a job cannot spare are before these.
        """
        for excess in (True, False) if self._beyond_minimum() else (False,):
            left = sorted((each for each in taken if each.key in self._out), key=_BY_COST, reverse=True)
            self._put_back_beside(left, excess=excess)
            left = [each for each in left if each.key in self._out]
            for each in left if len(left) <= MAX_PRUNED else ():
                if self._stays_out(each, excess=excess):
                    continue
                self._put_back([each.key])
                if not (self._fits() and self._are_allowed(self._out.values())):
                    self._take_out(each)

    def _stays_out(self, candidate: Candidate, *, excess: bool) -> bool:
        """Report whether a removed candidate is not put back: another replica leaves only after this one.

        With `excess`, only replicas are put back of which their job cannot spare as many as leave.
        """
        if excess and (candidate.whole is None or self._shrunk[candidate.job_key] <= (candidate.spare or 0)):
            return True
        return candidate.whole is not None and any(each.before is candidate for each in self._out.values())

    def _beyond_minimum(self) -> list[Key]:
        """Return the replicas that elastic jobs cannot spare, the last ones that were removed."""
        out = Counter[Key]()
        found = []
        for each in self._out.values():
            out[each.job_key] += 1
            if each.whole and out[each.job_key] > (each.spare or 0):
                found.append(each.key)
        return found

    def _shrink_instead(self, whole: Candidate) -> None:
        """Let an elastic job shrink instead of being displaced, if that is enough."""
        nodes = set(self._plan.decisions[:, PLAN_NODE].tolist())
        self._put_back([whole.key])
        replicas = sorted(self._replicas[whole.key], key=lambda each: nodes.isdisjoint(each.nodes))
        removal = _Removal(replicas, partial(self._may_leave, beyond=True), self._take_out)
        removal.advance(len(replicas))
        if self._fits():
            self._put_back_needless(removal.taken)
        if self._beyond_minimum() or not self._fits():
            self._put_back([each.key for each in removal.taken])
            self._take_out(whole)

    def _may_leave(self, candidate: Candidate, *, beyond: bool = False) -> bool:
        """Report whether a job or a replica may leave now. Elastic jobs keep their minimum, or end whole.

        Parameters
        ----------
        beyond
            Whether they keep nothing.
        """
        if candidate.key in self._out:
            return False
        if candidate.whole:
            whole, before = candidate.whole.key, candidate.before
            stays = (not beyond and self._shrunk[whole] >= (candidate.spare or 0)) or whole in self._out
            return not stays and (before is None or before.key in self._out) and self._rules.allow(candidate)
        parts = self._replicas_out(candidate)
        for each in parts:
            self._rules.restore(each)
        allowed = self._rules.allow(candidate)
        for each in parts:
            self._rules.remove(each)
        return allowed

    def _replicas_out(self, whole: Candidate) -> list[Candidate]:
        if not self._shrunk[whole.key]:
            return []
        return [each for each in self._out.values() if each.whole is whole]

    def _are_allowed(self, taken: Iterable[Candidate], requested: Amounts | None = None) -> bool:
        """Report whether the rules allow each removed candidate as the last one."""
        return self._rules.allow_all([each for each in taken if each.key in self._out], requested)

    def _note(self, victims: Sequence[Candidate]) -> None:
        """Record victims at whose removal the job just fitted, if they are the cheapest until now."""
        if victims and (self._best is None or cost_of(victims) < self._best.cost):
            self._best = Displacement(tuple(victims), tuple(self._plan.placements()))

    def _put_back_beside(self, taken: Sequence[Candidate], *, excess: bool) -> None:
        """Put back the candidates that have room beside the job at the place that was found last.

        One that shares an ancestor with the job stays out if its use would protect others that stay out.
        """
        tree, owner = self._rules.tree, self._rules.owner
        booked, own = list(allocations_of(self._plan)), set(tree.node(owner.queue).path)
        for allocation in booked:
            allocation.restore(self._snapshot)
        for each in taken:
            stays_out = self._stays_out(each, excess=excess)
            if not stays_out and _has_room(self._snapshot, each.allocation, each.amounts):
                self._put_back([each.key])
                out = self._out.values()
                protects = not own.isdisjoint(tree.node(each.owner.queue).path) and not self._are_allowed(out)
                if protects or tree.hit(owner, self._rules.requested, self._job.name):
                    self._take_out(each)
        for allocation in booked:
            allocation.release(self._snapshot)

    def _fits(self) -> bool:
        """Report whether the job fits now, on nodes and devices, under all limits, and with what it gets by the rules.

        Until then, only the least amounts are known that it can get.
        """
        rules = self._rules
        if max(self._lacks) > 0 or rules.tree.hit(rules.owner, rules.requested, self._job.name):
            return False
        self._tries += 1
        plan = decide(self._snapshot, self._queue, self._profile, overdue={0}, dry_run=True)
        self._snapshot.release(plan.decisions.copy(), plan.slices, plan.rows_of(0))
        if not plan.jobs_placed[0]:
            return False
        amounts = plan.amounts(self._job.demand.request)
        if not self._are_allowed(self._out.values(), amounts):
            return False
        self._plan = plan
        return True

    def _take_out(self, candidate: Candidate) -> None:
        self._put_back([each.key for each in self._replicas_out(candidate)])  # a job ends with all of its replicas
        candidate.allocation.copy().release(self._snapshot)
        self._out[candidate.key] = candidate
        self._lacks = [lacks - freed for lacks, freed in zip(self._lacks, candidate.row, strict=True)]
        self._rules.remove(candidate)
        if candidate.whole:
            self._shrunk[candidate.job_key] += 1

    def _put_back(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if candidate := self._out.pop(key, None):
                candidate.allocation.restore(self._snapshot)
                self._lacks = [lacks + freed for lacks, freed in zip(self._lacks, candidate.row, strict=True)]
                self._rules.restore(candidate)
                if candidate.whole:
                    self._shrunk[candidate.job_key] -= 1


class _Removal:
    """Removal of candidates in order. The removal of one can allow or protect another."""

    def __init__(
        self,
        group: Sequence[Candidate],
        may: Callable[[Candidate], bool],
        take_out: Callable[[Candidate], None],
    ) -> None:
        self._left: Sequence[Candidate] = group
        self.taken: list[Candidate] = []
        self._may = may
        self._take_out = take_out
        self._at = 0
        self._skipped: list[Candidate] = []

    def advance(self, most: int) -> bool:
        """Remove up to `most` further candidates; report whether there was any."""
        before = len(self.taken)
        while len(self.taken) < before + most:
            if self._at == len(self._left):
                again = len(self._skipped) < len(self._left)
                self._left, self._skipped, self._at = self._skipped, [], 0
                if not again or not self._left:
                    break
            each = self._left[self._at]
            self._at += 1
            if self._may(each):
                self._take_out(each)
                self.taken.append(each)
            else:
                self._skipped.append(each)
        return len(self.taken) > before


def _free(snapshot: Snapshot) -> Int64:
    """Return the free amounts of each node, upper bounds of what one replica can use, shape (N, 4)."""
    nodes, devices = snapshot.arrays.nodes, snapshot.arrays.devices
    first, end = nodes[NODE_DEVICE_FIRST], nodes[NODE_DEVICE_END]
    cores_free = np.where(devices[DEVICE_MIG] < 0, devices[DEVICE_CORE_FREE], devices[DEVICE_CORE])  # MIG rounds up
    cores, memory = (np.append(0, each.cumsum(dtype=np.int64)) for each in (cores_free, devices[DEVICE_MEMORY_FREE]))
    columns = (nodes[NODE_CPU_FREE], nodes[NODE_MEMORY_FREE], cores[end] - cores[first], memory[end] - memory[first])
    return np.stack(columns, axis=1).astype(np.int64)


def _allowed_nodes(snapshot: Snapshot, queue: JobQueue) -> NDArray[np.bool_]:
    """Report for each node whether the job of a queue may use it and a device of it, shape (N,)."""
    nodes, demands = snapshot.arrays.nodes, snapshot.demands.arrays
    amounts = demands.amounts[queue.rows[0, JOB_DEMAND]]
    mask, first, end = amounts[DEMAND_MASK], nodes[NODE_DEVICE_FIRST], nodes[NODE_DEVICE_END]
    allowed: NDArray[np.bool_] = demands.node_ok[mask] == 1
    if amounts[DEMAND_GPUS]:
        before = np.append(0, demands.device_ok[mask].cumsum(dtype=np.int64))
        allowed &= before[end] > before[first]
    return allowed


def _sets_of(found: Sequence[Candidate]) -> Int64:
    """Return all sets of candidates in which elastic jobs keep their minimum or end whole, shape (S, X)."""
    chosen: Int64 = (np.arange(1, 1 << len(found))[:, None] >> np.arange(len(found))) & 1
    if all(each.order for each in found):
        return chosen
    at = {each.key: number for number, each in enumerate(found)}
    valid = np.ones(len(chosen), np.bool_)
    replicas = defaultdict[Key, list[int]](list)
    for number, each in enumerate(found):
        if each.whole:
            replicas[each.job_key].append(number)
        if each.before:
            valid &= chosen[:, number] <= (chosen[:, at[each.before.key]] if each.before.key in at else 0)
    for key, numbers in replicas.items():
        ends = chosen[:, at[key]] if key in at else 0
        valid &= chosen[:, numbers].sum(axis=1) <= (found[numbers[0]].spare or 0) * (1 - ends)
    return chosen[valid]


def _amounts(found: Sequence[Candidate]) -> Int64:
    """Return the amounts of candidates, shape (X, 4)."""
    rows = chain.from_iterable([each.row for each in found])
    return np.fromiter(rows, np.int64, len(found) * len(_RESOURCES)).reshape(-1, len(_RESOURCES))


class _OnNodes:
    """Candidates on their nodes, as columns.

    Attributes
    ----------
    amounts, lost, order, counts
        Amounts, loss, order, and number of nodes of each candidate, shapes (C, 4), (C,), (C,) and (C,).
    nodes, which
        Number of each node of each candidate, and index of the candidate, shape (X,).
    may_leave
        Whether no more replicas of an elastic job on the node come before than the job can spare, shape (X,).
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        self.amounts = _amounts(candidates)
        self.lost = np.array([each.lost for each in candidates], np.float64)
        self.order: Int64 = np.array([each.order for each in candidates], np.int64)
        self.counts: Int64 = np.array([len(each.nodes) for each in candidates], np.int64)
        self.nodes: Int64 = np.array([*chain.from_iterable([each.nodes for each in candidates])], np.int64)
        self.which = np.repeat(np.arange(len(candidates)), self.counts)
        self.may_leave = np.ones(len(self.which), np.bool_)
        before = Counter[tuple[Key, int]]()
        for x in np.flatnonzero(self.order[self.which] == 0).tolist():
            each = candidates[self.which[x]]
            before[on_node := (each.job_key, int(self.nodes[x]))] += 1
            self.may_leave[x] = before[on_node] <= (each.spare or 0)

    def candidates(self, n: int) -> list[Candidate]:
        """Return the candidates on a node, the cheapest first."""
        return sorted(_with_earlier(self._candidates[at] for at in self.which[self.nodes == n]), key=_BY_COST)

    def candidates_on(self, allowed: NDArray[np.bool_]) -> list[Candidate]:
        """Return the candidates with a node for which `allowed`, shape (N,), is true."""
        return _with_earlier(self._candidates[at] for at in np.unique(self.which[allowed[self.nodes]]))

    def cheapest(self, most: int) -> list[Candidate]:
        """Return the cheapest candidates."""
        order = np.lexsort((np.array([each.priority for each in self._candidates]), self.lost, self.order))
        return [self._candidates[at] for at in order[:most]]


def _with_earlier(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates with the replicas that have to leave before them."""
    found = {each.key: each for each in candidates}
    for each in [*found.values()]:
        before = each.before
        while before and before.key not in found:
            found[before.key] = before
            before = before.before
    return list(found.values())


def _has_room(snapshot: Snapshot, allocation: Allocation, amounts: Amounts) -> bool:
    """Report whether an allocation fits beside all others where it was; False if only a decision can tell."""
    nodes, devices = snapshot.arrays.nodes, snapshot.arrays.devices
    slices, on = allocation.slices, allocation.decisions[:, PLAN_NODE]
    if (slices[:, SLICE_MIG] >= 0).any() or allocation.decisions[:, [PLAN_BANDWIDTH, PLAN_REPLICA_BANDWIDTH]].any():
        return False
    cpu, memory = (amounts.get(name, 0) // len(on) for name in (CPU, MEMORY))
    where, replicas = np.unique(on[on >= 0], return_counts=True)
    taken = slices[:, SLICE_DEVICE]
    return bool(
        (nodes[NODE_CPU_FREE, where] >= cpu * replicas).all()
        and (nodes[NODE_MEMORY_FREE, where] >= memory * replicas).all()
        and (devices[DEVICE_CORE_FREE, taken] >= slices[:, SLICE_CORE]).all()
        and (devices[DEVICE_MEMORY_FREE, taken] >= slices[:, SLICE_MEMORY]).all()
        and (devices[DEVICE_SLOTS_FREE, taken] > 0).all()
        and (devices[DEVICE_OPEN, taken] == 1).all()
    )


def _size(amounts: Amounts) -> int:
    return amounts.get(GPUS, 0) or amounts.get(CPU, 0)
