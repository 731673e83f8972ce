"""Breaches: running jobs whose links do not keep their bounds any more, reported and, where wanted, moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations

from seaway.application.changes import Change
from seaway.application.control.deadlines import Due
from seaway.application.control.fleet import Key
from seaway.application.control.live import Live
from seaway.application.control.refusals import NEVER_REFUSED, Refusals
from seaway.application.records import Attempt, JobRecord
from seaway.application.transitions import ELSEWHERE, sent_back, told
from seaway.domain.amounts import rate_text
from seaway.domain.bounds import misses, way
from seaway.domain.errors import RejectedError
from seaway.domain.lifecycle import JobState
from seaway.domain.network import Link, NetworkNeed, OnBreach
from seaway.scheduling.engine import decide
from seaway.scheduling.links import free_bandwidth
from seaway.scheduling.profile import Profile
from seaway.scheduling.queue import JobQueue
from seaway.scheduling.snapshot import Snapshot

ACTOR = "network"

BROKEN = "its network breaks its bounds: "
"""How the reason of a job begins whose breach was reported; so it is known after a restart, too."""

KEPT = "its network keeps its bounds again"

LOOK_S = 1
"""How often running jobs are looked at."""

MOST_MOVES = 5
"""How often a job is moved for its network; each time the breach has to last twice as long as the time before."""

PATIENCE_S = 60
"""How long the next job waits at most for the one that was moved before it to be placed."""

NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Breach:
    """What is broken of a job's network.

    Attributes
    ----------
    text
        Which links, and by which figures.
    clusters
        Those to which the user's link is broken.
    """

    text: str
    clusters: frozenset[str]


class Breaches:
    """Watches the links that running jobs with bounds go by.

    A breach counts once it has lasted for `ControlSettings.network_breach_s`, by the figures that decisions go by,
    which are smoothed. A link that is not measured breaks nothing: nobody knows. Of jobs that want to be moved one goes
    at a time, and only when a copy of the fleet says that it fits elsewhere.

    Parameters
    ----------
    live
        The loop's memory.
    policy
        Returns the policy of a queue; None while it is not ready.

    Attributes
    ----------
    reported, moved
        How often since the start.
    """

    def __init__(self, live: Live, policy: Callable[[str], Profile | None]) -> None:
        self._live = live
        self._policy = policy
        self._looked_ns: int | None = None
        self._since_ns: dict[Key, int] = {}
        self._tried_ns: dict[Key, int] = {}
        self._moves: dict[str, int] = {}
        self._underway: tuple[str, int] | None = None
        self.reported = 0
        self.moved = 0

    def changes(self) -> list[Change]:
        """Return what is to be stored now."""
        now_ns = self._live.clock.monotonic_ns()
        if self._looked_ns is not None and now_ns - self._looked_ns < LOOK_S * NS:
            return []
        self._looked_ns = now_ns
        watched = self._live.networked
        for known in (self._since_ns, self._tried_ns):
            for key in known.keys() - watched:
                del known[key]
        self._moves = {job_id: count for job_id, count in self._moves.items() if job_id in self._live.jobs}
        links = {(link.source, link.target): link for link in self._live.fleet.snapshot.links} if watched else {}
        return [change for key in sorted(watched) for change in self._look(key, links, now_ns)]

    def _look(self, key: Key, links: dict[tuple[str, str], Link], now_ns: int) -> Iterator[Change]:
        found = self._live.current(key)
        if found is None or found[0].state is not JobState.RUNNING:
            self._since_ns.pop(key, None)
            return
        job, attempt = found
        breach, reported = self.breach(attempt, links), job.reason.startswith(BROKEN)
        if breach is None:
            self._since_ns.pop(key, None)
            if reported:
                yield self._said(job, "recovered", KEPT)
            return
        since_ns = self._since_ns.setdefault(key, now_ns)
        if now_ns - since_ns < self._live.settings.network_breach_s * NS:
            return
        if self._wants_away(job, key, since_ns, now_ns) and (elsewhere := self._elsewhere(job, key, breach)):
            yield self._away(job, attempt, breach, elsewhere, now_ns)
        elif not reported:
            self.reported += 1
            yield self._said(job, "breach", f"{BROKEN}{breach.text}")

    def breach(self, attempt: Attempt, links: dict[tuple[str, str], Link]) -> Breach | None:
        """Return what is broken of an attempt's network; None when all that was measured keeps its bounds."""
        demand, need = attempt.spec.demand, attempt.spec.between_replicas
        doors = {cluster: _door(self._live.fleet.snapshot, cluster) for cluster in attempt.clusters}
        broken = {
            cluster: way(demand.gateway, door, said)
            for cluster, door in doors.items()
            if (said := self._missed(demand.network, links.get((demand.gateway, door)))) and door != demand.gateway
        }
        texts = list(dict.fromkeys(broken.values()))
        ends = permutations(sorted(set(doors.values()) - {""}), 2)
        texts += [way(*each, said) for each in ends if (said := self._missed(need, links.get(each)))]
        return Breach("; ".join(texts), frozenset(broken)) if texts else None

    def _missed(self, need: NetworkNeed, link: Link | None) -> tuple[str, ...]:
        """Say what a link that was measured breaks, be it that jobs were promised more than it has by now."""
        said = () if link is None else misses(need, link)
        if said or link is None or not need.min_bandwidth_mbps:
            return said
        over_mbps = _overdrawn_mbps(self._live.fleet.snapshot, link)
        return (f"{rate_text(over_mbps)} more is promised than it has",) if over_mbps else ()

    def _said(self, job: JobRecord, kind: str, reason: str) -> Change:
        after = replace(job, reason=reason, changed_ns=self._live.clock.now_ns(), version=job.version + 1)
        return Change(update=[after], insert=[told(after, ACTOR, kind)])

    # Moving.

    def _wants_away(self, job: JobRecord, key: Key, since_ns: int, now_ns: int) -> bool:
        """Tell whether a job is to be tried elsewhere now."""
        moves, patience_ns = self._moves.get(job.id, 0), self._live.settings.network_breach_s * NS
        if job.spec.on_breach is not OnBreach.MOVE or moves >= MOST_MOVES:
            return False
        if now_ns - since_ns < patience_ns * 2**moves or now_ns - self._tried_ns.get(key, -(2**62)) < patience_ns:
            return False
        if self._underway is None:
            return True
        mover = self._live.jobs.get(self._underway[0])
        return mover is None or not mover.state.waits or now_ns - self._underway[1] > PATIENCE_S * NS

    def _elsewhere(self, job: JobRecord, key: Key, breach: Breach) -> Refusals | None:
        """Return what the job is to be kept from if a copy of the fleet then has a place for it; else None."""
        self._tried_ns[key] = self._live.clock.monotonic_ns()
        policy, booking = self._policy(job.spec.queue), self._live.fleet.booking(key)
        if policy is None or booking is None:
            return None
        before = self._live.refusals.get(job.id, NEVER_REFUSED)
        places = before.places | {(cluster, "") for cluster in breach.clusters}
        kept = replace(before, places=places)
        copy = self._live.fleet.snapshot.copy()
        booking.copy().release(copy)
        asked = job.spec.job(job.id, self._live.clusters_of(job.spec.queue))
        try:
            queue = JobQueue(copy, [replace(asked, demand=kept.kept(asked.demand))])
        except RejectedError:  # its gateway left
            return None
        return kept if decide(copy, queue, policy).jobs_placed[0] else None

    def _away(self, job: JobRecord, attempt: Attempt, breach: Breach, kept: Refusals, now_ns: int) -> Change:
        """Send a job back to its queue, kept for a while from where its network is broken."""
        self._moves[job.id] = self._moves.get(job.id, 0) + 1
        self._underway = job.id, now_ns
        self.reported += 1
        self.moved += 1
        self._live.refusals[job.id] = kept
        self._live.deadlines.in_seconds(self._live.settings.forgive_s, Due.FORGIVE, (job.id, 0, ""))
        wall_ns, reason = self._live.clock.now_ns(), f"{BROKEN}{breach.text}"
        change = sent_back(job, attempt, f"{reason}; {ELSEWHERE}", ACTOR, wall_ns)
        change.insert.insert(0, replace(told(job, ACTOR, "breach", reason), at_ns=wall_ns))
        return change


def _door(snapshot: Snapshot, cluster: str) -> str:
    """Return the gateway that a cluster stands behind; empty when it or the cluster is unknown."""
    return next((each.gateway for each in snapshot.clusters if each.name == cluster), "")


def _overdrawn_mbps(snapshot: Snapshot, link: Link) -> int:
    """Return by how much more is promised on a link, or on an interface at its ends, than it has, Mbit/s."""
    at = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    return max(0, -int(free_bandwidth(snapshot.arrays, at[link.source], at[link.target])))
