"""The environment as Stable-Baselines3 is given it: one that goes through the instances and can be gone back to."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np

from seaway.learning.environments.cluster_env import ClusterEnv
from seaway.learning.training.clusters import Clusters, play_of
from seaway.learning.training.learner import State, check_finite
from seaway.learning.training.listener import Play
from seaway.scheduling.arrays import Float32


class BaselineEnv(gymnasium.Env):
    """A `ClusterEnv` of one instance after the other, which notes how episodes went.

    Parameters
    ----------
    clusters
        What begins episodes.

    Attributes
    ----------
    episode
        Number of the episode that runs, from 0.
    ended
        Episodes that ended since a user last took them out.
    """

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._env: ClusterEnv = clusters.each()[0]
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space
        self.episode = 0
        self.ended: list[Play] = []
        self._actions: list[float] = []
        self._reward = 0.0
        self._start_s = time.perf_counter()

    @property
    def certain(self) -> int:
        """Number of steps more the episode has at least: every job is decided once, a job that waits more often."""
        return max(len(self._env.episode.queue) - len(self._actions), 1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Float32, dict[str, Any]]:  # noqa: ANN401
        """Begin the next episode; after `restore`, be where it was left."""
        super().reset(seed=seed)
        self._env, observation = self._clusters.begin(self.episode)
        self._reward, self._start_s = 0.0, time.perf_counter()
        for action in self._actions:
            observation, reward, _, _, _ = self._env.step(np.array([action], np.float32))
            self._reward += reward
        return observation, {}

    def step(self, action: Float32) -> tuple[Float32, float, bool, bool, dict[str, Any]]:
        """Decide the job at hand."""
        check_finite(float(action[0]))
        observation, reward, ended, _, info = self._env.step(action)
        self._actions.append(float(action[0]))
        self._reward += reward
        if ended:
            seconds = time.perf_counter() - self._start_s
            self.ended.append(play_of(self._env.episode.instance.name, self._reward, info["outcome"], seconds, {}))
            self.episode += 1
            self._actions = []
        return observation, reward, ended, False, {}

    def state(self) -> State:
        """Return where it is: the number of the episode, and what was done in it."""
        return {"episode": self.episode, "actions": list(self._actions)}

    def restore(self, state: State) -> None:
        """Be there at the next reset."""
        self.episode, self._actions = state["episode"], list(state["actions"])
        self._env, _ = self._clusters.begin(self.episode)
