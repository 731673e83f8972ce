"""OverridePolicies: differences of an object in one cluster."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson

from tests.fakes.kubernetes.kinds import OVERRIDES, Json, Kind
from tests.fakes.kubernetes.patches import json_patch
from tests.fakes.kubernetes.selectors import object_rule
from tests.fakes.kubernetes.store import Event, Store, Stored


def selects(policy: Json, kind: Kind, manifest: Json) -> bool:
    """Report whether an OverridePolicy applies to an object; without selectors it applies to all of its namespace."""
    selectors = policy["spec"].get("resourceSelectors") or ()
    if not selectors:
        return True
    for one in selectors:
        if (one.get("apiVersion"), one["kind"]) != (kind.api_version, kind.kind):
            continue
        if one.get("name"):
            if one["name"] == manifest["metadata"]["name"]:
                return True
            continue
        rule = object_rule(one.get("labelSelector"))
        if rule is None or rule(manifest["metadata"].get("labels") or {}):
            return True
    return False


class Overrides:
    """OverridePolicies by the objects that they name, to check only those that may apply."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._named: dict[tuple[str, str, str, str], set[str]] = {}
        self._wide: dict[str, set[str]] = {}
        self._places: dict[tuple[str, str], list[set[str]]] = {}

    def receive(self, event: Event) -> None:
        """Store a policy in its current form."""
        now = event.now
        for place in self._places.pop((now.namespace, now.name), ()):
            place.discard(now.name)
        if event.type == "DELETED":
            return
        places = [
            self._wide.setdefault(now.namespace, set())
            if one is None
            else self._named.setdefault((now.namespace, *one), set())
            for one in named(now.view())
        ]
        for place in places:
            place.add(now.name)
        self._places[now.namespace, now.name] = places

    def about(self, kind: Kind, namespace: str, name: str) -> list[Stored]:
        """Return the policies that may apply to an object.

        More general ones come first, so that more specific ones win.
        """
        names = self._named.get((namespace, kind.api_version, kind.kind, name), set()) | self._wide.get(
            namespace, set()
        )
        found = (self._store.find(OVERRIDES, namespace, each) for each in names)
        return sorted(filter(None, found), key=_closeness)


def named(policy: Json) -> list[tuple[str, str, str] | None]:
    """Return apiVersion, kind and name of the objects of a policy; None if it does not select by name."""
    selectors = policy["spec"].get("resourceSelectors") or ()
    return [
        (one.get("apiVersion", ""), one["kind"], one["name"]) if one.get("name") else None for one in selectors
    ] or [None]


def override(overrides: Overrides, kind: Kind, manifest: Json, cluster: Stored) -> tuple[Json, str]:
    """Return an object for one cluster, and the annotation that names the applied policies.

    Raises
    ------
    PatchError
        If a rule does not fit the object.
    """
    applied: list[Json] = []
    meta = manifest["metadata"]
    for policy in overrides.about(kind, meta["namespace"], meta["name"]):
        body = policy.view()
        if policy.deleting or not selects(body, kind, manifest):
            continue
        for rule in body["spec"].get("overrideRules") or ():
            if not _targets(rule.get("targetCluster"), cluster):
                continue
            overriders = rule.get("overriders") or {}
            manifest = _carry_out(manifest, overriders)
            applied.append({"policyName": policy.name, "overriders": overriders})
    return manifest, orjson.dumps(applied).decode() if applied else ""


def _closeness(policy: Stored) -> tuple[int, str]:
    selectors = policy.view()["spec"].get("resourceSelectors") or ()
    if any(one.get("name") for one in selectors):
        return 2, policy.name
    return (1 if selectors else 0), policy.name


def _targets(target: Json | None, cluster: Stored) -> bool:
    if not target:
        return True
    if cluster.name in (target.get("exclude") or ()):
        return False
    names = target.get("clusterNames")
    if names and cluster.name not in names:
        return False
    rule = object_rule(target.get("labelSelector"))
    return rule is None or rule(cluster.labels)


def _carry_out(manifest: Json, overriders: Json) -> Json:
    operations = []
    for one in overriders.get("plaintext") or ():
        operation = {"op": one["operator"], "path": one["path"]}
        if "value" in one:
            operation["value"] = deepcopy(one["value"])
        operations.append(operation)
    manifest = json_patch(manifest, operations)
    for name, path in (("labelsOverrider", "labels"), ("annotationsOverrider", "annotations")):
        for one in overriders.get(name) or ():
            _change_map(manifest["metadata"].setdefault(path, {}), one)
    for one in overriders.get("imageOverrider") or ():
        for container in _containers(manifest):
            container["image"] = _image(container["image"], one)
    return manifest


def _change_map(target: Json, change: Json) -> None:
    for key, value in (change.get("value") or {}).items():
        if change["operator"] == "remove":
            target.pop(key, None)
        elif change["operator"] == "add" or key in target:
            target[key] = value


def _containers(manifest: Json) -> list[Any]:
    spec = manifest.get("spec") or {}
    spec = spec.get("template", {}).get("spec", spec)
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _image(image: str, change: Json) -> str:
    """Change one part of an image's name: its registry, its repository or its tag."""
    head, _, tail = image.rpartition("/")
    name, _, tag = tail.partition(":")
    first, _, rest = head.partition("/")
    registry = first if "." in first or ":" in first or first == "localhost" else ""
    repository = "/".join(part for part in ((rest if registry else head), name) if part)
    parts = {"Registry": registry, "Repository": repository, "Tag": tag}
    value = change.get("value", "")
    component = change["component"]
    match change["operator"]:
        case "add":
            parts[component] += value
        case "remove":
            parts[component] = ""
        case _:
            parts[component] = value
    named = "/".join(part for part in (parts["Registry"], parts["Repository"]) if part)
    return f"{named}:{parts['Tag']}" if parts["Tag"] else named
