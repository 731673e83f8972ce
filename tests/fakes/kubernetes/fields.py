"""Fields of objects and their managers, in the format of ``managedFields`` (FieldsV1).

A field is a path of elements: ``f:spec`` a member, ``k:{"name":"c"}`` an item of a list by its key, ``v:"x"`` a member
of a set. A set of fields has the leaves, and for an item by key also the path that ends with ``.``, the item itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from tests.fakes.kubernetes.kinds import Json
from tests.fakes.kubernetes.patches import DEFAULTS, key_fields

Path = tuple[str, ...]
Fields = dict[Path, Any]
"""Leaves and their values."""

ITSELF = "."
_NONE = object()
ATOMIC = frozenset(
    {
        *("selector", "podSelector", "namespaceSelector", "labelSelector", "matchLabels", "nodeSelector"),
        *("fieldRef", "secretKeyRef", "configMapKeyRef", "resourceFieldRef"),
    }
)
"""Members that are owned as a whole, whatever is in them."""
SETS = frozenset({"finalizers"})
"""Lists whose members are owned one by one."""
MAPS = frozenset({"labels", "annotations", "data", "limits", "requests", "rollingUpdate", "capacity", "allocatable"})
"""Members that may be missing as a whole, so that a manager owns their presence."""
_UNTRACKED = frozenset(
    {
        *("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "selfLink"),
        *("deletionGracePeriodSeconds", "generation", "managedFields"),
    }
)


def fields_of(body: Json, *, maps: bool = False) -> Fields:
    """Return all fields of an object that a manager may own; with `maps`, also the presence of maps.

    An apply owns the members of a map; a create or an update also owns the presence of the map.

    Examples
    --------
    >>> fields_of({"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"ports": [{"port": 1}]}})
    {('f:metadata', 'f:labels', 'f:b'): 'c', ('f:spec', 'f:ports', 'k:{"port":1,"protocol":"TCP"}', '.'): None, \
('f:spec', 'f:ports', 'k:{"port":1,"protocol":"TCP"}', 'f:port'): 1}
    """
    found: Fields = {}
    for name, value in body.items():
        if name == "metadata":
            tracked = {key: one for key, one in value.items() if key not in _UNTRACKED}
            for key, one in tracked.items():
                _collect(found, ("f:metadata", f"f:{key}"), key, one, maps=maps)
        elif name not in ("kind", "apiVersion"):
            _collect(found, (f"f:{name}",), name, value, maps=maps)
    return found


def _collect(found: Fields, path: Path, name: str, value: object, *, maps: bool) -> None:
    if isinstance(value, dict) and value and name not in ATOMIC:
        if maps and name in MAPS:
            found[*path, ITSELF] = None
        for key, one in value.items():
            _collect(found, (*path, f"f:{key}"), key, one, maps=maps)
    elif isinstance(value, list) and value and (keys := key_fields(name, value)):
        for one in value:
            item = (*path, key_element(one, keys))
            found[*item, ITSELF] = None
            for key, part in one.items():
                _collect(found, (*item, f"f:{key}"), key, part, maps=maps)
    elif isinstance(value, list) and value and name in SETS:
        for one in value:
            found[*path, f"v:{orjson.dumps(one).decode()}"] = one
    else:
        found[path] = value


def differences(before: Json, after: Json) -> tuple[set[Path], set[Path]]:
    """Return the fields that are new or changed, and those that are removed.

    Examples
    --------
    >>> differences({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 3}})
    ({('f:spec', 'f:a')}, {('f:spec', 'f:b')})
    """
    old: Fields = {}
    new: Fields = {}
    for name in {**before, **after}:
        if name == "metadata":
            ours, theirs = before[name], after[name]
            for key in {**ours, **theirs}:
                if key not in _UNTRACKED:
                    path = ("f:metadata", f"f:{key}")
                    _compare(old, new, path, key, ours.get(key, _NONE), theirs.get(key, _NONE))
        elif name not in ("kind", "apiVersion"):
            _compare(old, new, (f"f:{name}",), name, before.get(name, _NONE), after.get(name, _NONE))
    changed = {path for path, value in new.items() if old.get(path, _NONE) != value}
    return changed, {path for path in old if path not in new}


def _compare(old: Fields, new: Fields, path: Path, name: str, before: object, after: object) -> None:
    """Collect the fields that differ, old and new; equal parts are skipped."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict) and before and after and name not in ATOMIC:
        for key in {**before, **after}:
            _compare(old, new, (*path, f"f:{key}"), key, before.get(key, _NONE), after.get(key, _NONE))
        return
    if before is not _NONE:
        _collect(old, path, name, before, maps=True)
    if after is not _NONE:
        _collect(new, path, name, after, maps=True)


def discard(tree: Json, path: Path) -> bool:
    """Remove a field from a ``fieldsV1``; report whether it was there."""
    inner = tree.get(path[0])
    if inner is None:
        return False
    if len(path) == 1:
        if inner:
            return False
        del tree[path[0]]
        return True
    found = discard(inner, path[1:])
    if found and not inner:
        del tree[path[0]]
    return found


def insert(tree: Json, path: Path) -> bool:
    """Add a field to a ``fieldsV1``; report whether it is new."""
    new = False
    for element in path:
        if element not in tree:
            new = True
            tree[element] = {}
        tree = tree[element]
    return new


def key_element(item: Json, keys: Sequence[str]) -> str:
    """Return the element of a path that names an item of a list."""
    named = {key: item.get(key, DEFAULTS.get(key)) for key in keys}
    return f"k:{orjson.dumps(named, option=orjson.OPT_SORT_KEYS).decode()}"


def encode(paths: Iterable[Path]) -> Json:
    """Return a set of fields as ``fieldsV1``."""
    root: Json = {}
    for path in paths:
        at = root
        for element in path:
            at = at.setdefault(element, {})
    return root


def decode(fields: Json) -> set[Path]:
    """Return the set of fields in a ``fieldsV1``."""
    found: set[Path] = set()

    def walk(at: Json, path: Path) -> None:
        if not at:
            found.add(path)
        for element, inner in at.items():
            walk(inner, (*path, element))

    for element, inner in fields.items():
        walk(inner, (element,))
    return found


def drop(body: Json, path: Path) -> None:
    """Remove a field from an object, and the parents that this leaves empty."""
    _drop(body, path)


def _drop(at: Any, path: Path) -> bool:  # noqa: ANN401, any JSON
    """Remove a field; report whether its parent is empty now."""
    if path[0].startswith("f:"):
        name = path[0][2:]
        if not isinstance(at, dict) or name not in at:
            return False
        if len(path) == 1 or _drop(at[name], path[1:]):
            del at[name]
        return not at
    if not isinstance(at, list):
        return False
    index = _index(at, path[0])
    if index is None:
        return False
    if path[0].startswith("v:") or path[1:] == (ITSELF,):
        del at[index]
    else:
        _drop(at[index], path[1:])
    return not at


def _index(items: Sequence[object], element: str) -> int | None:
    wanted = orjson.loads(element[2:])
    for index, one in enumerate(items):
        if element.startswith("v:"):
            if one == wanted:
                return index
        elif isinstance(one, dict) and all(one.get(key, DEFAULTS.get(key)) == value for key, value in wanted.items()):
            return index
    return None


def combine(live: object, applied: object, name: str = "") -> Any:  # noqa: ANN401, any JSON
    """Merge an applied configuration into the live object; `live` is modified."""
    if isinstance(applied, dict) and isinstance(live, dict) and name not in ATOMIC:
        for key, value in applied.items():
            live[key] = combine(live.get(key), value, key)
        return live
    if isinstance(applied, list) and isinstance(live, list):
        if name in SETS:
            return [*live, *(one for one in applied if one not in live)]
        keys = key_fields(name, [*live, *applied])
        if keys:
            merged = {key_element(one, keys): one for one in live}
            for one in applied:
                key = key_element(one, keys)
                merged[key] = combine(merged.get(key), one)
            return list(merged.values())
    return applied
