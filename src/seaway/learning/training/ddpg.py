"""Learner of EADE-DDPG and DDPG."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import cast

import numpy as np

from seaway.learning.agents.eade import EadeDdpg, Losses
from seaway.learning.instances.instance import Instance
from seaway.learning.observing.clusters import CLUSTER_FEATURES, NETWORK_FEATURES
from seaway.learning.settings import DdpgSettings, Run
from seaway.learning.training.clusters import ClusterEnvs, episode_result
from seaway.learning.training.learner import State, TrainedActor, check_finite
from seaway.learning.training.listener import EpisodeResult, Listener


def noise_at(settings: DdpgSettings, episode: int, episodes: int) -> float:
    """Return the standard deviation of the action noise in an episode, from 0; it changes linearly."""
    if episodes < 2:
        return settings.noise
    share = min(episode / (episodes - 1), 1.0)
    return settings.noise + share * (settings.noise_end - settings.noise)


def make(run: Run, instances: Sequence[Instance]) -> DdpgLearner:
    """Return the learner of a run; see `algos`."""
    return DdpgLearner(run, ClusterEnvs(run, instances))


class DdpgLearner:
    """Learner with an agent that learns from its own actions and the demonstrations of an expert."""

    def __init__(self, run: Run, envs: ClusterEnvs) -> None:
        figures = NETWORK_FEATURES if envs.network else CLUSTER_FEATURES
        self._settings = replace(cast("DdpgSettings", run.learner), figures=figures)
        self._run = run
        self._envs = envs
        self._episode = 0
        self.agent = EadeDdpg(self._settings, envs.size, run.settings.seed)

    def prepare(self, listener: Listener) -> None:
        """Do nothing: the expert decides during episodes."""

    def train(self) -> Iterator[Sequence[EpisodeResult]]:
        """Train, and yield one episode per item."""
        while True:
            result = self._play()
            self._episode += 1
            yield (result,)

    def evaluate(self) -> Sequence[EpisodeResult]:
        """Play each instance once, without noise."""
        return self._envs.evaluate(self.agent.act)

    def state(self) -> State:
        """Return the state of the agent and the episode."""
        return {"episode": self._episode, "agent": self.agent.state()}

    def restore(self, state: State) -> None:
        """Restore the state of the agent and the episode."""
        self._episode = state["episode"]
        self.agent.restore(state["agent"])

    def weights(self) -> State:
        """Return the weights of the policy."""
        return dict(self.agent.policy.state_dict())

    def load_weights(self, weights: State) -> None:
        """Set the weights of the policy."""
        self.agent.policy.load_state_dict(weights)

    def trained_actor(self) -> TrainedActor:
        """Return the policy for export."""
        return self._envs.trained_actor(self.agent.policy, self.agent.act)

    def _play(self) -> EpisodeResult:
        start_s = time.perf_counter()
        agent, settings = self.agent, self._settings
        noise = noise_at(settings, self._episode, self._run.settings.episodes)
        env, observation = self._envs.begin(self._episode)
        action = np.zeros(1, np.float32)
        total, terminated, losses = 0.0, False, []
        while not terminated:
            if settings.expert_share:
                agent.add_demonstration(observation, *env.expert())
            action[0] = agent.act(observation, noise)
            check_finite(action[0])
            following, reward, terminated, _, info = env.step(action)
            agent.add_transition(observation, float(action[0]), reward, following, terminated)
            observation = following
            total += reward
            losses += [loss for _ in range(settings.updates) if (loss := agent.learn())]
        seconds = time.perf_counter() - start_s
        return episode_result(
            env.episode.instance.name, total, info["outcome"], seconds, {**_means(losses), "noise": noise}
        )


def _means(losses: Sequence[Losses]) -> dict[str, float]:
    """Return the mean of each loss by name."""
    columns = zip(Losses._fields, zip(*losses, strict=True), strict=False)
    return {f"{name}_loss": fmean(column) for name, column in columns if None not in column}
