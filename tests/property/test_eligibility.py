"""The eligibility of a link for a job's bounds does not flap, and follows real changes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.network import PPM
from seaway.probing.smoothing import NS_PER_S, Hysteresis, Published, Smoother, Smoothing

MS = 1_000_000
EVERY_NS = 10 * NS_PER_S
BAND = Hysteresis()
FOLLOWED = 10
"""Rounds after which a step is followed up to the band and a tenth of the step: 2 ** (-10 / 3) is left of it."""


def judged(rounds: list[tuple[int, int]], how: Smoothing = Smoothing()) -> list[tuple[int, int]]:  # noqa: B008  # frozen
    """Return the latency and loss for decisions after each round of latency and answers to 5 probes."""
    smoother, published, seen = Smoother(how), Published(BAND, 2), []
    for at, (latency_ns, received) in enumerate(rounds):
        smoother.add(at * EVERY_NS, 5, received, latency_ns, 0)
        published.follow(smoother.figures, answered=True, steps_ppm=smoother.loss_resolution_ppm)
        assert published.figures is not None
        assert published.figures.latency_ns is not None
        seen.append((published.figures.latency_ns, published.figures.loss_ppm))
    return seen


def flips(values: list[int], bound: int) -> int:
    """Count how often a bound changed between met and not met."""
    met = [value <= bound for value in values]
    return sum(one != other for one, other in pairwise(met))


@given(
    st.integers(1 * MS, 500 * MS),
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=150),
    st.sampled_from([None, 0.5, 0.9]),
)
def test_noise_within_half_the_band_flips_eligibility_at_most_once(
    bound: int, noise: list[int], share: float | None
) -> None:
    """Latency that varies around a bound by up to a twentieth of it flips eligibility once at most."""
    half = max(BAND.least_ns, int(0.94 * bound * BAND.share)) // 2  # the band at the lowest value
    rounds = [(bound + each * half // 1000, 5) for each in noise]
    assert flips([latency for latency, _ in judged(rounds, Smoothing(share=share))], bound) <= 1


@given(
    st.lists(st.booleans(), min_size=30, max_size=200),
    st.lists(st.integers(0, 3), min_size=30, max_size=30),
    st.integers(0, PPM),
)
def test_single_probes_that_are_lost_flip_no_bound_on_loss(lost: list[bool], always: list[int], bound: int) -> None:
    """Whatever the other losses of every window, a loss that varies by one probe flips eligibility once at most."""
    window = len(always)
    retained: list[bool] = []
    for each in lost:  # never two in one window
        retained.append(each and not any(retained[-window + 1 :]))
    rounds = [(MS, 5 - always[at % window] - one) for at, one in enumerate(retained)]
    seen = judged([(MS, 5 - each) for each in always] + rounds)[window:]
    assert flips([loss for _, loss in seen], bound) <= 1


@given(st.integers(1 * MS, 200 * MS), st.integers(1 * MS, 200 * MS))
def test_a_step_is_followed_within_ten_rounds(before: int, after: int) -> None:
    """Ten rounds after a step, decisions differ from it by no more than the band and a tenth of the step."""
    seen = judged([(before, 5)] * 20 + [(after, 5)] * FOLLOWED)
    off = abs(seen[-1][0] - after)
    assert off <= max(BAND.least_ns, BAND.share * max(before, after)) * 1.1 + abs(after - before) / 10


@given(st.integers(0, 4))
def test_loss_is_followed_within_a_window(lost: int) -> None:
    """A constant loss is known to one probe after as many rounds as the window has, and dropped after as many."""
    seen = judged([(MS, 5)] * 40 + [(MS, 5 - lost)] * 30 + [(MS, 5)] * 30)
    exact = PPM * lost // 5
    assert abs(seen[69][1] - exact) <= max(PPM // 150, BAND.share * exact)
    assert seen[99][1] <= PPM // 150
