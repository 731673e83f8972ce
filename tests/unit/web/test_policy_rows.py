"""The way how policies and their comparisons are summed up."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.web.pages.policies.policies import Duel, Outcome, bars, duels, figure_rows, placed_share
from seaway.web.words import Words
from seaway.wire.queues import ShadowOut
from seaway.wire.whatif import SumsOut


def row(**given: Any) -> ShadowOut:  # noqa: ANN401  # fields of a comparison
    """Make a comparison of ten jobs."""
    fields = {
        "id": 1,
        "at": "2026-11-21T10:00:00.000000Z",
        "queue": "q",
        "live": "bestfit",
        "shadow": "pilot@1",
        "jobs": 10,
        "live_placed": 6,
        "shadow_placed": 8,
        "same_node": 5,
        "live_fragmentation_milli": 2000,
        "shadow_fragmentation_milli": 1000,
        "answered": 9,
        "fallbacks": 1,
    }
    return ShadowOut(**{**fields, **given})


def test_comparisons_add_up_by_queue_and_model() -> None:
    """Counts add up and fragmentation is the mean; another model, or another queue, starts over."""
    rows = [row(), row(live_fragmentation_milli=4000), row(shadow="pilot@2"), row(queue="r")]
    first, *others = duels(rows)
    assert first == Duel("q", "bestfit", "pilot@1", 20, 12, 16, 10, 18, 2, 3.0, 1.0, 2)
    assert [(each.queue, each.shadow) for each in others] == [("q", "pilot@2"), ("r", "pilot@1")]


@pytest.mark.parametrize(
    ("figures", "share"),
    [
        ({"kept_apart_jobs": 10.0, "kept_apart_placed": 8.0, "trained_on_jobs": 1.0, "trained_on_placed": 1.0}, 80.0),
        ({"trained_on_jobs": 4.0, "trained_on_placed": 1.0}, 25.0),
        ({"kept_apart_jobs": 0.0, "kept_apart_placed": 0.0}, None),
        ({}, None),
    ],
)
def test_what_a_policy_placed_apart_from_training_counts_first(figures: dict[str, float], share: float | None) -> None:
    """A share is informed of instances kept apart where there is one, else of those that were learned on, else none."""
    assert placed_share(figures) == share


def test_figures_of_a_file_have_words_where_they_are_known() -> None:
    """Anything that a file calls otherwise is reported as it is present."""
    assert list(figure_rows({"kept_apart_reward": 2.5, "some_thing": 1.0}, Words())) == [
        ("Reward", 2.5),
        ("some thing", 1.0),
    ]


def test_the_best_of_an_answer_stands_out_and_what_failed_has_no_bar() -> None:
    """Bars are as long as figures are to the largest; most placed and least fragmentation are the best."""

    def sums(placed: int, fragmentation: float) -> SumsOut:
        return SumsOut(placed=placed, waiting=0, allocation_percent=50.0, fragmentation=fragmentation)

    shown = list(bars([Outcome("a", sums(10, 2.0)), Outcome("b", sums(5, 1.0)), Outcome("c", None, why="no")]))
    assert [each["placed_bar"] for each in shown] == [100, 50, 0]
    assert [each["placed_best"] for each in shown] == [True, False, False]
    assert [each["fragmentation_bar"] for each in shown] == [100, 50, 0]
    assert [each["fragmentation_best"] for each in shown] == [False, True, False]
