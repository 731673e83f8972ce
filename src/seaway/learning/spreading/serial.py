"""One thing after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from seaway.learning.spreading.spread import Item, Result


class Serial:
    """Does it here."""

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task with each item; see `seaway.learning.spreading.spread.Spread`."""
        for at, item in enumerate(items):
            yield at, task(item)
