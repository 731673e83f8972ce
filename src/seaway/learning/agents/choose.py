"""One action at a time, by the passes that training makes."""

from __future__ import annotations

import math

import numpy as np
import torch

from seaway.learning.agents.networks import LEAST_VALUE, Chooser
from seaway.learning.agents.passes import Passes, make_room
from seaway.learning.agents.replay import Floats


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
        if self._chooser.asks_actor:
            far = np.abs(self._places - self._propose(observation))
            nearer = (far < far[:, np.newaxis]).sum(axis=1)
            values = np.where(nearer < self._chooser.candidates, values, LEAST_VALUE)
        best = np.argmax(values)
        return float(self._places[best]) if np.isfinite(values[best]) else math.nan

    def _propose(self, observation: Floats) -> float:
        return math.tanh(self._acting.run(observation[np.newaxis]).item())
