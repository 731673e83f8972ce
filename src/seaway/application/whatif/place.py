"""Placement of the jobs of a what-if question on a copy of the fleet.

As in the control loop, the first job of a queue that does not fit gets a reservation, which later jobs leave free
unless they end before it begins. Jobs that do not fit displace running ones where the rules of queues allow it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

from seaway.application.control.scheduler.waiting_reasons import DELAYS
from seaway.application.whatif.limitations import RESERVED
from seaway.domain.amounts import Amounts, held_amounts, requested_amounts
from seaway.domain.job import Job
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill
from seaway.domain.reasons import Reason, also
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.cycle.reserve import NEVER_NS, earliest_place, hold_place
from seaway.scheduling.engine import decide, trial_placements
from seaway.scheduling.explain import Keeper, explain, summary
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.model_shares import without_models
from seaway.scheduling.queueing.preemption import (
    Candidate,
    DisplacementRules,
    VictimSearch,
    by_queue,
    is_lent,
    may_displace_any,
    priority_below,
)
from seaway.scheduling.queueing.tree import Key, Owner, QueueTree
from seaway.scheduling.shortage import shortage
from seaway.scheduling.snapshot.snapshot import Snapshot

ASKED = "asked-"
"""Prefix of job names in a question. Job IDs have no hyphen."""

MAX_EXPLAINED = 20
"""Maximum number of explained kinds of waiting jobs."""

OVERTAKES = Reason("overtakes")
"""Reason of jobs that would fit, but may not start before an earlier one."""

MAX_SEARCHES = 20
"""Maximum number of searches for places that are reserved."""

MAX_DISPLACING = 100
"""Maximum number of searches for running jobs to displace."""

NS_PER_S = 1_000_000_000

MAX_TOGETHER = 256
"""Maximum number of jobs that are decided before the limits of their queues are checked again."""


@dataclass(frozen=True, slots=True)
class Task:
    """A job to place.

    Attributes
    ----------
    name
        Name for users. `job` has the ID as its name.
    before
        Present locations of its replicas; empty for a waiting job.
    allowed
        The job without the capacity that is reserved in advance for others.
    reserved
        Text on that capacity; empty if there is none.
    lasts_s
        Expected duration, seconds; None if it is unknown.
    """

    job: Job
    name: str
    owner: Owner
    before: tuple[str, ...]
    allowed: Job
    reserved: str
    lasts_s: int | None

    @property
    def queue(self) -> str:
        """Name of its queue."""
        return self.owner.queue

    @property
    def asked(self) -> bool:
        """True if the job is part of the question and was never submitted."""
        return self.job.name.startswith(ASKED)

    @property
    def kind(self) -> Hashable:
        """Value that jobs which fit in the same places share."""
        job = self.job
        return job.demand, job.replicas, job.gang, job.single_cluster, job.between_replicas, job.data, job.ring


@dataclass(frozen=True, slots=True)
class Placed:
    """Placement of a job: that of each replica, and the amounts that it holds."""

    placements: tuple[Placement, ...]
    amounts: Amounts

    @property
    def where(self) -> tuple[str, ...]:
        """Location of each replica as ``cluster/node``."""
        return where(self.placements)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Clusters, each once."""
        return tuple(dict.fromkeys(each.cluster for each in self.placements))


@dataclass(frozen=True, slots=True)
class Reserved:
    """Reserved place of a job that does not fit yet.

    Attributes
    ----------
    starts_ns
        Expected start, nanoseconds from now; None if it is unknown.
    """

    job: Job
    placements: tuple[Placement, ...]
    starts_ns: int | None


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A running job that jobs of a question may displace.

    Attributes
    ----------
    may_end
        Whether it may be displaced: it has run for its minimum time.
    replicas
        Replicas by which it can shrink.
    """

    candidate: Candidate
    may_end: bool
    replicas: Sequence[Candidate] = ()


@dataclass(slots=True)
class Placer:
    """Placement of jobs in order, each with the policy of its queue, as far as the limits of queues allow.

    Attributes
    ----------
    policies
        Profile of each queue.
    tree
        Queues with the amounts that jobs hold.
    ends
        Expected end of each running job, nanoseconds from now, with its allocation; `NEVER_NS` or later if it is
        unknown. None for no reservations.
    reserved
        Present reservations, by queue, or by a text with a slash for a job whose victims are ending.
    due
        Names of the jobs whose planned start has come. Others of a queue with conservative backfill pass no earlier
        job.
    placed
        Jobs that fit, by name.
    limited
        Reason of each job that may not start although it could fit.
    blocked
        Queues without backfill or with a conservative one, of which a job did not fit.
    displaced
        Keys of running jobs that are displaced, with the job that displaces each.
    closed
        Decisions that close clusters and nodes.
    shrunk
        Replicas of elastic jobs that leave, by the keys of these, each with the job that takes its place.
    """

    snapshot: Snapshot
    policies: Mapping[str, Profile]
    tree: QueueTree
    ends: list[tuple[int, Allocation]] | None = None
    reserved: dict[str, Reserved] = field(default_factory=dict)
    due: Collection[str] = ()
    closed: Sequence[Keeper] = ()
    placed: dict[str, Placed] = field(default_factory=dict)
    limited: dict[str, str] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    displaced: dict[Key, Task] = field(default_factory=dict)
    shrunk: dict[Key, dict[int, Task]] = field(default_factory=dict)
    _ahead: dict[str, str] = field(default_factory=dict)  # by pool, queue of a job that fits nowhere and has no place
    _infeasible: set[Hashable] = field(default_factory=set)
    _searches: int = 0
    _keys: dict[str, str] = field(init=False)  # of reservations, by job
    _soonest_ns: int = field(init=False)

    def __post_init__(self) -> None:
        """Index the reservations."""
        self._follow()

    def _follow(self) -> None:
        """Index the reservations after a change."""
        self._keys = {each.job.name: key for key, each in self.reserved.items()}
        self._soonest_ns = _soonest_ns(self.reserved.values())

    def place(self, tasks: Sequence[Task]) -> Mapping[str, Placed]:
        """Place jobs; return those that fit, by name."""
        left = deque(tasks)
        first = {task.owner[:2]: task.job.name for task in reversed(tasks)}
        for key, own in ((self._own(task), task) for task in tasks):
            if key == own.queue and first[own.owner[:2]] != own.job.name:
                del self.reserved[key]  # another job is first now
        self._follow()
        while left:
            batch = [left.popleft()]
            while left and len(batch) < MAX_TOGETHER and self._alike(left[0]) == self._alike(batch[0]):
                batch.append(left.popleft())
            allowed = []
            for task in batch:
                requested = requested_amounts(task.job.demand, task.job.replicas)
                if hit := self.tree.hit(task.owner, requested, task.job.name):
                    self._leave(task, hit.message)
                else:
                    self.tree.hold(_key(task), task.owner, requested)
                    allowed.append(task)
            if allowed:
                left.extendleft(reversed(self._place_allowed(allowed)))
        return dict(self.placed)

    def _alike(self, task: Task) -> Hashable:
        """Return a value that jobs which are decided together share."""
        return id(self.policies[task.queue]), self._passes(task), self._own(task)

    def _own(self, task: Task) -> str:
        """Return the key of a job's reservation; empty if it has none."""
        return self._keys.get(task.job.name, "")

    def _passes(self, task: Task) -> bool:
        """Report whether a job ends before any reservation of another one begins."""
        ends_ns = NEVER_NS if task.lasts_s is None else task.lasts_s * NS_PER_S
        if own := self._own(task):
            return ends_ns <= _soonest_ns(each for key, each in self.reserved.items() if key != own)
        return ends_ns <= self._soonest_ns

    def _place_allowed(self, tasks: Sequence[Task]) -> list[Task]:
        """Place jobs whose least amounts have room, and release those that do not fit or may not start after all.

        Return the jobs to decide again, since an earlier one got a reservation.
        """
        tree, snapshot = self.tree, self.snapshot
        for task in tasks:
            tree.release(_key(task))
        jobs = []
        for task in tasks:
            requested = requested_amounts(task.job.demand, task.job.replicas)
            jobs.append(without_models(task.allowed, tree.model_hits(task.owner, requested), snapshot))
        own, passes = self._own(tasks[0]), self._passes(tasks[0])
        with self._held(each for key, each in self.reserved.items() if key != own and not passes):
            plan = decide(snapshot, JobQueue(snapshot, jobs), self.policies[tasks[0].queue], dry_run=True)
        fits, allocations = plan.jobs_placed, list(allocations_of(plan))
        head: Task | None = None
        again = []
        for at in plan.decision_order.tolist():  # a plugin may reorder them; the first one gets what a limit leaves
            task = tasks[at]
            if head:
                allocations[at].release(snapshot)
                again.append(task)
                continue
            placements = [plan.placement(int(row)) for row in plan.rows_of(at)] if fits[at] else []
            amounts = held_amounts(task.job.demand, placements, snapshot.device)
            hit = tree.hit(task.owner, amounts, task.job.name) if placements else None
            waits = self._passing(task)
            if placements and not hit and not waits:
                tree.hold(_key(task), task.owner, amounts)
                self.placed[task.job.name] = Placed(tuple(placements), amounts)
                if self.reserved.pop(own, None):
                    self._follow()
                if self.ends is not None and task.lasts_s is not None:
                    self.ends.append((task.lasts_s * NS_PER_S, allocations[at].copy()))
                continue
            allocations[at].release(snapshot)
            self._leave(task, hit.message if hit else waits if placements else "")
            if not placements and self._awaits(task):
                head = task
        if head:
            self._reserve(head)
        return again

    def _passing(self, task: Task) -> str:
        """Return why a job may not start before an earlier one of its queue; empty if it may, or passes none."""
        if task.queue not in self.blocked:
            return ""
        if self.tree.node(task.queue).queue.backfill is Backfill.NONE:
            return OVERTAKES
        return "" if task.job.name in self.due else DELAYS

    def _leave(self, task: Task, why: str) -> None:
        if why:
            self.limited[task.job.name] = why
        if self.tree.node(task.queue).queue.backfill in (Backfill.NONE, Backfill.CONSERVATIVE):
            self.blocked.add(task.queue)

    def _awaits(self, task: Task) -> bool:
        """Report whether a job that does not fit gets a reservation, as the first one of its queue."""
        queue = self.tree.node(task.queue).queue
        if self.ends is None or queue.backfill is Backfill.GREEDY or task.kind in self._infeasible or self._own(task):
            return False
        if (
            self._searches < MAX_SEARCHES
            and task.queue not in self.reserved
            and self._ahead.get(queue.pool, task.queue) == task.queue
        ):
            return True
        self._ahead.setdefault(queue.pool, task.queue)
        return False

    def _reserve(self, task: Task) -> None:
        """Reserve the earliest possible place of a job."""
        copy = self.snapshot.copy()
        self._searches += 1
        ends = sorted(self.ends or (), key=itemgetter(0))
        for each in self.reserved.values():
            hold_place(copy, each.job, each.placements)
        placements, starts_ns = earliest_place(copy, task.allowed, self.policies[task.queue], ends)
        if placements:
            self.reserved[task.queue] = Reserved(task.job, placements, starts_ns)
            self._follow()
        else:
            self._infeasible.add(task.kind)

    def displace(self, tasks: Iterable[Task], jobs: Sequence[RunningJob]) -> None:
        """Displace running jobs for those that did not fit, first for jobs within the guarantees of their own queues.

        Elastic jobs shrink first.

        Parameters
        ----------
        tasks
            Jobs in the order in which they were placed.
        jobs
            Running jobs.
        """
        running = {each.candidate.key: each.candidate for each in jobs}
        possible = {each.key: each for other in jobs for each in (*other.replicas, other.candidate)}
        left = self._may_displace(tasks, lends=any(map(self._is_lent, possible.values())))
        for other in jobs:
            if not other.may_end:
                del possible[other.candidate.key]
        without: set[Hashable] = set()
        searches = 0
        for within in (True, False):
            for task in left:
                requested, node = requested_amounts(task.job.demand, task.job.replicas), self.tree.node(task.queue)
                alike = task.kind, task.owner, task.job.priority
                if task.job.name in self.placed or alike in without or (within and not node.guarantees(requested)):
                    continue
                if searches == MAX_DISPLACING:
                    return
                searches += 1
                own, job, policy = self._own(task), task.allowed, self.policies[task.queue]
                below = partial(priority_below, node.queue, task.job.priority)
                eligible = [
                    each for each in possible.values() if self._is_lent(each) or each.priority < below(each.owner.queue)
                ]
                with self._held(each for key, each in self.reserved.items() if key != own):
                    rules = DisplacementRules(
                        self.tree, task.owner, job.priority, requested, by_queue(running.values())
                    )
                    found = VictimSearch(self.snapshot, policy, job, rules).find(eligible)
                if found is None:
                    without.add(alike)
                    continue
                self._remove(found.victims, task, running, possible)
                hold_place(self.snapshot, job, found.placements)
                amounts = held_amounts(task.job.demand, found.placements, self.snapshot.device)
                self.tree.hold(_key(task), task.owner, amounts)
                self.placed[task.job.name] = Placed(found.placements, amounts)
                self.limited.pop(task.job.name, None)
                if self.reserved.pop(own, None):
                    self._follow()

    def _remove(
        self, victims: Iterable[Candidate], task: Task, running: dict[Key, Candidate], possible: dict[Key, Candidate]
    ) -> None:
        """Remove running jobs and replicas that make room for a job."""
        shrinks = defaultdict[Key, list[Candidate]](list)
        for victim in victims:
            possible.pop(victim.key)
            victim.allocation.release(self.snapshot)
            if victim.whole:
                shrinks[victim.job_key].append(victim)
                continue
            del running[victim.key]
            self.tree.release(victim.key)
            self.displaced[victim.key] = task
            self.shrunk.pop(victim.key, None)
            for each in [each for each in possible.values() if each.whole is victim]:
                del possible[each.key]
        for key, gone in shrinks.items():
            whole = running[key]
            whole.shrink(gone, (each for each in possible.values() if each.whole is whole))
            self.tree.hold(key, whole.owner, whole.amounts)
            self.shrunk.setdefault(key, {}).update((replica, task) for each in gone for replica in each.replicas)

    def _is_lent(self, candidate: Candidate) -> bool:
        return is_lent(candidate, self.tree.node(candidate.owner.queue).queue)

    def _may_displace(self, tasks: Iterable[Task], *, lends: bool) -> list[Task]:
        """Return the jobs that did not fit and may displace others; of a queue without backfill only the first.

        Parameters
        ----------
        lends
            Whether some elastic job has replicas that leave for any waiting job.
        """
        found, strict = [], set[str]()
        for task in tasks:
            requested, node = requested_amounts(task.job.demand, task.job.replicas), self.tree.node(task.queue)
            delays = self.limited.get(task.job.name) == DELAYS
            if task.job.name in self.placed or task.queue in strict or delays:
                continue
            if node.queue.backfill is Backfill.NONE:
                strict.add(task.queue)
            if lends or may_displace_any(node, requested):
                found.append(task)
        return found

    @contextmanager
    def _held(self, reserved: Iterable[Reserved]) -> Iterator[None]:
        """Hold reserved places for a while."""
        held = [hold_place(self.snapshot, each.job, each.placements) for each in reserved]
        yield
        for each in held:
            each.release(self.snapshot)

    def reasons(self, tasks: Iterable[Task]) -> dict[str, str]:
        """Return why jobs would wait, by name, for a limited number of kinds; jobs of the question are first."""
        known: dict[Hashable, str] = {}
        why = {}
        left = (task for task in tasks if task.job.name not in self.placed)
        for task in sorted(left, key=lambda task: not task.asked):
            job, profile = task.job, self.policies[task.queue]
            kind = (task.kind, profile, task.reserved)
            if kind not in known and len(known) < MAX_EXPLAINED:
                admits = None if task.reserved or self.reserved else partial(trial_placements, policy=profile)
                explanation = explain(self.snapshot, job, profile, admits=admits, closed=self.closed)
                short = shortage(self.snapshot, job, profile)
                held = RESERVED if self.reserved else ""
                but = (task.reserved or held) if explanation.fits and not short else ""
                known[kind] = also(summary(explanation, short), but)
            why[job.name] = known.get(kind, "")
        for (job_id, _), task in self.displaced.items():
            why[job_id] = Reason("displaced", winner=_taker(task))
        for (job_id, _), gone in self.shrunk.items():
            taker, *others = dict.fromkeys(map(_taker, gone.values()))
            winner = Reason("and_more", what=taker, count=len(others)) if others else taker
            why[job_id] = Reason("shrinks_by", count=len(gone), winner=winner)
        return why | self.limited


def _taker(task: Task) -> Reason:
    return Reason("named_job", job=task.name, queue=task.queue)


def _soonest_ns(reserved: Iterable[Reserved]) -> int:
    """Return the first start of reservations, nanoseconds from now; 0 if one is unknown, a later time without any."""
    return min((each.starts_ns or 0 for each in reserved), default=2 * NEVER_NS)


def _key(task: Task) -> Key:
    return task.job.name, 0


def where(placements: Iterable[Placement]) -> tuple[str, ...]:
    """Return the location of each replica as ``cluster/node``."""
    return tuple(f"{each.cluster}/{each.node}" for each in placements)
