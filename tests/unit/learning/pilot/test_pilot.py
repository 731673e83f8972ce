"""The pilot's features, its network and how it learns."""

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
    """Return a drawn instance with 64 nodes."""
    return drawn("placement", 1, seed=5)[0]


def any_weights(seed: int = 3) -> PilotWeights:
    """Return a network in which every weight counts."""
    random = np.random.default_rng(seed)
    weights = initial_weights(16, 2, seed)
    drawn_weights = (random.normal(0, 0.3, each.shape).astype(np.float32) for each in weights)
    return PilotWeights(*drawn_weights)


def features(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return made-up features of `count` nodes and of a job that may wait."""
    random = np.random.default_rng(seed)
    return random.random((count, NODE_FEATURES), np.float32), random.random(JOB_FEATURES, np.float32)


def test_only_what_fits_and_is_allowed_is_listed_best_first(instance: Instance) -> None:
    """The shortlist has at most `MOST` nodes, all of them allowed and fitting, in the order of Seaway's own score."""
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


def test_figures_do_not_hang_on_the_order_of_nodes(instance: Instance) -> None:
    """With the nodes in another order the shortlist has the same features."""
    turned = Fleet(tuple(Cluster(each.name, each.nodes[::-1]) for each in instance.fleet.clusters[::-1]))
    example_views = []
    for fleet in (instance.fleet, turned):
        snapshot = Snapshot(fleet)
        line = int(JobQueue(snapshot, instance.jobs[:1]).rows[0, JOB_DEMAND])
        example_views.append(NodeObserver(instance.mix).observe(snapshot, line))
    first, second = (sorted(map(tuple, np.round(each.features, 5))) for each in example_views)
    assert first == second
    assert np.allclose(example_views[0].job, example_views[1].job)


def test_network_in_torch_answers_as_machine_code_does() -> None:
    """Scores and the wait_score to wait are the same in both, for any number of nodes."""
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


def test_scores_follow_nodes_into_another_order() -> None:
    """Turning the shortlist round turns the scores round, and the wait_score to wait stays."""
    weights = any_weights()
    nodes, job = features(9)
    scores, turned = np.empty(9, np.float32), np.empty(9, np.float32)
    wait_score = run_network(weights, nodes, job, 9, scores)
    assert run_network(weights, np.ascontiguousarray(nodes[::-1]), job, 9, turned) == pytest.approx(
        wait_score, abs=1e-4
    )
    assert np.allclose(scores[::-1], turned, atol=1e-4)


def test_small_jobs_and_empty_fleets_never_wait() -> None:
    """However much the network options to, the smaller half of jobs, and any job on a free fleet, is placed."""
    weights = any_weights()
    weights.wait_skip[-1] = 1000.0
    nodes, job = features(3)
    scores = np.empty(3, np.float32)
    for rank, free, waits in ((0.9, 0.3, True), (0.4, 0.3, False), (0.9, 0.8, False)):
        job[4], job[8] = rank, free
        assert (run_network(weights, nodes, job, 3, scores) > 0) == waits


def test_board_begins_again_each_time_and_waiting_is_offered_once_more(instance: Instance) -> None:
    """Equal weights play equal episodes; without waiting, a policy plays as if waiting were not allowed."""
    weights = any_weights()
    environment = BatchEnvironment(instance)
    assert environment.play(weights, waiting=True) == environment.play(weights, waiting=True)
    few = BatchEnvironment(replace(instance, jobs=instance.jobs[:40]))
    wait_skip = np.zeros_like(weights.wait_skip)
    wait_skip[-1] = -1.0
    stubborn = weights._replace(wait_last=np.zeros_like(weights.wait_last), wait_skip=wait_skip)
    assert few.play(stubborn, waiting=True) == few.play(stubborn, waiting=False)


def test_a_board_counts_as_the_environment_does(instance: Instance) -> None:
    """The same decisions on the engine place as many; a job that fitted when it waited, and never ran, failed."""
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


def test_evolution_finds_the_best_of_a_bowl_and_goes_on_the_same() -> None:
    """On instances whose best is one point the weights come near it; a generation hangs on its number alone."""
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


def test_an_instance_on_which_all_do_alike_says_nothing() -> None:
    """Utilities hang only on instances that tell candidates apart, whatever their scale."""
    returns = np.array([[5.0, 1.0], [5.0, 3.0]])
    assert utilities(returns).tolist() == [-1.0, 1.0]
    assert utilities(returns * [1, 100]).tolist() == [-1.0, 1.0]
    assert utilities(returns[:, :1]).tolist() == [0.0, 0.0]


def test_vector_of_changing_weights_returns() -> None:
    """Anything that evolution changes is taken out of the network and put back without loss; the rest stays."""
    weights = any_weights()
    again = with_vector(initial_weights(16, 2, 3)._replace(**weights._asdict()), to_vector(weights))
    assert all(np.allclose(*pair, atol=1e-6) for pair in zip(weights, again, strict=True))


def test_untrained_pilot_decides_like_the_heuristic(instance: Instance) -> None:
    """Before it learned, the first node listed wins: the one that Seaway's own policy thinks best."""
    snapshot = Snapshot(instance.fleet)
    line = int(JobQueue(snapshot, instance.jobs[:1]).rows[0, JOB_DEMAND])
    view = NodeObserver(instance.mix).observe(snapshot, line)
    scores = np.empty(len(view.nodes), np.float32)
    run_network(initial_weights(16, 2, 0), view.features, view.job, len(view.nodes), scores)
    assert scores.argmax() == 0
