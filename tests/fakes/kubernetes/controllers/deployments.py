"""The Deployment and ReplicaSet controllers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from copy import deepcopy

import orjson

from tests.fakes.kubernetes.controllers.staff import (
    Controller,
    condition,
    owner_reference,
    remove_condition,
    set_condition,
)
from tests.fakes.kubernetes.failures import FailureError
from tests.fakes.kubernetes.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, Json
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.store import Event, Stored
from tests.fakes.kubernetes.verbs import ENDED

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def owner_of(one: Stored, kind: str) -> str:
    """Return the name of the owner of a kind, or an empty text."""
    for reference in one.view()["metadata"].get("ownerReferences") or ():
        if reference["kind"] == kind:
            return str(reference["name"])
    return ""


def is_ready(pod: Stored) -> bool:
    """Report whether a pod is ready."""
    return not pod.deleting and condition(pod.view().get("status") or {}, "Ready") == "True"


class ReplicaSets(Controller[tuple[str, str]]):
    """Creates as many pods as a replica set requests."""

    kinds = (REPLICA_SETS, PODS)

    def receive(self, event: Event) -> Iterator[tuple[str, str]]:
        """Return the replica set that changed, or that owns a pod that changed."""
        now = event.now
        if now.kind is REPLICA_SETS:
            if event.type != "DELETED":
                yield now.namespace, now.name
        elif now.owners and (name := owner_of(now, "ReplicaSet")):
            yield now.namespace, name

    def look(self, key: tuple[str, str]) -> None:
        """Create or delete pods, and update the counts in the status."""
        found = self.store.find(REPLICA_SETS, *key)
        if found is None or found.deleting:
            return
        body = found.view()
        pods = [pod for pod in self.owned(found, PODS) if not pod.deleting and pod.fields[1] not in ENDED]
        wanted = int(body["spec"].get("replicas", 1))
        denied = ""
        try:
            for _ in range(wanted - len(pods)):
                self._make(found, body)
        except FailureError as failure:
            denied = str(failure)
            self.report_denied(found, failure, "replicaset-controller", key)
        surplus = sorted(pods, key=lambda pod: (bool(pod.fields[0]), pod.fields[1] == "Running", -pod.version))
        for pod in surplus[: max(0, len(pods) - wanted)]:
            self.verbs.delete(PODS, pod.namespace, pod.name, DeleteOptions())
        pods = [pod for pod in self.owned(found, PODS) if not pod.deleting and pod.fields[1] not in ENDED]
        ready = sum(is_ready(pod) for pod in pods)

        def tell(status: Json) -> None:
            status["replicas"] = status["fullyLabeledReplicas"] = len(pods)
            status["readyReplicas"] = status["availableReplicas"] = ready
            status["observedGeneration"] = body["metadata"]["generation"]
            if not denied:
                remove_condition(status, "ReplicaFailure")
            elif condition(status, "ReplicaFailure") != "True":  # keep the first message
                set_condition(status, "ReplicaFailure", "True", self.stamp(), "FailedCreate", denied)

        self.write_status(found, tell)

    def _make(self, owner: Stored, body: Json) -> None:
        template = deepcopy(body["spec"]["template"])
        name = f"{owner.name[:247]}-{self.store.new_suffix()}"
        meta = {**template.get("metadata", {}), "name": name, "generateName": f"{owner.name}-"}
        meta["ownerReferences"] = [owner_reference(owner)]
        made = self.verbs.create(PODS, owner.namespace, {"metadata": meta, "spec": template["spec"]})
        self.report(owner, "SuccessfulCreate", f"Created pod: {made.name}", source="replicaset-controller")


class Deployments(Controller[tuple[str, str]]):
    """Creates a replica set for the current template, and scales down former ones when it is available."""

    kinds = (DEPLOYMENTS, REPLICA_SETS)

    def receive(self, event: Event) -> Iterator[tuple[str, str]]:
        """Return the deployment that changed, or that owns a replica set that changed."""
        now = event.now
        if now.kind is DEPLOYMENTS:
            if event.type != "DELETED":
                yield now.namespace, now.name
        elif now.owners and (name := owner_of(now, "Deployment")):
            yield now.namespace, name

    def look(self, key: tuple[str, str]) -> None:
        """Update the replica sets and the status."""
        found = self.store.find(DEPLOYMENTS, *key)
        if found is None or found.deleting:
            return
        body = found.view()
        sets = self.owned(found, REPLICA_SETS)
        mark = _hash(body["spec"]["template"])
        current = next((one for one in sets if one.labels.get(HASH) == mark), None)
        former = [one for one in sets if one.labels.get(HASH) != mark]
        wanted = int(body["spec"]["replicas"])
        recreate = body["spec"]["strategy"]["type"] == "Recreate"
        if not body["spec"].get("paused"):
            busy = recreate and any(self._count(one, "replicas") for one in former)
            if busy or (current is not None and self._count(current, "availableReplicas") >= wanted):
                for one in former:
                    self._scale(one, 0)
            if current is None and not busy:
                current = self._make(found, body, mark, len(sets) + 1)
        if current is not None:
            self._scale(current, wanted)
            self._note_revision(found, current)
        self.write_status(found, lambda status: self._tell(status, body, current, former))

    def _make(self, owner: Stored, body: Json, mark: str, revision: int) -> Stored:
        template = deepcopy(body["spec"]["template"])
        template["metadata"].setdefault("labels", {})[HASH] = mark
        selector = deepcopy(body["spec"]["selector"])
        selector.setdefault("matchLabels", {})[HASH] = mark
        made = {
            "metadata": {
                "name": f"{owner.name}-{mark}",
                "labels": template["metadata"]["labels"],
                "annotations": {REVISION: str(revision)},
                "ownerReferences": [owner_reference(owner)],
            },
            "spec": {"replicas": body["spec"]["replicas"], "selector": selector, "template": template},
        }
        name, count = made["metadata"]["name"], body["spec"]["replicas"]
        self.report(
            owner,
            "ScalingReplicaSet",
            f"Scaled up replica set {name} from 0 to {count}",
            source="deployment-controller",
        )
        return self.verbs.create(REPLICA_SETS, owner.namespace, made)

    def _note_revision(self, deployment: Stored, current: Stored) -> None:
        """Set the revision annotation of a deployment; unlike other annotations, it does not change the generation."""
        revision = current.view()["metadata"]["annotations"][REVISION]
        found = self.store.get(DEPLOYMENTS, deployment.namespace, deployment.name)
        if (found.view()["metadata"].get("annotations") or {}).get(REVISION) != revision:
            body = found.read()
            body["metadata"].setdefault("annotations", {})[REVISION] = revision
            self.store.put(DEPLOYMENTS, body)

    def _scale(self, one: Stored, replicas: int) -> None:
        found = self.store.find(one.kind, one.namespace, one.name)
        if found is None or found.deleting:
            return
        if found.view()["spec"]["replicas"] != replicas:
            body = found.read()
            body["spec"]["replicas"] = replicas
            self.verbs.update(one.kind, one.namespace, one.name, body)

    def _count(self, one: Stored, name: str) -> int:
        found = self.store.find(one.kind, one.namespace, one.name)
        return int((found.view().get("status") or {}).get(name, 0)) if found else 0

    def _tell(self, status: Json, body: Json, current: Stored | None, former: Sequence[Stored]) -> None:
        sets = [*([current] if current else []), *former]
        wanted = int(body["spec"]["replicas"])
        status["observedGeneration"] = body["metadata"]["generation"]
        status["terminatingReplicas"] = 0
        counts = {
            "replicas": sum(self._count(one, "replicas") for one in sets),
            "updatedReplicas": self._count(current, "replicas") if current else 0,
            "readyReplicas": sum(self._count(one, "readyReplicas") for one in sets),
            "availableReplicas": sum(self._count(one, "availableReplicas") for one in sets),
        }
        counts["unavailableReplicas"] = max(0, wanted - counts["availableReplicas"])
        for name, count in counts.items():
            if count:
                status[name] = count
            else:
                status.pop(name, None)
        now = self.stamp()
        self._tell_denied(status, current)
        if counts["availableReplicas"] >= wanted - wanted // 4:
            set_condition(
                status, "Available", "True", now, "MinimumReplicasAvailable", "Deployment has minimum availability."
            )
        else:
            set_condition(
                status, "Available", "False", now, "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )  # fmt: skip
        done = counts["availableReplicas"] == counts["updatedReplicas"] == counts["replicas"] == wanted
        reason = "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"
        set_condition(status, "Progressing", "True", now, reason)

    def _tell_denied(self, status: Json, current: Stored | None) -> None:
        """Copy the replica set's report of pods that it could not create."""
        found = self.store.find(current.kind, current.namespace, current.name) if current else None
        said = (found.view().get("status") or {}).get("conditions") or () if found else ()
        failure = next((one for one in said if one["type"] == "ReplicaFailure"), None)
        if failure is None:
            remove_condition(status, "ReplicaFailure")
        else:
            moment, why = failure["lastTransitionTime"], failure["message"]
            set_condition(status, "ReplicaFailure", failure["status"], moment, failure["reason"], why)


def _hash(template: Json) -> str:
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])
