"""Infeasibility cache, which rejects requests at least as large as one that fits nowhere.

The rules of fit are monotonic: a larger request is never feasible where a smaller one is not (see `kernels/fit.py`).
One rejection therefore answers many requests that were not tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from seaway.domain.job import Demand

RequestedAmounts = tuple[int, int, int, int, int, int]
"""Request of a replica with all defaults: CPU, memory and devices, then for each device its memory in MiB, its memory
in percent (one of the two is 0), and its cores.
"""


def requested_amounts(demand: Demand) -> RequestedAmounts:
    """Return the amounts that a replica requests."""
    request = demand.request.filled()
    return (
        request.cpu_milli,
        request.memory_mib,
        request.gpus,
        request.gpu_memory_mib,
        request.gpu_memory_percent,
        request.gpu_milli,
    )


def rule_key(demand: Demand) -> Hashable:
    """Return the parts of a demand that are not amounts: MIG profile, rules, and network bounds."""
    return demand.request.mig, demand.devices, demand.nodes, demand.gateway, demand.network


def dominates(more: RequestedAmounts, less: RequestedAmounts) -> bool:
    """Report whether every node that fits `more` also fits `less`, under the same rules.

    This is true if no amount of `more` is smaller. Nodes with several devices in MIG mode are an exception: instances
    are placed one after the other, and smaller instances may block more positions. If `less` requests several devices,
    it must therefore request the same memory of each as `more`.
    """
    return (
        less[0] <= more[0]
        and less[1] <= more[1]
        and less[2] <= more[2]
        and less[3] <= more[3]
        and less[4] <= more[4]
        and less[5] <= more[5]
        and (less[2] <= 1 or less[3:5] == more[3:5])
    )


class InfeasibilityCache:
    """Cache of the smallest infeasible requests for each set of rules."""

    def __init__(self) -> None:
        self._refused: defaultdict[Hashable, list[RequestedAmounts]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._refused.values()))

    def add(self, rules: Hashable, requested: RequestedAmounts) -> None:
        """Record an infeasible request."""
        known = self._refused[rules]
        if not any(dominates(requested, each) for each in known):
            known[:] = [requested, *(each for each in known if not dominates(each, requested))]

    def is_infeasible(self, rules: Hashable, requested: RequestedAmounts) -> bool:
        """Report whether a request is known to be infeasible."""
        known = self._refused.get(rules, ())
        for at, each in enumerate(known):
            if dominates(requested, each):
                if at:  # the last match is likely to match again
                    known[at], known[at - 1] = known[at - 1], each  # type: ignore[index]  # it is a list, as it is not empty
                return True
        return False

    def clear(self) -> None:
        """Remove all entries, for example after resources were released."""
        self._refused.clear()
