"""Features, network and evolution of `pilot`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs seaway[learn]")

from seaway.domain.cluster import Cluster, Fleet
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn
from seaway.learning.observing.nodes import JOB_FEATURES, NODE_FEATURES, SHORTLIST_SIZE, NodeObserver
from seaway.learning.pilot.batch_environment import BatchEnvironment
from seaway.learning.pilot.network import initial_weights, to_vector, with_vector
from seaway.learning.pilot.train import Evolution, utilities
from seaway.scheduling.columns import JOB_DEMAND
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.pilot.kernel import PilotWeights, run_network
from seaway.scheduling.snapshot.snapshot import Snapshot


@pytest.fixture(scope="module")
def instance() -> Instance:
    """Return a generated instance with 64 nodes."""
    return drawn("placement", 1, seed=5)[0]


def any_weights(seed: int = 3) -> PilotWeights:
    """Return a network in which each weight has an influence."""
    random = np.random.default_rng(seed)
    weights = initial_weights(16, 2, seed)
    drawn_weights = (random.normal(0, 0.3, each.shape).astype(np.float32) for each in weights)
    return PilotWeights(*drawn_weights)


def features(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return random features of `count` nodes and of a job that may wait."""
    random = np.random.default_rng(seed)
    return random.random((count, NODE_FEATURES), np.float32), random.random(JOB_FEATURES, np.float32)


def test_the_shortlist_has_feasible_allowed_nodes_by_score(instance: Instance) -> None:
    """It has at most `SHORTLIST_SIZE` nodes, in the order of Seaway's own score."""
    snapshot = Snapshot(instance.fleet)
    line = int(JobQueue(snapshot, instance.jobs[:1]).rows[0, JOB_DEMAND])
    allowed = np.arange(len(snapshot.nodes)) % 3 != 0
    view = NodeObserver(instance.mix).observe(snapshot, line, allowed)
    assert 1 < len(view.nodes) <= SHORTLIST_SIZE
    assert allowed[view.nodes].all()
    assert (np.diff(view.features[:, 0]) <= 0).all()
    assert view.features.shape == (len(view.nodes), NODE_FEATURES)
    assert view.job.shape == (JOB_FEATURES,)
    assert np.abs(view.features).max() <= 2
    assert np.abs(view.job).max() <= 2


def test_features_do_not_depend_on_the_order_of_nodes(instance: Instance) -> None:
    """The shortlist has the same features for permuted nodes."""
    turned = Fleet(tuple(Cluster(each.name, each.nodes[::-1]) for each in instance.fleet.clusters[::-1]))
    example_views = []
    for fleet in (instance.fleet, turned):
        snapshot = Snapshot(fleet)
        line = int(JobQueue(snapshot, instance.jobs[:1]).rows[0, JOB_DEMAND])
        example_views.append(NodeObserver(instance.mix).observe(snapshot, line))
    first, second = (sorted(map(tuple, np.round(each.features, 5))) for each in example_views)
    assert first == second
    assert np.allclose(example_views[0].job, example_views[1].job)


def test_the_network_in_torch_equals_the_kernel() -> None:
    """Scores of nodes and of waiting are equal for any number of nodes."""
    torch = pytest.importorskip("torch", reason="needs seaway[learn]")
    from seaway.learning.pilot.network import PilotNetwork, weights_of

    weights = any_weights()
    network = PilotNetwork(weights)
    for count in (1, 2, SHORTLIST_SIZE):
        nodes, job = features(count)
        scores = np.empty(count, np.float32)
        wait_score = run_network(weights, nodes, job, count, scores)
        with torch.inference_mode():
            given, wait = network(torch.from_numpy(nodes), torch.from_numpy(job))
        assert np.allclose(given.numpy(), scores, atol=1e-4)
        assert wait.item() - given.max().item() == pytest.approx(wait_score, abs=1e-4)
    assert all(np.array_equal(*pair) for pair in zip(weights, weights_of(network), strict=True))


def test_the_network_is_permutation_equivariant() -> None:
    """Reversing the shortlist reverses the scores, and does not change the score of waiting."""
    weights = any_weights()
    nodes, job = features(9)
    scores, turned = np.empty(9, np.float32), np.empty(9, np.float32)
    wait_score = run_network(weights, nodes, job, 9, scores)
    assert run_network(weights, np.ascontiguousarray(nodes[::-1]), job, 9, turned) == pytest.approx(
        wait_score, abs=1e-4
    )
    assert np.allclose(scores[::-1], turned, atol=1e-4)


def test_bounds_of_the_score_of_waiting() -> None:
    """The smaller half of jobs, and all jobs on a free fleet, never wait."""
    weights = any_weights()
    weights.wait_skip[-1] = 1000.0
    nodes, job = features(3)
    scores = np.empty(3, np.float32)
    for rank, free, waits in ((0.9, 0.3, True), (0.4, 0.3, False), (0.9, 0.8, False)):
        job[4], job[8] = rank, free
        assert (run_network(weights, nodes, job, 3, scores) > 0) == waits


def test_batch_episodes_start_from_the_initial_state(instance: Instance) -> None:
    """Equal weights have equal episodes; without waiting, a policy plays as if waiting were not allowed."""
    weights = any_weights()
    environment = BatchEnvironment(instance)
    assert environment.play(weights, waiting=True) == environment.play(weights, waiting=True)
    few = BatchEnvironment(replace(instance, jobs=instance.jobs[:40]))
    wait_skip = np.zeros_like(weights.wait_skip)
    wait_skip[-1] = -1.0
    stubborn = weights._replace(wait_last=np.zeros_like(weights.wait_last), wait_skip=wait_skip)
    assert few.play(stubborn, waiting=True) == few.play(stubborn, waiting=False)


def test_batch_episodes_equal_the_environment(instance: Instance) -> None:
    """The same decisions on the engine have the same counts of placed and failed jobs."""
    pytest.importorskip("gymnasium", reason="needs seaway[learn]")
    from seaway.learning.environments.node_env import WAIT, NodeEnv

    weights = any_weights()
    weights.wait_skip[-1] = 1000.0
    env = NodeEnv([instance])
    shown, info = env.reset(seed=0)
    while "outcome" not in info:
        count = int(info["legal"][:WAIT].sum())
        scores = np.zeros(SHORTLIST_SIZE, np.float32)
        wait_score = run_network(weights, shown["nodes"], shown["job"], count, scores) if count else 1.0
        waits = not count or (wait_score > 0 and env.episode.may_wait)
        shown, _, _, _, info = env.step(WAIT if waits else int(scores[:count].argmax()))
    counts = info["outcome"].counts
    score = BatchEnvironment(instance).play(weights, waiting=True)
    assert (score.placed, score.failed) == (counts.placed, counts.failed)
    assert score.failed > 0


def test_evolution_minimises_a_quadratic_function() -> None:
    """The weights approach the optimum, and a generation depends on the state and its number only."""
    goal = np.linspace(-1.0, 1.0, 8)

    def play(vector: np.ndarray, instance: int) -> float:
        return -float(((vector - goal) ** 2).sum()) * (instance + 1)

    def begun() -> Evolution:
        return Evolution(
            np.zeros(8), pairs=8, spread=0.3, rate=0.3, average=0.8, seed=1, trainable_mask=np.ones(8, np.bool_)
        )

    whole = begun()
    for _ in range(40):
        whole.step([0, 1], play)
    assert np.abs(whole.mean - goal).max() < 0.3
    first, second = begun(), begun()
    for _ in range(3):
        first.step([0, 1], play)
    second.centre, second.mean, second.generation = first.centre.copy(), first.mean.copy(), first.generation
    first.step([0], play)
    second.step([0], play)
    assert np.array_equal(first.mean, second.mean)


def test_utilities_ignore_equal_fitness() -> None:
    """Objectives on which all candidates are equal have no influence, and scales have none."""
    returns = np.array([[5.0, 1.0], [5.0, 3.0]])
    assert utilities(returns).tolist() == [-1.0, 1.0]
    assert utilities(returns * [1, 100]).tolist() == [-1.0, 1.0]
    assert utilities(returns[:, :1]).tolist() == [0.0, 0.0]


def test_the_vector_of_weights_is_lossless() -> None:
    """Trained weights are converted to a vector and back without loss, and others do not change."""
    weights = any_weights()
    again = with_vector(initial_weights(16, 2, 3)._replace(**weights._asdict()), to_vector(weights))
    assert all(np.allclose(*pair, atol=1e-6) for pair in zip(weights, again, strict=True))


def test_initial_weights_decide_like_the_heuristic(instance: Instance) -> None:
    """The first listed node, the best by Seaway's own policy, has the highest score."""
    snapshot = Snapshot(instance.fleet)
    line = int(JobQueue(snapshot, instance.jobs[:1]).rows[0, JOB_DEMAND])
    view = NodeObserver(instance.mix).observe(snapshot, line)
    scores = np.empty(len(view.nodes), np.float32)
    run_network(initial_weights(16, 2, 0), view.features, view.job, len(view.nodes), scores)
    assert scores.argmax() == 0
