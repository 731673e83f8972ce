"""Common parts of learners at the level of clusters: environments and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.environments.cluster_env import ClusterEnv
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.clusters import VERSION, observation_size
from seaway.learning.policies.file import Level
from seaway.learning.settings import Run
from seaway.learning.training.learner import TrainedActor, check_finite
from seaway.learning.training.listener import EpisodeResult
from seaway.scheduling.arrays import Float32
from seaway.simulation.outcome import Outcome

Act = Callable[[Float32], float]
"""Policy as a function from an observation to an action, -1 to 1."""

MAX_TRIALS = 8


class ClusterEnvs:
    """Environments of instances, in rotation for training and all for evaluation.

    Parameters
    ----------
    run
        Settings of episodes.
    instances
        Instances with the same number of clusters.

    Attributes
    ----------
    clusters
        Number of clusters.
    network
        Whether observations contain links: if an instance has any.
    size
        Length of an observation.

    Raises
    ------
    RejectedError
        When numbers of clusters differ.
    """

    def __init__(self, run: Run, instances: Sequence[Instance]) -> None:
        counts = sorted({len(instance.fleet.clusters) for instance in instances})
        if len(counts) > 1:
            raise RejectedError(
                f"instances have {' and '.join(map(str, counts))} clusters, and {run.algo} learns for one number of "
                "them: train on those of one number at a time",
                where="--instances",
            )
        self._run = run
        self._instances = tuple(instances)
        self.clusters = counts[0]
        self.network = any(instance.fleet.links for instance in instances)
        self.size = observation_size(self.clusters, network=self.network)
        self._training_envs: dict[int, ClusterEnv] = {}
        self._evaluation_envs: dict[int, ClusterEnv] = {}

    def begin(self, episode: int) -> tuple[ClusterEnv, Float32]:
        """Begin an episode by number, from 0; the previous one ends."""
        env = self._env(self._training_envs, episode % len(self._instances))
        return env, env.reset()[0]

    def each(self) -> Sequence[ClusterEnv]:
        """Return a separate environment for each instance, not yet reset."""
        return [self._env(self._evaluation_envs, at) for at in range(len(self._instances))]

    def evaluate(self, act: Act) -> list[EpisodeResult]:
        """Play each instance once."""
        return [_play(env, act) for env in self.each()]

    def trained_actor(self, actor: Any, act: Act) -> TrainedActor:  # noqa: ANN401  # a module of torch
        """Return an actor with examples of its observations on the first instance."""
        seen: list[Float32] = []

        def record(observation: Float32) -> float:
            seen.append(observation)
            return act(observation)

        _play(self.each()[0], record)
        picked = np.linspace(0, len(seen) - 1, min(MAX_TRIALS, len(seen)), dtype=int)
        trials = [{"observation": seen[at][None]} for at in picked]
        fitting = self._run.settings.fitting
        return TrainedActor(actor, Level.CLUSTER, VERSION, trials, self.clusters, self.network, fitting)

    def _env(self, made: dict[int, ClusterEnv], at: int) -> ClusterEnv:
        if at not in made:
            made[at] = ClusterEnv(
                [self._instances[at]],
                network=self.network,
                fitting=self._run.settings.fitting,
                options=self._run.episode,
            )
        return made[at]


def episode_result(
    name: str, reward: float, outcome: Outcome, seconds: float, figures: Mapping[str, float]
) -> EpisodeResult:
    """Return the result of an episode."""
    counts, use = outcome.counts, outcome.use
    return EpisodeResult(
        instance=name,
        reward=reward,
        jobs=counts.jobs,
        placed=counts.placed,
        refused=counts.refused,
        failed=counts.failed,
        fragmentation=use.fragmentation,
        gpu_load_variance=use.gpu_load_variance,
        seconds=seconds,
        figures=figures,
    )


def _play(env: ClusterEnv, act: Act) -> EpisodeResult:
    observation, _ = env.reset()
    reward, terminated = 0.0, False
    info: dict[str, Any] = {}
    while not terminated:
        action = act(observation)
        check_finite(action)
        observation, step_reward, terminated, _, info = env.step(np.array([action], np.float32))
        reward += step_reward
    return episode_result(env.episode.instance.name, reward, info["outcome"], 0.0, {})
