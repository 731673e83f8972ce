"""Readiness and resources of the clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.fakes.kubernetes.app import VERSION
from tests.fakes.kubernetes.controllers.scheduler import pod_requests
from tests.fakes.kubernetes.controllers.staff import Controller, Staff, condition, set_condition
from tests.fakes.kubernetes.karmada.members import KarmadaPace, Member
from tests.fakes.kubernetes.karmada.words import NOT_READY
from tests.fakes.kubernetes.kinds import CLUSTERS, NODES, PODS, Json
from tests.fakes.kubernetes.quantities import milli, written
from tests.fakes.kubernetes.store import Event, Stored
from tests.fakes.kubernetes.verbs import ENDED

Key = tuple[str, str]
Amounts = tuple[tuple[str, int], ...]
ALLOCATED, ALLOCATING = "allocated", "allocating"


@dataclass(slots=True)
class _Ledger:
    """The resources of a member, updated by its events: amounts by node and pod, and their sums."""

    nodes: dict[str, tuple[Amounts, bool]] = field(default_factory=dict)
    pods: dict[str, tuple[Amounts, str]] = field(default_factory=dict)
    shared: dict[Amounts, Amounts] = field(default_factory=dict)
    sums: dict[str, dict[str, int]] = field(default_factory=lambda: {"allocatable": {}, ALLOCATING: {}, ALLOCATED: {}})

    def observe_node(self, node: Stored, *, gone: bool) -> None:
        old = self.nodes.pop(node.uid, None)
        if old is not None:
            self._count("allocatable", old[0], -1)
        if not gone:
            status = node.view().get("status") or {}
            amounts = self._share({name: milli(value) for name, value in (status.get("allocatable") or {}).items()})
            self.nodes[node.uid] = (amounts, condition(status, "Ready") == "True")
            self._count("allocatable", amounts, 1)

    def observe_pod(self, pod: Stored, *, gone: bool) -> None:
        old = self.pods.pop(pod.uid, None)
        if old is not None:
            self._count(old[1], old[0], -1)
        if not gone and pod.fields[1] not in ENDED:
            amounts = old[0] if old else self._share(pod_requests(pod.view()))
            state = ALLOCATED if pod.fields[0] else ALLOCATING
            self.pods[pod.uid] = (amounts, state)
            self._count(state, amounts, 1)

    def _share(self, amounts: dict[str, int]) -> Amounts:
        made = tuple(sorted(amounts.items()))
        return self.shared.setdefault(made, made)

    def _count(self, state: str, amounts: Amounts, sign: int) -> None:
        sums = self.sums[state]
        for name, amount in amounts:
            sums[name] = sums.get(name, 0) + sign * amount

    def summary(self) -> Json:
        found = {state: _write(sums) for state, sums in self.sums.items()}
        return {state: amounts for state, amounts in found.items() if amounts}

    def ready(self) -> int:
        return sum(ready for _, ready in self.nodes.values())


class Clusters(Controller[Key]):
    """Reports whether each member is ready, and its resources."""

    kinds = ()

    def __init__(self, staff: Staff, pace: KarmadaPace) -> None:
        super().__init__(staff)
        self.on_return: list[Callable[[str], None]] = []
        self._pace = pace
        self._members: dict[str, Member] = {}
        self._ledgers: dict[str, _Ledger] = {}
        self._pending: set[str] = set()
        self._answered: dict[str, bool] = {}

    def receive(self, event: Event) -> Iterator[Key]:
        """Return nothing: the control plane's own changes do not matter."""
        yield from ()

    def follow(self, member: Member) -> None:
        """Watch a member from now on."""
        name = member.name
        self._members[name] = member
        ledger = self._ledgers[name] = _Ledger()

        def receive(event: Event) -> None:
            note = ledger.observe_node if event.now.kind is NODES else ledger.observe_pod
            note(event.now, gone=event.type == "DELETED")
            if name not in self._pending:
                self._pending.add(name)
                self.staff.later(self._pace.status_s, self, ("sum", name))

        for node in member.server.store.all(NODES):
            ledger.observe_node(node, gone=False)
        for pod in member.server.store.all(PODS):
            ledger.observe_pod(pod, gone=False)
        member.server.store.follow(receive, [NODES, PODS])
        member.server.fault_list.followers.append(lambda: self._reach(name))
        self._answered[name] = True
        self.staff.add(self, ("ready", name))
        self.staff.add(self, ("sum", name))

    def forget(self, name: str) -> None:
        """Stop watching a member."""
        self._members.pop(name, None)

    def look(self, key: Key) -> None:
        """Write the resource summary of a member, or its readiness."""
        step, name = key
        cluster = self.store.find(CLUSTERS, "", name)
        member = self._members.get(name)
        if cluster is None or member is None:
            return
        if step == "sum":
            self._sum_up(cluster, member)
        elif (step == "ready") == member.server.answers:
            self._mark(cluster, ready=step == "ready")

    def _reach(self, name: str) -> None:
        """Record whether a member answers."""
        member = self._members.get(name)
        if member is None or member.server.answers is self._answered[name]:
            return
        self._answered[name] = member.server.answers
        if member.server.answers:
            self.staff.later(self._pace.ready_s, self, ("ready", name))
            for reported in self.on_return:
                reported(name)
        else:
            self.staff.later(self._pace.not_ready_s, self, ("lost", name))

    def _sum_up(self, cluster: Stored, member: Member) -> None:
        self._pending.discard(member.name)
        if not member.server.answers:
            return
        ledger = self._ledgers[member.name]

        def tell(status: Json) -> None:
            status["kubernetesVersion"] = VERSION["gitVersion"]
            status["nodeSummary"] = {"totalNum": len(ledger.nodes), "readyNum": ledger.ready()}
            status["resourceSummary"] = ledger.summary()
            groups = member.server.kinds.groups()
            status["apiEnablements"] = [
                {
                    "groupVersion": f"{group}/{version}" if group else version,
                    "resources": [
                        {"name": kind.plural, "kind": kind.kind}
                        for kind in member.server.kinds.all
                        if (kind.group, kind.version) == (group, version)
                    ],
                }
                for group, versions in {"": ["v1"], **groups}.items()
                for version in versions
            ]

        self.write_status(cluster, tell)

    def _mark(self, cluster: Stored, *, ready: bool) -> None:
        moment = self.stamp()

        def tell(status: Json) -> None:
            if ready:
                why = "cluster is healthy and ready to accept workloads"
                set_condition(status, "Ready", "True", moment, "ClusterReady", why)
            else:
                set_condition(status, "Ready", "False", moment, "ClusterNotReachable", "cluster is not reachable")

        self.write_status(cluster, tell)
        found = self.store.get(CLUSTERS, "", cluster.name)
        body = found.read()
        taints = [one for one in body["spec"].get("taints") or () if one["key"] != NOT_READY]
        if not ready:
            taints.append({"key": NOT_READY, "effect": "NoSchedule", "timeAdded": moment})
        if taints != (body["spec"].get("taints") or []):
            body["spec"]["taints"] = taints
            if not taints:
                del body["spec"]["taints"]
            self.verbs.update(CLUSTERS, "", cluster.name, body)


def _write(amounts: dict[str, int]) -> Json:
    return {name: written(amount) for name, amount in amounts.items() if amount}
