"""Node lifecycle: nodes that stop reporting, and eviction of pods that do not tolerate the taints of their node."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.kubernetes.controllers.kubelet import Kubelets
from tests.fakes.kubernetes.controllers.scheduler import tolerates
from tests.fakes.kubernetes.controllers.staff import Controller, Staff, condition, set_condition
from tests.fakes.kubernetes.kinds import NODES, PODS, Json
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.store import Event, Stored

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


class NodeLife(Controller[tuple[str, str]]):
    """Marks nodes without a kubelet, and evicts pods by NoExecute taints."""

    kinds = (NODES,)

    def __init__(self, staff: Staff, kubelets: Kubelets) -> None:
        super().__init__(staff)
        self.kubelets = kubelets
        self._since: dict[tuple[str, str, str], float] = {}

    def receive(self, event: Event) -> Iterator[tuple[str, str]]:
        """Return nodes with taints, or whose taints do not match their condition."""
        if event.type == "DELETED":
            return
        if b'"NoExecute"' in event.now.inside:
            yield "evict", event.now.name
        body = event.now.view()
        if _not_ready(body) != _wanted(body):
            yield "taint", event.now.name

    def fail(self, name: str) -> None:
        """Stop the reports of a node: its pods stay as they are until they are evicted, and then stay Terminating."""
        self.kubelets.failed.add(name)
        self.staff.later(self.kubelets.pace.node_grace_s, self, ("mark", name))

    def heal(self, name: str) -> None:
        """Let a node report again: pods that were deleted in the interval are removed, others continue."""
        self.kubelets.failed.discard(name)
        self.staff.add(self, ("mark", name))

    def look(self, key: tuple[str, str]) -> None:
        """Mark a node, or evict its pods."""
        step, name = key
        node = self.store.find(NODES, "", name)
        if node is None:
            return
        if step == "evict":
            self._evict(node)
        elif step == "taint":
            self._taint(node)
        elif name in self.kubelets.failed:
            self._mark(node)
        else:
            self._welcome(node)

    def _taint(self, node: Stored) -> None:
        """Set the taints of a node from its readiness."""
        body = node.read()
        spec = body.setdefault("spec", {})
        moment = self.stamp()
        taints = [one for one in spec.get("taints") or () if one["key"] != NOT_READY]
        taints += [{"key": NOT_READY, "effect": one, "timeAdded": moment} for one in sorted(_wanted(body))]
        spec["taints"] = taints
        if not taints:
            del spec["taints"]
        self.store.put(NODES, body)

    def _mark(self, node: Stored) -> None:
        body = node.read()
        moment = self.stamp()
        why = "Kubelet stopped posting node status."
        for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
            if kind == "Ready" or condition(body.get("status") or {}, kind) != "Unknown":
                set_condition(body.setdefault("status", {}), kind, "Unknown", moment, "NodeStatusUnknown", why)
        taints = [one for one in body.setdefault("spec", {}).get("taints") or () if one["key"] != UNREACHABLE]
        new = [{"key": UNREACHABLE, "effect": one, "timeAdded": moment} for one in ("NoSchedule", "NoExecute")]
        body["spec"]["taints"] = taints + new
        self.store.put(NODES, body)
        for pod in list(self.store.all(PODS)):
            if pod.fields[0] == node.name and pod.fields[1] == "Running":
                self.write_status(pod, lambda status: set_condition(status, "Ready", "False", moment))

    def _welcome(self, node: Stored) -> None:
        body = node.read()
        body["spec"]["taints"] = [one for one in body["spec"].get("taints") or () if one["key"] != UNREACHABLE]
        if not body["spec"]["taints"]:
            del body["spec"]["taints"]
        moment = self.stamp()
        why = "kubelet is posting ready status"
        set_condition(body.setdefault("status", {}), "Ready", "True", moment, "KubeletReady", why)
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
            if condition(body["status"], kind) == "Unknown":
                set_condition(body["status"], kind, "False", moment)
        self.store.put(NODES, body)
        for key in self.kubelets.pods_of(node.name):
            self.staff.add(self.kubelets, key)

    def _evict(self, node: Stored) -> None:
        taints = [one for one in node.view()["spec"].get("taints") or () if one["effect"] == "NoExecute"]
        if not taints:
            return
        for pod in list(self.store.all(PODS)):
            if pod.fields[0] != node.name or pod.deleting:
                continue
            left = self._left(node.name, pod.view(), taints)
            if left is not None and left <= 0:
                self.report(pod, "TaintManagerEviction", f"Marking for deletion Pod {pod.namespace}/{pod.name}")
                self.verbs.delete(PODS, pod.namespace, pod.name, DeleteOptions())
            elif left is not None:
                self.staff.later(left, self, ("evict", node.name))

    def _left(self, node: str, pod: Json, taints: list[Json]) -> float | None:
        """Return how long a pod may stay, seconds; None for no limit."""
        now = self.verbs.now().timestamp()
        shortest: float | None = None
        for taint in taints:
            if not tolerates(pod, taint):
                return 0.0
            seconds = [
                one["tolerationSeconds"]
                for one in pod["spec"].get("tolerations") or ()
                if "tolerationSeconds" in one and tolerates({"spec": {"tolerations": [one]}}, taint)
            ]
            if not seconds:
                continue
            allowed = self.kubelets.pace.eviction_s
            since = self._since.setdefault((node, taint["key"], taint.get("timeAdded", "")), now)
            left = (min(seconds) if allowed is None else allowed) - (now - since)
            shortest = left if shortest is None else min(shortest, left)
        return shortest


def _not_ready(body: Json) -> set[str]:
    """Return the effects of the not-ready taints of a node."""
    return {one["effect"] for one in body.get("spec", {}).get("taints") or () if one["key"] == NOT_READY}


def _wanted(body: Json) -> set[str]:
    """Return the required effects: none for a ready node, or for one that does not report, which has another taint."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    ready = next((one["status"] for one in conditions if one["type"] == "Ready"), "")
    return {"": {"NoSchedule"}, "False": {"NoSchedule", "NoExecute"}}.get(ready, set())
