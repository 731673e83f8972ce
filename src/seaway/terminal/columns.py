"""Tables that fit the terminal: one line per row, truncated texts, and columns that are dropped by priority."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from seaway.terminal.words import Body

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

GAP = 2
LEAST = 16
"""Least width of a column that may be truncated, in characters."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table.

    Attributes
    ----------
    title
        Heading.
    cell
        Returns the text of a row's cell.
    right
        Whether to align right.
    wide
        Whether to show it only in wide output.
    cut
        Whether its text may be truncated.
    drop
        Order in which columns are dropped from a narrow terminal: the highest first; 0 is never dropped.
    """

    title: str
    cell: Callable[[Body], str | Text]
    right: bool = False
    wide: bool = False
    cut: bool = False
    drop: int = 0


class Rows:
    """Table that adapts to the width of the terminal when it is printed.

    Parameters
    ----------
    columns
        All columns.
    rows
        Rows, one per line.
    wide
        Whether to show wide columns.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Body], *, wide: bool = False) -> None:
        self._columns = [each for each in columns if wide or not each.wide]
        self._cells = [[_text(column.cell(row)) for column in self._columns] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = fitting(self._columns, list(map(self._width, range(len(self._columns)))), options.max_width)
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for at in shown:
            column = self._columns[at]
            table.add_column(column.title, justify="right" if column.right else "left", no_wrap=not column.cut)
        for row in self._cells:
            table.add_row(*(_cut(row[at]) if self._columns[at].cut else row[at] for at in shown))
        yield table

    def _width(self, at: int) -> int:
        return max([cell_len(self._columns[at].title), *(row[at].cell_len for row in self._cells)])


def fitting(columns: Sequence[Column], widest: Sequence[int], room: int) -> list[int]:
    """Return the indexes of the columns that fit a width.

    Parameters
    ----------
    widest
        Width of each column's widest text, in characters.
    room
        Available width in characters.
    """
    least = [GAP + (min(wide, LEAST) if column.cut else wide) for column, wide in zip(columns, widest, strict=True)]
    shown = list(range(len(columns)))
    while sum(least[at] for at in shown) > room and any(columns[at].drop for at in shown):
        shown.remove(max(shown, key=lambda at: columns[at].drop))
    return shown


def details(pairs: Iterable[tuple[str, str | Text]]) -> Table:
    """Return a table of names and values, without empty ones."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            table.add_row(name, _text(value))
    return table


def _text(value: str | Text) -> Text:
    return Text(value) if isinstance(value, str) else value


def _cut(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
