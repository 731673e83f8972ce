"""SLO violations: running jobs whose links violate their bounds. They are reported and, if requested, moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from seaway.application.changes import Change
from seaway.application.control.fleet import Key
from seaway.application.control.rejections import NEVER_REFUSED, Due, Refusals
from seaway.application.control.state import ControlState
from seaway.application.transitions import ELSEWHERE, job_event, sent_back
from seaway.domain.attempt import Attempt
from seaway.domain.errors import RejectedError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.network import Ends, Link, NetworkNeed, OnViolation, link_text, violations
from seaway.domain.placement import ring_links
from seaway.domain.reasons import TEXTS, Reason, also
from seaway.domain.units import rate_text
from seaway.probing.rounds import Figures
from seaway.scheduling.cycle.reserve import Reservations
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.snapshot import Snapshot

MAX_KNOWN = 100_000
"""Maximum number of cached results; a full cache is cleared."""

LONG_AGO_NS = -(2**62)
"""Time of the violation of a link whose latest round met the bounds."""


@dataclass(frozen=True, slots=True)
class SloViolation:
    """Violation of a job's network bounds.

    Attributes
    ----------
    text
        Reason with the links and their figures.
    clusters
        Clusters whose link to the user violates a bound.
    seen_ns
        Monotonic time of the last confirmation: that of the latest round that violates a bound by itself, or now
        without rounds.
    """

    text: str
    clusters: frozenset[str]
    seen_ns: int


@dataclass(frozen=True, slots=True)
class _Violation:
    text: str
    seen_ns: int


class Verdicts:
    """Check of the links of running jobs. Each link is checked once per review, for any number of jobs.

    Parameters
    ----------
    live
        The control-plane state.
    reservations
        Reservations for waiting jobs; running jobs retain their bandwidth.
    """

    def __init__(self, live: ControlState, reservations: Reservations) -> None:
        self._state = live
        self._reservations = reservations
        self._now_ns = 0
        self._snapshot: Snapshot | None = None
        self._list: list[Link] = []
        self._links: dict[Ends, Link] = {}
        self._gateways: dict[str, str] = {}
        self._over_mbps: dict[Ends, int] = {}
        self._rounds: dict[Ends, tuple[int, int]] = {}
        self._bad: dict[tuple[Ends, NetworkNeed], _Violation] = {}
        self._good: dict[Ends, set[NetworkNeed]] = {}
        self._known = 0

    def renew(self) -> set[Ends] | None:
        """Begin a review; return the links whose result may have changed, None for all."""
        snapshot, before = self._state.fleet.snapshot, self._snapshot
        self._now_ns, self._snapshot = self._state.clock.monotonic_ns(), snapshot
        self._bad.clear()
        changed: set[Ends] = set()
        if snapshot is not before or snapshot.links is not self._list:
            self._list, old = snapshot.links, self._links
            self._links = links = {(link.source, link.target): link for link in snapshot.links}
            changed = {ends for ends in old.keys() | links.keys() if _differ(old.get(ends), links.get(ends))}
        promised, self._over_mbps = self._over_mbps, self._overbooked(snapshot)
        changed |= {ends for ends, _ in promised.items() ^ self._over_mbps.items()}
        for ends in changed:
            self._known -= len(self._good.pop(ends, ()))
        if snapshot is before:
            return changed
        self._gateways = {cluster.name: cluster.gateway for cluster in snapshot.clusters}
        self._rounds = {ends: known for ends, known in self._rounds.items() if ends in self._links}
        return None

    def ways(self, attempt: Attempt) -> frozenset[Ends]:
        """Return the links to which the bounds of an attempt apply."""
        return frozenset((*self._from_user(attempt).values(), *self._between(attempt)))

    def violation(self, attempt: Attempt) -> SloViolation | None:
        """Return the violated bounds of an attempt; None if all measured links meet their bounds."""
        need = attempt.spec.demand.network
        broken = {cluster: bad for cluster, ends in self._from_user(attempt).items() if (bad := self._of(need, ends))}
        between = [bad for ends in self._between(attempt) if (bad := self._of(attempt.spec.between_replicas, ends))]
        found = [*broken.values(), *between]
        if not found:
            return None
        text = Reason("network_violates", clauses=tuple(dict.fromkeys(each.text for each in found)))
        return SloViolation(text, frozenset(broken), max(each.seen_ns for each in found))

    def _from_user(self, attempt: Attempt) -> dict[str, Ends]:
        user = attempt.spec.demand.gateway
        if not attempt.spec.demand.network.any:
            return {}
        gateways_by_cluster = ((cluster, self._gateways.get(cluster, "")) for cluster in attempt.clusters)
        return {cluster: (user, admission) for cluster, admission in gateways_by_cluster if admission != user}

    def _between(self, attempt: Attempt) -> Iterator[Ends]:
        if not attempt.spec.between_replicas.any or len(attempt.clusters) == 1:
            return
        if attempt.spec.ring:
            pairs = ring_links(attempt.holding, attempt.spec.replicas)
            ends = ((self._gateways.get(here, ""), self._gateways.get(there, "")) for here, there in pairs)
            yield from dict.fromkeys(each for each in ends if "" not in each and each[0] != each[1])
        else:
            yield from permutations(sorted({self._gateways.get(each, "") for each in attempt.clusters} - {""}), 2)

    def _of(self, need: NetworkNeed, ends: Ends) -> _Violation | None:
        """Return the violation of bounds by a link; None without a violation or measurement."""
        good = self._good.setdefault(ends, set())
        if need in good:
            return None
        found = self._bad.get((ends, need))
        if found is None and (link := self._links.get(ends)) is not None:
            found = self._evaluated(need, link)
        if found:
            self._bad[ends, need] = found
            return found
        if self._known >= MAX_KNOWN:
            self._good, self._known = {ends: (good := set())}, 0
        good.add(need)
        self._known += 1
        return None

    def _evaluated(self, need: NetworkNeed, link: Link) -> _Violation | None:
        ends = link.source, link.target
        counts = bool(need.min_bandwidth_mbps and link.bandwidth_mbps)
        over_mbps = self._over_mbps.get(ends, 0) if counts else 0
        said, full = violations(need, link, running=True), counts and link.free_mbps < need.min_bandwidth_mbps
        if over_mbps and not full:
            said += (Reason("overbooked", more=rate_text(over_mbps)),)
        if not said:
            return None
        return _Violation(link_text(*ends, said), self._now_ns if full or over_mbps else self._seen_ns(need, link))

    def _seen_ns(self, need: NetworkNeed, link: Link) -> int:
        """Return the time of the latest round if it violates the bounds by itself, else `LONG_AGO_NS`."""
        ends = link.source, link.target
        latest = self._state.link_table.latest(ends)
        if latest is None:
            return self._now_ns
        at_ns, seen = latest
        lately = _best_figures(link, seen)
        if lately is None or not violations(need, lately, running=True):
            return LONG_AGO_NS
        known = self._rounds.get(ends)
        if known is None or known[0] != at_ns:
            known = self._rounds[ends] = at_ns, self._now_ns
        return known[1]

    def _overbooked(self, snapshot: Snapshot) -> dict[Ends, int]:
        """Return the reserved bandwidth beyond capacity, by link, in Mbit/s. Only running jobs count."""
        over_mbps = _overbooked(snapshot)
        if over_mbps and self._reservations.bookings():
            copy = snapshot.copy()
            self._reservations.lift_from(copy)
            over_mbps = _overbooked(copy)
        return over_mbps


def _differ(one: Link | None, other: Link | None) -> bool:
    return one is not other and one != other


def _best_figures(link: Link, seen: Figures) -> Link | None:
    """Return the better of the published figures and the latest round; None if only that round has an answer."""
    if link.latency_ns is None:
        return link if seen.latency_ns is None else None
    latency_ns = link.latency_ns if seen.latency_ns is None else min(link.latency_ns, seen.latency_ns)
    jitter_ns, loss_ppm = min(link.jitter_ns, seen.jitter_ns), min(link.loss_ppm, seen.loss_ppm)
    return replace(link, latency_ns=latency_ns, jitter_ns=jitter_ns, loss_ppm=loss_ppm)


def _overbooked(snapshot: Snapshot) -> dict[Ends, int]:
    names = [gateway.name for gateway in snapshot.fleet.gateways]
    every = np.arange(len(names))
    free = free_bandwidth(snapshot.arrays, every[:, None], every[None, :])
    return {(names[s], names[t]): -int(free[s, t]) for s, t in np.argwhere(free < 0).tolist()}


ACTOR = "network"

BROKEN = TEXTS["network_violates"].removesuffix("{clauses}")
"""Start of the reason of a job with a reported violation. It identifies the job after a restart too."""

RECOVERED = Reason("network_meets")

LOOK_S = 1
"""Seconds between two reviews of running jobs."""

MAX_MOVES = 5
"""Maximum number of moves of a job for its network. The required duration of the violation doubles with each move."""

RENEW_S = 60
"""Minimum time before the reason of a job is updated with new figures, seconds."""

PATIENCE_S = 60
"""Maximum time that a job waits for the placement of the previously moved job, seconds."""

NS = 1_000_000_000


class SloMonitor:
    """Monitor of the links of running jobs with network bounds.

    A violation counts after `ControlSettings.slo_violation_s` without interruption. It starts when published figures
    violate a bound. The latest round has to violate it by itself too, since smoothed figures can be outdated. Links
    without measurements and unknown bandwidth violate nothing. A job that meets its bounds is reviewed again when the
    figures of its links change. Jobs are moved one at a time, and only if they fit elsewhere on a copy of the fleet.

    Parameters
    ----------
    live
        The control-plane state.
    policy
        Returns the policy of a queue; None while it is not ready.
    reservations
        Reservations for waiting jobs.

    Attributes
    ----------
    reported, moved
        Number of reported violations and of moved jobs since the start.
    """

    def __init__(self, live: ControlState, policy: Callable[[str], Profile | None], reservations: Reservations) -> None:
        self._state = live
        self._policy = policy
        self._verdicts = Verdicts(live, reservations)
        self._looked_ns: int | None = None
        self._retained: dict[Key, frozenset[Ends]] = {}
        self._last_ns: dict[Key, int] = {}
        self._said_ns: dict[Key, int] = {}
        self._since_ns: dict[Key, int] = {}
        self._tried_ns: dict[Key, int] = {}
        self._moves: dict[str, int] = {}
        self._underway: tuple[str, int] | None = None
        self.reported = 0
        self.moved = 0

    def changes(self) -> list[Change]:
        """Return the changes to store."""
        now_ns = self._state.clock.monotonic_ns()
        if self._looked_ns is not None and now_ns - self._looked_ns < LOOK_S * NS:
            return []
        self._looked_ns = now_ns
        watched = self._state.networked
        for known in (self._retained, self._since_ns, self._last_ns, self._tried_ns, self._said_ns):
            for key in known.keys() - watched:
                del known[key]
        self._moves = {job_id: count for job_id, count in self._moves.items() if job_id in self._state.jobs}
        return [change for key in self._due(watched) for change in self._look(key, now_ns)] if watched else []

    def _due(self, watched: set[Key]) -> list[Key]:
        """Return the attempts to review: violated, not reviewed yet, or with changed links."""
        changed = self._verdicts.renew()
        if changed is None:
            return sorted(watched)
        retained = self._retained
        return sorted(key for key in watched if key not in retained or not changed.isdisjoint(retained[key]))

    def _look(self, key: Key, now_ns: int) -> Iterator[Change]:
        found = self._state.current(key)
        self._retained.pop(key, None)
        if found is None or found[0].state is not JobState.RUNNING:
            self._forget(key)
            return
        job, attempt = found
        violation, reported = self._verdicts.violation(attempt), job.reason.startswith(BROKEN)
        if violation is None:
            self._forget(key)
            if reported:
                yield self._event_change(job, "slo_recovered", RECOVERED)
            else:
                self._retained[key] = self._verdicts.ways(attempt)
            return
        since_ns, patience_ns = self._since_ns.setdefault(key, now_ns), self._state.settings.slo_violation_s * NS
        last_ns = self._last_ns[key] = max(violation.seen_ns, self._last_ns.get(key, since_ns))
        if last_ns - since_ns < patience_ns or now_ns - last_ns > patience_ns:
            return
        if self._should_move(job, key, last_ns - since_ns, now_ns) and (
            elsewhere := self._alternative(job, key, violation)
        ):
            yield self._away(job, attempt, violation, elsewhere, now_ns)
        elif not reported:
            self.reported += 1
            self._said_ns[key] = now_ns
            yield self._event_change(job, "slo_violated", violation.text)
        elif job.reason != violation.text and now_ns - self._said_ns.get(key, -(2**62)) >= RENEW_S * NS:
            self._said_ns[key] = now_ns
            yield Change(update=[self._with_reason(job, violation.text)])

    def _forget(self, key: Key) -> None:
        self._since_ns.pop(key, None)
        self._last_ns.pop(key, None)

    def _event_change(self, job: JobRecord, kind: str, reason: str) -> Change:
        after = self._with_reason(job, reason)
        return Change(update=[after], insert=[job_event(after, ACTOR, kind)])

    def _with_reason(self, job: JobRecord, reason: str) -> JobRecord:
        return replace(job, reason=reason, changed_ns=self._state.clock.now_ns(), version=job.version + 1)

    # Moves.

    def _should_move(self, job: JobRecord, key: Key, lasted_ns: int, now_ns: int) -> bool:
        """Report whether to search for another place for a job now."""
        moves, patience_ns = self._moves.get(job.id, 0), self._state.settings.slo_violation_s * NS
        if job.spec.on_violation is not OnViolation.MOVE or moves >= MAX_MOVES:
            return False
        if lasted_ns < patience_ns * 2**moves or now_ns - self._tried_ns.get(key, -(2**62)) < patience_ns:
            return False
        if self._underway is None:
            return True
        mover = self._state.jobs.get(self._underway[0])
        return mover is None or not mover.state.waits or now_ns - self._underway[1] > PATIENCE_S * NS

    def _alternative(self, job: JobRecord, key: Key, violation: SloViolation) -> Refusals | None:
        """Return the places to avoid if the job then fits elsewhere on a copy of the fleet; else None."""
        self._tried_ns[key] = self._state.clock.monotonic_ns()
        policy, booking = self._policy(job.spec.queue), self._state.fleet.booking(key)
        if policy is None or booking is None:
            return None
        before = self._state.refusals.get(job.id, NEVER_REFUSED)
        places = before.places | {(cluster, "") for cluster in violation.clusters}
        retained = replace(before, places=places)
        copy = self._state.fleet.snapshot.copy()
        booking.copy().release(copy)
        asked = job.spec.job(job.id, self._state.clusters_of(job.spec.queue))
        try:
            queue = JobQueue(copy, [replace(asked, demand=retained.retained(asked.demand))])
        except RejectedError:  # its gateway is gone
            return None
        return retained if decide(copy, queue, policy, overdue={0}, dry_run=True).jobs_placed[0] else None

    def _away(
        self, job: JobRecord, attempt: Attempt, violation: SloViolation, retained: Refusals, now_ns: int
    ) -> Change:
        """Requeue a job; it avoids the violating clusters for a while."""
        self._moves[job.id] = self._moves.get(job.id, 0) + 1
        self._underway = job.id, now_ns
        self.moved += 1
        self._state.refusals[job.id] = retained
        self._state.deadlines.in_seconds(self._state.settings.exclusion_period_s, Due.FORGIVE, (job.id, 0, ""))
        wall_ns, reason = self._state.clock.now_ns(), violation.text
        change = sent_back(job, attempt, also(reason, ELSEWHERE), ACTOR, wall_ns)
        if not job.reason.startswith(BROKEN):
            self.reported += 1
            change.insert.insert(0, replace(job_event(job, ACTOR, "slo_violated", reason), at_ns=wall_ns))
        return change
