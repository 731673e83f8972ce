"""Evolution of the last layers: candidates play the same instances, and the weights move to where they do better.

Each generation draws pairs of candidates on both sides of the weights. What a candidate gains is compared on each
instance with what the others gain there, so that easy and hard instances, and those where jobs count and those where
GPU counts, weigh the same; what all have in common, like the luck of the draw, falls out.

References
----------
Salimans et al.: Evolution Strategies as a Scalable Alternative to Reinforcement Learning, 2017, arXiv:1703.03864.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from seaway.scheduling.arrays import Float64
from seaway.scheduling.framework import Mask

COOLING = 60.0
"""Generations after which the weights move half as far as at the beginning."""

Played = Callable[[Float64, int], float]
"""Plays an instance, named by its number, with some weights and returns what that is worth."""


class Evolution:
    """Weights on their way.

    Parameters
    ----------
    start
        The weights at first, in units that are worth a step.
    pairs, spread, rate, average
        As in `seaway.learning.pilot.settings.PilotSettings`.
    seed
        Seed of the candidates; they depend on it and on the number of the generation alone.
    moving
        Which weights move, shape as `start`; the others stay.

    Attributes
    ----------
    centre
        Around which candidates are drawn.
    mean
        Running mean of the centre: less of the noise.
    generation
        How many there were.
    """

    def __init__(
        self, start: Float64, *, pairs: int, spread: float, rate: float, average: float, seed: int, moving: Mask
    ) -> None:
        self.centre = start.copy()
        self.mean = start.copy()
        self.generation = 0
        self._pairs, self._spread, self._rate, self._average, self._seed = pairs, spread, rate, average, seed
        self._moving = moving

    def step(self, instances: Sequence[int], play: Played) -> None:
        """Play a generation on some instances."""
        random = np.random.default_rng((self._seed, self.generation))
        steps = random.standard_normal((self._pairs, len(self.centre))) * self._moving
        steps = np.concatenate([steps, -steps])
        gains = np.array(
            [[play(self.centre + self._spread * step, number) for number in instances] for step in steps], np.float64
        )
        move = utilities(gains) @ steps / len(steps)
        self.centre = self.centre + self._rate / (1 + self.generation / COOLING) * move
        self.generation += 1
        share = min(self._average, 1 - 1 / (self.generation + 1))
        self.mean = share * self.mean + (1 - share) * self.centre


def utilities(gains: Float64) -> Float64:
    """Return what each candidate is worth: its gains on each instance against those of the others, shape (P,).

    Parameters
    ----------
    gains
        Shape (P, B), of P candidates on B instances.
    """
    deviation = gains.std(axis=0)
    telling = deviation > 0
    if not telling.any():
        return np.zeros(len(gains))
    standing = ((gains - gains.mean(axis=0))[:, telling] / deviation[telling]).mean(axis=1)
    worth: Float64 = standing / max(float(standing.std()), 1e-12)
    return worth
