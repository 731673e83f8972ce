"""What-if questions and their answers."""

# ruff: noqa: RUF012

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from seaway.application.whatif.clusters import ClusterSums
from seaway.application.whatif.queues import MovedJobs, QueueChanges, errors_at
from seaway.application.whatif.waits import Shift, WaitChange, WaitChanges
from seaway.application.whatif.whatif import Consequences, Move, NewNodes, Question, Sums
from seaway.domain.errors import RejectedError
from seaway.domain.units import time_text
from seaway.wire.fields import Name, NameOrNone, Reference, Time, moment_or_none, seconds, several
from seaway.wire.fleet import AmountOut, amount_fields
from seaway.wire.job_in import JobIn
from seaway.wire.message import Incoming, Shown, fields_of
from seaway.wire.queues import QueueChangeIn
from seaway.wire.tenancy import TenantChangeIn

MAX_JOBS = 100
MAX_PLACES = 100
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

    def question(self, tenant: str) -> Question:
        """Return the question of a user of `tenant`.

        Raises
        ------
        RejectedError
            If an amount is invalid, or the window is empty.
        """
        window_s = seconds(self.window)
        if not window_s:
            raise RejectedError("must be at least 1s", where="window")
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


class SumsOut(Shown):
    """Totals of the fleet."""

    placed: int
    waiting: int
    allocation_percent: float | None
    """Allocated GPU cores, percent of the total of nodes that accept new jobs; null without GPUs."""
    fragmentation: float | None
    """Mean over clusters of the summed free shares of CPU, memory, GPU memory and GPU cores."""


class ClusterSumsOut(Shown):
    """Totals of a cluster."""

    nodes: int
    """Number of nodes that accept new jobs. Amounts are totals of these nodes."""
    jobs: int
    """Number of jobs with a replica in the cluster."""
    gpu_milli: AmountOut
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
    reason: str
    """Reason why the job would wait; empty if it would not, or if the reason is not computed."""
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
    mean_s: float | None
    """Mean wait of the jobs with a known start before and after; null without any."""
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
    earlier: int
    """Number of waiting jobs that are expected to start earlier."""
    later: int
    """Number of waiting jobs that are expected to start later."""
    earlier_jobs: list[ShiftOut]
    """Up to 20 of them, the largest change first."""
    later_jobs: list[ShiftOut]


class WhatIfOut(Shown):
    """Answer to a what-if question."""

    message: str
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
    waiting: list[MoveOut]
    """Waiting or submitted jobs that would wait."""
    waits: WaitChangesOut | None = None
    """Waits by queue and tenant; null from an older server."""


def consequences_fields(answer: Consequences) -> dict[str, Any]:
    """Return the fields of `WhatIfOut` for an answer."""
    return {
        "message": answer.message,
        "before": _sums(answer.before),
        "after": _sums(answer.after),
        "clusters": [
            {"name": each.name, "before": _cluster(each.before), "after": _cluster(each.after)}
            for each in answer.clusters
        ],
        "moved": [_move(each) for each in answer.moved],
        "started": [_move(each) for each in answer.started],
        "stopped": [_move(each) for each in answer.stopped],
        "waiting": [_move(each) for each in answer.waiting],
        "waits": _waits(answer.waits),
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
        "reason": move.why,
        "asked": move.asked,
        "estimated_start": moment_or_none(move.starts_ns),
    }


def _waits(waits: WaitChanges) -> dict[str, Any]:
    return {
        "window": time_text(waits.window_s),
        "queues": [_wait_change(each) for each in waits.queues],
        "tenants": [_wait_change(each) for each in waits.tenants],
        "earlier": waits.earlier,
        "later": waits.later,
        "earlier_jobs": [_shift(each) for each in waits.earlier_jobs],
        "later_jobs": [_shift(each) for each in waits.later_jobs],
    }


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
