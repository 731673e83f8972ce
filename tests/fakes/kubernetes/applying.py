"""Server-side apply, and the ownership of fields."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from tests.fakes.kubernetes.failures import FailureError
from tests.fakes.kubernetes.fields import (
    ITSELF,
    Path,
    combine,
    decode,
    differences,
    discard,
    drop,
    encode,
    fields_of,
    insert,
)
from tests.fakes.kubernetes.kinds import Json

MISSING = object()
Owner = tuple[str, str, str]
"""Manager, operation (``Apply`` or ``Update``) and subresource."""
Owners = dict[Owner, set[Path]]
"""Fields of each owner."""


def track(body: Json, before: Json | None, manager: str, part: str, moment: str) -> None:
    """Record in a new state which fields a write other than an apply has set; other managers no longer own them.

    A write without a manager (an empty name) only removes the ownership of fields that no longer exist.
    """
    meta = body["metadata"]
    if before is None:
        if meta.get("managedFields"):
            return  # an apply, which has recorded its fields
        if manager:
            _write(body, {(manager, "Update", part): set(fields_of(body, maps=True))}, {}, moment)
        return
    entries = before["metadata"].get("managedFields", [])
    if meta.get("managedFields") == [] or not (entries or manager):
        meta.pop("managedFields", None)
        return
    changed, removed = differences(before, body)
    meta["managedFields"] = entries
    if changed or removed:
        mine = (manager, "Update", part)
        meta["managedFields"] = _hand_over(orjson.loads(orjson.dumps(entries)), mine, changed, removed)
        if manager and changed:
            _own(meta["managedFields"], mine, changed, body["apiVersion"], moment)


def _hand_over(entries: list[Json], mine: Owner, changed: set[Path], removed: set[Path]) -> list[Json]:
    """Remove deleted fields from all managers, changed fields from all but `mine`; an empty manager gets nothing."""
    for entry in entries:
        lost = removed if not mine[0] or _owner(entry) == mine else changed | removed
        for path in lost:
            discard(entry["fieldsV1"], path)
    return [entry for entry in entries if entry["fieldsV1"]]


def _own(entries: list[Json], who: Owner, changed: set[Path], version: str, moment: str) -> None:
    entry = next((one for one in entries if _owner(one) == who), None)
    if entry is None:
        manager, operation, part = who
        entry = {"manager": manager, "operation": operation, "apiVersion": version, "time": moment}
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": {}, **({"subresource": part} if part else {})}
        entries.append(entry)
    if any([insert(entry["fieldsV1"], path) for path in sorted(changed)]):  # noqa: C419, all of them are to be put in
        entry["time"] = moment


def _owner(entry: Json) -> Owner:
    return entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")


def apply_to(live: Json | None, applied: Json, manager: str, part: str, moment: str, *, force: bool) -> Json:
    """Return the object after a configuration is applied to it; `live` is None if it does not exist.

    Raises
    ------
    FailureError
        409 if others own fields whose value would change, unless it is forced.
    """
    meta = {key: value for key, value in applied["metadata"].items() if key not in ("resourceVersion", "uid")}
    applied = {**applied, "metadata": meta}
    if part == "status":
        applied = {key: value for key, value in applied.items() if key in ("kind", "apiVersion", "metadata", "status")}
    wanted = fields_of(applied)
    me = (manager, "Apply", part)
    if live is None:
        _write(applied, {me: set(wanted)}, {}, moment)
        return applied
    entries = live["metadata"].get("managedFields", [])
    owners = _read(entries)
    there = fields_of(live)
    fought = {path for path, value in wanted.items() if path[-1] != ITSELF and _differs(there, path, value)}
    disputes = [(manager, fields & fought) for manager, fields in owners.items() if manager != me and fields & fought]
    if disputes and not force:
        raise _refusal(disputes, applied["apiVersion"])
    owners = {manager: fields if manager == me else fields - fought for manager, fields in owners.items()}
    mine = owners.get(me, set())
    owners[me] = set(wanted)
    others = set().union(*(fields for manager, fields in owners.items() if manager != me))
    given_up = [path for path in mine if path not in wanted and path not in others]
    retained = {path[:-1] for path in others if path[-1] == ITSELF}
    for path in sorted(given_up, key=_items_last):
        if path[-1] != ITSELF or path[:-1] not in retained:
            drop(live, path)
    body: Json = combine(live, applied)
    _write(body, owners, _times(entries), moment)
    return body


def _items_last(path: Path) -> tuple[bool, int, Path]:
    return path[-1] == ITSELF, -len(path), path


def _differs(there: dict[Path, object], path: Path, value: object) -> bool:
    found = there.get(path, MISSING)
    return found != value if found is not MISSING else False


def _refusal(disputes: list[tuple[Owner, set[Path]]], version: str) -> FailureError:
    causes: list[Json] = []
    said: list[str] = []
    for (manager, operation, part), fields in disputes:
        who = f'"{manager}"' + (f' with subresource "{part}"' if part else "")
        who += f" using {version}" if operation == "Update" else ""
        dotted = [_dotted(path) for path in sorted(fields)]
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": one} for one in dotted
        ]
        said.append(f"conflicts with {who}:" + "".join(f"\n- {one}" for one in dotted))
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(said)
    return FailureError(409, "Conflict", message, {"causes": causes})


def _dotted(path: Path) -> str:
    parts = []
    for element in path:
        if element.startswith("f:"):
            parts.append(f".{element[2:]}")
        elif element.startswith("k:"):
            named = orjson.loads(element[2:])
            parts.append("[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in named.items()) + "]")
    return "".join(parts)


def _read(entries: Iterable[Json]) -> Owners:
    return {_owner(entry): decode(entry.get("fieldsV1") or {}) for entry in entries}


def _times(entries: Iterable[Json]) -> dict[Owner, tuple[str, Json]]:
    return {_owner(entry): (entry.get("time", ""), entry.get("fieldsV1") or {}) for entry in entries}


def _write(body: Json, owners: Owners, before: dict[Owner, tuple[str, Json]], moment: str) -> None:
    entries = []
    for (manager, operation, part), fields in owners.items():
        if not fields:
            continue
        coded = encode(sorted(fields))
        time, old = before.get((manager, operation, part), ("", None))
        entry = {
            "manager": manager,
            "operation": operation,
            "apiVersion": body["apiVersion"],
            "time": time if old == coded else moment,
            "fieldsType": "FieldsV1",
            "fieldsV1": coded,
        }
        entries.append({**entry, "subresource": part} if part else entry)
    body["metadata"]["managedFields"] = entries
