"""Self-attention over the clusters of an observation."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    """One head of self-attention over tokens, added to what it looked at.

    An observation is taken as tokens of `figures` numbers each: every cluster's, and the job's as the last. Each
    token asks all of them, itself included, and gets the mean of their values, weighted by how well their keys answer
    its query; that is added to the token. The order of tokens stays, so that what follows still knows which cluster
    is which.

    Parameters
    ----------
    figures
        Numbers of a token, which are also the width of queries, keys and values.

    Attributes
    ----------
    made
        What makes queries, keys and values, in this order, of a token: one layer for all three.

    References
    ----------
    Vaswani and others, Attention Is All You Need, 2017, section 3.2.1, equation 1. doi:10.48550/arXiv.1706.03762
    """

    def __init__(self, figures: int) -> None:
        super().__init__()
        self.figures = figures
        self.made = nn.Linear(figures, 3 * figures)

    def forward(self, observation: Tensor) -> Tensor:
        """Attend: (B, O) to (B, O)."""
        tokens = observation.reshape(observation.shape[0], -1, self.figures)
        query, key, value = self.made(tokens).chunk(3, dim=2)
        shares = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(self.figures), dim=2)
        return (tokens + shares @ value).reshape(observation.shape)
