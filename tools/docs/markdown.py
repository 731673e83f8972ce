"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns that are empty in all rows are left out."""
    rows = [[cell(each) for each in row] for row in rows]
    retained = [i for i in range(len(head)) if any(row[i] for row in rows)]
    lines = [[head[i] for i in retained], ["---"] * len(retained), *([row[i] for i in retained] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Return text for a cell of a table: in one line, with its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return text as code, or nothing for no text."""
    return f"`{text}`" if text else ""
