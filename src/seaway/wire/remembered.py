"""What was made of the latest objects, so that it need not be made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


class Remembered(Generic[Given, Made]):
    """Makes something of objects that never change, and remembers it for the latest of them.

    Objects are told apart by identity, so that this works for what cannot be hashed and costs nothing
    for what is large. What is made is shared: nobody may change it.

    Parameters
    ----------
    make
        Makes it.
    most
        For how many objects it is remembered; they are kept alive meanwhile.
    """

    def __init__(self, make: Callable[[Given], Made], most: int) -> None:
        self._make = make
        self._most = most
        self._made: dict[int, tuple[Given, Made]] = {}

    def of(self, given: Given) -> Made:
        """Return what is made of an object."""
        found = self._made.get(id(given))
        if found is not None and found[0] is given:
            return found[1]
        made = self._make(given)
        while len(self._made) >= self._most:
            self._made.pop(next(iter(self._made)), None)
        self._made[id(given)] = (given, made)
        return made
