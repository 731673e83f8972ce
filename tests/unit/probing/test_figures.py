"""Anything that a round says of a link."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.probing.rounds import Figures, Round, figures

rtts = st.lists(st.integers(0, 3_600_000_000_000), max_size=20).map(tuple)


def test_figures_by_hand() -> None:
    """Of 10, 20 and 60 µs the mean is 30; 60 is 30 away from it and 10 is 20; two of five were lost."""
    assert figures(Round(5, (10_000, 20_000, 60_000))) == Figures(30_000, 30_000, 400_000)


def test_the_jitter_looks_both_ways() -> None:
    """Of 10, 50 and 60 µs the mean is 40, and the smallest is further away than the largest."""
    assert figures(Round(3, (10_000, 50_000, 60_000))) == Figures(40_000, 30_000, 0)


def test_without_answers_all_is_lost_and_nothing_else_is_known() -> None:
    """A link that does not answer has no latency, and loses a million of a million."""
    assert figures(Round(5, ())) == Figures(None, 0, 1_000_000)


def test_discarded_answers_change_nothing() -> None:
    """Anything that was discarded is counted neither as sent nor as answered."""
    assert figures(Round(4, (5, 5), discarded=1)) == figures(Round(4, (5, 5)))


@given(rtts, st.integers(0, 20))
def test_figures_are_the_formulas(answered: tuple[int, ...], lost: int) -> None:
    """Mean, max(MaxRTT − AvgRTT, AvgRTT − MinRTT) and (sent − received) / sent, worked out without rounding."""
    sent = len(answered) + lost
    if not sent:
        return
    said = figures(Round(sent, answered))
    assert said.loss_ppm == int(Fraction(lost * 1_000_000, sent))
    if not answered:
        assert said.latency_ns is None
        return
    mean = Fraction(sum(answered), len(answered))
    assert said.latency_ns is not None
    assert abs(said.latency_ns - mean) <= 1
    jitter = max(max(answered) - mean, mean - min(answered))
    assert abs(said.jitter_ns - jitter) <= 1


@pytest.mark.parametrize("wrong", [Round(0, ()), Round(1, (5, 5))])
def test_a_round_that_cannot_be_is_refused(wrong: Round) -> None:
    """Nothing sent says nothing of a link, and there are no more answers than probes."""
    with pytest.raises(ValueError, match="answers to"):
        figures(wrong)
