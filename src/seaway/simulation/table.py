"""CSV tables, with errors that name file, line and column."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from seaway.domain.errors import RejectedError

LARGEST = 2**31 - 1
"""Maximum number in a cell, as in the engine's columns."""

YES = frozenset({"true", "yes", "1"})
NO = frozenset({"false", "no", "0", ""})


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One line of a table.

    Attributes
    ----------
    table
        Path of the file, as given by the caller.
    number
        Line of the file, from 1; the last line of an entry with several lines.
    cells
        Text by column.
    """

    table: str
    number: int
    cells: Mapping[str, str]

    def has(self, column: str) -> bool:
        """Report whether the column exists and its cell is not empty."""
        return bool(self.cells.get(column))

    def wrong(self, column: str, message: str) -> RejectedError:
        """Return an error about a cell, with its position."""
        return RejectedError(message, where=f"{self.table}:{self.number}:{column}")

    def text(self, column: str) -> str:
        """Return the text of a cell; empty if the column does not exist."""
        return self.cells.get(column, "")

    def name(self, column: str) -> str:
        """Return the text of a cell, which must not be empty."""
        value = self.text(column)
        if not value:
            raise self.wrong(column, "is empty, but a name is needed")
        return value

    def whole(self, column: str, default: int | None = None) -> int:
        """Return a whole number, at least 0.

        Parameters
        ----------
        default
            Value for an empty cell or a missing column; None if the number is required.

        Raises
        ------
        RejectedError
            If the cell has another value.
        """
        if default is not None and not self.has(column):
            return default
        number = self._number(column)
        if number != number.to_integral_value():
            raise self.wrong(column, f"{self.text(column)!r} is not a whole number")
        return int(number)

    def scaled(self, column: str, factor: int) -> int:
        """Return `factor` times the number in a cell, rounded; 0 for an empty cell or a missing column.

        A number above 0 gives at least 1, because 0 means none.
        """
        number = self._number(column) if self.has(column) else Decimal(0)
        return max(round(number * factor), 1) if number else 0

    def flag(self, column: str) -> bool:
        """Return the truth value of a cell; False for an empty cell or a missing column."""
        value = self.text(column).lower()
        if value not in YES | NO:
            raise self.wrong(column, f"{self.text(column)!r} is not true or false")
        return value in YES

    def _number(self, column: str) -> Decimal:
        text = self.text(column)
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite():
            raise self.wrong(column, f"{text!r} is not a number" if text else "is empty, but a number is needed")
        if number < 0:
            raise self.wrong(column, f"{text} is negative")
        if number > LARGEST:
            raise self.wrong(column, f"{text} is above the maximum of {LARGEST}")
        return number


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file with a header.

    Attributes
    ----------
    path
        Path of the file, as given by the caller.
    columns
        Names of the columns in the header.
    rows
        Rows below the header, at least one.
    """

    path: str
    columns: tuple[str, ...]
    rows: tuple[CsvRow, ...]

    def __iter__(self) -> Iterator[CsvRow]:
        return iter(self.rows)

    def require_columns(self, column: str, why: str = "is missing") -> RejectedError:
        """Return an error about a column that is missing."""
        header = ", ".join(self.columns)
        return RejectedError(f"the column {why}; the header has: {header}", where=f"{self.path}:1:{column}")


def read_table(path: Path, needs: Sequence[str] = ()) -> Table:
    """Read a CSV file.

    Parameters
    ----------
    needs
        Required columns.

    Raises
    ------
    RejectedError
        If the file cannot be read, is empty, or lacks a column, or a line and the header have different numbers of
        cells.
    """
    where = str(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = tuple(cell.strip() for cell in next(rows, []))
            lines = tuple(_line(where, rows.line_num, header, row) for row in rows if any(row))
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror or error}", where=where) from None
    except UnicodeDecodeError:
        raise RejectedError("is not text in UTF-8", where=where) from None
    except csv.Error as error:
        raise RejectedError(f"is not CSV: {error}", where=f"{where}:{rows.line_num}") from None
    table = Table(where, header, lines)
    if not header:
        raise RejectedError("the file is empty", where=f"{where}:1")
    for column in needs:
        if column not in header:
            raise table.require_columns(column)
    for column in header:
        if header.count(column) > 1:
            raise RejectedError("the column appears more than once", where=f"{where}:1:{column}")
    if not lines:
        raise RejectedError("no rows below the header", where=f"{where}:2:{header[0]}")
    return table


def require_unique(line: CsvRow, column: str, name: str, seen: Collection[str]) -> None:
    """Reject a name that is already in `seen`."""
    if name in seen:
        raise line.wrong(column, f"{name!r} appears more than once")


def _line(table: str, number: int, header: Sequence[str], row: Sequence[str]) -> CsvRow:
    if len(row) != len(header):
        at = header[len(row)] if len(row) < len(header) else f"{len(header) + 1}"
        raise RejectedError(f"the line has {len(row)} cells, the header {len(header)}", where=f"{table}:{number}:{at}")
    return CsvRow(table, number, dict(zip(header, (cell.strip() for cell in row), strict=True)))
