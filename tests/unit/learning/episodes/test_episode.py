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
def test_a_heuristic_decides_as_it_does_in_the_engine(kind: str, policy: str, choose: Choose) -> None:
    """Job by job, an episode gives the nodes and devices that the engine gives at the level of clusters."""
    for instance in drawn(kind, 2, seed=4):
        episode = Episode(instance)
        play(episode, choose)
        snapshot = Snapshot(instance.fleet)
        plan = decide(snapshot, JobQueue(snapshot, instance.jobs), make_policy(policy, PolicyOptions(level="cluster")))
        assert list(episode.plan().placements()) == list(plan.placements())


@pytest.mark.parametrize(("policy", "choose"), HEURISTICS)
def test_the_outcome_is_that_of_a_replay(policy: str, choose: Choose) -> None:
    """Counts, shares, use and the curve are worked out as a replay works them out."""
    (instance,) = drawn("placement", 1, seed=9)
    episode = Episode(instance)
    play(episode, choose)
    own = episode.outcome(policy)
    other = replay(instance.fleet, instance.jobs, lambda: make_policy(policy, PolicyOptions(level="cluster")))
    assert (own.policy, own.counts, own.shares, own.use) == (policy, other.counts, other.shares, other.use)
    np.testing.assert_array_equal(own.curve.arrived_pct, other.curve.arrived_pct)
    np.testing.assert_array_equal(own.curve.allocated_pct, other.curve.allocated_pct)
    np.testing.assert_array_equal(own.used, other.used)


def test_a_job_that_waits_is_offered_once_more_after_the_last_arrival() -> None:
    """It keeps its turn among those that wait, and at its second offer waiting refuses it permanently."""
    episode = begun(halves(3))
    names, may_wait = [], []
    while not episode.done:
        names.append(episode.job.name)
        may_wait.append(episode.may_wait)
        episode.wait()
    assert names == [*("job-0", "job-1", "job-2"), *("job-0", "job-1", "job-2")]
    assert may_wait == [True] * 3 + [False] * 3
    assert not episode.may_wait


def test_jobs_are_offered_as_often_as_the_options_say() -> None:
    """With one offer a job that waits is refused at once; with three it returns twice."""
    assert play(begun(halves(5), offers=1)) == 5
    assert play(begun(halves(5), offers=3)) == 7


def test_a_job_that_waited_can_still_be_placed() -> None:
    """Anything that was put back although it fitted is placed at its second offer, and counts as placed."""
    episode = begun(halves(1))
    assert not episode.wait()
    assert episode.place_in_cluster(1)
    assert episode.outcome("").counts.placed == 1
    assert episode.outcome("").shares.gpu_allocated_pct == pytest.approx(25)


def test_an_impossible_choice_loses_the_job() -> None:
    """It failed, since the other cluster could have held it; and it is not offered again."""
    episode = begun(halves(3))
    assert episode.place_in_cluster(0)
    assert episode.place_in_cluster(0)
    assert not episode.place_in_cluster(0)
    assert episode.done
    counts = episode.outcome("").counts
    assert (counts.placed, counts.refused, counts.failed) == (2, 0, 1)


def test_a_job_is_refused_where_nothing_could_have_held_it() -> None:
    """Waiting is right then, and any other choice is as good."""
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


def test_a_job_that_fitted_when_it_waited_failed_if_it_never_runs() -> None:
    """No one turns a failure into a correct refusal by waiting until nothing fits."""
    episode = begun(halves(5))
    assert not episode.wait()
    for c in (0, 0, 1, 1):
        episode.place_in_cluster(c)
    assert episode.wait()
    counts = episode.outcome("").counts
    assert (counts.placed, counts.refused, counts.failed) == (4, 0, 1)


def test_where_a_job_fits_is_reported_by_cluster_and_by_node() -> None:
    """A cluster fits where one of its nodes does; its first that does is reported."""
    parts = fleet(cluster(node(), node(gpu()), node(gpu())), cluster(node()))
    episode = begun(Instance("parts", parts, (job(gpus=1),)))
    assert episode.legal_clusters().tolist() == [True, False]
    assert episode.legal_nodes().tolist() == [False, True, True, False]
    assert episode.first_nodes().tolist() == [1, -1]
    assert episode.place_on_node(2)
    assert not episode.legal_clusters().any()
    assert not episode.legal_nodes().any()


def test_a_node_that_does_not_fit_loses_the_job() -> None:
    """As a cluster does."""
    episode = begun(Instance("two", fleet(node(), node(gpu())), (job(gpus=1),)))
    assert not episode.place_on_node(0)
    assert episode.outcome("").counts.failed == 1


def test_the_device_with_the_lowest_key_goes_first() -> None:
    """Without keys it is the first that fits."""
    instance = Instance("one", fleet(node(gpu(), gpu(), gpu())), (job(gpus=2), job("next", gpus=1)))
    keyed, plain = begun(instance), begun(instance)
    assert keyed.place_on_node(0, [2, 3, 1])
    assert plain.place_on_node(0)
    assert [piece.uuid[-1] for piece in next(keyed.plan().placements()).slices] == ["2", "0"]
    assert [piece.uuid[-1] for piece in next(plain.plan().placements()).slices] == ["0", "1"]


def test_bandwidth_is_taken_for_each_job() -> None:
    """A link with room for one of two jobs takes one: the second fits nowhere."""
    far = fleet(cluster(node(gpu()), gateway="gw"), links=[Link("user", "gw", 1_000, bandwidth_mbps=100)])
    jobs = tuple(job(f"job-{at}", gateway="user", min_bandwidth_mbps=60) for at in range(2))
    episode = begun(Instance("far", far, jobs))
    assert episode.place_in_cluster(0)
    assert not episode.fits


def test_a_reset_is_exact_and_what_was_remembered_is_forgotten() -> None:
    """The fleet is as at first, bit for bit but for the log, and policies that keep scores decide as on a new one."""
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


def test_plays_after_a_reset_are_alike() -> None:
    """Choices alike, outcomes alike."""
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


def test_plugins_are_shown_the_decision_at_hand() -> None:
    """The cycle of a decision has the nodes that fit, and random choices of the engine come out alike."""
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


def test_an_episode_that_is_over_takes_no_decision() -> None:
    """Anyone who goes on by mistake is reported."""
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
def test_what_is_no_episode_is_rejected(wrong: Instance) -> None:
    """It needs a cluster, and jobs of one replica each; the instance is named."""
    with pytest.raises(RejectedError, match="episode") as failure:
        Episode(wrong)
    assert failure.value.where == "halves"


def test_jobs_that_are_never_offered_are_rejected() -> None:
    """An offer is the least."""
    with pytest.raises(RejectedError, match="once"):
        EpisodeOptions(offers=0)
