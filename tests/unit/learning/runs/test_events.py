"""Curves of TensorBoard have each episode once."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs seaway[learn]")
accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator", reason="needs seaway[learn]"
)
event_file_writer = pytest.importorskip("tensorboard.summary.writer.event_file_writer", reason="needs seaway[learn]")

from seaway.learning.runs.run import Events  # noqa: E402  # where tensorboard is
from seaway.learning.training.listener import Plan, Row, TrainingResult  # noqa: E402
from tests.unit.learning.runs.small import evaluated, play  # noqa: E402


@pytest.fixture(autouse=True)
def _first_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number the files of events from zero. Runs of the same second are read in the order of names: 10 is before 9."""
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))


def write(folder: Path, done: int, *episodes: int) -> None:
    """Write events of a run that resumes after some episodes."""
    events = Events(folder)
    events.begins(Plan(folder, "ddpg", 10, done))
    for episode in episodes:
        events.played(Row(episode, play(critic_loss=0.5), evaluated(8) if episode % 2 == 0 else None))
    events.saved(episodes[-1])
    events.ends(TrainingResult(episodes[-1], None, 0, "stopped"))


def steps(folder: Path, name: str) -> list[int]:
    """Return the episodes of a curve as TensorBoard shows it."""
    read = accumulator.EventAccumulator(str(folder))
    read.Reload()
    return [each.step for each in read.Scalars(name)]


def test_curves_have_a_point_per_episode(tmp_path: Path) -> None:
    """Evaluations have points only where they happened."""
    write(tmp_path, 0, 1, 2, 3, 4)
    assert steps(tmp_path, "episode/placed") == steps(tmp_path, "learning/critic_loss") == [1, 2, 3, 4]
    assert steps(tmp_path, "evaluated/placed") == [2, 4]


def test_episodes_after_the_checkpoint_are_hidden(tmp_path: Path) -> None:
    """Repeated episodes replace those before a kill."""
    write(tmp_path, 0, 1, 2, 3, 4)
    write(tmp_path, 2, 3, 4, 5)
    assert steps(tmp_path, "episode/placed") == [1, 2, 3, 4, 5]


def test_a_run_without_a_checkpoint_restarts_its_curves(tmp_path: Path) -> None:
    """Its first events are hidden."""
    write(tmp_path, 0, 1, 2)
    write(tmp_path, 0, 1, 2, 3)
    assert steps(tmp_path, "episode/placed") == [1, 2, 3]
