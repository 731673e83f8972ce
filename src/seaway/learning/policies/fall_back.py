"""The heuristic that decides where a trained policy does not."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.compiled import CompiledPlacer
from seaway.scheduling.engine import placer_for
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.plain import device_keys, total_score
from seaway.scheduling.profile import Profile


class FallBack:
    """A policy of the engine, asked for one decision at a time.

    Parameters
    ----------
    profile
        The policy.
    graded
        Whether every node gets a score of its own, as it takes to be weighed against other scores.
    """

    def __init__(self, profile: Profile, *, graded: bool = False) -> None:
        self._profile = profile
        self._graded = graded
        self.name = profile.name

    def scores(self, cycle: Cycle) -> Scores:
        """Score nodes, shape (N,).

        Unless they are graded, the node that it takes comes before all others, by machine code where there is some.
        """
        placer = None if self._graded else placer_for(cycle.snapshot, self._profile)
        if isinstance(placer, CompiledPlacer):
            n = placer.chosen(cycle.snapshot, cycle.line, cycle.draw)
            if n >= 0 and cycle.feasible[n]:
                scores = np.zeros(len(cycle.feasible), np.int64)
                scores[n] = 1
                return scores
        return total_score(self._profile, cycle)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank the devices of a node, the lowest first."""
        return device_keys(self._profile, cycle, node)
