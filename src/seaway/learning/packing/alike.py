"""Nodes and devices that could change places: which of them does what says nothing, so one order is enough."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping

from seaway.learning.packing.needs import Needs
from seaway.learning.packing.packing import Seat

Counts = dict[tuple[int, int], int]
"""How many jobs of a kind are on a node, or have a slice of a device."""


class Alike:
    """Groups of nodes of one cluster, and of devices of one node, that no job tells apart.

    Attributes
    ----------
    nodes, devices
        The groups, each in order.
    """

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        used = sorted({n for nodes in needs.nodes.values() for n in nodes})
        takes: dict[int, list[int]] = defaultdict(list)
        for k, nodes in needs.nodes.items():
            for n in nodes:
                takes[n].append(k)
        wanted: dict[int, list[Hashable]] = defaultdict(list)
        for (k, d), slot in needs.slots.items():
            wanted[d].append((k, slot))
        kinds = {d: (needs.device_capacity(d), tuple(wanted[d])) for n in used for d in needs.devices(n)}
        self.nodes = _groups(
            (n, (needs.cluster(n), needs.capacity(n), tuple(takes[n]), tuple(kinds[d] for d in needs.devices(n))))
            for n in used
        )
        self.devices = [group for n in used for group in _groups((d, kinds[d]) for d in needs.devices(n))]

    def in_order(self, seats: Mapping[int, Seat]) -> tuple[Counts, Counts]:
        """Count a packing's jobs by kind and node, and by kind and device, when alike ones have changed places.

        Of alike nodes the earlier then has as many jobs as the later, at least, and of devices as much memory taken.
        """
        on_node, on_device = self._counts(seats)
        moved, slices = on_node.copy(), on_device.copy()
        for group in self.nodes:
            count = Counter({n: sum(on_node[n].values()) for n in group})
            for here, there in zip(group, sorted(group, key=lambda n: -count[n]), strict=True):
                moved[here] = on_node[there]
                for d, other in zip(self._needs.devices(here), self._needs.devices(there), strict=True):
                    slices[d] = on_device[other]
        for group in self.devices:
            fullest_first = sorted((slices[d] for d in group), key=lambda kinds: -self._memory(group[0], kinds))
            slices.update(zip(group, fullest_first, strict=True))
        return (
            {(k, n): count for n, kinds in moved.items() for k, count in kinds.items()},
            {(k, d): count for d, kinds in slices.items() for k, count in kinds.items()},
        )

    def _counts(self, seats: Mapping[int, Seat]) -> tuple[dict[int, Counter[int]], dict[int, Counter[int]]]:
        on_node: dict[int, Counter[int]] = defaultdict(Counter)
        on_device: dict[int, Counter[int]] = defaultdict(Counter)
        for k, jobs in self._needs.jobs.items():
            for j in jobs:
                if j in seats:
                    on_node[seats[j].node][k] += 1
                    for d in seats[j].devices:
                        on_device[d][k] += 1
        return on_node, on_device

    def _memory(self, d: int, kinds: Counter[int]) -> int:
        return sum(self._needs.slots[k, d].memory_mib * count for k, count in kinds.items())


def _groups(keyed: Iterable[tuple[int, Hashable]]) -> list[list[int]]:
    """Return the groups of equal key that have two members or more."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for member, key in keyed:
        groups[key].append(member)
    return [group for group in groups.values() if len(group) > 1]
