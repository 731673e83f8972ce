"""Caches of results that depend only on the fleet and the rules of a job."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from seaway.scheduling.arrays import UInt8
from seaway.scheduling.snapshot.demands import FleetVersion
from seaway.scheduling.snapshot.snapshot import Snapshot

Rules = TypeVar("Rules", bound=Hashable)


Tables = TypeVar("Tables")


class FleetCache(Generic[Tables]):
    """Cache of tables of a fleet, shared by a snapshot and its copies until the fleet changes.

    The key is the fleet version, which a snapshot, its demands and their copies share. The entry is removed with its
    key.

    Parameters
    ----------
    make
        Computes the tables, independently of allocations. Callers must not change them.
    """

    def __init__(self, make: Callable[[Snapshot], Tables]) -> None:
        self._make = make
        self._known: WeakKeyDictionary[FleetVersion, Tables] = WeakKeyDictionary()

    def __call__(self, snapshot: Snapshot) -> Tables:
        """Return the tables of a snapshot's fleet."""
        mark = snapshot.demands.fleet_version
        known = self._known.get(mark)
        if known is None:
            known = self._known[mark] = self._make(snapshot)
        return known


class RuleCache(Generic[Rules]):
    """Cache of the results of a filter, for each fleet.

    Parameters
    ----------
    answer
        Computes a result from a snapshot's fleet, independently of allocations.
    """

    def __init__(self, answer: Callable[[Snapshot, Rules], UInt8]) -> None:
        self._answer = answer
        self._known: FleetCache[dict[Rules, UInt8]] = FleetCache(lambda _: {})

    def __call__(self, snapshot: Snapshot, rules: Rules) -> UInt8:
        """Return the result for `rules`. Callers must not change it."""
        known = self._known(snapshot)
        found = known.get(rules)
        if found is None:
            found = known[rules] = self._answer(snapshot, rules)
        return found


class SnapshotCache(Generic[Tables]):
    """Cache of mutable tables of one snapshot, not shared with copies, until its fleet changes.

    Parameters
    ----------
    make
        Creates the tables.
    """

    def __init__(self, make: Callable[[Snapshot], Tables]) -> None:
        self._make = make
        self._known: WeakKeyDictionary[Snapshot, tuple[FleetVersion, Tables]] = WeakKeyDictionary()

    def __call__(self, snapshot: Snapshot) -> Tables:
        """Return the tables of a snapshot."""
        known = self._known.get(snapshot)
        if known is None or known[0] is not snapshot.demands.fleet_version:
            known = self._known[snapshot] = snapshot.demands.fleet_version, self._make(snapshot)
        return known[1]
