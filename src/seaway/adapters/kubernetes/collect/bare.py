"""Attempts whose workloads are there, but not one pod: nobody may be at work on them, and no pod could say so.

References
----------
Kubernetes documentation, "Jobs": suspending one. Kueue, and others who let work in, hold workloads back by that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from seaway.adapters.kubernetes.collect.denials import Attempt
from seaway.adapters.kubernetes.collect.lasting import Lasting
from seaway.adapters.kubernetes.collect.limits import Limits
from seaway.adapters.kubernetes.collect.workloads import Workload
from seaway.domain.deployment import Cause, Copy, CopyPhase

NO_POD_YET = "no pod of it is made yet, and nobody says why"
NO_POD = "no pod of it was made, and nobody says why: what runs workloads of its kind may not be at work there"


class Bare:
    """Keeps the attempts of a cluster that have no pod, and since when.

    Parameters
    ----------
    soon
        Has something called after so many seconds.
    told
        Called with an attempt of which something else is to be said.
    """

    def __init__(
        self,
        limits: Limits,
        soon: Callable[[float, Callable[[], None]], object],
        told: Callable[[Attempt], None],
    ) -> None:
        self._limits = limits
        self._told = told
        self._held: dict[Attempt, str] = {}
        self._late: Lasting[Attempt] = Lasting(soon)
        self._hopeless: Lasting[Attempt] = Lasting(soon)

    def watch(self, key: Attempt, workloads: Collection[Workload], pods: Collection[object]) -> None:
        """Take what there is of an attempt now."""
        running = [each for each in workloads if each.replicas]
        if pods or not running or any(each.ended for each in running):
            self._late.end(key)
            self._hopeless.end(key)
            self._held.pop(key, None)
            return
        held = next((each.held for each in running if each.held), "")
        if self._held.get(key) != held:  # who was held back until now had no chance
            self._hopeless.end(key)
        self._held[key] = held
        self._late.begin(key, held, self._limits.turn_s, lambda: self._is_late(key))

    def weigh(self, key: Attempt, copy: Copy | None) -> Copy | None:
        """Say how a copy does, given for how long it has had no pod."""
        if copy is None or key not in self._late:
            return copy
        if key in self._hopeless:
            return replace(copy, phase=CopyPhase.FAILED, reason=NO_POD, cause=Cause.DENIED)
        return replace(copy, reason=self._held[key] or NO_POD_YET)

    def _is_late(self, key: Attempt) -> None:
        if not self._held[key]:
            self._hopeless.begin(key, "", self._limits.stuck_s, lambda: self._told(key))
        self._told(key)
