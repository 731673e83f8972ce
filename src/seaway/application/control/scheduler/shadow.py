"""Shadow mode: a challenger decides the same jobs as the live policy on a copy of the fleet.

The results are compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from seaway.application.changes import Change
from seaway.application.control.pending import Entry
from seaway.application.control.state import ControlState
from seaway.application.records import ShadowResult
from seaway.scheduling.columns import PLAN_NODE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import use, used_shares

MAX_STORED = 1000
"""Maximum number of comparisons in memory. Older ones are dropped if the database is unavailable for long."""


class Shadows:
    """Comparison of challengers with live policies."""

    def __init__(self, live: ControlState) -> None:
        self._state = live
        self._results: deque[ShadowResult] = deque(maxlen=MAX_STORED)

    def before(self, batch: Sequence[Entry]) -> Snapshot | None:
        """Return a copy of the fleet for the challenger; None if no queue of the batch has a challenger."""
        return self._state.fleet.snapshot.copy() if any(self.challenger(entry) for entry in batch) else None

    def challenger(self, entry: Entry) -> str:
        """Return the name of the queue's challenger; empty if there is none."""
        queue = self._state.queues.get(entry.queue)
        return queue.shadow if queue else ""

    def compare(self, before: Snapshot, batch: Sequence[Entry], plan: Plan, live: Profile, challenger: Profile) -> None:
        """Run the challenger for the batch on `before`, and record both results."""
        queue = JobQueue(before, plan.queue.jobs)  # without what they may not use
        other = decide(before, queue, challenger, dry_run=True)
        same = plan.decisions[:, PLAN_NODE] == other.decisions[:, PLAN_NODE]
        differs = np.unique(plan.decisions[~same, 0]) if len(same) else np.zeros(0)
        self._results.append(
            ShadowResult(
                at_ns=self._state.clock.now_ns(),
                queue=batch[0].queue,
                live=live.title,
                shadow=challenger.title,
                jobs=len(batch),
                answered=_answered(other, challenger),
                fallbacks=sum(bool(each.reason) for each in other.deciders.values()),
                live_placed=int(plan.jobs_placed.sum()),
                shadow_placed=int(other.jobs_placed.sum()),
                same_node=len(batch) - len(differs),
                live_fragmentation_milli=_fragmentation_milli(plan.snapshot),
                shadow_fragmentation_milli=_fragmentation_milli(before),
            )
        )

    def changes(self) -> list[Change]:
        """Return the comparisons to store."""
        taken = list(self._results)
        self._results.clear()
        return [Change(insert=list(taken))] if taken else []


def _answered(plan: Plan, profile: Profile) -> int:
    """Count the jobs that a policy decided itself. For a policy with a version, fallback decisions do not count."""
    if not profile.version:
        return len(plan.queue)
    return sum(not each.reason for each in plan.deciders.values())


def _fragmentation_milli(snapshot: Snapshot) -> int:
    fragmentation = use(used_shares(snapshot.arrays.clusters)).fragmentation
    return round(1000 * (fragmentation or 0))
