"""What is said of a shortlist, as scores of all nodes."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Float32, Int64
from seaway.scheduling.kernels.compile import compiled


@compiled
def score_listed(given: Float32, nodes: Int64, steps: float, farthest: float, scores: Int64) -> tuple[float, float]:
    """Score the nodes of a shortlist from 1 up, those that are not listed being 0.

    Parameters
    ----------
    given
        What is said of each, shape (M,).
    nodes
        Which they are, shape (M,).
    steps
        Steps of a score in one of what is given.
    farthest
        What is given so far below the best counts as one.
    scores
        Zeros, shape (N,); written to, if everything given is finite.

    Returns
    -------
    tuple of float
        The best that is given, and the sum, which is finite just where all of it is.
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
