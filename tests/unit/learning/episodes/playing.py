"""Ways to play an episode, for tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.scheduling.framework import Mask
from seaway.scheduling.policies.cluster_level import free_ppm
from seaway.testing.plugins import cluster, fleet, gpu, job, node

Choose = Callable[[Episode, Mask], int]
"""Chooses one of the clusters that fit, of which there is at least one."""


def first(_: Episode, legal: Mask) -> int:
    """Choose as ``greedy`` at the level of clusters."""
    return int(np.flatnonzero(legal)[0])


def fullest(episode: Episode, legal: Mask) -> int:
    """Choose as ``bestfit`` at the level of clusters."""
    free = [free_ppm(episode.snapshot.arrays, c) if fits else 2**62 for c, fits in enumerate(legal)]
    return int(np.argmin(free))


def play(episode: Episode, choose: Choose = first) -> int:
    """Place each job in the cluster of `choose` if it fits, otherwise wait. Return the number of decisions."""
    decisions = 0
    while not episode.done:
        legal = episode.legal_clusters()
        if legal.any():
            assert episode.place_in_cluster(choose(episode, legal))
        else:
            assert episode.wait()
        decisions += 1
    return decisions


def halves(count: int, **figures: object) -> Instance:
    """Return two clusters with one device each, and jobs that each request half a device."""
    two = fleet(cluster(node(gpu())), cluster(node(gpu())))
    jobs = [job(f"job-{at}", gpus=1, gpu_memory_mib=40_960, gpu_milli=500, **figures) for at in range(count)]
    return Instance("halves", two, tuple(jobs))


def begun(instance: Instance, **options: object) -> Episode:
    """Return a new episode."""
    return Episode(instance, EpisodeOptions(**options))  # type: ignore[arg-type]  # what options take
