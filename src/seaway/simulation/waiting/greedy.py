"""Greedy backfill: every job that fits starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import DEMAND_BANDWIDTH
from seaway.scheduling.kernels.queries import fitting_demands
from seaway.scheduling.profile import Profile
from seaway.simulation.waiting.world import Key, Kind, World, always


@dataclass(slots=True)
class Greedy:
    """Every job that fits starts. Jobs are grouped by kind, so that a kind that does not fit is tried only once."""

    world: World
    key: Callable[[int], Key]
    kinds: dict[Kind, list[Key]] = field(default_factory=dict)
    needs: dict[Kind, Int64] = field(default_factory=dict)

    def freed(self, numbers: Sequence[int], nodes: Int64) -> None:
        """Try the queue once from the front, and start the jobs that fit."""
        nodes = np.unique(nodes)
        heads = self._heads(self._may_fit(nodes, list(self.kinds)))
        while heads:
            (_, number), kind = heappop(heads)
            if self.world.start(number, always) is not None:
                self._leave(kind)
                heads = self._heads(self._may_fit(nodes, [kind for _, kind in heads] + [kind] * (kind in self.kinds)))

    def join(self, number: int) -> None:
        """Start a job. It waits if it does not fit, or if an equal job waits."""
        kind = self.world.kind(number)
        if kind in self.kinds or self.world.start(number, always) is None:
            heappush(self.kinds.setdefault(kind, []), self.key(number))
            self.needs.setdefault(kind, self.world.needs[number])

    def schedule(self, now_s: int) -> None:
        """Start nothing: jobs start when they arrive, and when others end."""

    def _heads(self, kinds: Iterable[Kind]) -> list[tuple[Key, Kind]]:
        heads = [(self.kinds[kind][0], kind) for kind in kinds]
        heapify(heads)
        return heads

    def _leave(self, kind: Kind) -> None:
        heappop(self.kinds[kind])
        if not self.kinds[kind]:
            del self.kinds[kind]

    def _may_fit(self, freed: Int64, kinds: list[Kind]) -> list[Kind]:
        """Return the kinds that may fit after jobs ended on the nodes `freed`, shape (X,).

        A waiting job did not fit before, so it can only fit on these nodes, unless it waits for bandwidth or was
        deferred. This is true for profiles; other policies may consider other nodes.
        """
        if not kinds or not isinstance(self.world.policy, Profile):
            return kinds
        snapshot = self.world.snapshot
        enough = (np.array([self.needs[kind] for kind in kinds]) <= self.world.free()).all(axis=1)
        lines = np.array([kind[1] for kind in kinds], np.int64)
        may_fit = fitting_demands(snapshot.arrays, snapshot.demands.arrays, lines, freed) != 0
        may_fit |= snapshot.demands.arrays.amounts[lines, DEMAND_BANDWIDTH] > 0
        held = {self.world.kind(number) for number in self.world.held}
        may_fit |= np.array([kind[4] > 0 or kind in held for kind in kinds], np.bool_)
        return [kinds[at] for at in np.flatnonzero(may_fit & enough)]

    def __iter__(self) -> Iterator[int]:
        return (number for same in self.kinds.values() for _, number in same)
