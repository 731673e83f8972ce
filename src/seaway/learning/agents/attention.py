"""Attention over the clusters of an observation, asked by the job and, in a critic, by the action."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from seaway.learning.agents.replay import Floats
from seaway.learning.observing.actions import action_of

FIRST_WEIGHTS = 0.1
"""What torch's own first weights are multiplied by: heads begin by looking at all tokens alike."""

NARROW, WIDE = 1.0, 3.0
"""Standard deviations, in bins, of the places around an action that the first and the last head begin by looking at."""


def places_of(clusters: int) -> Floats:
    """Return the action in the middle of each bin, shape (C + 1,): of each cluster, and of waiting."""
    return np.array([action_of(choice, clusters) for choice in range(clusters + 1)], np.float32)


class Attention(nn.Module):
    """Heads that look at clusters, each with a question of its own.

    Tokens are the clusters, and to wait: the figures of an observation, zeros for waiting, and behind them their place
    on the line of actions, its square, and whether it is the one that waits. A head asks by what the job wants, what
    clusters have in the mean and, in a critic, the action; tokens answer by their sum of products with the question,
    and the mean of the tokens, weighed by the softmax of that, is what the head saw. So a critic's head can look at
    the cluster that an action stands for: heads begin by doing so, each with another width.

    Parameters
    ----------
    observation_size
        O.
    figures
        F, of a cluster, and of the job.
    heads
        H.
    with_action
        Whether an action asks too.

    Attributes
    ----------
    asks
        Makes the questions.
    places
        The action that stands for each token, shape (T,).

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
        self.asks = nn.Linear(2 * figures + with_action, heads * self.width)
        with torch.no_grad():
            self.asks.weight.mul_(FIRST_WEIGHTS)
            self.asks.bias.zero_()
            if with_action:
                self._look_around_actions()

    @property
    def width(self) -> int:
        """D, figures of a token."""
        return self.figures + 3

    @property
    def saw(self) -> int:
        """How many figures come of it: of all heads, and the job's."""
        return self.heads * self.width + self.figures

    def _look_around_actions(self) -> None:
        """Set questions to ``-(place - action)^2 / (2 width^2)``, but for what is the same for all places."""
        bins = np.linspace(NARROW, WIDE, self.heads)
        for head, wide in enumerate(bins * 2.0 / (self.clusters + 1)):
            place = head * self.width + self.figures
            self.asks.weight[place : place + 3] = 0.0
            self.asks.weight[place, -1] = 1.0 / wide**2
            self.asks.bias[place + 1] = -0.5 / wide**2

    def forward(self, observation: Tensor, action: Tensor | None = None) -> Tensor:
        """Look: (B, O), and in a critic (B, 1), to (B, saw)."""
        job = observation[:, self.clusters * self.figures :]
        clusters = observation[:, : self.clusters * self.figures].reshape(-1, self.clusters, self.figures)
        question = torch.cat((job, clusters.mean(dim=1), *(() if action is None else (action,))), dim=1)
        asked = self.asks(question).reshape(-1, self.heads, self.width)
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
