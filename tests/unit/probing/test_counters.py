from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.probing.rounds import NS_PER_S, Counters, rates, speed_mbps

LONGEST_NS = 30 * NS_PER_S


def test_what_passed_is_reported_in_megabits_a_second() -> None:
    """1,250,000 bytes in 10 seconds are 1 Mbit/s, each way for itself."""
    found = rates(Counters(5, 100, 7), Counters(5 + 10 * NS_PER_S, 100 + 1_250_000, 7 + 12_500_000), LONGEST_NS)
    assert found is not None
    assert (found.in_mbps, found.out_mbps) == pytest.approx((1, 10))


@pytest.mark.parametrize("elapsed_ns", [0, -1, LONGEST_NS + 1])
def test_readings_that_are_no_time_or_too_long_apart_say_nothing(elapsed_ns: int) -> None:
    """Nothing is divided by no time, and what passed in the last hour says little of now."""
    assert rates(Counters(50, 0, 0), Counters(50 + elapsed_ns, 1000, 1000), LONGEST_NS) is None


def test_a_reset_says_nothing_of_either_direction() -> None:
    """The counter that did not fall may have started again as well, and have come further than it was."""
    assert rates(Counters(0, 5_000_000, 10), Counters(NS_PER_S, 0, 90_000), LONGEST_NS) is None
    assert rates(Counters(0, 10, 5_000_000), Counters(NS_PER_S, 90_000, 0), LONGEST_NS) is None


@given(
    st.lists(
        st.tuples(st.integers(1, LONGEST_NS), st.integers(0, 2**33), st.integers(0, 2**33)), min_size=2, max_size=20
    ),
    st.sampled_from([2**32, 2**64]),
    st.sets(st.integers(0, 19)),
)
def test_no_rate_is_more_than_what_passed(steps: list[tuple[int, int, int]], wraps_at: int, resets: set[int]) -> None:
    """Whatever counters do, a rate is what passed or less; and exact while they do not start again."""
    at_ns = received = transmitted = 0
    before = Counters(0, 0, 0)
    for number, (elapsed_ns, more_in, more_out) in enumerate(steps):
        at_ns += elapsed_ns
        if number in resets:
            received = transmitted = 0
        received, transmitted = received + more_in, transmitted + more_out
        now = Counters(at_ns, received % wraps_at, transmitted % wraps_at)
        found = rates(before, now, LONGEST_NS)
        true = (more_in * 8000 / elapsed_ns, more_out * 8000 / elapsed_ns)
        if found is not None:
            assert 0 <= found.in_mbps <= true[0] * (1 + 1e-9)
            assert 0 <= found.out_mbps <= true[1] * (1 + 1e-9)
        if number not in resets and max(received, transmitted) < wraps_at:
            assert found is not None
            assert (found.in_mbps, found.out_mbps) == pytest.approx(true)
        before = now


@pytest.mark.parametrize(
    ("said", "mbps"),
    [
        (1.25e9, 10_000),
        (125_000.0, 1),
        (None, None),
        (0.0, None),
        (-125_000.0, None),
        ((2**32 - 1) * 125_000.0, None),
        (math.nan, None),
        (math.inf, None),
        (124_999.0, None),
    ],
)
def test_a_speed_that_a_driver_does_not_know_is_unknown(said: float | None, mbps: int | None) -> None:
    """Missing, 0, -1 by whatever name, and what is not a number; 10 Gbit/s are 1.25e9 bytes a second."""
    assert speed_mbps(said) == mbps
