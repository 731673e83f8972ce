"""Why a job goes where it goes, cluster by cluster, and what would admit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from seaway.domain.job_state import JobState
from seaway.domain.units import figure_text
from seaway.web.job_document import path_of

if TYPE_CHECKING:
    from seaway.wire.events import EventOut
    from seaway.wire.explanations import ExplanationOut, RemedyOut
    from seaway.wire.job_out import JobOut


@dataclass(frozen=True, slots=True)
class ClusterReasons:
    """What a cluster has for a job.

    Attributes
    ----------
    fits, nodes
        How many of its nodes could take a replica, of how many.
    refusals
        Why the others cannot, and how many each rule refuses, most first.
    """

    cluster: str
    fits: int
    nodes: int
    refusals: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Mend:
    """A change that would admit a job.

    Attributes
    ----------
    word, asked, admits
        What it is called in jobs, and its amounts as they are written there; empty where nothing of it may be asked.
    path
        The field, where it can be set to that amount; else empty.
    """

    word: str
    asked: str
    admits: str
    place: str
    path: str


def by_cluster(explanation: ExplanationOut, nodes: Mapping[str, int]) -> list[ClusterReasons]:
    """Say for each cluster how many nodes fit, and why the others do not; those where most fit first.

    Parameters
    ----------
    nodes
        How many nodes each cluster has.
    """
    refused: dict[str, list[tuple[str, int]]] = {}
    for each in explanation.filtered:
        for cluster, count in each.clusters.items():
            refused.setdefault(cluster, []).append((each.reason, count))
    rows = [
        ClusterReasons(
            cluster,
            max(total - sum(count for _, count in refused.get(cluster, ())), 0),
            total,
            tuple(sorted(refused.get(cluster, ()), key=lambda each: -each[1])),
        )
        for cluster, total in nodes.items()
    ]
    return sorted(rows, key=lambda row: (-row.fits, row.cluster))


def mends(remedies: list[RemedyOut]) -> Iterator[Mend]:
    """List single changes that would admit a job, as jobs write them."""
    for each in remedies:
        word, asked = figure_text(each.field, each.requested)
        admits = figure_text(each.field, each.admits)[1] if each.admits else ""
        yield Mend(word, asked, admits, f"{each.cluster}/{each.node}", path_of(each.field) if admits else "")


ORDER = ("running", "deploying", "scheduled", "queued", "pending", "preempted", "suspended", "failed", "completed",
         "cancelled")  # fmt: skip
"""States as they are listed."""


def gpus(job: JobOut) -> str:
    """Say what devices each replica of a job asks for, in the words of who asked; empty for none."""
    asked = job.spec.get("resources", {})
    if not asked.get("gpus"):
        return ""
    parts = [str(asked[name]) for name in ("gpu_memory", "gpu_cores") if asked.get(name)]
    return " · ".join([f"{asked['gpus']} × GPU", *parts])


MIN_PERCENT = 1.5
"""How wide a step is drawn at least, of all of them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A job in one state.

    Attributes
    ----------
    at
        Since when, RFC 3339.
    reason, actor
        Why, and who did it.
    lasted_s
        How long; None for a state that a job stays in permanently.
    percent
        How wide it is drawn, of all steps.
    now
        Whether the job is in it.
    """

    state: str
    at: str
    reason: str
    actor: str
    attempt: int
    lasted_s: float | None
    percent: float
    now: bool


def steps(events: Sequence[EventOut], now: datetime | None = None) -> list[Step]:
    """Return the steps of a job, oldest first.

    Parameters
    ----------
    events
        What happened to it, in order.
    now
        When the last step is looked at; None for this moment.
    """
    turns = [each for each in events if each.kind == "state" and each.state]
    moments = [datetime.fromisoformat(each.at) for each in turns]
    ends = [*moments, now or datetime.now(UTC)][1:]
    lasted = [max((end - start).total_seconds(), 0.0) for start, end in zip(moments, ends, strict=True)]
    if turns and JobState(turns[-1].state).final:
        lasted[-1] = 0.0
    total = sum(lasted) or 1.0
    widths = [max(100 * each / total, MIN_PERCENT) for each in lasted]
    last = len(turns) - 1
    return [
        Step(
            turn.state,
            turn.at,
            turn.reason,
            turn.actor,
            turn.attempt,
            None if at == last and JobState(turn.state).final else lasted[at],
            100 * widths[at] / sum(widths),
            at == last,
        )
        for at, turn in enumerate(turns)
    ]
