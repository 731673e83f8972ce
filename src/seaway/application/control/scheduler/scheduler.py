"""Scheduling: from waiting jobs to placements that are ready to be stored."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from seaway.application.changes import Change, Outcome
from seaway.application.control.rejections import Due
from seaway.application.control.scheduler.compile_readiness import CompileReadiness
from seaway.application.control.scheduler.forecast import PlannedStart
from seaway.application.control.scheduler.preemptor import Claim, Preemptor, Preview
from seaway.application.control.scheduler.resizer import Resizer
from seaway.application.control.scheduler.score_breakdown import ScoreBreakdown, ScoreRecorder
from seaway.application.control.scheduler.shadow import Shadows
from seaway.application.control.scheduler.waiting_reasons import WaitingReasons
from seaway.application.control.stages import Stage
from seaway.application.control.state import ControlState
from seaway.application.transitions import blocked, moved, of_size, placed, stepped, waiting_text
from seaway.domain.amounts import Amounts, held_amounts
from seaway.domain.attempt import Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill, policy_text
from seaway.domain.reasons import Reason, also
from seaway.domain.units import rate_text
from seaway.learning.policies.make import make_unusable
from seaway.learning.policies.monitor import Limits, NullWatch
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.binding import bind, post_bind, unreserve
from seaway.scheduling.columns import PLAN_NODE, PLAN_REPLICA
from seaway.scheduling.cycle.deferral import Deferral
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.reserve import Reservations
from seaway.scheduling.cycle.shares import ModelShares
from seaway.scheduling.data_locality import data_text
from seaway.scheduling.engine import decide
from seaway.scheduling.framework import PASS, Decider
from seaway.scheduling.infeasibility_cache import InfeasibilityCache
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import LimitHit, QueueTree

log = logging.getLogger(__name__)

ACTOR = "scheduler"

ProfileFactory = Callable[[str, Sequence[Job]], Profile]
"""Factory of a profile by policy name, for a mix of past jobs."""

FallbackFactory = Callable[[str, str, Sequence[Job]], Profile]
"""Factory of a fallback: name of the policy, reason why it cannot be used, and a mix of past jobs."""

DEFAULT_POLICY = "bestfit"
"""Policy of queues that specify none."""

MIN_TO_LEARN = 20
"""Minimum number of past jobs from which a policy learns. It learns again whenever the number has doubled."""

LONGEST_NS = 25_000_000
"""Nanoseconds of scheduling after which other threads can acquire the lock. A started batch is completed."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A job and its placement.

    Attributes
    ----------
    profile
        Profile of the policy that decided.
    notes, at
        Source of the score breakdown, if any, and the index of the job in it.
    refusal
        Reason why a plugin refused to bind the job; empty if none did.
    """

    entry: Entry
    booking: Allocation
    job: JobRecord
    attempt: Attempt
    change: Change
    profile: Profile
    notes: ScoreBreakdown | None = None
    at: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class _Tried:
    """Jobs of a run that were placed one after another.

    Attributes
    ----------
    plan, profile
        Their placements, and the profile that decided.
    allocated, fits
        Allocation of each, and whether it can start.
    spared
        Indices of the jobs that need nothing reserved: deferred ones, and those that leave models to others.
    noted
        Source of the score breakdowns, if any.
    """

    plan: Plan
    profile: Profile
    allocated: Sequence[Allocation]
    fits: Sequence[bool]
    spared: Collection[int]
    noted: ScoreBreakdown | None


@dataclass(slots=True)
class Tally:
    """Number of decisions since the start, and of placements by policy."""

    decided: int = 0
    placed: Counter[str] = field(default_factory=Counter)
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class _OfQueues:
    """Policies of all queues, and queues with conservative backfill, as of a version of the tree."""

    tree: QueueTree
    version: int
    policies: frozenset[str] = frozenset()
    planned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Learnt:
    """Profile of a policy, its latest training mix, and the number of renewals at that time.

    With `by_rules`, only the filter rules decide whether a job fits.
    """

    mix_version: int
    renewals: int
    profile: Profile
    by_rules: bool


class Scheduler:
    """Placement of waiting jobs, one after another.

    Parameters
    ----------
    live
        The control-plane state.
    make
        Factory of profiles.

    Attributes
    ----------
    readiness
        Compilation of policies. Jobs of queues with uncompiled policies wait, since compiling would delay all jobs.
    make_stand_in
        Factory of the fallback for policies that cannot be used.
    """

    def __init__(self, live: ControlState, make: ProfileFactory) -> None:
        self._state = live
        self.readiness = CompileReadiness()
        self._warmed = (0, 0)
        self._queues = _OfQueues(live.tree, -1)
        self._make = make
        self.make_fallback: FallbackFactory = make_fallback
        self._profiles: dict[str, _Learnt] = {}
        self._renewals: Counter[str] = Counter()
        self._renewed = 0
        self._refused = Refused(live)
        self._score_recorder = ScoreRecorder(live.clock)
        self._model_shares = ModelShares(live)
        self.reservations = Reservations(live, self.profile, self._model_shares)
        self.preemptor = Preemptor(live, self.reservations, self.profile)
        self.resizer = Resizer(live, self.ready)
        self.shadows = Shadows(live)
        self.deferral = Deferral(live.clock.monotonic_ns, live.settings.max_deferral_s)
        self.reasons = WaitingReasons(
            live, self, self.reservations, self.deferral, self.preemptor.room_for, self.resizer.waits
        )
        self.tally = Tally()
        self._planned: Mapping[str, PlannedStart] = {}
        self._refusals: Counter[str] = Counter()
        self._longest = 1  # run that is worth a try, since the jobs behind one that does not fit are put back

    def made(self, name: str) -> Profile:
        """Create the profile of a policy, without past jobs. Thread-safe.

        Raises
        ------
        RejectedError
            If no policy has that name, or it cannot decide here.
        """
        return self._make(name, ())

    def profile(self, queue: str) -> Profile:
        """Return the profile of a queue's policy."""
        return self.policy(self._policy_of(queue))

    def ready(self, queue: str) -> Profile | None:
        """Return the profile of a queue's policy; None while it is not ready."""
        return None if self.unready(queue) else self.profile(queue)

    def policy(self, name: str) -> Profile:
        """Return the profile of a policy by name, adapted to recent jobs."""
        return self._learnt(name).profile

    def renew(self, name: str) -> None:
        """Create the profile of a changed policy again. Calls from any thread are allowed, but not concurrent ones."""
        self._renewals[name] += 1
        self._renewed += 1
        self.readiness.forget(name)

    def unready(self, queue: str) -> str:
        """Return the reason why jobs of a queue are not tried yet; empty if they are."""
        name = self._policy_of(queue)
        return "" if self.readiness.has(name) else Reason("policy_not_ready", policy=policy_text(name))

    def policy_of(self, queue: str) -> str:
        """Return the name of a queue's policy with its options, as in `Queue.policy_spec`. Thread-safe."""
        return self._policy_of(queue)

    def _policy_of(self, queue: str) -> str:
        known = self._state.queues.get(queue)
        return known.policy_spec if known else DEFAULT_POLICY

    def _learnt(self, name: str) -> _Learnt:
        mix_version = self._state.taken_in // MIN_TO_LEARN
        mix_version = 0 if not mix_version else mix_version.bit_length()
        known, renewals = self._profiles.get(name), self._renewals[name]
        if known is None or (known.mix_version, known.renewals) != (mix_version, renewals):
            profile = self._made_or_fallback(name)
            known = self._profiles[name] = _Learnt(
                mix_version, renewals, profile, profile.compiled(RULES_OF_FIT) is not None
            )
        return known

    def _made_or_fallback(self, name: str) -> Profile:
        """Create the profile of a policy, or a fallback if it cannot be used, so that the loop continues."""
        try:
            return self._make(name, tuple(self._state.recent))
        except RejectedError as error:
            return self.make_fallback(name, error.message, tuple(self._state.recent))

    def begin(self) -> None:
        """Begin a cycle: follow what has changed since the last one.

        If the fleet changed, a pass over all jobs begins. One that is not at its end continues, and the next one begins
        with the first job. Otherwise the last jobs would never be tried.
        """
        state, waiting = self._state, self._state.waiting
        self._warm_up()
        state.renew_capacities()
        state.decay_usage()
        if not self.reservations.current():
            self.reservations.drop_all()
            self.preemptor.forget()
        self.reservations.note_decisions()
        self.reservations.review()
        self.preemptor.restore()
        state.fleet.forget_demands([*state.bookings.values(), *self.reservations.bookings()])
        if state.seen_version != state.fleet.version and waiting.idle:
            state.seen_version = state.fleet.version
            waiting.try_all()
            self._model_shares.begin()
        if self.deferral.due(waiting.entries()):
            waiting.try_all()
        self._model_shares.renew()

    def needs_plan(self) -> bool:
        """Report whether jobs wait whose start depends on the planned starts of earlier ones."""
        return any(map(self.is_planned, self._of_queues().planned))

    def is_planned(self, queue: str) -> bool:
        """Report whether jobs of a queue start in the order of a plan, because an earlier one does not fit."""
        return self._state.backfill_of(queue) is Backfill.CONSERVATIVE and self._state.waiting.passes_over(queue)

    def use_plan(self, planned: Mapping[str, PlannedStart]) -> None:
        """Use a plan, and retry the jobs that it concerns if it is a new one."""
        if planned is not self._planned:
            self._planned = planned
            for queue in filter(self.is_planned, self._of_queues().planned):
                self._state.waiting.try_queue(queue)

    def _of_queues(self) -> _OfQueues:
        """Return what matters of all queues. There can be thousands."""
        known, tree = self._queues, self._state.tree
        if known.tree is not tree or known.version != tree.version:
            queues = self._state.queues.values()
            policies = frozenset(name for each in queues for name in (each.policy_spec, each.shadow))
            planned = tuple(each.name for each in queues if each.backfill is Backfill.CONSERVATIVE)
            known = self._queues = _OfQueues(tree, tree.version, policies, planned)
        return known

    def delays_others(self, entry: Entry) -> bool:
        """Report whether the start of a job could delay the planned start of an earlier job of its queue."""
        return self.is_planned(entry.queue) and not self._planned_now(entry)

    def _planned_now(self, entry: Entry) -> bool:
        """Report whether the planned start of a job has come, or others have ended for it."""
        if self._wins(entry):
            return True
        planned = self._planned.get(entry.id)
        starts_ns = planned.starts_ns if planned else None
        return starts_ns is not None and starts_ns <= self._state.clock.now_ns()

    def next(self) -> list[Decision]:
        """Decide about some waiting jobs, each beside those before it; allocate those that fit, and put others back.

        The number of jobs that are decided in a call has no effect on any of them. An empty list means that no tried
        job fits; the next call continues with the others.
        """
        waiting, settings = self._state.waiting, self._state.settings
        began_ns = self._state.clock.monotonic_ns()
        until_ns = began_ns + LONGEST_NS
        tried = 0
        decisions: list[Decision] = []
        while tried < settings.max_tried_per_cycle and len(decisions) < settings.batch_size:
            self._model_shares.advance()
            most = 1 if self._model_shares.divides else min(self._longest, settings.batch_size - len(decisions))
            run = waiting.take(most, self._alike, self._is_infeasible, self._skips_in_any_order, self._ends_in_time)
            tried += len(run)
            if left := self._left_to_others(self._known(run)):
                decisions += (started := self._decide(left))
                whole = len(started) == len(run)
                self._longest = min(2 * self._longest, settings.batch_size) if whole else max(1, len(started))
            if not run or self._state.clock.monotonic_ns() >= until_ns:
                break
        if waiting.idle:
            self._model_shares.end()
        if tried:
            self._state.stages.took(Stage.DECIDE, began_ns)
        return decisions

    def claims(self) -> list[Claim]:
        """Return the claims of jobs that did not fit, after all were tried; see `Preemptor.claims`."""
        self.preemptor.ask(
            filter(self._may_displace, (*self._state.waiting.take_blocked(), *self.preemptor.set_aside()))
        )
        return self.preemptor.claims()

    def annotate(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Add the scores that decided, if the decisions are few; needs no lock.

        This precedes the storage of a decision, so that both are stored together. A failed breakdown is omitted, since
        jobs do not wait for explanations.
        """
        noted = []
        for each in reversed(decisions):
            try:
                said = each.notes.of(each.at, each.attempt.placements) if each.notes else ""
            except Exception:
                log.exception("the scores of %s could not be recorded", each.job.id)
                said = ""
            attempt = replace(each.attempt, why=also(each.attempt.why, said)) if said else each.attempt
            change = placed(self._state.jobs[each.job.id], each.job, attempt, ACTOR)
            noted.append(replace(each, attempt=attempt, change=change, notes=None))
        return noted[::-1]

    def _warm_up(self) -> None:
        """Compile the policies of all queues; retry jobs whose policy became ready."""
        for policy in self._of_queues().policies:
            self.readiness.want(policy)
        news = (self.readiness.count, self._renewed)
        if self._warmed != news:
            self._warmed = news
            self._state.waiting.try_all()

    def bind(self, decisions: Sequence[Decision]) -> tuple[list[Decision], list[Decision]]:
        """Call the PreBind and Bind plugins of each decision's policy; needs no lock.

        Returns
        -------
        tuple
            Decisions that may be stored, and those that a plugin refused.
        """
        bound: list[Decision] = []
        refused: list[Decision] = []
        for each in decisions:
            status = bind(each.profile, each.attempt.placements) if each.profile.binds else PASS
            if status.passes:
                bound.append(each)
            else:
                refused.append(replace(each, refusal=status.reason or "a plugin refused to bind it"))
        return bound, refused

    def post_bind(self, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> None:
        """Call the PostBind plugins for stored decisions; needs no lock."""
        for decision, outcome in zip(decisions, outcomes, strict=True):
            if outcome is Outcome.STORED:
                post_bind(decision.profile, decision.attempt.placements)

    def send_back(self, refused: Sequence[Decision]) -> list[Change]:
        """Release the allocations that plugins refused to bind, and retry the jobs after a pause."""
        now_ns, changes = self._state.clock.now_ns(), []
        for each in refused:
            self._give_back(each)
            record = self._state.jobs[each.job.id]
            self._refusals[record.id] += 1
            pause_s = self._state.settings.pause_s(self._refusals[record.id])
            later = replace(record, not_before_ns=now_ns + int(pause_s * 1e9))
            reason = also(each.refusal, Reason("next_attempt", pause=round(pause_s)))
            if record.state is JobState.QUEUED:
                changes.append(blocked(later, reason, ACTOR, now_ns))
            else:
                changes.append(stepped(moved(later, JobState.QUEUED, reason, now_ns), ACTOR))
        return changes

    def _give_back(self, decision: Decision) -> None:
        key = decision.job.id, decision.attempt.number
        self._state.bookings.pop(key, None)
        self._state.assumed.pop(key, None)
        self._state.history.ended(key)
        self._state.tree.release(key)
        decision.booking.release(self._state.fleet.snapshot)
        unreserve(decision.profile, self._state.fleet.snapshot, decision.entry.job, decision.attempt.placements)
        self._state.fleet.version += 1

    def settle(self, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> None:
        """Release decisions that were not stored because a user changed the job."""
        for decision, outcome in zip(decisions, outcomes, strict=True):
            if outcome is Outcome.STORED:
                self.tally.placed[decision.attempt.policy] += 1
                self._refusals.pop(decision.job.id, None)
            else:
                self.tally.conflicts += 1
                self._give_back(decision)
                self._state.deadlines.in_seconds(1, Due.RETRY, (decision.job.id, 0, ""))

    def take_in(self) -> list[Change]:
        """Return the changes that record tried jobs as queued, or with another reason, a limited number per call.

        The former were accepted, or lost a placement.
        """
        now_ns = self._state.clock.now_ns()
        changes = self.reasons.changes(ACTOR)
        for entry in self._state.waiting.fresh(2 * self._state.settings.batch_size):
            job = self._state.jobs[entry.id]
            reason = self.reasons.of(job).stored
            if job.state is JobState.QUEUED:
                changes.append(blocked(job, reason, ACTOR, now_ns))
            else:
                changes.append(stepped(moved(job, JobState.QUEUED, reason, now_ns), ACTOR))
        return changes

    def _alike(self, entry: Entry) -> tuple[str, str, bool, str, str]:
        """Return a key of jobs that are decided together: same policy without chance, same visible reservations."""
        queue = self._state.queues.get(entry.queue)
        challenged = entry.queue if queue and queue.shadow else ""
        policy = queue.policy_spec if queue else ""
        alone = entry.id if self.profile(entry.queue).draws else ""
        return policy, challenged, self.reservations.may_pass(entry), self.reservations.own(entry), alone

    def _known(self, batch: Sequence[Entry]) -> list[Entry]:
        """Skip jobs that the engine cannot handle, for example after the removal of their gateway; they stay queued."""
        known = []
        for entry in batch:
            try:
                self._state.fleet.snapshot.demands.index(entry.job.demand)
                known.append(entry)
            except RejectedError:
                self._state.waiting.put_back([entry])
                self._state.waiting.refuse(entry.kind)
        return known

    def _decide(self, left: Mapping[Entry, frozenset[str]]) -> list[Decision]:
        """Decide about a run of jobs, of which each leaves some GPU models to others.

        The run ends where a decision could depend on a job that does not fit. The jobs behind are put back.
        """
        run = [*left]
        for entry in run:
            self._state.tree.withdraw(entry.next_attempt)
        tried = self._try(run, left)
        self.tally.decided += len(run)
        end = self._end_of_certainty(run, tried)
        head = self.reservations.head_of(
            run[:end], [fit or at in tried.spared for at, fit in enumerate(tried.fits[:end])]
        )
        end = self._end_of_strict_order(run[: end if head is None else head + 1], tried.fits)
        self.deferral.note(run[:end], {at: why for at, why in tried.plan.deferred.items() if at < end})
        places = self._places(run, tried, end)
        amounts, hit, end = self._hold(run, places, end)
        self._undo(run, tried, end)
        decisions = []
        for at in range(end):
            if tried.fits[at]:
                decisions.append(self._decision(run[at], tried, at, places[at], amounts[at]))
                self.deferral.placed(run[at])
                self.reservations.release_placed(run[at].id)
        self._state.started += len(decisions)
        unplaced = [at for at in range(end) if not tried.fits[at]]
        self._state.waiting.put_back([*run[end:], *(run[at] for at in unplaced)])
        if hit and not end:
            self._state.waiting.limit(run[0], hit)
        if not decisions:
            self._model_shares.give_back()
        narrowed = [run[at] for at in unplaced if tried.plan.queue.jobs[at] is not run[at].job]
        self._refuse([run[at] for at in unplaced], narrowed)
        self._model_shares.defer(run[at] for at in unplaced if left[run[at]])
        self.preemptor.ask(run[at] for at in unplaced if at not in tried.spared)
        self.reservations.note_decisions()
        if head is not None and head < end:
            self.reservations.make(run[head])
        return decisions

    def _try(self, run: Sequence[Entry], left: Mapping[Entry, frozenset[str]]) -> _Tried:
        """Place the jobs of a run one after another, with the reservations that all of them may use."""
        snapshot, first = self._state.fleet.snapshot, run[0]
        jobs = [self._state.allowed(entry, left[entry]) for entry in run]
        queue = JobQueue(snapshot, jobs, first=self._state.started)
        profile = self.profile(first.queue)
        with self.reservations.seen_by(first):
            before = self.shadows.before(run) if self.readiness.has(self.shadows.challenger(first)) else None
            winners = [at for at, entry in enumerate(run) if self._wins(entry)]
            plan = decide(snapshot, queue, profile, overdue=self.deferral.overdue(run).union(winners))
            if before is not None:
                self.shadows.compare(before, run, plan, profile, self.policy(self.shadows.challenger(first)))
            allocated, placed_jobs = list(allocations_of(plan)), plan.jobs_placed
            noted = self._score_recorder.open(snapshot, queue, allocated, profile) if placed_jobs.any() else None
        fits = [
            fit or (each.job.partial and part.holds_any)
            for fit, each, part in zip(placed_jobs.tolist(), run, allocated, strict=True)
        ]
        spared = {*plan.deferred, *(at for at, entry in enumerate(run) if left[entry])}
        return _Tried(plan, profile, allocated, fits, spared, noted)

    def _places(self, run: Sequence[Entry], tried: _Tried, end: int) -> list[tuple[Placement, ...]]:
        """Return the placements of the first jobs of a run, as far as limits have room; none for the others."""
        places = [
            _numbered(_placements(tried.plan, at), each, tried.allocated[at]) if at < end and tried.fits[at] else ()
            for at, each in enumerate(run)
        ]
        for at, within in self._within_limits(run, places):
            rows = np.flatnonzero(tried.allocated[at].decisions[:, PLAN_NODE] >= 0)[within:]
            tried.allocated[at].release(self._state.fleet.snapshot, rows)
            unreserve(tried.profile, self._state.fleet.snapshot, run[at].job, places[at][within:])
            places[at] = places[at][:within]
        return places

    def _undo(self, run: Sequence[Entry], tried: _Tried, end: int) -> None:
        """Release what the jobs of a run hold that do not start now, the last first."""
        snapshot = self._state.fleet.snapshot
        for at in range(len(run) - 1, -1, -1):
            if at >= end or not tried.fits[at]:
                tried.allocated[at].release(snapshot)
                unreserve(tried.profile, snapshot, run[at].job, _placements(tried.plan, at))

    def _left_to_others(self, run: Sequence[Entry]) -> Mapping[Entry, frozenset[str]]:
        """Return the models that each job of a run leaves to others; put back one that has to wait for them."""
        if not self._model_shares.divides:
            return dict.fromkeys(run, frozenset())
        left: dict[Entry, frozenset[str]] = {}
        for entry in run:
            models = self._model_shares.take(entry)
            if self._wins(entry):
                models = models or frozenset()
            if models is None:
                self._state.waiting.put_back([entry])
                self._state.waiting.refuse(entry.kind, entry.lane)
            else:
                left[entry] = models
        return left

    def _wins(self, entry: Entry) -> bool:
        """Report whether others have ended for a job."""
        return self.reservations.of_claim(entry.id) is not None

    def _refuse(self, rejected: Sequence[Entry], narrowed: Collection[Entry]) -> None:
        """Record jobs that certainly do not fit.

        Jobs in `narrowed` could not use all GPU models, so their rejection does not apply to jobs of other tenants.
        Neither does one for lack of the place that is reserved for an equal job of another tenant.
        """
        for entry in rejected:
            apart = entry in narrowed or self.reservations.has_equal(entry)
            self._state.waiting.refuse(entry.kind, entry.lane if apart else None)
            self._state.waiting.part(entry, self._ends_in_time)
        if rejected and self._by_rules(rejected[0]):
            passes = self.reservations.may_pass(rejected[0])
            self._refused.note([entry for entry in rejected if entry not in narrowed], passes)

    def _hold(
        self, batch: Sequence[Entry], places: Sequence[Sequence[Placement]], end: int
    ) -> tuple[list[Amounts], LimitHit | None, int]:
        """Count the exact amounts of placed jobs in their queues and quotas, in order, as far as all limits allow.

        Returns
        -------
        tuple
            Amounts of each job, the limit that the next job would exceed, and the number of jobs before that job.
        """
        snapshot, tree = self._state.fleet.snapshot, self._state.tree
        amounts: list[Amounts] = [
            held_amounts(entry.job.demand, placed, snapshot.device) for entry, placed in zip(batch, places, strict=True)
        ]
        for at, entry in enumerate(batch[:end]):
            if not places[at]:
                continue
            if hit := tree.hit(entry.owner, amounts[at], entry.id):
                return amounts, hit, at
            tree.hold(entry.next_attempt, entry.owner, amounts[at])
            if amounts[at] != self._state.waiting.usual(entry.kind):  # the order of the jobs behind it rests on that
                self._state.waiting.note_usual(entry.kind, amounts[at])
                return amounts, None, at + 1
        return amounts, None, end

    def _end_of_certainty(self, run: Sequence[Entry], tried: _Tried) -> int:
        """Return the number of leading jobs whose decisions do not depend on jobs of the run that do not fit.

        A job that turns out not to fit may hold capacity temporarily. Later jobs may be elsewhere, or be rejected, only
        for lack of it. Where several lanes have jobs, the order of later ones counts it as started.
        """
        apart = any(each.lane != run[0].lane for each in run) or not self._state.waiting.only(run[0].lane)
        for at, (fit, booking) in enumerate(zip(tried.fits, tried.allocated, strict=True)):
            if not fit and (apart or booking.holds_any):
                return at + 1
        return len(run)

    def _end_of_strict_order(self, batch: Sequence[Entry], fits: Sequence[bool]) -> int:
        """Return the number of jobs before the first one that would pass an earlier job and may not.

        Without backfill, no job may. With conservative backfill, a job may if its planned start has come.
        """
        blocked: dict[str, Backfill] = {}
        for at, entry in enumerate(batch):
            if not fits[at]:
                blocked[entry.queue] = self._state.backfill_of(entry.queue)
                continue
            backfill = blocked.get(entry.queue)
            if backfill is Backfill.NONE or (backfill is Backfill.CONSERVATIVE and not self._planned_now(entry)):
                return at
        return len(batch)

    def _is_infeasible(self, entry: Entry) -> bool:
        """Report whether a job certainly does not fit, and need not be tried for any other purpose.

        A cached rejection counts only if it had access to at least as much free capacity as this job, including
        reserved capacity. Jobs whose policy is not ready are tried again when it is.
        """
        if self.unready(entry.queue) or self.delays_others(entry):
            return True
        if self._model_shares.divides and not self._wins(entry) and self._model_shares.defers(entry):
            return True
        sees_more = self.reservations.may_pass(entry) or bool(self.reservations.own(entry))
        return (
            self._refused.covers(entry, by_all=sees_more)
            and not self.reservations.awaits(entry)
            and self._by_rules(entry)
        )

    def _ends_in_time(self, entry: Entry) -> bool:
        """Report whether a job without a reservation may use the reserved capacity of others, since it ends in time.

        It does not matter whether jobs do that wait for the second pass of `ModelShares`.
        """
        if self._model_shares.waits(entry):
            return True
        return not self.reservations.own(entry) and self.reservations.may_pass(entry)

    def _skips_in_any_order(self, entry: Entry) -> bool:
        """Report whether no job of a queue is tried only for a reservation, for which their order would count."""
        return not self.reservations.may_reserve_more(entry.queue)

    def _may_displace(self, entry: Entry) -> bool:
        """Report whether a job that was set aside without a try may displace others now."""
        if self.unready(entry.queue) or self._model_shares.waits(entry) or self.deferral.why(entry.kind):
            return False
        if self._state.waiting.is_behind(entry):
            return False
        return not self.delays_others(entry) or self._state.waiting.limit_of(entry) is not None

    def preview(self, entry: Entry) -> Preview | None:
        """Return the place that a job would get from running ones now; None if none may make room."""
        return self.preemptor.preview(entry) if self._may_displace(entry) else None

    def _by_rules(self, entry: Entry) -> bool:
        """Report whether only the filter rules of the policy decide whether a job fits."""
        return self._learnt(self._policy_of(entry.queue)).by_rules

    def _within_limits(
        self, batch: Sequence[Entry], places: Sequence[Sequence[Placement]]
    ) -> Iterator[tuple[int, int]]:
        """Yield the jobs of which only some placed replicas have room under the limits, with the number of these."""
        snapshot, tree = self._state.fleet.snapshot, self._state.tree
        for at, entry in enumerate(batch):
            if not entry.job.partial or len(places[at]) < 2:
                continue

            def has_room(number: int, entry: Entry = entry, placed: Sequence[Placement] = places[at]) -> bool:
                wanted = held_amounts(entry.job.demand, placed[:number], snapshot.device)
                return tree.hit(entry.owner, wanted, entry.id) is None

            within = next((each for each in range(len(places[at]), 1, -1) if has_room(each)), 1)
            if within < len(places[at]):
                yield at, within

    def _decision(
        self, entry: Entry, tried: _Tried, at: int, placements: tuple[Placement, ...], amounts: Amounts
    ) -> Decision:
        plan, profile, booking = tried.plan, tried.profile, tried.allocated[at]
        policy = profile.name
        now_ns = self._state.clock.now_ns()
        record = self._state.jobs[entry.id]
        clusters = tuple(dict.fromkeys(placement.cluster for placement in placements))
        nodes = tuple(dict.fromkeys(placement.node for placement in placements))
        where = f"{clusters[0]}/{nodes[0]}"
        if len(nodes) > 1:
            where = Reason("nodes_of", count=len(nodes), clusters=", ".join(clusters))
        decider = plan.deciders.get(at) or Decider(policy)
        by = {"policy": decider.name, "where": where} | ({"other": policy} if decider.name != policy else {})
        chose = "chose" if decider.name == policy else "chose_instead"
        why = Reason(chose, **by, why=decider.reason)
        message = "" if decider.reason else plan.messages.get(at, "")
        done = Reason("placed_on" if decider.name == policy else "placed_instead", **by)
        learned = entry.past.text if entry.past else ""
        number = record.attempt + 1
        attempt = Attempt(
            job_id=record.id,
            number=number,
            state=AttemptState.ASSUMED,
            spec=record.run_spec,
            policy=decider.name,
            placements=placements,
            created_ns=now_ns,
            expires_ns=now_ns + int(self._state.settings.confirm_s(len(placements)) * 1e9),
            why=also(why, message, *self._network(plan, at, clusters), learned),
            amounts=amounts,
        )
        attempt = of_size(attempt)
        queued = record if record.state is JobState.QUEUED else replace(record, state=JobState.QUEUED)
        job = moved(
            queued,
            JobState.SCHEDULED,
            also(done, waiting_text(record, len(placements))),
            now_ns,
            attempt=number,
            clusters=clusters,
            nodes=nodes,
            held_replicas=len(placements),
            not_before_ns=None,
        )
        self._state.bookings[record.id, number] = booking
        self._state.assumed[record.id, number] = attempt
        self._state.history.started(attempt, record.submitted_by)
        change = placed(record, job, attempt, ACTOR)
        return Decision(entry, booking, job, attempt, change, profile, tried.noted, at)

    def _network(self, plan: Plan, at: int, clusters: Sequence[str]) -> tuple[str, str]:
        """Return texts on the bandwidth between a job's clusters and on its data locality; empty if not applicable."""
        job, pulls = plan.queue.jobs[at], plan.pulls.get(at)
        data = "" if pulls is None else data_text(plan.snapshot, job.data, pulls, clusters)
        return self._reservation_text(job, clusters), data

    def _reservation_text(self, job: Job, clusters: Sequence[str]) -> str:
        """Return a reason on the ring of a job and the reserved bandwidth between its clusters; empty for none."""
        mbps = job.between_replicas.min_bandwidth_mbps
        if len(clusters) == 1:
            return ""
        if job.ring:
            ring = " → ".join([*clusters, clusters[0]])
            return (
                Reason("ring_with_bandwidth", clusters=ring, rate=rate_text(mbps))
                if mbps
                else Reason("ring", clusters=ring)
            )
        if not mbps:
            return ""
        gateways_by_cluster = {each.name: each.gateway for each in self._state.fleet.snapshot.clusters}
        ends = sorted({gateways_by_cluster[cluster] for cluster in clusters} - {""})
        return Reason("bandwidth_between", rate=rate_text(mbps), gateways=", ".join(ends)) if len(ends) > 1 else ""


def _numbered(placements: tuple[Placement, ...], job: Entry, booking: Allocation) -> tuple[Placement, ...]:
    """Return the placed replicas of a job that starts in part, numbered after the completed ones, as its allocation."""
    if not job.spec.starts_in_part:
        return placements
    rows = np.flatnonzero(booking.decisions[:, PLAN_NODE] >= 0)
    booking.decisions[rows, PLAN_REPLICA] = job.completed + np.arange(len(rows))
    return tuple(replace(each, replica=job.completed + at) for at, each in enumerate(placements))


def _placements(plan: Plan, job: int) -> tuple[Placement, ...]:
    return tuple(plan.placement(int(row)) for row in plan.rows_of(job) if plan.placed[row])


def make_fallback(name: str, why: str, mix: Sequence[Job]) -> Profile:
    """Create the fallback for a policy that cannot be used."""
    return make_unusable(name, why, PolicyOptions(mix=mix), Limits(), NullWatch())


class Refused:
    """Requests that did not fit since capacity was last released.

    Parameters
    ----------
    live
        The control-plane state.
    """

    def __init__(self, live: ControlState) -> None:
        self._state = live
        self._version = -1
        self._infeasible = InfeasibilityCache()
        self._infeasible_by_all = InfeasibilityCache()

    def note(self, entries: Iterable[Entry], by_all: bool) -> None:
        """Record rejected jobs; `by_all` if they could use capacity reserved for others."""
        self._follow()
        for each in entries:
            if each.kind.alone:
                self._infeasible.add(each.kind.rules, each.kind.asked)
                if by_all:
                    self._infeasible_by_all.add(each.kind.rules, each.kind.asked)

    def covers(self, entry: Entry, *, by_all: bool) -> bool:
        """Report whether no replica of a job fits; `by_all` if it could use capacity reserved for others."""
        self._follow()
        known = self._infeasible_by_all if by_all else self._infeasible
        return known.is_infeasible(entry.kind.rules, entry.kind.asked)

    def _follow(self) -> None:
        """Clear the cache if capacity was released."""
        if self._version != self._state.fleet.version:
            self._version = self._state.fleet.version
            self._infeasible.clear()
            self._infeasible_by_all.clear()
