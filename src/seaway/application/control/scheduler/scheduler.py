"""The scheduling cycle in the control loop: policies of queues, and decisions that are ready to be stored."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seaway.application.changes import Change, Outcome
from seaway.application.control.rejections import Due
from seaway.application.control.scheduler.changes import ACTOR
from seaway.application.control.scheduler.compile_readiness import CompileReadiness
from seaway.application.control.scheduler.score_breakdown import ScoreBreakdown, ScoreRecorder
from seaway.application.control.scheduler.shadow import Shadows
from seaway.application.control.scheduler.waiting_reasons import WaitingReasons
from seaway.application.control.stages import Stage
from seaway.application.control.state import ControlState
from seaway.application.transitions import blocked, moved, placed, stepped, waiting_text
from seaway.domain.attempt import Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.queues import Backfill, policy_text
from seaway.domain.reasons import Reason, also
from seaway.domain.units import rate_text
from seaway.learning.policies.make import make_unusable
from seaway.learning.policies.monitor import Limits, NullWatch
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.binding import bind, post_bind
from seaway.scheduling.cycle.cycle import Cycle, Start
from seaway.scheduling.cycle.fit import Notes
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.plan import PlannedStart
from seaway.scheduling.cycle.resize import Resizer
from seaway.scheduling.data_locality import data_text
from seaway.scheduling.framework import PASS, Decider
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import QueueTree

log = logging.getLogger(__name__)

ProfileFactory = Callable[[str, Sequence[Job]], Profile]
"""Factory of a profile by policy name, for a mix of past jobs."""

FallbackFactory = Callable[[str, str, Sequence[Job]], Profile]
"""Factory of a fallback: name of the policy, reason why it cannot be used, and a mix of past jobs."""

DEFAULT_POLICY = "bestfit"
"""Policy of queues that specify none."""

MIN_TO_LEARN = 20
"""Minimum number of past jobs from which a policy learns. It learns again whenever the number has doubled."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A job that starts, as it is stored.

    Attributes
    ----------
    refusal
        Reason why a plugin refused to bind the job; empty if none did.
    """

    start: Start
    job: JobRecord
    attempt: Attempt
    change: Change
    refusal: str = ""


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
class LearntProfile:
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
    make_fallback
        Factory of the fallback for policies that cannot be used.
    """

    def __init__(self, live: ControlState, make: ProfileFactory) -> None:
        self._state = live
        self.readiness = CompileReadiness()
        self._warmed = (0, 0)
        self._queues = _OfQueues(live.tree, -1)
        self._make = make
        self.make_fallback: FallbackFactory = make_fallback
        self._profiles: dict[str, LearntProfile] = {}
        self._renewals: Counter[str] = Counter()
        self._renewed = 0
        self._score_recorder = ScoreRecorder(live.clock)
        self.cycle = Cycle(live, self, self._watch)
        self.reservations, self.deferral = self.cycle.reservations, self.cycle.deferral
        self.preemptor, self.resizer = self.cycle.preemptor, Resizer(live, live, self.profile, self.unready)
        self.shadows = Shadows(live)
        self.reasons = WaitingReasons(live, self, self.reservations, self.deferral, self.preemptor.victims_for)
        self.tally = Tally()
        self._planned: Mapping[str, PlannedStart] = {}
        self._refusals: Counter[str] = Counter()

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

    def by_rules(self, queue: str) -> bool:
        """Report whether only the filter rules of a queue's policy decide whether a job fits."""
        return self.learnt(self._policy_of(queue)).by_rules

    def policy(self, name: str) -> Profile:
        """Return the profile of a policy by name, adapted to recent jobs."""
        return self.learnt(name).profile

    def renew(self, name: str) -> None:
        """Create the profile of a changed policy again. Calls from any thread are allowed, but not concurrent ones."""
        self._renewals[name] += 1
        self._renewed += 1
        self.readiness.forget(name)

    def unready(self, queue: str) -> str:
        """Return the reason why jobs of a queue are not tried yet; empty if they are."""
        return self.unready_policy(self._policy_of(queue))

    def unready_policy(self, name: str) -> str:
        """Return the reason why jobs with a policy are not tried yet; empty if they are."""
        return "" if self.readiness.has(name) else Reason("policy_not_ready", policy=policy_text(name))

    def policy_of(self, queue: str) -> str:
        """Return the name of a queue's policy with its options, as in `Queue.policy_spec`. Thread-safe."""
        return self._policy_of(queue)

    def _policy_of(self, queue: str) -> str:
        known = self._state.queues.get(queue)
        return known.policy_spec if known else DEFAULT_POLICY

    def learnt(self, name: str) -> LearntProfile:
        """Return the profile of a policy by name, adapted to recent jobs."""
        mix_version = self._state.taken_in // MIN_TO_LEARN
        mix_version = 0 if not mix_version else mix_version.bit_length()
        known, renewals = self._profiles.get(name), self._renewals[name]
        if known is None or (known.mix_version, known.renewals) != (mix_version, renewals):
            profile = self._made_or_fallback(name)
            known = self._profiles[name] = LearntProfile(
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
        """Begin a cycle; see `Cycle.begin`."""
        state = self._state
        self._warm_up()
        state.renew_capacities()
        state.decay_usage()
        self.cycle.begin()
        state.fleet.forget_demands([*state.bookings.values(), *self.reservations.bookings()])

    def needs_plan(self) -> bool:
        """Report whether jobs wait whose start depends on the planned starts of earlier ones."""
        return any(map(self.cycle.is_planned, self._of_queues().planned))

    def use_plan(self, planned: Mapping[str, PlannedStart]) -> None:
        """Use a plan, and retry the jobs that it concerns if it is a new one."""
        if planned is not self._planned:
            self._planned = planned
            self.cycle.use_plan({job_id: each.starts_ns for job_id, each in planned.items()}, self._of_queues().planned)

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
        return self.cycle.delays_others(entry)

    def _watch(self, run: Sequence[Entry]) -> Notes:
        """Compare the decisions about a run of jobs with those of its challenger, and record their scores."""
        challenger = self.shadows.challenger(run[0])
        before = self.shadows.before(run) if self.readiness.has(challenger) else None

        def note(plan: Plan, allocated: Sequence[Allocation]) -> ScoreBreakdown | None:
            profile = self.profile(run[0].queue)
            if before is not None:
                self.shadows.compare(before, run, plan, profile, self.policy(challenger))
            if not plan.jobs_placed.any():
                return None
            return self._score_recorder.open(plan.snapshot, plan.queue, allocated, profile)

        return note

    def next(self) -> list[Decision]:
        """Decide about some waiting jobs; see `Cycle.next`."""
        began_ns, before = self._state.clock.monotonic_ns(), self.cycle.decided
        decisions = [self._decision(each) for each in self.cycle.next()]
        self.tally.decided = self.cycle.decided
        if self.cycle.decided > before:
            self._state.stages.took(Stage.DECIDE, began_ns)
        return decisions

    def annotate(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Add the scores that decided, if the decisions are few; needs no lock.

        This precedes the storage of a decision, so that both are stored together. A failed breakdown is omitted, since
        jobs do not wait for explanations.
        """
        noted = []
        for each in reversed(decisions):
            try:
                notes = each.start.notes
                said = notes.of(each.start.at, each.attempt.placements) if isinstance(notes, ScoreBreakdown) else ""
            except Exception:
                log.exception("the scores of %s could not be recorded", each.job.id)
                said = ""
            attempt = replace(each.attempt, why=also(each.attempt.why, said)) if said else each.attempt
            change = placed(self._state.jobs[each.job.id], each.job, attempt, ACTOR)
            noted.append(replace(each, attempt=attempt, change=change, start=replace(each.start, notes=None)))
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
            profile = each.start.profile
            status = bind(profile, each.attempt.placements) if profile.binds else PASS
            if status.passes:
                bound.append(each)
            else:
                refused.append(replace(each, refusal=status.reason or "a plugin refused to bind it"))
        return bound, refused

    def post_bind(self, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> None:
        """Call the PostBind plugins for stored decisions; needs no lock."""
        for decision, outcome in zip(decisions, outcomes, strict=True):
            if outcome is Outcome.STORED:
                post_bind(decision.start.profile, decision.attempt.placements)

    def send_back(self, refused: Sequence[Decision]) -> list[Change]:
        """Release the allocations that plugins refused to bind, and retry the jobs after a pause."""
        now_ns, changes = self._state.clock.now_ns(), []
        for each in refused:
            self.cycle.give_back(each.start)
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

    def settle(self, decisions: Sequence[Decision], outcomes: Sequence[Outcome]) -> None:
        """Release decisions that were not stored because a user changed the job."""
        for decision, outcome in zip(decisions, outcomes, strict=True):
            if outcome is Outcome.STORED:
                self.tally.placed[decision.attempt.policy] += 1
                self._refusals.pop(decision.job.id, None)
            else:
                self.tally.conflicts += 1
                self.cycle.give_back(decision.start)
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

    def _decision(self, start: Start) -> Decision:
        """Return a start with the job, the attempt, and the reasons that are stored."""
        entry, plan, placements = start.entry, start.plan, start.attempt.placements
        record, now_ns, policy = self._state.jobs[entry.id], start.attempt.created_ns, start.profile.name
        clusters = tuple(dict.fromkeys(placement.cluster for placement in placements))
        nodes = tuple(dict.fromkeys(placement.node for placement in placements))
        where = f"{clusters[0]}/{nodes[0]}"
        if len(nodes) > 1:
            where = Reason("nodes_of", count=len(nodes), clusters=", ".join(clusters))
        decider = plan.deciders.get(start.at) or Decider(policy)
        by = {"policy": decider.name, "where": where} | ({"other": policy} if decider.name != policy else {})
        chose = "chose" if decider.name == policy else "chose_instead"
        why = Reason(chose, **by, why=decider.reason)
        message = "" if decider.reason else plan.messages.get(start.at, "")
        done = Reason("placed_on" if decider.name == policy else "placed_instead", **by)
        learned = entry.past.text if entry.past else ""
        attempt = replace(
            start.attempt,
            expires_ns=now_ns + int(self._state.settings.confirm_s(len(placements)) * 1e9),
            why=also(why, message, *self._network(plan, start.at, clusters), learned),
        )
        queued = record if record.state is JobState.QUEUED else replace(record, state=JobState.QUEUED)
        job = moved(
            queued,
            JobState.SCHEDULED,
            also(done, waiting_text(record, len(placements))),
            now_ns,
            attempt=attempt.number,
            clusters=clusters,
            nodes=nodes,
            held_replicas=len(placements),
            not_before_ns=None,
        )
        return Decision(start, job, attempt, placed(record, job, attempt, ACTOR))

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


def make_fallback(name: str, why: str, mix: Sequence[Job]) -> Profile:
    """Create the fallback for a policy that cannot be used."""
    return make_unusable(name, why, PolicyOptions(mix=mix), Limits(), NullWatch())
