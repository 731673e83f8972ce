"""Rows of an evaluation, printed: as they come for programs, summed up for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import TypeVar

import typer

from seaway.cli.evaluate_tables import show_tables
from seaway.cli.output import as_json
from seaway.learning.evaluation.row import COLUMNS, Cell, Row, text_of
from seaway.learning.evaluation.summary import summarise

T = TypeVar("T")


class Shown:
    """Prints rows: each at once as CSV, all at the end as JSON or tables.

    Parameters
    ----------
    output
        ``table``, ``csv`` or ``json``.
    summary
        Whether programs get a row a policy.
    """

    def __init__(self, output: str, *, summary: bool) -> None:
        self._output, self._summary = output, summary
        self._taken: dict[int, Row] = {}

    def take(self, number: int, row: Row) -> None:
        """Take a row, and its place among all."""
        if self._streams:
            if not self._taken:
                _csv(COLUMNS)
            _csv(row.cells().values())
        self._taken[number] = row

    def end(self) -> None:
        """Print what is left to print."""
        if self._output == "table":
            show_tables(self._rows)
        elif self._output == "json":
            typer.echo(as_json(self._records()))
        elif self._summary:
            records = self._records()
            for each in records[:1]:
                _csv(each)
            for each in records:
                _csv(map(text_of, each.values()))

    def _records(self) -> list[dict[str, Cell]]:
        if self._summary:
            return [line.record() for line in summarise(self._rows)]
        return [row.record() for row in self._rows]

    @property
    def _rows(self) -> list[Row]:
        return [self._taken[number] for number in sorted(self._taken)]

    @property
    def _streams(self) -> bool:
        return self._output == "csv" and not self._summary


def _csv(cells: Iterable[object]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    typer.echo(text.getvalue())


def watched(things: Iterator[T], total: int, doing: str = "evaluating") -> Iterator[T]:
    """Go through things, with a bar on standard error where somebody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    to = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=to, transient=True, disable=not to.is_terminal) as bar:
        yield from bar.track(things, total=total, description=doing)
