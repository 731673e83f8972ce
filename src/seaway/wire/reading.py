"""Parsing of messages, with error messages that name the field and the remedy."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args, get_origin

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, also, either
from seaway.wire.fields import PATTERNS
from seaway.wire.message import Incoming
from seaway.wire.yaml import MAX_VALUES, yaml_document

Message = TypeVar("Message", bound=BaseModel)
Steps = tuple[int | str, ...]

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
        raise RejectedError(Reason("too_many_values", most=MAX_SUBMITTED))


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
        raise RejectedError(Reason("field_duplicated"), where=_short(twice))
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
        raise RejectedError(Reason("not_writable_json", why=str(error))) from None


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
        return RejectedError(Reason("too_many_errors", count=error.error_count()))
    reported: dict[str, RejectedError] = {}
    found = [(_without_forms(model, each["loc"]), each) for each in error.errors(include_url=False)]
    for steps, each in sorted(found, key=_of_another_form):
        path = _joined(steps)
        known = _of_another_form((steps, each)) and any(f"{other}.".startswith(f"{path}.") for other in reported)
        if path not in reported and not known and len(reported) < MAX_ERRORS:
            reported[path] = RejectedError(_message(each, model, steps), where=path)
    first, *others = reported.values()
    return RejectedError(first.message, where=first.where, also=tuple(others))


def _unknown_field(model: type[BaseModel], path: Steps, name: str) -> str:
    """Return the error message for an unknown field of the mapping at `path`, with its right place or a similar name.

    The right place is within the same entry of a list, and in no other list.
    """
    entry = next((at for at in range(len(path), 0, -1) if isinstance(path[at - 1], int)), 0)
    root = _model_at(model, path[:entry])
    known, elsewhere, snake = _fields(_model_at(root, path[entry:])), _places(root), _snake(name)
    before = _joined(path[:entry])
    if snake not in known and (places := elsewhere.get(snake) or _foreign(root).get(name)):
        meant = Reason("belongs_in", names=_either([_joined([before, each]) for each in places[:MAX_PLACES]]))
    elif near := get_close_matches(snake, known, n=1, cutoff=NEAR):
        meant = Reason("did_you_mean", names=f"'{near[0]}'")
    elif far := get_close_matches(snake, elsewhere, n=1, cutoff=VERY_NEAR):
        places = elsewhere[far[0]][:MAX_PLACES]
        meant = Reason("did_you_mean", names=_either([_joined([before, each]) for each in places]))
    else:
        meant = Reason("available", names=", ".join(known))
    return also(Reason("unknown_field", name=_short(name)), meant)


NEAR, VERY_NEAR = 0.6, 0.8
"""Similarity of a name to one beside it, and to one elsewhere, that is suggested."""


def _snake(name: str) -> str:
    """Return a name like ``nodeLabels`` in our form."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


def _either(places: Sequence[str]) -> str:
    return either([f"'{each}'" for each in places])


MAX_PLACES = 3
"""Maximum number of places in an error."""


@lru_cache(maxsize=64)
def _places(model: type[BaseModel]) -> Mapping[str, Sequence[str]]:
    """Return the paths of the fields of `model` by name, at any depth, but not within lists."""
    found: dict[str, list[str]] = {}
    for path in _walk(model, (), ()):
        found.setdefault(path[-1], []).append(".".join(path))
    return found


def _walk(model: type[BaseModel], path: tuple[str, ...], seen: tuple[type, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        here, below = (*path, field.alias or name), _model_in(field.annotation, lists=False)
        yield here
        if below and below not in seen:
            yield from _walk(below, here, (*seen, model))


def _foreign(model: type[BaseModel]) -> Mapping[str, Sequence[str]]:
    """Return the places of fields by the names of other systems."""
    return model.FOREIGN if issubclass(model, Incoming) else {}


_CODES = {
    "missing": "is_missing",
    "int_type": "not_whole",
    "int_parsing": "not_whole",
    "int_from_float": "not_whole",
    "bool_parsing": "not_boolean",
    "int_parsing_size": "is_too_large",
    "string_type": "not_text",
    "bool_type": "not_boolean",
    "list_type": "not_list",
    "dict_type": "not_mapping",
    "model_type": "not_mapping",
    "model_attributes_type": "not_mapping",
    "greater_than_equal": "at_least",
    "less_than_equal": "at_most",
    "string_too_long": "text_too_long",
    "string_too_short": "text_too_short",
    "too_long": "list_too_long",
}
"""Codes of reasons by the type of an error."""

_BOUNDS = ("ge", "le", "max_length", "min_length")


def _message(error: ErrorDetails, model: type[BaseModel], steps: Steps) -> str:
    if error["type"] == "extra_forbidden":
        return _unknown_field(model, steps[:-1], str(steps[-1]))
    return message_of(error)


def _without_forms(model: type[BaseModel], steps: Steps) -> Steps:
    """Return the place of an error without the names of the forms that a field can have."""
    found: list[int | str] = []
    here, form = model, False
    for step in steps:
        if form:
            form = False
            continue
        found.append(step)
        if isinstance(step, str) and (field := here.model_fields.get(step)):
            here = _model_in(field.annotation) or here
            form = len(set(get_args(field.annotation)) - {type(None)}) > 1 and get_origin(field.annotation) not in KINDS
    return tuple(found)


KINDS = (list, tuple, dict, Literal)


def _of_another_form(error: tuple[Steps, ErrorDetails]) -> bool:
    """Report whether a value has another type than one of its field's forms, so that the errors of others say more."""
    steps, details = error
    return len(steps) < len(details["loc"]) and details["loc"][: len(steps)] == steps and details["type"] in TYPES


TYPES = ("string_type", "list_type", "dict_type", "model_type", "model_attributes_type")


def message_of(error: ErrorDetails) -> str:
    """Return the message for a validation error."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        why = PATTERNS.get(context["pattern"]) or Reason("must_match", pattern=context["pattern"])
        return also(Reason("not_valid", value=_shown(error["input"])), why)
    if kind == "list_type" and isinstance(error["input"], str):
        return Reason("not_list_such_as", example=_shown_json(error["input"].split()))
    if kind == "json_invalid":
        return Reason("not_json", why=str(context["error"]))
    if kind == "literal_error":
        return Reason("not_one_of", names=_either(re.findall("'([^']*)'", context["expected"])))
    if kind in _CODES:
        bound = next((context[name] for name in _BOUNDS if name in context), None)
        return Reason(_CODES[kind], **({} if bound is None else {"bound": bound}))
    said: str = context.get("why", error["msg"])
    return said


def _joined(steps: Sequence[int | str]) -> str:
    """Return a path such as ``resources.gpus`` or ``run.ports[2]``."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() or not path:
            path += f".{_short(step)}" if path else _short(step)
        elif "[" in step or "(" in step:
            continue  # a branch of a union, not a field
        else:
            path += f".{_short(step)}"
    return path


def _model_at(model: type[BaseModel], path: Steps) -> type[BaseModel]:
    """Return the message class at `path`."""
    here = model
    for step in path:
        if isinstance(step, str) and step in here.model_fields:
            here = _model_in(here.model_fields[step].annotation) or here
    return here


def _fields(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any, *, lists: bool = True) -> type[BaseModel] | None:  # noqa: ANN401
    """Return the message class in an annotation, perhaps within `lists` and mappings; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if not lists and get_origin(annotation) in (list, tuple, dict):
        return None
    return next(filter(None, (_model_in(each, lists=lists) for each in get_args(annotation))), None)


def _shown_json(value: object) -> str:
    return _short(orjson.dumps(value).decode().replace('","', '", "'))


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def _short(text: str) -> str:
    """Shorten a text, and escape unprintable characters."""
    cut = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]
