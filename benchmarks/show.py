"""Results as tables."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table

from benchmarks.record import Result

TEXTS = {"fleet", "policy", "trace", "jobs", "level", "when", "link", "effect", "value"}
"""Left-aligned columns."""

PIPE_WIDTH = 200
"""Width of a table in a pipe or a file, characters."""


def show(result: Result) -> None:
    """Print a result."""
    table = Table(title=result.case, title_justify="left", caption="\n".join(result.notes), caption_justify="left")
    columns = list(dict.fromkeys(key for row in result.rows for key in row))
    for column in columns:
        table.add_column(column, justify="left" if column in TEXTS else "right")
    for row in result.rows:
        table.add_row(*(_text(row.get(column, "")) for column in columns))
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    console.print(table)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) else str(value)
