"""Infeasibility cache: requests that are at least as large as one that no node could hold.

The rules of fit are monotonic: a larger request is never feasible where a smaller one is not (see `kernels/fit.py`).
One rejection therefore answers many requests that were not tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from seaway.domain.job import Demand

RequestedAmounts = tuple[int, int, int, int, int, int]
"""Request of a replica with all defaults: CPU, memory, devices, then per device its memory in MiB, its
memory in percent (one of the two is 0), and its cores.
"""


def requested_amounts(demand: Demand) -> RequestedAmounts:
    """Return what a replica asks for."""
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
    """Return all of a demand that is not an amount: which devices, nodes and clusters, and what network."""
    return demand.devices, demand.nodes, demand.gateway, demand.network


def dominates(more: RequestedAmounts, less: RequestedAmounts) -> bool:
    """Tell whether no node can hold `more` that cannot hold `less`, both by the same rules.

    That is so when no amount of `more` is smaller. A node with several devices in MIG mode is the exception:
    it takes one instance after the other, and smaller ones may end up where they block more. So where `less`
    asks for several devices, it has to ask for just the same memory of each.
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
    """The smallest requests that nothing could hold: with each set of rules, those that include no other."""

    def __init__(self) -> None:
        self._refused: defaultdict[Hashable, list[RequestedAmounts]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._refused.values()))

    def add(self, rules: Hashable, requested: RequestedAmounts) -> None:
        """Note that no replica that asks for so much fits anywhere."""
        known = self._refused[rules]
        if not any(dominates(requested, each) for each in known):
            known[:] = [requested, *(each for each in known if not dominates(each, requested))]

    def is_infeasible(self, rules: Hashable, requested: RequestedAmounts) -> bool:
        """Tell whether a replica surely does not fit either."""
        known = self._refused.get(rules, ())
        for at, each in enumerate(known):
            if dominates(requested, each):
                if at:  # what answered last is likely to answer next
                    known[at], known[at - 1] = known[at - 1], each  # type: ignore[index]  # it is a list, as it is not empty
                return True
        return False

    def clear(self) -> None:
        """Forget everything: something may fit now."""
        self._refused.clear()
