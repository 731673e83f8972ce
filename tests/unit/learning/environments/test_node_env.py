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
def test_the_environment_passes_the_checker_of_gymnasium() -> None:
    """It warns about unbounded features only, which are about -2 to 2."""
    check_env(NodeEnv(kind_of("any")), skip_render_check=True)


def pair() -> Instance:
    """Return two unlike nodes of one device each, and three jobs that each take one."""
    jobs = tuple(job(f"job-{at}", gpus=1, cpu_milli=100) for at in range(3))
    two = fleet(cluster(node(gpu(), cpu_milli=4_000)), cluster(node(gpu(), cpu_milli=64_000)))
    return Instance("pair", two, jobs, jobs)


def test_the_shortlist_and_the_mask() -> None:
    """The shortlist has all feasible nodes and no others, and waiting is legal until the end."""
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


def test_the_return_is_the_number_of_placed_jobs() -> None:
    """An illegal action loses the job, with a reward of -1."""
    env = NodeEnv([pair()])
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (1, 7, 0)] == [1, -1, 1]
    assert env.episode.outcome("").counts.failed == 1


def test_rewards_are_configurable() -> None:
    """Rewards can depend on GPUs, on wrong waits and on waiting time."""
    runs = Instance("pair", pair().fleet, tuple(job(f"job-{at}", gpus=1, expected_duration_s=3_600) for at in range(3)))
    rewards = NodeRewards(job=0, card=2, wait_wrong=-5, waited_hour=-3)
    env = NodeEnv([runs], rewards=rewards, options=EpisodeOptions(departures=True))
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (0, WAIT, 0)] == [2, -5, 2]
    assert env.step(0)[1] == 2 - 3


def test_the_shortlist_is_sorted_by_the_policy_of_seaway() -> None:
    """Nodes are sorted by the loss of value of that policy."""
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


def test_devices_are_chosen_by_the_policy_of_seaway() -> None:
    """Placements on a single node equal those of the engine."""
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


def test_the_same_seed_generates_the_same_episodes() -> None:
    """Fleets can have any size, and features are equal."""

    def shown(env: NodeEnv) -> list[list[float]]:
        return [env.reset(seed=seed)[0]["nodes"].tolist() for seed in (5, None)]

    assert shown(NodeEnv(kind_of("any"))) == shown(NodeEnv(kind_of("any")))


@pytest.mark.parametrize("action", [-1, WAIT + 1, 99])
def test_an_action_outside_the_space_is_rejected(action: int) -> None:
    """The current job does not change."""
    env = NodeEnv([pair()])
    env.reset(seed=0)
    with pytest.raises(RejectedError, match=f"action {action} not found: actions are 0 to {WAIT}"):
        env.step(action)
    assert env.step(0)[1] == 1
