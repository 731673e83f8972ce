"""The StatefulSet controller: numbered pods, all created in parallel, each again only when its predecessor is gone."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from tests.fakes.kubernetes.controllers.deployments import is_ready, owner_of
from tests.fakes.kubernetes.controllers.staff import Controller, owner_reference
from tests.fakes.kubernetes.kinds import PODS, STATEFUL_SETS, Json
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.store import Event, Stored
from tests.fakes.kubernetes.verbs import ENDED

NUMBER = "apps.kubernetes.io/pod-index"
POD_NAME = "statefulset.kubernetes.io/pod-name"


class StatefulSets(Controller[tuple[str, str]]):
    """Creates the pods that a stateful set requests."""

    kinds = (STATEFUL_SETS, PODS)

    def receive(self, event: Event) -> Iterator[tuple[str, str]]:
        """Return the stateful set that changed, or that owns a pod that changed."""
        now = event.now
        if now.kind is STATEFUL_SETS:
            if event.type != "DELETED":
                yield now.namespace, now.name
        elif now.owners and (name := owner_of(now, "StatefulSet")):
            yield now.namespace, name

    def look(self, key: tuple[str, str]) -> None:
        """Create or delete pods, and update the counts in the status."""
        found = self.store.find(STATEFUL_SETS, *key)
        if found is None or found.deleting:
            return
        body = found.view()
        pods = {pod.name: pod for pod in self.owned(found, PODS)}
        wanted = [f"{found.name}-{number}" for number in range(int(body["spec"].get("replicas", 1)))]
        for number, name in enumerate(wanted):
            if name not in pods:
                self._make(found, body, name, number)
        for name, pod in pods.items():
            if not pod.deleting and (name not in wanted or pod.fields[1] in ENDED):
                self.verbs.delete(PODS, pod.namespace, name, DeleteOptions())
        alive = [pod for pod in self.owned(found, PODS) if not pod.deleting]

        def tell(status: Json) -> None:
            status["replicas"] = status["updatedReplicas"] = len(alive)
            status["readyReplicas"] = status["availableReplicas"] = sum(map(is_ready, alive))
            status["observedGeneration"] = body["metadata"]["generation"]

        self.write_status(found, tell)

    def _make(self, owner: Stored, body: Json, name: str, number: int) -> None:
        template = deepcopy(body["spec"]["template"])
        meta = {**template.get("metadata", {}), "name": name}
        meta["labels"] = {**meta.get("labels", {}), NUMBER: str(number), POD_NAME: name}
        meta["ownerReferences"] = [owner_reference(owner)]
        spec = {**template["spec"], "hostname": name, "subdomain": body["spec"].get("serviceName", "")}
        self.verbs.create(PODS, owner.namespace, {"metadata": meta, "spec": spec})
