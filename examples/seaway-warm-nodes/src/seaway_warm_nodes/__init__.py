"""Prefer nodes on which the same tenant ran something lately: images and data are there already."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from seaway.domain.placement import Placement
from seaway.scheduling.framework import PASS, Cycle, Scores, Status
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.profile import Profile, WeightedPlugin


class WarmNodes:
    """Scores nodes by how lately the tenant was there.

    Parameters
    ----------
    remembered
        How many of a tenant's last nodes stay warm.
    """

    name = "WarmNodes"

    def __init__(self, remembered: int = 32) -> None:
        self._warm: defaultdict[str, deque[tuple[str, str]]] = defaultdict(lambda: deque(maxlen=remembered))

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,): 0 when cold, the warmer the higher."""
        scores = np.zeros(len(cycle.snapshot.nodes), np.int64)
        for readiness, where in enumerate(self._warm[cycle.job.tenant], start=1):
            n = cycle.snapshot.node_index.get(where)
            if n is not None:
                scores[n] = readiness
        return scores

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Remember where the replica goes."""
        self._warm[cycle.job.tenant].append((placement.cluster, placement.node))
        return PASS

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Forget it again: the replica does not go there after all."""
        warm = self._warm[cycle.job.tenant]
        if (placement.cluster, placement.node) in warm:
            warm.remove((placement.cluster, placement.node))


def warm_nodes(options: PolicyOptions) -> Profile:
    """Make the policy: the rules of fit, warm nodes first, best fit among equals."""
    rules = (WeightedPlugin(rule) for rule in rules_of_fit())
    return Profile("warm-nodes", (*rules, WeightedPlugin(WarmNodes(), 3), WeightedPlugin(BestFit())), seed=options.seed)
