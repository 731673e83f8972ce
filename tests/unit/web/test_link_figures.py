"""The way how figures of links are written and coloured."""

from __future__ import annotations

import pytest

from seaway.terminal import words
from seaway.web.fragment import environment
from seaway.web.link_figures import FIGURES, STEPS, Figure, milliseconds, percent, plain, rate, scale_of

MS = 1_000_000


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.004, "<0.01"), (0.31573, "0.32"), (9.5, "9.5"), (12.34, "12.3"), (20.0, "20"), (1234.5, "1,234")],
)
def test_numbers_have_three_digits_that_count(number: float, text: str) -> None:
    """Zeros behind the point are left out; what is too small to write is not 0."""
    assert plain(number) == text


def test_units_are_those_that_people_read() -> None:
    """Milliseconds, per cent, Mbit/s and from 1,000 on Gbit/s; a dash where nothing is known."""
    assert milliseconds(9_800_000) == "9.8 ms"
    assert percent(1_500) == "0.15 %"
    assert [rate(each) for each in (400, 10_000, None)] == ["400 Mbit/s", "10 Gbit/s", "–"]


def test_links_are_written_in_one_way() -> None:
    """Templates have what pages have, and a terminal says the same units."""
    written = environment().from_string("{{ 9400 | rate }}, {{ 38_254_000 | milliseconds }}").render()
    assert written == f"{rate(9400)}, {milliseconds(38_254_000)}" == "9.4 Gbit/s, 38.3 ms"
    for mbps in (400, 1500, 10_000):
        assert words.rate(mbps) == rate(mbps)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=list(FIGURES))
def test_the_best_has_the_first_colour_and_none_is_beyond_the_last(figure: Figure) -> None:
    """Small times and large bandwidths are good; each colour is reported in the legend."""
    values = [each * figure.per_unit for each in range(1, 101)]
    scale = scale_of(figure, values)
    steps = [scale.step(value) for value in values]
    assert set(steps) <= set(range(STEPS))
    assert steps == sorted(steps, reverse=figure.more_is_better)
    assert [step for step, _ in scale.classes()] == list(range(len(scale.edges) + 1))


def test_figures_that_lie_close_together_are_not_distinguished() -> None:
    """Links of 4.0 to 4.1 ms are all good; nothing is worst because something must be."""
    scale = scale_of(FIGURES["latency"], [4 * MS + each for each in range(0, MS // 10, 1000)])
    assert scale.edges == ()


def test_colours_stay_when_figures_waver() -> None:
    """Edges are round numbers, so that a per cent more changes none."""
    values = [each * MS for each in (1, 2, 5, 11, 23, 47, 95)]
    wavered = [value * 101 // 100 for value in values]
    assert scale_of(FIGURES["latency"], values).edges == scale_of(FIGURES["latency"], wavered).edges


def test_a_link_far_beyond_the_others_has_a_colour_of_its_own() -> None:
    """Of links up to 150 ms and one of 480 ms, only the last one is in the worst class."""
    values = [each * MS for each in (5, 20, 40, 60, 80, 100, 120, 140, 150, 480)]
    scale = scale_of(FIGURES["latency"], values)
    assert [scale.step(each) for each in values].count(STEPS - 1) == 1


def test_any_loss_differs_from_none() -> None:
    """Loss has its own classes: none, then less than a thousandth, and so on."""
    scale = scale_of(FIGURES["loss"], [])
    assert [scale.step(ppm) for ppm in (0, 1, 999, 1_000, 10_000, 1_000_000)] == [0, 1, 1, 2, 3, 4]
    assert scale.classes()[0] == (0, "0 %")
