"""Attempts that something in their cluster does not let in yet: a queue of it decides when their workloads may run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.limits import Lasting
from seaway.adapters.kubernetes.collect.rejections import Attempt
from seaway.domain.deployment import Cause, Copy, CopyPhase


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a workload is not let in.

    Attributes
    ----------
    reason
        What people read.
    hopeless
        Whether that stays so until somebody sets the queue up otherwise: no work that ends would change it.
    evicted
        Why it was taken out after it had been let in, which ends its pods; empty where it was not.
    """

    reason: str
    hopeless: bool = False
    evicted: str = ""


class Holds:
    """Keeps what is held back of attempts in one cluster, by who told of it.

    Parameters
    ----------
    later
        Has something called after so many seconds.
    told
        Called with an attempt of which something else is to be said.
    stuck_s
        How long what is hopeless holds devices before the cluster is taken to refuse it.
    """

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], object],
        told: Callable[[Attempt], None],
        stuck_s: float,
    ) -> None:
        self._told = told
        self._stuck_s = stuck_s
        self._stuck: Lasting[Attempt] = Lasting(later)
        self._of: defaultdict[Attempt, dict[str, Hold]] = defaultdict(dict)

    def put(self, key: Attempt, source: str, hold: Hold | None) -> None:
        """Take what a source says holds an attempt back; None for nothing, any more."""
        before = self._of[key].pop(source, None)
        if hold:
            self._of[key][source] = hold
        elif not self._of[key]:
            del self._of[key]
        if any(each.hopeless for each in self._of.get(key, {}).values()):
            self._stuck.begin(key, "", self._stuck_s, lambda: self._told(key))
        else:
            self._stuck.end(key)
        if hold != before:
            self._told(key)

    def weigh(self, key: Attempt, copy: Copy | None) -> Copy | None:
        """Say how a copy does, given what holds back those of its replicas that have no pod yet.

        Where pods were ended since their workload was taken out again, that says more than how they ended.
        """
        found = self._of.get(key)
        if not found or copy is None:
            return copy
        if copy.phase is CopyPhase.FAILED and copy.cause is Cause.INFRASTRUCTURE:
            evicted = next((each.evicted for each in found.values() if each.evicted), "")
            return replace(copy, reason=evicted) if evicted else copy
        if copy.phase is not CopyPhase.STARTING or all(each.pod for each in copy.replicas):
            return copy
        worst = min(found.values(), key=lambda each: not each.hopeless)
        if key in self._stuck:
            return replace(copy, phase=CopyPhase.FAILED, reason=worst.reason, cause=Cause.DENIED)
        return replace(copy, reason=worst.reason)
