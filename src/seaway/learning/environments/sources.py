"""Sources of the instances of episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.learning.episodes.episode import Episode, EpisodeOptions
from seaway.learning.instances.generated.kinds import Draw
from seaway.learning.instances.instance import Instance

Source = Sequence[Instance] | Draw
"""Some instances, taken in turn, or what draws a new one for each episode."""


class Episodes:
    """Begins one episode after the other.

    Parameters
    ----------
    source
        Where the instances come from.
    options
        Of every episode.
    """

    def __init__(self, source: Source, options: EpisodeOptions) -> None:
        self._source = source
        self._options = options
        self._made: dict[int, Episode] = {}
        self._turn = 0

    def begin(self, random: np.random.Generator, seed: int | None) -> Episode:
        """Return the next episode, at its first job; episodes of given instances are used again.

        Parameters
        ----------
        random
            What a new instance is drawn from.
        seed
            Which of the given instances comes next, modulo their number; None for the one after the last.

        Raises
        ------
        RejectedError
            When there are none.
        """
        if not isinstance(self._source, Sequence):
            return Episode(self._source(random), self._options)
        if not self._source:
            raise RejectedError("no instances")
        at = (self._turn if seed is None else seed) % len(self._source)
        self._turn = at + 1
        if at not in self._made:
            self._made[at] = Episode(self._source[at], self._options)
        else:
            self._made[at].reset()
        return self._made[at]
