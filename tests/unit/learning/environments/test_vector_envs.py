from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seaway.learning.instances.wide import drawn
from tests.unit.learning.episodes.playing import halves

pytest.importorskip("gymnasium", reason="needs seaway[learn]")

import gymnasium

from seaway.learning.environments import CLUSTER_ENV, NODE_ENV


def test_registered_names() -> None:
    """Other arguments are those of the class."""
    assert gymnasium.make(CLUSTER_ENV, source=[halves(1)], discrete=True).action_space.n == 3
    shown, _ = gymnasium.make(NODE_ENV, source=drawn("any", 1, seed=0)).reset(seed=0)
    assert set(shown) == {"nodes", "job", "legal"}


@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_vector_environments_equal_single_ones(mode: str) -> None:
    """With consecutive seeds, each environment starts with another instance."""
    instances = drawn("network", 3, seed=0)
    choices = np.random.default_rng(0).integers(0, 4, (60, 3))
    many: Any = gymnasium.make_vec(
        CLUSTER_ENV, num_envs=3, vectorization_mode=mode, source=instances, discrete=True, network=True
    )
    shown, info = many.reset(seed=0)
    seen, legal = [shown.copy()], [info["legal"].copy()]
    for chosen in choices:
        shown, _, _, _, info = many.step(chosen)
        seen.append(shown.copy())
        legal.append(info["legal"].copy())
    many.close()
    for at, instance in enumerate(instances):
        alone = gymnasium.make(CLUSTER_ENV, source=[instance], discrete=True, network=True)
        shown, info = alone.reset(seed=0)
        for step, chosen in enumerate(choices):
            np.testing.assert_array_equal(seen[step][at], shown)
            np.testing.assert_array_equal(legal[step][at], info["legal"])
            shown, _, _, _, info = alone.step(chosen[at])


def test_vector_environments_return_outcomes() -> None:
    """Each outcome is at the index of its environment."""
    instances = [replace(halves(count), name=f"{count}") for count in (1, 2)]
    many = gymnasium.make_vec(CLUSTER_ENV, num_envs=2, vectorization_mode="sync", source=instances, discrete=True)
    many.reset(seed=0)
    _, _, ended, _, info = many.step(np.array([0, 0]))
    assert ended.tolist() == [True, False]
    assert info["outcome"][0].counts.placed == 1
    assert info["outcome"][1] is None
    many.close()
