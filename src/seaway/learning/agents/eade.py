"""EADE-DDPG: deep deterministic policy gradients with attention and demonstrations of an expert."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seaway.learning.agents.networks import Actor, Critic, WolpertingerPolicy
from seaway.learning.agents.passes import Adam, Passes, PolicyPasses, flatten_parameters, make_buffers
from seaway.learning.agents.replay import Floats, MixedReplay, ReplayBuffer
from seaway.learning.settings import DdpgSettings


class Losses(NamedTuple):
    """Losses of one update: mean squared TD error of the critic, and minus the mean value of the actor's actions.

    The actor's is None if the policy does not use it, because it is not trained then.
    """

    critic: float
    actor: float | None


class EadeDdpg:
    """Agent with one continuous action in [-1, 1]. With `attention=0` and `expert_share=0` it is plain DDPG.

    Training is reproducible to the bit if torch uses one thread.

    Parameters
    ----------
    settings
        Hyperparameters.
    observation_size
        O; with attention a multiple of `settings.figures`.
    seed
        Random seed of initial weights, noise and batches.

    Attributes
    ----------
    actor
        Actor: float32 (B, O) to (B, 1).
    critic
        Critic: (B, O) and (B, 1) to (B, 1).
    policy
        Policy of both, which decides.

    References
    ----------
    Lillicrap and others, Continuous control with deep reinforcement learning, 2015, algorithm 1.
    doi:10.48550/arXiv.1509.02971
    """

    def __init__(self, settings: DdpgSettings, observation_size: int, seed: int) -> None:
        self.settings = settings
        self._rng = np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = Actor(settings, observation_size)
            self.critic = Critic(settings, observation_size)
        self.policy = WolpertingerPolicy(self.actor, self.critic, settings, observation_size)
        self._trains_actor = self.policy.uses_actor or settings.discount > 0
        target_actor, target_critic = deepcopy(self.actor), deepcopy(self.critic)
        self._weights = [flatten_parameters(self.actor), flatten_parameters(self.critic)]
        self._target_weights = [flatten_parameters(target_actor), flatten_parameters(target_critic)]
        self._actor_optimiser = Adam(self._weights[0], settings.actor_rate)
        self._critic_optimiser = Adam(self._weights[1], settings.critic_rate)
        buffers = make_buffers(self.actor, settings.batch)
        self._actor, self._target_actor = Passes(self.actor, buffers), Passes(target_actor, buffers)
        buffers = make_buffers(self.critic, settings.batch)
        self._critic, self._target_critic = Passes(self.critic, buffers), Passes(target_critic, buffers)
        self._policy = PolicyPasses(self.policy, observation_size)
        self._live = ReplayBuffer(settings.live_pool, observation_size)
        self._expert = ReplayBuffer(settings.expert_pool, observation_size)
        self._replay = MixedReplay(self._live, self._expert, settings.expert_share, settings.batch)

    def act(self, observation: Floats, noise: float = 0.0) -> float:
        """Return an action in [-1, 1].

        Parameters
        ----------
        observation
            Shape (O,).
        noise
            Standard deviation of Gaussian exploration noise; 0 for the deterministic action. With noise, actions are
            uniformly random until `warm_up` transitions are stored.
        """
        if noise and len(self._live) < self.settings.warm_up:
            return self._rng.uniform(-1.0, 1.0)
        action = self._policy.action(observation)
        return min(max(action + self._rng.normal(0.0, noise), -1.0), 1.0) if noise else action

    def add_transition(
        self, observation: Floats, action: float, reward: float, following: Floats, terminated: bool
    ) -> None:
        """Store a transition. `following` is the next observation."""
        self._live.add(observation, action, reward, following, terminated)

    def add_demonstration(self, observation: Floats, action: float, reward: float) -> None:
        """Store an action of the expert and its reward, as a terminal transition: the next observation is unknown."""
        self._expert.add(observation, action, reward, observation, terminated=True)

    def learn(self) -> Losses | None:
        """Update critic, actor and target networks once. Return None without an update during warm-up."""
        if len(self._live) < max(self.settings.warm_up, 1):
            return None
        batch = self._replay.sample(self._rng)
        with torch.no_grad():
            losses = Losses(self._update_critic(batch), self._update_actor(batch) if self._trains_actor else None)
            torch._foreach_lerp_(self._target_weights, self._weights, self.settings.soft_update)
        return losses

    def _update_critic(self, batch: Floats) -> float:
        """Update the critic towards the TD targets, and return its loss."""
        columns = self._live.columns
        observation, action = batch[:, : columns.action], batch[:, columns.action, None]
        targets = self._td_targets(batch)
        error = self._critic.forward(observation, torch.from_numpy(action)) - targets
        self._critic.backward(error * (2.0 / len(batch)), observation)
        self._critic_optimiser.step()
        return float(torch.mean(error * error))

    def _update_actor(self, batch: Floats) -> float:
        """Update the actor by the deterministic policy gradient, and return its loss."""
        observation = batch[:, : self._live.columns.action]
        actions = torch.tanh(self._actor.forward(observation))
        values = self._critic.forward(observation, actions)
        gradient = self._critic.action_gradient(torch.full_like(values, -1.0 / len(batch)), observation)
        self._actor.backward(gradient * (1.0 - actions * actions), observation)
        self._actor_optimiser.step()
        return -float(torch.mean(values))

    def _td_targets(self, batch: Floats) -> Tensor:
        """Return the TD targets (B, 1): the reward, and the discounted value of the target networks."""
        columns = self._live.columns
        reward, not_done = (torch.from_numpy(batch[:, column, None]) for column in (columns.reward, columns.not_done))
        if not self.settings.discount:
            return reward
        following = batch[:, columns.next_observation]
        next_values = self._target_critic.forward(following, torch.tanh(self._target_actor.forward(following)))
        return reward + self.settings.discount * not_done * next_values

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, as tensors and numbers that `torch.load(..., weights_only=True)` reads.

        The replay buffers are most of it: about 55 MB with 16 clusters.
        """
        return {
            "weights": [weights.detach().clone() for weights in [*self._weights, *self._target_weights]],
            "actor_steps": self._actor_optimiser.state(),
            "critic_steps": self._critic_optimiser.state(),
            "live": self._live.state(),
            "expert": self._expert.state(),
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of an agent with equal settings and size. Training continues as without interruption."""
        with torch.no_grad():
            for weights, stored in zip([*self._weights, *self._target_weights], state["weights"], strict=True):
                weights.copy_(stored)
        self._actor_optimiser.restore(state["actor_steps"])
        self._critic_optimiser.restore(state["critic_steps"])
        self._live.restore(state["live"])
        self._expert.restore(state["expert"])
        self._rng.bit_generator.state = state["rng"]
