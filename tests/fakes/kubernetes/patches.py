"""Changes to JSON: merge patches (RFC 7386), JSON patches (RFC 6902) and strategic merge patches.

Strategic patches merge lists of objects that have a key, and treat other lists as a merge patch does. They support the
directives ``$patch: delete``, ``$patch: replace``, ``$retainKeys`` and ``$deleteFromPrimitiveList``.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from tests.fakes.kubernetes.kinds import Json

LIST_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "ephemeralContainers": (("name",),),
    "env": (("name",),),
    "volumes": (("name",),),
    "volumeMounts": (("mountPath",),),
    "volumeDevices": (("devicePath",),),
    "imagePullSecrets": (("name",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "conditions": (("type",),),
    "ownerReferences": (("uid",),),
    "hostAliases": (("ip",),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "addresses": (("type",),),
    "resourceClaims": (("name",),),
    "claims": (("name",),),
}
"""Fields that identify the items of a list in Kubernetes; lists that are not here are replaced as a whole."""

DEFAULTS = {"protocol": "TCP"}
"""Defaults of missing key fields."""


def key_fields(field: str, items: Sequence[object]) -> tuple[str, ...]:
    """Return the fields that identify the items of a list; empty if none do."""
    for fields in LIST_KEYS.get(field, ()):
        if all(isinstance(one, dict) and all(name in one or name in DEFAULTS for name in fields) for one in items):
            return fields
    return ()


def item_key(item: Json, fields: Sequence[str]) -> tuple[object, ...]:
    """Return the key of an item of a list."""
    return tuple([item.get(name, DEFAULTS.get(name)) for name in fields])


def merge(target: object, patch: object) -> Any:  # noqa: ANN401, any JSON
    """Apply a merge patch; the target is modified.

    Examples
    --------
    >>> merge({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    found: Json = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merge(found.get(key), value)
    return found


def strategic(target: object, patch: object) -> Any:  # noqa: ANN401, any JSON
    """Apply a strategic merge patch; the target is modified."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    found: Json = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$setElementOrder/") or key == "$patch":
            continue
        if key == "$retainKeys":
            found = {name: one for name, one in found.items() if name in value}
        elif key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            found[name] = [one for one in found.get(name, []) if one not in value]
        elif value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            found.pop(key, None)
        elif isinstance(value, list):
            found[key] = _strategic_list(key, found.get(key) or [], value)
        else:
            found[key] = strategic(found.get(key), value)
    return found


def _strategic_list(field: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if field == "finalizers":
        return [*target, *(one for one in patch if one not in target)]
    fields = _strategic_key(field, patch)
    if not fields:
        return patch
    merged = {item_key(one, fields): one for one in target}
    for one in patch:
        if one.get("$patch") == "replace":
            return [item for item in patch if "$patch" not in item]
        key = item_key(one, fields)
        if one.get("$patch") == "delete":
            merged.pop(key, None)
        else:
            merged[key] = strategic(merged.get(key), one)
    return list(merged.values())


def _strategic_key(field: str, patch: Sequence[object]) -> tuple[str, ...]:
    """Return the key of a list; strategic patches identify taints by their key, and ports by one field only."""
    if field == "taints":
        return ("key",)
    fields = key_fields(field, patch)
    return fields[:1] if field == "ports" else fields


class PatchError(Exception):
    """A JSON patch that cannot be applied; `malformed` if it is not a patch."""

    def __init__(self, message: str, *, malformed: bool = False) -> None:
        super().__init__(message)
        self.malformed = malformed


def json_patch(target: object, operations: object) -> Any:  # noqa: ANN401, any JSON
    """Apply a JSON patch; the target is modified.

    Raises
    ------
    PatchError
        If it is not a patch, a path is missing, or a test fails.

    Examples
    --------
    >>> json_patch({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}, {"op": "remove", "path": "/a/0"}])
    {'a': [2, 3]}
    """
    if not isinstance(operations, list):
        raise PatchError("cannot unmarshal object into Go value of type jsonpatch.Patch", malformed=True)
    for one in operations:
        if not isinstance(one, dict) or not isinstance(one.get("path"), str):
            raise PatchError("an operation needs op and path")
        target = _operate(target, one)
    return target


def _operate(target: object, one: Json) -> object:
    path = _pointer(one["path"])
    match one.get("op"):
        case "add":
            return _put(target, path, one.get("value"), insert=True)
        case "replace":
            _look(target, path)
            return _put(target, path, one.get("value"), insert=False)
        case "remove":
            _take(target, path)
            return target
        case "move":
            value = _take(target, _pointer(one.get("from", "")))
            return _put(target, path, value, insert=True)
        case "copy":
            return _put(target, path, deepcopy(_look(target, _pointer(one.get("from", "")))), insert=True)
        case "test":
            found = _look(target, path) if one.get("value") is not None else _find(target, path)
            if found != one.get("value"):
                raise PatchError(f"testing value {one['path']} failed: test failed")
            return target
    raise PatchError(f"Unexpected kind: {one.get('op')}")


def _pointer(text: str) -> list[str]:
    if not text:
        return []
    if not text.startswith("/"):
        raise PatchError(f"a path begins with a slash: {text}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _look(target: object, path: Sequence[str]) -> Any:  # noqa: ANN401, any JSON
    for part in path:
        if isinstance(target, dict) and part in target:
            target = target[part]
        elif isinstance(target, list) and part.isdigit() and int(part) < len(target):
            target = target[int(part)]
        else:
            raise PatchError(f"/{'/'.join(path)}: doc is missing path: missing value")
    return target


def _find(target: object, path: Sequence[str]) -> object:
    try:
        return _look(target, path)
    except PatchError:
        return None


def _put(target: object, path: Sequence[str], value: object, *, insert: bool) -> object:
    if not path:
        return value
    parent = _look(target, path[:-1])
    last = path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list) and (last == "-" or (last.isdigit() and int(last) <= len(parent))):
        at = len(parent) if last == "-" else int(last)
        if insert:
            parent.insert(at, value)
        else:
            parent[at] = value
    else:
        raise PatchError(f"/{'/'.join(path)}: doc is missing path: missing value")
    return target


def _take(target: object, path: Sequence[str]) -> Any:  # noqa: ANN401, any JSON
    value = _look(target, path)
    parent = _look(target, path[:-1])
    if isinstance(parent, dict):
        del parent[path[-1]]
    else:
        del parent[int(path[-1])]
    return value
