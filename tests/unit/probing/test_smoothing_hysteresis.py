from __future__ import annotations

from seaway.probing.rounds import Figures
from seaway.probing.smoothing import UNREACHABLE, Hysteresis, Published

FINE = 1
"""A loss as fine as can be."""


def following(*smoothed: Figures, band: Hysteresis | None = None, steps_ppm: int = FINE) -> list[Figures | None]:
    """Return what is published after each of some figures, all answered."""
    made, seen = Published(band or Hysteresis(0.1, 0.1, 100), 2), []
    for each in smoothed:
        made.follow(each, answered=True, steps_ppm=steps_ppm)
        seen.append(made.figures)
    return seen


def latency(ns: int) -> Figures:
    """Make figures of a latency alone."""
    return Figures(ns, 0, 0)


def test_the_first_figures_are_published_as_they_are() -> None:
    """There is nothing to hold on to yet."""
    assert following(latency(7)) == [latency(7)]


def test_a_figure_within_the_band_moves_nothing() -> None:
    """A tenth more or less is not worth a change; the next nanosecond is."""
    assert following(latency(10_000), latency(11_000), latency(9_000)) == [latency(10_000)] * 3
    assert following(latency(10_000), latency(11_001))[-1] == latency(11_001)


def test_small_figures_have_a_band_of_their_own() -> None:
    """A tenth of little is nothing: below a thousand, a hundred counts."""
    assert following(latency(200), latency(300))[-1] == latency(200)
    assert following(latency(200), latency(301))[-1] == latency(301)


def test_each_figure_moves_by_itself() -> None:
    """Jitter that leaves its band takes neither latency nor loss along."""
    assert following(Figures(10_000, 1_000, 0), Figures(10_500, 5_000, 0))[-1] == Figures(10_000, 5_000, 0)


def test_one_probe_more_that_is_lost_moves_no_loss() -> None:
    """As fine as the window counts is as fine as loss can be reported: two more are needed."""
    step = 10_000
    assert following(Figures(1, 0, 0), Figures(1, 0, step), steps_ppm=step)[-1] == Figures(1, 0, 0)
    assert following(Figures(1, 0, 0), Figures(1, 0, 2 * step), steps_ppm=step)[-1] == Figures(1, 0, 2 * step)


def test_a_link_dies_after_so_many_rounds_without_an_answer() -> None:
    """One silent round may be chance, two in a row are not: then everything is lost, and there is no latency."""
    made = Published(Hysteresis(), 2)
    made.follow(latency(10), answered=True, steps_ppm=FINE)
    made.follow(latency(10), answered=False, steps_ppm=FINE)
    assert made.figures == latency(10)
    made.follow(latency(10), answered=False, steps_ppm=FINE)
    assert made.figures == UNREACHABLE


def test_unreachable_rounds_with_answers_between_them_are_loss_and_no_death() -> None:
    """Only what is silent in a row counts."""
    made = Published(Hysteresis(), 2)
    for answered in (True, False, True, False, True, False):
        made.follow(latency(10), answered=answered, steps_ppm=FINE)
        assert made.figures == latency(10)


def test_a_dead_link_lives_again_after_as_many_answered_rounds() -> None:
    """It takes two in a row, and then everything that was measured counts at once."""
    made = Published(Hysteresis(), 2)
    made.follow(Figures(None, 0, 1_000_000), answered=False, steps_ppm=FINE)
    assert made.figures == UNREACHABLE, "one that never answered is dead from the first round on"
    for answered in (True, False, True):
        made.follow(latency(10), answered=answered, steps_ppm=FINE)
        assert made.figures == UNREACHABLE
    assert made.follow(latency(10), answered=True, steps_ppm=FINE)
    assert made.figures == latency(10)


def test_it_tells_when_something_is_published_again() -> None:
    """Anyone who follows has work only then."""
    made = Published(Hysteresis(0.1, 0.1, 100), 2)
    reported = [made.follow(latency(ns), answered=True, steps_ppm=FINE) for ns in (10_000, 10_500, 12_000, 12_000)]
    assert reported == [True, False, True, False]


def test_jitter_has_a_wider_band() -> None:
    """The largest of five probes wavers far more than their mean: by default three tenths move nothing."""
    steady = Figures(10_000_000, 2_000_000, 0)
    assert following(steady, Figures(10_000_000, 2_600_000, 0), band=Hysteresis())[-1] == steady
    assert following(steady, Figures(10_000_000, 2_600_001, 0), band=Hysteresis())[-1] != steady
