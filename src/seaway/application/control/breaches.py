"""Breaches: running jobs whose links do not keep their bounds any more, reported and, where wanted, moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.control.deadlines import Due
from seaway.application.control.fleet import Key
from seaway.application.control.live import Live
from seaway.application.control.refusals import NEVER_REFUSED, Refusals
from seaway.application.control.reserve import Reservations
from seaway.application.control.verdicts import Breach, Verdicts
from seaway.application.records import Attempt, JobRecord
from seaway.application.transitions import ELSEWHERE, sent_back, told
from seaway.domain.errors import RejectedError
from seaway.domain.lifecycle import JobState
from seaway.domain.network import Ends, OnBreach
from seaway.scheduling.engine import decide
from seaway.scheduling.profile import Profile
from seaway.scheduling.queue import JobQueue

ACTOR = "network"

BROKEN = "its network breaks its bounds: "
"""How the reason of a job begins whose breach was reported; so it is known after a restart, too."""

KEPT = "its network keeps its bounds again"

LOOK_S = 1
"""How often running jobs are looked at."""

MOST_MOVES = 5
"""How often a job is moved for its network; each time the breach has to last twice as long as the time before."""

RENEW_S = 60
"""How long the reason of a job tells at least of the figures that it tells of; when others break it, they follow."""

PATIENCE_S = 60
"""How long the next job waits at most for the one that was moved before it to be placed."""

NS = 1_000_000_000


class Breaches:
    """Watches the links that running jobs with bounds go by.

    A breach counts once it has lasted for `ControlSettings.network_breach_s`: from when the figures that decisions go
    by first broke a bound, without a break, to the latest round that does so by itself. The smoothed ones alone tell of
    what may be long over. A link that is not measured breaks nothing, nor does bandwidth that is not known. What keeps
    its bounds is not looked at again until its links have other figures. Of jobs that want to be moved one goes at a
    time, and only when a copy of the fleet says that it fits elsewhere.

    Parameters
    ----------
    live
        The loop's memory.
    policy
        Returns the policy of a queue; None while it is not ready.
    reservations
        What is kept for jobs that wait.

    Attributes
    ----------
    reported, moved
        How often since the start.
    """

    def __init__(self, live: Live, policy: Callable[[str], Profile | None], reservations: Reservations) -> None:
        self._live = live
        self._policy = policy
        self._verdicts = Verdicts(live, reservations)
        self._looked_ns: int | None = None
        self._kept: dict[Key, frozenset[Ends]] = {}
        self._last_ns: dict[Key, int] = {}
        self._said_ns: dict[Key, int] = {}
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
        for known in (self._kept, self._since_ns, self._last_ns, self._tried_ns, self._said_ns):
            for key in known.keys() - watched:
                del known[key]
        self._moves = {job_id: count for job_id, count in self._moves.items() if job_id in self._live.jobs}
        return [change for key in self._due(watched) for change in self._look(key, now_ns)] if watched else []

    def _due(self, watched: set[Key]) -> list[Key]:
        """Return what is to be looked at: what did not keep its bounds, or was not looked at, or has other links."""
        changed = self._verdicts.renew()
        if changed is None:
            return sorted(watched)
        kept = self._kept
        return sorted(key for key in watched if key not in kept or not changed.isdisjoint(kept[key]))

    def _look(self, key: Key, now_ns: int) -> Iterator[Change]:
        found = self._live.current(key)
        self._kept.pop(key, None)
        if found is None or found[0].state is not JobState.RUNNING:
            self._forget(key)
            return
        job, attempt = found
        breach, reported = self._verdicts.breach(attempt), job.reason.startswith(BROKEN)
        if breach is None:
            self._forget(key)
            if reported:
                yield self._said(job, "recovered", KEPT)
            else:
                self._kept[key] = self._verdicts.ways(attempt)
            return
        since_ns, patience_ns = self._since_ns.setdefault(key, now_ns), self._live.settings.network_breach_s * NS
        last_ns = self._last_ns[key] = max(breach.seen_ns, self._last_ns.get(key, since_ns))
        if last_ns - since_ns < patience_ns or now_ns - last_ns > patience_ns:
            return
        if self._wants_away(job, key, last_ns - since_ns, now_ns) and (elsewhere := self._elsewhere(job, key, breach)):
            yield self._away(job, attempt, breach, elsewhere, now_ns)
        elif not reported:
            self.reported += 1
            self._said_ns[key] = now_ns
            yield self._said(job, "breach", f"{BROKEN}{breach.text}")
        elif job.reason != f"{BROKEN}{breach.text}" and now_ns - self._said_ns.get(key, -(2**62)) >= RENEW_S * NS:
            self._said_ns[key] = now_ns
            yield Change(update=[self._saying(job, f"{BROKEN}{breach.text}")])

    def _forget(self, key: Key) -> None:
        self._since_ns.pop(key, None)
        self._last_ns.pop(key, None)

    def _said(self, job: JobRecord, kind: str, reason: str) -> Change:
        after = self._saying(job, reason)
        return Change(update=[after], insert=[told(after, ACTOR, kind)])

    def _saying(self, job: JobRecord, reason: str) -> JobRecord:
        return replace(job, reason=reason, changed_ns=self._live.clock.now_ns(), version=job.version + 1)

    # Moving.

    def _wants_away(self, job: JobRecord, key: Key, lasted_ns: int, now_ns: int) -> bool:
        """Tell whether a job is to be tried elsewhere now."""
        moves, patience_ns = self._moves.get(job.id, 0), self._live.settings.network_breach_s * NS
        if job.spec.on_breach is not OnBreach.MOVE or moves >= MOST_MOVES:
            return False
        if lasted_ns < patience_ns * 2**moves or now_ns - self._tried_ns.get(key, -(2**62)) < patience_ns:
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
        return kept if decide(copy, queue, policy, overdue={0}).jobs_placed[0] else None

    def _away(self, job: JobRecord, attempt: Attempt, breach: Breach, kept: Refusals, now_ns: int) -> Change:
        """Send a job back to its queue, kept for a while from where its network is broken."""
        self._moves[job.id] = self._moves.get(job.id, 0) + 1
        self._underway = job.id, now_ns
        self.moved += 1
        self._live.refusals[job.id] = kept
        self._live.deadlines.in_seconds(self._live.settings.forgive_s, Due.FORGIVE, (job.id, 0, ""))
        wall_ns, reason = self._live.clock.now_ns(), f"{BROKEN}{breach.text}"
        change = sent_back(job, attempt, f"{reason}; {ELSEWHERE}", ACTOR, wall_ns)
        if not job.reason.startswith(BROKEN):
            self.reported += 1
            change.insert.insert(0, replace(told(job, ACTOR, "breach", reason), at_ns=wall_ns))
        return change
