"""Tables of an evaluation."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import typer

from seaway.cli.output import as_json, console
from seaway.learning.evaluation.statistics import Estimate
from seaway.learning.evaluation.summary import COLUMNS, METHOD, Cell, Row, Summary, by_instance, summarise, text_of
from seaway.terminal.tables import Column, Rows

UNKNOWN = "–"

BEST = "best packing known"


def show_tables(rows: Sequence[Row]) -> None:
    """Print the comparison of policies, the placed jobs on each instance, and notes."""
    if not rows:
        return
    out, lines = console(), summarise(rows)
    out.print(Rows(COMPARISON, ({"at": at, "line": line} for at, line in enumerate(lines, 1))))
    names = list(dict.fromkeys(row.instance for row in rows))
    if len(names) > 1:
        out.print("\n[bold]Jobs placed[/bold] (mean of the seeds)")
        out.print(_placed(lines, rows, names))
    out.print("\n" + "\n".join(_notes(rows)), markup=False, style="dim")


def with_ci(written: Callable[[float], str], figure: Estimate | None) -> str:
    """Format a mean with its confidence interval, if it has one."""
    if figure is None:
        return UNKNOWN
    return written(figure.mean) + ("" if figure.ci95 is None else f" ± {written(figure.ci95)}")


def _figure(title: str, name: str, digits: int, *, drop: int = 0, ci: bool = False) -> Column:
    def cell(body: dict[str, Any]) -> str:
        figure: Estimate | None = body["line"].figures.get(name)
        if ci:
            return with_ci(lambda value: f"{value:,.{digits}f}", figure)
        return UNKNOWN if figure is None else f"{figure.mean:,.{digits}f}"

    return Column(title, cell, right=True, drop=drop)


def _behind(body: dict[str, Any]) -> str:
    return with_ci(lambda value: f"{value:.1f}", body["line"].behind) if body["at"] > 1 else ""


def _trained(body: dict[str, Any]) -> str:
    line: Summary = body["line"]
    if line.trained is None:
        return ""
    if line.trained in {0, line.runs}:
        return "on these" if line.trained else "elsewhere"
    return f"on {line.trained} of {line.runs}"


COMPARISON = (
    Column("", lambda body: str(body["at"]), right=True),
    Column("POLICY", lambda body: body["line"].policy),
    Column("LEVEL", lambda body: body["line"].level, drop=1),
    _figure("PLACED", "placed", 1, ci=True),
    Column("BEHIND", _behind, right=True, drop=6),
    _figure("RATIO", "ratio", 3, drop=2),
    _figure("RIGHT", "right", 1, drop=7),
    _figure("FRAGMENTATION", "fragmentation", 3, drop=3, ci=True),
    _figure("LOAD VAR.", "gpu_load_variance", 4, drop=4, ci=True),
    _figure("GPU MEM %", "gpu_memory_pct", 1, drop=5, ci=True),
    _figure("GPU CORE %", "gpu_core_pct", 1, drop=9),
    _figure("CPU %", "cpu_pct", 1, drop=11),
    _figure("MEM %", "memory_pct", 1, drop=11),
    _figure("P50 µs", "p50_us", 0, drop=10),
    _figure("P99 µs", "p99_us", 0, drop=8),
    Column("TRAINED", _trained),
)


def _placed(lines: Sequence[Summary], rows: Sequence[Row], names: Sequence[str]) -> Rows:
    """Return the table of placed jobs, with a row per policy and a column per instance."""
    body: list[dict[str, Any]] = []
    for line in lines:
        placed = by_instance(rows, line.policy, line.level)
        body.append({"policy": line.policy, "level": line.level} | {name: placed.get(name) for name in names})
    best = {row.instance: row.best_known for row in rows}
    if any(best.values()):
        body.append({"policy": BEST, "level": "", **best})
    columns = [Column("POLICY", lambda each: each["policy"]), Column("LEVEL", lambda each: each["level"])]
    return Rows([*columns, *(_instance(name) for name in names)], body)


def _instance(name: str) -> Column:
    return Column(name, lambda each: UNKNOWN if each[name] is None else f"{each[name]:g}", right=True)


def _notes(rows: Sequence[Row]) -> list[str]:
    lines = [METHOD]
    if len({(row.policy, row.level) for row in rows}) > 1:
        lines.append("behind: how many jobs fewer than the first it placed, instance by instance.")
    unknown = dict.fromkeys(row.instance for row in rows if not row.best_known)
    if any(row.best_known for row in rows) and unknown:
        lines.append(f"ratio: left out, as no best packing is known of {', '.join(unknown)}.")
    if any(row.trained_on_instance is not None for row in rows):
        lines.append(
            "trained: on these instances, on some of them (of how many trials), or elsewhere, on none of them."
        )
    return lines + list(dict.fromkeys(f"{row.policy} on {row.instance}: {row.note}" for row in rows if row.note))


T = TypeVar("T")


class Shown:
    """Printer of rows. It prints CSV row by row, and JSON and tables at the end.

    Parameters
    ----------
    output
        ``table``, ``csv`` or ``json``.
    summary
        True if CSV and JSON have one row per policy.
    """

    def __init__(self, output: str, *, summary: bool) -> None:
        self._output, self._summary = output, summary
        self._taken: dict[int, Row] = {}

    def take(self, number: int, row: Row) -> None:
        """Accept a row with its index among all rows."""
        if self._streams:
            if not self._taken:
                _csv(COLUMNS)
            _csv(row.cells().values())
        self._taken[number] = row

    def end(self) -> None:
        """Print the remaining output."""
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
    """Iterate over results, with a progress bar on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    to = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=to, transient=True, disable=not to.is_terminal) as bar:
        yield from bar.track(things, total=total, description=doing)
