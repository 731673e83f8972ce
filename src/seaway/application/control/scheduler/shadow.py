"""Shadow mode: a challenger decides the same jobs as the live policy on a copy of the fleet.

The results are compared.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from seaway.application.changes import Change
from seaway.application.control.state import ControlState
from seaway.application.records import ShadowResult
from seaway.domain.job_spec import NS_PER_MS
from seaway.scheduling.columns import PLAN_NODE
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import use, used_shares

MAX_STORED = 1000
"""Maximum number of comparisons in memory. Older ones are dropped if the database is unavailable for long."""


MAX_COUNTED = 100_000
"""Maximum number of jobs of a queue that are known as counted."""

FACTS = ("jobs", "answered", "fallbacks", "live_placed", "shadow_placed", "same_node")
"""Counts of `ShadowResult` in which each job counts once."""


@dataclass(slots=True)
class _Counted:
    """Counts in which the jobs of a queue are included, for one live policy and one challenger.

    A job that waits is decided many times, and counts once in each count.
    """

    policies: tuple[str, str]
    jobs: dict[str, int] = field(default_factory=dict)
    """Bits of `FACTS` by job."""

    def first(self, job_id: str, facts: Sequence[bool]) -> list[str]:
        """Return the facts that are true of a job for the first time."""
        known, now = self.jobs.get(job_id, 0), sum(fact << bit for bit, fact in enumerate(facts))
        if now & ~known:
            self.jobs[job_id] = known | now
        if len(self.jobs) > MAX_COUNTED:
            del self.jobs[next(iter(self.jobs))]
        return [name for bit, name in enumerate(FACTS) if now & ~known & 1 << bit]


class Shadows:
    """Comparison of challengers with live policies."""

    def __init__(self, live: ControlState) -> None:
        self._state = live
        self._results: deque[ShadowResult] = deque(maxlen=MAX_STORED)
        self._counted: dict[str, _Counted] = {}

    def before(self, batch: Sequence[Entry]) -> Snapshot | None:
        """Return a copy of the fleet for the challenger; None if no queue of the batch has a challenger."""
        return self._state.fleet.snapshot.copy() if any(self.challenger(entry) for entry in batch) else None

    def challenger(self, entry: Entry) -> str:
        """Return the name of the queue's challenger; empty if there is none."""
        queue = self._state.queues.get(entry.queue)
        return queue.shadow if queue else ""

    def compare(self, before: Snapshot, batch: Sequence[Entry], plan: Plan, live: Profile, challenger: Profile) -> None:
        """Run the challenger for the batch on `before`, and record both results.

        A batch in which all counts are of jobs that are included already leaves no record.
        """
        queue = JobQueue(before, plan.queue.jobs)  # without what they may not use
        other = decide(before, queue, challenger, dry_run=True)
        same = plan.decisions[:, PLAN_NODE] == other.decisions[:, PLAN_NODE]
        differ = set(np.unique(plan.decisions[~same, 0]).tolist())
        counted = self._counted_in(batch[0].queue, live.title, challenger.title)
        counts, waits_ms, now_ns = Counter[str](), Counter[str](), self._state.clock.now_ns()
        placed = zip(plan.jobs_placed.tolist(), other.jobs_placed.tolist(), strict=True)
        for at, (entry, (fits, would_fit)) in enumerate(zip(batch, placed, strict=True)):
            decided = _answered(other, challenger, at), _fell_back(other, at)
            first = counted.first(entry.id, (True, *decided, fits, would_fit, fits and at not in differ))
            since_ns = self._state.stages.waits_since_ns(self._state.jobs[entry.id])
            counts.update(first)
            waits_ms.update(dict.fromkeys(first, 0 if since_ns is None else max(0, now_ns - since_ns) // NS_PER_MS))
        if not counts:
            return
        self._results.append(
            ShadowResult(
                at_ns=now_ns,
                queue=batch[0].queue,
                live=live.title,
                shadow=challenger.title,
                **{name: counts[name] for name in FACTS},
                tries=len(batch),
                live_wait_ms=waits_ms["live_placed"],
                shadow_wait_ms=waits_ms["shadow_placed"],
                live_fragmentation_milli=_fragmentation_milli(plan.snapshot),
                shadow_fragmentation_milli=_fragmentation_milli(before),
            )
        )

    def _counted_in(self, queue: str, live: str, challenger: str) -> _Counted:
        """Return the counted jobs of a queue; none after a change of its policies."""
        known = self._counted.get(queue)
        if known is None or known.policies != (live, challenger):
            known = self._counted[queue] = _Counted((live, challenger))
        return known

    def changes(self) -> list[Change]:
        """Return the comparisons to store."""
        taken = list(self._results)
        self._results.clear()
        return [Change(insert=list(taken))] if taken else []


def _answered(plan: Plan, profile: Profile, at: int) -> bool:
    """Report whether a policy decided a job itself. For a policy with a version, fallback decisions do not count."""
    return not profile.version or (at in plan.deciders and not plan.deciders[at].reason)


def _fell_back(plan: Plan, at: int) -> bool:
    return at in plan.deciders and bool(plan.deciders[at].reason)


def _fragmentation_milli(snapshot: Snapshot) -> int:
    fragmentation = use(used_shares(snapshot.arrays.clusters)).fragmentation
    return round(1000 * (fragmentation or 0))
