"""Exported actors of baselines decide as Stable-Baselines3."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs seaway[learn]")
pytest.importorskip("stable_baselines3", reason="needs seaway[learn]")

from seaway.learning.baselines import BaselineLearner, actor_of  # noqa: E402  # where torch is
from seaway.learning.runs.instances import read_all  # noqa: E402
from seaway.learning.training.clusters import ClusterEnvs  # noqa: E402
from tests.unit.learning.runs.small import small_run, write_instance  # noqa: E402


@pytest.mark.parametrize("algo", ["td3", "sac", "ppo", "sb3-ddpg"])
def test_actors_equal_deterministic_predictions(algo: str, tmp_path: Path) -> None:
    """Clipped actions of PPO are included."""
    run = small_run(algo, write_instance(tmp_path / "toy", 10))
    learner = BaselineLearner(run, ClusterEnvs(run, read_all(run)))
    with torch.no_grad():
        for weights in learner.model.policy.parameters():
            weights.mul_(4.0)
    seen = np.random.default_rng(0).random((50, 16), dtype=np.float32)
    predicted, _ = learner.model.predict(seen, deterministic=True)
    with torch.inference_mode():
        chosen = actor_of(learner.model)(torch.from_numpy(seen)).numpy()
    np.testing.assert_allclose(chosen, predicted, atol=1e-6)
    assert len(np.unique(chosen)) > 5


@pytest.mark.parametrize("algo", ["td3", "sac", "ppo", "sb3-ddpg"])
def test_networks_have_the_published_sizes(algo: str, tmp_path: Path) -> None:
    """Actor and critics have hidden layers of 128 and 64 by default."""
    run = small_run(algo, write_instance(tmp_path / "toy", 3), hidden="128-64")
    learner = BaselineLearner(run, ClusterEnvs(run, read_all(run)))
    widths = {each.shape[0] for each in learner.model.policy.parameters() if each.ndim == 2}
    assert widths == {128, 64, 1}
