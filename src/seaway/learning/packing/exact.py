"""The packing of most jobs by constraint programming: it finds what is best, and proves it, where there is little."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from seaway.learning.packing.packing import Needs, Seat
from seaway.learning.packing.programme import Effort, Programme
from seaway.learning.packing.solver import solve
from seaway.scheduling.columns import GATEWAY_IN, GATEWAY_OUT

Counts = dict[tuple[int, int], int]
"""Number of jobs of a kind on a node, or with a slice of a device."""


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


MAX_PAIRS = 4_000
"""Kinds of jobs times nodes that it is asked about at most; above, searching finds more in the same time."""


class Exact:
    """The problem, written for the solver.

    Parameters
    ----------
    needs
        What jobs need; must be additive.
    """

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._alike = Alike(needs)
        self._programme = Programme()
        self._on_node: dict[tuple[int, int], int] = {}
        self._on_device: dict[tuple[int, int], int] = {}
        for k in needs.kinds:
            self._add_kind(k)
        nodes = sorted({n for _, n in self._on_node})
        for n in nodes:
            self._add_node(n)
        self._add_links()
        self._order_alike()
        self._programme.goal = list(self._on_node.values())

    @staticmethod
    def suits(needs: Needs) -> bool:
        """Tell whether the solver can be asked, and answers in time."""
        return needs.additive and sum(map(len, needs.nodes.values())) <= MAX_PAIRS

    def solve(self, effort: Effort, hint: Mapping[int, Seat]) -> tuple[dict[int, Seat], int]:
        """Search.

        Parameters
        ----------
        hint
            A packing to begin with.

        Returns
        -------
        tuple
            Where each job is, by its number, and how many no packing exceeds.

        Raises
        ------
        RejectedError, UnavailableError
            As `seaway.learning.packing.solver.solve` does.
        """
        self._programme.start = self._hint(hint)
        solution = solve(self._programme, effort)
        if solution.values is None:
            return {}, sum(map(len, self._needs.jobs.values()))
        return self._seats(solution.values), solution.bound

    def _add_kind(self, k: int) -> None:
        needs, programme = self._needs, self._programme
        jobs, gpus = len(needs.jobs[k]), needs.gpus(k)
        for n in needs.nodes[k]:
            here = self._on_node[k, n] = programme.add_variable(jobs)
            devices = [d for d in needs.devices(n) if (k, d) in needs.slots]
            for d in devices:
                alone = len(devices) == gpus
                self._on_device[k, d] = here if alone else programme.add_variable(jobs)
                if not alone:
                    programme.limit([(1, self._on_device[k, d]), (-1, here)], 0)  # no job has two slices of one device
            if gpus and len(devices) > gpus:
                programme.limit([*((1, self._on_device[k, d]) for d in devices), (-gpus, here)], 0, least=0)
        programme.limit(((1, self._on_node[k, n]) for n in needs.nodes[k]), jobs)

    def _add_node(self, n: int) -> None:
        needs, limit = self._needs, self._programme.limit
        here = {k: self._on_node[k, n] for k in needs.kinds if (k, n) in self._on_node}
        cpu, memory, pods = needs.capacity(n)
        limit(((needs.cpu_memory(k)[0], count) for k, count in here.items()), cpu)
        limit(((needs.cpu_memory(k)[1], count) for k, count in here.items()), memory)
        limit(((1, count) for count in here.values()), pods)
        for d in needs.devices(n):
            slots = {k: needs.slots[k, d] for k in here if (k, d) in self._on_device}
            there = needs.device_capacity(d)
            for figure in ("memory_mib", "core_milli", "slots"):
                taken = ((getattr(slot, figure), self._on_device[k, d]) for k, slot in slots.items())
                limit(taken, getattr(there, figure))

    def _add_links(self) -> None:
        """Keep the bandwidth of links, and what the interfaces of gateways carry in and out."""
        needs = self._needs
        taken: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
        there: dict[tuple[str, int, int], int] = {}
        for (k, n), count in self._on_node.items():
            source, target, mbps = needs.link(k, n)
            if not mbps:
                continue
            for budget, free in (
                (("link", source, target), needs.bandwidth[source, target]),
                (("out", source, 0), needs.gateways[GATEWAY_OUT, source]),
                (("in", target, 0), needs.gateways[GATEWAY_IN, target]),
            ):
                taken[budget].append((mbps, count))
                there[budget] = int(free)
        for budget, terms in taken.items():
            self._programme.limit(terms, there[budget])

    def _order_alike(self) -> None:
        """Put nodes that are alike in one order, and devices: by jobs, and by memory taken."""
        for nodes in self._alike.nodes:
            self._falling([[(1, count) for (_, n), count in self._on_node.items() if n == here] for here in nodes])
        for devices in self._alike.devices:
            self._falling(
                [
                    [
                        (self._needs.slots[k, d].memory_mib, count)
                        for (k, d), count in self._on_device.items()
                        if d == here
                    ]
                    for here in devices
                ]
            )

    def _falling(self, sums: Sequence[Sequence[tuple[int, int]]]) -> None:
        for first, second in pairwise(sums):
            self._programme.limit([*second, *((-times, count) for times, count in first)], 0)

    def _hint(self, seats: Mapping[int, Seat]) -> dict[int, int]:
        """Return the values that a packing is, to begin with."""
        on_node, on_device = self._alike.in_order(seats)
        values = {count: on_device.get(at, 0) for at, count in self._on_device.items()}
        return values | {count: on_node.get(at, 0) for at, count in self._on_node.items()}

    def _seats(self, values: Sequence[int]) -> dict[int, Seat]:
        """Deal the jobs of each kind out over what the solver decided for the kind."""
        seats: dict[int, Seat] = {}
        for k, jobs in self._needs.jobs.items():
            left = iter(jobs)
            for n in self._needs.nodes[k]:
                gpus = self._needs.gpus(k)
                on = {
                    d: values[self._on_device[k, d]]
                    for d in self._needs.devices(n)
                    if gpus and (k, d) in self._on_device
                }
                for _ in range(values[self._on_node[k, n]]):
                    fullest = sorted(on, key=lambda d: -on[d])[:gpus]  # so that what is left never needs one twice
                    for d in fullest:
                        on[d] -= 1
                    seats[next(left)] = Seat(n, tuple(sorted(fullest)))
        return seats
