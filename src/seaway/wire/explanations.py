"""Why a job is where it is, and what would happen to one, as it is shown."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from seaway.application.views import Choice, Reason, Trial
from seaway.domain.placement import Explanation
from seaway.wire.fleet import LinkOut, link_fields, price_text
from seaway.wire.job_out import PlacementOut, placement_fields
from seaway.wire.message import Shown


class RefusalOut(Shown):
    """One rule and how many nodes it refused."""

    plugin: str
    reason: str
    nodes: int
    clusters: dict[str, int] = Field(default_factory=dict)
    """How many of them are in which cluster."""
    code: str = ""
    """Tells reasons apart for programs, like `NodeResources.1`: the filter, and which of its reasons."""


class CandidateOut(Shown):
    """A node that could take the job, with what each plugin said of it."""

    cluster: str
    node: str
    scores: dict[str, int]
    total: int


class RemedyOut(Shown):
    """The smallest change to one figure that would admit the job."""

    field: str
    asked: int
    admits: int
    cluster: str
    node: str


class ExplanationOut(Shown):
    """Node by node, why a replica can or cannot be placed."""

    nodes: int
    """How many were looked at."""
    refusals: list[RefusalOut]
    candidates: list[CandidateOut]
    remedies: list[RemedyOut]
    links: list[str]
    """Links that break the job's bounds, and by which figures."""
    data: str
    """Where its data is, and how long it takes to the candidates' clusters; empty for a job that says nothing of it."""


class ReasonOut(Shown):
    """Why a job is where it is."""

    id: str
    name: str
    state: str
    sentence: str
    """The answer in one sentence."""
    position: int
    """Place in its queue, from 1; 0 when it does not wait."""
    ahead: int
    """Jobs that are decided before it."""
    placements: list[PlacementOut]
    chosen_because: str
    """What was noted when it was placed."""
    explanation: ExplanationOut | None
    """On the fleet as it is now; null for a job that is over."""
    code: str = ""
    """What kind of answer it is: `refused` (no node takes it), `short` (not all replicas have room together), `held`
    (its policy holds it back), `kept` (what is free is kept for another), `first` (a place is kept for it), `paused`,
    `policy_unready`, `gateway_gone`, `adrift` (its queue or pool is gone), `placed`, `over`."""
    parameters: dict[str, str | int] = Field(default_factory=dict)
    """The names and figures in it: `policy`, `gateway`, `where`, `soon_s`."""

    @classmethod
    def of(cls, reason: Reason) -> ReasonOut:
        """Show a reason."""
        return cls.model_validate(reason_fields(reason))


class ChoiceOut(Shown):
    """A node that could take the next replica, with what people weigh."""

    cluster: str
    node: str
    total: int
    scores: dict[str, int]
    free_slices: int
    """How many more replicas like this one it could take; 10,000 stands for at least so many."""
    link: LinkOut | None
    """Between your gateway and the cluster's; null where it is unknown."""
    price_per_hour: str
    """Of one replica, in the currency's unit, exactly."""
    chosen: bool


MOST_OBJECTS = 1_000
"""Objects that a trial shows."""


class TrialOut(Shown):
    """What would happen to a job if it were submitted now."""

    policy: str
    fits: bool
    """Whether it would start at once."""
    sentence: str
    choices: list[ChoiceOut]
    placements: list[PlacementOut]
    explanation: ExplanationOut
    manifests: list[dict[str, Any]]
    """The first 1,000 objects that its clusters would be sent; the job's id in them is all zeros."""

    @classmethod
    def of(cls, trial: Trial) -> TrialOut:
        """Show a trial."""
        return cls.model_validate(trial_fields(trial))


def explanation_fields(explanation: Explanation) -> dict[str, Any]:
    """Show an explanation as the fields of `ExplanationOut`."""
    return {
        "nodes": explanation.nodes,
        "refusals": [
            {
                "plugin": each.plugin,
                "reason": each.reason,
                "nodes": each.nodes,
                "clusters": dict(each.clusters),
                "code": each.code,
            }
            for each in explanation.refusals
        ],
        "candidates": [
            {"cluster": each.cluster, "node": each.node, "scores": dict(each.scores), "total": each.total}
            for each in explanation.candidates
        ],
        "remedies": [
            {
                "field": each.field,
                "asked": each.asked,
                "admits": each.admits,
                "cluster": each.cluster,
                "node": each.node,
            }
            for each in explanation.remedies
        ],
        "links": list(explanation.links),
        "data": explanation.data,
    }


def reason_fields(reason: Reason) -> dict[str, Any]:
    """Show a reason as the fields of `ReasonOut`."""
    return {
        "id": reason.job.id,
        "name": reason.job.spec.name,
        "state": reason.job.state.value,
        "sentence": reason.sentence,
        "position": reason.position,
        "ahead": reason.ahead,
        "placements": [placement_fields(each) for each in reason.placements],
        "chosen_because": reason.chosen_because,
        "explanation": None if reason.explanation is None else explanation_fields(reason.explanation),
        "code": reason.code,
        "parameters": dict(reason.parameters),
    }


def choice_fields(choice: Choice) -> dict[str, Any]:
    """Show a choice as the fields of `ChoiceOut`."""
    return {
        "cluster": choice.cluster,
        "node": choice.node,
        "total": choice.total,
        "scores": dict(choice.scores),
        "free_slices": choice.free_slices,
        "link": None if choice.link is None else link_fields(choice.link),
        "price_per_hour": price_text(choice.microprice_per_hour),
        "chosen": choice.chosen,
    }


def trial_fields(trial: Trial) -> dict[str, Any]:
    """Show a trial as the fields of `TrialOut`."""
    return {
        "policy": trial.policy,
        "fits": trial.fits,
        "sentence": trial.sentence,
        "choices": [choice_fields(each) for each in trial.choices],
        "placements": [placement_fields(each) for each in trial.placements],
        "explanation": explanation_fields(trial.explanation),
        "manifests": list(trial.manifests[:MOST_OBJECTS]),
    }
