"""Network score: of the clusters whose links are good enough, the one with the best."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.scheduling.columns import CLUSTER_GATEWAY, DEMAND_GATEWAY, NODE_CLUSTER
from seaway.scheduling.framework import Cycle, Mask, Scores
from seaway.scheduling.links import free_bandwidth
from seaway.scheduling.nearness import FULL, UNKNOWN, link_figures, nearness

MOST_WEIGHT = 1_000_000
"""The largest weight of one side."""


@dataclass(frozen=True, slots=True)
class NetworkWeights:
    """How much each side of the link from the user's gateway counts; whole numbers from 0 up, not all 0.

    Attributes
    ----------
    latency, jitter, loss
        As they were measured, less being better.
    bandwidth
        What can still be promised, on the link and on the interfaces at its ends.
    """

    latency: int = 1
    jitter: int = 1
    loss: int = 1
    bandwidth: int = 1

    def __post_init__(self) -> None:
        """Reject weights that are no whole numbers, or weigh nothing."""
        if not all(type(weight) is int and 0 <= weight <= MOST_WEIGHT for weight in astuple(self)):
            raise RejectedError(f"weights of the network score are whole numbers from 0 up, at most {MOST_WEIGHT:,}")
        if not any(astuple(self)):
            raise RejectedError("one of the weights of the network score has to be above 0")


class NetworkScore:
    """Scores the nodes of a cluster alike, 0-100: the weighted mean of four sides of the user's link to it.

    Each side is scaled between the clusters in which the replica fits, the best being 100. A cluster behind the user's
    own gateway has the best of each; one whose link is unknown, or does not answer, scores 0. A job without a gateway
    scores 100 everywhere.

    Parameters
    ----------
    weights
        How much each side counts.
    """

    name = "NetworkScore"

    def __init__(self, weights: NetworkWeights = NetworkWeights()) -> None:
        self._weights = weights

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,), 0-100."""
        snapshot = cycle.snapshot
        cluster_of = snapshot.arrays.nodes[NODE_CLUSTER]
        if not cycle.job.demand.gateway:
            return np.full(len(cluster_of), FULL, np.int64)
        among = np.zeros(len(snapshot.clusters), np.bool_)
        among[cluster_of[cycle.feasible]] = True
        figures = link_figures(snapshot.links, snapshot.clusters, cycle.job.demand.gateway)
        sides = [*(nearness(each, among) for each in figures), wideness(cycle, figures[0] < UNKNOWN, among)]
        weights = np.array(astuple(self._weights), np.int64)
        scores: Scores = (weights @ np.array(sides, np.int64) // weights.sum())[cluster_of]
        return scores


def wideness(cycle: Cycle, known: Mask, among: Mask) -> Scores:
    """Score clusters by the bandwidth that can still be promised to them from the user's gateway, shape (C,), 0-100.

    Parameters
    ----------
    known
        To which clusters a link is known, shape (C,); the others score 0.
    among
        Which clusters set the scale, shape (C,).
    """
    snapshot = cycle.snapshot
    source = int(snapshot.demands.arrays.amounts[cycle.line][DEMAND_GATEWAY])
    targets = snapshot.arrays.clusters[CLUSTER_GATEWAY]
    free = np.where(known, free_bandwidth(snapshot.arrays, source, targets), 0)
    crossed = known & (targets != source)
    most = int(free[crossed & among].max(initial=0))
    return np.where(known, nearness(np.where(crossed, np.maximum(most - free, 0), 0), among), 0)
