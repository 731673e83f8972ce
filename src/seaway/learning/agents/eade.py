"""EADE-DDPG: deterministic policy gradients with attention, taught by an expert's history beside its own."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seaway.learning.agents.networks import MIN_VALUE, Actor, Chooser, Critic
from seaway.learning.agents.passes import Adam, Passes, lay_flat, make_room
from seaway.learning.agents.replay import Floats, Pool, Replay
from seaway.learning.settings import DdpgSettings


class Choosing:
    """Chooses for single observations.

    Parameters
    ----------
    chooser
        Whose weights, laid flat before, are read at each choice.
    observation_size
        O.
    """

    def __init__(self, chooser: Chooser, observation_size: int) -> None:
        self._chooser = chooser
        self._places: Floats = chooser.places.numpy()
        self._actions = chooser.places[:, None]
        self._seen = np.zeros((len(self._places), observation_size), np.float32)
        self._valuing = Passes(chooser.critic, make_room(chooser.critic, len(self._places)))
        self._acting = Passes(chooser.actor, make_room(chooser.actor, 1))

    @torch.no_grad()
    def choose(self, observation: Floats) -> float:
        """Return the action, -1 to 1, for one observation (O,); no number where weights are none."""
        if self._chooser.candidates == 1:
            return self._propose(observation)
        self._seen[:] = observation
        values: Floats = self._valuing.run(self._seen, self._actions)[:, 0].numpy()
        if self._chooser.queries_actor:
            far = np.abs(self._places - self._propose(observation))
            nearer = (far < far[:, np.newaxis]).sum(axis=1)
            values = np.where(nearer < self._chooser.candidates, values, MIN_VALUE)
        best = np.argmax(values)
        return float(self._places[best]) if np.isfinite(values[best]) else math.nan

    def _propose(self, observation: Floats) -> float:
        return math.tanh(self._acting.run(observation[np.newaxis]).item())


class Losses(NamedTuple):
    """Losses of one update: mean squared error of the critic, and minus the mean value of the actor's actions.

    None if the actor is not used, and therefore not trained.
    """

    critic: float
    actor: float | None


class EadeDdpg:
    """Learns one number in [-1, 1] for an observation; with `attention=0` and `expert_share=0` it is plain DDPG.

    Two of the same seed that see the same do the same, to the bit, where torch runs one thread.

    Parameters
    ----------
    settings
        All numbers of the method.
    observation_size
        O; a multiple of `settings.figures` where there is attention.
    seed
        What first weights, noise and batches hang on.

    Attributes
    ----------
    actor
        What chooses: float32 (B, O) to (B, 1).
    critic
        What values choices: (B, O) and (B, 1) to (B, 1).
    chooser
        What decides: both of them.

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
        self.chooser = Chooser(self.actor, self.critic, settings, observation_size)
        self._queries_actor = self.chooser.queries_actor or settings.discount > 0
        self._target_actor, self._target_critic = deepcopy(self.actor), deepcopy(self.critic)
        self._weights = [lay_flat(self.actor), lay_flat(self.critic)]
        self._targets = [lay_flat(self._target_actor), lay_flat(self._target_critic)]
        self._actor_steps = Adam(self._weights[0], settings.actor_rate)
        self._critic_steps = Adam(self._weights[1], settings.critic_rate)
        room = make_room(self.actor, settings.batch)
        self._acting, self._acting_later = Passes(self.actor, room), Passes(self._target_actor, room)
        room = make_room(self.critic, settings.batch)
        self._valuing, self._valuing_later = Passes(self.critic, room), Passes(self._target_critic, room)
        self._choosing = Choosing(self.chooser, observation_size)
        self._live = Pool(settings.live_pool, observation_size)
        self._expert = Pool(settings.expert_pool, observation_size)
        self._replay = Replay(self._live, self._expert, settings.expert_share, settings.batch)

    def act(self, observation: Floats, noise: float = 0.0) -> float:
        """Choose an action in [-1, 1].

        Parameters
        ----------
        observation
            (O,)
        noise
            Standard deviation of what is added to the choice; 0: the choice as it is. With noise, actions are
            by lot until `warm_up` transitions are remembered.
        """
        if noise and self._live.filled < self.settings.warm_up:
            return self._rng.uniform(-1.0, 1.0)
        chosen = self._choosing.choose(observation)
        return min(max(chosen + self._rng.normal(0.0, noise), -1.0), 1.0) if noise else chosen

    def remember(self, observation: Floats, action: float, reward: float, following: Floats, ended: bool) -> None:
        """Store a transition."""
        self._live.add(observation, action, reward, following, ended)

    def teach(self, observation: Floats, action: float, reward: float) -> None:
        """Keep what an expert would have done, and earned; no one knows what would have followed."""
        self._expert.add(observation, action, reward, observation, ended=True)

    def learn(self) -> Losses | None:
        """Update critic, actor and their targets once; None, and no update, before `warm_up` transitions are there."""
        if self._live.filled < max(self.settings.warm_up, 1):
            return None
        rows = self._replay.draw(self._rng)
        with torch.no_grad():
            losses = Losses(self._learn_values(rows), self._learn_actions(rows) if self._queries_actor else None)
            torch._foreach_lerp_(self._targets, self._weights, self.settings.soft_update)
        return losses

    def _learn_values(self, rows: Floats) -> float:
        """Step the critic towards the goals of a batch, and return its loss."""
        columns = self._live.columns
        observation, action = rows[:, : columns.action], rows[:, columns.action, None]
        goals = self._goals(rows)
        off = self._valuing.run(observation, torch.from_numpy(action)) - goals
        self._valuing.lead_back(off * (2.0 / len(rows)), observation)
        self._critic_steps.step()
        return float(torch.mean(off * off))

    def _learn_actions(self, rows: Floats) -> float:
        """Step the actor towards what the critic values more, and return its loss."""
        observation = rows[:, : self._live.columns.action]
        actions = torch.tanh(self._acting.run(observation))
        values = self._valuing.run(observation, actions)
        slope = self._valuing.lead_to_action(torch.full_like(values, -1.0 / len(rows)), observation)
        self._acting.lead_back(slope * (1.0 - actions * actions), observation)
        self._actor_steps.step()
        return -float(torch.mean(values))

    def _goals(self, rows: Floats) -> Tensor:
        """Return what the critic is to give: reward, and the discounted value of what the targets would do next."""
        columns = self._live.columns
        reward, going_on = (torch.from_numpy(rows[:, column, None]) for column in (columns.reward, columns.going_on))
        if not self.settings.discount:
            return reward
        following = rows[:, columns.following]
        later = self._valuing_later.run(following, torch.tanh(self._acting_later.run(following)))
        return reward + self.settings.discount * going_on * later

    def state(self) -> dict[str, Any]:
        """Give all that it knows, as tensors and numbers; after `restore` it goes on as if never stopped.

        `torch.load(..., weights_only=True)` takes it. The pools are most of it: some 55 MB where there are 16 clusters.
        """
        return {
            "weights": [line.detach().clone() for line in [*self._weights, *self._targets]],
            "actor_steps": self._actor_steps.state(),
            "critic_steps": self._critic_steps.state(),
            "live": self._live.state(),
            "expert": self._expert.state(),
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Know what `state` gave, of an agent of the same settings and size."""
        with torch.no_grad():
            for line, weights in zip([*self._weights, *self._targets], state["weights"], strict=True):
                line.copy_(weights)
        self._actor_steps.restore(state["actor_steps"])
        self._critic_steps.restore(state["critic_steps"])
        self._live.restore(state["live"])
        self._expert.restore(state["expert"])
        self._rng.bit_generator.state = state["rng"]
