"""Answers that hang on a fleet and on a job's rules alone, worked out once and then remembered."""

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
    """Cache of tables of a fleet, for a snapshot and all its copies, until the fleet changes.

    The key is the mark that copies of a snapshot and of its demands share. The entry is dropped with it.

    Parameters
    ----------
    make
        Computes the tables, independent of allocations. Callers must not change them.
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
    """Remembers a filter's answers, for each fleet.

    Parameters
    ----------
    answer
        Works out an answer from a snapshot's fleet, without a look at what is placed on it.
    """

    def __init__(self, answer: Callable[[Snapshot, Rules], UInt8]) -> None:
        self._answer = answer
        self._known: FleetCache[dict[Rules, UInt8]] = FleetCache(lambda _: {})

    def __call__(self, snapshot: Snapshot, rules: Rules) -> UInt8:
        """Return the answer for `rules`; callers leave it as it is."""
        known = self._known(snapshot)
        found = known.get(rules)
        if found is None:
            found = known[rules] = self._answer(snapshot, rules)
        return found


class SnapshotCache(Generic[Tables]):
    """Keeps tables that one snapshot writes to, and no copy of it, until its fleet changes.

    Parameters
    ----------
    make
        Makes them.
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
