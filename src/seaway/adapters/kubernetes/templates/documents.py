"""Cuts a file into manifests: plain values, and not many of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.wire.safe_yaml import read_yaml

MOST_BYTES = 64 * 1024
MOST_MANIFESTS = 16


def read_manifests(text: str) -> list[dict[str, Any]]:
    """Read the manifests of a file, each a YAML document of its own.

    Raises
    ------
    RejectedError
        When it is no YAML, too large, has no manifest, or one that JSON could not say.
    """
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise RejectedError(f"is larger than {MOST_BYTES // 1024} KiB")
    manifests: list[dict[str, Any]] = []
    for lines, document in _documents(text):
        value = read_yaml("\n" * lines + document)
        if value is None:
            continue
        where = f"manifest {len(manifests) + 1}"
        if not isinstance(value, dict):
            raise RejectedError("has to be an object with fields", where=where)
        _require_plain(value, where)
        manifests.append(value)
        if len(manifests) > MOST_MANIFESTS:
            raise RejectedError(f"has more than {MOST_MANIFESTS} manifests")
    if not manifests:
        raise RejectedError("has no manifest")
    return manifests


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Cut a file at its ``---`` lines; yield how many lines are before each piece, and the piece."""
    first = 0
    piece: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if line.rstrip() == "---" or line.startswith("--- "):
            yield first, "\n".join(piece)
            rest = line[3:].strip()
            first, piece = (number, [rest]) if rest else (number + 1, [])
        else:
            piece.append(line)
    yield first, "\n".join(piece)


def _require_plain(value: object, where: str) -> None:
    """Check that a value is what JSON has: YAML reads ``on`` as a truth value, and dates as dates."""
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise RejectedError(f"the field {key!r} is no text: quote it", where=where)
            if "${" in key:
                raise RejectedError(f"{key[:60]!r}: a placeholder cannot name a field", where=where)
            _require_plain(each, f"{where}/{key}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            _require_plain(each, f"{where}/{place}")
    elif value is not None and not isinstance(value, str | int | float):
        raise RejectedError(f"{value!s:.60} is no plain value: quote it", where=where)
