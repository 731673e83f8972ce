"""Rewards of decisions, as in the study of EADE-DDPG."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seaway.learning.episodes.episode import Episode
from seaway.scheduling.arrays import Float64
from seaway.scheduling.kernels.candidates import rank_clusters

SECONDS_PER_HOUR = 3600


class Rewards(NamedTuple):
    """Rewards of a decision; the defaults are the published ones.

    Attributes
    ----------
    scale
        A placement earns ``(score - 1) * scale`` with the score of its cluster, see `cluster_scores`.
    impossible
        For a cluster or node where the job does not fit.
    wait_wrong, wait_right
        For waiting although, and because, there is something that fits, and nothing.
    waited_hour
        Added to a placement for each hour that the job waited before it, with departures; unpublished.
    """

    scale: float = 10.0
    impossible: float = -50.0
    wait_wrong: float = -50.0
    wait_right: float = 0.0
    waited_hour: float = 0.0

    def of_cluster(self, episode: Episode, c: int) -> float:
        """Return what placing the job at hand in cluster `c` earns; to be asked before it is placed."""
        score = float(cluster_scores(episode)[c])
        if score < 0:
            return self.impossible
        return (score - 1.0) * self.scale + self.waited_hour * episode.waited_s / SECONDS_PER_HOUR

    def of_wait(self, episode: Episode) -> float:
        """Return what waiting with the job at hand earns; to be asked before it waits."""
        return self.wait_wrong if episode.fits else self.wait_right


PUBLISHED = Rewards()
"""Rewards of the study."""


def cluster_scores(episode: Episode) -> Float64:
    """Score each cluster for the current job.

    The score is the share of the cluster that would be in use with the job in it, mean over CPU, memory, GPU memory
    and GPU cores, of those that it has; from 0 for the lowest to 1 for the highest of those where the job fits.

    Returns
    -------
    Float64
        Shape (C,): -1 where the job does not fit, 1 everywhere else where all are equal.
    """
    scores = np.empty(len(episode.snapshot.clusters), np.float64)
    _rank(episode, scores)
    return scores


def expert_choice(episode: Episode) -> int:
    """Return the choice that earns most at once: the first of the clusters with score 1; C to wait when none fits."""
    scores = np.empty(len(episode.snapshot.clusters), np.float64)
    best = _rank(episode, scores)
    return best if best >= 0 else len(scores)


def _rank(episode: Episode, scores: Float64) -> int:
    arrays, demands = episode.snapshot.arrays, episode.snapshot.demands.arrays
    return rank_clusters(arrays, demands, episode.line, episode.first_nodes(), scores)
