"""The table has each episode once."""

from __future__ import annotations

from pathlib import Path

from seaway.learning.runs.table import EpisodeTable, read_rows
from seaway.learning.training.listener import Plan, Row
from tests.unit.learning.runs.small import evaluated, play


def write(path: Path, done: int, *episodes: int) -> None:
    """Write episodes of a run that resumes after some."""
    table = EpisodeTable(path)
    table.begins(Plan(path.parent, "ddpg", 10, done))
    for episode in episodes:
        table.played(Row(episode, play(), evaluated(8) if episode % 2 == 0 else None, best=episode == 2))


def test_rows_of_the_table(tmp_path: Path) -> None:
    """Only the episode before an evaluation has its figures."""
    write(tmp_path / "episodes.csv", 0, 1, 2)
    first, second = read_rows(tmp_path / "episodes.csv")
    assert (first["episode"], first["placed"], first["reward"], first["best"]) == ("1", "7", "-12.5000", "0")
    assert (first["evaluated_placed"], second["evaluated_placed"], second["best"]) == ("", "8", "1")


def test_rows_after_the_checkpoint_are_removed(tmp_path: Path) -> None:
    """A resumed run plays those episodes again, and an incomplete line is ignored."""
    path = tmp_path / "episodes.csv"
    write(path, 0, 1, 2, 3)
    with path.open("a", encoding="utf-8") as file:
        file.write("4,toy,-1")
    write(path, 2, 3, 4)
    assert [row["episode"] for row in read_rows(path)] == ["1", "2", "3", "4"]
