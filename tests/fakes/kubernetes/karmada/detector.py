"""ResourceBindings from policies and templates."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.kubernetes.controllers.staff import Controller, Staff, owner_reference
from tests.fakes.kubernetes.defaults import requests_of
from tests.fakes.kubernetes.karmada.words import (
    BINDING_FINALIZER,
    BINDING_ID,
    POLICY_ID,
    POLICY_NAME,
    POLICY_NAMESPACE,
    replicas_of,
)
from tests.fakes.kubernetes.kinds import BINDINGS, KARMADA, POLICIES, Json, Kind
from tests.fakes.kubernetes.selectors import object_rule
from tests.fakes.kubernetes.store import Event, Stored

Key = tuple[Kind, str, str]
_UNCLAIMED = frozenset({"Event", "Namespace", "Lease", "Node"})


class Detector(Controller[Key]):
    """Creates a binding for each object that a policy selects, and updates all of it but its clusters."""

    kinds = None

    def __init__(self, staff: Staff) -> None:
        super().__init__(staff)
        self._named: dict[tuple[str, str, str, str], set[str]] = {}
        self._wide: dict[str, set[str]] = {}
        self._selectors: dict[tuple[str, str], list[Json]] = {}

    def receive(self, event: Event) -> Iterator[Key]:
        """Return templates that changed, and those that a changed policy selects."""
        now = event.now
        if now.kind is POLICIES:
            old = self._selectors.get((now.namespace, now.name), [])
            self._index(now, gone=event.type == "DELETED")
            if event.type != "DELETED":
                yield from self._selected(now.namespace, [*old, *self._selectors[now.namespace, now.name]])
        elif now.kind is BINDINGS:
            if event.type == "DELETED":
                resource = now.view()["spec"]["resource"]
                kind = self.store.kinds.named(resource["apiVersion"], resource["kind"])
                if kind is not None:
                    yield kind, resource["namespace"], resource["name"]
        elif event.type != "DELETED" and self._may_claim(now) and _rewritten(event):
            yield now.kind, now.namespace, now.name

    def look(self, key: Key) -> None:
        """Claim a template for its policy and write its binding."""
        template = self.store.find(*key)
        if template is None or template.deleting:
            return
        policy = self._policy_for(template)
        if policy is None:
            return
        rules = policy.view()
        claim = {POLICY_NAMESPACE: policy.namespace, POLICY_NAME: policy.name}
        meta = template.view()["metadata"]
        claimed = {**(meta.get("annotations") or {}), **claim}
        labels = {**(meta.get("labels") or {}), POLICY_ID: policy.uid}
        if claimed != meta.get("annotations") or labels != meta.get("labels"):
            body = template.read()
            body["metadata"] |= {"annotations": claimed, "labels": labels}
            template = self.verbs.update(template.kind, template.namespace, template.name, body)
        self._write(template, template.view(), rules, claim)

    # Policies --------------------------------------------------------------------------------------------------------

    def _index(self, policy: Stored, *, gone: bool) -> None:
        place = (policy.namespace, policy.name)
        for one in self._selectors.pop(place, []):
            if one.get("name"):
                self._named.get(_place(policy.namespace, one), set()).discard(policy.name)
            else:
                self._wide.get(policy.namespace, set()).discard(policy.name)
        if gone:
            return
        self._selectors[place] = policy.view()["spec"]["resourceSelectors"]
        for one in self._selectors[place]:
            if one.get("name"):
                self._named.setdefault(_place(policy.namespace, one), set()).add(policy.name)
            else:
                self._wide.setdefault(policy.namespace, set()).add(policy.name)

    def _may_claim(self, one: Stored) -> bool:
        unclaimed = not one.namespace or one.kind in KARMADA or one.kind.kind in _UNCLAIMED
        return not unclaimed and bool(self._candidates(one))

    def _candidates(self, template: Stored) -> set[str]:
        place = (template.namespace, template.kind.api_version, template.kind.kind, template.name)
        return self._named.get(place, set()) | self._wide.get(template.namespace, set())

    def _selected(self, namespace: str, selectors: list[Json]) -> Iterator[Key]:
        for one in selectors:
            kind = self.store.kinds.named(one.get("apiVersion", ""), one["kind"])
            if kind is None:
                continue
            if one.get("name"):
                yield kind, namespace, one["name"]
                continue
            for template in self.store.all(kind, namespace):
                yield kind, namespace, template.name

    def _policy_for(self, template: Stored) -> Stored | None:
        best: tuple[int, int, str] | None = None
        for name in sorted(self._candidates(template)):
            policy = self.store.find(POLICIES, template.namespace, name)
            if policy is None or policy.deleting:
                continue
            spec = policy.view()["spec"]
            closeness = max((_closeness(one, template) for one in spec["resourceSelectors"]), default=0)
            rank = (-int(spec.get("priority", 0)), -closeness, name)
            if closeness and (best is None or rank < best):
                best = rank
        return self.store.find(POLICIES, template.namespace, best[2]) if best else None

    # Bindings --------------------------------------------------------------------------------------------------------

    def _write(self, template: Stored, body: Json, rules: Json, claim: Json) -> None:
        kind = template.kind
        name = f"{template.name}-{kind.kind}".lower().replace(":", ".")
        spec = rules["spec"]
        wanted: Json = {
            "resource": {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "namespace": template.namespace,
                "name": template.name,
                "uid": template.uid,
                "resourceVersion": str(template.version),
            },
            "schedulerName": spec["schedulerName"],
            "placement": spec.get("placement") or {},
            "conflictResolution": spec["conflictResolution"],
            **{key: spec[key] for key in ("propagateDeps", "failover", "preserveResourcesOnDeletion") if key in spec},
        }
        if "suspension" in spec:
            wanted["suspension"] = spec["suspension"]
        replicas = replicas_of(kind, body)
        if replicas is not None:
            wanted["replicas"] = replicas
            wanted["replicaRequirements"] = _requirements(template.namespace, body["spec"]["template"]["spec"])
        labels = {POLICY_ID: template.labels.get(POLICY_ID, "")}
        found = self.store.find(BINDINGS, template.namespace, name)
        if found is None:
            meta = {
                "name": name,
                "labels": {**labels, BINDING_ID: self.store.new_uid()},
                "annotations": claim,
                "ownerReferences": [owner_reference(template)],
                "finalizers": [BINDING_FINALIZER],
            }
            self.verbs.create(BINDINGS, template.namespace, {"metadata": meta, "spec": wanted})
            return
        if found.deleting or template.uid not in found.owners:
            return  # the binding of a former object with that name; the template is processed again when it is gone
        binding = found.read()
        binding["metadata"]["labels"].update(labels)
        binding["metadata"].setdefault("annotations", {}).update(claim)
        retained = {
            key: binding["spec"][key] for key in ("clusters", "gracefulEvictionTasks") if key in binding["spec"]
        }
        binding["spec"] = {**wanted, **retained}
        self.verbs.update(BINDINGS, template.namespace, name, binding)


def _rewritten(event: Event) -> bool:
    """Report whether more than the status of an object changed."""
    if event.before is None or event.status:
        return not event.status

    def rest(one: Stored) -> Json:
        body = {key: value for key, value in one.view().items() if key != "status"}
        meta = body["metadata"].items()
        body["metadata"] = {key: value for key, value in meta if key not in ("resourceVersion", "managedFields")}
        return body

    return rest(event.before) != rest(event.now)


def _place(namespace: str, selector: Json) -> tuple[str, str, str, str]:
    return namespace, selector.get("apiVersion", ""), selector["kind"], selector["name"]


def _closeness(selector: Json, template: Stored) -> int:
    """Return how closely a selector matches an object: 3 by name, 2 by labels, 1 by kind, 0 not at all."""
    if (selector.get("apiVersion", ""), selector["kind"]) != (template.kind.api_version, template.kind.kind):
        return 0
    if selector.get("name"):
        return 3 if selector["name"] == template.name else 0
    rule = object_rule(selector.get("labelSelector"))
    if rule is None:
        return 1
    return 2 if rule(template.labels) else 0


def _requirements(namespace: str, spec: Json) -> Json:
    claim = {key: spec[key] for key in ("nodeSelector", "tolerations") if key in spec}
    asked: Json = {}
    for container in spec.get("containers") or ():
        asked.update(requests_of(container))
    return {
        **({"nodeClaim": claim} if claim else {}),
        **({"resourceRequest": asked} if asked else {}),
        "namespace": namespace,
    }
