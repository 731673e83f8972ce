"""Greedy backfill: every job that fits starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from seaway.scheduling.arrays import Int64
from seaway.simulation.waiting.world import Key, Kind, World, always


@dataclass(slots=True)
class Greedy:
    """Every job that fits starts. Jobs are grouped by kind, so that a kind that does not fit is tried only once."""

    world: World
    key: Callable[[int], Key]
    kinds: dict[Kind, list[Key]] = field(default_factory=dict)

    def freed(self, numbers: Sequence[int], nodes: Int64) -> None:
        """Try the queue once from the front, and start the jobs that fit."""
        heads = self._heads(self.kinds, nodes)
        while heads:
            (_, number), kind = heappop(heads)
            if self.world.start(number, always) is not None:
                self._leave(kind)
                left = [kind for _, kind in heads] + [kind] * (kind in self.kinds)
                heads = self._heads(left, nodes)

    def join(self, number: int) -> None:
        """Start a job. It waits if it does not fit, or if an equal job waits."""
        kind = self.world.kind(number)
        if kind in self.kinds or self.world.start(number, always) is None:
            heappush(self.kinds.setdefault(kind, []), self.key(number))

    def schedule(self, now_s: int) -> None:
        """Start nothing: jobs start when they arrive, and when others end."""

    def _heads(self, kinds: Iterable[Kind], freed: Int64) -> list[tuple[Key, Kind]]:
        """Return the first jobs of the kinds that may fit after jobs ended on the nodes `freed`, as a heap."""
        first = {self.kinds[kind][0][1]: (self.kinds[kind][0], kind) for kind in kinds}
        heads = [first[number] for number in self.world.may_fit(list(first), freed)]
        heapify(heads)
        return heads

    def _leave(self, kind: Kind) -> None:
        heappop(self.kinds[kind])
        if not self.kinds[kind]:
            del self.kinds[kind]

    def __iter__(self) -> Iterator[int]:
        return (number for same in self.kinds.values() for _, number in same)
