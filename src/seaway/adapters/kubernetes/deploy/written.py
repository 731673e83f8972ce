"""What was written for which attempt, until watches have told of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from seaway.adapters.kubernetes.collect.owned import Place

MOST = 10_000


class Written:
    """Remembers the latest objects that were written."""

    def __init__(self) -> None:
        self._places: OrderedDict[Hashable, set[Place]] = OrderedDict()

    def of(self, key: Hashable) -> set[Place]:
        """Return what was written for a key, to be read and added to."""
        found = self._places.setdefault(key, set())
        self._places.move_to_end(key)
        while len(self._places) > MOST:
            self._places.popitem(last=False)
        return found

    def forget(self, key: Hashable) -> None:
        """Forget what was written for a key."""
        self._places.pop(key, None)
