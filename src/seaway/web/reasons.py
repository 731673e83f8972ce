"""Why a job goes where it goes, cluster by cluster, and what would admit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seaway.domain.amounts import figure_text
from seaway.web.job_fields import path_of

if TYPE_CHECKING:
    from seaway.wire.explanations import ExplanationOut, RemedyOut


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
    for each in explanation.refusals:
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
        word, asked = figure_text(each.field, each.asked)
        admits = figure_text(each.field, each.admits)[1] if each.admits else ""
        yield Mend(word, asked, admits, f"{each.cluster}/{each.node}", path_of(each.field) if admits else "")
