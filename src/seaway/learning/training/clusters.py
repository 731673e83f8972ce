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
from seaway.learning.training.learner import Decider, check_finite
from seaway.learning.training.listener import Play
from seaway.scheduling.arrays import Float32
from seaway.simulation.outcome import Outcome

Choose = Callable[[Float32], float]
"""Function from an observation to an action from -1 to 1."""

MAX_TRIALS = 8


class Clusters:
    """Episodes on some instances in rotation.

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
        self._learning: dict[int, ClusterEnv] = {}
        self._measuring: dict[int, ClusterEnv] = {}

    def begin(self, episode: int) -> tuple[ClusterEnv, Float32]:
        """Begin an episode by number, from 0; the previous one ends."""
        env = self._env(self._learning, episode % len(self._instances))
        return env, env.reset()[0]

    def each(self) -> Sequence[ClusterEnv]:
        """Return a separate environment for each instance, not yet reset."""
        return [self._env(self._measuring, at) for at in range(len(self._instances))]

    def evaluate(self, choose: Choose) -> list[Play]:
        """Play each instance once."""
        return [_play(env, choose) for env in self.each()]

    def decider(self, actor: Any, choose: Choose) -> Decider:  # noqa: ANN401  # a module of torch
        """Return an actor with examples of its observations on the first instance."""
        seen: list[Float32] = []

        def look(observation: Float32) -> float:
            seen.append(observation)
            return choose(observation)

        _play(self.each()[0], look)
        picked = np.linspace(0, len(seen) - 1, min(MAX_TRIALS, len(seen)), dtype=int)
        trials = [{"observation": seen[at][None]} for at in picked]
        fitting = self._run.settings.fitting
        return Decider(actor, Level.CLUSTER, VERSION, trials, self.clusters, self.network, fitting)

    def _env(self, made: dict[int, ClusterEnv], at: int) -> ClusterEnv:
        if at not in made:
            made[at] = ClusterEnv(
                [self._instances[at]],
                network=self.network,
                fitting=self._run.settings.fitting,
                options=self._run.episode,
            )
        return made[at]


def play_of(name: str, reward: float, outcome: Outcome, seconds: float, figures: Mapping[str, float]) -> Play:
    """Return the record of an episode."""
    counts, use = outcome.counts, outcome.use
    return Play(
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


def _play(env: ClusterEnv, choose: Choose) -> Play:
    observation, _ = env.reset()
    reward, ended = 0.0, False
    info: dict[str, Any] = {}
    while not ended:
        action = choose(observation)
        check_finite(action)
        observation, earned, ended, _, info = env.step(np.array([action], np.float32))
        reward += earned
    return play_of(env.episode.instance.name, reward, info["outcome"], 0.0, {})
