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
def test_a_score_is_the_use_after_placing_scaled_over_the_clusters_that_fit(kind: str) -> None:
    """As placing the job in each cluster and measuring it says."""
    (instance,) = drawn(kind, 1, seed=8)
    episode = Episode(instance)
    choices: list[int] = []
    for _ in range(12):
        np.testing.assert_allclose(cluster_scores(episode), scores_by_trying(instance, choices), atol=1e-9)
        choices.append(int(np.flatnonzero([True, *episode.legal_clusters()[1:]])[-1]))
        episode.place_in_cluster(choices[-1])


def test_where_all_clusters_are_equal_each_scores_one() -> None:
    """So that the first placement of all earns 0 wherever it goes."""
    episode = begun(halves(1))
    assert cluster_scores(episode).tolist() == [1, 1]
    assert [PUBLISHED.of_cluster(episode, c) for c in (0, 1)] == [0, 0]


def test_placing_earns_ten_for_each_point_below_the_best() -> None:
    """The fuller cluster earns 0, the emptier one -10."""
    episode = begun(halves(2))
    episode.place_in_cluster(1)
    assert [PUBLISHED.of_cluster(episode, c) for c in (0, 1)] == [-10, 0]
    assert expert_choice(episode) == 1


def test_what_does_not_fit_earns_the_least() -> None:
    """A cluster without a device for it, and waiting while there is one, cost 50."""
    parts = fleet(cluster(node()), cluster(node(gpu())))
    episode = begun(Instance("parts", parts, (job(gpus=1), job("next", gpus=1))))
    assert PUBLISHED.of_cluster(episode, 0) == -50
    assert PUBLISHED.of_wait(episode) == -50
    episode.place_in_cluster(1)
    assert PUBLISHED.of_wait(episode) == 0


def test_the_expert_waits_where_nothing_fits() -> None:
    """Its choice is the number of clusters then."""
    episode = begun(Instance("none", fleet(cluster(node()), cluster(node())), (job(gpus=1),)))
    assert expert_choice(episode) == 2


def test_an_hour_of_waiting_may_cost_something() -> None:
    """With departures, and only where the rewards say so."""
    episode = begun(halves(5, expected_duration_s=1_800), departures=True)
    for c in (0, 0, 1, 1):
        episode.place_in_cluster(c)
    episode.wait()
    assert PUBLISHED.of_cluster(episode, 0) == 0
    assert Rewards(waited_hour=-4).of_cluster(episode, 0) == pytest.approx(-2)
