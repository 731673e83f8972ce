"""One action at a time: the actor on a single observation, in NumPy, which begins sooner than torch."""

from __future__ import annotations

import math

import numpy as np
from torch import nn

from seaway.learning.agents.attention import SelfAttention
from seaway.learning.agents.networks import Actor
from seaway.learning.agents.replay import Floats


def choose(actor: Actor, observation: Floats) -> float:
    """Return the action, -1 to 1, that the actor gives for one observation (O,)."""
    seen = observation if actor.attend is None else _attended(actor.attend, observation)
    for layer in actor.layers:
        if isinstance(layer, nn.Linear):
            seen = layer.weight.detach().numpy() @ seen + layer.bias.detach().numpy()
        else:
            seen = np.maximum(seen, 0.0)
    return math.tanh(seen[0])


def _attended(attend: SelfAttention, observation: Floats) -> Floats:
    tokens = observation.reshape(-1, attend.figures)
    made = tokens @ attend.made.weight.detach().numpy().T + attend.made.bias.detach().numpy()
    query, key, value = made[:, : attend.figures], made[:, attend.figures : -attend.figures], made[:, -attend.figures :]
    scores = query @ key.T / math.sqrt(attend.figures)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (tokens + shares @ value / shares.sum(axis=1, keepdims=True)).reshape(-1)
