from pathlib import Path

import numpy as np
import pytest

from seaway.learning.evaluation.statistics import SMOOTHED, learning_curve, smoothed
from seaway.learning.runs.table import EpisodeTable
from seaway.learning.training.listener import EpisodeResult, Plan, Row


def episodes(path: Path, rewards: list[float]) -> Path:
    """Write the table of a run's episodes."""
    table = EpisodeTable(path)
    table.begins(Plan(path.parent, "ddpg", len(rewards)))
    for at, reward in enumerate(rewards, 1):
        table.played(Row(at, EpisodeResult("a", reward, 10, at, 0, 10 - at, None, None)))
    return path


def test_a_curve_has_the_statistics_of_its_runs(tmp_path: Path) -> None:
    """It has mean, minimum and maximum by episode; a shorter run counts for its own episodes."""
    long, short = episodes(tmp_path / "a.csv", [-10, -20, -30]), episodes(tmp_path / "b.csv", [-20, -40])
    curve = learning_curve([long, short, tmp_path / "absent.csv"])
    assert curve is not None
    assert curve.episode.tolist() == [1, 2, 3]
    assert curve.reward.mean.tolist() == [-15, -30, -30]
    assert (curve.reward.minimum.tolist(), curve.reward.maximum.tolist()) == ([-20, -40, -30], [-10, -20, -30])
    assert curve.placed.mean.tolist() == [1, 2, 3]


def test_without_episodes_there_is_no_curve(tmp_path: Path) -> None:
    """A missing table has no curve."""
    assert learning_curve([tmp_path / "absent.csv"]) is None


def test_curves_are_moving_means() -> None:
    """Each value is the mean of itself and up to 19 values before it."""
    values = np.arange(300, dtype=np.float64)
    found = smoothed(values)
    assert found[0] == 0
    assert found[10] == values[:11].mean()
    assert found[-1] == pytest.approx(values[-SMOOTHED:].mean())
