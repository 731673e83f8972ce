"""Requests that certainly do not fit, so that they need no try."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from seaway.scheduling.cycle.jobs import Kind
from seaway.scheduling.cycle.reserve import Reservations, exceeds
from seaway.scheduling.cycle.state import State
from seaway.scheduling.infeasibility_cache import InfeasibilityCache
from seaway.scheduling.profile import Profile


class InfeasibleKinds:
    """Requests that do not fit since capacity was last released.

    Parameters
    ----------
    state
        What is decided about.
    """

    def __init__(self, state: State, reservations: Reservations) -> None:
        self._state = state
        self._reservations = reservations
        self._version = -1
        self._free: dict[bool, tuple[int, int, int]] = {}
        self._caches = {False: InfeasibilityCache(), True: InfeasibilityCache()}
        self._together = set[tuple[bool, Profile, Hashable]]()  # jobs of several replicas
        self._known = set[tuple[bool, Profile, Kind]]()

    def note(self, kinds: Iterable[Kind], profile: Profile, by_all: bool) -> None:
        """Record the kinds of rejected jobs; `by_all` if they could use capacity reserved for others."""
        self._follow()
        seen = (False, True) if by_all else (False,)
        for each in kinds:
            for by in seen:
                if each.alone:
                    self._caches[by].add(each.rules, each.asked)
                else:
                    self._together.add((by, profile, each.size))

    def note_less(self) -> None:
        """Record that less is free than before."""
        self._free.clear()

    def covers(self, kind: Kind, profile: Profile, *, by_all: bool) -> bool:
        """Report whether jobs of a kind do not fit; `by_all` if they could use capacity reserved for others."""
        self._follow()
        known = by_all, profile, kind
        if known in self._known:
            return True
        if (
            self._caches[by_all].is_infeasible(kind.rules, kind.asked)
            or (by_all, profile, kind.size) in self._together
            or exceeds(kind.requested, self._most_free(by_all=by_all))
        ):
            self._known.add(known)
            return True
        return False

    def _most_free(self, *, by_all: bool) -> tuple[int, int, int]:
        free = self._free.get(by_all)
        if free is None:
            free = self._free[by_all] = self._reservations.most_free(by_all=by_all)
        return free

    def _follow(self) -> None:
        """Forget all if capacity was released."""
        if self._version != self._state.fleet.version:
            self._version = self._state.fleet.version
            for each in self._caches.values():
                each.clear()
            self._together.clear()
            self._known.clear()
            self._free.clear()
