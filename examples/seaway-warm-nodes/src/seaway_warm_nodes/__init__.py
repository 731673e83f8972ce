"""Policy that prefers nodes where the same tenant ran recently: they already have its images and data."""

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
    """Plugin that scores nodes by how recently the tenant used them.

    Parameters
    ----------
    remembered
        Number of a tenant's latest nodes that have a score.
    """

    name = "WarmNodes"

    def __init__(self, remembered: int = 32) -> None:
        self._warm: defaultdict[str, deque[tuple[str, str]]] = defaultdict(lambda: deque(maxlen=remembered))

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,): 0 without recent use, higher for more recent use."""
        scores = np.zeros(len(cycle.snapshot.nodes), np.int64)
        for readiness, where in enumerate(self._warm[cycle.job.tenant], start=1):
            n = cycle.snapshot.node_index.get(where)
            if n is not None:
                scores[n] = readiness
        return scores

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Record the node of the replica."""
        self._warm[cycle.job.tenant].append((placement.cluster, placement.node))
        return PASS

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Remove the node: the replica is not placed there."""
        warm = self._warm[cycle.job.tenant]
        if (placement.cluster, placement.node) in warm:
            warm.remove((placement.cluster, placement.node))


def warm_nodes(options: PolicyOptions) -> Profile:
    """Return the policy: all filters, warm nodes first, best fit among equals."""
    rules = (WeightedPlugin(rule) for rule in rules_of_fit())
    return Profile("warm-nodes", (*rules, WeightedPlugin(WarmNodes(), 3), WeightedPlugin(BestFit())), seed=options.seed)
