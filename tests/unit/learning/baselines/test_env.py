"""Anything that Stable-Baselines3 plays goes through the instances, and can be gone back to."""

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
from seaway.learning.training.clusters import Clusters
from tests.unit.learning.runs.small import small_run, write_instance


@pytest.fixture
def clusters(tmp_path: Path) -> Clusters:
    """Return episodes on two instances, of ten and of six jobs."""
    run = small_run("td3", write_instance(tmp_path / "one", 10), write_instance(tmp_path / "two", 6))
    return Clusters(run, read_all(run))


def play(env: BaselineEnv, *actions: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Take some actions; return what is seen then."""
    for action in actions:
        seen, *_ = env.step(np.array([action], np.float32))
    return seen


def test_an_episode_is_gone_back_to_by_its_actions(clusters: Clusters) -> None:
    """Anything that is seen in the middle of one is seen again, and as many steps are certain to come."""
    env = BaselineEnv(clusters)
    env.episode = 1
    env.reset()
    seen = play(env, 0.1, -0.9, 0.4)
    other = BaselineEnv(clusters)
    other.restore(env.state())
    assert env.certain == other.certain == 3
    np.testing.assert_array_equal(other.reset()[0], seen)


def test_episodes_are_noted_when_they_end(clusters: Clusters) -> None:
    """Their jobs, in the sum of what became of them, and the number of the next."""
    env = BaselineEnv(clusters)
    env.reset()
    play(env, *[-1.0] * env.certain)
    assert (env.episode, len(env.ended)) == (1, 1)
    ended = env.ended[0]
    assert (ended.jobs, ended.placed + ended.refused + ended.failed) == (10, 10)


@pytest.mark.parametrize("algo", ["td3", "sac", "ppo"])
def test_weights_without_end_are_informed_of(algo: str, tmp_path: Path) -> None:
    """A user who gave too high a rate reads that, and no traceback."""
    given = {} if algo == "ppo" else {"warm_up": 1}
    run = small_run(algo, write_instance(tmp_path / "toy", 4), **given)
    learner = BaselineLearner(run, Clusters(run, read_all(run)))
    for weights in learner.model.policy.parameters():
        weights.data.fill_(float("nan"))
    with pytest.raises(RejectedError, match="give it lower learning rates"):
        list(islice(learner.plays(), 3))
