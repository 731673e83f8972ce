"""Dry runs on a copy of the live fleet: placement of a job, and the reasons if it does not fit."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from seaway.application.control.advance_reservations import closed_places
from seaway.application.control.loop import Controller
from seaway.application.control.rejections import NEVER_REFUSED
from seaway.application.control.scheduler.changes import makers, preview_text
from seaway.application.control.scheduler.forks import copy_of
from seaway.application.control.scheduler.score_breakdown import MAX_NODES as MAX_COMPARED
from seaway.application.control.scheduler.score_breakdown import why_chosen
from seaway.application.control.scheduler.waiting_reasons import BEHIND, DELAYS, Why
from seaway.application.views import Choice, DryRun, Reason, RoomMaker, Sees
from seaway.application.whatif.advice import holders, limit_to_raise, queues_with_room
from seaway.application.whatif.limitations import MAX_NAMED, Usable, usable
from seaway.domain import reasons
from seaway.domain.amounts import held_amounts, requested_amounts
from seaway.domain.attempt import Attempt
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.network import Link
from seaway.domain.placement import Candidate, Explanation, Placement, Refusal, Remedy
from seaway.domain.reasons import Params
from seaway.domain.tenancy import unknown_name
from seaway.scheduling.arrays import Int32, Int64
from seaway.scheduling.columns import (
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_CORE_STEPS,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_MEMORY_STEP,
    DEVICE_OPEN,
    DEVICE_SLOTS,
    DEVICE_SLOTS_FREE,
    EVEN_SHARES,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_MEMORY_FREE,
)
from seaway.scheduling.cycle.displace import Preview
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.engine import trial_placements
from seaway.scheduling.explain import MAX_CANDIDATES, Keeper, explain, remedies, remedies_text, summary, verified
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.discipline import SortKey
from seaway.scheduling.queueing.model_shares import without_models
from seaway.scheduling.queueing.tree import LimitHit, Owner
from seaway.scheduling.refusals import CAPACITY_RULES, Mend, mend_of
from seaway.scheduling.shortage import shortage
from seaway.scheduling.snapshot.encode import kind_allowed
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.snapshot import Snapshot

_MORE = {
    "delays_earlier_jobs": reasons.Reason("but", what=DELAYS),
    "behind_earlier_jobs": reasons.Reason("but", what=BEHIND),
    "to_be_decided": reasons.Reason("to_be_decided"),
}
"""Ends of the reasons of jobs that fit, by code."""

PRICE_STEP = 100
"""Smallest difference of prices of slices, millionths of the currency unit."""

MAX_ROOM = 10_000
"""Upper bound of the replica count of a node."""

AVOIDED = "avoid_uuids"
"""Field of a demand with the devices to avoid."""

ORDER_CACHE_NS = 2_000_000_000
"""Maximum age of the queue order used for positions, nanoseconds."""

EXPLANATIONS_CACHE_NS = 10_000_000_000
"""Maximum age of explanations, nanoseconds."""

LISTED_FACTOR = 20
"""Lists show explanations of an earlier fleet that are at most this many times as old as all of them took to make."""

MAX_LISTED_NS = 5_000_000_000
"""Maximum age of these, nanoseconds."""

ADVISED = frozenset(
    {
        "queue_limit",
        "user_quota",
        "tenant_quota",
        "lending_limit",
        "model_limit",
        "no_node_fits",
        "insufficient_capacity",
        "reserved_for_others",
        "reserved",
    }
)
"""Codes of reasons with advice."""

MAX_LOOK_NS = 250_000_000
"""Time for the jobs of a schedule, nanoseconds."""

MAX_ROUNDS = 4
"""Number of rounds of decisions on a copy before the answer is that a job has still to be decided."""

MAX_KNOWN = 1024
"""Maximum number of cached explanations, unless more are newer than `EXPLANATIONS_CACHE_NS`."""

SWEEP_NS = 60_000_000_000
"""Interval at which old explanations are dropped, nanoseconds."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Cached explanation of waiting jobs.

    Attributes
    ----------
    short
        Shortage of replicas that are needed together; empty for none.
    tried
        Whether remedies were tried.
    state
        State of the fleet.
    made_ns, took_ns
        Time at which it was made, and how long that took.
    """

    explanation: Explanation
    short: str
    tried: bool
    state: tuple[int, int, int]
    made_ns: int
    took_ns: int


class _Present(NamedTuple):
    """Present reason of a waiting job.

    Attributes
    ----------
    text
        One clause, which lists show.
    room_from
        Jobs that make room for it.
    """

    code: str
    params: Params
    text: str
    explanation: Explanation | None
    room_from: tuple[RoomMaker, ...]

    @property
    def message(self) -> str:
        """The reason as a sentence on the job, with the first change that would admit it."""
        said = self.text if self.text.startswith("waits") else reasons.Reason("waits", why=self.text)
        found = self.explanation.remedies[:1] if self.explanation else ()
        return reasons.also(said, remedies_text(found)) if found else said


class _Rehearsal(NamedTuple):
    """Decision of the next cycle about a job.

    Attributes
    ----------
    snapshot
        Copy of the fleet.
    placements
        Places of a job that starts.
    hit
        Limit that has no room for it.
    behind
        Whether it waits for earlier jobs of a queue without backfill.
    preview
        Place that it would get from running jobs.
    open
        Whether it has still to be decided: the plan of its queue lacks it, or many jobs are before it.
    """

    snapshot: Snapshot
    placements: tuple[Placement, ...] = ()
    hit: LimitHit | None = None
    behind: bool = False
    preview: Preview | None = None
    open: bool = False


class DryRuns:
    """Dry runs and explanations on copies of the live fleet."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._copy: tuple[tuple[int, int, int], Snapshot, Snapshot] | None = None  # without and with reservations
        self._known: dict[Hashable, _Known] = {}  # of waiting jobs
        self._took_ns = self._swept_ns = 0
        self._copying = threading.Lock()
        self._orders: tuple[int, dict[tuple[str, str], list[SortKey]]] = (-ORDER_CACHE_NS, {})

    def dry_run(self, spec: JobSpec, user: str = "", sees: Sees = lambda _: True) -> DryRun:
        """Place a job with the policy of its queue on a copy of the fleet, or where the control loop would make room.

        Parameters
        ----------
        user
            User who would submit it; empty to ignore quotas of users.
        sees
            Tenants whose jobs are named.

        Raises
        ------
        RejectedError
            If the job names a gateway that the fleet does not have.
        UnavailableError
            While the policy is being compiled, or the state is being reloaded.
        """
        scheduler = self._controller.scheduler
        known = self._controller.names.queues.get(spec.queue)  # the loop may not have applied it yet
        policy = known.policy_spec if known else scheduler.policy_of(spec.queue)
        scheduler.readiness.require(policy)
        self._seen(spec, "this job", policy)  # rejects unknown gateways
        tried = self._rehearse(spec, user)
        with self._copying:
            _, profile, job = self._stage(spec, "this job", policy)
            usable = self._usable(job, spec, user)
            snapshot = usable.snapshot
            explanation = explain(
                snapshot, usable.job, profile, most=MAX_COMPARED, limitations=usable.limitations, closed=self._closed()
            )
            twin, placements, hit, behind, preview, undecided = tried
            because = why_chosen(snapshot, usable.job, profile, placements, explanation.candidates)
            explanation = replace(explanation, candidates=_shown(explanation.candidates, placements))
            if preview:
                placements = preview.placements
            if not placements and not behind:
                found = self._remedies(usable, spec, user, job, profile)
                explanation = replace(explanation, remedies=found)
            prices = [
                microprice(twin, job, each.cluster, twin.node_index[each.cluster, each.node]) for each in placements
            ]
            priced = [each for each in prices if each is not None]
            price = sum(priced) if priced and len(priced) == len(prices) else None
            chosen = {(each.cluster, each.node) for each in placements}
            choices = tuple(self._choice(snapshot, job, each, chosen) for each in explanation.candidates)
            short = "" if placements or behind else self._shortage(usable, job, profile)
        waits = explanation.fits and not hit and not explanation.deferral_reason
        said = summary(explanation, short if waits else "")
        if placements and len(placements) < job.replicas:
            said = reasons.also(said, reasons.Reason("some_start", count=len(placements), replicas=job.replicas))
        room_from = tuple(each.shown_to(sees) for each in self._makers(preview)) if preview else ()
        if room_from:
            said = preview_text(room_from)
        elif hit:
            said = reasons.also(said, reasons.Reason("but", what=hit.message))
        elif behind:
            said = reasons.also(said, _MORE["behind_earlier_jobs"])
        elif undecided and not placements:
            said = reasons.also(said, _MORE["to_be_decided"])
        return DryRun(
            profile.name,
            bool(placements),
            said,
            choices,
            placements,
            explanation,
            price,
            placement_reason=because,
            room_from=room_from,
            room_within_s=preview.within_s if preview else 0,
        )

    def _rehearse(self, spec: JobSpec, user: str) -> _Rehearsal:
        """Submit a job to a copy of the control loop, and run its next cycle there."""
        with self._controller.lock:
            self._controller.require_read()
            entry = self._submitted_now(spec, user)
            live, names = self._controller.live, self._controller.names
            ahead = copy_of(live, self._controller.scheduler, self._controller.lock).ahead
            fork, cycle = ahead.fork, ahead.cycle
            if names.queues.get(spec.queue) != live.queues.get(spec.queue):  # it is stored, but not applied yet
                fork.use_queues(list(names.queues.values()), list(names.tenants.values()))
        fork.waiting.put(entry)
        cycle.begin()
        planned = ahead.use_plan()
        for _ in range(MAX_ROUNDS):
            if start := next((each for each in cycle.next() if each.entry.id == entry.id), None):
                return _Rehearsal(fork.fleet.snapshot, start.attempt.placements)
            if fork.waiting.idle and (planned or not (planned := ahead.use_plan())):
                break
        behind = fork.waiting.is_behind(entry)
        preview = None if behind else cycle.preview(entry)
        undecided = not fork.waiting.idle or cycle.delays_others(entry)
        return _Rehearsal(fork.fleet.snapshot, (), fork.waiting.limit_of(entry), behind, preview, undecided)

    def _makers(self, preview: Preview) -> list[RoomMaker]:
        with self._controller.lock:
            return makers(self._controller.live, preview.victims)

    def _usable(self, job: Job, spec: JobSpec, user: str, raised: LimitHit | None = None) -> Usable:
        """Return the part of the fleet that a job may use. `_stage` sets the copies of the fleet."""
        with self._controller.lock:
            return usable(self._controller, self._free, self._reserved, job, spec, user, raised)

    def _remedies(self, usable: Usable, spec: JobSpec, user: str, job: Job, profile: Profile) -> tuple[Remedy, ...]:
        """Return the changes that admit a job that would wait, beside what others hold and within all limits."""

        def admits(copy: Snapshot, changed: Job) -> tuple[Placement, ...]:
            return self._placed(copy, spec, user, changed, profile, overdue=True)[0]

        found = remedies(usable.snapshot, job, profile, admits)
        if usable.within_s is None:
            return found
        short = replace(spec, expected_duration_s=None, time_limit_s=usable.within_s)
        alike = self._usable(job, short, user).snapshot
        placements = self._placed(alike, short, user, job, profile, overdue=True)[0]
        limited = [verified("time_limit_s", spec.time_limit_s or 0, usable.within_s, placements)] if placements else []
        return (*limited, *found)

    def _placed(
        self, snapshot: Snapshot, spec: JobSpec, user: str, job: Job, profile: Profile, *, overdue: bool = False
    ) -> tuple[tuple[Placement, ...], LimitHit | None]:
        """Place a job on a copy of the fleet, as the scheduler would.

        Returns
        -------
        tuple
            The placements, none if it does not fit, and the limit of its queues that has no room for it, if any.
        """
        requested = requested_amounts(job.demand, 1 if job.partial else job.replicas)
        tree = self._controller.live.tree
        owner = Owner(spec.queue, spec.tenant, user)
        with self._controller.lock:
            exhausted = tree.model_hits(owner, requested, job=job.name)
            hit = tree.hit(owner, requested, job.name)
            narrowed = self._controller.live.advance.narrow(job, spec)
        if hit:
            return (), hit
        asked = without_models(narrowed, exhausted, snapshot)
        placements = trial_placements(snapshot, asked, profile, overdue=overdue)
        if placements:
            with self._controller.lock:
                hit = tree.hit(owner, held_amounts(job.demand, placements, snapshot.device), job.name)
        elif exhausted:
            hit = next(iter(exhausted.values()))
        return () if hit else placements, hit

    def reason(
        self, job: JobRecord, attempt: Attempt | None, sees: Sees = lambda _: True, *, remedies: bool = True
    ) -> Reason:
        """Explain the state of a job; `attempt` is its latest. Jobs of tenants that `sees` reports are named."""
        found = self._reason(job, attempt, sees, remedies=remedies)
        if attempt is None:
            return found
        return replace(found, decided_ns=attempt.created_ns, end_reason=attempt.reason if job.state.waits else "")

    def _reason(self, job: JobRecord, attempt: Attempt | None, sees: Sees, *, remedies: bool) -> Reason:
        because = attempt.why if attempt else ""
        if job.state.waits:
            present, ahead = self._present(job, sees, remedies=remedies), self._ahead(job)
            return Reason(
                job,
                present.message,
                ahead + 1,
                ahead,
                (),
                because,
                present.explanation,
                present.code,
                present.params,
                room_from=present.room_from,
                why=present.text,
                advice=self._advice(job, present.explanation, sees) if remedies and present.code in ADVISED else (),
            )
        why = self.text(job)
        said = reasons.Reason("in_state", state=job.state.value, why=why)
        if not job.state.placed:
            return Reason(job, said, 0, 0, (), because, None, "finished", why=why)
        explanation = None
        if not self._controller.scheduler.unready(job.spec.queue):
            with self._copying:
                explanation = self._explained_placed(job)
        placements = attempt.placements if attempt else ()
        return Reason(job, said, 0, 0, placements, because, explanation, "placed", why=why)

    def _advice(self, job: JobRecord, explanation: Explanation | None, sees: Sees) -> tuple[str, ...]:
        """Return what would let a job start beside changes of its request, and who holds what it waits for."""
        live, names, user = self._controller.live, self._controller.names, job.submitted_by

        def place_in(queue: str) -> str:
            spec = replace(job.spec, queue=queue)
            if self._controller.scheduler.unready(queue) or self._comes_behind(spec, user):
                return ""
            _, profile, asked = self._stage(spec, job.id)
            placements, _ = self._placed(
                self._usable(asked, spec, user).snapshot, spec, user, asked, profile, overdue=True
            )
            return f"{placements[0].cluster}/{placements[0].node}" if placements else ""

        def fits_without(limit: LimitHit) -> bool:
            _, profile, asked = self._stage(job.spec, job.id)
            usable = self._usable(asked, job.spec, user, limit)
            return bool(trial_placements(usable.snapshot, usable.job, profile, overdue=True))

        with self._controller.lock:
            entry = live.waiting.get(job.id)
            hit = live.waiting.limit_of(entry) if entry else None
            stays = explanation is not None and not explanation.fits and all(map(_stays, explanation.refusals))
            held = list(holders(live, entry, hit, sees)) if entry and (hit or not stays) else []
            raised = limit_to_raise(live, entry, hit) if entry and hit else ""
        if entry is None:
            return ()
        with self._copying:
            limits = [raised] if hit and raised and fits_without(hit) else []
            return (*limits, *queues_with_room(names, entry, place_in), *held)

    def text(self, job: JobRecord, sees: Sees = lambda _: True) -> str:
        """Return the present reason of a job, one clause: the same in lists, its head, explanations and queues.

        Explanations that it needs may be some seconds old while the fleet is busy.

        Raises
        ------
        UnavailableError
            While the state is being reloaded.
        """
        if job.state.waits:
            return self._present(job, sees, listed=True).text
        if not job.state.placed:
            return job.reason
        with self._controller.lock:
            return self._controller.scheduler.reasons.of_placed(job)

    def _present(self, job: JobRecord, sees: Sees, *, remedies: bool = False, listed: bool = False) -> _Present:
        """Return the present reason of a waiting job. Lists need explanations only for jobs that wait for nodes."""
        makers: list[RoomMaker] = []

        def shown(each: RoomMaker) -> RoomMaker:
            makers.append(each.shown_to(sees))
            return makers[-1]

        with self._controller.lock:
            self._controller.require_read()
            if job.is_array:  # it waits for what its first task waits for
                job = self._controller.live.arrays.first_queued(job.id) or job
            why = self._controller.scheduler.reasons.of(job, shown)
        known = None
        if why.code != "policy_not_ready" and (why.looks or not listed):
            with self._copying:
                own = remedies and why.code not in ("delays_earlier_jobs", "behind_earlier_jobs")
                known = self._explained(job, with_remedies=own, listed=listed)
        code, params, text = self._with_nodes(job, why, known) if why.looks else (why.code, why.params, why.text)
        explanation = known.explanation if known else None
        return _Present(code, params, reasons.also(text, why.more), explanation, tuple(makers))

    def _with_nodes(self, job: JobRecord, why: Why, known: _Known | None) -> tuple[str, Params, str]:
        """Return the code, parameters and text of a reason to which those of nodes belong."""
        gateway = job.spec.demand.gateway
        if known is None:
            return "gateway_unknown", {"gateway": gateway}, reasons.Reason("no_gateway", gateway=gateway)
        live, explanation = self._controller.live, known.explanation
        with self._controller.lock:
            entry = live.waiting.get(job.id)
            exhausted = live.waiting.model_hits(entry) if entry else {}
            refusals = live.refusals.get(job.id, NEVER_REFUSED)
        said = summary(replace(explanation, remedies=()), known.short)
        said = reasons.also(said, *(each.message for each in exhausted.values()))
        if why.code == "reserved":
            names_others = any(each.code.startswith("reserved_") for each in explanation.refusals)  # elsewhere
            assert isinstance(why.text, reasons.Reason)
            held = reasons.Reason(why.text.code, **why.text.params, **({} if names_others else {"why": said}))
            return why.code, why.params, held
        said = reasons.also(said, refusals.reported())
        code, params = _placement_code(explanation, known.short, why.code)
        return code, params, reasons.also(said, _MORE.get(code, ""))

    def explained(self, job: JobRecord) -> Explanation | None:
        """Explain a waiting job on the current fleet; None while its gateway is missing.

        Raises
        ------
        UnavailableError
            While the state is being reloaded.
        """
        with self._copying:
            known = self._explained(job)
        return known.explanation if known else None

    def without_place(self, jobs: Iterable[JobRecord]) -> frozenset[str]:
        """Return the IDs of the waiting jobs that no node could hold before a decision is changed.

        Their starts are unknown: their nodes are cordoned, or in clusters that do not answer. Maintenance has an end.
        """
        found, until_ns = set[str](), self._controller.live.clock.monotonic_ns() + MAX_LOOK_NS
        for job in jobs:
            if self._controller.live.clock.monotonic_ns() >= until_ns:
                break
            if self._controller.scheduler.unready(job.spec.queue):
                continue
            with self._copying:
                known = self._explained(job, listed=True)
            if known and not known.explanation.fits and all(map(_stays, known.explanation.refusals)):
                found.add(job.id)
        return frozenset(found)

    def _shortage(self, usable: Usable, job: Job, profile: Profile, *, names_others: bool = True) -> str:
        """Return a message on replicas that do not fit together, and what is reserved for others; empty if they fit."""
        if (short := shortage(self._free, job, profile)) or not usable.limitations:
            return short
        short = shortage(usable.snapshot, usable.job, profile)
        texts = islice(usable.texts, MAX_NAMED if names_others else 0)
        others = (reasons.Reason("other_capacity", what=each) for each in texts)
        return reasons.also(short, *others) if short else ""

    def _comes_behind(self, spec: JobSpec, user: str) -> bool:
        """Report whether a job that is submitted now would wait for earlier jobs of a queue without backfill."""
        with self._controller.lock:
            return self._controller.live.waiting.is_behind(self._submitted_now(spec, user))

    def _submitted_now(self, spec: JobSpec, user: str) -> Entry:
        """Return the entry of a job that is submitted now. The caller holds the lock of the control-plane state."""
        live = self._controller.live
        next_ns = live.clock.now_ns() + 1
        return live.entry(JobRecord("", spec, JobState.QUEUED, next_ns, next_ns, user), self._controller.names)

    def _explained(self, job: JobRecord, *, with_remedies: bool = False, listed: bool = False) -> _Known | None:
        """Explain a waiting job on the current fleet; None while its gateway is missing.

        Results are cached for a while, until the fleet changes, and shared by equal jobs. In lists, they may be of an
        earlier fleet.
        """
        spec, live = job.spec, self._controller.live
        try:
            profile, seen = self._seen(spec, job.id)
        except RejectedError:
            return None
        with self._controller.lock:
            has_place = self._controller.scheduler.reservations.of(job.id) is not None
            state = self._state()
        together = seen.replicas, seen.gang, seen.single_cluster, seen.between_replicas, seen.ring, seen.partial
        owner = Owner(spec.queue, spec.tenant, job.submitted_by)
        own_id = job.id if has_place else ""
        key = (seen.demand, seen.data, together, id(profile), owner, spec.max_duration_s, spec.time_limit_s, own_id)
        now_ns, known = live.clock.monotonic_ns(), self._known.get(key)
        if known is None or (with_remedies and not known.tried) or not self._still_holds(known, state, now_ns, listed):
            self._stage(spec, job.id)
            usable = self._usable(seen, spec, job.submitted_by)
            explanation = explain(
                usable.snapshot, usable.job, profile, limitations=usable.limitations, closed=self._closed()
            )
            short = self._shortage(usable, seen, profile, names_others=not has_place) if explanation.fits else ""
            if with_remedies:
                found = self._remedies(usable, spec, job.submitted_by, seen, profile)
                explanation = replace(explanation, remedies=found)
            took_ns = live.clock.monotonic_ns() - now_ns
            known = _Known(explanation, short, with_remedies, self._copied(), now_ns, took_ns)
            self._store(key, known)
        return replace(known, explanation=self._as_it_came(job, known.explanation, with_remedies=with_remedies))

    def _store(self, key: Hashable, known: _Known) -> None:
        """Cache an explanation, and drop old ones from time to time."""
        self._known[key] = known
        if len(self._known) >= MAX_KNOWN or known.made_ns - self._swept_ns >= SWEEP_NS:
            self._swept_ns, oldest_ns = known.made_ns, known.made_ns - EXPLANATIONS_CACHE_NS
            self._known = {each: one for each, one in self._known.items() if one.made_ns > oldest_ns}
        self._took_ns = sum(each.took_ns for each in self._known.values())

    def _still_holds(self, known: _Known, state: tuple[int, int, int], now_ns: int, listed: bool) -> bool:
        """Report whether a cached explanation may be shown."""
        age_ns = now_ns - known.made_ns
        if known.state == state:
            return age_ns < EXPLANATIONS_CACHE_NS  # limits and reservations may have changed
        if not listed:
            return False
        return age_ns < min(LISTED_FACTOR * self._took_ns, MAX_LISTED_NS)

    def _as_it_came(self, job: JobRecord, explanation: Explanation, *, with_remedies: bool) -> Explanation:
        """Return an explanation for one of several equal jobs.

        It has the recorded deferral of the job, since another query of its policy may time out. It has no remedies if
        these are not wanted, and none that allows avoided devices if the job itself avoids none.
        """
        with self._controller.lock:
            entry = self._controller.live.waiting.get(job.id)
            held = self._controller.scheduler.deferral.why(entry.kind) if entry else ""
        own = replace(explanation, job=job.id)
        if held:
            own = replace(own, deferral_reason=held, message="")
        return _its_own(own, job.spec) if with_remedies else replace(own, remedies=())

    def _explained_placed(self, job: JobRecord) -> Explanation | None:
        """Explain a placed job on the current fleet without its own allocation; None while its gateway is missing."""
        try:
            snapshot, profile, seen = self._stage(job.spec, job.id)
        except RejectedError:
            return None
        with self._controller.lock:
            own = self._controller.live.fleet.booking((job.id, job.attempt))
            booking = own.copy() if own and self._copy_is_current() else None
        twin = snapshot.copy()
        if booking:
            booking.release(twin)
        return _its_own(explain(twin, seen, profile, closed=self._closed()), job.spec)

    def _closed(self) -> list[Keeper]:
        with self._controller.lock:
            return closed_places(self._controller.live.fleet, self._controller.names.reservations)

    def _stage(self, spec: JobSpec, name: str, policy: str = "") -> tuple[Snapshot, Profile, Job]:
        """Return a copy of the fleet, a profile (by default that of the queue), and the job in the scheduler's form."""
        profile, job = self._seen(spec, name, policy)
        with self._controller.lock:
            live = self._controller.live
            if not self._copy_is_current():
                retained = live.fleet.snapshot.copy()
                retained.unshare_demands()  # the loop continues to write into its own
                free = retained
                if self._controller.scheduler.reservations.made():
                    free = retained.copy()
                    self._controller.scheduler.reservations.lift_from(free)
                self._copy = (self._state(), free, retained)
        return self._free, profile, job

    def _seen(self, spec: JobSpec, name: str, policy: str = "") -> tuple[Profile, Job]:
        """Return a profile (by default that of the queue), and the job in the scheduler's form."""
        with self._controller.lock:
            self._controller.require_read()
            live = self._controller.live
            clusters = self._controller.names.clusters_of(spec.queue)
            scheduler = self._controller.scheduler
            profile = scheduler.policy(policy) if policy else scheduler.profile(spec.queue)
            gateways = {gateway.name for gateway in live.fleet.gateways}
            known_job = live.jobs.get(name)
            refusals = live.avoided(known_job) if known_job else NEVER_REFUSED
        if spec.demand.gateway and spec.demand.gateway not in gateways:
            raise unknown_name("gateway", spec.demand.gateway, gateways)
        job = spec.job(name, clusters)
        return profile, replace(job, demand=refusals.retained(job.demand))

    @property
    def _free(self) -> Snapshot:
        """Copy of the fleet without reservations for waiting jobs. `_stage` sets it."""
        assert self._copy is not None
        return self._copy[1]

    @property
    def _reserved(self) -> Snapshot:
        """Copy of the fleet with reservations for waiting jobs. `_stage` sets it."""
        assert self._copy is not None
        return self._copy[2]

    def _state(self) -> tuple[int, int, int]:
        fleet = self._controller.live.fleet
        return id(fleet.snapshot), fleet.version, int(fleet.snapshot.arrays.head[0])

    def _copied(self) -> tuple[int, int, int]:
        """Return the state of the fleet of the copy. `_stage` sets it."""
        assert self._copy is not None
        return self._copy[0]

    def _copy_is_current(self) -> bool:
        return self._copy is not None and self._copy[0] == self._state()

    def _ahead(self, job: JobRecord) -> int:
        """Count the jobs of the same tenant and queue that precede a job."""
        now_ns = self._controller.live.clock.monotonic_ns()
        if now_ns - self._orders[0] >= ORDER_CACHE_NS:
            with self._controller.lock:
                entries = list(self._controller.live.waiting.entries())
            orders: defaultdict[tuple[str, str], list[SortKey]] = defaultdict(list)
            for each in entries:
                orders[each.spec.tenant, each.queue].append(each.order)
            for known in orders.values():
                known.sort()
            self._orders = (now_ns, orders)
        own = self._controller.live.entry(job).order
        return bisect_left(self._orders[1].get((job.spec.tenant, job.spec.queue), []), own)

    # Candidates.

    def _choice(self, snapshot: Snapshot, job: Job, candidate: Candidate, chosen: set[tuple[str, str]]) -> Choice:
        cluster = snapshot.clusters[snapshot.cluster_index(candidate.cluster)]
        n = snapshot.node_index[candidate.cluster, candidate.node]
        return Choice(
            candidate.cluster,
            candidate.node,
            candidate.total,
            candidate.scores,
            free_slices(snapshot, job, n),
            _link(self._reserved, job.demand.gateway, cluster.gateway),
            microprice(snapshot, job, candidate.cluster, n),
            (candidate.cluster, candidate.node) in chosen,
        )


def _stays(refusal: Refusal) -> bool:
    """Report whether nodes stay excluded until a decision is changed."""
    return mend_of(refusal) in (Mend.NEVER, Mend.DECIDED) and refusal.code != "under_maintenance"


def _shown(candidates: Sequence[Candidate], placements: Sequence[Placement]) -> tuple[Candidate, ...]:
    """Return the best candidates, and that of the first replica."""
    first = (placements[0].cluster, placements[0].node) if placements else None
    chosen = [each for each in candidates[MAX_CANDIDATES:] if (each.cluster, each.node) == first]
    return (*candidates[:MAX_CANDIDATES], *chosen)


def _placement_code(explanation: Explanation, short: str, order: str) -> tuple[str, Params]:
    """Return the code and parameters of the reason why a job without a limit is not placed.

    Parameters
    ----------
    order
        Code of the reason from the order of its queue; empty for none.
    """
    kept = next((each for each in explanation.refusals if each.plugin in CAPACITY_RULES), None)
    if kept and not explanation.fits:
        code = "reserved_in_advance" if "begin" in kept.params else "reserved_for_others"
        return code if kept.code != "model_limit" else kept.code, kept.params
    code = (
        "no_node_fits"
        if not explanation.fits
        else "insufficient_capacity"
        if short
        else "deferred"
        if explanation.deferral_reason
        else order or "to_be_decided"
    )
    params = {"insufficient_capacity": {"short": short}, "deferred": {"why": explanation.deferral_reason}}
    return code, params.get(code, {})


def _its_own(explanation: Explanation, spec: JobSpec) -> Explanation:
    """Remove the remedy that allows avoided devices, since the job itself does not avoid any."""
    if spec.demand.devices.avoid_uuids:
        return explanation
    return replace(explanation, remedies=tuple(each for each in explanation.remedies if each.field != AVOIDED))


def free_slices(snapshot: Snapshot, job: Job, n: int) -> int:
    """Return the number of such replicas that fit on node `n`, by amounts alone."""
    request = job.demand.request.filled()
    node = snapshot.arrays.nodes[:, n]
    bounds = [MAX_ROOM]
    if request.cpu_milli:
        bounds.append(int(node[NODE_CPU_FREE]) // request.cpu_milli)
    if request.memory_mib:
        bounds.append(int(node[NODE_MEMORY_FREE]) // request.memory_mib)
    if request.gpus:
        devices = snapshot.arrays.devices[:, node[NODE_DEVICE_FIRST] : node[NODE_DEVICE_END]]
        room = np.where(devices[DEVICE_OPEN] == 1, devices[DEVICE_SLOTS_FREE], 0)
        for free, needed in (
            (devices[DEVICE_MEMORY_FREE], _memory_needed(devices, request)),
            (devices[DEVICE_CORE_FREE], _cores_needed(devices, request)),
        ):
            room = np.where(needed > 0, np.minimum(room, free // np.maximum(needed, 1)), room)
        bounds.append(_sets(np.maximum(room, 0), request.gpus))
    return max(0, min(bounds))


def microprice(snapshot: Snapshot, job: Job, cluster: str, n: int) -> int | None:
    """Return the price of a replica on node `n` per hour, millionths of the currency unit, rounded up to `PRICE_STEP`.

    A slice costs its share of the device: that of its memory or its cores, whichever is larger. None if the price is
    unknown, or without GPUs.
    """
    request, node, columns = job.demand.request.filled(), snapshot.nodes[n], snapshot.arrays.nodes[:, n]
    devices = snapshot.arrays.devices[:, columns[NODE_DEVICE_FIRST] : columns[NODE_DEVICE_END]]
    devices = devices[:, devices[DEVICE_OPEN] == 1]
    allowed = [each for each in node.devices if kind_allowed(job.demand.devices, each)]
    whole = snapshot.clusters[snapshot.cluster_index(cluster)].facts.node_microprice(node, allowed)
    if whole is None or not request.gpus or not devices.shape[1]:
        return None
    shares_ppm = [
        -(-needed * 10**6 // np.maximum(total, 1))
        for needed, total in (
            (_memory_needed(devices, request), devices[DEVICE_MEMORY].astype(np.int64)),
            (_cores_needed(devices, request), devices[DEVICE_CORE].astype(np.int64)),
        )
    ]
    share_ppm = int(np.clip(np.maximum(*shares_ppm), 0, 10**6).min())
    return -(-whole * request.gpus * share_ppm // 10**6 // PRICE_STEP) * PRICE_STEP


def _memory_needed(devices: Int32, request: ResourceRequest) -> Int64:
    """Return the memory of a slice on each device, MiB, shape (D,)."""
    total, step = devices[DEVICE_MEMORY].astype(np.int64), devices[DEVICE_MEMORY_STEP]
    asked = np.where(request.gpu_memory_mib > 0, request.gpu_memory_mib, total * request.gpu_memory_percent // 100)
    each = np.maximum(step, 1)
    steps = -(-asked // each) if request.gpu_memory_mib else asked // each
    return np.where(step == EVEN_SHARES, _in_even_shares(asked, total, devices), np.maximum(steps, 1) * each)


def _cores_needed(devices: Int32, request: ResourceRequest) -> Int64:
    """Return the cores of a slice on each device, thousandths, shape (D,)."""
    steps = devices[DEVICE_CORE_STEPS].astype(np.int64)
    asked = np.full_like(steps, request.gpu_milli)
    whole = -(-asked * steps // WHOLE_DEVICE_MILLI) * WHOLE_DEVICE_MILLI // np.maximum(steps, 1)
    even = _in_even_shares(asked, devices[DEVICE_CORE].astype(np.int64), devices)
    return np.where(steps == EVEN_SHARES, even, whole)


def _in_even_shares(asked: Int64, total: Int64, devices: Int32) -> Int64:
    """Return the amount of the fewest even shares that cover the request, or an impossible request unchanged."""
    shares = np.maximum(devices[DEVICE_SLOTS], 1).astype(np.int64)
    count = np.maximum(-(-asked * shares // np.maximum(total, 1)), 1)
    return np.where((asked > total) | (total == 0), asked, count * total // shares)


def _sets(room: Int64, gpus: int) -> int:
    """Return the number of sets of `gpus` different devices that the free slots allow."""
    least, most = 0, int(room.sum()) // gpus
    while least < most:
        middle = (least + most + 1) // 2
        if int(np.minimum(room, middle).sum()) >= middle * gpus:
            least = middle
        else:
            most = middle - 1
    return least


def _link(snapshot: Snapshot, source: str, target: str) -> Link | None:
    if not source or not target:
        return None
    link = next((link for link in snapshot.links if (link.source, link.target) == (source, target)), None)
    if link is None or not link.bandwidth_mbps:
        return link
    at = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    free_mbps = max(0, int(free_bandwidth(snapshot.arrays, at[source], at[target])))
    return replace(link, used_mbps=max(0, link.bandwidth_mbps - free_mbps))
