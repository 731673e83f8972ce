"""Actor and critic: what chooses, and what says how good a choice was."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from seaway.learning.agents.attention import SelfAttention
from seaway.learning.agents.settings import DdpgSettings

LAST_LAYER = 3e-3  # bounds of the last layer's first weights: actions begin near 0, where tanh is steep


class Actor(nn.Module):
    """Says what to do: (B, O) observations to (B, 1) actions in [-1, 1]."""

    def __init__(self, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        self.attend = SelfAttention(settings.figures) if settings.attention else None
        self.layers = _layers(settings, observation_size)

    def forward(self, observation: Tensor) -> Tensor:
        """Choose an action for each observation."""
        seen = observation if self.attend is None else self.attend(observation)
        return torch.tanh(self.layers(seen))


class Critic(nn.Module):
    """Says what an action is worth: (B, O) observations and (B, 1) actions to (B, 1) values.

    The action joins what attention made of the observation in front of the first weights: 68 + 1 numbers.
    """

    def __init__(self, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        self.attend = SelfAttention(settings.figures) if settings.attention else None
        self.layers = _layers(settings, observation_size + 1)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Value an action after each observation."""
        seen = observation if self.attend is None else self.attend(observation)
        return self.layers(torch.cat((seen, action), dim=1))


def _layers(settings: DdpgSettings, inputs: int) -> nn.Sequential:
    widths = [inputs, *([settings.attention] if settings.attention else []), *settings.hidden]
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    last = nn.Linear(widths[-1], 1)
    nn.init.uniform_(last.weight, -LAST_LAYER, LAST_LAYER)
    nn.init.uniform_(last.bias, -LAST_LAYER, LAST_LAYER)
    return nn.Sequential(*layers, last)
