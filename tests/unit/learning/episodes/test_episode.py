from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.network import Link
from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.replay import replay
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.learning.episodes.playing import Choose, begun, first, fullest, halves, play

HEURISTICS = [("greedy", first), ("bestfit", fullest)]


@pytest.mark.parametrize(("policy", "choose"), HEURISTICS)
@pytest.mark.parametrize("kind", ["placement", "network", "any"])
def test_a_heuristic_decides_as_in_the_engine(kind: str, policy: str, choose: Choose) -> None:
    """Placements of an episode equal those of the engine at cluster level, job by job."""
    for instance in drawn(kind, 2, seed=4):
        episode = Episode(instance)
        play(episode, choose)
        snapshot = Snapshot(instance.fleet)
        plan = decide(snapshot, JobQueue(snapshot, instance.jobs), make_policy(policy, PolicyOptions(level="cluster")))
        assert list(episode.plan().placements()) == list(plan.placements())


@pytest.mark.parametrize(("policy", "choose"), HEURISTICS)
def test_the_outcome_equals_a_replay(policy: str, choose: Choose) -> None:
    """Counts, shares, use and curve equal those of a replay."""
    (instance,) = drawn("placement", 1, seed=9)
    episode = Episode(instance)
    play(episode, choose)
    own = episode.outcome(policy)
    other = replay(instance.fleet, instance.jobs, lambda: make_policy(policy, PolicyOptions(level="cluster")))
    assert (own.policy, own.counts, own.shares, own.use) == (policy, other.counts, other.shares, other.use)
    np.testing.assert_array_equal(own.curve.arrived_pct, other.curve.arrived_pct)
    np.testing.assert_array_equal(own.curve.allocated_pct, other.curve.allocated_pct)
    np.testing.assert_array_equal(own.used, other.used)


def test_a_waiting_job_is_offered_again_after_the_last_arrival() -> None:
    """Waiting jobs keep their order, and waiting at the second offer refuses them permanently."""
    episode = begun(halves(3))
    names, may_wait = [], []
    while not episode.done:
        names.append(episode.job.name)
        may_wait.append(episode.may_wait)
        episode.wait()
    assert names == [*("job-0", "job-1", "job-2"), *("job-0", "job-1", "job-2")]
    assert may_wait == [True] * 3 + [False] * 3
    assert not episode.may_wait


def test_the_number_of_offers() -> None:
    """With one offer, waiting refuses a job at once; with three, it is offered twice more."""
    assert play(begun(halves(5), offers=1)) == 5
    assert play(begun(halves(5), offers=3)) == 7


def test_a_job_that_waited_can_still_be_placed() -> None:
    """A job that fitted and waited can be placed at its second offer, and counts as placed."""
    episode = begun(halves(1))
    assert not episode.wait()
    assert episode.place_in_cluster(1)
    assert episode.outcome("").counts.placed == 1
    assert episode.outcome("").shares.gpu_allocated_pct == pytest.approx(25)


def test_an_infeasible_choice_loses_the_job() -> None:
    """It counts as failed if another cluster was feasible, and is not offered again."""
    episode = begun(halves(3))
    assert episode.place_in_cluster(0)
    assert episode.place_in_cluster(0)
    assert not episode.place_in_cluster(0)
    assert episode.done
    counts = episode.outcome("").counts
    assert (counts.placed, counts.refused, counts.failed) == (2, 0, 1)


def test_an_infeasible_job_counts_as_refused() -> None:
    """Waiting is right for it, and other choices have the same result."""
    for lose in (False, True):
        episode = begun(halves(5), offers=1)
        for c in (0, 0, 1, 1):
            episode.place_in_cluster(c)
        assert not episode.fits
        if lose:
            episode.lose()
        else:
            assert episode.wait()
        counts = episode.outcome("").counts
        assert (counts.placed, counts.refused, counts.failed) == (4, 1, 0)


def test_a_feasible_job_that_waited_counts_as_failed() -> None:
    """A failure does not become a refusal by waiting until the job no longer fits."""
    episode = begun(halves(5))
    assert not episode.wait()
    for c in (0, 0, 1, 1):
        episode.place_in_cluster(c)
    assert episode.wait()
    counts = episode.outcome("").counts
    assert (counts.placed, counts.refused, counts.failed) == (4, 0, 1)


def test_feasible_clusters_and_nodes() -> None:
    """A cluster is feasible if one of its nodes is, and its first feasible node is returned."""
    parts = fleet(cluster(node(), node(gpu()), node(gpu())), cluster(node()))
    episode = begun(Instance("parts", parts, (job(gpus=1),)))
    assert episode.legal_clusters().tolist() == [True, False]
    assert episode.legal_nodes().tolist() == [False, True, True, False]
    assert episode.first_nodes().tolist() == [1, -1]
    assert episode.place_on_node(2)
    assert not episode.legal_clusters().any()
    assert not episode.legal_nodes().any()


def test_an_infeasible_node_loses_the_job() -> None:
    """The result is that of an infeasible cluster."""
    episode = begun(Instance("two", fleet(node(), node(gpu())), (job(gpus=1),)))
    assert not episode.place_on_node(0)
    assert episode.outcome("").counts.failed == 1


def test_the_device_with_the_lowest_key_is_used() -> None:
    """Without keys, the first device that fits is used."""
    instance = Instance("one", fleet(node(gpu(), gpu(), gpu())), (job(gpus=2), job("next", gpus=1)))
    keyed, plain = begun(instance), begun(instance)
    assert keyed.place_on_node(0, [2, 3, 1])
    assert plain.place_on_node(0)
    assert [piece.uuid[-1] for piece in next(keyed.plan().placements()).slices] == ["2", "0"]
    assert [piece.uuid[-1] for piece in next(plain.plan().placements()).slices] == ["0", "1"]


def test_each_job_reserves_bandwidth() -> None:
    """A second job does not fit on a link with bandwidth for one."""
    far = fleet(cluster(node(gpu()), gateway="gw"), links=[Link("user", "gw", 1_000, bandwidth_mbps=100)])
    jobs = tuple(job(f"job-{at}", gateway="user", min_bandwidth_mbps=60) for at in range(2))
    episode = begun(Instance("far", far, jobs))
    assert episode.place_in_cluster(0)
    assert not episode.fits


def test_a_reset_is_exact_and_invalidates_caches() -> None:
    """Apart from its log the fleet is equal to the bit, and policies with caches decide as on a new fleet."""
    (instance,) = drawn("trace", 1, seed=2)
    episode, policy = Episode(instance), make_policy("fgd", PolicyOptions(mix=instance.mix))
    before = [table.copy() for table in episode.snapshot.arrays]
    decide(episode.snapshot, episode.queue, policy)
    episode.reset()
    for name, table, old in zip(episode.snapshot.arrays._fields, episode.snapshot.arrays, before, strict=True):
        if name not in ("head", "log"):
            np.testing.assert_array_equal(table, old, err_msg=name)
    again = decide(episode.snapshot, episode.queue, policy)
    fresh = Snapshot(instance.fleet)
    plan = decide(fresh, JobQueue(fresh, instance.jobs), make_policy("fgd", PolicyOptions(mix=instance.mix)))
    np.testing.assert_array_equal(again.decisions, plan.decisions)


def test_episodes_after_a_reset_are_equal() -> None:
    """Equal choices have equal outcomes."""
    (instance,) = drawn("network", 1, seed=2)
    episode = Episode(instance)
    play(episode, fullest)
    once = episode.outcome("")
    episode.reset()
    assert episode.outcome("").counts.placed == 0
    assert not episode.plan().placed.any()
    play(episode, fullest)
    again = episode.outcome("")
    assert (once.counts, once.use, once.shares) == (again.counts, again.use, again.shares)


def test_the_cycle_of_the_current_decision() -> None:
    """It has the feasible nodes, and the random choices of the engine."""
    (instance,) = drawn("placement", 1, seed=2)
    episode, policy = Episode(instance), make_policy("random", PolicyOptions(seed=5))
    assert isinstance(policy, Profile)
    (score, _), *_ = policy.scores()
    for _ in range(40):
        cycle = episode.cycle(seed=5)
        scores = np.where(cycle.feasible, score.score(cycle), -(2**62))
        episode.place_on_node(int(scores.argmax()))
    snapshot = Snapshot(instance.fleet)
    plan = decide(snapshot, JobQueue(snapshot, instance.jobs[:40]), policy)
    assert [each.node for each in episode.plan().placements()] == [each.node for each in plan.placements()]


def test_a_completed_episode_accepts_no_decision() -> None:
    """A further decision is an error."""
    episode = begun(halves(1))
    episode.place_in_cluster(0)
    assert episode.done
    assert (episode.line, episode.number) == (-1, -1)
    with pytest.raises(InvariantError, match="ended"):
        episode.wait()
    with pytest.raises(InvariantError, match="ended"):
        episode.place_in_cluster(0)
    with pytest.raises(InvariantError, match="ended"):
        _ = episode.job


@pytest.mark.parametrize(
    "wrong",
    [
        replace(halves(1), jobs=()),
        replace(halves(1), fleet=fleet()),
        replace(halves(1), jobs=(job(replicas=2),)),
    ],
)
def test_unsupported_instances_are_rejected(wrong: Instance) -> None:
    """An episode needs a cluster, and jobs with one replica each; the error names the instance."""
    with pytest.raises(RejectedError, match="episode") as failure:
        Episode(wrong)
    assert failure.value.where == "halves"


def test_zero_offers_are_rejected() -> None:
    """The minimum is one offer."""
    with pytest.raises(RejectedError, match="once"):
        EpisodeOptions(offers=0)
