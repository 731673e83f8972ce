"""What-if questions and their answers."""

# ruff: noqa: RUF012  # a message copies its defaults

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
    """Nodes to add to a cluster, each like one that it has."""

    cluster: Reference
    like: Reference
    """Name of the node that they are like."""
    count: Annotated[int, Field(ge=1, le=1000)] = 1


Places = Annotated[list[Reference], Field(max_length=MAX_PLACES), BeforeValidator(several)]
Additions = Annotated[list[NewNodesIn], Field(max_length=MAX_PLACES)]


class QuestionIn(Incoming):
    """A what-if question. All parts that are set apply together."""

    drain: Places = []
    """Clusters, or `cluster/node`, that everything has to leave; one of them may stand alone."""
    add_nodes: NewNodesIn | Additions = []
    """Nodes that come."""
    policy: NameOrNone = ""
    """Everything that is live is placed again, by this policy."""
    replay: bool = False
    """Everything that is live is placed again, by the policies of its queues."""
    jobs: Annotated[list[JobIn], Field(max_length=MAX_JOBS)] = []
    """Jobs that are submitted."""

    def question(self, tenant: str) -> Question:
        """Return what is asked, by a user of `tenant`."""
        added = [self.add_nodes] if isinstance(self.add_nodes, NewNodesIn) else self.add_nodes
        return Question(
            tuple(self.drain),
            tuple(NewNodes(each.cluster, each.like, each.count) for each in added),
            self.policy,
            tuple(job.spec(tenant) for job in self.jobs),
            self.replay,
        )


class WhatIfIn(Incoming):
    """A question to a copy of the live fleet."""

    question: QuestionIn


class SumsOut(Shown):
    """Sums of the fleet."""

    placed: int
    waiting: int
    allocation_percent: float | None
    """GPU cores allocated, of all that nodes which take new work have together."""
    fragmentation: float | None
    """Mean over clusters of the free shares of CPU, memory, GPU memory and GPU cores, added up."""


class ClusterSumsOut(Shown):
    """Sums of a cluster."""

    nodes: int
    """Nodes that take new work; amounts are of these."""
    jobs: int
    """Jobs that have a replica there."""
    gpu_milli: AmountOut
    gpu_memory_mib: AmountOut


class ClusterChangeOut(Shown):
    """A cluster as it is and as it would be."""

    name: str
    before: ClusterSumsOut
    after: ClusterSumsOut


class MoveOut(Shown):
    """A job, and where it is and would be, a place for each replica; empty for nowhere."""

    id: str
    name: str
    before: list[str]
    after: list[str]
    why: str
    """Reason why it would wait; empty if it would not, or if the reason is not computed."""
    asked: bool = False
    """True if it is a job of the question, which was never submitted."""


class WhatIfOut(Shown):
    """Answer to a what-if question."""

    message: str
    before: SumsOut
    after: SumsOut
    clusters: list[ClusterChangeOut]
    """Each cluster, before and after."""
    moved: list[MoveOut]
    """Jobs that would run elsewhere."""
    started: list[MoveOut]
    """Jobs that wait, or are asked about, and would run."""
    stopped: list[MoveOut]
    """Jobs that run and would have to wait."""
    waiting: list[MoveOut]
    """Jobs that wait, or are asked about, and would wait."""


def consequences_fields(answer: Consequences) -> dict[str, Any]:
    """Write an answer as `WhatIfOut`."""
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
        "why": move.why,
        "asked": move.asked,
    }
