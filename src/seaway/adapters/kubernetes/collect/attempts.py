"""What there is of each attempt in one cluster: workloads, pods, what is denied of it, and the copy that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace

from seaway.adapters.kubernetes.collect.gates import Holds
from seaway.adapters.kubernetes.collect.limits import Lasting, Limits
from seaway.adapters.kubernetes.collect.pod_status import BY_NODES, Wait
from seaway.adapters.kubernetes.collect.pods import Seen
from seaway.adapters.kubernetes.collect.rejections import Attempt, Denials, Pauses, pods_denied
from seaway.adapters.kubernetes.collect.workloads import Workload, assemble, seats
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


Place = tuple[str, str]
"""Path of all objects of a kind, and ``namespace/name``."""


class Attempts:
    """Keeps what there is of attempts.

    Parameters
    ----------
    cluster
        Its name.
    soon
        Has something called after so many seconds.
    note
        Told of attempts of which a copy changed.
    why_refused
        Says what it comes from that no node takes a pod, by the label of the node that it is pinned to.

    Attributes
    ----------
    denials
        What the cluster would not have.
    holds
        What it does not let in yet.
    """

    def __init__(
        self,
        cluster: str,
        limits: Limits,
        soon: Callable[[float, Callable[[], None]], None],
        note: Callable[[Attempt], None],
        why_refused: Callable[[str], Cause],
    ) -> None:
        self._cluster = cluster
        self._limits = limits
        self._soon = soon
        self._note = note
        self._why_refused = why_refused
        self._pods: defaultdict[Attempt, dict[str, Seen]] = defaultdict(dict)
        self._places: dict[Place, Workload] = {}
        self._workloads: defaultdict[Attempt, dict[Place, Workload]] = defaultdict(dict)
        self._addresses: dict[Attempt, str] = {}
        self._waits: Lasting[str] = Lasting(soon)
        self._bare = Bare(limits, soon, self._note_copy)
        self._lost: set[str] = set()
        self.holds = Holds(soon, self._note_copy, limits.stuck_s)
        self.denials = Denials(cluster, soon, self._note_copy, Pauses(limits.refused_s, limits.stuck_s))

    def known(self) -> set[Attempt]:
        """Return the attempts of which there is anything, or nothing may be."""
        return self._pods.keys() | self._workloads.keys() | self.denials.wholes

    def copy(self, key: Attempt) -> Copy | None:
        """Return the copy of an attempt; None when there is none."""
        workloads, pods = self._workloads.get(key, {}).values(), self._pods.get(key, {}).values()
        lasting = {pod.uid: self._why_lasting(pod) for pod in pods if pod.uid in self._waits}
        address = self._addresses.get(key, "")
        copy = assemble(key, self._cluster, workloads, pods, lasting=lasting, lost=self._lost, address=address)
        copy = self.denials.weigh(key, copy)
        if key in self.denials:  # a denial says better why
            return copy
        return self.holds.weigh(key, self._bare.weigh(key, copy))

    def seats(self, key: Attempt) -> dict[int, Seen]:
        """Return the pod of each replica of an attempt that has one."""
        found = seats(self._workloads.get(key, {}).values(), self._pods.get(key, {}).values())
        return {replica: pod for _, replica, pod in found if pod}

    def pods(self, key: Attempt) -> list[Seen]:
        """Return all pods of an attempt."""
        return list(self._pods.get(key, {}).values())

    def places(self, key: Attempt) -> set[Place]:
        """Return where the objects of an attempt are."""
        return set(self._workloads.get(key, ()))

    def named(self, kind: str) -> set[str]:
        """Return the names of all objects of a kind."""
        return {name for path, name in self._places if path == kind}

    def addressed(self) -> set[Attempt]:
        """Return the attempts of which a service answers."""
        return set(self._addresses)

    def put_address(self, key: Attempt, address: str) -> None:
        """Take where a service of an attempt answers; empty for nowhere."""
        if self._addresses.get(key, "") != address:
            self._addresses.pop(key, None)
            if address:
                self._addresses[key] = address
            self._note_copy(key)

    def put_pod(self, before: Seen | None, after: Seen | None) -> None:
        """Take a pod as it is now instead of how it was; None where there is none."""
        if before and before.mine:
            there = self._pods[before.mine]
            there.pop(before.full_name, None)
            if not there:
                del self._pods[before.mine]
            if after is None or after.uid != before.uid:
                self._waits.end(before.uid)
        if after and after.mine:
            self._pods[after.mine][after.full_name] = after
            self._watch_wait(after.mine, after)
        for key in {each.mine for each in (before, after) if each and each.mine}:
            self._watch_bare(key)

    def put_workload(self, place: Place, after: Workload | None) -> None:
        """Take a workload, or another object of an attempt, as it is now; None for gone."""
        before = self._places.pop(place, None)
        if before:
            there = self._workloads[before.job_id, before.attempt]
            del there[place]
            if not there:
                del self._workloads[before.job_id, before.attempt]
        if after:
            self._places[place] = after
            self._workloads[after.job_id, after.attempt][place] = after
        if before and (after is None or after.uid != before.uid):
            self._lost.discard(before.uid)
        for key in {(each.job_id, each.attempt) for each in (before, after) if each}:
            self._watch_bare(key)
        if before != after:
            self._weigh_trouble(place, after)
            self._watch_failure(place, after)
            for each in (before, after):
                if each and each.replicas:  # a service that comes before what it leads to is no copy that is gone
                    self._note((each.job_id, each.attempt))

    def _why_lasting(self, pod: Seen) -> Cause:
        """Say what it comes from that a pod waits."""
        if pod.verdict and pod.verdict.wait not in BY_NODES:
            return pod.verdict.cause
        return self._why_refused(pod.wants)

    def _watch_wait(self, key: Attempt, pod: Seen) -> None:
        """Look again in a while at a pod that does not start."""
        if pod.verdict is None or pod.verdict.wait is Wait.NONE:
            self._waits.end(pod.uid)
        else:
            wait = pod.verdict.wait
            self._waits.begin(pod.uid, wait, self._limits.of(wait), lambda: self._note(key))

    def _watch_bare(self, key: Attempt) -> None:
        """Look again in a while at an attempt that has workloads, but no pod."""
        self._bare.watch(key, self._workloads.get(key, {}).values(), self._pods.get(key, ()))

    def _weigh_trouble(self, place: Place, workload: Workload | None) -> None:
        """Take a workload's own word that its pods are denied; how it ended says more."""
        source = f"{place[0]} {place[1]}"
        if workload and workload.trouble and not workload.ended:
            self.denials.deny((workload.job_id, workload.attempt), source, pods_denied(workload.trouble))
        else:
            self.denials.allow(source)

    def _watch_failure(self, place: Place, workload: Workload | None) -> None:
        """Look again in a while at a workload that failed: a pod of it may be heard of later, and says better why."""
        if workload and workload.ended and workload.ended.phase is CopyPhase.FAILED:
            self._soon(self._limits.refused_s, lambda: self._count_failed(place, workload.uid))

    def _count_failed(self, place: Place, uid: str) -> None:
        now = self._places.get(place)
        if now and now.uid == uid and now.ended and uid not in self._lost:
            self._lost.add(uid)
            self._note((now.job_id, now.attempt))

    def _note_copy(self, key: Attempt) -> None:
        if self.copy(key):
            self._note(key)
