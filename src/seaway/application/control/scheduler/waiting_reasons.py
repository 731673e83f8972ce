"""Present reasons of jobs that wait or run. What stores, lists or explains such a reason asks here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from seaway.application.changes import Change
from seaway.application.control.orphans import STARTED, phase_of
from seaway.application.control.scheduler.changes import makers, room_text
from seaway.application.control.state import ControlState
from seaway.application.records import NS_PER_S
from seaway.application.transitions import ACCEPTED, AWAITS_VICTIMS, blocked, nodes_text
from seaway.application.views import RoomMaker
from seaway.domain.amounts import figure_text, resource_text
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.queues import policy_text
from seaway.domain.reasons import Params, Reason, also, time_param, without_code
from seaway.scheduling.cycle.deferral import Deferral
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.reserve import Reservation, Reservations
from seaway.scheduling.queueing.preemption import Candidate
from seaway.scheduling.queueing.tree import LimitHit

NO_PLACE = Reason("no_room")
"""Reason why most jobs wait."""

DELAYS = Reason("delays_earlier_jobs")
"""Reason why jobs wait in a queue with conservative backfill."""

BEHIND = Reason("no_backfill")
"""Reason why jobs wait in a queue without backfill."""

RESIZES = frozenset({"grows", "shrinks", "shrinks_for", "shrinks_to_minimum_for"})
"""Codes of the reasons of resizes."""

PASS_NS = NS_PER_S
"""Minimum time between two passes over all waiting jobs, nanoseconds."""

LOOK_NS = 50_000_000
"""Minimum time between two looks at some waiting jobs, nanoseconds."""

MAX_LOOKED = 256
"""Maximum number of jobs in a look, which takes 10 us for each: 100,000 jobs take 20 s."""

MAX_CHANGED = 64
"""Maximum number of changes to store after a look."""

STAYS_S = 10
"""Minimum time for which a stored reason stays, seconds. It bounds events where reasons alternate."""

_LIMIT_CODES = {"queue": "queue_limit", "user": "user_quota", "tenant": "tenant_quota", "pool": "lending_limit"}
"""Code of the reason by a name of what has the limit; the first that applies counts."""


class Why(NamedTuple):
    """Reason why a job waits.

    Attributes
    ----------
    code, params
        Reason for programs, as in the API.
    text
        The reason, one clause.
    looks
        Whether nodes have reasons of their own beside it, which the answers to people add.
    more
        Clause on what the job still holds; empty for nothing.
    """

    code: str
    params: Params
    text: str
    looks: bool = False
    more: str = ""

    @property
    def stored(self) -> str:
        """Text that is stored with the job."""
        return also(self.text, self.more)


class TryOrder(Protocol):
    """Decisions of the scheduler on the order of jobs."""

    def unready(self, queue: str) -> str:
        """Return the reason why jobs of a queue are not tried yet; empty if they are."""

    def policy_of(self, queue: str) -> str:
        """Return the name of a queue's policy with its options."""

    def delays_others(self, entry: Entry) -> bool:
        """Report whether the start of a job could delay the planned start of an earlier job of its queue."""


class WaitingReasons:
    """Present reasons of waiting jobs, and the changes that store them.

    The caller holds the lock of the control-plane state.
    """

    def __init__(
        self,
        live: ControlState,
        order: TryOrder,
        reservations: Reservations,
        deferral: Deferral,
        victims_for: Callable[[str], Sequence[Candidate]],
    ) -> None:
        self._state = live
        self._order = order
        self._reservations = reservations
        self._deferral = deferral
        self._victims_for = victims_for
        self._rest: deque[str] = deque()
        self._looked_ns = self._began_ns = -PASS_NS

    def of(self, job: JobRecord, shown: Callable[[RoomMaker], RoomMaker] = lambda each: each) -> Why:
        """Return why a job waits, which may be a task that is not stored.

        Parameters
        ----------
        shown
            Return what may be shown of a job that makes room.
        """
        why = self._before_a_try(job) or self._room_made(job, shown) or self._in_queue(job)
        return why._replace(more=self._still_held(job))

    def of_placed(self, job: JobRecord) -> str:
        """Return the reason of a placed job: that of its last change, but no resize that has ended, and its growth."""
        key = job.id, job.attempt
        attempt, copies = self._state.attempts.get(key), self._state.seen.get(key, {})
        if attempt is None:
            return job.reason
        resized = isinstance(job.reason, Reason) and job.reason.code in RESIZES
        runs = job.state is JobState.RUNNING and attempt.remaining is attempt.placements
        if resized and runs and all(phase_of(copies.get(each), attempt) in STARTED for each in attempt.clusters):
            return also(Reason("runs", where=nodes_text(attempt.placements)), self._grows(job, attempt))
        return also(job.reason, self._grows(job, attempt))

    def _grows(self, job: JobRecord, attempt: Attempt) -> str:
        """Return what a running elastic job with fewer replicas than it wants waits for; empty for others."""
        live, more = self._state, job.spec.replicas - job.completed - len(attempt.remaining)
        if not job.spec.elastic or more <= 0 or job.state is not JobState.RUNNING:
            return ""
        rest_ns = live.resize_after_ns.get(job.id, 0) - live.clock.monotonic_ns()
        if rest_ns <= 0:
            return Reason("grows_with_room", count=more)
        return Reason("grows_after", count=more, ends_at=time_param(live.clock.now_ns() + rest_ns, seconds=True))

    def _before_a_try(self, job: JobRecord) -> Why | None:
        """Return why a job is not tried; None if it is."""
        if missing := self._state.missing_queue_or_pool(job):
            return Why("queue_removed", {"why": missing}, missing)
        if until := self._state.blocked(job):
            reason = without_code(job.reason, "holds_lost")  # present ones are in `more`
            said = until if reason in (ACCEPTED, until) else also(reason, until)
            return Why("backoff", {"why": reason, "until": until}, said)
        if unready := self._order.unready(job.spec.queue):
            policy = policy_text(self._order.policy_of(job.spec.queue))
            return Why("policy_not_ready", {"policy": policy}, unready)
        return None

    def _room_made(self, job: JobRecord, shown: Callable[[RoomMaker], RoomMaker]) -> Why | None:
        """Return the reason of a job for which others make room; None if none do."""
        claim = self._reservations.of_claim(job.id)
        if claim is None:
            return None
        return self._reserved(job, claim, [shown(each) for each in makers(self._state, self._victims_for(job.id))])

    def _in_queue(self, job: JobRecord) -> Why:
        """Return why a job that can be tried waits in its queue."""
        entry = self._state.waiting.get(job.id)
        if entry is None:
            return Why("", {}, NO_PLACE, looks=True)
        if hit := self._state.waiting.limit_of(entry):
            return Why(_limit_code(hit), _limit_params(hit), hit.message)
        if retained := self._reservations.of(job.id):
            return self._reserved(job, retained)
        if deferral := self._deferral.why(entry.kind):
            return Why("deferred", {"why": deferral}, deferral, looks=True)
        if self._order.delays_others(entry) and not self._state.waiting.leads(entry):
            return Why("delays_earlier_jobs", {}, DELAYS, looks=True)
        behind = self._state.waiting.is_behind(entry)
        return Why("behind_earlier_jobs" if behind else "", {}, BEHIND if behind else NO_PLACE, looks=True)

    def _reserved(self, job: JobRecord, retained: Reservation, room_from: Sequence[RoomMaker] = ()) -> Why:
        """Return the reason of a job that has a reservation, for which other jobs may make room."""
        where, held = _reserved_text(retained)
        left_ns = 0
        if retained.starts_ns is not None:
            left_ns = max(0, retained.starts_ns - self._state.clock.monotonic_ns())
        params: dict[str, str | int] = {"where": where, "soon_s": left_ns // NS_PER_S}
        if room_from and retained.starts_ns is not None:
            ends_at, what = time_param(self._state.clock.now_ns() + left_ns, seconds=True), room_text(room_from)
            said = also(Reason("waits_until_at", what=what, ends_at=ends_at), held)
            return Why("reserved", {**params, "what": what, "ends_at": ends_at}, said)
        if job.reason.startswith(AWAITS_VICTIMS):  # of a server that ran before
            return Why("reserved", params, job.reason)
        if retained.starts_ns:
            held = Reason("free_at", what=held, starts_at=time_param(self._state.clock.now_ns() + left_ns))
        return Why("reserved", params, Reason("waits_first", what=held), looks=True)

    def _still_held(self, job: JobRecord) -> str:
        """Return a clause on the GPUs that earlier attempts hold in clusters that do not answer; empty for none."""
        held = [
            (each, sum(len(placed.slices) for placed in attempt.holding if placed.cluster == each))
            for number in self._state.by_job.get(job.id, ())
            for attempt in (self._state.attempts[job.id, number],)
            for each in attempt.clusters
            if self._state.given_up(each)
        ]
        return also(*said) if (said := [Reason("holds_lost", count=n, cluster=each) for each, n in held if n]) else ""

    # Storage.

    def changes(self, actor: str) -> list[Change]:
        """Return the changes of jobs whose stored reason has another meaning than the present one.

        Only some jobs are looked at per call. Figures that change are no change of the meaning.
        """
        now_ns = self._state.clock.monotonic_ns()
        if now_ns - self._looked_ns < LOOK_NS:
            return []
        self._looked_ns = now_ns
        if not self._rest and now_ns - self._began_ns >= PASS_NS:
            self._rest.extend(self._state.waiting.ids())
            self._began_ns = now_ns
        return [*self._differing(actor, self._state.clock.now_ns())]

    def _differing(self, actor: str, now_ns: int) -> Iterator[Change]:
        changed = 0
        for _ in range(min(MAX_LOOKED, len(self._rest))):
            entry = self._state.waiting.get(self._rest.popleft())
            if entry is None or not self._state.waiting.is_aside(entry):
                continue
            job = self._state.jobs[entry.id]
            if job.state is not JobState.QUEUED or now_ns - job.changed_ns < STAYS_S * NS_PER_S:
                continue
            stored = self.of(job).stored
            if meaning(stored) != meaning(job.reason):
                yield blocked(job, stored, actor, now_ns)
                changed += 1
                if changed == MAX_CHANGED:
                    return


def meaning(reason: str) -> tuple[str, ...]:
    """Return the codes of a reason, with what has the limit, and without figures."""
    if not isinstance(reason, Reason):
        return (reason,)
    more = reason.params.get("also", ())
    others = [code for each in (more if isinstance(more, tuple) else ()) for code in meaning(each)]
    if reason.code.startswith("limit_"):
        return ("limit", str(reason.params.get("holder", "")), *others)
    return (reason.code, *others)


def _limit_code(hit: LimitHit) -> str:
    return next(code for name, code in _LIMIT_CODES.items() if name in hit.holder.names)


def _limit_params(hit: LimitHit) -> Params:
    return {
        **hit.holder.names,
        "held": figure_text(hit.resource, hit.held),
        "limit": resource_text(hit.resource, hit.limit),
        "requested": figure_text(hit.resource, hit.requested),
        **({"reserved": figure_text(hit.resource, hit.reserved)} if hit.reserved else {}),
    }


def _reserved_text(retained: Reservation) -> tuple[str, str]:
    """Return the first places of a reservation, and a clause with them."""
    places = sorted(f"{cluster}/{node}" for cluster, node in retained.nodes)
    where = ", ".join(places[:3])
    return where, Reason("places_reserved" if len(places) > 1 else "place_reserved", where=where)
