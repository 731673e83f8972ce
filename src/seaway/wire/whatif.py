"""What-if questions and their answers."""

# ruff: noqa: RUF012

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from seaway.application.whatif.clusters import ClusterSums
from seaway.application.whatif.whatif import Consequences, Move, NewNodes, Question, Sums
from seaway.wire.fields import NameOrNone, Reference, several
from seaway.wire.fleet import AmountOut, amount_fields
from seaway.wire.job_in import JobIn
from seaway.wire.message import Incoming, Shown

MAX_JOBS = 100
MAX_PLACES = 100


class NewNodesIn(Incoming):
    """Nodes to add to a cluster, copies of an existing node."""

    cluster: Reference
    like: Reference
    """Name of the node to copy."""
    count: Annotated[int, Field(ge=1, le=1000)] = 1


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

    def question(self, tenant: str) -> Question:
        """Return the question of a user of `tenant`."""
        added = [self.add_nodes] if isinstance(self.add_nodes, NewNodesIn) else self.add_nodes
        return Question(
            tuple(self.drain),
            tuple(NewNodes(each.cluster, each.like, each.count) for each in added),
            self.policy,
            tuple(job.spec(tenant) for job in self.jobs),
            self.replay,
        )


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
    }
