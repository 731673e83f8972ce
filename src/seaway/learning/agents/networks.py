"""Actor and critic: what chooses, and what says how good a choice was; and both together, as they decide."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from seaway.learning.agents.replay import Floats
from seaway.learning.observing.clusters import action_of
from seaway.learning.settings import DdpgSettings

FIRST_WEIGHTS = 0.1
"""Factor of torch's initial weights: heads start with equal attention to all tokens."""

NARROW, WIDE = 1.0, 3.0
"""Standard deviations, in bins, of the places around an action that the first and the last head begin by looking at."""


def places_of(clusters: int) -> Floats:
    """Return the action in the middle of each bin, shape (C + 1,): of each cluster, and of waiting."""
    return np.array([action_of(choice, clusters) for choice in range(clusters + 1)], np.float32)


class Attention(nn.Module):
    """Attention heads over clusters.

    Tokens are the clusters, and waiting. A token has the figures of an observation, zeros for waiting, then its
    position on the line of actions, its square, and whether it is waiting. The query is made of the job's figures, the
    means of the clusters and, in a critic, the action. Scores are dot products of tokens with the query,
    and the output is the mean of the tokens, weighted by the softmax of the scores. A critic's head can thus attend to
    the cluster of an action; heads start this way, each with another width.

    Parameters
    ----------
    observation_size
        O.
    figures
        F, of a cluster, and of the job.
    heads
        H.
    with_action
        Whether queries include an action.

    Attributes
    ----------
    asks
        Creates the queries.
    places
        Action of each token, shape (T,).

    References
    ----------
    Vaswani and others, Attention Is All You Need, 2017, sections 3.2.1 and 3.2.2. doi:10.48550/arXiv.1706.03762
    """

    places: Tensor

    def __init__(self, observation_size: int, figures: int, heads: int, *, with_action: bool) -> None:
        super().__init__()
        self.figures = figures
        self.heads = heads
        self.clusters = observation_size // figures - 1
        self.register_buffer("places", torch.from_numpy(places_of(self.clusters)), persistent=False)
        self.queries = nn.Linear(2 * figures + with_action, heads * self.width)
        with torch.no_grad():
            self.queries.weight.mul_(FIRST_WEIGHTS)
            self.queries.bias.zero_()
            if with_action:
                self._look_around_actions()

    @property
    def width(self) -> int:
        """D, figures of a token."""
        return self.figures + 3

    @property
    def saw(self) -> int:
        """Number of outputs: of all heads, and of the job."""
        return self.heads * self.width + self.figures

    def _look_around_actions(self) -> None:
        """Set questions to ``-(place - action)^2 / (2 width^2)``, but for what is the same for all places."""
        bins = np.linspace(NARROW, WIDE, self.heads)
        for head, wide in enumerate(bins * 2.0 / (self.clusters + 1)):
            place = head * self.width + self.figures
            self.queries.weight[place : place + 3] = 0.0
            self.queries.weight[place, -1] = 1.0 / wide**2
            self.queries.bias[place + 1] = -0.5 / wide**2

    def forward(self, observation: Tensor, action: Tensor | None = None) -> Tensor:
        """Look: (B, O), and in a critic (B, 1), to (B, saw)."""
        job = observation[:, self.clusters * self.figures :]
        clusters = observation[:, : self.clusters * self.figures].reshape(-1, self.clusters, self.figures)
        question = torch.cat((job, clusters.mean(dim=1), *(() if action is None else (action,))), dim=1)
        asked = self.queries(question).reshape(-1, self.heads, self.width)
        with_wait = torch.cat((clusters, torch.zeros_like(clusters[:, :1])), dim=1)
        tokens = torch.cat((with_wait, self._behind(observation)), dim=2)
        shares = torch.softmax(asked @ tokens.transpose(1, 2), dim=2)
        return torch.cat(((shares @ tokens).reshape(-1, self.heads * self.width), job), dim=1)

    def _behind(self, observation: Tensor) -> Tensor:
        """Return what tokens have behind their figures, (B, T, 3)."""
        waits = torch.zeros_like(self.places)
        waits[-1] = 1.0
        behind = torch.stack((self.places, self.places**2, waits), dim=1)
        return behind.expand(observation.shape[0], -1, -1)


LAST_LAYER = 3e-3  # bounds of the last layer's first weights: actions begin near 0, where tanh is steep

MIN_VALUE, BEYOND = -1e30, 2.0
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
        self.queries_actor = self.candidates < len(places)

    def forward(self, observation: Tensor) -> Tensor:
        """Choose for one observation: (1, O) to (1, 1); no number where values are none."""
        if self.candidates == 1:
            return self.actor(observation)
        actions = self.places[:, None]
        values = self.critic(observation.expand(len(actions), -1), actions)
        if self.queries_actor:
            far = torch.abs(actions - self.actor(observation))
            nearer = (far.transpose(0, 1) < far).sum(dim=1, keepdim=True)
            values = torch.where(nearer < self.candidates, values, MIN_VALUE)
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
