"""Conservative backfill: each job has a planned start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from seaway.scheduling.arrays import Int64
from seaway.scheduling.queueing.backfill import (
    FreeOverTime,
)
from seaway.simulation.waiting.world import Key, World, always


class Planned:
    """Each job has a planned start, the earliest one that delays no job before it.

    Plans count amounts. A job that does not fit at its time for another reason gets the next time.

    References
    ----------
    Mu'alem, Feitelson, as above (conservative backfilling).
    """

    def __init__(self, world: World, key: Callable[[int], Key], *, in_arrival_order: bool) -> None:
        self._world = world
        self._key = key
        self._in_arrival_order = in_arrival_order
        self._plan = FreeOverTime(world.free(), 0)
        self._starts: list[tuple[int, int]] = []  # planned times and numbers, a heap
        self._waiting: dict[int, int] = {}  # numbers with their planned times; -1 for never
        self._arrived: list[int] = []

    def freed(self, numbers: Sequence[int], nodes: Int64) -> None:
        """Take note of nothing: the plan has the ends of jobs."""

    def join(self, number: int) -> None:
        """Add a job. It is planned together with the others of this moment."""
        self._arrived.append(number)

    def schedule(self, now_s: int) -> None:
        """Plan the jobs that arrived, and start those that are due."""
        self._plan.forget_before(now_s)
        if self._arrived and not self._in_arrival_order:
            self._plan_all_again(now_s)
        else:
            for number in self._arrived:
                self._place(number, now_s)
        self._arrived.clear()
        due = []
        while self._starts and self._starts[0][0] <= now_s:
            due.append(heappop(self._starts)[1])
        for number in due:
            if self._world.start(number, always) is None:
                self._postpone(number)
            else:
                del self._waiting[number]

    def _place(self, number: int, after_s: int) -> None:
        need, lasts_s = self._world.needs[number], int(self._world.lasts_s[number])
        starts_s = self._plan.earliest_start(need, lasts_s, after_s)
        self._waiting[number] = starts_s
        if starts_s >= 0:
            self._plan.add(starts_s, lasts_s, -need)
            heappush(self._starts, (starts_s, number))

    def _postpone(self, number: int) -> None:
        """Plan a job for the next time at which another ends; it never starts if none does."""
        self._withdraw(number)
        self._waiting[number] = -1
        if self._world.ends:
            self._place(number, self._world.ends[0][0])

    def _withdraw(self, number: int) -> None:
        need, lasts_s = self._world.needs[number], int(self._world.lasts_s[number])
        self._plan.add(self._waiting[number], lasts_s, need)

    def _plan_all_again(self, now_s: int) -> None:
        """Plan all jobs in order, since a job that arrived may go before others."""
        for number, starts_s in self._waiting.items():
            if starts_s >= 0:
                self._withdraw(number)
        self._starts.clear()
        for number in sorted([*self._waiting, *self._arrived], key=self._key):
            self._place(number, now_s)

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._waiting))
