"""The way how policies and their comparisons are summed up."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest

from seaway.web.pages.policies.comparison import Outcome, bars, replay_bars, verdict_of
from seaway.web.pages.policies.policies import MIN_GROUPS, MeanWait, Spread, duels, figure_rows, placed_share
from seaway.web.words import Words
from seaway.wire.queues import ShadowOut
from seaway.wire.whatif import SumsOut, TraceSideOut


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
        "tries": 20,
        "live_wait_ms": 12_000,
        "shadow_wait_ms": 4_000,
    }
    return ShadowOut(**{**fields, **given})


def test_comparisons_add_up_by_queue_and_model() -> None:
    """Counts add up and fragmentation is the mean; another model, or another queue, starts over."""
    rows = [row(), row(live_fragmentation_milli=4000), row(shadow="pilot@2"), row(queue="r")]
    first, *others = duels(rows)
    figures = [20, 12, 16, 10, 18, 2, 3.0, 1.0, 2, MeanWait(12, 24_000), MeanWait(16, 8_000)]
    assert list(astuple(first))[3:-2] == [astuple(each) if isinstance(each, MeanWait) else each for each in figures]
    assert (first.queue, first.live, first.shadow) == ("q", "bestfit", "pilot@1")
    assert (first.fragmentation.mean, first.placed.mean, first.placed.half) == (-2.0, 10.0, None)
    assert (first.live_wait.s, first.shadow_wait.s) == (2.0, 0.5)
    assert [(each.queue, each.shadow) for each in others] == [("q", "pilot@2"), ("r", "pilot@1")]


def test_comparisons_of_earlier_versions_have_no_waits() -> None:
    """Their tries are unknown, so they would make waits look short; a policy that placed nothing has no wait."""
    (old,) = duels([row(tries=0, live_wait_ms=0, shadow_wait_ms=0), row(live_placed=0, live_wait_ms=0)])
    assert (old.live_wait.s, old.shadow_wait.s) == (None, 0.5)


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


def test_intervals_need_enough_groups_and_follow_their_spread() -> None:
    """Equal differences have an interval of length 0; unequal ones that of their standard error."""
    same, mixed = Spread(), Spread()
    for at in range(MIN_GROUPS - 1):
        same.add(0.5)
        mixed.add(at % 2)
    assert same.half is None
    same.add(0.5)
    mixed.add(1)
    assert [same.mean, same.half] == pytest.approx([0.5, 0.0])
    assert [mixed.mean, mixed.half] == pytest.approx([0.5, 1.96 * (0.25 * 10 / 9 / 10) ** 0.5])


def test_the_best_policy_of_the_past_starts_most_jobs_then_soonest() -> None:
    """It is named only if it would have been better than the present policies."""

    def outcome(name: str, placed: int, wait_s: float | None) -> Outcome:
        side = dict.fromkeys(TraceSideOut.model_fields) | {"placed": placed, "queue_wait_mean_s": wait_s}
        return Outcome(name, None, replay=TraceSideOut.model_construct(**side))

    now, faster, fewer = outcome("now", 10, 600), outcome("fgd", 10, 60), outcome("bestfit", 9, 1)
    failed = Outcome("x", None, why="no")
    assert "fgd would have been best: a mean wait of 1 min" in verdict_of([now, fewer, faster, failed], Words())
    assert verdict_of([now, fewer], Words()).startswith("None of these policies would have been better")
    assert verdict_of([now], Words()) == verdict_of([now, outcome("y", 0, None)], Words()) == ""
    shown = list(replay_bars([now, faster, failed]))
    assert [(each["bar"], each["best"]) for each in shown] == [(100, False), (10, True), (0, False)]
