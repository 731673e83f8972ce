"""Reasons for a placement by cluster, and changes that make a job admissible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from seaway.domain.job_state import JobState
from seaway.domain.units import figure_text, ranges
from seaway.web.job_document import path_of

if TYPE_CHECKING:
    from seaway.wire.events import EventOut
    from seaway.wire.explanations import ExplanationOut, FilteredOut, RemedyOut
    from seaway.wire.job_out import JobOut, PlacementOut


@dataclass(frozen=True, slots=True)
class ClusterReasons:
    """Nodes of a cluster for a job.

    Attributes
    ----------
    fits, nodes
        Number of nodes that fit a replica, and number of all nodes.
    refusals
        Reasons why the others do not fit, with numbers of nodes, in the order of the explanation.
    """

    cluster: str
    fits: int
    nodes: int
    refusals: tuple[tuple[FilteredOut, int], ...]


@dataclass(frozen=True, slots=True)
class RemedyText:
    """Change that makes a job admissible.

    Attributes
    ----------
    word, asked, admits
        Field and amounts in the notation of jobs. `asked` is empty if the job sets none, and `admits` if it must not.
    place, replicas, nodes
        First node, and numbers of replicas and of their nodes, in the trial of the change.
    path
        Path of the field if a job can set it to that amount; else empty.
    """

    word: str
    asked: str
    admits: str
    place: str
    replicas: int
    nodes: int
    path: str


def by_cluster(explanation: ExplanationOut, nodes: Mapping[str, int]) -> list[ClusterReasons]:
    """Return clusters with the number of nodes that fit and the reasons for the others, most fitting nodes first.

    Parameters
    ----------
    nodes
        Number of nodes of each cluster.
    """
    refused: dict[str, list[tuple[FilteredOut, int]]] = {}
    for each in explanation.filtered:
        for cluster, count in each.clusters.items():
            refused.setdefault(cluster, []).append((each, count))
    rows = [
        ClusterReasons(
            cluster,
            max(total - sum(count for _, count in refused.get(cluster, ())), 0),
            total,
            tuple(refused.get(cluster, ())),
        )
        for cluster, total in nodes.items()
    ]
    return sorted(rows, key=lambda row: (-row.fits, row.cluster))


def remedy_texts(remedies: list[RemedyOut], spec: Mapping[str, Any]) -> Iterator[RemedyText]:
    """Yield single changes that make a job admissible, in the notation of jobs.

    Parameters
    ----------
    spec
        The job. The number of replicas of an elastic one has no path, because it has bounds instead.
    """
    elastic = not isinstance(spec.get("replicas", 1), int)
    for each in remedies:
        word, asked = figure_text(each.field, each.requested)
        asked = asked if each.requested else ""
        admits = figure_text(each.field, each.admits)[1] if each.admits else ""
        path = path_of(each.field) if admits and not (elastic and each.field == "replicas") else ""
        yield RemedyText(word, asked, admits, f"{each.cluster}/{each.node}", each.replicas, each.nodes, path)


@dataclass(frozen=True, slots=True)
class ReplicasOn:
    """Replicas of a dry run on one node.

    Attributes
    ----------
    replicas
        Their numbers, with ranges.
    """

    cluster: str
    node: str
    replicas: str


def by_node(placements: Sequence[PlacementOut]) -> list[ReplicasOn]:
    """Return the nodes of the replicas of a job, in the order of the first replica of each."""
    found: dict[tuple[str, str], list[int]] = {}
    for each in placements:
        found.setdefault((each.cluster, each.node), []).append(each.replica)
    return [ReplicasOn(cluster, node, ranges(numbers)) for (cluster, node), numbers in found.items()]


ORDER = ("running", "deploying", "scheduled", "queued", "pending", "held", "preempted", "suspended", "failed",
         "completed", "cancelled", "skipped")  # fmt: skip
"""Order of states in lists."""


def gpus(job: JobOut) -> str:
    """Return the devices of each replica in the submitted notation; empty for none."""
    asked = job.spec.get("resources", {})
    if not asked.get("gpus"):
        return ""
    parts = [str(asked[name]) for name in ("gpu_memory", "gpu_cores", "mig") if asked.get(name)]
    return " · ".join([f"{asked['gpus']} × GPU", *parts])


MIN_PERCENT = 1.5
"""Minimum width of an action in the timeline, in percent."""


@dataclass(frozen=True, slots=True)
class Step:
    """State of a job in its timeline.

    Attributes
    ----------
    at
        Start, RFC 3339.
    event
        Event of the change.
    lasted_s
        Duration; None for a final state.
    percent
        Width in the timeline.
    now
        True if it is the current state.
    """

    state: str
    at: str
    event: EventOut
    lasted_s: float | None
    percent: float
    now: bool


def steps(events: Sequence[EventOut], now: datetime | None = None) -> list[Step]:
    """Return the states of a job, oldest first. A resize of an elastic job begins its state again.

    Parameters
    ----------
    events
        Events of the job in order.
    now
        End of the current state; None for the current time.
    """
    turns: list[EventOut] = []
    states: list[str] = []
    for each in events:
        if (each.kind == "state" and each.state) or (each.kind == "resized" and states):
            turns.append(each)
            states.append(each.state or states[-1])
    moments = [datetime.fromisoformat(each.at) for each in turns]
    ends = [*moments, now or datetime.now(UTC)][1:]
    lasted = [max((end - start).total_seconds(), 0.0) for start, end in zip(moments, ends, strict=True)]
    if turns and JobState(states[-1]).final:
        lasted[-1] = 0.0
    total = sum(lasted) or 1.0
    widths = [max(100 * each / total, MIN_PERCENT) for each in lasted]
    last = len(turns) - 1
    return [
        Step(
            states[at],
            turn.at,
            turn,
            None if at == last and JobState(states[at]).final else lasted[at],
            100 * widths[at] / sum(widths),
            at == last,
        )
        for at, turn in enumerate(turns)
    ]
