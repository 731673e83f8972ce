"""TD3, SAC, PPO and DDPG of Stable-Baselines3 as they learn in a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from stable_baselines3.common.logger import Logger

from seaway.learning.instances.instance import Instance
from seaway.learning.rivals import states
from seaway.learning.rivals.actors import actor_of
from seaway.learning.rivals.env import RivalEnv
from seaway.learning.rivals.models import make_model
from seaway.learning.training.clusters import Clusters
from seaway.learning.training.finite import check_finite
from seaway.learning.training.learner import Decider, State
from seaway.learning.training.listener import Listener, Play
from seaway.learning.training.settings import Run
from seaway.scheduling.state import Float32


def make(run: Run, instances: Sequence[Instance]) -> RivalLearner:
    """Make what learns, see `algos`."""
    return RivalLearner(run, Clusters(run, instances))


class RivalLearner:
    """A model of Stable-Baselines3, which learns by its own `learn`, a little at a time."""

    def __init__(self, run: Run, clusters: Clusters) -> None:
        self._clusters = clusters
        self._env = RivalEnv(clusters)
        self.model = make_model(run.learner, self._env, run.settings.seed)
        self._logger = Logger(folder=None, output_formats=[])
        self.model.set_logger(self._logger)
        self._actor = actor_of(self.model)
        self._pooled = hasattr(self.model, "replay_buffer")

    def prepare(self, listener: Listener) -> None:
        """Do nothing: rivals have no expert."""

    def plays(self) -> Iterator[Sequence[Play]]:
        """Learn: those with a pool an episode an item, PPO what ended until its next update."""
        while True:
            steps = self._env.certain if self._pooled else 1  # PPO plays until its next update in any case
            self._learn(steps)
            if self._env.ended:
                ended, self._env.ended = self._env.ended, []
                yield [replace(play, figures=self._figures()) for play in ended]

    def evaluate(self) -> Sequence[Play]:
        """Play every instance once, without noise."""
        return self._clusters.evaluate(self._choose)

    def state(self) -> State:
        """Return model and environment."""
        return {"model": states.state_of(self.model), "env": self._env.state()}

    def restore(self, state: State) -> None:
        """Take up model and environment."""
        states.restore(self.model, state["model"])
        self._env.restore(state["env"])

    def weights(self) -> State:
        """Return those of the actor."""
        return dict(self._actor.state_dict())

    def wear(self, weights: State) -> None:
        """Take over those of an actor."""
        self._actor.load_state_dict(weights)

    def decider(self) -> Decider:
        """Return the actor."""
        return self._clusters.decider(self._actor, self._choose)

    def _learn(self, steps: int) -> None:
        try:
            self.model.learn(steps, reset_num_timesteps=False, log_interval=None)
        except ValueError:  # torch draws from nothing that is no number, and says so at length
            for weights in self.model.policy.parameters():
                check_finite(float(weights.detach().sum()))
            raise

    def _choose(self, observation: Float32) -> float:
        with torch.inference_mode():
            return float(self._actor(torch.from_numpy(observation)[None])[0, 0])

    def _figures(self) -> Mapping[str, float]:
        """Return what the model last noted of its updates."""
        noted = self._logger.name_to_value
        return {name.removeprefix("train/"): float(value) for name, value in noted.items() if "loss" in name}
