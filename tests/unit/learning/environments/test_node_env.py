from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.episodes.episode import EpisodeOptions
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn, kind_of
from seaway.scheduling.columns import PLAN_NODE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node

pytest.importorskip("gymnasium", reason="needs seaway[learn]")

from gymnasium.utils.env_checker import check_env

from seaway.learning.environments.node_env import WAIT, NodeEnv, NodeRewards


@pytest.mark.filterwarnings("ignore:.*A Box observation space (min|max)imum value is:UserWarning")
def test_gymnasium_finds_nothing_wrong() -> None:
    """But that figures have no bounds: they are about -2 to 2, and nothing keeps them there."""
    check_env(NodeEnv(kind_of("any")), skip_render_check=True)


def pair() -> Instance:
    """Return two unlike nodes of one device each, and three jobs that each take one."""
    jobs = tuple(job(f"job-{at}", gpus=1, cpu_milli=100) for at in range(3))
    two = fleet(cluster(node(gpu(), cpu_milli=4_000)), cluster(node(gpu(), cpu_milli=64_000)))
    return Instance("pair", two, jobs, jobs)


def test_what_is_listed_fits_and_what_is_not_is_masked() -> None:
    """The list has the nodes that fit and no others; to wait is legal until the end."""
    env = NodeEnv([pair()])
    shown, info = env.reset(seed=0)
    for listed in (2, 1, 0):
        assert info["legal"].tolist() == [True] * listed + [False] * (WAIT - listed) + [True]
        np.testing.assert_array_equal(shown["legal"], info["legal"])
        assert not shown["nodes"][listed:].any()
        shown, _, ended, _, info = env.step(0 if listed else WAIT)
    assert not ended
    shown, _, ended, _, info = env.step(WAIT)
    assert ended
    assert not shown["legal"].any()
    assert not shown["nodes"].any()
    assert info["outcome"].counts.placed == 2


def test_a_whole_episode_earns_the_jobs_that_it_places() -> None:
    """One each; an action that stands for no node loses the job and one."""
    env = NodeEnv([pair()])
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (1, 7, 0)] == [1, -1, 1]
    assert env.episode.outcome("").counts.failed == 1


def test_rewards_are_as_they_are_set() -> None:
    """For cards taken, for waiting though something fits, and for hours waited."""
    runs = Instance("pair", pair().fleet, tuple(job(f"job-{at}", gpus=1, expected_duration_s=3_600) for at in range(3)))
    rewards = NodeRewards(job=0, card=2, wait_wrong=-5, waited_hour=-3)
    env = NodeEnv([runs], rewards=rewards, options=EpisodeOptions(departures=True))
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (0, WAIT, 0)] == [2, -5, 2]
    assert env.step(0)[1] == 2 - 3


def test_nothing_is_better_than_the_first_of_the_list_to_the_policy_of_seaway() -> None:
    """Nodes are sorted by the value that they would lose, as in that policy."""
    (instance,) = drawn("placement", 1, seed=4)
    env, seaway = NodeEnv([instance]), Seaway(instance.mix)
    env.reset(seed=0)
    for _ in range(60):
        episode = env.episode
        cycle = episode.cycle()
        scores = np.where(cycle.feasible, seaway.score(cycle), -(2**62))
        number = episode.number
        env.step(0)
        assert scores[episode.plan().decisions[number, PLAN_NODE]] == scores.max()


def test_devices_are_those_that_the_policy_of_seaway_takes() -> None:
    """On a single node it places as in the engine."""
    (drawn_instance,) = drawn("placement", 1, seed=4)
    one = replace(drawn_instance, fleet=fleet(node(*(gpu(memory_mib=16_384) for _ in range(8)))))
    env = NodeEnv([one], options=EpisodeOptions(offers=1))
    _, info = env.reset(seed=0)
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(0 if info["legal"][0] else WAIT)
    snapshot = Snapshot(one.fleet)
    plan = decide(snapshot, JobQueue(snapshot, one.jobs), make_policy("seaway", PolicyOptions(mix=one.mix)))
    assert list(env.episode.plan().placements()) == list(plan.placements())


def test_the_same_seed_draws_the_same_episodes() -> None:
    """On fleets of any size, the figures included."""

    def shown(env: NodeEnv) -> list[list[float]]:
        return [env.reset(seed=seed)[0]["nodes"].tolist() for seed in (5, None)]

    assert shown(NodeEnv(kind_of("any"))) == shown(NodeEnv(kind_of("any")))


@pytest.mark.parametrize("action", [-1, WAIT + 1, 99])
def test_an_action_outside_the_space_is_rejected(action: int) -> None:
    """It stands for nothing, and the job is still to be decided."""
    env = NodeEnv([pair()])
    env.reset(seed=0)
    with pytest.raises(RejectedError, match=f"action {action} not found: actions are 0 to {WAIT}"):
        env.step(action)
    assert env.step(0)[1] == 1
