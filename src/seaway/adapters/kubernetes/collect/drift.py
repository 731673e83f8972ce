"""Changes of others to Seaway's objects, found by comparing the owners of their fields.

An apply makes its field manager the owner of the applied fields. A user or controller who changes a field becomes its
owner, and who removes it leaves it without one. So the fields that Seaway owned and no longer owns have drifted.

References
----------
Kubernetes documentation, "Server-Side Apply": field management. Structured merge diff, FieldsV1: the syntax of paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from seaway.adapters.kubernetes.connection.api import MANAGER
from seaway.adapters.kubernetes.objects.core import OwnedMeta
from seaway.adapters.kubernetes.templates.plain import QUEUE_NAME
from seaway.domain.deployment import ObjectDrift
from seaway.domain.reasons import Reason

ObjectKey = tuple[str, str]
"""Path of a kind's objects, and ``namespace/name``."""

Paths = frozenset[str]

MAX_NAMED = 5
"""Maximum number of fields in a message."""

WRITTEN = frozenset(
    {
        *(
            "replicas",
            "parallelism",
            "completions",
            "image",
            "command",
            "args",
            "env",
            "resources",
            "ports",
            "selector",
        ),
        *("nodeSelector", "affinity", "tolerations", "schedulerName", "annotations", "labels", "type", "hostnames"),
        *("rules", "parentRefs", "overriders", "placement", "resourceSelectors"),
    }
)
"""Fields that Seaway usually writes. Others' changes of them count for an object that is seen for the first time, for
example after a restart of Seaway."""


NONE = ObjectDrift("")


class DriftTracker:
    """Fields of objects that Seaway owned when they were first seen, or after its latest write."""

    def __init__(self) -> None:
        self._owned: dict[ObjectKey, tuple[str, Paths]] = {}

    def look(self, place: ObjectKey, meta: OwnedMeta) -> ObjectDrift:
        """Return what others changed in an object; without a text, nothing.

        Objects that Kueue changes on Seaway's behalf, and those that Karmada wrote, never drift.
        """
        mine = [each for each in meta.managed_fields if each.manager == MANAGER and not each.subresource]
        others = [each for each in meta.managed_fields if each.manager != MANAGER and each.subresource != "status"]
        if QUEUE_NAME in meta.labels or (not mine and place not in self._owned):
            return NONE
        time = max((each.time for each in mine), default="")
        now = frozenset[str]().union(*(_paths(bytes(each.fields_v1)) for each in mine))
        by = {path: each.manager for each in others for path in _paths(bytes(each.fields_v1)) - now}
        if place not in self._owned:
            foreign = {path for path in by if path.startswith("spec.") and not WRITTEN.isdisjoint(_names(path))}
            self._owned[place] = (time, now | foreign)
        elif mine and time != self._owned[place][0]:  # Seaway wrote it again, perhaps another version of Seaway
            self._owned[place] = (time, now)
        text = _text(place, self._owned[place][1] - now, by)
        return ObjectDrift(text, f"{meta.generation} {time}") if text else NONE

    def forget(self, place: ObjectKey) -> None:
        """Remove an object."""
        self._owned.pop(place, None)


def deleted_text(place: ObjectKey) -> str:
    """Return the message on a deleted object."""
    return Reason("object_deleted", name=_object(place))


def _text(place: ObjectKey, lost: Paths, by: Mapping[str, str]) -> str:
    if not lost:
        return ""
    changed: dict[str, list[str]] = {}
    for path in sorted(lost):
        changed.setdefault(by.get(path, ""), []).append(path)
    removed = changed.pop("", [])
    parts = [Reason("fields_changed", who=manager, fields=_listed(paths)) for manager, paths in changed.items()]
    if removed:
        parts.append(Reason("field_removed" if len(removed) == 1 else "fields_removed", fields=_listed(removed)))
    return Reason("object_changed", name=_object(place), clauses=tuple(parts))


def _listed(paths: list[str]) -> str:
    named, more = ", ".join(paths[:MAX_NAMED]), len(paths) - MAX_NAMED
    return Reason("more_fields", fields=named, count=more) if more > 0 else named


def _object(place: ObjectKey) -> str:
    """Return the name of an object as for kubectl."""
    return f"{place[0].rpartition('/')[2]}/{place[1].rpartition('/')[2]}"


def _names(path: str) -> set[str]:
    return {each.partition("[")[0] for each in path.split(".")}


@lru_cache(maxsize=1024)
def _paths(fields: bytes) -> Paths:
    """Return the paths of a set of fields. Objects of equal form share it."""
    return frozenset(_leaves(msgspec.json.decode(fields or b"{}"), ""))


def _leaves(fields: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, inner in fields.items():
        if key == ".":
            continue
        below = f"{path}.{key[2:]}" if key.startswith("f:") else f"{path}[{_item(key)}]"
        if isinstance(inner, dict) and inner.keys() - {"."}:
            yield from _leaves(inner, below)
        else:
            yield below.removeprefix(".")


def _item(key: str) -> str:
    """Return the text of an item of a list: its keys, its value or its index."""
    sort, _, text = key.partition(":")
    if sort != "k":
        return text
    return ",".join(f"{name}={value}" for name, value in json.loads(text).items())


def without_fields(meta: OwnedMeta) -> OwnedMeta:
    """Return metadata without the owners of fields, which refer to the bytes of a whole answer."""
    return msgspec.structs.replace(meta, managed_fields=())
