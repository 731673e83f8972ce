"""A run's episodes as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

from seaway.learning.training.listener import Nobody, Plan, Row

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
"""What each holds, `Play`, `Evaluated` and `Row` say; the last are empty where the policy was not evaluated."""


class EpisodeTable(Nobody):
    """Writes a line an episode, at once; of a run that goes on, lines after its checkpoint go first.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begins(self, plan: Plan) -> None:
        """Have the heading, and what is known to stay, in the file."""
        kept = read_rows(self._path)[: plan.done]
        beside = self._path.with_name(f"{self._path.name}.new")
        with beside.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(tuple(row.values()) for row in kept)])
        beside.replace(self._path)

    def played(self, row: Row) -> None:
        """Write the line of an episode."""
        with self._path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(_cells(row))


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the lines that are whole, in order; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.reader(file) if len(line) == len(COLUMNS)]
    return [dict(zip(COLUMNS, line, strict=True)) for line in lines[1:]]


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
