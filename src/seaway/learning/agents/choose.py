"""One action at a time: actor and critic on a single observation, in NumPy, which begins sooner than torch."""

from __future__ import annotations

import math

import numpy as np
from torch import nn

from seaway.learning.agents.attention import Attention
from seaway.learning.agents.networks import Actor, Chooser, Critic
from seaway.learning.agents.replay import Floats


def choose(chooser: Chooser, observation: Floats) -> float:
    """Return the action, -1 to 1, that a chooser gives for one observation (O,); no number where weights are none."""
    if chooser.candidates == 1:
        return propose(chooser.actor, observation)
    places: Floats = chooser.places.numpy()
    if chooser.asks_actor:
        far = np.abs(places - propose(chooser.actor, observation))
        places = places[(far < far[:, np.newaxis]).sum(axis=1) < chooser.candidates]
    values = value(chooser.critic, observation, places)
    best = np.argmax(values)
    return float(places[best]) if np.isfinite(values[best]) else math.nan


def propose(actor: Actor, observation: Floats) -> float:
    """Return the action that an actor gives for one observation (O,)."""
    seen = observation[np.newaxis] if actor.attend is None else _seen(actor.attend, observation, None)
    return math.tanh(_through(actor.layers, seen).item())


def value(critic: Critic, observation: Floats, actions: Floats) -> Floats:
    """Return what actions (K,) are worth after one observation (O,), shape (K,)."""
    if critic.attend is None:
        seen = np.broadcast_to(observation, (len(actions), len(observation)))
    else:
        seen = _seen(critic.attend, observation, actions)
    return _through(critic.layers, np.column_stack((seen, actions)))[:, 0]


def _seen(attend: Attention, observation: Floats, actions: Floats | None) -> Floats:
    """Return what heads see, and the job, (K, saw): of each action, or once."""
    figures, size = attend.figures, attend.clusters * attend.figures
    job, clusters = observation[size:], observation[:size].reshape(-1, figures)
    asked = np.concatenate((job, clusters.mean(axis=0)))[np.newaxis]
    if actions is not None:
        asked = np.column_stack((np.broadcast_to(asked, (len(actions), asked.shape[1])), actions))
    questions = asked @ attend.asks.weight.detach().numpy().T + attend.asks.bias.detach().numpy()
    tokens = _tokens(attend, clusters)
    scores = questions.reshape(-1, attend.width) @ tokens.T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    found = (shares @ tokens / shares.sum(axis=1, keepdims=True)).reshape(len(asked), -1)
    return np.column_stack((found, np.broadcast_to(job, (len(asked), figures))))


def _tokens(attend: Attention, clusters: Floats) -> Floats:
    places = attend.places.numpy()
    tokens = np.zeros((len(places), attend.width), np.float32)
    tokens[:-1, : attend.figures] = clusters
    tokens[:, -3] = places
    tokens[:, -2] = places * places
    tokens[-1, -1] = 1.0
    return tokens


def _through(layers: nn.Sequential, seen: Floats) -> Floats:
    for layer in layers:
        if isinstance(layer, nn.Linear):
            seen = seen @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        else:
            seen = np.maximum(seen, 0.0)
    return seen
