from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs seaway[learn]")

from seaway.learning.environments.cluster_env import PUBLISHED, Rewards, cluster_scores, expert_choice
from seaway.learning.episodes.episode import Episode
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn
from seaway.simulation.outcome import used_shares
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.learning.episodes.playing import begun, halves


def scores_by_trying(instance: Instance, choices: list[int]) -> list[float]:
    """Score clusters after some choices the slow way: place the job there, and look at the use."""
    used = []
    for c in range(len(instance.fleet.clusters)):
        episode = Episode(instance)
        for choice in choices:
            episode.place_in_cluster(choice)
        placed = episode.place_in_cluster(c)
        used.append(float(np.nanmean(used_shares(episode.snapshot.arrays.clusters)[:, c])) if placed else -1.0)
    fitting = [use for use in used if use >= 0] or [0.0]
    low, span = min(fitting), max(fitting) - min(fitting)
    return [-1.0 if use < 0 else (use - low) / span if span else 1.0 for use in used]


@pytest.mark.parametrize("kind", ["placement", "network"])
def test_a_score_is_the_scaled_use_after_the_placement(kind: str) -> None:
    """Scores equal those computed from a placement in each cluster."""
    (instance,) = drawn(kind, 1, seed=8)
    episode = Episode(instance)
    choices: list[int] = []
    for _ in range(12):
        np.testing.assert_allclose(cluster_scores(episode), scores_by_trying(instance, choices), atol=1e-9)
        choices.append(int(np.flatnonzero([True, *episode.legal_clusters()[1:]])[-1]))
        episode.place_in_cluster(choices[-1])


def test_equal_clusters_score_one() -> None:
    """The first placement on an empty fleet has a reward of 0 everywhere."""
    episode = begun(halves(1))
    assert cluster_scores(episode).tolist() == [1, 1]
    assert [PUBLISHED.of_cluster(episode, c) for c in (0, 1)] == [0, 0]


def test_the_reward_of_a_placement() -> None:
    """The reward is 0 in the fuller cluster and -10 in the emptier one."""
    episode = begun(halves(2))
    episode.place_in_cluster(1)
    assert [PUBLISHED.of_cluster(episode, c) for c in (0, 1)] == [-10, 0]
    assert expert_choice(episode) == 1


def test_infeasible_choices_have_the_lowest_reward() -> None:
    """An infeasible cluster, and waiting although a cluster is feasible, have a reward of -50."""
    parts = fleet(cluster(node()), cluster(node(gpu())))
    episode = begun(Instance("parts", parts, (job(gpus=1), job("next", gpus=1))))
    assert PUBLISHED.of_cluster(episode, 0) == -50
    assert PUBLISHED.of_wait(episode) == -50
    episode.place_in_cluster(1)
    assert PUBLISHED.of_wait(episode) == 0


def test_the_expert_waits_for_infeasible_jobs() -> None:
    """Its choice is the number of clusters then."""
    episode = begun(Instance("none", fleet(cluster(node()), cluster(node())), (job(gpus=1),)))
    assert expert_choice(episode) == 2


def test_the_reward_of_waiting_time() -> None:
    """It applies with departures, and if rewards set it."""
    episode = begun(halves(5, expected_duration_s=1_800), departures=True)
    for c in (0, 0, 1, 1):
        episode.place_in_cluster(c)
    episode.wait()
    assert PUBLISHED.of_cluster(episode, 0) == 0
    assert Rewards(waited_hour=-4).of_cluster(episode, 0) == pytest.approx(-2)
