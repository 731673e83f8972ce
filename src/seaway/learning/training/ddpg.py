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
from seaway.learning.observing.clusters import FIGURES, NETWORK_FIGURES
from seaway.learning.settings import DdpgSettings, Run
from seaway.learning.training.clusters import Clusters, play_of
from seaway.learning.training.learner import Decider, State, check_finite
from seaway.learning.training.listener import Listener, Play


def noise_at(settings: DdpgSettings, episode: int, episodes: int) -> float:
    """Return the standard deviation of the action noise in an episode, from 0; it changes linearly."""
    if episodes < 2:
        return settings.noise
    share = min(episode / (episodes - 1), 1.0)
    return settings.noise + share * (settings.noise_end - settings.noise)


def make(run: Run, instances: Sequence[Instance]) -> DdpgLearner:
    """Return the learner of a run; see `algos`."""
    return DdpgLearner(run, Clusters(run, instances))


class DdpgLearner:
    """Agent that learns from the expert's history and from its own actions."""

    def __init__(self, run: Run, clusters: Clusters) -> None:
        figures = NETWORK_FIGURES if clusters.network else FIGURES
        self._settings = replace(cast("DdpgSettings", run.learner), figures=figures)
        self._run = run
        self._clusters = clusters
        self._episode = 0
        self.agent = EadeDdpg(self._settings, clusters.size, run.settings.seed)

    def prepare(self, listener: Listener) -> None:
        """Do nothing: the expert decides during episodes."""

    def plays(self) -> Iterator[Sequence[Play]]:
        """Train, and yield one episode per item."""
        while True:
            play = self._play()
            self._episode += 1
            yield (play,)

    def evaluate(self) -> Sequence[Play]:
        """Play each instance once, without noise."""
        return self._clusters.evaluate(self.agent.act)

    def state(self) -> State:
        """Return the state of the agent and the episode."""
        return {"episode": self._episode, "agent": self.agent.state()}

    def restore(self, state: State) -> None:
        """Restore the state of the agent and the episode."""
        self._episode = state["episode"]
        self.agent.restore(state["agent"])

    def weights(self) -> State:
        """Return the weights of the deciding networks."""
        return dict(self.agent.policy.state_dict())

    def wear(self, weights: State) -> None:
        """Set the weights of the deciding networks."""
        self.agent.policy.load_state_dict(weights)

    def decider(self) -> Decider:
        """Return the deciding network."""
        return self._clusters.decider(self.agent.policy, self.agent.act)

    def _play(self) -> Play:
        start_s = time.perf_counter()
        agent, settings = self.agent, self._settings
        noise = noise_at(settings, self._episode, self._run.settings.episodes)
        env, observation = self._clusters.begin(self._episode)
        action = np.zeros(1, np.float32)
        total, ended, losses = 0.0, False, []
        while not ended:
            if settings.expert_share:
                agent.add_demonstration(observation, *env.expert())
            action[0] = agent.act(observation, noise)
            check_finite(action[0])
            following, reward, ended, _, info = env.step(action)
            agent.add_transition(observation, float(action[0]), reward, following, ended)
            observation = following
            total += reward
            losses += [loss for _ in range(settings.updates) if (loss := agent.learn())]
        seconds = time.perf_counter() - start_s
        return play_of(env.episode.instance.name, total, info["outcome"], seconds, {**_means(losses), "noise": noise})


def _means(losses: Sequence[Losses]) -> dict[str, float]:
    """Return the mean of each loss by name."""
    columns = zip(Losses._fields, zip(*losses, strict=True), strict=False)
    return {f"{name}_loss": fmean(column) for name, column in columns if None not in column}
