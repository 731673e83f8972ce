"""Plain reference of the value of a node, written from the meaning of the tables of Seaway's policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seaway.domain.job import Demand
from seaway.domain.node import Node
from seaway.scheduling.policies.seaway.kernel import SeawayParams
from tests.unit.scheduling.twin import Card, Slice, card_takes

CELLS = 101


def cell_of(card: Card) -> tuple[int, int]:
    """Return the free memory and cores in whole hundredths; none where no slice is allowed."""
    device = card.device
    if not device.healthy or device.cordoned or len(card.held) >= device.share_limit:
        return 0, 0
    return (
        max(card.free_memory, 0) * 100 // max(device.memory_mib, 1),
        max(card.free_cores, 0) * 100 // max(device.core_milli, 1),
    )


def is_idle(card: Card) -> bool:
    """Report whether a device is open and has no slice."""
    device = card.device
    open_ = device.healthy and not device.cordoned and len(card.held) < device.share_limit
    return open_ and not card.held


def cell_left(card: Card, demand: Demand) -> tuple[int, int]:
    """Return the cell of a device after a slice of a demand; used hundredths are rounded up."""
    asked, device = Slice.of(demand), card.device
    memory = -(-asked.memory_mib * 100 // max(device.memory_mib, 1)) if asked.memory_mib else asked.percent
    core = -(-asked.cores_on(device) * 100 // max(device.core_milli, 1))
    free_memory, free_core = cell_of(card)
    return max(free_memory - memory, 0), max(free_core - core, 0)


def left_milli(card: Card) -> int:
    """Return the mean of a device's free cores and memory, thousandths."""
    device = card.device
    return (card.free_cores + card.free_memory * device.core_milli // max(device.memory_mib, 1)) // 2


@dataclass(frozen=True)
class Worth:
    """Values of one node from the tables."""

    params: SeawayParams
    n: int

    def of_cell(self, cell: tuple[int, int]) -> float:
        """D: value of the free part of a device."""
        return float(self.params.worth[self.params.size[self.n], cell[0] * CELLS + cell[1]])

    def served(self, row: int, amount: int, worth: float) -> float:
        """Return psi: the fraction of a value that CPU (row 0) or memory (1) serves, linear between steps."""
        size = self.params.size[self.n]
        table = self.params.served[2 * size + row]
        at = amount * self.params.served_step[row, size] / worth
        return float(np.interp(at, np.arange(len(table)), table))

    def hosted(self, cpu: int, idle: int) -> float:
        """H: value of the next multi-device job."""
        steps = self.params.cpu_steps
        line = int(self.params.kind[self.n]) * (len(steps) + 1) + int((steps <= cpu).sum())
        return float(self.params.hosting[line, min(idle, self.params.hosting.shape[1] - 1)])

    def of_node(self, cpu: int, memory: int, cells: list[tuple[int, int]], idle: int) -> float:
        """Return S psi(CPU, memory; S) + H(CPU, idle devices)."""
        worth = sum(self.of_cell(cell) for cell in cells)
        if worth <= 0:
            return self.hosted(cpu, idle)
        return worth * min(self.served(0, cpu, worth), self.served(1, memory, worth)) + self.hosted(cpu, idle)

    def change(self, node: Node, used: list[int], cards: list[Card], demand: Demand) -> float:
        """Return the change of a node's value by a replica that fits, on its best devices."""
        cpu, memory = node.cpu_milli - used[0], node.memory_mib - used[1]
        cells, idle = [cell_of(card) for card in cards], [is_idle(card) for card in cards]
        before = self.of_node(cpu, memory, cells, sum(idle))
        fitting = [at for at, card in enumerate(cards) if card_takes(card, demand)]
        gpus = demand.request.gpus
        choices = [[at] for at in fitting]
        if gpus != 1:
            choices = [sorted(fitting, key=lambda at: left_milli(cards[at]))[:gpus]]
        values = []
        for chosen in choices:
            after = [cell_left(card, demand) if at in chosen else cells[at] for at, card in enumerate(cards)]
            still_idle = sum(idle[at] and at not in chosen for at in range(len(cards)))
            rest = cpu - demand.request.cpu_milli, memory - demand.request.memory_mib
            values.append(self.of_node(*rest, after, still_idle))
        return max(values) - before


def prices(params: SeawayParams, free: dict[int, int]) -> list[float]:
    """Return the price of each kind, from the free cores of each.

    The scarcity of a set of kinds is the share of work that only it can serve over its share of the
    free cores, at most 1; the price of a kind is the sixth power of its scarcest set.
    """
    costs = [0.0] * len(params.price)
    for members, work in zip(params.group, params.group_work, strict=True):
        kinds = [int(kind) for kind in np.flatnonzero(members)]
        share = (1 + sum(free.get(kind, 0) for kind in kinds)) / (1 + sum(free.values()))
        for kind in kinds:
            costs[kind] = max(costs[kind], min(1.0, float(work) / share) ** 6)
    return costs
