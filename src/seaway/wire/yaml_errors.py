"""What is wrong with a YAML document, in words for who wrote it: where, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import yaml

from seaway.domain.errors import RejectedError

SAYS = (
    ("mapping values are not allowed", "a colon may not stand here: put the text in quotes, or move the line"),
    ("cannot start any token", "nothing begins with this: put the text in quotes, and move lines by blanks, not tabs"),
    ("unexpected end of stream", "the text ends, and a quote is still open"),
    ("undefined alias", "no value is marked by this name"),
    ("duplicate anchor", "two values are marked by the same name"),
    ("single document", "only one document is read, and another begins here"),
    ("constructor for the tag", "only plain values are read, without a tag like this"),
    ("unhashable key", "the name of a field has to be a text"),
    ("for merging", "only mappings can be merged"),
    ("escape character", "this is no way to write a letter between double quotes: take single ones"),
    (
        "did not find expected",
        "something else has to stand here: look for an open bracket, and how far lines are moved",
    ),
)
"""By a part of what the library says of a mistake, what is said of it here; the first that goes with it counts."""

OTHERWISE = "it is not written as YAML is"

KINDS = {"int": "number", "float": "number", "bool": "truth value", "timestamp": "date"}
"""What values are, by the end of their tags."""

SHOWN = 40
"""Characters of a value that are shown."""


def broken(error: yaml.YAMLError | UnicodeEncodeError, body: bytes | str) -> RejectedError:
    """Say of a text that it is no YAML."""
    if isinstance(error, (yaml.reader.ReaderError, UnicodeEncodeError)):
        return RejectedError("this is no YAML: it holds what no text has", where=f"line {_line(error, body)}")
    said = str(error)
    says = next((says for part, says in SAYS if part in said), OTHERWISE)
    mark = (error.problem_mark or error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else None
    return RejectedError(f"this is no YAML: {says}", where=place(mark) if mark else "")


def unreadable(scalars: Iterable[yaml.ScalarNode], read: Callable[[yaml.ScalarNode], object]) -> RejectedError:
    """Say which value cannot be read, the first of some; what `read` raises tells that."""
    for node in scalars:
        try:
            read(node)
        except Exception:  # noqa: BLE001  # values are made in many ways, and fail in as many
            kind = KINDS.get(node.tag.rpartition(":")[2], "plain value")
            short = node.value if len(node.value) <= SHOWN else f"{node.value[:SHOWN]}…"
            says = f"{short!r} can be read as no {kind}: put it in quotes if it is a text"
            return RejectedError(says, where=place(node.start_mark))
    return RejectedError("this YAML holds what is no plain value")


def _line(error: yaml.reader.ReaderError | UnicodeEncodeError, body: bytes | str) -> int:
    """Return where it is, counted from 1: told by the character of a text that cannot be written, else by the byte."""
    if isinstance(error, UnicodeEncodeError):
        return error.object[: error.start].count("\n") + 1
    return (body.encode() if isinstance(body, str) else body)[: error.position].count(b"\n") + 1


def place(mark: yaml.Mark) -> str:
    """Say where something is, counted from 1."""
    return f"line {mark.line + 1}, column {mark.column + 1}"
