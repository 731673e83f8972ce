"""A scheduler: selectors, affinity, taints, resources, and HAMi's rules on nodes that register cards."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.fakes.kubernetes.controllers import hami
from tests.fakes.kubernetes.controllers.staff import Controller, Staff, condition, set_condition
from tests.fakes.kubernetes.defaults import requests_of
from tests.fakes.kubernetes.kinds import NODES, PODS, Json, Kind
from tests.fakes.kubernetes.quantities import milli
from tests.fakes.kubernetes.selectors import expressions_rule
from tests.fakes.kubernetes.store import Event, Stored
from tests.fakes.kubernetes.verbs import ENDED

HOSTNAME = "kubernetes.io/hostname"
NAMES = frozenset({"default-scheduler", hami.SCHEDULER})

Amounts = dict[str, int]
"""Amount of each resource in thousandths."""


def pod_requests(pod: Json) -> Amounts:
    """Return the request of a pod: the sum of its containers, or its largest init container if that is more."""
    total: Amounts = {"pods": 1000}
    for container in pod["spec"].get("containers") or ():
        for name, value in requests_of(container).items():
            total[name] = total.get(name, 0) + milli(value)
    for container in pod["spec"].get("initContainers") or ():
        for name, value in requests_of(container).items():
            total[name] = max(total.get(name, 0), milli(value))
    return total


def tolerates(pod: Json, taint: Json) -> bool:
    """Report whether a pod tolerates a taint."""
    return any(
        (not one.get("effect") or one["effect"] == taint["effect"])
        and (
            (one.get("operator") == "Exists" and one.get("key", "") in ("", taint["key"]))
            or (one.get("key") == taint["key"] and one.get("value", "") == taint.get("value", ""))
        )
        for one in pod["spec"].get("tolerations") or ()
    )


@dataclass(slots=True)
class Node:
    """A node in the scheduler's cache."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: list[Json] = field(default_factory=list)
    closed: bool = False
    allocatable: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    cards: dict[str, hami.Card] | None = None
    cordoned: tuple[str, ...] = ()

    def read(self, body: Json) -> None:
        """Read the node object."""
        annotations = body["metadata"].get("annotations") or {}
        self.labels = body["metadata"].get("labels") or {}
        self.taints = body.get("spec", {}).get("taints") or []
        self.closed = bool(body.get("spec", {}).get("unschedulable"))
        status = body.get("status") or {}
        amounts = status.get("allocatable") or status.get("capacity") or {}
        self.allocatable = {"pods": 110_000, **{name: milli(value) for name, value in amounts.items()}}
        self.cordoned = tuple(annotations.get(hami.CORDON, "").split(","))
        before = self.cards or {}
        self.cards = None
        if hami.REGISTER in annotations:
            self.cards = {card.uuid: card for card in hami.read_node_cards(annotations)}
            for uuid, card in self.cards.items():
                if uuid in before:
                    old = before[uuid]
                    card.used, card.used_mib, card.used_cores = old.used, old.used_mib, old.used_cores

    def full_cards(self) -> float:
        """Return the used share of its cards."""
        return sum(card.score() for card in (self.cards or {}).values())


@dataclass(frozen=True, slots=True)
class Reserved:
    """The resources that a pod has on a node."""

    node: str
    amounts: Amounts
    devices: tuple[tuple[str, int, int], ...]
    cards_on: str


class Scheduler(Controller[tuple[str, str]]):
    """Binds pods that name it, or reports the reason against them, and retries when an object changes."""

    kinds = (PODS, NODES)

    def __init__(self, staff: Staff) -> None:
        super().__init__(staff)
        self._nodes: dict[str, Node] | None = None
        self._reserved: dict[str, Reserved] = {}
        self._waiting: dict[tuple[str, str], None] = {}
        self.staff.verbs.admission.append(self._admit)
        self._with_hami = False

    def receive(self, event: Event) -> Iterator[tuple[str, str]]:
        """Update the allocations; return new pods, and pending pods after a release."""
        now = event.now
        if now.kind is NODES:
            self._observe_node(now, gone=event.type == "DELETED")
            yield from self._waiting
            return
        freed = self._link_table(now, gone=event.type == "DELETED")
        key = (now.namespace, now.name)
        if event.type == "DELETED" or now.fields[0]:
            self._waiting.pop(key, None)
        elif event.before is None or key not in self._waiting:
            yield key
        if freed:
            yield from self._waiting

    def look(self, key: tuple[str, str]) -> None:
        """Try to bind a pod."""
        found = self.store.find(PODS, *key)
        if found is None or found.fields[0] or found.deleting or found.fields[1] in ENDED:
            return
        pod = found.read()
        if pod["spec"].get("schedulerName") not in NAMES or pod["spec"].get("schedulingGates"):
            return
        nodes = self._all_nodes()
        reasons: Counter[str] = Counter()
        best: tuple[float, str, list[hami.Devices]] | None = None
        requests = pod_requests(pod)
        with_hami = hami.is_for_hami(pod) and self._is_with_hami()
        for node in self._candidates(pod, nodes):
            devices = self._fits(node, pod, requests, with_hami=with_hami)
            if isinstance(devices, str):
                reasons[devices] += 1
                continue
            score = node.full_cards() if devices else -self._load(node)
            if best is None or score > best[0]:
                best = (score, node.name, devices)
        if best is None:
            missing = len(nodes) - reasons.total()
            if missing:
                reasons["node(s) didn't match Pod's node affinity/selector"] += missing
            self._refuse(found, len(nodes), reasons)
        else:
            self._waiting.pop((found.namespace, found.name), None)
            self._bind(found, pod, best[1], best[2])

    def _admit(self, kind: Kind, body: Json, before: Json | None) -> None:
        if kind is PODS and before is None and self._is_with_hami() and hami.is_for_hami(body):
            hami.fill_in(body)

    def _is_with_hami(self) -> bool:
        if not self._with_hami:
            self._with_hami = any(node.cards is not None for node in self._all_nodes().values())
        return self._with_hami

    def _all_nodes(self) -> dict[str, Node]:
        """Return the nodes with their allocations, built on first use."""
        if self._nodes is None:
            self._nodes = {}
            for node in self.store.all(NODES):
                self._observe_node(node, gone=False)
            for pod in self.store.all(PODS):
                self._link_table(pod, gone=False)
        return self._nodes

    def _observe_node(self, stored: Stored, *, gone: bool) -> None:
        self._with_hami = False
        if self._nodes is None:
            return
        if gone:
            self._nodes.pop(stored.name, None)
        else:
            self._nodes.setdefault(stored.name, Node(stored.name)).read(stored.view())

    def _link_table(self, stored: Stored, *, gone: bool) -> bool:
        """Add or remove the allocation of a pod; report whether that released resources."""
        if self._nodes is None:
            return False
        old = self._reserved.get(stored.uid)
        lives = not gone and stored.fields[1] not in ENDED
        if old is not None and lives and old.node == stored.fields[0]:
            return False
        if old is not None:
            del self._reserved[stored.uid]
            self._count(old, -1)
        if lives and (stored.fields[0] or hami.NODE in stored.labels):
            pod = stored.view()
            annotations = pod["metadata"].get("annotations") or {}
            devices = tuple(hami.read_devices(annotations.get(hami.ALLOCATED, "")))
            amounts = pod_requests(pod) if stored.fields[0] else {}
            made = Reserved(stored.fields[0], amounts, devices, annotations.get(hami.NODE, ""))
            self._reserved[stored.uid] = made
            self._count(made, 1)
        return old is not None and not lives

    def _count(self, reserved: Reserved, sign: int) -> None:
        assert self._nodes is not None
        node = self._nodes.get(reserved.node)
        if node is not None:
            for name, amount in reserved.amounts.items():
                node.used[name] = node.used.get(name, 0) + sign * amount
        holder = self._nodes.get(reserved.cards_on)
        for uuid, memory, cores in reserved.devices:
            card = (holder.cards or {}).get(uuid) if holder else None
            if card is not None:
                card.used += sign
                card.used_mib += sign * memory
                card.used_cores += sign * cores

    @staticmethod
    def _candidates(pod: Json, nodes: Mapping[str, Node]) -> Iterable[Node]:
        """Return the candidate nodes: the one that the pod names, or all."""
        name = (pod["spec"].get("nodeSelector") or {}).get(HOSTNAME, "")
        if name in nodes:
            return (nodes[name],)
        return nodes.values()

    @staticmethod
    def _fits(node: Node, pod: Json, requests: Amounts, *, with_hami: bool) -> list[hami.Devices] | str:
        """Return the devices that a pod would get on a node, or the reason against it."""
        if refused := _rounds_away(node, pod):
            return refused
        for name, amount in requests.items():
            if with_hami and name in hami.RESOURCES:
                continue
            if amount > node.allocatable.get(name, 0) - node.used.get(name, 0):
                return "Too many pods" if name == "pods" else f"Insufficient {name}"
        if not with_hami:
            return []
        if node.cards is None:
            return "node unregistered"
        devices = hami.fit(list(node.cards.values()), node.cordoned, pod)
        return devices if isinstance(devices, list) else max(devices, key=lambda reason: devices[reason], default="")

    @staticmethod
    def _load(node: Node) -> float:
        cpu = node.allocatable.get("cpu", 0)
        return node.used.get("cpu", 0) / cpu if cpu else 1.0

    def _bind(self, found: Stored, pod: Json, node: str, devices: list[hami.Devices]) -> None:
        meta = pod["metadata"]
        if any(devices):
            seconds = str(int(time.time()))
            text = hami.write_devices(devices)
            meta.setdefault("labels", {})[hami.NODE] = node
            meta.setdefault("annotations", {}).update(
                {
                    hami.NODE: node,
                    hami.TIME: seconds,
                    hami.TO_ALLOCATE: text,
                    hami.ALLOCATED: text,
                    hami.BIND_PHASE: "allocating",
                    hami.BIND_TIME: seconds,
                }
            )
        pod["spec"]["nodeName"] = node
        set_condition(pod.setdefault("status", {}), "PodScheduled", "True", self.stamp())
        name = pod["spec"]["schedulerName"]
        self.store.put(PODS, pod)
        self.report(found, "Scheduled", f"Successfully assigned {found.namespace}/{found.name} to {node}", source=name)

    def _refuse(self, found: Stored, count: int, reasons: Counter[str]) -> None:
        self._waiting[found.namespace, found.name] = None
        listed = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
        message = f"0/{count} nodes are available: {listed}." if count else "no nodes available to schedule pods"
        body = found.view()
        known = condition(body.get("status") or {}, "PodScheduled") == "False" and any(
            one.get("message") == message for one in body["status"]["conditions"]
        )
        if known:
            return
        source = body["spec"]["schedulerName"]
        self.report(found, "FailedScheduling", message, kind="Warning", source=source)
        if source == hami.SCHEDULER:
            self.report(found, "FilteringFailed", f"no available node, {listed}", kind="Warning", source=source)
        moment = self.stamp()
        self.write_status(
            found, lambda status: set_condition(status, "PodScheduled", "False", moment, "Unschedulable", message)
        )


def _rounds_away(node: Node, pod: Json) -> str:
    """Return the reason that excludes a pod from a node regardless of its request, or an empty text."""
    if node.closed and not tolerates(pod, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}):
        return "node(s) were unschedulable"
    if not _selected(node, pod):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in node.taints:
        if taint["effect"] != "PreferNoSchedule" and not tolerates(pod, taint):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    return ""


def _selected(node: Node, pod: Json) -> bool:
    """Report whether the selector and the required affinity of a pod allow a node."""
    spec = pod["spec"]
    if any(node.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    for term in affinity.get("nodeSelectorTerms") or ():
        rules = [
            (expressions_rule(term.get("matchExpressions") or ()), node.labels),
            (expressions_rule(term.get("matchFields") or ()), {"metadata.name": node.name}),
        ]
        if any(rule for rule, _ in rules) and all(rule is None or rule(labels) for rule, labels in rules):
            return True
    return False
