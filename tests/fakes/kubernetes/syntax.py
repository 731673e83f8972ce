"""Syntax of texts in objects: labels, annotations, names of containers and ports, quantities, sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tests.fakes.kubernetes.kinds import CONFIG_MAPS, PODS, SERVICES, Json, Kind
from tests.fakes.kubernetes.quantities import milli

MAX_BODY = 3 * 1024 * 1024
"""Limit of a request, bytes."""

MAX_ANNOTATIONS = 256 * 1024
"""Limit of all annotations of an object, names and values, bytes."""

MAX_DATA = 1024 * 1024
"""Limit of the data of a ConfigMap, bytes."""

LONGEST = 63
LAST_PORT = 65_535
Causes = list[tuple[str, str, str]]

_WORD = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL = re.compile(rf"({_WORD})?")
_NAME = re.compile(_WORD)
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_PART}(\.{_PART})*")
_DNS_LABEL = re.compile(_PART)
_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_VARIABLE = re.compile(r"[^=\x00-\x1f\x7f]+")
_TOO_LONG = f"must be no more than {LONGEST} bytes"
_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_DOMAIN_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
)
_DNS_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


class UnreadableError(ValueError):
    """A value in an object has the wrong type."""


@lru_cache(maxsize=4096)
def wrong_key(key: str) -> str:
    """Return the error in the name of a label or annotation; empty if it is valid."""
    domain, slash, name = key.rpartition("/")
    if slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain)):
        return _DOMAIN_RULE
    if not name:
        return "name part must be non-empty"
    if len(name) > LONGEST:
        return f"name part {_TOO_LONG}"
    return "" if _NAME.fullmatch(name) else _KEY_RULE


@lru_cache(maxsize=4096)
def wrong_label(value: str) -> str:
    """Return the error in the value of a label; empty if it is valid."""
    if len(value) > LONGEST:
        return _TOO_LONG
    return "" if _LABEL.fullmatch(value) else _LABEL_RULE


def check_metadata(meta: Json, where: str, causes: Causes) -> None:
    """Check labels and annotations."""
    for part, wrong_value in (("labels", wrong_label), ("annotations", None)):
        found = meta.get(part) or {}
        for key, value in found.items():
            if why := wrong_key(key if part == "labels" else key.lower()):
                causes.append((f"{where}.{part}", "FieldValueInvalid", f'Invalid value: "{key}": {why}'))
            if wrong_value and (why := wrong_value(value)):
                causes.append((f"{where}.{part}", "FieldValueInvalid", f'Invalid value: "{value}": {why}'))
    annotations = meta.get("annotations") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        why = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        causes.append((f"{where}.annotations", "FieldValueTooLong", why))


def check_container(container: Json, where: str, causes: Causes) -> None:
    """Check a container's name, ports and variables."""
    name = container.get("name") or ""
    if name and (why := wrong_dns_label(name)):
        causes.append((f"{where}.name", "FieldValueInvalid", f'Invalid value: "{name}": {why}'))
    _check_ports(container.get("ports") or (), where, causes)
    _check_variables(container.get("env") or (), where, causes)
    for part in ("limits", "requests"):
        for key, value in ((container.get("resources") or {}).get(part) or {}).items():
            if milli(value) < 0:
                why = f'Invalid value: "{value}": must be greater than or equal to 0'
                causes.append((f"{where}.resources.{part}[{key}]", "FieldValueInvalid", why))


def _check_ports(ports: Sequence[Json], where: str, causes: Causes) -> None:
    for at, port in enumerate(ports):
        number = port.get("containerPort")
        if not number:
            causes.append((f"{where}.ports[{at}].containerPort", "FieldValueRequired", "Required value"))
        elif not 0 < number <= LAST_PORT:
            why = f"Invalid value: {number}: must be between 1 and {LAST_PORT}, inclusive"
            causes.append((f"{where}.ports[{at}].containerPort", "FieldValueInvalid", why))


def _check_variables(variables: Sequence[Json], where: str, causes: Causes) -> None:
    for at, variable in enumerate(variables):
        called = variable.get("name") or ""
        if not called:
            causes.append((f"{where}.env[{at}].name", "FieldValueRequired", "Required value"))
        elif not _VARIABLE.fullmatch(called):
            why = f'Invalid value: "{called}": a valid environment variable name must consist only of printable ASCII'
            causes.append((f"{where}.env[{at}].name", "FieldValueInvalid", why))


def wrong_dns_label(name: str) -> str:
    """Return the error in a DNS label; empty if it is valid."""
    if len(name) > LONGEST:
        return _TOO_LONG
    return "" if _DNS_LABEL.fullmatch(name) else _DNS_RULE


def check_data(body: Json, causes: Causes) -> None:
    """Check the size of a ConfigMap."""
    texts = {**(body.get("data") or {}), **(body.get("binaryData") or {})}
    if sum(len(str(value).encode()) for value in texts.values()) > MAX_DATA:
        causes.append(("", "FieldValueTooLong", f"Too long: may not be more than {MAX_DATA} bytes"))


def check_types(kind: Kind, body: Json) -> None:
    """Check that texts, maps and quantities have the right types.

    Raises
    ------
    UnreadableError
        If one has not, with the message of Go's JSON.
    """
    for where, meta in _metadata(kind, body):
        for part in ("labels", "annotations"):
            _texts(meta.get(part), f"{where}.{part}")
    if kind is CONFIG_MAPS:
        _texts(body.get("data"), "data")
    for where, spec in pod_specs(kind, body):
        _texts(spec.get("nodeSelector"), f"{where}.nodeSelector")
        for part in ("containers", "initContainers"):
            found = spec.get(part) or []
            if not isinstance(found, list):
                raise UnreadableError(f"json: cannot unmarshal object into Go struct field {where}.{part}")
            for container in found:
                _quantities(container.get("resources") or {})


def _quantities(resources: Json) -> None:
    for part in ("limits", "requests"):
        for value in (resources.get(part) or {}).values():
            if isinstance(value, bool) or not _QUANTITY.fullmatch(str(value)) or not _readable(value):
                raise UnreadableError(_QUANTITY_RULE)


def pod_specs(kind: Kind, body: Json) -> Iterator[tuple[str, Json]]:
    """Yield the paths of pod specs in an object, and the specs."""
    spec = body.get("spec")
    if not isinstance(spec, dict) or kind is SERVICES or kind.custom:
        return
    if kind is PODS:
        yield "spec", spec
    elif isinstance(template := spec.get("template"), dict) and isinstance(template.get("spec"), dict):
        yield "spec.template.spec", template["spec"]


def check_indexed(body: Json, causes: Causes) -> None:
    """Check that the pod names of an Indexed Job, which have its name and an index, are valid."""
    spec, name = body["spec"], body["metadata"]["name"]
    last = f"{name}-{(spec.get('completions') or 1) - 1}"
    if spec.get("completionMode") == "Indexed" and (why := wrong_dns_label(last)):
        why = f'Invalid value: "{name}": will not able to create pod with invalid DNS label "{last}": {why}'
        causes.append(("metadata.name", "FieldValueInvalid", why))


def check_generated(body: Json, causes: Causes) -> None:
    """Check that the template of a Job does not claim its pods for another Job."""
    if body["spec"].get("manualSelector"):
        return
    labels = body["spec"]["template"]["metadata"].get("labels") or {}
    meta = body["metadata"]
    for name, value in (("controller-uid", meta["uid"]), ("job-name", meta["name"])):
        for key in (f"batch.kubernetes.io/{name}", name):
            if labels.get(key) != value:
                why = f"Invalid value: {labels}: must be '{value}'"
                causes.append((f"spec.template.metadata.labels[{key}]", "FieldValueInvalid", why))


def _metadata(kind: Kind, body: Json) -> Iterator[tuple[str, Json]]:
    yield "metadata", body.get("metadata") or {}
    spec = body.get("spec")
    if not kind.custom and isinstance(spec, dict) and isinstance(template := spec.get("template"), dict):
        yield "spec.template.metadata", template.get("metadata") or {}


def _texts(found: object, where: str) -> None:
    if found is None:
        return
    if not isinstance(found, dict):
        raise UnreadableError(f"json: cannot unmarshal into Go struct field {where} of type map[string]string")
    for value in found.values():
        if value is not None and not isinstance(value, str):
            raise UnreadableError(f"json: cannot unmarshal into Go struct field {where} of type string")


def _readable(value: object) -> bool:
    try:
        milli(value)
    except ValueError:
        return False
    return True
