"""Conversion of the network's output for a shortlist to scores of all nodes."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Float32, Int64
from seaway.scheduling.kernels.compile import compiled


@compiled
def score_listed(given: Float32, nodes: Int64, steps: float, farthest: float, scores: Int64) -> tuple[float, float]:
    """Write the scores of the nodes of a shortlist, from 1. Other nodes keep 0.

    Parameters
    ----------
    given
        Output for each node of the shortlist, shape (M,).
    nodes
        Indices of these nodes, shape (M,).
    steps
        Steps of a score per unit of output.
    farthest
        Maximum difference from the best output; larger differences have the same score.
    scores
        Zeros, shape (N,); written if all outputs are finite.

    Returns
    -------
    tuple of float
        The best output, and the sum, which is finite if and only if all outputs are.
    """
    best, total = -np.inf, 0.0
    for each in given:
        best = max(best, np.float64(each))
        total += np.float64(each)
    if np.isfinite(total):
        lowest = 0.0
        for each in given:
            lowest = min(lowest, np.rint(max(np.float64(each) - best, -farthest) * steps))
        for at in range(given.shape[0]):
            step = np.rint(max(np.float64(given[at]) - best, -farthest) * steps)
            scores[nodes[at]] = 1 + int(step) - int(lowest)
    return best, total
