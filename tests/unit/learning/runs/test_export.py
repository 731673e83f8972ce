"""Anything that a policy file says of the run that it is of."""

from __future__ import annotations

from itertools import pairwise

from seaway.learning.policies.file import Point
from seaway.learning.runs.export import MAX_POINTS, curve_of
from seaway.learning.runs.table import COLUMNS


def line(episode: int, placed: str) -> dict[str, str]:
    """Make a line of a run's table; evaluated where something was placed."""
    figures = {"evaluated_refused": "1", "evaluated_gpu_load_variance": "0.500000", "evaluated_reward": "2.5000"}
    evaluated = {"evaluated_placed": placed, **figures} if placed else {}
    return {**dict.fromkeys(COLUMNS, ""), "episode": str(episode), **evaluated}


def test_a_curve_has_the_evaluations_of_a_run_in_order() -> None:
    """Episodes after which nothing was evaluated, and lines that a user broke, are passed over."""
    rows = [line(1, ""), line(2, "7"), line(3, "many"), line(4, "9")]
    assert curve_of(rows) == (Point(2, 7, 1, 0.5, 2.5), Point(4, 9, 1, 0.5, 2.5))
    assert curve_of([]) == ()


def test_of_very_many_evaluations_some_are_in_the_file_with_the_first_and_the_last() -> None:
    """A file stays small, however long the run was; what is left is spread evenly."""
    episodes = [each.episode for each in curve_of([line(at, "1") for at in range(1, 1001)])]
    assert (len(episodes), episodes[0], episodes[-1]) == (MAX_POINTS, 1, 1000)
    steps = [after - before for before, after in pairwise(episodes)]
    assert set(steps) <= {5, 6}
