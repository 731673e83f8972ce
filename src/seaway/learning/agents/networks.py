"""Actor and critic: what chooses, and what says how good a choice was; and both together, as they decide."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from seaway.learning.agents.attention import Attention, places_of
from seaway.learning.agents.settings import DdpgSettings

LAST_LAYER = 3e-3  # bounds of the last layer's first weights: actions begin near 0, where tanh is steep

LEAST_VALUE, BEYOND = -1e30, 2.0
"""Below any value, and above any action: policy files hold finite numbers alone."""


class Actor(nn.Module):
    """Says what to do: (B, O) observations to (B, 1) actions in [-1, 1]."""

    def __init__(self, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        self.attend = _attention(settings, observation_size, with_action=False)
        self.layers = _layers(settings, self.attend.saw if self.attend else observation_size)

    def forward(self, observation: Tensor) -> Tensor:
        """Choose an action for each observation."""
        seen = observation if self.attend is None else self.attend(observation)
        return torch.tanh(self.layers(seen))


class Critic(nn.Module):
    """Says what an action is worth: (B, O) observations and (B, 1) actions to (B, 1) values.

    The action is among what the first layer takes, 68 + 1 numbers where there is no attention, and asks the heads.
    """

    def __init__(self, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        self.attend = _attention(settings, observation_size, with_action=True)
        self.layers = _layers(settings, (self.attend.saw if self.attend else observation_size) + 1)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Value an action after each observation."""
        seen = observation if self.attend is None else self.attend(observation, action)
        return self.layers(torch.cat((seen, action), dim=1))


class Chooser(nn.Module):
    """Decides: the actor proposes, and of the bins nearest to that the critic chooses.

    Parameters
    ----------
    actor, critic
        Who they are.
    settings
        How many candidates there are.
    observation_size
        O.

    Attributes
    ----------
    places
        The action in the middle of each bin, shape (C + 1,).
    candidates
        How many bins the critic chooses among; with 1 the actor's action counts as it is. Of bins that are equally
        far from it, or of one value, all are candidates, and the first is chosen.
    asks_actor
        Whether the actor proposes at all: not where all bins are candidates.

    References
    ----------
    Dulac-Arnold and others, Deep Reinforcement Learning in Large Discrete Action Spaces, 2015, algorithm 1.
    doi:10.48550/arXiv.1512.07679
    """

    places: Tensor

    def __init__(self, actor: Actor, critic: Critic, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        places = places_of(observation_size // settings.figures - 1)
        self.register_buffer("places", torch.from_numpy(places), persistent=False)
        self.actor = actor
        self.critic = critic
        self.candidates = min(settings.candidates or len(places), len(places))
        self.asks_actor = self.candidates < len(places)

    def forward(self, observation: Tensor) -> Tensor:
        """Choose for one observation: (1, O) to (1, 1); no number where values are none."""
        if self.candidates == 1:
            return self.actor(observation)
        actions = self.places[:, None]
        values = self.critic(observation.expand(len(actions), -1), actions)
        if self.asks_actor:
            far = torch.abs(actions - self.actor(observation))
            nearer = (far.transpose(0, 1) < far).sum(dim=1, keepdim=True)
            values = torch.where(nearer < self.candidates, values, LEAST_VALUE)
        best = values.amax(dim=0, keepdim=True)
        no_number = best - best  # 0, unless the weights have grown beyond all bounds
        return torch.where(values == best, actions, BEYOND).amin(dim=0, keepdim=True) + no_number


def _attention(settings: DdpgSettings, observation_size: int, *, with_action: bool) -> Attention | None:
    if not settings.attention:
        return None
    return Attention(observation_size, settings.figures, settings.heads, with_action=with_action)


def _layers(settings: DdpgSettings, inputs: int) -> nn.Sequential:
    widths = [inputs, *([settings.attention] if settings.attention else []), *settings.hidden]
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    last = nn.Linear(widths[-1], 1)
    nn.init.uniform_(last.weight, -LAST_LAYER, LAST_LAYER)
    nn.init.uniform_(last.bias, -LAST_LAYER, LAST_LAYER)
    return nn.Sequential(*layers, last)
