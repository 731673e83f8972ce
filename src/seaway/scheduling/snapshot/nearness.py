"""Proximity of clusters to a user: scores of links that are good enough, 0-100, with 100 for the best of a fleet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from seaway.domain.cluster import Cluster
from seaway.domain.network import Link
from seaway.scheduling.arrays import Int64

FULL = 100
"""The best that a cluster can score."""

UNKNOWN = 2**62
"""Stands for a figure that no one knows: worse than any other."""


def nearness(figures: Int64, among: NDArray[np.bool_]) -> Int64:
    """Scale figures of clusters, of which less is better, to 0-100 between the lowest and the highest.

    Parameters
    ----------
    figures
        Shape (C,); `UNKNOWN` for what no one knows, which scores 0.
    among
        Which clusters set the scale, shape (C,).
    """
    known = figures < UNKNOWN
    scale = figures[known & among]
    low, high = scale.min(initial=UNKNOWN), scale.max(initial=0)
    if low >= high:
        return np.where(known, FULL, 0)
    inside = np.clip(figures, low, high)
    return np.where(known, (high - inside) * FULL // (high - low), 0)


def link_figures(links: Iterable[Link], clusters: Sequence[Cluster], gateway: str) -> Int64:
    """Return latency, jitter and loss from a gateway to each cluster, shape (3, C).

    All are 0 behind the gateway itself, and `UNKNOWN` where no link was measured or nothing answers.
    """
    found = {link.target: link for link in links if link.source == gateway and link.reachable}
    table = np.full((3, len(clusters)), UNKNOWN, np.int64)
    for c, cluster in enumerate(clusters):
        link = found.get(cluster.gateway)
        if cluster.gateway == gateway:
            table[:, c] = 0
        elif link is not None and link.latency_ns is not None:
            table[:, c] = link.latency_ns, link.jitter_ns, link.loss_ppm
    return table


def near(links: Iterable[Link], clusters: Sequence[Cluster], gateway: str) -> Int64:
    """Score clusters by latency, jitter and loss from a gateway alike, shape (C,), 0-100."""
    everywhere = np.ones(len(clusters), np.bool_)
    sides = [nearness(figures, everywhere) for figures in link_figures(links, clusters, gateway)]
    scores: Int64 = np.sum(sides, axis=0) // len(sides)
    return scores
