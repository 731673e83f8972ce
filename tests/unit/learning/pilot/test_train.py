"""The learner of `pilot`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.instances.wide import drawn
from seaway.learning.policies.file import Level
from seaway.learning.settings import PilotSettings
from seaway.testing.plugins import job

pytest.importorskip("torch", reason="needs seaway[learn]")


def test_a_restored_learner_continues_exactly() -> None:
    """The state determines the next generation, and evaluation uses held-out instances."""
    from seaway.learning.pilot.train import PilotLearner

    instances = drawn("network", 3, seed=2)
    settings = PilotSettings(pairs=2, batch=3, judged=3)
    whole, other = (PilotLearner(settings, instances, seed=4) for _ in range(2))
    results = whole.train()
    first = next(results)
    assert len(first) == 3
    assert {each.instance for each in first} <= {each.name for each in instances[:2]}
    state = whole.state()
    next(results)
    other.restore(state)
    next(other.train())
    assert all(np.array_equal(whole.weights()[name], values) for name, values in other.weights().items())
    assert [each.instance for each in whole.evaluate()] == [instances[2].name]
    trained_actor = other.trained_actor()
    assert trained_actor.level is Level.NODE
    assert trained_actor.apart
    assert 1 <= len(trained_actor.trials) <= 16


def test_diverged_weights_end_the_run() -> None:
    """The error is raised after the generation, not at the export."""
    from seaway.learning.pilot.train import PilotLearner

    learner = PilotLearner(PilotSettings(pairs=1, batch=1), drawn("network", 1, seed=2), seed=4)
    state = learner.state()
    learner.restore({**state, "mean": np.full_like(state["mean"], np.nan)})
    with pytest.raises(RejectedError, match="the weights have diverged: give it a lower rate or spread"):
        next(learner.train())


def test_without_scores_only_waiting_and_cluster_features_are_trained() -> None:
    """Scores within a cluster are those of Seaway's own policy."""
    from seaway.learning.pilot.train import PilotLearner

    learner = PilotLearner(PilotSettings(pairs=2, batch=3, scores=False), drawn("network", 3, seed=2), seed=4)
    before = learner.weights()
    next(learner.train())
    after = learner.weights()
    moved = {name for name, values in after.items() if not np.array_equal(values, before[name])}
    assert moved == {"skip", "wait_last", "wait_skip"}
    assert np.flatnonzero(after["skip"] != before["skip"]).tolist() == [16, 17, 18, 19]


def test_instances_without_feasible_first_jobs_are_rejected() -> None:
    """No example for a policy file would exist."""
    from seaway.learning.pilot.train import PilotLearner

    (instance,) = drawn("placement", 1, seed=0)
    huge = job("huge", gpus=1_000)
    with pytest.raises(RejectedError, match="has a first job that fits"):
        PilotLearner(PilotSettings(), [replace(instance, jobs=(huge, *instance.jobs[1:]))], seed=0)
