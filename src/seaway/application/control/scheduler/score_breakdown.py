"""Notes on decisions: the scores that decided, worked out afterwards on a copy, while no one waits."""

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
"""Maximum number of jobs of a batch with a score breakdown. Larger batches are placed without, to save time."""

MAX_NODES = 500
"""Nodes of a fleet up to which they are; with more it takes longer than to decide."""

PER_S = 10
"""Jobs of a second that notes are taken of in the long run."""

AT_ONCE = 20
"""Jobs that notes are taken of after a rest."""

BEST = 3
"""Candidates that a note names."""

MAX_NAME = 80
"""Characters of a candidate's name."""


class ScoreBreakdown:
    """Remembers what a batch was decided on.

    Parameters
    ----------
    snapshot
        A copy of the fleet with the whole batch placed, which no one else uses.
    allocated
        What each job of the batch holds there.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, allocated: Sequence[Allocation], profile: Profile) -> None:
        self._snapshot = snapshot
        self._queue = queue
        self._left = [booking.copy() for booking in allocated]
        self._profile = profile

    def of(self, at: int) -> str:
        """Say how the best places scored for the first replica of a job; to be asked from the last job to the first."""
        while len(self._left) > at:
            self._left.pop().release(self._snapshot)
        sequence = int(self._queue.rows[at, JOB_SEQUENCE])
        best = explain(self._snapshot, self._queue.jobs[at], self._profile, sequence=sequence).candidates[:BEST]
        of = "" if self._queue.jobs[at].replicas == 1 else " for its first replica"
        scores = ", ".join(f"{f'{each.cluster}/{each.node}'[:MAX_NAME]} {each.total:,}" for each in best)
        return f"scores{of}: {scores}" if scores else ""


class ScoreRecorder:
    """Takes notes while there is time for it: of few jobs at a time, in small fleets, and only so many in a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(AT_ONCE)
        self._counted_ns = clock.monotonic_ns()

    def open(
        self, snapshot: Snapshot, queue: JobQueue, allocated: Sequence[Allocation], profile: Profile
    ) -> ScoreBreakdown | None:
        """Prepare notes on a batch that was just decided; None where they would take too long."""
        now_ns = self._clock.monotonic_ns()
        self._left = min(AT_ONCE, self._left + (now_ns - self._counted_ns) * PER_S / 1e9)
        self._counted_ns = now_ns
        count = len(queue.jobs)
        if count > min(MAX_JOBS, self._left) or len(snapshot.node_index) > MAX_NODES:
            return None
        self._left -= count
        copy = snapshot.copy()
        copy.unshare_demands()  # the loop goes on writing into its own
        return ScoreBreakdown(copy, queue, allocated, profile)
