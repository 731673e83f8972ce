"""The links are worst by a figure."""

from __future__ import annotations

import pytest

from seaway.application.network.views import LinkState, LinkView, Usual
from seaway.domain.network import PPM, Link
from seaway.wire.links import LinkFigure, figure_of, worst_first

MS = 1_000_000
FAST = LinkView("a", "b", Link("a", "b", 1_000, 10, 0, 10_000), left_mbps=9_000, usual=Usual(1_000))
SLOW = LinkView("a", "c", Link("a", "c", 9_000, 90, 500, 1_000), left_mbps=100, usual=Usual(3_000))
DEAD = LinkView("a", "d", Link("a", "d", None, 0, PPM, 5_000), left_mbps=5_000)
NEVER = LinkView("a", "e", None, state=LinkState.UNKNOWN)


@pytest.mark.parametrize("figure", LinkFigure)
def test_what_answers_nothing_is_worst_and_what_no_one_knows_comes_last(figure: LinkFigure) -> None:
    """Whatever the figure: dead, bad, good, unknown."""
    links = [NEVER, FAST, DEAD, SLOW]
    assert sorted(links, key=lambda each: worst_first(each, figure)) == [DEAD, SLOW, FAST, NEVER]


def test_a_link_that_answers_nothing_has_no_times_and_loses_all() -> None:
    """Its jitter is not 0 but none."""
    assert [figure_of(DEAD, each) for each in LinkFigure] == [None, None, PPM, 5_000, 5_000, None]
    assert [figure_of(each, LinkFigure.CHANGE) for each in (FAST, SLOW)] == [100, 300]
    assert [figure_of(NEVER, each) for each in LinkFigure] == [None] * 6


@pytest.mark.parametrize(
    ("link", "traffic", "changes"),
    [
        (Link("a", "b", MS, MS // 10, 0, 1_000), 0, {"latency": 100, "jitter": 100, "loss": 100, "traffic": 100}),
        (Link("a", "b", 2 * MS, MS // 2, 10_000, 1_000), 500,
         {"latency": 200, "jitter": 300, "loss": 1100, "traffic": 200}),
        (Link("a", "b", MS, MS // 10, 0), None, {"latency": 100, "jitter": 100, "loss": 100}),
        (Link("a", "b", None, 0, PPM, 1_000), 0, {}),
    ],
)  # fmt: skip
def test_each_figure_of_a_link_is_compared_with_the_usual_one(
    link: Link, traffic: int | None, changes: dict[str, int]
) -> None:
    """The one that is furthest above counts. Unknown figures and links without an answer are not compared."""
    view = LinkView("a", "b", link, traffic_mbps=traffic, usual=Usual(MS, MS // 10, 0, 0))
    assert view.changes == changes
    most = max(changes.values(), default=0)
    assert view.change_percent == (most or None)
    assert view.changed == next((name for name in changes if changes[name] == most > 100), None)
