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
def test_the_environment_passes_the_checker_of_gymnasium(discrete: bool) -> None:
    """The checker covers spaces, seeds, and results of steps and resets."""
    check_env(ClusterEnv(drawn("placement", 2, seed=0), discrete=discrete), skip_render_check=True)


def test_links_and_generated_instances_pass_the_checker() -> None:
    """Observations have links, and each episode has another instance."""
    check_env(ClusterEnv(kind_of("network"), network=True, fitting=True), skip_render_check=True)


def test_observations_are_in_the_space() -> None:
    """All observations of an episode are in the space, with links."""
    for env in (ClusterEnv(kind_of("placement")), ClusterEnv(kind_of("network"), network=True)):
        shown, info = env.reset(seed=2)
        ended = False
        while not ended:
            assert env.observation_space.contains(shown)
            assert info["legal"].tolist() == [*env.episode.legal_clusters().tolist(), True]
            shown, _, ended, cut, info = env.step(np.array([env.expert()[0]]))
            assert not cut
        assert env.observation_space.contains(shown)


def test_rewards_of_steps() -> None:
    """The rewards are 0 for the fuller cluster, -10 for the emptier one, -50 if infeasible, and 0 for a right wait."""
    env = ClusterEnv([halves(6)], discrete=True)
    env.reset(seed=0)
    earned = [env.step(choice)[1] for choice in (FULL, EMPTY, FULL, FULL, WAIT, EMPTY, WAIT)]
    assert earned == [0, -10, 0, -50, -50, 0, 0]
    assert env.episode.done


def test_continuous_actions_select_a_bin() -> None:
    """With two clusters, the first third is the first cluster, and the last third waits."""
    env = ClusterEnv([halves(2)])
    env.reset(seed=0)
    assert env.step(np.array([-0.9], np.float32))[1] == 0
    assert env.step(np.array([0.9], np.float32))[1] == -50
    assert env.episode.plan().placed.tolist() == [True, False]


def test_the_last_step_has_the_outcome() -> None:
    """Only the last step has it, with the counts of a replay."""
    env = ClusterEnv([halves(2)], discrete=True)
    env.reset(seed=0)
    assert "outcome" not in env.step(FULL)[4]
    _, _, ended, _, info = env.step(FULL)
    assert ended
    assert info["outcome"].counts.placed == 2


def test_the_expert_has_the_highest_reward() -> None:
    """Its choices have a reward of 0, which it returns, for placements and waiting."""
    for env in (ClusterEnv(drawn("placement", 1, seed=1)), ClusterEnv(drawn("placement", 1, seed=1), discrete=True)):
        env.reset(seed=0)
        while not env.episode.done:
            action, reward = env.expert()
            assert env.step(int(action) if env.action_space.shape == () else np.array([action]))[1] == reward == 0


def test_rewards_are_configurable() -> None:
    """Each of the numbers has an effect."""
    env = ClusterEnv([halves(3)], discrete=True, rewards=Rewards(scale=2, impossible=-7, wait_wrong=-3))
    env.reset(seed=0)
    assert [env.step(choice)[1] for choice in (FULL, EMPTY, WAIT)] == [0, -2, -3]


def test_instances_are_used_in_rotation() -> None:
    """A seed selects the first instance, modulo their number; without a seed the next one is used."""
    env = ClusterEnv([replace(halves(1), name=name) for name in "abc"])
    began = []
    for seed in (None, None, None, 4, None, None):
        env.reset(seed=seed)
        began.append(env.episode.instance.name)
    assert began == ["b", "c", "a", "b", "c", "a"]


def test_the_same_seed_generates_the_same_episodes() -> None:
    """The first episode and later ones are equal."""

    def shown(env: ClusterEnv) -> list[list[float]]:
        return [env.reset(seed=seed)[0].tolist() for seed in (7, None, None)]

    one, other = shown(ClusterEnv(kind_of("placement"))), shown(ClusterEnv(kind_of("placement")))
    assert one == other
    assert one[0] != one[1] != one[2]


def test_instances_with_other_numbers_of_clusters_are_rejected() -> None:
    """The error names the instance."""
    env = ClusterEnv([*drawn("network", 1, seed=0), *drawn("placement", 1, seed=0)])
    with pytest.raises(RejectedError, match="16 clusters") as failure:
        env.reset(seed=1)
    assert failure.value.where == "placement-seed0-0"


def test_no_instances_are_rejected() -> None:
    """An environment needs at least one instance."""
    with pytest.raises(RejectedError, match="no instances"):
        ClusterEnv([])


def test_elements_of_arrays_are_actions() -> None:
    """An action can be an element of an array, or an array without axes."""
    numbers: list[Any] = [np.int64(FULL), np.array(FULL)]
    env = ClusterEnv([halves(2)], discrete=True)
    env.reset(seed=0)
    assert [env.step(number)[1] for number in numbers] == [0, 0]


@pytest.mark.parametrize("action", [-1, WAIT + 1, 99])
def test_an_action_outside_the_space_is_rejected(action: int) -> None:
    """The current job does not change."""
    env = ClusterEnv([halves(2)], discrete=True)
    env.reset(seed=0)
    with pytest.raises(RejectedError, match=f"action {action} not found: actions are 0 to {WAIT}"):
        env.step(action)
    assert env.step(FULL)[1] == 0
