"""Puts what Seaway has to say into a pod template that somebody else wrote."""

from __future__ import annotations

from typing import Any

from seaway.adapters.kubernetes.templates.context import Context, PodTemplate
from seaway.adapters.kubernetes.templates.environment import NO_DEVICES
from seaway.adapters.kubernetes.templates.manifest import Path, find
from seaway.adapters.kubernetes.templates.parts import Group
from seaway.adapters.kubernetes.templates.pods import marks, ties

MAIN = "main"
"""The container that gets a replica's resources; where none is called so, the first does."""


def graft(body: dict[str, Any], at: Path, context: Context, group: Group) -> PodTemplate:
    """Mark, equip and tie a pod template in its place.

    What it says itself stays, unless it is about the same: marks and resources are Seaway's, labels of nodes and
    tolerations come from both, and variables are Seaway's only where it says nothing of them.

    Parameters
    ----------
    body
        The workload, written to.
    at
        Where in it the pod template is.
    """
    template = find(body, at)
    spec = template["spec"]
    tied = ties(context, group, at, labels=spec.get("nodeSelector"))
    both = {name: [*(spec.get(name) or []), *tied.fields.get(name, [])] for name in ("tolerations", "imagePullSecrets")}
    spec |= {name: value for name, value in {**tied.fields, **both}.items() if value}
    spec.setdefault("automountServiceAccountToken", False)
    spec.setdefault("enableServiceLinks", False)
    main = next((each for each in spec["containers"] if each.get("name") == MAIN), spec["containers"][0])
    main["resources"] = _resources(main.get("resources") or {}, tied.resources)
    for each in (*(spec.get("initContainers") or ()), *spec["containers"]):
        _add_variables(each, tied.env if each is main else NO_DEVICES)
    own = marks(context, group)
    metadata = template["metadata"] = template.get("metadata") or {}
    for name, marked in own.items():
        metadata[name] = {**(metadata.get(name) or {}), **marked}
    return PodTemplate(template, tied.pins, tied.claims)


def _add_variables(container: dict[str, Any], env: tuple[tuple[str, str], ...]) -> None:
    """Give a container the variables that it does not have; clusters refuse what is no list of variables."""
    theirs = container.get("env") or []
    if not isinstance(theirs, list) or not all(isinstance(each, dict) for each in theirs):
        return
    said = {each.get("name") for each in theirs}
    if more := [{"name": name, "value": value} for name, value in env if name not in said]:
        container["env"] = [*theirs, *more]


def _resources(theirs: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return resources with CPU, memory and devices as the job has them, and what else the template asks for."""
    merged: dict[str, Any] = {}
    for name in ("limits", "requests"):
        kept = {key: value for key, value in (theirs.get(name) or {}).items() if key not in ("cpu", "memory")}
        if both := {**kept, **own.get(name, {})}:
            merged[name] = both
    if claims := own.get("claims"):
        merged["claims"] = claims
    return merged
