"""Which objects there are of each attempt, so that all of them can be removed, and that one is gone is noticed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence, Set

from seaway.adapters.kubernetes.collect.ours import attempt_of
from seaway.adapters.kubernetes.objects.meta import Item, Meta
from seaway.adapters.kubernetes.objects.page import Broken
from seaway.adapters.kubernetes.templates.labels import CLUSTER

Place = tuple[str, str]
"""Path of all objects of a kind, and ``namespace/name``."""

Key = tuple[str, int, str]
"""Job, attempt and cluster."""


class Owned:
    """Keeps the objects of attempts, of one API server. For one event loop.

    Parameters
    ----------
    namespace
        Where they are.
    missed
        Told of attempts of which a workload is gone.

    Attributes
    ----------
    workloads
        The kinds of workloads, by the path of all of their objects.
    """

    def __init__(self, namespace: str, missed: Callable[[Key], None]) -> None:
        self._namespace = namespace
        self._missed = missed
        self.workloads: set[str] = set()
        self._places: defaultdict[Key, set[Place]] = defaultdict(set)
        self._keys: dict[Place, Key] = {}
        self._idle: set[Key] = set()

    def of(self, key: Key) -> set[Place]:
        """Return the objects of an attempt for a cluster."""
        return set(self._places[key]) if key in self._places else set()

    def idle(self) -> Set[Key]:
        """Return the attempts of which there are objects, but no workload, as it is kept up to date."""
        return self._idle

    def put(self, kind: str, meta: Meta) -> None:
        """Note that an object is there."""
        owner = attempt_of(meta, self._namespace)
        if owner:
            place = (kind, f"{meta.namespace}/{meta.name}")
            self._keys[place] = key = (*owner, meta.annotations.get(CLUSTER, ""))
            self._places[key].add(place)
            self._sort(key)

    def drop(self, kind: str, full_name: str) -> None:
        """Note that an object is gone."""
        place = (kind, full_name)
        key = self._keys.pop(place, None)
        if key:
            self._places[key].discard(place)
            if not self._places[key]:
                del self._places[key]
            self._sort(key)
            if kind in self.workloads:
                self._missed(key)

    def _sort(self, key: Key) -> None:
        """Note whether an attempt has objects, but no workload."""
        places = self._places.get(key)
        if places and self.workloads.isdisjoint(kind for kind, _ in places):
            self._idle.add(key)
        else:
            self._idle.discard(key)


class OwnedSink:
    """Tells of all objects of one kind.

    Parameters
    ----------
    kind
        The path of all of its objects.
    runs
        Whether it is one of workloads.
    """

    def __init__(self, owned: Owned, kind: str, *, runs: bool = False) -> None:
        self._owned = owned
        self._kind = kind
        if runs:
            owned.workloads.add(kind)
        self._names: set[str] = set()

    async def replace(self, items: Sequence[Item]) -> None:
        """Take these for all there are."""
        for name in self._names - {each.metadata.full_name for each in items}:
            self._owned.drop(self._kind, name)
        self._names.clear()
        for each in items:
            self.put(each)

    def put(self, item: Item) -> None:
        """Take an object as it is now."""
        self._names.add(item.metadata.full_name)
        self._owned.put(self._kind, item.metadata)

    def drop(self, item: Item) -> None:
        """Note that an object is gone."""
        self._names.discard(item.metadata.full_name)
        self._owned.drop(self._kind, item.metadata.full_name)

    def broken(self, what: Broken) -> None:
        """Do nothing: metadata that cannot be read names no attempt."""
