"""Attempts that their cluster does not admit yet, because a queue decides when workloads may run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.limits import Debounce
from seaway.adapters.kubernetes.collect.rejections import Attempt
from seaway.domain.deployment import Cause, Workload, WorkloadPhase


@dataclass(frozen=True, slots=True)
class Gate:
    """Reason why a workload is not admitted.

    Attributes
    ----------
    reason
        Text for users.
    is_permanent
        True if only a change of the queue's configuration helps, not the end of other work.
    evicted
        Reason of the eviction after admission, which ends the pods; empty without an eviction.
    """

    reason: str
    is_permanent: bool = False
    evicted: str = ""


class Gates:
    """Gates of the attempts in one cluster, by source.

    Parameters
    ----------
    schedule
        Schedules a call after a number of seconds.
    notify
        Called with an attempt whose state changed.
    pod_start_timeout_s
        Time after which a permanent gate counts as a rejection by the cluster.
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
        """Set the gate that a source reports for an attempt; None for none."""
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
        """Return the workload with the state that follows from its gates, if replicas have no pod yet.

        If an eviction ended the pods, its reason replaces that of the pods.
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
