"""Safe YAML parser: plain values with their line numbers, and limits on depth and alias expansion."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

SAYS = (
    ("mapping values are not allowed", "yaml_colon"),
    ("cannot start any token", "yaml_cannot_begin"),
    ("unexpected end of stream", "yaml_open_quote"),
    ("undefined alias", "yaml_no_anchor"),
    ("duplicate anchor", "yaml_same_anchor"),
    ("single document", "yaml_one_document"),
    ("constructor for the tag", "yaml_tag"),
    ("unhashable key", "yaml_field_name"),
    ("for merging", "yaml_merge"),
    ("escape character", "yaml_escape"),
    ("did not find expected", "yaml_unexpected"),
)
"""Codes of reasons by a part of the parser's message; the first match applies."""

OTHERWISE = "yaml_syntax"

KINDS = {"int": "number", "float": "number", "bool": "truth value", "timestamp": "date"}
"""Names of types by the end of their tags."""

SHOWN = 40
"""Maximum length of a value in an error, characters."""


class YamlError(RejectedError):
    """Invalid YAML.

    Parameters
    ----------
    line, column
        Position of the problem, from 1; 0 if unknown.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        place = f"line {line}, column {column}" if column else f"line {line}"
        super().__init__(message, where=place if line else "")
        self.line = line

    def of_file(self, file: str) -> RejectedError:
        """Return the error with the name of its file."""
        return RejectedError(self.message, where=f"{file}:{self.line}" if self.line else file)


def broken(error: yaml.YAMLError | UnicodeEncodeError, body: bytes | str) -> YamlError:
    """Return the error for invalid YAML."""
    if isinstance(error, (yaml.reader.ReaderError, UnicodeEncodeError)):
        return YamlError(Reason("not_yaml_text"), _line(error, body))
    said = str(error)
    code = next((code for part, code in SAYS if part in said), OTHERWISE)
    mark = (error.problem_mark or error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else None
    return _at(mark, Reason("not_yaml", why=Reason(code)))


def _at(mark: yaml.Mark | None, message: str) -> YamlError:
    return YamlError(message, mark.line + 1, mark.column + 1) if mark else YamlError(message)


def unreadable(scalars: Iterable[yaml.ScalarNode], read: Callable[[yaml.ScalarNode], object]) -> YamlError:
    """Return the error for the first value that `read` rejects."""
    for node in scalars:
        try:
            read(node)
        except Exception:  # noqa: BLE001  # constructors raise many types of errors
            return _invalid(node)
    return YamlError(Reason("yaml_not_plain"))


def _invalid(node: yaml.ScalarNode) -> YamlError:
    kind = KINDS.get(node.tag.rpartition(":")[2], "plain value")
    short = node.value if len(node.value) <= SHOWN else f"{node.value[:SHOWN]}…"
    return _at(node.start_mark, Reason("not_valid_kind", value=short, kind=kind))


def _line(error: yaml.reader.ReaderError | UnicodeEncodeError, body: bytes | str) -> int:
    """Return the line of an error, from 1: that of the character that cannot be encoded, or else of the byte."""
    if isinstance(error, UnicodeEncodeError):
        return error.object[: error.start].count("\n") + 1
    return (body.encode() if isinstance(body, str) else body)[: error.position].count(b"\n") + 1


MAX_NESTED = 32
"""Maximum depth of nested values."""

MAX_VALUES = 50_000
"""Maximum number of values in most documents. An alias counts as all values that it refers to."""

LONG = 200
"""Number of characters that count as one more value, which limits the expansion of long texts by aliases."""


class _Extent(NamedTuple):
    """Number of values in a value, including itself, and their depth."""

    values: int
    height: int


NONE = _Extent(0, 0)

NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
TEXT_TAG = "tag:yaml.org,2002:str"
PLAIN_TAGS = frozenset({*NUMBERS, "tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"})
LONGEST_NUMBER = 100
"""Maximum length of a number, characters. The time to read one like ``1:30:30`` grows with the square of its length."""

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document.

    Attributes
    ----------
    value
        Value of the document; None for an empty document.
    root
        Parsed nodes with positions; None for an empty document.
    """

    value: object
    root: yaml.Node | None

    @property
    def line(self) -> int:
        """First line of the document, from 1."""
        return self.root.start_mark.line + 1 if self.root else 1

    def lines(self) -> dict[str, int]:
        """Return the line of each field and entry, from 1, by path such as ``run.ports[0]``."""
        return {path: line for path, line, _ in _fields(self.root, "")} if self.root else {}

    def with_texts(self, wanted: Callable[[str], bool]) -> object:
        """Return the value, with numbers, truth values and dates at the wanted paths as the texts that were written."""
        if self.root is None:
            return self.value
        numbers = [
            node
            for path, _, node in _fields(self.root, "")
            if isinstance(node, yaml.ScalarNode) and node.tag in PLAIN_TAGS and wanted(path)
        ]
        for node in numbers:
            node.tag = TEXT_TAG
        return _construct(self.root) if numbers else self.value


def read_yaml(body: bytes | str, most: int = MAX_VALUES) -> object:
    """Read one document, as `yaml_document` does, and return its value."""
    return yaml_document(body, most).value


def yaml_document(body: bytes | str, most: int = MAX_VALUES) -> Document:
    """Read one document of at most `most` values.

    Raises
    ------
    YamlError
        If the YAML is invalid, has tagged values or duplicated keys, or exceeds the depth or, with expanded aliases,
        the number of values.
    """
    try:
        _require_flat(body, most)
        return _document(yaml.compose(body, Loader), most)
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise broken(error, body) from None


def yaml_documents(body: bytes | str, most: int = MAX_VALUES) -> list[Document]:
    """Read all non-empty documents, each with at most `most` values; raises as `yaml_document`."""
    try:
        _require_flat(body, most)
        found = [_document(root, most) for root in yaml.compose_all(body, Loader)]
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise broken(error, body) from None
    return [each for each in found if each.value is not None]


def _document(root: yaml.Node | None, most: int) -> Document:
    if root is None:
        return Document(None, None)
    _expanded(root, {}, most)
    return Document(_construct(root), root)


def _fields(node: yaml.Node, path: str) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yield the path, line and value of each field and entry."""
    if isinstance(node, yaml.SequenceNode):
        for at, part in enumerate(node.value):
            yield f"{path}[{at}]", part.start_mark.line + 1, part
            yield from _fields(part, f"{path}[{at}]")
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            yield name, key.start_mark.line + 1, value
            yield from _fields(value, name)


def _require_flat(body: bytes | str, most: int) -> None:
    """Check depth and size before any object is created."""
    depth = values = 0
    for event in yaml.parse(body, Loader):
        if isinstance(event, yaml.DocumentStartEvent):
            values = 0
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        values += isinstance(event, yaml.NodeEvent)
        if depth > MAX_NESTED or values > most:
            raise YamlError(Reason("yaml_too_deep", depth=MAX_NESTED, most=most))


def _expanded(node: yaml.Node, known: dict[int, _Extent], most: int) -> _Extent:
    """Return the extent of a value with expanded aliases; `NONE` in `known` marks values in progress."""
    extent = known.get(id(node))
    if extent is NONE:
        raise _at(node.start_mark, Reason("yaml_contains_itself"))
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
        raise YamlError(Reason("yaml_expands", most=most))
    if extent.height > MAX_NESTED:
        raise YamlError(Reason("yaml_alias_deep", depth=MAX_NESTED))
    return extent


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            twice = next(key for key, count in Counter(keys).items() if count > 1)
            raise YamlError(Reason("yaml_field_twice", name=twice[:60]), _line_of(node, twice))
        return [part for pair in node.value for part in pair]
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.ScalarNode) and node.tag in NUMBERS and len(node.value) > LONGEST_NUMBER:
        raise _invalid(node)
    if node.tag == "tag:yaml.org,2002:float" and not _is_finite(node.value):
        raise YamlError(Reason("yaml_not_a_number", value=node.value), node.start_mark.line + 1)
    return []


def _line_of(node: yaml.MappingNode, twice: str) -> int:
    """Return the line of the second field with a name."""
    lines: list[int] = [key.start_mark.line + 1 for key, _ in node.value if key.value == twice]
    return lines[1]


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
