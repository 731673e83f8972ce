from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs seaway[learn]")

from gymnasium.utils.env_checker import check_env

from seaway.domain.errors import RejectedError
from seaway.learning.environments.cluster_env import ClusterEnv, Rewards
from seaway.learning.instances.wide import drawn, kind_of
from tests.unit.learning.episodes.playing import halves

FULL, EMPTY, WAIT = 0, 1, 2
"""Choices of the two clusters of `halves`, once a job was placed in the first; and to wait."""


@pytest.mark.parametrize("discrete", [False, True])
def test_gymnasium_finds_nothing_wrong(discrete: bool) -> None:
    """Its own checker: spaces, seeds, what steps and resets return."""
    check_env(ClusterEnv(drawn("placement", 2, seed=0), discrete=discrete), skip_render_check=True)


def test_gymnasium_finds_nothing_wrong_with_links_and_drawn_instances() -> None:
    """Nor where links are shown, and each episode draws another instance."""
    check_env(ClusterEnv(kind_of("network"), network=True, fitting=True), skip_render_check=True)


def test_what_is_shown_lies_in_the_space() -> None:
    """From the first job to the end, with every figure of the clusters, the links and the job."""
    for env in (ClusterEnv(kind_of("placement")), ClusterEnv(kind_of("network"), network=True)):
        shown, info = env.reset(seed=2)
        ended = False
        while not ended:
            assert env.observation_space.contains(shown)
            assert info["legal"].tolist() == [*env.episode.legal_clusters().tolist(), True]
            shown, _, ended, cut, info = env.step(np.array([env.expert()[0]]))
            assert not cut
        assert env.observation_space.contains(shown)


def test_a_step_decides_the_job_at_hand_and_pays_for_it() -> None:
    """Placing in the fuller cluster earns 0, in the emptier -10; what does not fit costs 50, a right wait nothing."""
    env = ClusterEnv([halves(6)], discrete=True)
    env.reset(seed=0)
    earned = [env.step(choice)[1] for choice in (FULL, EMPTY, FULL, FULL, WAIT, EMPTY, WAIT)]
    assert earned == [0, -10, 0, -50, -50, 0, 0]
    assert env.episode.done


def test_an_action_falls_into_a_bin() -> None:
    """One number: the first third is the first cluster, the last third waits."""
    env = ClusterEnv([halves(2)])
    env.reset(seed=0)
    assert env.step(np.array([-0.9], np.float32))[1] == 0
    assert env.step(np.array([0.9], np.float32))[1] == -50
    assert env.episode.plan().placed.tolist() == [True, False]


def test_the_end_brings_the_outcome() -> None:
    """Once, with the counts that a replay would give."""
    env = ClusterEnv([halves(2)], discrete=True)
    env.reset(seed=0)
    assert "outcome" not in env.step(FULL)[4]
    _, _, ended, _, info = env.step(FULL)
    assert ended
    assert info["outcome"].counts.placed == 2


def test_the_expert_never_pays() -> None:
    """Its choice earns most at once: 0 each time, whether it places or waits, as it says."""
    for env in (ClusterEnv(drawn("placement", 1, seed=1)), ClusterEnv(drawn("placement", 1, seed=1), discrete=True)):
        env.reset(seed=0)
        while not env.episode.done:
            action, reward = env.expert()
            assert env.step(int(action) if env.action_space.shape == () else np.array([action]))[1] == reward == 0


def test_rewards_are_as_they_are_set() -> None:
    """Each number of them counts."""
    env = ClusterEnv([halves(3)], discrete=True, rewards=Rewards(scale=2, impossible=-7, wait_wrong=-3))
    env.reset(seed=0)
    assert [env.step(choice)[1] for choice in (FULL, EMPTY, WAIT)] == [0, -2, -3]


def test_instances_come_in_turn() -> None:
    """A seed names the one to begin with, counted round and round; without one the next comes."""
    env = ClusterEnv([replace(halves(1), name=name) for name in "abc"])
    began = []
    for seed in (None, None, None, 4, None, None):
        env.reset(seed=seed)
        began.append(env.episode.instance.name)
    assert began == ["b", "c", "a", "b", "c", "a"]


def test_the_same_seed_draws_the_same_episodes() -> None:
    """The first one and those after it."""

    def shown(env: ClusterEnv) -> list[list[float]]:
        return [env.reset(seed=seed)[0].tolist() for seed in (7, None, None)]

    one, other = shown(ClusterEnv(kind_of("placement"))), shown(ClusterEnv(kind_of("placement")))
    assert one == other
    assert one[0] != one[1] != one[2]


def test_instances_with_other_numbers_of_clusters_are_rejected() -> None:
    """Anything that was learned of three clusters says nothing of sixteen; the instance is named."""
    env = ClusterEnv([*drawn("network", 1, seed=0), *drawn("placement", 1, seed=0)])
    with pytest.raises(RejectedError, match="16 clusters") as failure:
        env.reset(seed=1)
    assert failure.value.where == "placement-seed0-0"


def test_no_instances_are_rejected() -> None:
    """There is nothing to begin with."""
    with pytest.raises(RejectedError, match="no instances"):
        ClusterEnv([])


def test_numbers_of_arrays_are_actions_too() -> None:
    """Learners hand over what their arrays hold: an element, or an array without axes."""
    numbers: list[Any] = [np.int64(FULL), np.array(FULL)]
    env = ClusterEnv([halves(2)], discrete=True)
    env.reset(seed=0)
    assert [env.step(number)[1] for number in numbers] == [0, 0]


@pytest.mark.parametrize("action", [-1, WAIT + 1, 99])
def test_an_action_outside_the_space_is_rejected(action: int) -> None:
    """It stands for nothing, and the job is still to be decided."""
    env = ClusterEnv([halves(2)], discrete=True)
    env.reset(seed=0)
    with pytest.raises(RejectedError, match=f"action {action} not found: actions are 0 to {WAIT}"):
        env.step(action)
    assert env.step(FULL)[1] == 0
