"""What spreads work, whatever does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from seaway.domain.errors import UnavailableError

Item = TypeVar("Item")
Result = TypeVar("Result")

Tell = Callable[[str], None]
"""Told a clause for people to read: that a worker died, and what comes of it."""

TRIES = 2
"""How often an item is tried whose worker dies on it."""


class Spread(Protocol):
    """Does the same with many things, by one worker or by several.

    What comes out depends on the items alone: whatever is drawn has to use a seed that the item carries. Tasks,
    items and results travel as pickles; a task is a function that its module names.
    """

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task with each item.

        Whoever stops asking, by an exception or ^C too, ends the workers.

        Returns
        -------
        Iterator
            An item's number and what came of it, in the order in which items get done.

        Raises
        ------
        UnavailableError
            When a worker died on an item, and another one on trying it again.
        Exception
            Whatever a task raises.
        """


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Pass results on in the order of their items, each as soon as none is missing before it."""
    early: dict[int, Result] = {}
    due = 0
    for at, result in results:
        early[at] = result
        while due in early:
            yield early.pop(due)
            due += 1


class Tries:
    """Counts how often each item was tried, and tells of workers that died.

    Parameters
    ----------
    tell
        Who is told.
    count
        How many items there are.
    """

    def __init__(self, tell: Tell, count: int) -> None:
        self._tell = tell
        self._died = [0] * count

    def died(self, at: int, why: str) -> None:
        """Note that a worker died on an item, which is then tried again.

        Parameters
        ----------
        why
            How it ended, a clause.

        Raises
        ------
        UnavailableError
            When it may not be tried again.
        """
        self._died[at] += 1
        which = f"a worker {why} at {at + 1} of {len(self._died)}"
        if self._died[at] == TRIES:
            raise UnavailableError(f"{which}, and so did one before it")
        self._tell(f"{which}; another one tries it again")


class Serial:
    """Does it here."""

    def map(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """Do a task with each item; see `seaway.learning.spreading.spread.Spread`."""
        for at, item in enumerate(items):
            yield at, task(item)
