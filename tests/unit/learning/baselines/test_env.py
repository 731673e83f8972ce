"""Environments of Stable-Baselines3 rotate instances, and their state can be restored."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs seaway[learn]")
pytest.importorskip("stable_baselines3", reason="needs seaway[learn]")

from seaway.domain.errors import RejectedError  # where torch is
from seaway.learning.baselines import BaselineEnv, BaselineLearner
from seaway.learning.runs.instances import read_all
from seaway.learning.training.clusters import ClusterEnvs
from tests.unit.learning.runs.small import small_run, write_instance


@pytest.fixture
def envs(tmp_path: Path) -> ClusterEnvs:
    """Return environments of two instances, with ten and six jobs."""
    run = small_run("td3", write_instance(tmp_path / "one", 10), write_instance(tmp_path / "two", 6))
    return ClusterEnvs(run, read_all(run))


def play(env: BaselineEnv, *actions: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Take some actions, and return the last observation."""
    for action in actions:
        seen, *_ = env.step(np.array([action], np.float32))
    return seen


def test_a_restored_environment_replays_its_actions(envs: ClusterEnvs) -> None:
    """The observation and the minimum number of remaining steps are equal."""
    env = BaselineEnv(envs)
    env.episode = 1
    env.reset()
    seen = play(env, 0.1, -0.9, 0.4)
    other = BaselineEnv(envs)
    other.restore(env.state())
    assert env.min_steps == other.min_steps == 3
    np.testing.assert_array_equal(other.reset()[0], seen)


def test_results_of_completed_episodes_are_recorded(envs: ClusterEnvs) -> None:
    """They have the counts of jobs, and the number of the episode increases."""
    env = BaselineEnv(envs)
    env.reset()
    play(env, *[-1.0] * env.min_steps)
    assert (env.episode, len(env.results)) == (1, 1)
    result = env.results[0]
    assert (result.jobs, result.placed + result.refused + result.failed) == (10, 10)


@pytest.mark.parametrize("algo", ["td3", "sac", "ppo"])
def test_diverged_weights_are_reported(algo: str, tmp_path: Path) -> None:
    """The error recommends a lower learning rate."""
    given = {} if algo == "ppo" else {"warm_up": 1}
    run = small_run(algo, write_instance(tmp_path / "toy", 4), **given)
    learner = BaselineLearner(run, ClusterEnvs(run, read_all(run)))
    for weights in learner.model.policy.parameters():
        weights.data.fill_(float("nan"))
    with pytest.raises(RejectedError, match="give it lower learning rates"):
        list(islice(learner.train(), 3))
