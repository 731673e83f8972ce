"""Records of a run in its policy file."""

from __future__ import annotations

from itertools import pairwise

from seaway.learning.policies.file import Point
from seaway.learning.runs.export import MAX_POINTS, curve_of
from seaway.learning.runs.table import COLUMNS


def line(episode: int, placed: str) -> dict[str, str]:
    """Return a row of a run's table, with an evaluation if a number of placed jobs is given."""
    figures = {"evaluated_refused": "1", "evaluated_gpu_load_variance": "0.500000", "evaluated_reward": "2.5000"}
    evaluated = {"evaluated_placed": placed, **figures} if placed else {}
    return {**dict.fromkeys(COLUMNS, ""), "episode": str(episode), **evaluated}


def test_a_curve_has_the_evaluations_of_a_run_in_order() -> None:
    """Episodes without an evaluation and invalid rows are ignored."""
    rows = [line(1, ""), line(2, "7"), line(3, "many"), line(4, "9")]
    assert curve_of(rows) == (Point(2, 7, 1, 0.5, 2.5), Point(4, 9, 1, 0.5, 2.5))
    assert curve_of([]) == ()


def test_long_curves_are_thinned_out() -> None:
    """They keep the first and the last evaluation, and others at equal distances."""
    episodes = [each.episode for each in curve_of([line(at, "1") for at in range(1, 1001)])]
    assert (len(episodes), episodes[0], episodes[-1]) == (MAX_POINTS, 1, 1000)
    steps = [after - before for before, after in pairwise(episodes)]
    assert set(steps) <= {5, 6}
