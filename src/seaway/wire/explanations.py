"""Views of explanations and dry runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from seaway.application.views import Choice, DryRun, Reason
from seaway.domain.placement import Explanation
from seaway.domain.reasons import time_text
from seaway.wire.facts import price_or_none
from seaway.wire.fields import moment_or_none
from seaway.wire.fleet import LinkOut, link_fields
from seaway.wire.job_out import PlacementOut, placement_fields
from seaway.wire.message import CodedOut, CodeOut, Shown, code_fields, coded, fields_of, with_message


class FilteredOut(Shown):
    """A reason of a filter, and the number of nodes that it rejected."""

    plugin: str
    message: str
    nodes: int
    clusters: dict[str, int] = Field(default_factory=dict)
    """Number of rejected nodes by cluster."""
    reason: CodeOut
    """The code `NodeResources.1` is the filter and the number of its reason. For capacity of others:
    `reserved_for_job`, `reserved_for_other_tenant`, both also with `_until` if the start of that job is unknown,
    `reserved_in_advance`, `reserved_for_maintenance`, and `model_limit`. For clusters and nodes that are closed:
    `is_cordoned`, `under_maintenance`, `cluster_lost`. Parameters are `job`, `job_id`, `starts_at`,
    `until`, `begin`, `end`, `name`, `models`, `holders`, `why`."""


class CandidateOut(Shown):
    """A node that fits the job, with the score of each plugin."""

    cluster: str
    node: str
    scores: dict[str, int]
    total: int


class RemedyOut(Shown):
    """Smallest change of one value of the job that admits all its replicas, verified by a trial on the current fleet.

    `time_limit_s` lets it use capacity that is reserved for a later time.
    """

    field: str
    requested: int | str
    """Current value; 0 or empty if the job does not set it."""
    admits: int | str
    """Value with which it fits: a number, or the name of a MIG profile; 0 or empty to leave the field out."""
    cluster: str
    node: str
    """Node of the first replica in the trial."""
    replicas: int = 1
    """Number of replicas that started in the trial."""
    nodes: int = 1
    """Number of their nodes."""


class RoomMakerOut(Shown):
    """A running job that makes room for a waiting one."""

    job_id: str
    name: str
    """Empty for those who may not see its tenant."""
    tenant: str
    """Empty for those who may not see it."""
    replicas: int
    """Number of replicas by which it shrinks; 0 if it ends."""


class ExplanationOut(Shown):
    """Reasons, over all nodes, why a replica can or cannot be placed."""

    nodes: int
    """Number of evaluated nodes."""
    filtered: list[FilteredOut]
    candidates: list[CandidateOut]
    remedies: list[RemedyOut]
    links: list[CodedOut]
    """Links that violate the job's bounds, with their figures."""
    data: CodedOut | None
    """Location of the data, and transfer times to the candidates' clusters; null without data."""


class ReasonOut(Shown):
    """Reason for the state of a job."""

    id: str
    name: str
    state: str
    message: str
    """The reason in one sentence."""
    position: int
    """Position in the queue, from 1; 0 if the job does not wait."""
    ahead: int
    """Number of jobs to be decided before this job."""
    placements: list[PlacementOut]
    placement_reason: CodedOut | None
    """Reason recorded with the placement; null without one."""
    explanation: ExplanationOut | None
    """Explanation on the current fleet; null for a finished job. What a placed job uses itself counts as free."""
    decided_at: str | None = None
    """Time of the decision that `placement_reason` describes; null without one. Its figures are as of then."""
    estimated_start: str | None = None
    """Expected start of a waiting job; null if it is unknown. It depends on the expected durations of jobs."""
    start_counts: Literal["nodes", "amounts"] | None = None
    """Basis of the expected start: nodes and devices, as the next cycles decide, or, with many jobs, only amounts. Null
    without an expected start."""
    learned_duration: str | None = None
    """Expected duration of a waiting job, learned from past runs of its name or user; null if the job sets one, or
    without them."""
    learned_runs: int = 0
    """Number of these runs."""
    end_reason: CodedOut | None = None
    """Reason for the end of the last attempt of a waiting job, such as the job that displaced it; null without one."""
    room_from: list[RoomMakerOut] = Field(default_factory=list)
    """Running jobs that shrink or end for it. After a restart of the server, only the reason of the job has them."""
    advice: list[CodedOut] = Field(default_factory=list)
    """Ways to start a waiting job without a change of its request: `raise_limit` and `queue_has_room`, both tried.
    Also who holds most of what it waits for: `held_by_user`, and of tenants that you may not see `held_in_queue` and
    `held_by_others`."""
    sentence: CodedOut | None = None
    """`message` with the code and the parameters of its text, for translations; `reason` has a code for programs."""
    reason: CodeOut
    """The code is one of: `no_node_fits`; `insufficient_capacity` (not all replicas fit); `deferred` (the
    policy waits for a better placement). `reserved_for_others`: the free devices are reserved for another job.
    `reserved_in_advance`: advance reservations keep capacity for others. `reserved`: devices are reserved for this job.
    If other jobs shrink or end for it, `what` says which ones, and `ends_at` by when.
    `queue_limit`: a limit of its queue or an ancestor has no room for it. `tenant_quota`, `user_quota`: a quota of its
    tenant or user has none. `model_limit`: a limit has no room for the GPU models that it may use. `lending_limit`:
    other queues keep the rest of the pool for themselves. `delays_earlier_jobs`: a start now could delay a planned
    start. `behind_earlier_jobs`: its queue has no backfill, and an earlier job waits. `to_be_decided`: it fits, and is
    not decided yet. Others: `backoff`, `policy_not_ready`, `gateway_unknown`, `queue_removed`, `placed`, `finished`.

    Parameters are `policy`, `gateway`, `where`, `soon_s`, `what`, `ends_at`, `queue`, `tenant`, `pool`, `user`,
    `held`, `limit`, `requested`, `reserved` (for jobs that displaced others), and those of `filtered`. `why`, `until`
    and `short` (of what there is too little) are reasons.
    """

    @classmethod
    def of(cls, reason: Reason) -> ReasonOut:
        """Return the view of a reason."""
        return cls.model_validate(reason_fields(reason))


class ChoiceOut(Shown):
    """A node that fits the next replica, with figures for comparison."""

    cluster: str
    node: str
    total: int
    scores: dict[str, int]
    free_slices: int
    """Number of further replicas of this kind that fit. 10,000 means at least 10,000."""
    link: LinkOut | None
    """Link between your gateway and that of the cluster; null if unknown."""
    price_per_hour: str | None
    """Price of the GPUs of one replica per hour, in units of the currency; null if unknown, or without GPUs. A slice
    costs its share of a device: that of its memory or cores, whichever is larger."""
    chosen: bool


MAX_OBJECTS = 1_000
"""Maximum number of objects that a dry run shows."""


class DryRunOut(Shown):
    """Result of a dry run."""

    policy: str
    fits: bool
    """True if the job would start immediately, or as soon as the jobs of `room_from` have made room."""
    message: str
    reason: CodeOut
    candidates: list[ChoiceOut]
    placements: list[PlacementOut]
    price_per_hour: str | None = None
    """Price of all replicas per hour, in units of the currency; null if unknown, or if the job would wait."""
    placement_reason: CodedOut | None = None
    """Reason for the node of the first replica: the score that decided against the next best one; null if unknown."""
    room_from: list[RoomMakerOut] = Field(default_factory=list)
    """Running jobs that would shrink or end for it."""
    room_within_s: int = 0
    """Time until all of these have made room at the latest, seconds."""
    explanation: ExplanationOut
    manifests: list[dict[str, Any]]
    """First 1,000 objects that Seaway would create in the clusters; the job ID in them consists of zeros."""

    @classmethod
    def of(cls, trial: DryRun) -> DryRunOut:
        """Return the view of a dry run."""
        return cls.model_validate(dry_run_fields(trial))


class DryRunBatch(Shown):
    """Results of the dry runs of several jobs, in their order."""

    jobs: list[DryRunOut]


def explanation_fields(explanation: Explanation) -> dict[str, Any]:
    """Return the fields of `ExplanationOut` for an explanation."""
    return fields_of(
        ExplanationOut,
        explanation,
        links=list(map(coded, explanation.links)),
        data=coded(explanation.data),
        filtered=[
            {
                "plugin": each.plugin,
                **code_fields(each.code, each.params, each.reason),
                "nodes": each.nodes,
                "clusters": dict(each.clusters),
            }
            for each in explanation.refusals
        ],
        candidates=[
            {"cluster": each.cluster, "node": each.node, "scores": dict(each.scores), "total": each.total}
            for each in explanation.candidates
        ],
        remedies=[
            {
                "field": each.field,
                "requested": each.current,
                "admits": each.required,
                "cluster": each.cluster,
                "node": each.node,
                "replicas": each.replicas,
                "nodes": each.nodes,
            }
            for each in explanation.remedies
        ],
    )


def reason_fields(reason: Reason) -> dict[str, Any]:
    """Return the fields of `ReasonOut` for a reason."""
    return fields_of(
        ReasonOut,
        reason,
        id=reason.job.id,
        name=reason.job.spec.name,
        state=reason.job.state.value,
        placements=[placement_fields(each) for each in reason.placements],
        **code_fields(reason.code, reason.params, reason.message),
        sentence=coded(reason.message),
        placement_reason=coded(reason.placement_reason),
        end_reason=coded(reason.end_reason),
        advice=list(map(coded, reason.advice)),
        room_from=[fields_of(RoomMakerOut, each) for each in reason.room_from],
        explanation=None if reason.explanation is None else explanation_fields(reason.explanation),
        estimated_start=moment_or_none(reason.estimated_start_ns),
        start_counts=_counts(reason),
        decided_at=moment_or_none(reason.decided_ns),
        learned_duration=None if reason.learned_duration_s is None else time_text(reason.learned_duration_s),
    )


def _counts(reason: Reason) -> Literal["nodes", "amounts"] | None:
    if reason.estimated_start_ns is None:
        return None
    return "amounts" if reason.start_by_amounts else "nodes"


def choice_fields(choice: Choice) -> dict[str, Any]:
    """Return the fields of `ChoiceOut` for a choice."""
    return fields_of(
        ChoiceOut,
        choice,
        scores=dict(choice.scores),
        link=None if choice.link is None else link_fields(choice.link),
        price_per_hour=price_or_none(choice.microprice_per_hour),
    )


def dry_run_fields(trial: DryRun) -> dict[str, Any]:
    """Return the fields of `DryRunOut` for a dry run."""
    return fields_of(
        DryRunOut,
        trial,
        candidates=[choice_fields(each) for each in trial.candidates],
        placements=[placement_fields(each) for each in trial.placements],
        price_per_hour=price_or_none(trial.microprice_per_hour),
        explanation=explanation_fields(trial.explanation),
        manifests=list(trial.manifests[:MAX_OBJECTS]),
        **with_message(trial.message),
        placement_reason=coded(trial.placement_reason),
        room_from=[fields_of(RoomMakerOut, each) for each in trial.room_from],
    )
