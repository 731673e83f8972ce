"""What was written for which attempt, until watches have told of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from seaway.adapters.kubernetes.collect.owned import Key, Place

MOST = 10_000

Name = tuple[str, str, str]
"""Version, kind and name of an object."""


@dataclass(slots=True)
class _Creation:
    """What became of creating an attempt's objects.

    Attributes
    ----------
    places
        Where something was written, or may have been: whoever was not answered does not know.
    answered
        What need not be written again before all of it is, and where it stands.
    """

    places: set[Place] = field(default_factory=set)
    answered: dict[Name, Place] = field(default_factory=dict)


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

    def answered(self, key: Key, name: Name, place: Place) -> None:
        """Note that an object was written."""
        self._of(key).answered[name] = place

    def is_answered(self, key: Key, name: Name) -> bool:
        """Tell whether an object was written by an earlier try, which was not able to write all of them."""
        found = self._creations.get(key)
        return found is not None and name in found.answered

    def lose(self, key: Key, there: Collection[Place]) -> None:
        """Note that of what was written only this is there: the rest is written again by the next try."""
        if found := self._creations.get(key):
            found.answered = {name: place for name, place in found.answered.items() if place in there}

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
