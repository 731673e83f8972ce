"""What-if questions and their answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from seaway.application.moves import MAX_MOVES, JobMove
from seaway.application.whatif.clusters import ClusterChange, ClusterSums, shares_of_gpus
from seaway.application.whatif.queues import QueueChanges
from seaway.application.whatif.trace import TraceChanges, TraceJob
from seaway.application.whatif.trial import ASKED, NewNodes
from seaway.application.whatif.waits import WaitChanges
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import Placement
from seaway.domain.reasons import Reason
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import use, used_shares


@dataclass(frozen=True, slots=True)
class Question:
    """What-if question. All parts that are set apply together.

    Attributes
    ----------
    drain
        Clusters, or ``cluster/node``, to drain.
    add_nodes
        Nodes to add.
    policy
        Policy that places all live jobs again; empty leaves running jobs in place.
    jobs
        Jobs to submit.
    replan
        Whether the policies of the queues place all live jobs again.
    changes
        Changes of queues and tenants.
    window_s
        Time from now that shares of GPUs cover, seconds.
    trace
        Jobs to replay on a copy of the empty fleet, beside the answer for the present jobs.
    last_s
        Time in which the submitted jobs are replayed in place of `trace`, seconds; 0 for none.
    """

    drain: tuple[str, ...] = ()
    add_nodes: tuple[NewNodes, ...] = ()
    policy: str = ""
    jobs: tuple[JobSpec, ...] = ()
    replan: bool = False
    changes: QueueChanges = field(default_factory=QueueChanges)
    window_s: int = 3600
    trace: tuple[TraceJob, ...] = ()
    last_s: int = 0

    @property
    def replays(self) -> bool:
        """True if a trace is replayed."""
        return bool(self.trace or self.last_s)

    @property
    def everything(self) -> bool:
        """True if all live jobs are placed again."""
        return self.replan or bool(self.policy)


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of a fleet.

    Attributes
    ----------
    placed, waiting
        Number of jobs.
    allocation_percent
        Allocated share of the GPUs on nodes that accept new work. A slice counts as its larger share of cores and
        memory. None without GPUs.
    fragmentation
        See `seaway.simulation.outcome.Use`.
    """

    placed: int
    waiting: int
    allocation_percent: float | None
    fragmentation: float | None


@dataclass(frozen=True, slots=True)
class Move:
    """Placement of a job before and after: cluster and node of each replica; empty without a placement.

    Attributes
    ----------
    why
        Reason why the job would wait; empty if it would not, or if the limit of explained kinds is reached.
    starts_ns
        Expected start of a waiting job after the change, by the wall clock; None if it is unknown.
    """

    job_id: str
    job: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    why: str = ""
    starts_ns: int | None = None

    @property
    def asked(self) -> bool:
        """True if the job is part of the question and was never submitted."""
        return self.job_id.startswith(ASKED)


@dataclass(frozen=True, slots=True)
class Consequences:
    """Answer to a question.

    Attributes
    ----------
    moved
        Jobs that would move.
    started
        Waiting or submitted jobs that would run.
    stopped
        Running jobs that would have to wait.
    shrunk
        Elastic jobs that would continue with fewer replicas.
    grown
        Elastic jobs that would get more replicas.
    waiting
        Waiting or submitted jobs that would wait.
    message
        The answer in one sentence.
    clusters
        Totals of each cluster, before and after.
    waits
        Waits of jobs until their expected starts, before and after.
    trace
        Replays of the trace before and after; None without one.
    moves
        Moves of running jobs that `Moves.apply` takes; None if they are too many. Jobs that displace others, and
        services with a standby, are left to the control loop.
    lost_gpu_hours
        GPU-hours of running jobs without checkpoints that would move or stop, since their starts.
    """

    before: Sums
    after: Sums
    moved: tuple[Move, ...]
    started: tuple[Move, ...]
    stopped: tuple[Move, ...]
    shrunk: tuple[Move, ...]
    grown: tuple[Move, ...]
    waiting: tuple[Move, ...]
    message: str
    clusters: tuple[ClusterChange, ...]
    waits: WaitChanges
    trace: TraceChanges | None = None
    moves: tuple[JobMove, ...] | None = ()
    lost_gpu_hours: float = 0.0


def where(placements: Iterable[Placement]) -> tuple[str, ...]:
    """Return the location of each replica as ``cluster/node``."""
    return tuple(f"{each.cluster}/{each.node}" for each in placements)


def requested_moves(
    leaving: Sequence[tuple[Attempt, JobRecord, tuple[Placement, ...]]],
) -> tuple[JobMove, ...] | None:
    """Return the moves of jobs to places that they found without displacing others; None if they are too many.

    Parameters
    ----------
    leaving
        Attempts that end, their jobs, and the new places of these.
    """
    found = []
    for attempt, job, placements in leaving:
        if job.pair or job.spec.standby:
            continue
        if sorted(where(attempt.holding)) != sorted(where(placements)):
            to = frozenset((each.cluster, each.node) for each in placements)
            found.append(JobMove(attempt.job_id, attempt.number, to))
    return tuple(found) if len(found) <= MAX_MOVES else None


def consequences(
    moves: Sequence[Move],
    resized: Sequence[Move],
    sums: tuple[Sums, Sums],
    clusters: tuple[ClusterChange, ...],
    waits: WaitChanges,
    applicable: tuple[JobMove, ...] | None = (),
    lost: Callable[[Collection[str]], float] = lambda _: 0.0,
) -> Consequences:
    """Return the answer.

    Parameters
    ----------
    resized
        Elastic jobs with fewer or more replicas.
    sums, clusters
        Totals of the fleet and of each cluster, before and after.
    lost
        Returns the lost GPU-hours of running jobs that move or stop.
    """
    moved = tuple(each for each in moves if each.before and each.after and each.before != each.after)
    started = tuple(each for each in moves if not each.before and each.after)
    stopped = tuple(each for each in moves if each.before and not each.after)
    left = tuple(each for each in moves if not each.before and not each.after)
    waiting = len(started) + len(left)
    parts = [Reason("consequences", moved=len(moved), started=len(started), waiting=waiting, stopped=len(stopped))]
    shrunk = tuple(each for each in resized if len(each.after) < len(each.before))
    grown = tuple(each for each in resized if len(each.after) > len(each.before))
    parts += [Reason("would_shrink", count=len(shrunk))] if shrunk else []
    parts += [Reason("would_grow", count=len(grown))] if grown else []
    if waits.earlier or waits.later:
        parts.append(Reason("starts_change", earlier=waits.earlier, later=waits.later))
    message = Reason("listed", parts=tuple(parts))
    hours = lost({each.job_id for each in (*moved, *stopped)})
    parts_of = (moved, started, stopped, shrunk, grown, left)
    return Consequences(*sums, *parts_of, message, clusters, waits, None, applicable, hours)


def changes_of_clusters(before: dict[str, ClusterSums], after: dict[str, ClusterSums]) -> tuple[ClusterChange, ...]:
    """Return the totals of each cluster, before and after."""
    return tuple(ClusterChange(name, sums, after[name]) for name, sums in before.items())


def totals(snapshot: Snapshot, placed: int, waiting: int) -> Sums:
    """Return the totals of a fleet with some numbers of jobs."""
    shares, _ = shares_of_gpus(snapshot)
    allocated = 100 * float(shares.mean()) if len(shares) else None
    return Sums(placed, waiting, allocated, use(used_shares(snapshot.arrays.clusters)).fragmentation)
