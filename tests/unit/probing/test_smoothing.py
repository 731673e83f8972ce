from __future__ import annotations

from random import Random

import pytest

from seaway.probing.smoothing import NS_PER_S, Smoother, Smoothing, ewma, quantile

EVERY_S = 10


def fed(how: Smoothing, *latencies_ns: int | None, sent: int = 5) -> Smoother:
    """Make a smoother that observed rounds ten seconds apart, each answered wholly or not at all."""
    made = Smoother(how)
    for at, latency_ns in enumerate(latencies_ns):
        received = 0 if latency_ns is None else sent
        made.add(at * EVERY_S * NS_PER_S, sent, received, latency_ns, (latency_ns or 0) // 10)
    return made


def test_a_value_counts_half_after_its_half_life() -> None:
    """After one half-life the average stands half way between before and now, after two a quarter is left."""
    assert ewma(100, 200, 30, 30) == 150
    assert ewma(100, 200, 60, 30) == 175


def test_time_that_passed_without_rounds_passes_for_the_average_too() -> None:
    """Three steps of ten seconds towards a value lead as far as one of thirty."""
    by_steps = 100.0
    for _ in range(3):
        by_steps = ewma(by_steps, 200, 10, 30)
    assert by_steps == pytest.approx(ewma(100, 200, 30, 30))


def test_without_a_half_life_only_the_latest_counts() -> None:
    """A half-life of 0 forgets at once, also between two rounds of the same moment."""
    assert ewma(100, 200, 0, 0) == 200


def test_a_clock_that_was_set_back_does_not_make_the_past_grow() -> None:
    """Time that went back counts as none: the average stays."""
    assert ewma(100, 200, -5, 30) == 100


@pytest.mark.parametrize(("share", "value"), [(0, 1), (0.25, 2), (0.5, 3), (0.9, 5), (1, 5)])
def test_a_quantile_is_between_the_values_around_it(share: float, value: int) -> None:
    """Definition 7 of Hyndman and Fan, whole nanoseconds: 0.9 of 1..5 is 4.6."""
    assert quantile([3, 1, 5, 2, 4], share) == value


def test_a_quantile_agrees_with_numpy() -> None:
    """For values and shares of any kind it is what `numpy.quantile` says, rounded."""
    import numpy as np

    random = Random(5)
    for _ in range(200):
        values = [random.randrange(10**9) for _ in range(random.randrange(1, 40))]
        share = random.random()
        assert abs(quantile(values, share) - float(np.quantile(values, share))) <= 0.51


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1], -0.1), ([1], 1.1)])
def test_there_is_no_quantile_of_nothing(values: list[int], share: float) -> None:
    """Without values, or for a share that is none, it is refused."""
    with pytest.raises(ValueError, match="no quantile"):
        quantile(values, share)


def test_loss_counts_every_probe_of_the_window_alike() -> None:
    """One of ten rounds lost is a tenth, and it is forgotten when it leaves the window."""
    how = Smoothing(window=10)
    assert fed(how, None, *[1000] * 9).figures.loss_ppm == 100_000
    assert fed(how, None, *[1000] * 10).figures.loss_ppm == 0


def test_loss_weighs_rounds_by_cause_they_sent() -> None:
    """Two of two lost and none of eighteen are a tenth, not a half."""
    made = Smoother(Smoothing())
    made.add(0, 2, 0, None, 0)
    made.add(1, 18, 18, 1000, 0)
    assert made.figures.loss_ppm == 100_000
    assert made.loss_resolution_ppm == 50_000


def test_rounds_without_an_answer_leave_the_latency() -> None:
    """Nothing is known of the latency of what was lost: the average of what was answered stands."""
    assert fed(Smoothing(), 1000, 1000, None).figures.latency_ns == 1000


def test_before_the_first_answer_there_is_no_latency() -> None:
    """Only the loss is known then."""
    figures = fed(Smoothing(), None, None).figures
    assert (figures.latency_ns, figures.jitter_ns, figures.loss_ppm) == (None, 0, 1_000_000)


def test_a_step_is_followed_to_an_eighth_within_nine_rounds() -> None:
    """With the half-life of three rounds that is the default, an eighth of a step is left after nine."""
    figures = fed(Smoothing(), *[10_000_000] * 50, *[30_000_000] * 9).figures
    assert figures.latency_ns == pytest.approx(30_000_000 - 20_000_000 / 8, rel=1e-6)
    assert figures.jitter_ns == pytest.approx(3_000_000 - 2_000_000 / 8, rel=1e-6)


def test_a_quantile_is_of_the_answered_rounds_in_the_window() -> None:
    """Nine tenths of the last ten rounds, jitter alike."""
    figures = fed(Smoothing(window=10, share=0.9), *[10**9] * 5, *[1000] * 9, None, 2000).figures
    assert (figures.latency_ns, figures.jitter_ns) == (1100, 110)


def test_after_an_outage_latency_begins_again_and_loss_does_not() -> None:
    """The way may be another one; what was lost was lost."""
    for how in (Smoothing(), Smoothing(share=0.5)):
        made = fed(how, 10**9, 10**9, None)
        made.reset()
        made.add(10**12, 5, 5, 1000, 10)
        assert (made.figures.latency_ns, made.figures.jitter_ns) == (1000, 10)
        assert made.figures.loss_ppm == 250_000


@pytest.mark.parametrize(("sent", "received"), [(0, 0), (5, 6), (5, -1)])
def test_a_round_that_cannot_be_is_refused(sent: int, received: int) -> None:
    """Something was sent, and no more answered than sent."""
    with pytest.raises(ValueError, match="probes"):
        Smoother(Smoothing()).add(0, sent, received, 1, 0)
