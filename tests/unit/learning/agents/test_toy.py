"""A fleet whose best packing is known is learned in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs seaway[learn]")
pytest.importorskip("gymnasium", reason="needs seaway[learn]")

from seaway.learning.agents.eade import EadeDdpg  # noqa: E402  # where torch is
from seaway.learning.agents.noise import noise_at  # noqa: E402
from seaway.learning.agents.settings import DdpgSettings  # noqa: E402
from seaway.learning.environments.cluster_env import ClusterEnv  # noqa: E402
from seaway.learning.instances.folder import read_instances  # noqa: E402

NODES = """cluster,node,cpu_milli,memory_mib,gpu,model,gpu_memory_mib
a-small,a-small-0,4000,16384,1,T4,8192
b-large,b-large-0,16000,65536,1,T4,16384
"""
JOBS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib
quarter-1,1000,4096,1,250,2048
quarter-2,1000,4096,1,250,2048
quarter-3,1000,4096,1,250,2048
quarter-4,1000,4096,1,250,2048
whole,8000,32768,1,1000,16384
"""

EPISODES = 160
SETTINGS = DdpgSettings(
    attention=32,
    hidden=(32, 16),
    batch=64,
    actor_rate=1e-3,
    critic_rate=1e-2,
    discount=0.5,
    soft_update=0.05,
    noise=0.6,
    noise_end=0.3,
    warm_up=100,
)


@pytest.fixture
def env(tmp_path: Path) -> ClusterEnv:
    """Make an environment where all five jobs fit, if none of the first four takes the card that the last one needs."""
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "jobs.csv").write_text(JOBS, encoding="utf-8")
    return ClusterEnv(read_instances([tmp_path]))


def play(env: ClusterEnv, agent: EadeDdpg, noise: float) -> int:
    """Play an episode, and learn from it if there is noise; return how many jobs were placed."""
    observation, ended = env.reset()[0], False
    while not ended:
        action = agent.act(observation, noise)
        following, reward, ended, _, info = env.step(np.array([action], np.float32))
        if noise:
            agent.remember(observation, action, reward, following, ended)
            agent.learn()
        observation = following
    return int(info["outcome"].counts.placed)


def teach(env: ClusterEnv, agent: EadeDdpg) -> None:
    """Show an agent what the expert does."""
    observation, ended = env.reset()[0], False
    while not ended:
        action = np.asarray(env.expert())
        following, reward, ended, _, _ = env.step(action)
        agent.teach(observation, float(action[0]), reward, following, ended)
        observation = following


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_learns_the_best_packing(env: ClusterEnv, seed: int) -> None:
    """Jobs that fit the small cluster go there, so that the large one is free for the job that fits nowhere else."""
    agent = EadeDdpg(SETTINGS, env.observation_space.shape[0], seed)
    teach(env, agent)
    before = play(env, agent, 0.0)

    for episode in range(EPISODES):
        play(env, agent, noise_at(SETTINGS, episode, EPISODES))

    assert before < 5
    assert play(env, agent, 0.0) == 5
