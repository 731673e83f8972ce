"""Works for the clusters of a binding, and their status for the binding and the template."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.kubernetes.controllers.staff import Controller, Staff, set_condition
from tests.fakes.kubernetes.karmada.overriding import Overrides, named, override, selects
from tests.fakes.kubernetes.karmada.statuses import gather
from tests.fakes.kubernetes.karmada.words import (
    APPLIED_OVERRIDES,
    BINDING_FINALIZER,
    BINDING_ID,
    BINDING_NAME,
    BINDING_NAMESPACE,
    CONFLICT_RESOLUTION,
    MANAGED,
    REPLICAS,
    SPACE,
    TEMPLATE_GENERATION,
    TEMPLATE_UID,
    WORK_FINALIZER,
    WORK_ID,
    WORK_NAME,
    WORK_NAMESPACE,
    divided,
    prune,
    share,
    work_name,
)
from tests.fakes.kubernetes.kinds import BINDINGS, CLUSTERS, JOBS, OVERRIDES, WORKS, Json, Kind
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.patches import PatchError
from tests.fakes.kubernetes.store import Event, Stored

Key = tuple[str, str]


class Bindings(Controller[Key]):
    """Creates a Work for each cluster of a binding, and writes their outcome to the binding and the template."""

    kinds = (BINDINGS, WORKS, OVERRIDES, CLUSTERS)

    def __init__(self, staff: Staff) -> None:
        super().__init__(staff)
        self._works: dict[str, dict[str, str]] = {}
        self._bindings: dict[str, Key] = {}
        self._of: dict[tuple[str, str, str, str], Key] = {}
        self._overrides = Overrides(self.store)

    def receive(self, event: Event) -> Iterator[Key]:
        """Return bindings that changed, whose works changed, or that an override affects."""
        now = event.now
        if now.kind is BINDINGS:
            mark = now.labels.get(BINDING_ID, "")
            resource = now.view()["spec"]["resource"]
            place = (resource["namespace"], resource["apiVersion"], resource["kind"], resource["name"])
            if event.type == "DELETED":
                self._bindings.pop(mark, None)
                self._of.pop(place, None)
            else:
                self._bindings[mark] = self._of[place] = (now.namespace, now.name)
                if not event.status:
                    yield now.namespace, now.name
        elif now.kind is WORKS:
            mark = now.labels.get(BINDING_ID, "")
            works = self._works.setdefault(mark, {})
            if event.type == "DELETED":
                works.pop(now.namespace, None)
            else:
                works[now.namespace] = now.name
            if mark in self._bindings:
                yield self._bindings[mark]
        elif now.kind is OVERRIDES:
            self._overrides.receive(event)
            yield from self._concerned(now)
        elif event.type == "ADDED":
            yield from list(self._bindings.values())

    def look(self, key: Key) -> None:
        """Write the works of a binding, remove superfluous ones, and aggregate their status."""
        binding = self.store.find(BINDINGS, *key)
        if binding is None:
            return
        body = binding.view()
        works = self._works.get(binding.labels.get(BINDING_ID, ""), {})
        clusters: list[Json] = [] if binding.deleting else body["spec"].get("clusters") or []
        wanted = {f"{SPACE}{one['name']}" for one in clusters}
        for namespace in [one for one in works if one not in wanted]:
            found = self.store.find(WORKS, namespace, works[namespace])
            if found is not None and not found.deleting:
                self.verbs.delete(WORKS, namespace, found.name, DeleteOptions(propagation="Background"))
        if binding.deleting:
            if not works:
                self._let_go(binding.read())
            return
        resource = body["spec"]["resource"]
        kind = self.store.kinds.named(resource["apiVersion"], resource["kind"])
        template = self.store.find(kind, resource["namespace"], resource["name"]) if kind else None
        if kind is None or template is None or template.deleting:
            return
        for one in clusters:
            self._write(binding, body, template, one, clusters)
        self._gather(binding, body, template)

    def _concerned(self, policy: Stored) -> Iterator[Key]:
        rules = policy.view()
        places = named(rules)
        if None in places:
            keys = [key for key in self._bindings.values() if key[0] == policy.namespace]
        else:
            keys = [self._of[policy.namespace, *one] for one in places if one and (policy.namespace, *one) in self._of]
        for namespace, name in keys:
            binding = self.store.find(BINDINGS, namespace, name)
            resource = binding.view()["spec"]["resource"] if binding else None
            kind = self.store.kinds.named(resource["apiVersion"], resource["kind"]) if resource else None
            template = self.store.find(kind, namespace, resource["name"]) if kind and resource else None
            if kind and template and selects(rules, kind, template.view()):
                yield namespace, name

    def _let_go(self, body: Json) -> None:
        meta = body["metadata"]
        meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != BINDING_FINALIZER]
        self.verbs.update(BINDINGS, meta["namespace"], meta["name"], body)

    # Works -----------------------------------------------------------------------------------------------------------

    def _write(self, binding: Stored, body: Json, template: Stored, target: Json, clusters: list[Json]) -> None:
        cluster = self.store.find(CLUSTERS, "", target["name"])
        if cluster is None:
            return
        kind = template.kind
        source = template.read()
        generation = source["metadata"].get("generation", 0)
        manifest = prune(kind, source)
        self._divide(kind, manifest, body["spec"], target, clusters)
        try:
            manifest, applied = override(self._overrides, kind, manifest, cluster)
        except PatchError as error:
            self.report(binding, "SyncWorkFailed", f"failed to apply overrides: {error}", kind="Warning")
            return
        namespace = f"{SPACE}{cluster.name}"
        name = work_name(kind.kind, template.namespace, template.name)
        found = self.store.find(WORKS, namespace, name)
        mark = found.labels[WORK_ID] if found else self.store.new_uid()
        own = {BINDING_NAMESPACE: binding.namespace, BINDING_NAME: binding.name}
        meta = manifest["metadata"]
        resolution = (meta.get("annotations") or {}).get(CONFLICT_RESOLUTION, "")
        resolution = resolution or body["spec"].get("conflictResolution", "Abort").lower()
        meta["labels"] = {
            **(meta.get("labels") or {}),
            BINDING_ID: binding.labels[BINDING_ID],
            WORK_ID: mark,
            MANAGED: "true",
        }
        meta["annotations"] = {
            **(meta.get("annotations") or {}),
            **own,
            **({TEMPLATE_GENERATION: str(generation)} if generation else {}),
            TEMPLATE_UID: template.uid,
            WORK_NAMESPACE: namespace,
            WORK_NAME: name,
            CONFLICT_RESOLUTION: resolution,
        }
        notes = {**own, CONFLICT_RESOLUTION: resolution, **({APPLIED_OVERRIDES: applied} if applied else {})}
        spec: Json = {"workload": {"manifests": [manifest]}}
        if self._suspended(body["spec"], cluster.name):
            spec["suspendDispatching"] = True
        if body["spec"].get("preserveResourcesOnDeletion"):
            spec["preserveResourcesOnDeletion"] = True
        if found is None:
            labels = {BINDING_ID: binding.labels[BINDING_ID], WORK_ID: mark}
            made = {"name": name, "labels": labels, "annotations": notes, "finalizers": [WORK_FINALIZER]}
            self.verbs.create(WORKS, namespace, {"metadata": made, "spec": spec})
        elif not found.deleting and not _says(found.view(), notes, spec):
            work = found.read()
            work["metadata"]["annotations"] = notes
            work["spec"] = spec
            self.verbs.update(WORKS, namespace, name, work)

    @staticmethod
    def _divide(kind: Kind, manifest: Json, spec: Json, target: Json, clusters: list[Json]) -> None:
        """Assign a cluster its share of the replicas, and of a job's completions."""
        if kind not in REPLICAS or not (spec.get("replicas") or spec.get("replicaRequirements")):
            return
        part, name = REPLICAS[kind]
        manifest[part][name] = int(target.get("replicas", 0))
        completions = manifest["spec"].get("completions")
        if kind is JOBS and completions is not None and divided(spec.get("placement") or {}) and spec.get("replicas"):
            weights = {one["name"]: int(one.get("replicas", 0)) for one in clusters}
            manifest["spec"]["completions"] = share(int(completions), weights)[target["name"]]

    @staticmethod
    def _suspended(spec: Json, cluster: str) -> bool:
        suspension = spec.get("suspension") or {}
        only = (suspension.get("dispatchingOnClusters") or {}).get("clusterNames") or ()
        return bool(suspension.get("dispatching")) or cluster in only

    # Status ----------------------------------------------------------------------------------------------------------

    def _gather(self, binding: Stored, body: Json, template: Stored) -> None:
        works = self._works.get(binding.labels.get(BINDING_ID, ""), {})
        found = [self.store.find(WORKS, namespace, works[namespace]) for namespace in sorted(works)]
        said = [(one.namespace.removeprefix(SPACE), one.view()) for one in found if one and not one.deleting]
        items = [_item(cluster, work) for cluster, work in said]
        names = {one["name"] for one in body["spec"].get("clusters") or ()}
        full = bool(names) and names == {one["clusterName"] for one in items if one.get("applied")}
        moment = self.stamp()

        def tell(status: Json) -> None:
            if items or "aggregatedStatus" in status:
                status["aggregatedStatus"] = items
            if not names and "aggregatedStatus" not in status:
                return
            reason = "FullyAppliedSuccess" if full else "FullyAppliedFailed"
            message = "All works have been successfully applied" if full else "Failed to apply all works"
            set_condition(status, "FullyApplied", "True" if full else "False", moment, reason, message)

        self.write_status(binding, tell)
        self.write_status(template, lambda status: gather(template.kind, template.view(), items, status, moment))


def _says(work: Json, notes: Json, spec: Json) -> bool:
    """Report whether a Work is already up to date."""
    return bool(work["metadata"].get("annotations") == notes and work["spec"] == spec)


def _item(cluster: str, work: Json) -> Json:
    status = work.get("status") or {}
    applied = next((one for one in status.get("conditions") or () if one["type"] == "Applied"), None)
    item: Json = {"clusterName": cluster, "health": "Unknown"}
    if applied is None or applied["status"] != "True":
        if applied is not None:
            item["appliedMessage"] = applied.get("message", "")
        return item
    item["applied"] = True
    for one in status.get("manifestStatuses") or ():
        item["health"] = one.get("health", "Unknown")
        if one.get("status") is not None:
            item["status"] = one["status"]
    return item
