"""Preemption: waiting jobs that displace running ones, where the rules of their queues allow it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import islice

from seaway.domain.amounts import Amounts, held_amounts, total_of
from seaway.domain.attempt import Attempt
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import AttemptState
from seaway.domain.placement import Placement
from seaway.domain.queues import Elastic
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.columns import PLAN_NODE
from seaway.scheduling.cycle.jobs import Entry, Kind
from seaway.scheduling.cycle.reserve import Reservation, Reservations
from seaway.scheduling.cycle.resize import leaving_order
from seaway.scheduling.cycle.state import State
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.preemption import (
    Candidate,
    Displacement,
    DisplacementRules,
    VictimSearch,
    may_displace_any,
    may_displace_now,
    priority_below,
    replicas_of,
)
from seaway.scheduling.queueing.tree import Key, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot

RULES = PRIORITY, RECLAIM = "priority", "reclaim"
"""Rules by which jobs are displaced: by a higher priority, or by the guarantee or the share of another queue."""

NS_PER_S = 1_000_000_000

LONGEST_NS = 25_000_000
"""Nanoseconds after which no further search begins in a cycle."""

MAX_ALIKE = 16
"""Maximum number of equal jobs that are considered after one of them."""

MAX_CHANGES = 10_000
"""Number of changed attempts beyond that of all that are kept until the next search."""

AGAIN_NS = 5_000_000_000
"""Time during which no new search is made for jobs without victims."""

ALL_AGAIN_NS = AGAIN_NS // 2
"""Time after which all jobs that are set aside may ask again."""

MAX_AT_ONCE = 256
"""Maximum number of these that ask in a cycle."""

DEFAULT_GRACE_S = 30
"""Seconds until a pod is killed, unless its job says otherwise, as in Kubernetes."""

_Alike = tuple[Kind, str, int]
"""Kind, tenant and priority of jobs that have the same victims."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A waiting job, and the running jobs that make room for it.

    Attributes
    ----------
    lower
        Victims of a lower priority. The others are displaced since their queues have more than their shares.
    losers
        Earlier winners that lose their places.
    within_s
        Time until the pods of all victims are killed, seconds.
    shrinks
        Elastic jobs that shrink: their attempts before and after.
    """

    entry: Entry
    victims: tuple[Candidate, ...]
    lower: frozenset[Candidate] = frozenset()
    losers: tuple[str, ...] = ()
    within_s: int = 0
    shrinks: tuple[tuple[Attempt, Attempt], ...] = ()

    @property
    def ends(self) -> Sequence[Candidate]:
        """The jobs that end. The others shrink."""
        return [each for each in self.victims if each.whole is None]


@dataclass(frozen=True, slots=True)
class Preview:
    """The place that a job would get, the jobs that would make room, and the seconds until all have."""

    placements: tuple[Placement, ...]
    victims: Sequence[Candidate]
    within_s: int


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Jobs that a waiting job could displace once their minimum run times have passed, at a monotonic time."""

    victims: frozenset[Key]
    at_ns: int


@dataclass(frozen=True, slots=True)
class _Choice:
    """A place for a job, and what makes room for it.

    Attributes
    ----------
    found
        The place with its victims; None if no allowed set of them makes room.
    used
        Reservations of other waiting jobs that the place uses.
    losers
        Earlier winners that lose their places.
    heads
        Reservations of first jobs that yield.
    later
        Running jobs that lack a part of their minimum run time, with the nanoseconds until its end.
    """

    found: Displacement | None
    used: Sequence[Reservation]
    losers: Sequence[Reservation]
    heads: Sequence[Reservation]
    rules: DisplacementRules
    candidates: Sequence[Candidate]
    later: Mapping[Candidate, int]


@dataclass(frozen=True, slots=True)
class _Running:
    """A running job as a candidate, and the records that this was computed from.

    Attributes
    ----------
    began_ns
        Monotonic time at which it began to run; None if it has not.
    share, restart
        Dominant share of the pool that it loses per second, 0 if it loses nothing, and the cost of its restart.
    candidate
        The job.
    replicas
        Replicas by which it can shrink.
    """

    attempt: Attempt
    job: JobRecord
    queue: str
    clusters: tuple[str, ...]
    preemptible: bool | None
    began_ns: int | None
    share: float
    restart: float
    candidate: Candidate
    replicas: Sequence[Candidate] = ()


class _Holders:
    """Attempts that hold capacity.

    Attributes
    ----------
    running
        Those that can be displaced, by queue.
    unplaced
        Others that run.
    ending, parting
        Attempts that are being removed, and running ones of which replicas are.
    """

    def __init__(self) -> None:
        self.running: defaultdict[str, dict[Key, _Running]] = defaultdict(dict)
        self.unplaced: set[Key] = set()
        self.ending: dict[Key, None] = {}
        self.parting: dict[Key, None] = {}
        self._queue_of: dict[Key, str] = {}

    def fork(self) -> _Holders:
        """Return the same attempts, which change on their own. Of candidates, only `lost` changes."""
        twin = _Holders()
        twin.running = defaultdict(dict, {queue: jobs.copy() for queue, jobs in self.running.items()})
        twin.unplaced, twin.ending, twin.parting = self.unplaced.copy(), self.ending.copy(), self.parting.copy()
        twin._queue_of = self._queue_of.copy()
        return twin

    def put(self, key: Key, attempt: Attempt, running: _Running | None) -> None:
        """Add an attempt, which is `running` if it can be displaced."""
        if attempt.state is AttemptState.ENDING:
            self.ending[key] = None
        elif attempt.state.live and attempt.remaining is not attempt.placements:
            self.parting[key] = None
        if running:
            self.running[running.queue][key] = running
            self._queue_of[key] = running.queue
        elif attempt.state.live:
            self.unplaced.add(key)

    def drop(self, key: Key) -> None:
        """Drop an attempt, if it is known."""
        self.ending.pop(key, None)
        self.parting.pop(key, None)
        self.unplaced.discard(key)
        if queue := self._queue_of.pop(key, ""):
            del self.running[queue][key]


class Preemptor:
    """Choice of victims for jobs that did not fit.

    The places of the winners are reserved until the victims are gone. The reservation is lost with a restart. The
    ending victims then count as free, so that the winner gets it again, and no further job is displaced for it.

    Attributes
    ----------
    displaced
        Number of displaced jobs since the start, by their queue and the rule: ``priority`` or ``reclaim``.
    foreseen
        Later displacements by job ID, as far as they are known.
    """

    def __init__(self, state: State, reservations: Reservations, profile: Callable[[str], Profile]) -> None:
        self._state = state
        self._reservations = reservations
        self._profile = profile
        self._requests: dict[str, Entry] = {}
        self._version = -1  # of the rules
        self._aside: Iterator[Entry] | None = None
        self._all_again_ns = 0
        self._infeasible: dict[_Alike, int] = {}
        self._later: dict[_Alike, tuple[int, str]] = {}  # end of a minimum run time, and the job
        self._claims: dict[str, Claim] = {}
        self._shrunk: dict[Key, Attempt] = {}  # by claims that are not stored yet
        self._holders = _Holders()
        self._basis: tuple[QueueTree, int, Snapshot] | None = None
        self._lost: dict[str, None] = {}  # winners without their reservation
        self._taken = defaultdict[str, set[str]](set)  # jobs of other queues that a job displaced
        self._restored_at = -1
        self.displaced: Counter[tuple[str, str]] = Counter()
        self.foreseen: dict[str, Foreseen] = {}

    def fork(self, state: State, reservations: Reservations, profile: Callable[[str], Profile]) -> Preemptor:
        """Return the same claims in a copy of the state."""
        twin = copy(self)
        twin._unshare(state, reservations, profile)  # noqa: SLF001  # of this class
        return twin

    def _unshare(self, state: State, reservations: Reservations, profile: Callable[[str], Profile]) -> None:
        known = self._basis == (self._state.tree, self._state.tree.version, self._state.fleet.snapshot)
        self._basis = (state.tree, state.tree.version, state.fleet.snapshot) if known else None
        self._holders = self._holders.fork() if known else _Holders()
        self._state, self._reservations, self._profile = state, reservations, profile
        self._requests, self._infeasible, self._later = self._requests.copy(), self._infeasible.copy(), {**self._later}
        self._claims, self._shrunk, self._lost = self._claims.copy(), self._shrunk.copy(), self._lost.copy()
        self._taken = defaultdict(set, {job_id: taken.copy() for job_id, taken in self._taken.items()})
        self._aside = None
        self.displaced, self.foreseen = self.displaced.copy(), self.foreseen.copy()

    def ask(self, entries: Iterable[Entry], may: Callable[[Entry], bool] = lambda _: True) -> None:
        """Record jobs that do not fit now, or have no room under a limit, as far as they `may` ask."""
        for entry in entries:
            if self.may_ask(entry) and may(entry):
                self._requests[entry.id] = entry

    def is_requested(self, job_id: str) -> bool:
        """Report whether a job waits for the search for jobs that make room."""
        return job_id in self._requests

    def set_aside(self) -> list[Entry]:
        """Return some jobs that are set aside and may displace others now: at once after a change of rules, or limits.

        Otherwise, all of them ask now and then. What they need changes with every job that starts, and with time.
        """
        state, now_ns = self._state, self._state.clock.monotonic_ns()
        if self._version != state.tree.version:
            self._version, self._all_again_ns, self._aside = state.tree.version, now_ns, None
            self._infeasible.clear()
        if not state.waiting.idle or state.seen_version != state.fleet.version:
            return []  # jobs that were set aside earlier may fit now
        if self._aside is None and now_ns >= self._all_again_ns:
            self._aside, self._all_again_ns = state.waiting.set_aside(self._may_ask_now), now_ns + ALL_AGAIN_NS
        found = list(islice(self._aside, MAX_AT_ONCE)) if self._aside else []
        self._aside = self._aside if len(found) == MAX_AT_ONCE else None
        return found

    def may_ask(self, entry: Entry) -> bool:
        """Report cheaply whether a search makes sense."""
        if _alike(entry) in self._infeasible or self._reservations.of_claim(entry.id):
            return False
        return may_displace_any(self._state.tree.node(entry.queue), entry.kind.requested) or self._state.lends()

    def _may_ask_now(self, queue: str) -> bool:
        """Report whether a search could make sense for some job of a queue."""
        return may_displace_now(self._state.tree.node(queue)) or self._state.lends()

    def retry(self) -> None:
        """Let all jobs ask again, also those of which a search has just failed."""
        self._infeasible.clear()
        self._aside, self._all_again_ns = None, self._state.clock.monotonic_ns()

    def due_ns(self) -> Iterator[int]:
        """Yield monotonic times at which minimum run times have passed for which jobs wait."""
        return (due_ns for due_ns, _ in self._later.values())

    @property
    def searches(self) -> bool:
        """True if the next call of `claims` continues with jobs that have asked, or are set aside."""
        return bool(self._requests) or self._aside is not None

    @property
    def awaited(self) -> bool:
        """True while a job waits for running ones to make room for it, or for the search for these."""
        return bool(self._requests) or any(True for _ in self._reservations.claims())

    def claims(self) -> list[Claim]:
        """Return the claims of jobs that asked, a limited number per call. The caller stores them.

        No job is displaced before all clusters have reported once or are lost, since they may have room.
        """
        if self._state.fleet.awaits_reports():
            return []
        self._forget_shrunk()
        now_ns = self._state.clock.monotonic_ns()
        self._infeasible = {alike: until_ns for alike, until_ns in self._infeasible.items() if until_ns > now_ns}
        self.foreseen = {job_id: each for job_id, each in self.foreseen.items() if each.at_ns + AGAIN_NS > now_ns}
        for alike in [alike for alike, (due_ns, _) in self._later.items() if due_ns <= now_ns]:
            if entry := self._state.waiting.get(self._later.pop(alike)[1]):
                self.ask([entry])
        self._drop_old()
        found: list[Claim] = []
        asking, self._requests = list(self._requests.values()), {}
        for within in (True, False):
            for asked in asking:
                late = self._state.clock.monotonic_ns() > now_ns + LONGEST_NS
                if not late:
                    found += self._claims_alike(asked, now_ns + LONGEST_NS, within=within)
                elif not within:
                    self._requests.setdefault(asked.id, asked)  # for the next call
        return found

    def _claims_alike(self, asked: Entry, until_ns: int, *, within: bool) -> Iterator[Claim]:
        """Yield the claims of a job and of equal ones, up to `MAX_ALIKE`. If more may follow, these ask again.

        Parameters
        ----------
        within
            Whether only jobs within the guarantees of their own queues claim a place. These are first.
        """
        claimed, waiting = self._reservations.of_claim, self._state.waiting
        alike = waiting.alike(asked, MAX_ALIKE, without=lambda each: bool(claimed(each.id)))
        for entry in alike:
            if self._state.clock.monotonic_ns() > until_ns or not self.may_ask(entry):
                return
            if within and not self._is_within_guarantee(entry):
                return  # its ancestors' guarantees are first for jobs within those of their own queues
            claim = self._claim(entry)
            if claim is None:
                return
            yield claim
        if len(alike) == MAX_ALIKE:
            self._requests.setdefault(asked.id, asked)

    def victims_for(self, job_id: str) -> Sequence[Candidate]:
        """Return the jobs that make room for a waiting one; none after a restart."""
        claim = self._claims.get(job_id)
        return claim.victims if claim else ()

    def preview(self, entry: Entry) -> Preview | None:
        """Return the place that a job would get from others now, as `claims` decides; None if none may make room."""
        if self._state.fleet.awaits_reports() or not self.may_ask(entry):
            return None
        found = self._choose(entry, displaces=True).found
        if found is None or not found.victims:
            return None
        return Preview(found.placements, found.victims, self._longest_grace_s(found.victims))

    def _is_within_guarantee(self, entry: Entry) -> bool:
        """Report whether the guarantee of a job's queue has room for it, beside the winners of that queue."""
        winners = (each for each in self._reservations.claims() if each.queue == entry.queue)
        requested = total_of([entry.kind.requested, *(winner.kind.requested for winner in winners)])
        return self._state.tree.node(entry.queue).guarantees(requested)

    def settle(self, claims: Sequence[Claim], stored: Sequence[bool]) -> None:
        """Release the reservations of claims that were not stored because a user changed one of their jobs."""
        self._forget_shrunk()
        for claim, is_stored in zip(claims, stored, strict=True):
            if not is_stored:
                self._claims.pop(claim.entry.id, None)
                self._reservations.release_placed(claim.entry.id)
                continue
            for each in claim.ends:
                self._state.tree.end(each.key)
                self.displaced[each.owner.queue, PRIORITY if each in claim.lower else RECLAIM] += 1
                if each.owner.queue != claim.entry.queue:
                    self._taken[claim.entry.id].add(each.key[0])
        for job_id in self._taken.keys() - self._state.jobs.keys():
            del self._taken[job_id]

    def forget(self) -> None:
        """Drop all claims on a replaced snapshot. Those of stored decisions are made again by `restore`."""
        self._claims.clear()
        self._forget_shrunk()
        self._infeasible.clear()
        self._later.clear()
        self._lost.update(dict.fromkeys(sorted(self._state.awaiting_victims)))
        self._restored_at = -1

    def restore(self) -> None:
        """Reserve the places of jobs again that displaced others before a restart or a change of the fleet.

        Other jobs would otherwise use the room as soon as the victims have ended. Until all clusters have reported,
        room under limits is reserved for those whose places are not known yet.
        """
        if not self._lost or self._restored_at == self._state.fleet.version:
            return
        tree, missing = self._state.tree, self._state.fleet.awaits_reports()
        until_ns, late = self._state.clock.monotonic_ns() + LONGEST_NS, False
        self._restored_at = self._state.fleet.version
        for job_id in list(self._lost):
            entry = self._state.waiting.get(job_id)
            late = late or self._state.clock.monotonic_ns() > until_ns
            if entry and not late:
                self._claim(entry, displaces=False)
                self._lost[job_id] = self._lost.pop(job_id)  # the next call begins with the others
            if self._reservations.of_claim(job_id):
                del self._lost[job_id]
            elif entry and (missing or late):
                tree.claim(entry.next_attempt, entry.owner, entry.kind.requested)
            elif not missing:
                tree.drop_claim(job_id)
                del self._lost[job_id]
        if late:
            self._restored_at = -1

    # Search.

    def _claim(self, entry: Entry, *, displaces: bool = True) -> Claim | None:
        """Reserve a place for a job, and return it with its victims; None if none may be displaced.

        If the job fits once the jobs that are ending are gone, the place is reserved without victims.

        Parameters
        ----------
        displaces
            Whether victims are searched.
        """
        choice = self._choose(entry, displaces=displaces)
        if (found := choice.found) is None:
            now_ns, later = self._state.clock.monotonic_ns(), choice.later
            if displaces:
                self._infeasible[_alike(entry)] = now_ns + AGAIN_NS
            if later:
                self._later[_alike(entry)] = now_ns + max(min(later.values()), AGAIN_NS), entry.id
                self._foresee(entry, choice.heads, choice.rules, choice.candidates, later)
            return None
        self.foreseen.pop(entry.id, None)
        for each in choice.used:
            self._reservations.release_placed(each.entry.id)
        within_s = self._longest_grace_s(found.victims)
        self._reservations.claim(entry, found.placements, within_s)
        losers = tuple(each.entry.id for each in choice.losers)
        if not found.victims and not losers:
            return None
        ends = (each for each in found.victims if each.whole is None)
        lower = frozenset(filter(choice.rules.reaches_by_priority, ends))
        claim = Claim(entry, found.victims, lower, losers, within_s, tuple(self._shrink(found.victims)))
        self._claims[entry.id] = claim
        return claim

    def _shrink(self, victims: Sequence[Candidate]) -> Iterator[tuple[Attempt, Attempt]]:
        """Let replicas of elastic jobs leave; yield the attempts before and after.

        Another claim of this call may have let the same jobs shrink before.
        """
        shrinks = defaultdict[Candidate, set[int]](set)
        for each in victims:
            if each.whole:
                shrinks[each.whole].update(each.replicas)
        for whole, replicas in shrinks.items():
            before = self._attempt(whole.key)
            self._shrunk[whole.key] = after = before.leaving(replicas)
            self._state.changed.add(whole.key)
            self._state.rest_from_resizes(self._state.jobs[whole.key[0]])
            yield before, after

    def _choose(self, entry: Entry, *, displaces: bool) -> _Choice:
        """Find a place for a job, and what makes room for it. Nothing changes."""
        self._drop_old()
        self._follow()
        running = self._running_jobs() if displaces else {}
        jobs = {queue: [each.candidate for each in held] for queue, held in running.items()}
        spared = self._taken.get(entry.id, ())
        rules = DisplacementRules(self._state.tree, entry.owner, entry.job.priority, entry.kind.requested, jobs, spared)
        heads, winners = self._yielding(entry, rules) if displaces else ([], [])
        candidates, later = self._candidates(entry, running)
        found, used = self._search(entry, heads, rules, candidates)
        if found is None and winners:
            found, used = self._search(entry, heads + winners, rules, candidates)
        losers = [each for each in used if each in winners]
        return _Choice(found, used, losers, heads, rules, candidates, later)

    def _longest_grace_s(self, victims: Iterable[Candidate]) -> int:
        """Return the seconds until the pods of all victims are killed at the latest."""
        return max((grace_s(self._attempt(each.job_key)) for each in victims), default=DEFAULT_GRACE_S)

    def _search(
        self,
        entry: Entry,
        yielding: Sequence[Reservation],
        rules: DisplacementRules,
        candidates: Sequence[Candidate],
    ) -> tuple[Displacement | None, list[Reservation]]:
        """Return a place with its victims, and the reservations that it uses.

        Parameters
        ----------
        yielding
            Reservations that the job may use.
        candidates
            Running jobs that may be displaced.
        """
        snapshot = self._state.fleet.snapshot.copy()
        self._reservations.release_own(entry, snapshot)
        passed = [each for each in self._reservations.passed_by(entry) if each not in yielding]
        for booking in filter(None, (each.booking for each in (*passed, *yielding))):
            booking.copy().release(snapshot)
        with self._as_if_done(snapshot, yielding):
            job, profile = self._state.allowed(entry), self._profile(entry.queue)
            placements = _fitting(snapshot, job, profile) if not self._state.waiting.hit(entry) else ()
            found = Displacement((), placements) if placements else None
            if found is None and candidates:
                found = VictimSearch(snapshot, profile, job, rules).find(candidates)
            used = self._used(entry, found, yielding, rules) if found else []
        return found, used

    def _foresee(
        self,
        entry: Entry,
        yielding: Sequence[Reservation],
        rules: DisplacementRules,
        candidates: Sequence[Candidate],
        later: Mapping[Candidate, int],
    ) -> None:
        """Record when a job could displace others, if that is only a matter of their minimum run times.

        Parameters
        ----------
        later
            Candidates that are too young now, with the nanoseconds until they may be displaced.
        """
        found, _ = self._search(entry, yielding, rules, [*candidates, *later])
        if found:
            at_ns = self._state.clock.monotonic_ns() + max(later.get(each, 0) for each in found.victims)
            ends = frozenset(each.key for each in found.victims if each.whole is None)
            self.foreseen[entry.id] = Foreseen(ends, at_ns)

    def _yielding(self, entry: Entry, rules: DisplacementRules) -> tuple[list[Reservation], list[Reservation]]:
        """Return the reservations of jobs that this one could displace if they had their places, those of winners last.

        Winners yield within their queue only, and not before their victims are ending.
        """
        tree, now_ns = self._state.tree, self._state.clock.now_ns()
        heads, winners = list[Reservation](), list[Reservation]()
        for each in list(self._reservations.made()):
            other, of = each.entry, tree.node(each.entry.queue).queue
            priority = other.spec.priority + of.points((now_ns - other.submitted_ns) / NS_PER_S)
            if priority >= priority_below(tree.node(entry.queue).queue, entry.job.priority, other.queue):
                continue
            if self._reservations.of_claim(other.id) is each:
                victims = self._claims[other.id].ends if other.id in self._claims else ()
                alive = any(self._state.current(victim.key) for victim in victims)
                if other.queue == entry.queue and not alive:
                    winners.append(each)
            elif each.booking and self._may_displace(rules, other, priority, each.booking):
                heads.append(each)
        return heads, winners

    def _may_displace(self, rules: DisplacementRules, other: Entry, priority: int, booking: Allocation) -> bool:
        """Report whether a job could displace another waiting job if that had its place."""
        tree, requested = self._state.tree, other.kind.requested
        tree.hold(other.next_attempt, other.owner, requested)
        held = Candidate(other.next_attempt, other.owner, requested, booking, booking.nodes, priority, 0.0)
        may = rules.allow(held)
        tree.withdraw(other.next_attempt)
        return may

    def _used(
        self, entry: Entry, found: Displacement, yielding: Sequence[Reservation], rules: DisplacementRules
    ) -> list[Reservation]:
        """Return the reservations of nodes or of room that a job takes. It runs as if ending jobs were gone."""
        tree, nodes = self._state.tree, {(each.cluster, each.node) for each in found.placements}
        used, beside = [], []
        for victim in found.victims:
            rules.remove(victim)
        for each in yielding:
            other, key = each.entry, each.entry.next_attempt
            claims = self._reservations.of_claim(other.id) is each
            if claims:
                tree.hold(key, other.owner, other.kind.requested)
            if nodes.isdisjoint(each.nodes) and not (claims and self._state.waiting.hit(entry)):
                beside.append(key)
                continue
            used.append(each)
            tree.withdraw(key)
        for key in beside:
            tree.withdraw(key)
        for victim in found.victims:
            rules.restore(victim)
        return used

    def _drop_old(self) -> None:
        """Drop the claims of winners that have a place, or lost their reservation."""
        for job_id in list(self._claims):
            if not self._reservations.of_claim(job_id):
                del self._claims[job_id]

    @contextmanager
    def _as_if_done(self, snapshot: Snapshot, yielding: Sequence[Reservation]) -> Iterator[None]:
        """Remove ending jobs and the victims of claims from a copy of the fleet, and for a while from the tree.

        So is room for winners that yield. The other winners count in the tree as if they had their places.
        """
        live, tree, attempts = self._state, self._state.tree, self._state.attempts
        claimed = [
            each
            for claim in self._claims.values()
            for each in claim.ends
            if (known := attempts.get(each.key)) and known.state.live
        ]
        ending = [attempts[key] for key in self._holders.ending if live.ends_soon(attempts[key])]
        for attempt in ending:
            tree.end((attempt.job_id, attempt.number))
            if booking := self._state.fleet.booking((attempt.job_id, attempt.number)):
                booking.copy().release(snapshot)
        ending = [attempt for attempt in ending if tree.withdraw((attempt.job_id, attempt.number))]
        parting = self._withdraw_leaving(snapshot)
        for each in claimed:
            each.allocation.copy().release(snapshot)
        held = [each.key for each in claimed if tree.withdraw(each.key)]
        yields = {each.entry.id for each in yielding}
        winners = [each for each in self._reservations.claims() if each.id not in yields]
        for entry in winners:
            tree.hold(entry.next_attempt, entry.owner, entry.kind.requested)
        dropped = [claim for job_id in yields if (claim := tree.drop_claim(job_id))]
        yield
        for claim in dropped:
            tree.claim(*claim)
        for entry in winners:
            tree.withdraw(entry.next_attempt)
        for attempt in (*(attempts[key] for key in held), *ending, *parting):  # with all that they hold
            self._state.hold(attempt)

    def _withdraw_leaving(self, snapshot: Snapshot) -> list[Attempt]:
        """Remove leaving replicas from a copy of the fleet and from the tree; return their attempts."""
        parting = [self._attempt(key) for key in self._holders.parting]
        for attempt in parting:
            key = (attempt.job_id, attempt.number)
            gone = {each.replica for each in attempt.placements if each.leaving}
            if booking := self._state.fleet.booking(key):
                booking.part(gone).release(snapshot)
            stay = held_amounts(attempt.spec.demand, attempt.remaining, snapshot.device)
            self._state.tree.hold(key, self._state.owner(attempt), stay)
        return parting

    def _attempt(self, key: Key) -> Attempt:
        """Return an attempt as it will be once all claims are stored that let it shrink."""
        return self._shrunk.get(key) or self._state.attempts[key]

    def _forget_shrunk(self) -> None:
        self._state.changed.update(self._shrunk)
        self._shrunk.clear()

    def drop_changes(self) -> None:
        """Drop the changes of attempts if they are too many to keep until the next search, which then reads all."""
        if len(self._state.changed) > MAX_CHANGES + len(self._state.attempts):
            self._state.changed.clear()
            self._basis, self._holders = None, _Holders()

    def _follow(self) -> None:
        """Follow the attempts that have changed; all of them after a change of the queues or of the fleet."""
        live = self._state
        basis = live.tree, live.tree.version, live.fleet.snapshot
        if self._basis != basis:
            self._basis, self._holders = basis, _Holders()
            live.changed.update(live.attempts)
        holders = self._holders
        for key in sorted(live.changed | holders.unplaced):  # of equal victims, the order decides
            holders.drop(key)
            if key in live.attempts:
                attempt = self._attempt(key)
                holders.put(key, attempt, self._running_job(key, attempt))
        live.changed.clear()

    def _running_jobs(self) -> Mapping[str, Sequence[_Running]]:
        """Return the running jobs of each queue beside those that end for claims."""
        claimed = {each.key for claim in self._claims.values() for each in claim.ends}
        return {
            queue: [each for key, each in jobs.items() if key not in claimed] if claimed else [*jobs.values()]
            for queue, jobs in self._holders.running.items()
        }

    def _candidates(
        self, entry: Entry, running: Mapping[str, Sequence[_Running]]
    ) -> tuple[list[Candidate], dict[Candidate, int]]:
        """Return the running jobs that the rules of queues can allow to be displaced, and the time until others pass.

        The latter lack only a part of their minimum run time, nanoseconds each.
        """
        live, found, later = self._state, list[Candidate](), dict[Candidate, int]()
        now_ns = live.clock.monotonic_ns()
        usable = live.fleet.up()
        mine = live.tree.node(entry.queue).queue
        for name, jobs in running.items():
            queue = live.tree.node(name).queue
            below, min_ns = priority_below(mine, entry.job.priority, name), queue.min_runtime_s * NS_PER_S
            lends = queue.elastic is Elastic.LEND
            for each in jobs:
                candidate, preemptible = each.candidate, each.preemptible
                if lends and each.replicas:  # few jobs have any, and there can be many thousands of jobs
                    found += in_clusters(each.replicas, each.attempt, usable)
                if (
                    candidate.priority < below
                    and (queue.preemptible if preemptible is None else preemptible)
                    and usable.issuperset(each.clusters)
                ):
                    found += () if lends else each.replicas
                    ran_ns = 0 if each.began_ns is None else now_ns - each.began_ns
                    candidate.lost = each.share * ran_ns / NS_PER_S + each.restart
                    if ran_ns < min_ns and each.attempt.running_ns:
                        later[candidate] = min_ns - ran_ns
                    else:
                        found.append(candidate)
        return found, later

    def _running_job(self, key: Key, attempt: Attempt) -> _Running | None:
        """Return a running job as a candidate; None if it cannot be displaced."""
        job, booking, spec = self._state.jobs.get(key[0]), self._state.fleet.booking(key), attempt.spec
        if not attempt.state.live or job is None or job.attempt != attempt.number or booking is None:
            return None
        if not booking.holds_any:
            return None
        loses = attempt.running_ns and not spec.checkpoint
        node = self._state.tree.node(spec.queue)
        share = node.share_of(attempt.amounts) if loses else 0.0
        restart = self._state.tree.loss(spec.queue, attempt.amounts, 0)
        owner = Owner(spec.queue, spec.tenant, job.submitted_by)
        priority = job.spec.priority + node.queue.points((attempt.created_ns - job.submitted_ns) / NS_PER_S)
        amounts, began_ns = attempt.amounts, self._state.began_ns.get(key)
        if attempt.remaining is not attempt.placements:  # searches see the fleet without the other replicas
            booking = booking.part({each.replica for each in attempt.remaining})
            amounts = held_amounts(spec.demand, attempt.remaining, self._state.fleet.snapshot.device)
        candidate = Candidate(key, owner, amounts, booking, booking.nodes, priority, 0.0)
        replicas = spare_replicas(attempt, candidate, self._state.fleet.snapshot)
        return _Running(
            attempt, job, spec.queue, attempt.clusters, spec.preemptible, began_ns, share, restart, candidate, replicas
        )


def spare_replicas(attempt: Attempt, candidate: Candidate, snapshot: Snapshot) -> Sequence[Candidate]:
    """Return the replicas by which an elastic job can shrink, and set the number that it can spare."""
    if not attempt.spec.elastic:
        return ()
    candidate.spare = max(0, len(attempt.remaining) - attempt.spec.least_replicas)
    if (candidate.allocation.decisions[:, PLAN_NODE] < 0).any():
        return ()  # one of its nodes is gone
    known: dict[Hashable, Amounts] = {}  # many replicas hold the same
    amounts: dict[int, Amounts] = {}
    for each in attempt.remaining:
        held = [(snapshot.device(taken.uuid), taken.memory_mib, taken.core_milli) for taken in each.slices]
        kind = each.completed, *((of and (of.model, of.memory_mib), *share) for of, *share in held)
        if kind not in known:
            known[kind] = held_amounts(attempt.spec.demand, [each], snapshot.device)
        amounts[each.replica] = known[kind]
    return replicas_of(candidate, [[each.replica for each in of] for of in leaving_order(attempt)], amounts)


def in_clusters(replicas: Sequence[Candidate], attempt: Attempt, clusters: Collection[str]) -> Sequence[Candidate]:
    """Return the replicas of an attempt that are in some clusters."""
    inside = {-1 - each.replica for each in attempt.remaining if each.cluster in clusters}
    return [each for each in replicas if each.key[1] in inside]


def _fitting(snapshot: Snapshot, job: Job, profile: Profile) -> tuple[Placement, ...]:
    """Return the placements of a job that fits; none if it does not. The snapshot stays unchanged."""
    plan = decide(snapshot, JobQueue(snapshot, [job]), profile, overdue={0}, dry_run=True)
    placements = tuple(plan.placements()) if plan.jobs_placed[0] else ()
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    return placements


def _alike(entry: Entry) -> _Alike:
    return entry.kind, entry.spec.tenant, entry.job.priority


def grace_s(attempt: Attempt) -> int:
    """Return the seconds until the pods of an attempt that ends are killed."""
    return attempt.spec.checkpoint.grace_s if attempt.spec.checkpoint else DEFAULT_GRACE_S
