"""Upper bound of the number of packed jobs: the fleet as one large machine with separate devices.

References
----------
Fekete, Schepers: New classes of fast lower bounds for bin packing problems. Mathematical Programming 91, 2001,
doi:10.1007/s101070100243 (the dual feasible functions u of section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seaway.learning.packing.needs import Needs
from seaway.learning.packing.programme import Effort, Programme
from seaway.learning.packing.solver import solve

SPENT_S = 2.0
"""Effort that goes into it at most."""

FUNCTIONS = 20
"""Number of dual feasible functions to try."""


def most_jobs(needs: Needs, seed: int) -> int:
    """Bound the jobs that any packing holds.

    Raises
    ------
    RejectedError, UnavailableError
        As `seaway.learning.packing.solver.solve` does.
    """
    programme = Programme()
    kinds = [k for k in needs.kinds if needs.nodes[k]]
    counts = {k: programme.add_variable(len(needs.jobs[k])) for k in kinds}
    for weights, there in _budgets(needs, kinds):
        programme.limit(((weights[k], counts[k]) for k in kinds), there)
    programme.goal = list(counts.values())
    return solve(programme, Effort(SPENT_S, workers=1, seed=seed)).bound


def _budgets(needs: Needs, kinds: list[int]) -> Iterator[tuple[Mapping[int, int], int]]:
    """Write budgets that every packing keeps: what a job of each kind takes of it at least, and what there is."""
    nodes = sorted({n for k in kinds for n in needs.nodes[k]})
    capacities = [needs.capacity(n) for n in nodes]
    yield {k: needs.cpu_memory(k)[0] for k in kinds}, sum(cpu for cpu, _, _ in capacities)
    yield {k: needs.cpu_memory(k)[1] for k in kinds}, sum(memory for _, memory, _ in capacities)
    yield dict.fromkeys(kinds, 1), sum(pods for _, _, pods in capacities)
    devices = sorted({d for _, d in needs.slots})
    if devices:
        there = [needs.device_capacity(d) for d in devices]
        yield from _of_devices(_least(needs, kinds, "memory_mib"), [each.memory_mib for each in there])
        yield from _of_devices(_least(needs, kinds, "core_milli"), [each.core_milli for each in there])


def _least(needs: Needs, kinds: list[int], figure: str) -> dict[int, tuple[int, int]]:
    """Tell how many slices a job of each kind has, and what each takes of its device at least."""
    least = dict.fromkeys(kinds, (0, 0))
    for (k, _), slot in needs.slots.items():
        gpus, amount = least[k]
        least[k] = needs.gpus(k), min(getattr(slot, figure), amount if gpus else getattr(slot, figure))
    return least


def _of_devices(least: Mapping[int, tuple[int, int]], there: list[int]) -> Iterator[tuple[Mapping[int, int], int]]:
    """Return budgets of device resources: of their sum, and of the number of slices of a size on one device.

    With capacity 1, the function u of order k maps x to itself if (k + 1) x is an integer, and otherwise to the integer
    part of (k + 1) x, divided by k. Slices that share a device sum up to at most 1 by that as well.
    """
    yield {k: gpus * amount for k, (gpus, amount) in least.items()}, sum(there)
    largest = max(there)
    for order in range(1, FUNCTIONS + 1 if largest else 1):
        weights = {}
        for k, (gpus, amount) in least.items():
            whole, rest = divmod((order + 1) * amount, largest)
            weights[k] = gpus * (whole * largest if rest else order * amount)
        yield weights, order * largest * len(there)
