"""Attempts that something in their cluster does not let in yet: a queue of it decides when their workloads may run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.limits import Debounce
from seaway.adapters.kubernetes.collect.rejections import Attempt
from seaway.domain.deployment import Cause, Workload, WorkloadPhase


@dataclass(frozen=True, slots=True)
class Gate:
    """Why a workload is not let in.

    Attributes
    ----------
    reason
        What people read.
    is_permanent
        Whether that stays so until a user sets the queue up otherwise: no work that ends would change it.
    evicted
        Why it was taken out after it had been let in, which ends its pods; empty where it was not.
    """

    reason: str
    is_permanent: bool = False
    evicted: str = ""


class Gates:
    """Keeps what is held back of attempts in one cluster, by who told of it.

    Parameters
    ----------
    later
        Has something called after so many seconds.
    told
        Called with an attempt of which something else is to be said.
    pod_start_timeout_s
        How long what is hopeless holds devices before the cluster is taken to refuse it.
    """

    def __init__(
        self,
        schedule: Callable[[float, Callable[[], None]], object],
        notify: Callable[[Attempt], None],
        pod_start_timeout_s: float,
    ) -> None:
        self._notify = notify
        self._stuck_s = pod_start_timeout_s
        self._stuck: Debounce[Attempt] = Debounce(schedule)
        self._by_attempt: defaultdict[Attempt, dict[str, Gate]] = defaultdict(dict)

    def put(self, key: Attempt, source: str, gate: Gate | None) -> None:
        """Take what a source says holds an attempt back; None for nothing, any more."""
        before = self._by_attempt[key].pop(source, None)
        if gate:
            self._by_attempt[key][source] = gate
        elif not self._by_attempt[key]:
            del self._by_attempt[key]
        if any(each.is_permanent for each in self._by_attempt.get(key, {}).values()):
            self._stuck.begin(key, "", self._stuck_s, lambda: self._notify(key))
        else:
            self._stuck.end(key)
        if gate != before:
            self._notify(key)

    def apply(self, key: Attempt, workload: Workload | None) -> Workload | None:
        """Say how a copy does, given what holds back those of its replicas that have no pod yet.

        Where pods were ended since their workload was taken out again, that says more than how they ended.
        """
        found = self._by_attempt.get(key)
        if not found or workload is None:
            return workload
        if workload.phase is WorkloadPhase.FAILED and workload.cause is Cause.INFRASTRUCTURE:
            evicted = next((each.evicted for each in found.values() if each.evicted), "")
            return replace(workload, reason=evicted) if evicted else workload
        if workload.phase is not WorkloadPhase.STARTING or all(each.pod for each in workload.replicas):
            return workload
        worst = min(found.values(), key=lambda each: not each.is_permanent)
        if key in self._stuck:
            return replace(workload, phase=WorkloadPhase.FAILED, reason=worst.reason, cause=Cause.REJECTED)
        return replace(workload, reason=worst.reason)
