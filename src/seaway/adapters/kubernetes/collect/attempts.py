"""Objects of each attempt in one cluster: workloads, pods, rejections, and the resulting `Workload`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.changes import Debounce, Limits
from seaway.adapters.kubernetes.collect.drift import deleted_text
from seaway.adapters.kubernetes.collect.pod_status import NODE_WAITS, Wait
from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.collect.rejections import Attempt, Rejections, RejectionTimeouts, pods_rejected
from seaway.adapters.kubernetes.collect.services import Exposing, NodeHost, endpoints, widest_first
from seaway.adapters.kubernetes.collect.workloads import WorkloadPart, assemble, replica_pods
from seaway.domain.deployment import Cause, Endpoint, ObjectDrift, Workload, WorkloadPhase
from seaway.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Gate:
    """Reason why a workload is not admitted.

    Attributes
    ----------
    reason
        Text for users.
    is_permanent
        True if only a change of the queue's configuration helps, not the end of other workloads.
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
        """Set the gate that a source reports for an attempt; None removes it."""
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
        """Return the workload with the state that results from its gates, if replicas have no pod yet.

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
        return replace(workload, reason=worst.reason, held=True)


NO_POD_YET = Reason("no_pod_yet")
NO_POD = Reason("no_pod")


class PodlessAttempts:
    """Attempts of a cluster that have workloads but no pod.

    Parameters
    ----------
    soon
        Schedules a call after a number of seconds.
    notify
        Called with an attempt whose state changed.
    """

    def __init__(
        self,
        limits: Limits,
        soon: Callable[[float, Callable[[], None]], object],
        notify: Callable[[Attempt], None],
    ) -> None:
        self._limits = limits
        self._notify = notify
        self._gated: dict[Attempt, str] = {}
        self._late: Debounce[Attempt] = Debounce(soon)
        self._failed: Debounce[Attempt] = Debounce(soon)

    def watch(self, key: Attempt, workloads: Collection[WorkloadPart], pods: Collection[object]) -> None:
        """Update the state of an attempt from its current workloads and pods."""
        running = [each for each in workloads if each.replicas]
        if pods or not running or any(each.ended for each in running):
            self._late.end(key)
            self._failed.end(key)
            self._gated.pop(key, None)
            return
        held = next((each.gate for each in running if each.gate), "")
        if self._gated.get(key) != held:  # restart the timeout: a gate prevented pods until now
            self._failed.end(key)
        self._gated[key] = held
        self._late.begin(key, held, self._limits.scheduling_delay_s, lambda: self._is_late(key))

    def apply(self, key: Attempt, workload: Workload | None) -> Workload | None:
        """Return the workload with the state that results from the time it has had no pod."""
        if workload is None or key not in self._late:
            return workload
        if key in self._failed:
            return replace(workload, phase=WorkloadPhase.FAILED, reason=NO_POD, cause=Cause.REJECTED)
        return replace(workload, reason=self._gated[key] or NO_POD_YET, held=bool(self._gated[key]))

    def _is_late(self, key: Attempt) -> None:
        if not self._gated[key]:
            self._failed.begin(key, "", self._limits.pod_start_timeout_s, lambda: self._notify(key))
        self._notify(key)


ObjectKey = tuple[str, str]
"""Path of a kind's objects, and ``namespace/name``."""


class Attempts:
    """Objects of all attempts in a cluster.

    Parameters
    ----------
    cluster
        Name of the cluster.
    soon
        Schedules a call after a number of seconds.
    changed
        Called with an attempt whose workload changed.
    unschedulable_cause
        Returns the cause of an unschedulable pod, by the label of the node that it is pinned to.
    host
        Returns the address of a node for clients, preferably of one of these nodes.

    Attributes
    ----------
    rejections
        Objects and pods that the cluster rejects.
    gates
        Workloads that the cluster does not admit yet.
    """

    def __init__(
        self,
        cluster: str,
        limits: Limits,
        soon: Callable[[float, Callable[[], None]], None],
        changed: Callable[[Attempt], None],
        unschedulable_cause: Callable[[str], Cause],
        host: Callable[[Iterable[str]], NodeHost | None],
    ) -> None:
        self._cluster = cluster
        self._limits = limits
        self._soon = soon
        self._changed = changed
        self._unschedulable_cause = unschedulable_cause
        self._host = host
        self._pods: defaultdict[Attempt, dict[str, PodSummary]] = defaultdict(dict)
        self._objects: dict[ObjectKey, WorkloadPart] = {}
        self._workloads: defaultdict[Attempt, dict[ObjectKey, WorkloadPart]] = defaultdict(dict)
        self._exposing: defaultdict[Attempt, dict[ObjectKey, Exposing]] = defaultdict(dict)
        self._drift: defaultdict[Attempt, dict[ObjectKey, ObjectDrift]] = defaultdict(dict)
        self._waits: Debounce[str] = Debounce(soon)
        self._podless = PodlessAttempts(limits, soon, self._notify)
        self._lost: set[str] = set()
        self.gates = Gates(soon, self._notify, limits.pod_start_timeout_s)
        self.rejections = Rejections(
            cluster, soon, self._notify, RejectionTimeouts(limits.unschedulable_timeout_s, limits.pod_start_timeout_s)
        )

    def known(self) -> set[Attempt]:
        """Return the attempts that have objects or rejected objects."""
        return self._pods.keys() | self._workloads.keys() | self.rejections.without_objects

    def workload(self, key: Attempt) -> Workload | None:
        """Return the workload of an attempt; None if there is none."""
        workloads, pods = self._workloads.get(key, {}).values(), self._pods.get(key, {}).values()
        lasting = {pod.uid: self._wait_cause(pod) for pod in pods if pod.uid in self._waits}
        at = self._endpoints(key)
        copy = assemble(key, self._cluster, workloads, pods, persistent_waits=lasting, lost=self._lost, endpoints=at)
        if copy and (drift := self._drift.get(key)):
            copy = replace(copy, drift=tuple(drift[place] for place in sorted(drift)))
        copy = self.rejections.apply(key, copy)
        if key in self.rejections:  # a rejection has the better reason
            return copy
        return self.gates.apply(key, self._podless.apply(key, copy))

    def replica_pods(self, key: Attempt) -> dict[int, PodSummary]:
        """Return the pods of an attempt by replica."""
        found = replica_pods(self._workloads.get(key, {}).values(), self._pods.get(key, {}).values())
        return {replica: pod for _, replica, pod in found if pod}

    def pods(self, key: Attempt) -> list[PodSummary]:
        """Return all pods of an attempt."""
        return list(self._pods.get(key, {}).values())

    def objects(self, key: Attempt) -> set[ObjectKey]:
        """Return the keys of the objects of an attempt."""
        return set(self._workloads.get(key, ()))

    def owner(self, place: ObjectKey) -> Attempt | None:
        """Return the attempt of an object; None if the object is unknown."""
        found = self._objects.get(place)
        return (found.job_id, found.attempt) if found else None

    def named(self, kind: str) -> set[str]:
        """Return the names of all objects of a kind."""
        return {name for path, name in self._objects if path == kind}

    def _endpoints(self, key: Attempt) -> tuple[Endpoint, ...]:
        """Return the addresses of an attempt's ports."""
        found = self._exposing.get(key)
        if not found:
            return ()
        pods = self._pods.get(key, {}).values()

        def host() -> NodeHost | None:
            return self._host(sorted({pod.node for pod in pods if pod.node}))

        first = self.replica_pods(key).get(0)
        ip = first.ip if first else ""
        return widest_first(each for place in sorted(found) for each in endpoints(found[place], host, ip))

    def put_exposing(self, place: ObjectKey, exposing: Exposing) -> None:
        """Record the content of an object that gives ports of an attempt an address. The object itself is known."""
        owner = self._objects.get(place)
        if owner and self._exposing[owner.job_id, owner.attempt].get(place) != exposing:
            self._exposing[owner.job_id, owner.attempt][place] = exposing
            self._notify((owner.job_id, owner.attempt))

    def put_pod(self, before: PodSummary | None, after: PodSummary | None) -> None:
        """Replace a pod's state; None means that the pod does not exist."""
        if before and before.attempt:
            there = self._pods[before.attempt]
            there.pop(before.full_name, None)
            if not there:
                del self._pods[before.attempt]
            if after is None or after.uid != before.uid:
                self._waits.end(before.uid)
        if after and after.attempt:
            self._pods[after.attempt][after.full_name] = after
            self._watch_wait(after.attempt, after)
        for key in {each.attempt for each in (before, after) if each and each.attempt}:
            self._watch_podless(key)

    def put_workload(self, place: ObjectKey, after: WorkloadPart | None) -> None:
        """Replace the state of a workload or another object of an attempt; None if it is gone."""
        before = self._objects.pop(place, None)
        if before:
            key = (before.job_id, before.attempt)
            there = self._workloads[key]
            del there[place]
            if not there:
                del self._workloads[key]
                self._drift.pop(key, None)
            elif after is None and not before.replicas:
                self.put_drift(key, place, ObjectDrift(deleted_text(place), before.uid))
            self._drop_exposing(key, place, after)
        if after:
            self._objects[place] = after
            self._workloads[after.job_id, after.attempt][place] = after
        if before and (after is None or after.uid != before.uid):
            self._lost.discard(before.uid)
        for key in {(each.job_id, each.attempt) for each in (before, after) if each}:
            self._watch_podless(key)
        if before != after:
            self._check_rejection(place, after)
            self._watch_failure(place, after)
            for each in (before, after):
                if each and each.replicas:  # objects without replicas, like services, do not change the workload
                    self._changed((each.job_id, each.attempt))

    def put_drift(self, key: Attempt, place: ObjectKey, drift: ObjectDrift) -> None:
        """Record what others changed in an object of an attempt; without a text, nothing."""
        there = self._drift.get(key, {})
        if drift.text and drift != there.get(place):
            self._drift[key][place] = drift
        elif not drift.text and place in there:
            del there[place]
        else:
            return
        self._notify(key)

    def _drop_exposing(self, key: Attempt, place: ObjectKey, after: WorkloadPart | None) -> None:
        """Remove the addresses that an object gave an attempt, if the object is gone or belongs to another attempt."""
        there = self._exposing.get(key, {})
        if place in there and (after is None or (after.job_id, after.attempt) != key):
            del there[place]
            if not there:
                del self._exposing[key]
            self._notify(key)

    def _wait_cause(self, pod: PodSummary) -> Cause:
        """Return the cause of a pod's wait."""
        if pod.state and pod.state.wait not in NODE_WAITS:
            return pod.state.cause
        return self._unschedulable_cause(pod.pinned_to)

    def _watch_wait(self, key: Attempt, pod: PodSummary) -> None:
        """Start the timeout of a pod that does not start."""
        if pod.state is None or pod.state.wait is Wait.NONE:
            self._waits.end(pod.uid)
        else:
            wait = pod.state.wait
            self._waits.begin(pod.uid, wait, self._limits.of(wait), lambda: self._changed(key))

    def _watch_podless(self, key: Attempt) -> None:
        """Start the timeout of an attempt that has workloads, but no pod."""
        self._podless.watch(key, self._workloads.get(key, {}).values(), self._pods.get(key, ()))

    def _check_rejection(self, place: ObjectKey, workload: WorkloadPart | None) -> None:
        """Record or withdraw the rejection that a workload itself reports. The workload's end takes precedence."""
        source = f"{place[0]} {place[1]}"
        if workload and workload.rejection and not workload.ended:
            self.rejections.reject((workload.job_id, workload.attempt), source, pods_rejected(workload.rejection))
        else:
            self.rejections.allow(source)

    def _watch_failure(self, place: ObjectKey, workload: WorkloadPart | None) -> None:
        """Check a failed workload again later. An event of its pod may arrive late, with a better reason."""
        if workload and workload.ended and workload.ended.phase is WorkloadPhase.FAILED:
            self._soon(self._limits.unschedulable_timeout_s, lambda: self._count_failed(place, workload.uid))

    def _count_failed(self, place: ObjectKey, uid: str) -> None:
        now = self._objects.get(place)
        if now and now.uid == uid and now.ended and uid not in self._lost:
            self._lost.add(uid)
            self._changed((now.job_id, now.attempt))

    def _notify(self, key: Attempt) -> None:
        if self.workload(key):
            self._changed(key)
