"""Standbys of services: their second copies, verified places of cold ones, and the switch to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from seaway.application.changes import Change
from seaway.application.control.advance_reservations import closed_places
from seaway.application.control.state import ControlState
from seaway.application.pairs import alone, switch_text, switched, with_standby
from seaway.application.transitions import job_event, sent_back
from seaway.domain.attempt import Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.job import OTHER_COPY
from seaway.domain.job_record import JobRecord, Pair
from seaway.domain.job_spec import JobIds
from seaway.domain.job_state import JobState
from seaway.domain.reasons import Reason
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain, summary
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile

ACTOR = "standby"

NS = 1_000_000_000

VERIFY_S = 30
"""Seconds between two checks of the place of a cold standby. One job is checked in a cycle."""

PATIENCE_S = 60
"""Seconds that a changed service waits for a place of its standby before the active copy restarts."""


@dataclass(frozen=True, slots=True)
class StandbyPlace:
    """Verified place of a cold standby.

    Attributes
    ----------
    cluster
        Cluster with room for the service; empty without one.
    reason
        Reason why there is no place; empty if there is one.
    at_ns, checked_ns
        Time of the check by the wall clock, and by the monotonic clock.
    """

    cluster: str
    reason: str
    at_ns: int
    checked_ns: int


class Standbys:
    """Standbys of services.

    Parameters
    ----------
    live
        The control-plane state.
    policy
        Returns the policy of a queue; None while it is not ready.

    Attributes
    ----------
    places
        Places of cold standbys, by job.
    """

    def __init__(self, live: ControlState, policy: Callable[[str], Profile | None]) -> None:
        self._state = live
        self._policy = policy
        self.places: dict[str, StandbyPlace] = {}

    def changes(self) -> list[Change]:
        """Return the changes to store."""
        paired = self._paired()
        found = [change for job in paired for change in self._look(job)]
        return found + list(self._verify(paired))

    def _look(self, job: JobRecord) -> Iterator[Change]:
        other = self._state.jobs.get(job.other) if job.other else None
        if job.state.final:
            return
        if job.other and (other is None or other.state.final):  # one that ends by itself ends both
            yield Change(update=[alone(job)])
        elif other and not job.is_standby:
            yield from self._follow(job, other)
        elif job.pair and job.pair.leaving:
            yield from self._moved(job, job.pair)
        elif not job.other and job.spec.has_warm_standby and job.state is JobState.RUNNING:
            job_id = JobIds(Random(job.id)).generate(self._now_ns)
            yield with_standby(job, job_id, ACTOR, self._now_ns)

    def _follow(self, active: JobRecord, standby: JobRecord) -> Iterator[Change]:
        """Switch to the standby if it runs and the active copy does not, and restart outdated copies."""
        if active.pair and active.pair.leaving and active.state is JobState.RUNNING:  # it ran elsewhere before
            yield from self._moved(active, active.pair)
        elif not self.unready(standby) and (reason := self._stopped(active, standby)):
            yield switched(active, standby, reason, ACTOR, self._now_ns)[2]
        elif (attempt := self._outdated(standby)) and standby.state.placed:
            yield self._restart(standby, attempt)
        elif standby.state.waits and (attempt := self._outdated(active)):
            failed = standby.not_before_ns is not None  # the change may be at fault, so the active copy runs on
            if not failed and self._now_ns - standby.changed_ns > PATIENCE_S * NS:
                yield self._restart(active, attempt)

    def _stopped(self, active: JobRecord, standby: JobRecord) -> str:
        """Return the reason why the standby of a service should be active; empty if the active copy serves."""
        attempt = self._state.attempts.get((active.id, active.attempt))
        if not active.state.placed or attempt is None:
            return active.reason or active.state.value
        if attempt.running_ns is None:
            return Reason("not_running_yet", cluster=", ".join(active.clusters))
        return Reason("service_changed") if self._outdated(active) and not self._outdated(standby) else ""

    def _outdated(self, job: JobRecord) -> Attempt | None:
        """Return the attempt of a job if it must restart for a change of the service; else None."""
        attempt = self._state.attempts.get((job.id, job.attempt))
        if attempt is None or not attempt.state.live:
            return None
        allowed = self._state.clusters_of(job.spec.queue) if attempt.spec.queue != job.spec.queue else ()
        moves = len(attempt.clusters) > 1 or (allowed and not allowed.issuperset(attempt.clusters))
        return attempt if moves or attempt.spec.requires_restart(job.spec) else None

    def _restart(self, job: JobRecord, attempt: Attempt) -> Change:
        return sent_back(job, attempt, Reason("restarts_with_service"), ACTOR, self._now_ns)

    def _paired(self) -> list[JobRecord]:
        return [job for job_id in sorted(self._state.paired) if (job := self._state.jobs.get(job_id))]

    def missing(self) -> tuple[int, int]:
        """Return the number of placed services that should have a standby, and of those that cannot switch to it."""
        active = [each for each in self._paired() if each.spec.standby and each.state.placed and not each.is_standby]
        standbys = [self._state.jobs.get(each.other) for each in active]
        lack = [
            self.unready(standby) if standby else each.spec.has_warm_standby or self.unverified(each)
            for each, standby in zip(active, standbys, strict=True)
        ]
        return len(active), sum(map(bool, lack))

    def unready(self, standby: JobRecord) -> str:
        """Return the reason why a standby cannot become active; empty if it can."""
        if standby.state is not JobState.RUNNING:
            return f"it is {standby.state.value}: {standby.reason}"
        return "" if self._state.all_up(standby.clusters) else Reason("silent", cluster=", ".join(standby.clusters))

    def unverified(self, job: JobRecord) -> str:
        """Return the reason why a job with a cold standby cannot move to another cluster; empty if it can."""
        place = self.places.get(job.id)
        if job.state is not JobState.RUNNING:
            return f"the job is {job.state.value}: {job.reason}"
        if place is None or place.cluster in job.clusters:
            return f"its place is not verified yet; try again in {VERIFY_S} s"
        return place.reason

    # Cold standbys.

    def _moved(self, job: JobRecord, pair: Pair) -> Iterator[Change]:
        """Record that a copy runs in another cluster than before, or may return to its former one."""
        if job.state is JobState.RUNNING:
            after = replace(job, pair=replace(pair, switched_ns=self._now_ns), version=job.version + 1)
            event = job_event(after, ACTOR, "failover", switch_text(after, Reason("placed_again")))
            yield Change(update=[after], insert=[replace(event, at_ns=self._now_ns)])
        elif job.state.waits and pair.lost_ns is None and self._now_ns - job.changed_ns > PATIENCE_S * NS:
            yield Change(update=[alone(job)])

    def _verify(self, paired: list[JobRecord]) -> Iterator[Change]:
        """Verify the place of the cold standby that was not checked for the longest time, if it is due."""
        cold = {each.id: each for each in paired if each.spec.standby and not each.spec.has_warm_standby}
        self.places = {job_id: place for job_id, place in self.places.items() if job_id in cold}
        now_ns, never_ns = self._state.clock.monotonic_ns(), -(2**62)
        running = [each for each in cold.values() if each.state is JobState.RUNNING]
        last_ns = {each.id: self.places[each.id].checked_ns if each.id in self.places else never_ns for each in running}
        if not running or now_ns - min(last_ns.values()) < VERIFY_S * NS:
            return
        job = min(running, key=lambda each: last_ns[each.id])
        profile = self._policy(job.spec.queue)
        if profile is None:
            return
        before, (cluster, reason) = self.places.get(job.id), self._place(job, profile)
        self.places[job.id] = StandbyPlace(cluster, reason, self._now_ns, now_ns)
        if before is None or bool(before.cluster) != bool(cluster):
            text = Reason("standby_fits", place=cluster) if cluster else Reason("standby_fits_nowhere", why=reason)
            after = replace(job, version=job.version + 1)
            yield Change(update=[after], insert=[replace(job_event(after, ACTOR, "standby", text), at_ns=self._now_ns)])

    def _place(self, job: JobRecord, profile: Profile) -> tuple[str, str]:
        """Return a cluster with room for a job beside its present one; if none has, an empty name and the reason."""
        asked = job.spec.job(job.id, self._state.clusters_of(job.spec.queue))
        nodes = asked.demand.nodes
        avoid = nodes.avoid | {(cluster, OTHER_COPY) for cluster in job.clusters}
        asked = replace(asked, demand=replace(asked.demand, nodes=replace(nodes, avoid=avoid)))
        copy = self._state.fleet.snapshot.copy()
        try:
            plan = decide(copy, JobQueue(copy, [asked]), profile, overdue={0}, dry_run=True)
        except RejectedError as error:  # its gateway is gone
            return "", error.message
        if plan.jobs_placed[0]:
            return next(iter(plan.placements())).cluster, ""
        copy.release(plan.decisions, plan.slices, plan.rows_of(0))
        closed = closed_places(self._state.fleet, self._state.names.reservations)
        return "", summary(explain(copy, asked, profile, closed=closed))

    @property
    def _now_ns(self) -> int:
        return self._state.clock.now_ns()
