"""Parsing of messages, with error messages that name the field and the remedy."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from seaway.domain.errors import RejectedError
from seaway.wire.fields import PATTERNS
from seaway.wire.yaml import MAX_VALUES, yaml_document

Message = TypeVar("Message", bound=BaseModel)

MAX_ERRORS = 50
"""Maximum number of errors reported for one message."""

MAX_SUBMITTED = 10_000
"""Maximum number of values in a submitted job, with aliases expanded. One tenth of a second of CPU time in YAML."""

MAX_LISTED = 1000
"""Maximum number of errors of which some are reported. The library describes either all or none, 5 us each."""

SHOWN = 60
"""Maximum length of a value in an error."""


NAME = re.compile(rb'"([^"\\]*)"\s*:')
"""Pattern of a field name. A match may also be another text; such a match contains a comma."""


def read_json(model: type[Message], body: bytes | str) -> Message:
    """Read a message in JSON.

    Raises
    ------
    RejectedError
        If it is invalid; names the field, and `also` has further errors. Duplicated fields are errors too.
    """
    read = _read_json(model, body)
    require_once(body)
    return read


def require_few_values(body: bytes) -> None:
    """Check that JSON has at most `MAX_SUBMITTED` values.

    Every value but the first follows one of four separators, so few separators are proof. Otherwise those outside of
    texts are counted. A parser would create the values first, which takes ten times as long. Invalid JSON counts, too.

    Raises
    ------
    RejectedError
        If there are more values.
    """
    if _separators(body) < MAX_SUBMITTED:
        return
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, b" \t\r\n")
    bare = b"".join(unescaped.split(b'"')[::2])
    if _separators(bare) - bare.count(b"[]") - bare.count(b"{}") >= MAX_SUBMITTED:
        raise RejectedError(f"this has more than {MAX_SUBMITTED} values")


def _separators(body: bytes) -> int:
    return sum(map(body.count, (b",", b":", b"[", b"{")))


def require_once(body: bytes | str) -> None:
    """Check that no object of valid JSON has a duplicated field.

    Two fast checks cover most bodies: equality with the compact output of orjson, and no duplicated name anywhere.

    Raises
    ------
    RejectedError
        If a field is duplicated; names the field.
    """
    written = body.encode() if isinstance(body, str) else body
    with suppress(orjson.JSONDecodeError):
        if orjson.dumps(orjson.loads(written)) == written:
            return
    names = NAME.findall(written)
    if b"\\" not in written and len(set(names)) == len(names) and b"," not in b"".join(names):
        return
    with suppress(ValueError, RecursionError):  # invalid JSON, or too deep for Python: the later parser reports it
        json.loads(written, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise RejectedError("this field is duplicated", where=_short(twice))
    return fields


def _read_json(model: type[Message], body: bytes | str) -> Message:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise rejected(error, model) from None


def read_yaml_message(model: type[Message], body: bytes | str, most: int = MAX_VALUES) -> Message:
    """Read a message of at most `most` values in YAML, a superset of JSON; raises as `read_json`.

    A plain number, truth value or date where a text is expected is that text as written, so `env: {A: 010}` works.
    """
    document = yaml_document(body, most)
    try:
        return model.model_validate_json(_dumped(document.value))
    except ValidationError as error:
        expected = _texts_expected(error)
        if not expected:
            raise rejected(error, model) from None
    return _read_json(model, _dumped(document.with_texts(expected.__contains__)))


def _dumped(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise RejectedError(f"this cannot be written as JSON: {error}") from None


def _texts_expected(error: ValidationError) -> set[str]:
    """Return the paths at which a text, or a list that may be a single text, is missing."""
    if error.error_count() > MAX_LISTED:
        return set()
    steps = [
        each["loc"]
        for each in error.errors(include_url=False, include_context=False)
        if each["type"] in ("string_type", "list_type")
    ]
    return {
        "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).removeprefix(".") for loc in steps
    }


def read_value(model: type[Message], value: object) -> Message:
    """Read a message from dicts and lists; raises as `read_json`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise rejected(error, model) from None


def rejected(error: ValidationError, model: type[BaseModel]) -> RejectedError:
    """Return one error for all errors of a message; `also` has all but the first."""
    if error.error_count() > MAX_LISTED:
        return RejectedError(f"the message has {error.error_count():,} errors, too many to list")
    reported: dict[str, RejectedError] = {}
    for each in error.errors(include_url=False):
        path = _path(each)
        if path not in reported and len(reported) < MAX_ERRORS:
            reported[path] = RejectedError(_message(each, model), where=path)
    first, *others = reported.values()
    return RejectedError(first.message, where=first.where, also=tuple(others))


def unknown_field(name: str, known: list[str]) -> str:
    """Return the error message for an unknown field, with a suggestion."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    meant = f"; did you mean '{near[0]}'?" if near else f"; available: {', '.join(known)}"
    return f"unknown field '{_short(name)}'{meant}"


_SAYS = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_parsing": "must be true or false",
    "int_parsing_size": "is too large",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping of names to values",
    "model_attributes_type": "must be a mapping of names to values",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "must be one of {expected}",
}


def _message(error: ErrorDetails, model: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return unknown_field(str(error["loc"][-1]), _fields_at(model, error["loc"][:-1]))
    return message_of(error)


def message_of(error: ErrorDetails) -> str:
    """Return the message for a validation error."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        why = PATTERNS.get(context["pattern"], f"must match {context['pattern']}")
        return f"{_shown(error['input'])} is not valid; {why}"
    if kind == "list_type" and isinstance(error["input"], str):
        return f"must be a list, such as {_shown_json(error['input'].split())}"
    if kind == "json_invalid":
        return f"this is not JSON: {context['error']}"
    if kind in _SAYS:
        return _SAYS[kind].format(**context)
    return error["msg"]


def _path(error: ErrorDetails) -> str:
    """Return the path of an error, such as ``resources.gpus`` or ``run.ports[2]``."""
    path = ""
    for step in error["loc"]:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() or not path:
            path += f".{_short(step)}" if path else _short(step)
        elif "[" in step or "(" in step:
            continue  # a branch of a union, not a field
        else:
            path += f".{_short(step)}"
    return path


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Return the names of the fields at `path`."""
    here: Any = model
    for step in path:
        if isinstance(step, str) and step in here.model_fields:
            here = _model_in(here.model_fields[step].annotation) or here
    return [field.alias or name for name, field in here.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """Return the message class in an annotation; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _shown_json(value: object) -> str:
    return _short(orjson.dumps(value).decode().replace('","', '", "'))


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def _short(text: str) -> str:
    """Shorten a text, and escape unprintable characters."""
    cut = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]
