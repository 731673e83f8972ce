"""Exact solution of small packing problems by constraint programming."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from seaway.learning.packing.integer_program import Effort, IntegerProgram
from seaway.learning.packing.packing import Assignment, PackingProblem
from seaway.learning.packing.solver import solve
from seaway.scheduling.columns import GATEWAY_IN, GATEWAY_OUT

Counts = dict[tuple[int, int], int]
"""Number of jobs by kind and node, or by kind and device."""


class Symmetries:
    """Groups of interchangeable nodes of a cluster, and of interchangeable devices of a node.

    Attributes
    ----------
    nodes, devices
        The groups, each sorted.
    """

    def __init__(self, problem: PackingProblem) -> None:
        self._problem = problem
        used = sorted({n for nodes in problem.nodes.values() for n in nodes})
        kinds: dict[int, list[int]] = defaultdict(list)
        for k, nodes in problem.nodes.items():
            for n in nodes:
                kinds[n].append(k)
        shares: dict[int, list[Hashable]] = defaultdict(list)
        for (k, d), share in problem.shares.items():
            shares[d].append((k, share))
        keys = {d: (problem.device_capacity(d), tuple(shares[d])) for n in used for d in problem.devices(n)}
        self.nodes = _groups(
            (n, (problem.cluster(n), problem.capacity(n), tuple(kinds[n]), tuple(keys[d] for d in problem.devices(n))))
            for n in used
        )
        self.devices = [group for n in used for group in _groups((d, keys[d]) for d in problem.devices(n))]

    def canonical_counts(self, assignments: Mapping[int, Assignment]) -> tuple[Counts, Counts]:
        """Count jobs by kind and node, and by kind and device, for the canonical form of a packing.

        In this form, interchangeable nodes are sorted by number of jobs, and interchangeable devices by allocated
        memory, in descending order.
        """
        on_node, on_device = self._counts(assignments)
        sorted_nodes, sorted_devices = on_node.copy(), on_device.copy()
        for group in self.nodes:
            totals = Counter({n: sum(on_node[n].values()) for n in group})
            for target, source in zip(group, sorted(group, key=lambda n: -totals[n]), strict=True):
                sorted_nodes[target] = on_node[source]
                for d, other in zip(self._problem.devices(target), self._problem.devices(source), strict=True):
                    sorted_devices[d] = on_device[other]
        for group in self.devices:
            fullest_first = sorted((sorted_devices[d] for d in group), key=lambda kinds: -self._memory(group[0], kinds))
            sorted_devices.update(zip(group, fullest_first, strict=True))
        return (
            {(k, n): count for n, kinds in sorted_nodes.items() for k, count in kinds.items()},
            {(k, d): count for d, kinds in sorted_devices.items() for k, count in kinds.items()},
        )

    def _counts(self, assignments: Mapping[int, Assignment]) -> tuple[dict[int, Counter[int]], dict[int, Counter[int]]]:
        on_node: dict[int, Counter[int]] = defaultdict(Counter)
        on_device: dict[int, Counter[int]] = defaultdict(Counter)
        for k, jobs in self._problem.jobs.items():
            for j in jobs:
                if j in assignments:
                    on_node[assignments[j].node][k] += 1
                    for d in assignments[j].devices:
                        on_device[d][k] += 1
        return on_node, on_device

    def _memory(self, d: int, kinds: Counter[int]) -> int:
        return sum(self._problem.shares[k, d].memory_mib * count for k, count in kinds.items())


def _groups(keyed: Iterable[tuple[int, Hashable]]) -> list[list[int]]:
    """Return the groups of members with equal keys, with at least two members."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for member, key in keyed:
        groups[key].append(member)
    return [group for group in groups.values() if len(group) > 1]


MAX_PAIRS = 4_000
"""Maximum number of feasible pairs of a kind of jobs and a node. Above, local search is better in the same time."""


class PackingModel:
    """Integer program of a packing problem, with a variable for the number of jobs of each kind on each node.

    Parameters
    ----------
    problem
        An additive problem.
    """

    def __init__(self, problem: PackingProblem) -> None:
        self._problem = problem
        self._symmetries = Symmetries(problem)
        self._program = IntegerProgram()
        self._on_node: dict[tuple[int, int], int] = {}
        self._on_device: dict[tuple[int, int], int] = {}
        for k in problem.kinds:
            self._add_kind(k)
        nodes = sorted({n for _, n in self._on_node})
        for n in nodes:
            self._add_node(n)
        self._add_links()
        self._break_symmetries()
        self._program.objective = list(self._on_node.values())

    @staticmethod
    def is_tractable(problem: PackingProblem) -> bool:
        """Report whether the solver supports a problem and is fast enough for it."""
        return problem.additive and sum(map(len, problem.nodes.values())) <= MAX_PAIRS

    def solve(self, effort: Effort, hint: Mapping[int, Assignment]) -> tuple[dict[int, Assignment], int]:
        """Solve the problem.

        Parameters
        ----------
        hint
            Initial packing.

        Returns
        -------
        tuple
            Assignments by number of the job, and an upper bound of their number.

        Raises
        ------
        RejectedError, UnavailableError
            As in `seaway.learning.packing.solver.solve`.
        """
        self._program.hint = self._hint(hint)
        solution = solve(self._program, effort)
        if solution.values is None:
            return {}, sum(map(len, self._problem.jobs.values()))
        return self._assignments(solution.values), solution.bound

    def _add_kind(self, k: int) -> None:
        problem, program = self._problem, self._program
        jobs, gpus = len(problem.jobs[k]), problem.gpus(k)
        for n in problem.nodes[k]:
            count = self._on_node[k, n] = program.add_variable(jobs)
            devices = [d for d in problem.devices(n) if (k, d) in problem.shares]
            for d in devices:
                uses_all = len(devices) == gpus
                self._on_device[k, d] = count if uses_all else program.add_variable(jobs)
                if not uses_all:  # a job has at most one slice of a device
                    program.add_constraint([(1, self._on_device[k, d]), (-1, count)], 0)
            if gpus and len(devices) > gpus:
                program.add_constraint([*((1, self._on_device[k, d]) for d in devices), (-gpus, count)], 0, lower=0)
        program.add_constraint(((1, self._on_node[k, n]) for n in problem.nodes[k]), jobs)

    def _add_node(self, n: int) -> None:
        problem, limit = self._problem, self._program.add_constraint
        counts = {k: self._on_node[k, n] for k in problem.kinds if (k, n) in self._on_node}
        cpu, memory, pods = problem.capacity(n)
        limit(((problem.cpu_memory(k)[0], count) for k, count in counts.items()), cpu)
        limit(((problem.cpu_memory(k)[1], count) for k, count in counts.items()), memory)
        limit(((1, count) for count in counts.values()), pods)
        for d in problem.devices(n):
            shares = {k: problem.shares[k, d] for k in counts if (k, d) in self._on_device}
            capacity = problem.device_capacity(d)
            for resource in ("memory_mib", "core_milli", "slots"):
                terms = ((getattr(share, resource), self._on_device[k, d]) for k, share in shares.items())
                limit(terms, getattr(capacity, resource))

    def _add_links(self) -> None:
        """Limit the bandwidth of links, and that of gateways in both directions."""
        problem = self._problem
        terms: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
        capacity: dict[tuple[str, int, int], int] = {}
        for (k, n), count in self._on_node.items():
            source, target, mbps = problem.link(k, n)
            if not mbps:
                continue
            for key, free in (
                (("link", source, target), problem.bandwidth[source, target]),
                (("out", source, 0), problem.gateways[GATEWAY_OUT, source]),
                (("in", target, 0), problem.gateways[GATEWAY_IN, target]),
            ):
                terms[key].append((mbps, count))
                capacity[key] = int(free)
        for key, each in terms.items():
            self._program.add_constraint(each, capacity[key])

    def _break_symmetries(self) -> None:
        """Require the canonical form of packings, see `Symmetries`."""
        for nodes in self._symmetries.nodes:
            self._add_descending(
                [[(1, count) for (_, n), count in self._on_node.items() if n == node] for node in nodes]
            )
        for devices in self._symmetries.devices:
            self._add_descending(
                [
                    [
                        (self._problem.shares[k, d].memory_mib, count)
                        for (k, d), count in self._on_device.items()
                        if d == device
                    ]
                    for device in devices
                ]
            )

    def _add_descending(self, sums: Sequence[Sequence[tuple[int, int]]]) -> None:
        for first, second in pairwise(sums):
            self._program.add_constraint([*second, *((-factor, count) for factor, count in first)], 0)

    def _hint(self, assignments: Mapping[int, Assignment]) -> dict[int, int]:
        """Return the values of variables for a packing."""
        on_node, on_device = self._symmetries.canonical_counts(assignments)
        values = {count: on_device.get(at, 0) for at, count in self._on_device.items()}
        return values | {count: on_node.get(at, 0) for at, count in self._on_node.items()}

    def _assignments(self, values: Sequence[int]) -> dict[int, Assignment]:
        """Distribute the jobs of each kind according to values of variables."""
        assignments: dict[int, Assignment] = {}
        for k, jobs in self._problem.jobs.items():
            unassigned = iter(jobs)
            for n in self._problem.nodes[k]:
                gpus = self._problem.gpus(k)
                slices = {
                    d: values[self._on_device[k, d]]
                    for d in self._problem.devices(n)
                    if gpus and (k, d) in self._on_device
                }
                for _ in range(values[self._on_node[k, n]]):
                    # Those with the most slices first, so that no later job needs two slices of one device.
                    chosen = sorted(slices, key=lambda d: -slices[d])[:gpus]
                    for d in chosen:
                        slices[d] -= 1
                    assignments[next(unassigned)] = Assignment(n, tuple(sorted(chosen)))
        return assignments
