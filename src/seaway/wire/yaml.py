"""Safe YAML parser: plain values only, with limits on depth and on the expansion of aliases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import yaml

from seaway.domain.errors import RejectedError

SAYS = (
    ("mapping values are not allowed", "a colon is not allowed here: put the text in quotes, or fix the indentation"),
    ("cannot start any token", "nothing begins with this: put the text in quotes, and move lines by blanks, not tabs"),
    ("unexpected end of stream", "the text ends, and a quote is still open"),
    ("undefined alias", "no value is marked by this name"),
    ("duplicate anchor", "two values are marked by the same name"),
    ("single document", "only one document is read, and another begins here"),
    ("constructor for the tag", "only plain values are read, without a tag like this"),
    ("unhashable key", "the name of a field must be a text"),
    ("for merging", "only mappings can be merged"),
    ("escape character", "this escape sequence is not valid between double quotes: use single quotes"),
    (
        "did not find expected",
        "unexpected text: check for an open bracket, and the indentation",
    ),
)
"""Error messages by a part of the parser's message; the first match applies."""

OTHERWISE = "it is not written as YAML is"

KINDS = {"int": "number", "float": "number", "bool": "truth value", "timestamp": "date"}
"""Names of types by the end of their tags."""

SHOWN = 40
"""Maximum length of a value in an error, characters."""


def broken(error: yaml.YAMLError | UnicodeEncodeError, body: bytes | str) -> RejectedError:
    """Return the error of a text that is not YAML."""
    if isinstance(error, (yaml.reader.ReaderError, UnicodeEncodeError)):
        return RejectedError(
            "this is not YAML: it has characters that text cannot have", where=f"line {_line(error, body)}"
        )
    said = str(error)
    says = next((says for part, says in SAYS if part in said), OTHERWISE)
    mark = (error.problem_mark or error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else None
    return RejectedError(f"this is not YAML: {says}", where=place(mark) if mark else "")


def unreadable(scalars: Iterable[yaml.ScalarNode], read: Callable[[yaml.ScalarNode], object]) -> RejectedError:
    """Return the error of the first value that `read` rejects."""
    for node in scalars:
        try:
            read(node)
        except Exception:  # noqa: BLE001  # constructors raise many types of errors
            kind = KINDS.get(node.tag.rpartition(":")[2], "plain value")
            short = node.value if len(node.value) <= SHOWN else f"{node.value[:SHOWN]}…"
            says = f"{short!r} is not a valid {kind}; put it in quotes to use it as text"
            return RejectedError(says, where=place(node.start_mark))
    return RejectedError("this YAML has a value that is not plain")


def _line(error: yaml.reader.ReaderError | UnicodeEncodeError, body: bytes | str) -> int:
    """Return the line of an error, from 1: of the character that cannot be encoded, or else of the byte."""
    if isinstance(error, UnicodeEncodeError):
        return error.object[: error.start].count("\n") + 1
    return (body.encode() if isinstance(body, str) else body)[: error.position].count(b"\n") + 1


def place(mark: yaml.Mark) -> str:
    """Return a position as text, counted from 1."""
    return f"line {mark.line + 1}, column {mark.column + 1}"


MAX_NESTED = 32
"""Maximum depth of nested values."""

MAX_VALUES = 50_000
"""Maximum number of values in most documents; an alias counts as all values that it refers to."""

LONG = 200
"""Characters of a text that count as one more value, which limits the expansion of long texts by aliases."""


class _Extent(NamedTuple):
    """Number of values in a value, including itself, and their depth."""

    values: int
    height: int


NONE = _Extent(0, 0)

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(body: bytes | str, most: int = MAX_VALUES) -> object:
    """Read one document of at most `most` values.

    Raises
    ------
    RejectedError
        If it is invalid YAML, has values other than plain ones or duplicated keys, or exceeds the depth or the number
        of values with expanded aliases.
    """
    try:
        _require_flat(body, most)
        root = yaml.compose(body, Loader)
        if root is None:
            return None
        _expanded(root, {}, most)
        return _construct(root)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise broken(error, body) from None


def _require_flat(body: bytes | str, most: int) -> None:
    """Check depth and size before any object is built."""
    depth = values = 0
    for event in yaml.parse(body, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        values += isinstance(event, yaml.NodeEvent)
        if depth > MAX_NESTED or values > most:
            raise RejectedError(f"this YAML nests deeper than {MAX_NESTED} or has more than {most} values")


def _expanded(node: yaml.Node, known: dict[int, _Extent], most: int) -> _Extent:
    """Return the extent of a value with expanded aliases; `NONE` in `known` marks values in progress."""
    extent = known.get(id(node))
    if extent is NONE:
        raise RejectedError("this YAML has a value that contains itself")
    if extent is None:
        known[id(node)] = NONE
        size, height = 1, 0
        for part in _parts(node):
            below = _expanded(part, known, most)
            size, height = size + below.values, max(height, below.height)
        if isinstance(node, yaml.ScalarNode):
            size += len(node.value) // LONG
        else:
            height += 1
        extent = known[id(node)] = _Extent(size, height)
    if extent.values > most:
        raise RejectedError(f"this YAML expands to more than {most} values")
    if extent.height > MAX_NESTED:
        raise RejectedError(f"this YAML nests deeper than {MAX_NESTED}, with expanded aliases")
    return extent


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise RejectedError(f"the field {twice[:60]!r} is duplicated", where=f"line {node.start_mark.line + 1}")
        return [part for pair in node.value for part in pair]
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if node.tag == "tag:yaml.org,2002:float" and not _is_finite(node.value):
        raise RejectedError(f"{node.value} is not a number", where=f"line {node.start_mark.line + 1}")
    return []


def _is_finite(text: str) -> bool:
    """Report whether a text is neither infinity nor NaN; `1e999` is infinity."""
    try:
        return math.isfinite(float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan")))
    except ValueError:  # such as 1:30.5, which is 90.5, and non-numbers, which fail later
        return True


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    for part in _parts(node):
        yield from _scalars(part)


def _construct(root: yaml.Node) -> object:
    loader = Loader("")
    try:
        return loader.construct_document(root)
    except yaml.YAMLError:
        raise
    except Exception:  # noqa: BLE001  # constructors raise many types of errors
        raise unreadable(_scalars(root), loader.construct_object) from None
    finally:
        loader.dispose()
