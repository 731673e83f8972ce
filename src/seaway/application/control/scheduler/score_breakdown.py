"""Score that decided each placement, computed on a copy after the decision and without the lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seaway.application.ports.clock import Clock
from seaway.domain.job import Job
from seaway.domain.placement import Candidate, Placement
from seaway.domain.reasons import Reason, also
from seaway.scheduling.allocations import Allocation
from seaway.scheduling.columns import JOB_SEQUENCE
from seaway.scheduling.data_locality import locality_tiers, pull_ms
from seaway.scheduling.explain import explain
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.profile import Profile
from seaway.scheduling.shortage import room
from seaway.scheduling.snapshot.snapshot import Snapshot

MAX_NODES = 500
"""Maximum fleet size for a score breakdown, in nodes. In larger fleets it takes longer than the decision."""

PER_S = 10
"""Long-term rate limit of score breakdowns, jobs per second."""

AT_ONCE = 20
"""Maximum burst of score breakdowns, jobs."""

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

    def of(self, at: int, chosen: Sequence[Placement]) -> str:
        """Return what decided for the first replica of a job, against the next best node.

        Call it from the last job to the first.

        Parameters
        ----------
        chosen
            Placements of the job.
        """
        while len(self._left) > at:
            self._left.pop().release(self._snapshot)
        job, sequence = self._queue.jobs[at], int(self._queue.rows[at, JOB_SEQUENCE])
        found = explain(self._snapshot, job, self._profile, sequence=sequence, most=MAX_NODES).candidates
        return why_chosen(self._snapshot, job, self._profile, chosen, found)


def why_chosen(
    snapshot: Snapshot, job: Job, profile: Profile, placements: Sequence[Placement], candidates: Sequence[Candidate]
) -> str:
    """Return what decided for the node of the first replica of a job, against the next best one; empty if unknown.

    Parameters
    ----------
    snapshot
        Fleet at the decision.
    placements
        Placements of the job.
    candidates
        Candidates for the first replica, best first.
    """
    if not placements or not candidates:
        return ""
    first, best, among, elsewhere = placements[0], candidates[0], candidates, ""
    if job.gang and best.cluster not in (clusters := {each.cluster for each in placements}):
        count = room(snapshot, _in_cluster(job, best.cluster), profile)
        if count < job.replicas:
            among = [each for each in candidates if each.cluster in clusters]
            place, known = f"{best.cluster}/{best.node}", {"count": count, "replicas": job.replicas}
            elsewhere = Reason("better_elsewhere", place=place, cluster=best.cluster, **known)
    if not among or (among[0].cluster, among[0].node) != (first.cluster, first.node):
        return ""  # the policy looks at more than the first replica
    decided = decided_by(among, _tiers(snapshot, job))
    said = decided if job.replicas == 1 else Reason("first_replica", what=decided)
    return also(elsewhere, said) if elsewhere else said


def _in_cluster(job: Job, cluster: str) -> Job:
    """Return a job that may use one cluster only."""
    nodes = replace(job.demand.nodes, clusters=frozenset({cluster}))
    return replace(job, demand=replace(job.demand, nodes=nodes))


def _tiers(snapshot: Snapshot, job: Job) -> Mapping[str, int]:
    """Return the tier of each cluster by closeness to the job's data, the closest is 0."""
    names = [each.name for each in snapshot.clusters]
    if not job.data.places:
        return dict.fromkeys(names, 0)
    tiers = locality_tiers(pull_ms(snapshot, job.data)).argmax(axis=0)
    return dict(zip(names, tiers.tolist(), strict=True))


def decided_by(candidates: Sequence[Candidate], tiers: Mapping[str, int]) -> str:
    """Return what decided for the first candidate against the next best one: the score with the largest lead.

    Parameters
    ----------
    candidates
        Candidates, best first. Those equal to the first one are only counted.
    tiers
        Tier of each cluster by closeness to the job's data, which goes before scores.

    Examples
    --------
    >>> best = Candidate("a", "n1", {"Price": 90, "Distance": 5}, 95)
    >>> other = Candidate("b", "n2", {"Price": 40, "Distance": 9}, 49)
    >>> decided_by([best, other], {"a": 0, "b": 0})
    'Price decided: 90 against 40 of b/n2, the next best (in total 95 against 49)'
    """
    best, ranks = candidates[0], [(tiers[each.cluster], each.connection, each.total) for each in candidates]
    alike = [each for each, rank in zip(candidates, ranks, strict=True) if rank == ranks[0]]
    broken = any(each.island_loss > best.island_loss for each in alike)
    equal = Reason("equal_islands" if broken else "equal_scores", count=len(alike)) if len(alike) > 1 else ""
    other = next((each for each, rank in zip(candidates, ranks, strict=True) if rank != ranks[0]), None)
    if other is None:
        return equal or Reason("no_other_node")
    name = f"{other.cluster}/{other.node}"[:MAX_NAME]
    if tiers[best.cluster] < tiers[other.cluster]:
        said = Reason("data_closer", place=name)
    elif best.connection < other.connection:
        said = Reason("gpus_closer", place=name)
    else:
        term = max(best.scores, key=lambda term: best.scores[term] - other.scores[term])
        said = Reason("decided", term=term, score=best.scores[term], lower=other.scores[term], place=name)
        if len(best.scores) > 1:
            said = Reason("decided_in_total", **said.params, total=best.total, less=other.total)
    return also(said, equal)


class ScoreRecorder:
    """Rate limit of score breakdowns: small fleets, and a limited number per second."""

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
        if count > self._left or len(snapshot.node_index) > MAX_NODES:
            return None
        self._left -= count
        copy = snapshot.copy()
        copy.unshare_demands()  # the loop continues to write into its own
        return ScoreBreakdown(copy, queue, allocated, profile)
