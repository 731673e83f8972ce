"""What-if questions and their answers."""

# ruff: noqa: RUF012

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from seaway.application.moves import MAX_MOVES, JobMove
from seaway.application.whatif.clusters import ClusterSums
from seaway.application.whatif.question import Consequences, Move, Question, Sums
from seaway.application.whatif.queues import MovedJobs, QueueChanges, errors_at
from seaway.application.whatif.trace import TraceChanges, TraceJob
from seaway.application.whatif.trial import NewNodes
from seaway.application.whatif.waits import Shift, WaitChange, WaitChanges
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, time_text
from seaway.simulation.outcome import Outcome
from seaway.wire.fields import LARGEST_INT32, Line, Name, NameOrNone, Reference, Time, moment_or_none, seconds, several
from seaway.wire.fleet import AmountOut, amount_fields
from seaway.wire.job_in import JobIn
from seaway.wire.message import CodeOut, Incoming, Shown, fields_of, with_message
from seaway.wire.queues import QueueChangeIn
from seaway.wire.tenancy import TenantChangeIn

MAX_JOBS = 100
MAX_PLACES = 100
MAX_PLACES_OF_JOB = 1000
MAX_KINDS = 100_000
MAX_TRACE = 1_000_000
"""Maximum number of jobs of a trace."""

Index = Annotated[int, Field(ge=0, lt=MAX_KINDS)]
Seconds = Annotated[int, Field(ge=0, le=LARGEST_INT32)]
MAX_CHANGES = 1000
"""Maximum number of changed queues, and of changed tenants."""


class NewNodesIn(Incoming):
    """Nodes to add to a cluster, copies of an existing node."""

    cluster: Reference
    like: Reference
    """Name of the node to copy."""
    count: Annotated[int, Field(ge=1, le=1000)] = 1


class MoveJobsIn(Incoming):
    """Jobs that count as if they had been submitted to another queue."""

    queue: Name
    to: Name
    tenant: NameOrNone = ""
    """Tenant of the jobs; empty for all."""


class TraceIn(Incoming):
    """Jobs to replay on a copy of the empty fleet."""

    kinds: Annotated[list[JobIn], Field(max_length=MAX_KINDS)]
    """Jobs that differ in more than their times. Their names do not matter."""
    jobs: Annotated[list[tuple[Index, Seconds, Seconds | None]], Field(min_length=1, max_length=MAX_TRACE)]
    """Index of the kind, time of the submission in seconds from the beginning, and duration in seconds; null for a job
    without an end.
    """

    def trace(self, tenant: str) -> tuple[TraceJob, ...]:
        """Return the jobs of a user of `tenant`.

        Raises
        ------
        RejectedError
            If a kind is invalid, or does not exist.
        """
        specs = []
        for at, kind in enumerate(self.kinds):
            with errors_at(f"trace.kinds.{at}"):
                specs.append(kind.spec(tenant))
        for at, (kind_at, *_) in enumerate(self.jobs):
            if kind_at >= len(specs):
                said = Reason("no_such_kind", kind_at=kind_at, count=len(specs))
                raise RejectedError(said, where=f"trace.jobs.{at}")
        return tuple(TraceJob(specs[kind_at], arrives_s, lasts_s) for kind_at, arrives_s, lasts_s in self.jobs)


Changes = Field(max_length=MAX_CHANGES)
Places = Annotated[list[Reference], Field(max_length=MAX_PLACES), BeforeValidator(several)]
Additions = Annotated[list[NewNodesIn], Field(max_length=MAX_PLACES)]


class QuestionIn(Incoming):
    """A what-if question. All parts that are set apply together."""

    drain: Places = []
    """Clusters, or nodes as `cluster/node`, to drain. A single entry may be written without a list."""
    add_nodes: NewNodesIn | Additions = []
    """Nodes to add."""
    policy: NameOrNone = ""
    """Policy that places all live jobs again."""
    replay: bool = False
    """True if the policies of the queues place all live jobs again."""
    jobs: Annotated[list[JobIn], Field(max_length=MAX_JOBS)] = []
    """Jobs to submit."""
    queues: Annotated[list[QueueChangeIn], Changes] = []
    """Queues to create or to change. Omitted fields keep their value."""
    tenants: Annotated[list[TenantChangeIn], Changes] = []
    """Tenants to create or to change, with their quotas. Omitted fields keep their value."""
    remove_queues: Annotated[list[Name], Changes, BeforeValidator(several)] = []
    """Queues to remove. Their jobs must move to another queue."""
    move_jobs: Annotated[list[MoveJobsIn], Changes] = []
    """Running and waiting jobs that count in another queue. The first entry that applies to a job counts."""
    window: Time = "1h"
    """Time from now that `gpu_share` covers."""
    trace: TraceIn | None = None
    """Jobs to replay on a copy of the empty fleet, before and after the change."""
    last: Time = "0s"
    """Replay the jobs that were submitted in this time in place of `trace`, with their real durations; 0 for none. They
    are at most 100,000.
    """

    def question(self, tenant: str) -> Question:
        """Return the question of a user of `tenant`.

        Raises
        ------
        RejectedError
            If an amount is invalid, or the window is empty.
        """
        window_s = seconds(self.window)
        if not window_s:
            raise RejectedError(Reason("window_too_short"), where="window")
        last_s = seconds(self.last)
        if last_s and self.trace:
            raise RejectedError(Reason("not_with_trace"), where="last")
        added = [self.add_nodes] if isinstance(self.add_nodes, NewNodesIn) else self.add_nodes
        return Question(
            tuple(self.drain),
            tuple(NewNodes(each.cluster, each.like, each.count) for each in added),
            self.policy,
            tuple(job.spec(tenant) for job in self.jobs),
            self.replay,
            QueueChanges(
                _changes("queues", self.queues),
                _changes("tenants", self.tenants),
                tuple(self.remove_queues),
                tuple(MovedJobs(each.queue, each.to, each.tenant) for each in self.move_jobs),
            ),
            window_s,
            self.trace.trace(tenant) if self.trace else (),
            last_s,
        )


def _changes(key: str, changes: Sequence[QueueChangeIn | TenantChangeIn]) -> tuple[tuple[str, dict[str, Any]], ...]:
    found = []
    for at, each in enumerate(changes):
        with errors_at(f"{key}.{at}"):
            found.append(each.change())
    return tuple(found)


class WhatIfIn(Incoming):
    """A question about a copy of the live fleet."""

    question: QuestionIn


class JobMoveIn(Incoming):
    """Move of a running job."""

    job: Reference
    attempt: Annotated[int, Field(ge=1)]
    """Number of its present attempt."""
    to: Annotated[list[Reference], Field(max_length=MAX_PLACES_OF_JOB)] = []
    """Nodes as `cluster/node`; empty if the job only stops, and waits in its queue."""

    def move(self, at: int) -> JobMove:
        """Return the move, with index `at` in the request.

        Raises
        ------
        RejectedError
            If a place is not a node.
        """
        return JobMove(self.job, self.attempt, frozenset(_place(each, f"moves.{at}.to", node=True) for each in self.to))


class MovesIn(Incoming):
    """Moves of running jobs, all or none, together with drains."""

    moves: Annotated[list[JobMoveIn], Field(max_length=MAX_MOVES)] = []
    """Those of the answer to a what-if question."""
    drain: Places = []
    """Clusters, or nodes as `cluster/node`, to drain. Their other jobs move as with any drain."""
    reason: Line = ""
    """Reason of the drains."""

    def parts(self) -> tuple[list[JobMove], list[tuple[str, str]]]:
        """Return the moves, and the places to drain.

        Raises
        ------
        RejectedError
            If there are none, or a place is invalid.
        """
        if not (self.moves or self.drain):
            raise RejectedError(Reason("moves_nothing"), where="moves")
        drained = [_place(each, f"drain.{at}") for at, each in enumerate(self.drain)]
        return [each.move(at) for at, each in enumerate(self.moves)], drained


def _place(text: str, where: str, *, node: bool = False) -> tuple[str, str]:
    cluster, separator, name = text.partition("/")
    if not cluster or (bool(separator) or node) is not bool(name):
        raise RejectedError(Reason("not_a_node" if node else "not_a_place", text=text), where=where)
    return cluster, name


class MovesOut(Shown):
    """Number of jobs that restart."""

    moved: int
    """Number of jobs that move."""
    stopped: int
    """Number of jobs that only stop."""


class JobMoveOut(Shown):
    """Move of a running job."""

    job: str
    attempt: int
    to: list[str]
    """Nodes as `cluster/node`; empty if the job only stops."""


class SumsOut(Shown):
    """Totals of the fleet."""

    placed: int
    waiting: int
    allocation_percent: float | None
    """Allocated GPUs, percent of those of nodes that accept new jobs; null without GPUs. A slice counts as its larger
    share of cores and memory."""
    fragmentation: float | None
    """Mean over clusters of the summed free shares of CPU, memory, GPU memory and GPU cores, 0 to 4. With the same jobs
    placed, lower is better."""


class ClusterSumsOut(Shown):
    """Totals of a cluster."""

    nodes: int
    """Number of nodes that accept new jobs. Amounts are totals of these nodes."""
    jobs: int
    """Number of jobs with a replica in the cluster."""
    gpu_milli: AmountOut
    """GPUs, thousandths. A slice counts as its larger share of cores and memory."""
    gpu_memory_mib: AmountOut


class ClusterChangeOut(Shown):
    """Totals of a cluster before and after the change."""

    name: str
    before: ClusterSumsOut
    after: ClusterSumsOut


class MoveOut(Shown):
    """A job with the placement of each replica before and after; empty without a placement."""

    id: str
    name: str
    before: list[str]
    after: list[str]
    message: str
    """Reason why the job would wait; empty if it would not, or if the reason is not computed."""
    reason: CodeOut
    asked: bool = False
    """True if the job is part of the question and was never submitted."""
    estimated_start: str | None = None
    """Expected start of a waiting job after the change; null if it is unknown."""


class WaitsOut(Shown):
    """Waiting jobs of a queue with its descendants or of a tenant, and the share of GPUs.

    The expected starts are as in `GET /waiting-jobs`. Waits are seconds from now.
    """

    waiting: int
    """Number of waiting jobs."""
    unknown: int
    """Number of waiting jobs without a known start."""
    compared: int = 0
    """Number of jobs with a known start before and after."""
    mean_s: float | None
    """Mean wait of these jobs; null without any."""
    mean_all_s: float | None = None
    """Mean wait of all jobs that wait before or after, the same jobs on both sides. A job that runs counts with 0, and
    one without a known start with the longest known wait of both sides; null if no start is known.
    """
    p50_s: float | None
    """Median wait; null if it is unknown. Jobs without a known start wait longest."""
    p95_s: float | None
    """95th percentile of the wait, as `p50_s`."""
    gpu_share: float
    """Mean share of the fleet's GPUs that its running and waiting jobs hold within the window, 0 to 1."""


class WaitChangeOut(Shown):
    """Waits of a queue or a tenant before and after the change."""

    name: str
    depth: int
    """Number of ancestors of a queue; 0 for a tenant."""
    before: WaitsOut
    after: WaitsOut


class ShiftOut(Shown):
    """Waiting job whose expected start changes."""

    id: str
    name: str
    queue: str
    """Its queue after the change."""
    tenant: str
    before: str | None
    """Expected start before the change; null if it is unknown."""
    after: str | None


class WaitChangesOut(Shown):
    """Waits until the expected starts, before and after the change."""

    window: str
    """Time from now that `gpu_share` covers."""
    queues: list[WaitChangeOut]
    """Queues with jobs, in the order of the tree."""
    tenants: list[WaitChangeOut]
    """Tenants with jobs."""
    fleet: WaitChangeOut | None = None
    """All jobs; null from an older server."""
    earlier: int
    """Number of waiting jobs that are expected to start earlier."""
    later: int
    """Number of waiting jobs that are expected to start later."""
    earlier_jobs: list[ShiftOut]
    """Up to 20 of them, the largest change first."""
    later_jobs: list[ShiftOut]


class TraceSideOut(Shown):
    """Replay of a trace. Waits are from the submission to the last start, seconds; null if no job started."""

    placed: int
    """Number of jobs that started."""
    rejected: int
    """Number of jobs that a submit would reject."""
    gpu_allocated_pct: float | None
    """Mean allocation of GPU cores over time, percent."""
    queue_wait_mean_s: float | None
    queue_wait_p50_s: float | None
    queue_wait_p90_s: float | None
    queue_wait_p99_s: float | None
    bounded_slowdown_mean: float | None
    """Time from the submission to the end, divided by the duration of at least 10 s."""
    makespan_s: int
    """Time from the first submission to the last end, seconds."""
    jain_index: float | None
    """Jain's index of the tenants' mean slowdowns; null with fewer than two tenants."""
    share_error: float | None
    """Mean over time of what tenants hold beyond their fair shares, as a share of these."""
    preempted: int
    """Number of displaced jobs."""
    preempted_gpu_hours: float
    """Time that displaced jobs ran in vain."""


class TraceOut(Shown):
    """Replays of a trace before and after the change."""

    jobs: int
    skipped: int
    """Number of past jobs that never ran, or of which the duration is unknown."""
    defaulted: int
    """Number of jobs that wait in the default queue, since their own does not exist or has children."""
    policy: str
    """Policy that places all jobs."""
    span: str
    """Time from the first to the last submission, which `gpu_share` covers."""
    before: TraceSideOut
    after: TraceSideOut
    queues: list[WaitChangeOut]
    """Waits of the jobs of queues. A job that never starts counts in `unknown`."""
    tenants: list[WaitChangeOut]


class WhatIfOut(Shown):
    """Answer to a what-if question."""

    message: str
    """The answer in one sentence."""
    reason: CodeOut
    before: SumsOut
    after: SumsOut
    clusters: list[ClusterChangeOut]
    """Totals of each cluster, before and after."""
    moved: list[MoveOut]
    """Running jobs that would move."""
    started: list[MoveOut]
    """Waiting or submitted jobs that would run."""
    stopped: list[MoveOut]
    """Running jobs that would have to wait."""
    shrunk: list[MoveOut] = Field(default_factory=list)
    """Elastic jobs that would continue with fewer replicas."""
    grown: list[MoveOut] = Field(default_factory=list)
    """Elastic jobs that would get more replicas."""
    waiting: list[MoveOut]
    """Waiting or submitted jobs that would wait."""
    moves: list[JobMoveOut] | None = None
    """Moves of running jobs for `POST /moves`; null if they are more than 200."""
    waits: WaitChangesOut | None = None
    """Waits by queue and tenant; null from an older server."""
    trace: TraceOut | None = None
    """Replays of the trace; null without one."""
    lost_gpu_hours: float | None = None
    """GPU-hours of running jobs without checkpoints that would move or stop, since their starts; null from an older
    server."""


def consequences_fields(answer: Consequences) -> dict[str, Any]:
    """Return the fields of `WhatIfOut` for an answer."""
    return {
        **with_message(answer.message),
        "before": _sums(answer.before),
        "after": _sums(answer.after),
        "clusters": [
            {"name": each.name, "before": _cluster(each.before), "after": _cluster(each.after)}
            for each in answer.clusters
        ],
        "moved": [_move(each) for each in answer.moved],
        "started": [_move(each) for each in answer.started],
        "stopped": [_move(each) for each in answer.stopped],
        "shrunk": [_move(each) for each in answer.shrunk],
        "grown": [_move(each) for each in answer.grown],
        "waiting": [_move(each) for each in answer.waiting],
        "moves": None if answer.moves is None else [_job_move(each) for each in answer.moves],
        "waits": _waits(answer.waits),
        "trace": _trace(answer.trace) if answer.trace else None,
        "lost_gpu_hours": round(answer.lost_gpu_hours, 2),
    }


def _sums(sums: Sums) -> dict[str, Any]:
    return {
        "placed": sums.placed,
        "waiting": sums.waiting,
        "allocation_percent": sums.allocation_percent,
        "fragmentation": sums.fragmentation,
    }


def _cluster(sums: ClusterSums) -> dict[str, Any]:
    return {
        "nodes": sums.nodes,
        "jobs": sums.jobs,
        "gpu_milli": amount_fields(sums.gpu_milli),
        "gpu_memory_mib": amount_fields(sums.gpu_memory_mib),
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "id": move.job_id,
        "name": move.job,
        "before": list(move.before),
        "after": list(move.after),
        **with_message(move.why),
        "asked": move.asked,
        "estimated_start": moment_or_none(move.starts_ns),
    }


def _job_move(move: JobMove) -> dict[str, Any]:
    return {"job": move.job_id, "attempt": move.attempt, "to": sorted(map("/".join, move.to))}


def _waits(waits: WaitChanges) -> dict[str, Any]:
    return {
        "window": time_text(waits.window_s),
        "queues": [_wait_change(each) for each in waits.queues],
        "tenants": [_wait_change(each) for each in waits.tenants],
        "fleet": _wait_change(waits.fleet),
        "earlier": waits.earlier,
        "later": waits.later,
        "earlier_jobs": [_shift(each) for each in waits.earlier_jobs],
        "later_jobs": [_shift(each) for each in waits.later_jobs],
    }


def _trace(trace: TraceChanges) -> dict[str, Any]:
    return {
        "jobs": trace.jobs,
        "skipped": trace.skipped,
        "defaulted": trace.defaulted,
        "policy": trace.policy,
        "span": time_text(trace.span_s),
        "before": {**_measures(trace.before), "rejected": trace.rejected_before},
        "after": {**_measures(trace.after), "rejected": trace.rejected_after},
        "queues": [_wait_change(each) for each in trace.queues],
        "tenants": [_wait_change(each) for each in trace.tenants],
    }


def _measures(outcome: Outcome) -> dict[str, Any]:
    """Return the measures of a replay that `TraceSideOut` has."""
    return {name: value for name, value in outcome.record().items() if name in TraceSideOut.model_fields}


def _wait_change(change: WaitChange) -> dict[str, Any]:
    before, after = (fields_of(WaitsOut, side) for side in (change.before, change.after))
    return {"name": change.name, "depth": change.depth, "before": before, "after": after}


def _shift(shift: Shift) -> dict[str, Any]:
    return {
        "id": shift.job_id,
        "name": shift.job,
        "queue": shift.queue,
        "tenant": shift.tenant,
        "before": moment_or_none(shift.before_ns),
        "after": moment_or_none(shift.after_ns),
    }
