"""What decides in each rival, without noise: (B, O) observations to (B, 1) actions from -1 to 1."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Straight(nn.Module):
    """The actor of TD3 and DDPG, as it is."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401  # SB3's models
        super().__init__()
        self.actor = model.policy.actor

    def forward(self, observation: Tensor) -> Tensor:
        """Choose an action for each observation."""
        return self.actor(observation)


class Middle(nn.Module):
    """The middle of what SAC draws from."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__()
        actor = model.policy.actor
        self.features, self.latent, self.mean = actor.features_extractor, actor.latent_pi, actor.mu

    def forward(self, observation: Tensor) -> Tensor:
        """Choose an action for each observation."""
        return torch.tanh(self.mean(self.latent(self.features(observation))))


class Clipped(nn.Module):
    """The middle of what PPO draws from, where actions end."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        super().__init__()
        policy = model.policy
        self.features, self.mean = policy.pi_features_extractor, policy.action_net
        self.latent = policy.mlp_extractor.policy_net

    def forward(self, observation: Tensor) -> Tensor:
        """Choose an action for each observation."""
        return torch.clamp(self.mean(self.latent(self.features(observation))), -1.0, 1.0)


def actor_of(model: Any) -> nn.Module:  # noqa: ANN401
    """Return what decides in a model; it learns as the model does."""
    kind: type[nn.Module] = {"PPO": Clipped, "SAC": Middle}.get(type(model).__name__, Straight)
    return kind(model).eval()
