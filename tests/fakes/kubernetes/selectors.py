"""Label and field selectors, of queries and of objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tests.fakes.kubernetes.failures import bad_request
from tests.fakes.kubernetes.kinds import Json, Kind

Labels = Mapping[str, str]
Rule = Callable[[Labels], bool]

_SET = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_PLAIN = re.compile(r"^\s*(!?)\s*([^\s!=,()<>]+)\s*$")
_EQUAL = re.compile(r"^\s*([^\s!=,()<>]+)\s*(==|=|!=)\s*([^\s!=,()<>]*)\s*$")
_BETWEEN = re.compile(r",(?![^()]*\))")


def labels_rule(text: str) -> Rule | None:
    """Read a label selector; None selects everything.

    Raises
    ------
    FailureError
        400 if it cannot be read.
    """
    rules = [_requirement(part) for part in _BETWEEN.split(text) if part.strip()]
    return _all(rules)


def _all(rules: Sequence[Rule]) -> Rule | None:
    if not rules:
        return None
    if len(rules) == 1:
        return rules[0]
    return lambda labels: all(rule(labels) for rule in rules)


def _requirement(part: str) -> Rule:
    if found := _SET.match(part):
        values = tuple(value.strip() for value in found[3].split(","))
        return _compare(found[1], "In" if found[2] == "in" else "NotIn", values)
    if found := _EQUAL.match(part):
        return _compare(found[1], "NotIn" if found[2] == "!=" else "In", (found[3],))
    if found := _PLAIN.match(part):
        return _compare(found[2], "DoesNotExist" if found[1] else "Exists", ())
    raise bad_request(f"unable to parse requirement: found '{part.strip()}', expected: a label selector")


def _compare(key: str, operator: str, values: Sequence[str]) -> Rule:
    wanted = frozenset(values)
    if operator == "In":
        if len(wanted) == 1:
            (only,) = wanted
            return lambda labels: labels.get(key) == only
        return lambda labels: labels.get(key) in wanted
    if operator == "NotIn":
        return lambda labels: labels.get(key) not in wanted
    if operator == "Exists":
        return lambda labels: key in labels
    if operator == "DoesNotExist":
        return lambda labels: key not in labels
    if operator in ("Gt", "Lt"):
        bound = int(values[0])
        sign = 1 if operator == "Gt" else -1
        return lambda labels: (
            _number(labels.get(key)) is not None and sign * (_number(labels.get(key)) or 0) > (sign * bound)
        )
    raise bad_request(f'"{operator}" is not a valid label selector operator')


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def expressions_rule(expressions: Sequence[Json]) -> Rule | None:
    """Read ``matchExpressions``."""
    return _all([_compare(one["key"], one["operator"], one.get("values") or ()) for one in expressions])


def object_rule(selector: Json | None) -> Rule | None:
    """Read a ``LabelSelector``: ``matchLabels`` and ``matchExpressions``; None selects everything."""
    selector = selector or {}
    rules = [_compare(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    more = expressions_rule(selector.get("matchExpressions") or ())
    return _all([*rules, more] if more else rules)


FieldRule = Callable[[str, str, Sequence[str]], bool]
"""Function of namespace, name and the kind's other fields that reports whether an object is selected."""


def fields_rule(text: str, kind: Kind) -> FieldRule | None:
    """Read a field selector; None selects everything.

    Raises
    ------
    FailureError
        400 if it cannot be read, or names a field that the kind does not support.
    """
    wants: list[tuple[int, bool, str]] = []
    names = ("metadata.namespace", "metadata.name", *kind.fields)
    for part in filter(None, text.split(",")):
        found = re.match(r"^([^=!]+)(!=|==|=)(.*)$", part)
        if not found:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        if found[1] not in names:
            raise bad_request(_unknown_field(text, found[1], kind))
        wants.append((names.index(found[1]), found[2] != "!=", found[3]))
    if not wants:
        return None

    def selects(namespace: str, name: str, more: Sequence[str]) -> bool:
        values = (namespace, name, *more)
        return all((values[at] == value) is equal for at, equal, value in wants)

    return selects


def _unknown_field(text: str, field: str, kind: Kind) -> str:
    if not kind.fields:
        return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return (
        f'Unable to find "{kind.group}/{kind.version}, Resource={kind.plural}" that match label selector "", '
        f'field selector "{text}": field label not supported: {field}'
    )
