"""The packing of most jobs by constraint programming: it finds what is best, and proves it, where there is little."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ortools.sat.python import cp_model

from seaway.learning.packing.alike import Alike
from seaway.learning.packing.needs import Needs
from seaway.learning.packing.packing import Seat
from seaway.scheduling.columns import GATEWAY_IN, GATEWAY_OUT

MOST_PAIRS = 4_000
"""Kinds of jobs times nodes that it is asked about at the most; above, searching finds more in the same time."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is spent.

    Attributes
    ----------
    seconds
        On the solver's own clock, which counts what it does: about those of a clock on the wall.
    workers, seed
        Its threads, and what everything drawn hangs on.
    """

    seconds: float
    workers: int
    seed: int


class Exact:
    """The problem, written for the solver.

    Parameters
    ----------
    needs
        What jobs need; has to be additive.
    """

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._alike = Alike(needs)
        self._model = cp_model.CpModel()
        self._on_node: dict[tuple[int, int], cp_model.IntVar] = {}
        self._on_device: dict[tuple[int, int], cp_model.IntVar] = {}
        for k in needs.kinds:
            self._add_kind(k)
        nodes = sorted({n for _, n in self._on_node})
        for n in nodes:
            self._add_node(n)
        self._add_links()
        self._order_alike()
        self._model.maximize(sum(self._on_node.values()))

    @staticmethod
    def suits(needs: Needs) -> bool:
        """Tell whether the solver can be asked, and answers in time."""
        return needs.additive and sum(map(len, needs.nodes.values())) <= MOST_PAIRS

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
        """
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = effort.workers
        solver.parameters.random_seed = effort.seed
        solver.parameters.max_deterministic_time = effort.seconds
        self._hint(hint)
        status = solver.solve(self._model)
        if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return {}, sum(map(len, self._needs.jobs.values()))
        return self._seats(solver), int(solver.best_objective_bound + 1e-6)

    def _add_kind(self, k: int) -> None:
        needs, model = self._needs, self._model
        jobs, gpus = len(needs.jobs[k]), needs.gpus(k)
        for n in needs.nodes[k]:
            here = self._on_node[k, n] = model.new_int_var(0, jobs, f"{k} on {n}")
            devices = [d for d in needs.devices(n) if (k, d) in needs.slots]
            for d in devices:
                alone = len(devices) == gpus
                self._on_device[k, d] = here if alone else model.new_int_var(0, jobs, f"{k} on device {d}")
                if not alone:
                    model.add(self._on_device[k, d] <= here)  # a job has no two slices of one device
            if gpus and len(devices) > gpus:
                model.add(sum(self._on_device[k, d] for d in devices) == gpus * here)
        model.add(sum(self._on_node[k, n] for n in needs.nodes[k]) <= jobs)

    def _add_node(self, n: int) -> None:
        needs = self._needs
        here = {k: self._on_node[k, n] for k in needs.kinds if (k, n) in self._on_node}
        cpu, memory, pods = needs.capacity(n)
        self._model.add(sum(needs.cpu_memory(k)[0] * count for k, count in here.items()) <= cpu)
        self._model.add(sum(needs.cpu_memory(k)[1] * count for k, count in here.items()) <= memory)
        self._model.add(sum(here.values()) <= pods)
        for d in needs.devices(n):
            slots = {k: needs.slots[k, d] for k in here if (k, d) in self._on_device}
            there = needs.device_capacity(d)
            for figure in ("memory_mib", "core_milli", "slots"):
                taken = sum(getattr(slot, figure) * self._on_device[k, d] for k, slot in slots.items())
                self._model.add(taken <= getattr(there, figure))

    def _add_links(self) -> None:
        """Keep the bandwidth of links, and what the interfaces of gateways carry in and out."""
        needs = self._needs
        taken: dict[tuple[str, int, int], list[Any]] = defaultdict(list)
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
                taken[budget].append(mbps * count)
                there[budget] = int(free)
        for budget, terms in taken.items():
            self._model.add(sum(terms) <= there[budget])

    def _order_alike(self) -> None:
        """Put nodes that are alike in one order, and devices: by jobs, and by memory taken."""
        for nodes in self._alike.nodes:
            self._falling([sum(count for (_, n), count in self._on_node.items() if n == here) for here in nodes])
        for devices in self._alike.devices:
            self._falling(
                [
                    sum(
                        self._needs.slots[k, d].memory_mib * count
                        for (k, d), count in self._on_device.items()
                        if d == here
                    )
                    for here in devices
                ]
            )

    def _falling(self, sums: Sequence[Any]) -> None:
        for first, second in pairwise(sums):
            self._model.add(first >= second)

    def _hint(self, seats: Mapping[int, Seat]) -> None:
        """Begin with a packing."""
        self._model.clear_hints()
        on_node, on_device = self._alike.in_order(seats)
        hints = {count.index: (count, on_device.get(at, 0)) for at, count in self._on_device.items()}
        hints |= {count.index: (count, on_node.get(at, 0)) for at, count in self._on_node.items()}
        for count, value in hints.values():
            self._model.add_hint(count, value)

    def _seats(self, solver: cp_model.CpSolver) -> dict[int, Seat]:
        """Deal the jobs of each kind out over what the solver decided for the kind."""
        seats: dict[int, Seat] = {}
        for k, jobs in self._needs.jobs.items():
            left = iter(jobs)
            for n in self._needs.nodes[k]:
                gpus = self._needs.gpus(k)
                on = {
                    d: solver.value(self._on_device[k, d])
                    for d in self._needs.devices(n)
                    if gpus and (k, d) in self._on_device
                }
                for _ in range(solver.value(self._on_node[k, n])):
                    fullest = sorted(on, key=lambda d: -on[d])[:gpus]  # so that what is left never needs one twice
                    for d in fullest:
                        on[d] -= 1
                    seats[next(left)] = Seat(n, tuple(sorted(fullest)))
        return seats
