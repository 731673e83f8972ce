"""Imitation of packings by `pilot`."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs seaway[learn]")
pytest.importorskip("ortools", reason="needs seaway[learn]")

from seaway.learning.instances.wide import drawn
from seaway.learning.observing.nodes import JOB_FEATURES, NODE_FEATURES, NodeView
from seaway.learning.packing.search import best_packing
from seaway.learning.pilot.imitation import UNLISTED, Demonstration, demonstrations_of
from seaway.learning.pilot.network import initial_weights
from seaway.learning.settings import PilotSettings
from seaway.learning.training.listener import NullListener
from seaway.scheduling.policies.pilot.features import FLEET_GPU_CORE_FREE, JOB_RANK
from seaway.scheduling.policies.pilot.kernel import PilotWeights, run_network

RULE = 5
"""Index of the features of nodes and of jobs in the rule of the teacher."""


def teacher(count: int, seed: int) -> list[Demonstration]:
    """Return demonstrations of a rule: the node with the maximum of a feature, and waiting above a limit of another."""
    random = np.random.default_rng(seed)
    demonstrations = []
    for _ in range(count):
        features = random.random((int(random.integers(2, 9)), NODE_FEATURES), np.float32)
        job = random.random(JOB_FEATURES, np.float32)
        job[JOB_RANK], job[FLEET_GPU_CORE_FREE] = 0.9, 0.3
        waits = bool(job[RULE] > 0.8)
        node = UNLISTED if waits else int(features[:, RULE].argmax())
        demonstrations.append(Demonstration(NodeView(np.arange(len(features)), features, job), waits, node))
    return demonstrations


def agreement(weights: PilotWeights, demonstrations: list[Demonstration]) -> tuple[float, float]:
    """Return the shares of decisions in which the policy waits, and chooses the node, as in demonstrations."""
    waits, nodes = [], []
    for demonstration in demonstrations:
        scores = np.empty(len(demonstration.view.nodes), np.float32)
        wait_score = run_network(weights, demonstration.view.features, demonstration.view.job, len(scores), scores)
        waits.append((wait_score > 0) == demonstration.waits)
        if demonstration.node != UNLISTED:
            nodes.append(int(scores.argmax()) == demonstration.node)
    return float(np.mean(waits)), float(np.mean(nodes))


def test_a_packing_gives_a_demonstration_per_feasible_job() -> None:
    """Jobs outside the packing wait, others get its node if listed, and the fleet is filled accordingly."""
    (instance,) = drawn("network", 1, seed=3)
    packing = best_packing(instance, 1.0)
    demonstrations = demonstrations_of(instance, packing)
    placed = {each.job for each in packing.placed}
    assert sum(not each.waits for each in demonstrations) == packing.count
    assert 0 < sum(each.waits for each in demonstrations) <= len(instance.jobs) - len(placed)
    assert any(each.node != UNLISTED for each in demonstrations)
    assert all(each.node == UNLISTED or not each.waits for each in demonstrations)
    assert demonstrations[0].view.job[FLEET_GPU_CORE_FREE] == 1.0
    assert demonstrations[-1].view.job[FLEET_GPU_CORE_FREE] < 0.2


def test_imitation_generalises() -> None:
    """After some hundred demonstrations, the policy follows their rule for new observations, also in the kernel."""
    from seaway.learning.pilot.imitation import imitate

    first = initial_weights(16, 2, 0)
    learned = imitate(first, teacher(1_500, seed=1), scores=True, seed=0)
    waits, nodes = agreement(learned, teacher(300, seed=2))
    assert agreement(first, teacher(300, seed=2)) < (0.85, 0.5)
    assert waits > 0.9
    assert nodes > 0.8


def test_without_scores_only_waiting_is_trained() -> None:
    """Weights of scores are unchanged to the bit; equal demonstrations and seeds give equal weights."""
    from seaway.learning.pilot.imitation import imitate

    first, demonstrations = initial_weights(16, 2, 0), teacher(200, seed=1)
    learned, again = (imitate(first, demonstrations, scores=False, seed=4) for _ in range(2))
    moved = {name for name in first._fields if not np.array_equal(getattr(first, name), getattr(learned, name))}
    assert moved == {"wait_job", "wait_pooled", "bias_wait", "wait_last", "wait_skip"}
    assert all(np.array_equal(*pair) for pair in zip(learned, again, strict=True))


def test_imitation_precedes_the_first_episode() -> None:
    """Evolution starts from the imitated weights, and a checkpoint has them."""
    from seaway.learning.pilot.train import PilotLearner

    class Observation(NullListener):
        """Observes what is being done."""

        def __init__(self) -> None:
            self.texts: list[str] = []

        def doing(self, text: str) -> None:
            """Note it."""
            self.texts.append(text)

    instances = drawn("network", 3, seed=2)
    settings = PilotSettings(pairs=2, batch=3, judged=3, packings=5, packing_s=0.5)
    demonstrations, other = (PilotLearner(settings, instances, seed=4) for _ in range(2))
    before, received = demonstrations.weights(), Observation()
    demonstrations.prepare(received)
    assert [text for text in received.texts if text.startswith("packing")] == [
        f"packing {instances[0].name}, 1 of 2",
        f"packing {instances[1].name}, 2 of 2",
    ]
    after = demonstrations.weights()
    assert any(not np.array_equal(after[name], values) for name, values in before.items())
    other.restore(demonstrations.state())
    next(demonstrations.train())
    next(other.train())
    assert all(np.array_equal(demonstrations.weights()[name], values) for name, values in other.weights().items())
