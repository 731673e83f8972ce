"""Differences between the records of a change and the stored ones, for events and the audit log.

Only records that users set are compared. Secrets are not shown: the text of one only says whether it is another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from typing import Any

from seaway.application.changes import Change
from seaway.application.ports.store import Store
from seaway.application.records import ClusterFacts, Cordon, Difference, NetworkRecord, Token
from seaway.domain.amounts import figure_text
from seaway.domain.notifications import Notification
from seaway.domain.queues import Queue
from seaway.domain.reasons import Reason
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import DEFAULT, Pool, Tenant

COMPARED: Mapping[type[Any], tuple[str, Callable[[Store], Sequence[Any]]]] = {
    Queue: ("queue", lambda store: store.queues()),
    Tenant: ("tenant", lambda store: store.tenants()),
    Pool: ("pool", lambda store: store.pools()),
    AdvanceReservation: ("reservation", lambda store: store.reservations()),
    ClusterFacts: ("cluster", lambda store: store.cluster_facts()),
    Cordon: ("cordon", lambda store: store.cordons()),
    Notification: ("notification", lambda store: store.notifications()),
    Token: ("token", lambda store: store.tokens()),
    NetworkRecord: ("network", lambda store: [each for each in (store.network(),) if each]),
}
"""Kind of each compared record, and how to read the stored ones."""

DEFAULTS: Mapping[type[Any], object] = {each: each(DEFAULT) for each in (Queue, Tenant, Pool)}
"""Records with default values, in place of one that does not exist."""

UNCOMPARED = frozenset({"name", "cluster", "node", "actor", "at_ns", "id", "digest"}) | {
    "created_ns", "created_by", "changed_ns",
}  # fmt: skip
AMOUNTS = frozenset({"guarantee", "limit", "user_limit", "borrowing_limit", "lending_limit"})
PRICES = frozenset({"prices", "spot_prices"})

MAX_DIFFERENCES = 100
"""Maximum number of differences of a change."""

LONGEST_VALUE = 200
"""Maximum length of a value, characters."""

MAX_NAMED = 4
"""Maximum number of differences in the text of an event."""


def differences(change: Change, store: Store) -> tuple[Difference, ...]:
    """Compare the records of a change, which is not stored yet, with the stored ones."""
    found: list[Difference] = []
    for gone, records in ((False, (*change.insert, *change.update, *change.put)), (True, change.delete)):
        for record in records:
            if known := COMPARED.get(type(record)):
                kind, read = known
                stored = next((each for each in read(store) if _key(each) == _key(record)), None)
                found += _compared(kind, stored, None if gone else record)
    return tuple(found[:MAX_DIFFERENCES])


def text_of(reason: str, found: Sequence[Difference]) -> str:
    """Return the text of an event: with the differences of a record that existed, in place of its present values."""
    if not found or not isinstance(reason, Reason) or reason.code not in {"queue_set", "tenant_set", "pool_set"}:
        return reason
    named = [
        Reason("field_changed", field=_short(each.field), before=each.before or "-", after=each.after or "-")
        for each in found[:MAX_NAMED]
    ]
    more = len(found) - len(named)
    what = (*named, Reason("more_changes", count=more)) if more > 0 else tuple(named)
    params = {name: value for name, value in reason.params.items() if name == "also"}
    return Reason("record_changed", kind=found[0].kind, name=found[0].name, changes=what, **params)


def _compared(kind: str, stored: object, record: object) -> Iterator[Difference]:
    before, after = (
        dict(_flat(_content(each or DEFAULTS.get(type(stored or record))), "")) for each in (stored, record)
    )
    name = _name(stored or record)
    for field in sorted({*before, *after}):
        if before.get(field, "") != after.get(field, ""):
            shown = "secret" if field == "sealed" else field
            yield Difference(kind, name, shown, before.get(field, ""), after.get(field, ""))


def _key(record: Any) -> tuple[str, ...]:  # noqa: ANN401  # one of `COMPARED`
    match record:
        case Cordon():
            return (record.cluster, record.node)
        case ClusterFacts():
            return (record.cluster,)
        case Notification():
            return (record.tenant, record.name)
        case Token():
            return (record.id,)
        case NetworkRecord():
            return ("network",)  # there is one
        case _:
            return (record.name,)


def _name(record: Any) -> str:  # noqa: ANN401  # one of `COMPARED`
    return str(record.name) if isinstance(record, Token) else ".".join(filter(None, _key(record)))


def _content(record: object) -> object:
    match record:
        case ClusterFacts():
            return record.facts
        case NetworkRecord():
            return _by_name(json.loads(record.text)) if record.text else {}
        case Notification():
            seal = sha256(record.sealed.encode()).hexdigest()[:8] if record.sealed else ""
            return replace(record, sealed=seal)
        case _:
            return record


def _by_name(value: Any) -> Any:  # noqa: ANN401  # any part of a document
    """Return a document with mappings in place of lists of objects, so that their order is no difference."""
    if isinstance(value, Mapping):
        return {name: _by_name(item) for name, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        return {_entry_name(at, each): _by_name(each) for at, each in enumerate(value)}
    return value


def _entry_name(at: int, entry: Mapping[str, Any]) -> str:
    ends = (entry.get("source"), entry.get("target"))
    return str(entry.get("name") or ("-".join(map(str, ends)) if all(ends) else at))


def _flat(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield the values in a record with their paths, such as ``limit.gpus``. Empty ones are left out."""
    if is_dataclass(value):
        for each in fields(value):
            if path or each.name not in UNCOMPARED:
                yield from _flat(getattr(value, each.name), f"{path}.{each.name}".lstrip("."))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(_figure(path.rpartition(".")[2], name, item), f"{path}.{name}".lstrip("."))
    elif text := _text(path, value):
        yield path.removesuffix("_ns"), text[:LONGEST_VALUE]


def _figure(field: str, name: str, item: Any) -> object:  # noqa: ANN401  # any value
    """Return an entry of a mapping: amounts and prices as users write them."""
    if field in AMOUNTS:
        return figure_text(name, item)
    return f"{Decimal(item) / 10**6:f}" if field in PRICES else item


def _text(path: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (tuple, list, frozenset)):
        return ", ".join(map(str, sorted(value) if isinstance(value, frozenset) else value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and path.endswith("_ns"):  # the begin and end of a reservation
        return datetime.fromtimestamp(value / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value.value if isinstance(value, Enum) else value)


def _short(field: str) -> str:
    """Return a field in words, such as ``limit gpus``, without the pool of most quotas."""
    return field.removeprefix("quotas.default.").replace(".", " ")
