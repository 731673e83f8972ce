"""The links are worst by a figure."""

from __future__ import annotations

import pytest

from seaway.application.network.views import LinkState, LinkView
from seaway.domain.network import PPM, Link
from seaway.wire.links import LinkFigure, figure_of, worst_first

FAST = LinkView("a", "b", Link("a", "b", 1_000, 10, 0, 10_000), left_mbps=9_000, usual_latency_ns=1_000)
SLOW = LinkView("a", "c", Link("a", "c", 9_000, 90, 500, 1_000), left_mbps=100, usual_latency_ns=3_000)
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
