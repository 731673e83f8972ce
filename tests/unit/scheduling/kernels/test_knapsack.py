"""Fillings of devices against slow exhaustive searches."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.scheduling.policies.seaway.knapsack import fill_values, filling, online_knapsack_values

PIECES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), max_size=4)


def best_filling(pieces: list[tuple[int, int]], room: int) -> int:
    """Return the value of the best filling by a search over every first piece."""
    return max((value + best_filling(pieces, room - size) for size, value in pieces if size <= room), default=0)


@given(pieces=PIECES, capacity=st.integers(0, 12))
def test_best_filling_is_optimal(pieces: list[tuple[int, int]], capacity: int) -> None:
    """For every capacity no choice of pieces has more value, and the returned filling has this value."""
    sizes, values = np.array([size for size, _ in pieces], np.int64), np.array([v for _, v in pieces], np.float64)
    worth, last = fill_values(sizes, values, capacity)
    assert list(worth) == [best_filling(pieces, room) for room in range(capacity + 1)]
    counts = filling(sizes, last, capacity)
    assert counts @ sizes <= capacity
    assert counts @ values == worth[-1]


def expected_earnings(
    asked: list[tuple[int, int]], prices: list[float], shares: list[float], offers: int, free: tuple[int, int]
) -> float:
    """Return the expected earnings from jobs in sequence, with the optimal decision for each."""

    @cache
    def earned(left: int, first: int, second: int) -> float:
        if not left:
            return 0.0
        total = (1 - sum(shares)) * earned(left - 1, first, second)
        for (one, other), price, share in zip(asked, prices, shares, strict=True):
            best = earned(left - 1, first, second)
            if one <= first and other <= second:
                best = max(best, price + earned(left - 1, first - one, second - other))
            total += share * best
        return total

    return earned(offers, *free)


JOBS = st.lists(
    st.tuples(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.floats(0, 5), st.integers(1, 5)),
    min_size=1,
    max_size=3,
)


@given(jobs=JOBS, offers=st.integers(0, 4), rows=st.integers(1, 5), columns=st.integers(1, 4))
def test_value_is_expected_earnings_of_next_jobs(
    jobs: list[tuple[tuple[int, int], float, int]], offers: int, rows: int, columns: int
) -> None:
    """The value of free capacity assumes the optimal decision for each next job."""
    asked, prices = [job[0] for job in jobs], [job[1] for job in jobs]
    total = sum(job[2] for job in jobs)
    shares = [job[2] / total for job in jobs]
    worth = online_knapsack_values(np.array(asked, np.int64), np.array(prices), np.array(shares), offers, rows, columns)
    for first in range(rows):
        for second in range(columns):
            expected = expected_earnings(asked, prices, shares, offers, (first, second))
            assert worth[first * columns + second] == pytest.approx(expected, abs=1e-9)
