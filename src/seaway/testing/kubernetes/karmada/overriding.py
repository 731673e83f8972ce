"""OverridePolicies: what is different about an object in one cluster."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson

from seaway.testing.kubernetes.kinds import OVERRIDES, Json, Kind
from seaway.testing.kubernetes.patches import json_patch
from seaway.testing.kubernetes.selectors import object_rule
from seaway.testing.kubernetes.store import Store, Stored


def selects(policy: Json, kind: Kind, manifest: Json) -> bool:
    """Tell whether an OverridePolicy is about an object; without selectors it is about all of its namespace."""
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


def override(store: Store, kind: Kind, manifest: Json, cluster: Stored) -> tuple[Json, str]:
    """Return an object as one cluster is to have it, and the annotation that says which policies made it so.

    Raises
    ------
    PatchError
        If a rule does not fit the object.
    """
    applied: list[Json] = []
    for policy in _ordered(store, manifest["metadata"]["namespace"]):
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


def _ordered(store: Store, namespace: str) -> list[Stored]:
    """Return the policies of a namespace; more general ones come first, so that closer ones have the last word."""

    def closeness(policy: Stored) -> tuple[int, str]:
        selectors = policy.view()["spec"].get("resourceSelectors") or ()
        if any(one.get("name") for one in selectors):
            return 2, policy.name
        return (1 if selectors else 0), policy.name

    return sorted(store.all(OVERRIDES, namespace), key=closeness)


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
