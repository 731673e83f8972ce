"""Actor and critic, and the policy of both."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from seaway.learning.agents.replay import Floats
from seaway.learning.observing.clusters import action_of
from seaway.learning.settings import DdpgSettings

INITIAL_SCALE = 0.1
"""Factor of torch's initial weights of queries: heads start with nearly equal weights of all tokens."""

MIN_WIDTH, MAX_WIDTH = 1.0, 3.0
"""Standard deviations, in bins, of the initial attention of the first and the last head around an action."""

LAST_LAYER_BOUND = 3e-3
"""Bound of the initial weights of the last layer, so that actions start near 0, where tanh is steep."""

MIN_VALUE, OUT_OF_RANGE = -1e30, 2.0
"""Number below any value, and number above any action. Infinity is not possible, as policy files are finite."""


def midpoints_of(clusters: int) -> Floats:
    """Return the action at the midpoint of each bin, shape (C + 1,): of each cluster, then of waiting."""
    return np.array([action_of(choice, clusters) for choice in range(clusters + 1)], np.float32)


class Attention(nn.Module):
    """Attention heads over clusters.

    The tokens are the clusters and a last one for waiting. A token has the features of its cluster, zeros for waiting,
    then the midpoint of its bin, the square of that, and 1 for waiting. The query is a linear function of the features
    of the job, the mean features of the clusters and, in a critic, the action. Scores are dot products with the query,
    and the output is the mean of the tokens with softmax weights. The heads of a critic initially attend to the
    clusters around an action, each with a different width.

    Parameters
    ----------
    observation_size
        O.
    features
        F, number of features of a cluster and of the job.
    heads
        H.
    with_action
        Whether queries depend on an action.

    Attributes
    ----------
    queries
        Linear layer of the queries.
    positions
        Midpoint of the bin of each token, shape (T,).

    References
    ----------
    Vaswani and others, Attention Is All You Need, 2017, sections 3.2.1 and 3.2.2. doi:10.48550/arXiv.1706.03762
    """

    positions: Tensor

    def __init__(self, observation_size: int, features: int, heads: int, *, with_action: bool) -> None:
        super().__init__()
        self.features = features
        self.heads = heads
        self.clusters = observation_size // features - 1
        self.register_buffer("positions", torch.from_numpy(midpoints_of(self.clusters)), persistent=False)
        self.queries = nn.Linear(2 * features + with_action, heads * self.width)
        with torch.no_grad():
            self.queries.weight.mul_(INITIAL_SCALE)
            self.queries.bias.zero_()
            if with_action:
                self._init_around_action()

    @property
    def width(self) -> int:
        """D, number of features of a token."""
        return self.features + 3

    @property
    def out_features(self) -> int:
        """Length of the output: of all heads, and of the job."""
        return self.heads * self.width + self.features

    def _init_around_action(self) -> None:
        """Set scores to ``-(position - action)^2 / (2 width^2)``, up to a constant that softmax ignores."""
        widths = np.linspace(MIN_WIDTH, MAX_WIDTH, self.heads) * 2.0 / (self.clusters + 1)
        for head, width in enumerate(widths):
            first = head * self.width + self.features
            self.queries.weight[first : first + 3] = 0.0
            self.queries.weight[first, -1] = 1.0 / width**2
            self.queries.bias[first + 1] = -0.5 / width**2

    def forward(self, observation: Tensor, action: Tensor | None = None) -> Tensor:
        """Return the outputs of the heads and the features of the job, (B, out_features)."""
        job = observation[:, self.clusters * self.features :]
        clusters = observation[:, : self.clusters * self.features].reshape(-1, self.clusters, self.features)
        query_input = torch.cat((job, clusters.mean(dim=1), *(() if action is None else (action,))), dim=1)
        queries = self.queries(query_input).reshape(-1, self.heads, self.width)
        with_wait = torch.cat((clusters, torch.zeros_like(clusters[:, :1])), dim=1)
        tokens = torch.cat((with_wait, self._position_features(observation)), dim=2)
        weights = torch.softmax(queries @ tokens.transpose(1, 2), dim=2)
        return torch.cat(((weights @ tokens).reshape(-1, self.heads * self.width), job), dim=1)

    def _position_features(self, observation: Tensor) -> Tensor:
        """Return the last features of the tokens, (B, T, 3)."""
        waits = torch.zeros_like(self.positions)
        waits[-1] = 1.0
        features = torch.stack((self.positions, self.positions**2, waits), dim=1)
        return features.expand(observation.shape[0], -1, -1)


class Actor(nn.Module):
    """Deterministic actor: (B, O) observations to (B, 1) actions in [-1, 1]."""

    def __init__(self, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        self.attend = _attention(settings, observation_size, with_action=False)
        self.layers = _layers(settings, self.attend.out_features if self.attend else observation_size)

    def forward(self, observation: Tensor) -> Tensor:
        """Return an action for each observation."""
        features = observation if self.attend is None else self.attend(observation)
        return torch.tanh(self.layers(features))


class Critic(nn.Module):
    """Critic: (B, O) observations and (B, 1) actions to (B, 1) values.

    The action is an input of the first layer, and of the queries of the heads.
    """

    def __init__(self, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        self.attend = _attention(settings, observation_size, with_action=True)
        self.layers = _layers(settings, (self.attend.out_features if self.attend else observation_size) + 1)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Return the value of each pair of observation and action."""
        features = observation if self.attend is None else self.attend(observation, action)
        return self.layers(torch.cat((features, action), dim=1))


class WolpertingerPolicy(nn.Module):
    """Policy of actor and critic: the critic selects among the bins that are nearest to the actor's action.

    Parameters
    ----------
    actor, critic
        The networks.
    settings
        Settings, with the number of candidates.
    observation_size
        O.

    Attributes
    ----------
    midpoints
        The action at the midpoint of each bin, shape (C + 1,).
    candidates
        Number of bins that the critic evaluates. With 1, the actor's action is the result. All bins at the distance of
        the last candidate are candidates, and the first of equal values wins.
    uses_actor
        Whether the actor has an influence: not if all bins are candidates.

    References
    ----------
    Dulac-Arnold and others, Deep Reinforcement Learning in Large Discrete Action Spaces, 2015, algorithm 1.
    doi:10.48550/arXiv.1512.07679
    """

    midpoints: Tensor

    def __init__(self, actor: Actor, critic: Critic, settings: DdpgSettings, observation_size: int) -> None:
        super().__init__()
        midpoints = midpoints_of(observation_size // settings.figures - 1)
        self.register_buffer("midpoints", torch.from_numpy(midpoints), persistent=False)
        self.actor = actor
        self.critic = critic
        self.candidates = min(settings.candidates or len(midpoints), len(midpoints))
        self.uses_actor = self.candidates < len(midpoints)

    def forward(self, observation: Tensor) -> Tensor:
        """Return the action for one observation: (1, O) to (1, 1); NaN if the values are not finite."""
        if self.candidates == 1:
            return self.actor(observation)
        actions = self.midpoints[:, None]
        values = self.critic(observation.expand(len(actions), -1), actions)
        if self.uses_actor:
            distances = torch.abs(actions - self.actor(observation))
            nearer = (distances.transpose(0, 1) < distances).sum(dim=1, keepdim=True)
            values = torch.where(nearer < self.candidates, values, MIN_VALUE)
        best = values.amax(dim=0, keepdim=True)
        nan_if_infinite = best - best  # otherwise 0
        return torch.where(values == best, actions, OUT_OF_RANGE).amin(dim=0, keepdim=True) + nan_if_infinite


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
    nn.init.uniform_(last.weight, -LAST_LAYER_BOUND, LAST_LAYER_BOUND)
    nn.init.uniform_(last.bias, -LAST_LAYER_BOUND, LAST_LAYER_BOUND)
    return nn.Sequential(*layers, last)
