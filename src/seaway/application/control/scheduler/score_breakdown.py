"""Score breakdown of decisions, computed on a copy after the decision and without the lock."""

from __future__ import annotations

from collections.abc import Sequence

from seaway.application.ports.clock import Clock
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.columns import JOB_SEQUENCE
from seaway.scheduling.explain import explain
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot

MAX_JOBS = 4
"""Maximum batch size for a score breakdown. Larger batches are placed without one, to save time."""

MAX_NODES = 500
"""Maximum fleet size for a score breakdown, in nodes. In larger fleets it takes longer than the decision."""

PER_S = 10
"""Long-term rate limit of score breakdowns, jobs per second."""

AT_ONCE = 20
"""Maximum burst of score breakdowns, jobs."""

BEST = 3
"""Number of candidates in a score breakdown."""

MAX_NAME = 80
"""Maximum length of the name of a candidate."""


class ScoreBreakdown:
    """Score breakdown of the decisions of a batch.

    Parameters
    ----------
    snapshot
        Copy of the fleet with the whole batch placed, for exclusive use.
    allocated
        Allocations of the batch's jobs on the copy.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, allocated: Sequence[Allocation], profile: Profile) -> None:
        self._snapshot = snapshot
        self._queue = queue
        self._left = [booking.copy() for booking in allocated]
        self._profile = profile

    def of(self, at: int) -> str:
        """Return the best scores for the first replica of a job. Call it from the last job to the first."""
        while len(self._left) > at:
            self._left.pop().release(self._snapshot)
        sequence = int(self._queue.rows[at, JOB_SEQUENCE])
        best = explain(self._snapshot, self._queue.jobs[at], self._profile, sequence=sequence).candidates[:BEST]
        of = "" if self._queue.jobs[at].replicas == 1 else " for its first replica"
        scores = ", ".join(f"{f'{each.cluster}/{each.node}'[:MAX_NAME]} {each.total:,}" for each in best)
        return f"scores{of}: {scores}" if scores else ""


class ScoreRecorder:
    """Rate limit of score breakdowns: few jobs in a batch, small fleets, and a limited number per second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(AT_ONCE)
        self._counted_ns = clock.monotonic_ns()

    def open(
        self, snapshot: Snapshot, queue: JobQueue, allocated: Sequence[Allocation], profile: Profile
    ) -> ScoreBreakdown | None:
        """Prepare the breakdown of a decided batch; None if it would take too long."""
        now_ns = self._clock.monotonic_ns()
        self._left = min(AT_ONCE, self._left + (now_ns - self._counted_ns) * PER_S / 1e9)
        self._counted_ns = now_ns
        count = len(queue.jobs)
        if count > min(MAX_JOBS, self._left) or len(snapshot.node_index) > MAX_NODES:
            return None
        self._left -= count
        copy = snapshot.copy()
        copy.unshare_demands()  # the loop continues to write into its own
        return ScoreBreakdown(copy, queue, allocated, profile)
