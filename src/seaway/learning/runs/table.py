"""Table of a run's episodes as CSV."""

from __future__ import annotations

import csv
from math import isfinite
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.training.listener import NullListener, Plan, Row

COLUMNS = (
    "episode",
    "instance",
    "reward",
    "jobs",
    "placed",
    "refused",
    "failed",
    "fragmentation",
    "gpu_load_variance",
    "seconds",
    "evaluated_placed",
    "evaluated_refused",
    "evaluated_gpu_load_variance",
    "evaluated_reward",
    "best",
)
"""Columns, see `EpisodeResult`, `Evaluation` and `Row`; the last ones are empty without an evaluation."""


class EpisodeTable(NullListener):
    """Writer of one row per episode. In a resumed run, rows after its checkpoint are removed first.

    Parameters
    ----------
    path
        Path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begins(self, plan: Plan) -> None:
        """Write the header, and retain valid rows."""
        retained = stored_rows(self._path, plan.done)
        beside = self._path.with_name(f"{self._path.name}.new")
        with beside.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(tuple(row.values()) for row in retained)])
        beside.replace(self._path)

    def played(self, row: Row) -> None:
        """Write the row of an episode."""
        with self._path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(_cells(row))


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the complete rows, in order; none without a file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.reader(file) if len(line) == len(COLUMNS)]
    return [dict(zip(COLUMNS, line, strict=True)) for line in lines[1:]]


def stored_rows(path: Path, done: int) -> list[dict[str, str]]:
    """Read and check the rows up to an episode of a resumed run.

    An absent or empty file has no rows; the table then begins later.

    Raises
    ------
    RejectedError
        When a row is invalid or missing, with its number.
    """
    retained: list[dict[str, str]] = []
    if not path.exists() or not done:
        return retained
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader, line, episode = csv.reader(file), 1, done + 1
        try:
            for cells in reader:
                if line == 1:
                    _check(tuple(cells) == COLUMNS, path, line, "is not the heading of this table")
                else:
                    _check(_is_row(cells), path, line, "is not a row of an episode")
                    number = int(cells[0])
                    first = line == 2 and 0 < number <= done + 1
                    _check(first or number == episode + 1, path, line, "is not of the episode that comes next")
                    episode = number
                    if episode > done:
                        return retained
                    retained.append(dict(zip(COLUMNS, cells, strict=True)))
                line = reader.line_num + 1
        except csv.Error:
            _check(False, path, line, "is not a row of an episode")
    _check(episode >= done, path, line, f"is missing, and all up to episode {done}")
    return retained


def _is_row(cells: list[str]) -> bool:
    """Report whether a row has the name of an instance, and only numbers otherwise."""
    if len(cells) != len(COLUMNS) or not cells[0].isdecimal() or "\ufffd" in cells[1]:
        return False
    try:
        return all(isfinite(float(cell)) for cell in cells[2:] if cell)
    except ValueError:
        return False


def _check(good: bool, path: Path, line: int, problem: str) -> None:
    if not good:
        raise RejectedError(
            f"{problem}: fix the file, or move it to continue without the rows of earlier episodes",
            where=f"{path}:{line}",
        )


def _cells(row: Row) -> list[object]:
    play, evaluated = row.play, row.evaluated
    return [
        row.episode,
        play.instance,
        f"{play.reward:.4f}",
        play.jobs,
        play.placed,
        play.refused,
        play.failed,
        _figure(play.fragmentation),
        _figure(play.gpu_load_variance),
        f"{play.seconds:.3f}",
        evaluated.placed if evaluated else "",
        evaluated.refused if evaluated else "",
        _figure(evaluated.gpu_load_variance if evaluated else None),
        f"{evaluated.reward:.4f}" if evaluated else "",
        int(row.best),
    ]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
