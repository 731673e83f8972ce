"""The scheduling cycle: which waiting jobs start now, where, and which running ones make room.

1. Take: the next jobs in the order of their queues, as far as limits have room (`waiting.py`).
2. Narrow: a job leaves GPU models to others that have a claim on them (`shares.py`).
3. Fit: the policy of the queue places the jobs, one after another (`fit.py`).
4. Keep order: the run ends where a job would pass an earlier one and may not.
5. Admit: the exact amounts count in the queue, its parents and the quota, if all limits have room.
6. Reserve: the first job that does not fit gets the earliest place that will be free (`reserve.py`).
7. Displace: after all were tried, jobs that did not fit make others end or shrink (`displace.py`).
8. Resize: elastic jobs grow into what is left, or give back (`resize.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from seaway.domain.amounts import Amounts, held_amounts
from seaway.domain.attempt import Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import AttemptState
from seaway.domain.placement import Placement
from seaway.domain.queues import Backfill
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.cycle.deferral import Deferral
from seaway.scheduling.cycle.displace import Claim, Preemptor, Preview
from seaway.scheduling.cycle.fit import Fit, Policies, RunPlan, Watch, watch_nothing
from seaway.scheduling.cycle.infeasible import InfeasibleKinds
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.reserve import Reservations
from seaway.scheduling.cycle.shares import ModelShares
from seaway.scheduling.cycle.state import State
from seaway.scheduling.framework import Decider
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import LimitHit

LONGEST_NS = 25_000_000
"""Nanoseconds of scheduling after which other threads can acquire the lock. A started batch is completed."""


@dataclass(frozen=True, slots=True)
class Start:
    """A job that starts.

    Attributes
    ----------
    attempt
        The new attempt.
    booking
        Its allocation.
    plan, at
        Plan that has the job, and its number in it.
    profile
        Profile of the policy that decided.
    notes
        What is recorded about the plan.
    """

    entry: Entry
    attempt: Attempt
    booking: Allocation
    plan: Plan
    at: int
    profile: Profile
    notes: object = None


class Cycle:
    """Decisions about the jobs of a state. The state changes with each of them.

    Parameters
    ----------
    watch
        Called with each run of jobs before it is tried.
    rehearses
        Whether nothing that it decides is done, so that plugins keep nothing.

    Attributes
    ----------
    decided
        Number of jobs that were tried since the start.
    """

    def __init__(
        self, state: State, policies: Policies, watch: Watch = watch_nothing, *, rehearses: bool = False
    ) -> None:
        self._state = state
        self._policies = policies
        self._model_shares = ModelShares(state)
        self.reservations = Reservations(state, policies.profile, self._model_shares)
        self._refused = InfeasibleKinds(state, self.reservations)
        self.preemptor = Preemptor(state, self.reservations, policies.profile)
        self.deferral = Deferral(state.clock.monotonic_ns, state.settings.max_deferral_s)
        self._fit = Fit(state, policies, self.reservations, self.deferral, watch, rehearses)
        self.decided = 0
        self._passes = False  # whether a pass over all jobs is not at its end
        self._offered = set[str]()  # jobs that were tried in this pass to get a reservation
        self._planned: Mapping[str, int | None] = {}
        self._longest = 1  # run that is worth a try, since the jobs behind one that does not fit are put back

    def fork(self, state: State, policies: Policies) -> Cycle:
        """Return the same cycle in a copy of the state. Nothing that it decides is done, so plugins keep nothing."""
        twin = copy(self)
        twin._unshare(state, policies)  # noqa: SLF001  # of this class
        return twin

    def _unshare(self, state: State, policies: Policies) -> None:
        self._state, self._policies = state, policies
        self._model_shares = self._model_shares.fork(state)
        self.reservations = self.reservations.fork(state, self._model_shares, policies.profile)
        self._refused, self._offered = InfeasibleKinds(state, self.reservations), self._offered.copy()
        self.preemptor = self.preemptor.fork(state, self.reservations, policies.profile)
        self.deferral = self.deferral.fork(state.clock.monotonic_ns)
        self._fit = Fit(state, policies, self.reservations, self.deferral, rehearses=True)

    def begin(self) -> None:
        """Begin a cycle: follow what has changed since the last one.

        If the fleet changed, a pass over all jobs begins, also if some have just arrived. One that is not at its end
        continues, and the next one begins with the first job. Otherwise the last jobs would never be tried.
        """
        state, waiting = self._state, self._state.waiting
        if not self.reservations.current():
            self.reservations.drop_all()
            self.preemptor.forget()
        self.reservations.review()
        self.preemptor.restore()
        self.preemptor.drop_changes()
        if state.seen_version != state.fleet.version and (waiting.idle or not self._passes):
            state.seen_version = state.fleet.version
            self._begin_pass()
            self._model_shares.begin()
        if self.deferral.due(waiting.entries()):
            self._begin_pass()
        self._model_shares.renew()

    def _begin_pass(self) -> None:
        """Let all jobs be tried, except those that certainly do not fit."""
        self._passes = True
        self.reservations.drop_heads()
        self._offered = {each.id for each in self.reservations.renew_heads()}
        self._state.waiting.try_all(self._rejects_in, self._ends_in_time)

    def due_ns(self) -> Iterator[int]:
        """Yield monotonic times at which jobs may be decided otherwise although nothing has ended by then."""
        yield from self.preemptor.due_ns()
        yield from self.reservations.due_ns()
        if self.deferral.due_ns is not None:
            yield self.deferral.due_ns

    def is_planned(self, queue: str) -> bool:
        """Report whether jobs of a queue start in the order of a plan, because an earlier one does not fit."""
        return self._state.backfill_of(queue) is Backfill.CONSERVATIVE and self._state.waiting.passes_over(queue)

    def use_plan(self, planned: Mapping[str, int | None], queues: Iterable[str]) -> None:
        """Use planned wall-clock starts by job ID, and retry the jobs of the queues that they concern.

        Parameters
        ----------
        planned
            Times in nanoseconds since 1970; None for an unknown one.
        queues
            Queues with conservative backfill.
        """
        self._planned = planned
        for queue in filter(self.is_planned, queues):
            self._state.waiting.try_queue(queue)

    def delays_others(self, entry: Entry) -> bool:
        """Report whether the start of a job could delay the planned start of an earlier job of its queue."""
        return self.is_planned(entry.queue) and not self._planned_now(entry)

    def _planned_now(self, entry: Entry) -> bool:
        """Report whether the planned start of a job has come, or others have ended for it."""
        if self._wins(entry):
            return True
        starts_ns = self._planned.get(entry.id)
        return starts_ns is not None and starts_ns <= self._state.clock.now_ns()

    def next(self) -> list[Start]:
        """Decide about some waiting jobs, each beside those before it; allocate those that fit, and put others back.

        The number of jobs that are decided in a call has no effect on any of them. An empty list means that no tried
        job fits; the next call continues with the others.
        """
        waiting, settings = self._state.waiting, self._state.settings
        until_ns = self._state.clock.monotonic_ns() + LONGEST_NS
        tried = 0
        starts: list[Start] = []
        while tried < settings.max_tried_per_cycle and len(starts) < settings.batch_size:
            self._model_shares.advance()
            most = 1 if self._model_shares.divides else min(self._longest, settings.batch_size - len(starts))
            offers = self._offer_heads()
            run = waiting.take(  # 1. Take
                most,
                self._alike,
                self._is_infeasible,
                self.preemptor.may_ask,
                self._ends_in_time,
                last=self.reservations.awaits,
            )
            tried += len(run)
            if left := self._left_to_others(self._known(run)):  # 2. Narrow
                starts += (started := self._decide(left))
                whole = len(started) == len(run)
                self._longest = min(2 * self._longest, settings.batch_size) if whole else max(1, len(started))
            if not run:
                self.reservations.drop_heads()  # the first jobs may have met a limit
            if not (run or offers) or self._state.clock.monotonic_ns() >= until_ns:
                break
        if waiting.idle:
            self._passes = False
            self._model_shares.end()
        return starts

    def claims(self) -> list[Claim]:
        """Return the claims of jobs that did not fit, after all were tried (7. Displace); see `Preemptor.claims`."""
        aside = {each.id: each for each in (*self._state.waiting.take_blocked(), *self.preemptor.set_aside())}
        self.preemptor.ask(aside.values(), self._may_displace)
        return self.preemptor.claims()

    def _alike(self, entry: Entry) -> tuple[str, str, bool, str, str]:
        """Return a key of jobs that are decided together: same policy without chance, same visible reservations."""
        queue = self._state.queues.get(entry.queue)
        challenged = entry.queue if queue and queue.shadow else ""
        policy = queue.policy_spec if queue else ""
        alone = entry.id if self._policies.profile(entry.queue).draws else ""
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

    def _decide(self, left: Mapping[Entry, frozenset[str]]) -> list[Start]:
        """Decide about a run of jobs, of which each leaves some GPU models to others.

        The run ends where a decision could depend on a job that does not fit. The jobs behind are put back.
        """
        run = [*left]
        for entry in run:
            self._state.tree.withdraw(entry.next_attempt)
        tried = self._fit.place(run, left)  # 3. Fit
        self.decided += len(run)
        end = self._end_of_certainty(run, tried)  # 4. Keep order
        head = self.reservations.head_of(
            run[:end], [fit or at in tried.spared for at, fit in enumerate(tried.fits[:end])]
        )
        end = self._end_of_strict_order(run[: end if head is None else head + 1], tried.fits)
        self.deferral.note(run[:end], {at: why for at, why in tried.plan.deferred.items() if at < end})
        places = self._fit.places(run, tried, end)
        amounts, hit, end = self._hold(run, places, end)  # 5. Admit
        self._fit.undo(run, tried, end)
        starts = []
        for at in range(end):
            if tried.fits[at]:
                starts.append(self._start(run[at], tried, at, places[at], amounts[at]))
                self.deferral.placed(run[at])
                self.reservations.release_placed(run[at].id)
        self._state.started += len(starts)
        unplaced = [at for at in range(end) if not tried.fits[at]]
        self._state.waiting.put_back([*run[end:], *(run[at] for at in unplaced)])
        if hit and not end:
            self._state.waiting.limit(run[0], hit)
        if not starts:
            self._model_shares.give_back()
        narrowed = [run[at] for at in unplaced if tried.plan.queue.jobs[at] is not run[at].job]
        self._refuse([run[at] for at in unplaced], narrowed)
        self._model_shares.defer(run[at] for at in unplaced if left[run[at]])
        self.preemptor.ask(run[at] for at in unplaced if at not in tried.spared)
        if head is not None and head < end:
            self.reservations.make(run[head])  # 6. Reserve
        if any(map(self.reservations.awaits, run[:end])):
            self.reservations.drop_heads()
        if starts or head is not None:
            self._refused.note_less()
        return starts

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
        if rejected and self._policies.by_rules(rejected[0].queue):
            passes, profile = self.reservations.may_pass(rejected[0]), self._policies.profile(rejected[0].queue)
            self._refused.note([entry.kind for entry in rejected if entry not in narrowed], profile, passes)

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

    def _end_of_certainty(self, run: Sequence[Entry], tried: RunPlan) -> int:
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
        if self._policies.unready(entry.queue) or self.delays_others(entry):
            return True
        if self.reservations.awaits(entry) or not self._policies.by_rules(entry.queue):
            return False
        return self._lacks_room(entry, self._policies.profile(entry.queue))

    def _rejects_in(self, queue: str) -> Callable[[Entry], bool] | None:
        """Return which jobs of a queue certainly do not fit in this pass, and need not be tried; None for none."""
        if not self._policies.by_rules(queue) or self._state.backfill_of(queue) is Backfill.CONSERVATIVE:
            return None
        profile, offered = self._policies.profile(queue), self._offered
        return lambda entry: self._lacks_room(entry, profile) and entry.id not in offered

    def _lacks_room(self, entry: Entry, profile: Profile) -> bool:
        """Report whether a job certainly does not fit."""
        if self._refused.covers(entry.kind, profile, by_all=True):
            return True
        if not self._refused.covers(entry.kind, profile, by_all=False):
            return False
        return not self.reservations.may_pass(entry) and not self.reservations.own(entry)

    def _ends_in_time(self, entry: Entry) -> bool:
        """Report whether a job without a reservation may use the reserved capacity of others, since it ends in time.

        It does not matter whether jobs do that wait for the second pass of `ModelShares`.
        """
        if self._model_shares.waits(entry):
            return True
        return not self.reservations.own(entry) and self.reservations.may_pass(entry)

    def _offer_heads(self) -> bool:
        """Let the first job of each pool be tried, also if it certainly does not fit, so that it gets a reservation.

        Report whether there is another one than before.
        """
        heads = [each for each in self.reservations.renew_heads() if each.id not in self._offered]
        for head in heads:
            self._offered.add(head.id)
            self._state.waiting.offer(head)
        return bool(heads)

    def _may_displace(self, entry: Entry) -> bool:
        """Report whether a job that was set aside without a try may displace others now."""
        if self._policies.unready(entry.queue) or self._model_shares.waits(entry) or self.deferral.why(entry.kind):
            return False
        if self._state.waiting.is_behind(entry):
            return False
        return not self.delays_others(entry) or self._state.waiting.limit_of(entry) is not None

    def preview(self, entry: Entry) -> Preview | None:
        """Return the place that a job would get from running ones now; None if none may make room."""
        may = self.preemptor.is_requested(entry.id) or self._may_displace(entry)
        return self.preemptor.preview(entry) if may else None

    def _start(
        self, entry: Entry, tried: RunPlan, at: int, placements: tuple[Placement, ...], amounts: Amounts
    ) -> Start:
        """Count a job as started. Its attempt is about to be stored."""
        decider = tried.plan.deciders.get(at) or Decider(tried.profile.name)
        attempt = Attempt(
            job_id=entry.id,
            number=entry.attempt + 1,
            state=AttemptState.ASSUMED,
            spec=entry.run_spec,
            policy=decider.name,
            placements=placements,
            created_ns=self._state.clock.now_ns(),
            expires_ns=0,
            amounts=amounts,
        ).sized()
        self._state.assume(entry, attempt, tried.allocated[at])
        return Start(entry, attempt, tried.allocated[at], tried.plan, at, tried.profile, tried.noted)

    def give_back(self, start: Start) -> None:
        """Undo the start of a job."""
        snapshot = self._state.fleet.snapshot
        self._state.withdraw((start.entry.id, start.attempt.number))
        start.booking.release(snapshot)
        self._fit.unreserve(start.profile, start.entry, start.attempt.placements)
        self._state.fleet.version += 1
