"""What was written for which attempt, until watches have told of it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from seaway.adapters.kubernetes.collect.owned import Key, Place

MOST = 10_000

Name = tuple[str, str]
"""Kind and name of an object."""


@dataclass(slots=True)
class _Creation:
    """What became of creating an attempt's objects.

    Attributes
    ----------
    places
        Where something was written, or may have been: whoever was not answered does not know.
    answered
        What need not be written again before all of it is.
    """

    places: set[Place] = field(default_factory=set)
    answered: set[Name] = field(default_factory=set)


class Written:
    """Remembers the latest objects that were written."""

    def __init__(self) -> None:
        self._creations: OrderedDict[Key, _Creation] = OrderedDict()

    def places(self, key: Key) -> frozenset[Place]:
        """Return where something of an attempt may have been written."""
        found = self._creations.get(key)
        return frozenset(found.places) if found else frozenset()

    def begun(self, key: Key, place: Place) -> None:
        """Note that an object is about to be written."""
        self._of(key).places.add(place)

    def answered(self, key: Key, name: Name) -> None:
        """Note that an object was written."""
        self._of(key).answered.add(name)

    def is_answered(self, key: Key, name: Name) -> bool:
        """Tell whether an object was written by an earlier try, which was not able to write all of them."""
        found = self._creations.get(key)
        return found is not None and name in found.answered

    def count(self, key: Key) -> int:
        """Return how many objects of an attempt tries that did not write all of them have written."""
        found = self._creations.get(key)
        return len(found.answered) if found else 0

    def complete(self, key: Key) -> None:
        """Note that all of an attempt was written: when it is asked for again, something of it was lost."""
        if key in self._creations:
            self._creations[key].answered.clear()

    def forget(self, key: Key) -> None:
        """Forget what was written for an attempt."""
        self._creations.pop(key, None)

    def _of(self, key: Key) -> _Creation:
        found = self._creations.setdefault(key, _Creation())
        self._creations.move_to_end(key)
        while len(self._creations) > MOST:
            self._creations.popitem(last=False)
        return found
