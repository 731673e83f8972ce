import math

import numpy as np
import pytest

from seaway.learning.evaluation.statistics import estimate, t_quantile, within


def density(t: np.ndarray, freedom: int) -> np.ndarray:
    """Return the density of Student's t-distribution."""
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    values: np.ndarray = scale * (1 + t**2 / freedom) ** (-(freedom + 1) / 2)
    return values


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 29, 60])
def test_quantiles_match_the_integral_of_the_density(freedom: int) -> None:
    """The probability between -t and t is 95 %, for odd and even degrees of freedom."""
    t = np.linspace(0, t_quantile(freedom), 200_001)
    assert 2 * np.trapezoid(density(t, freedom), t) == pytest.approx(0.95, abs=1e-6)


def test_quantiles_equal_printed_tables() -> None:
    """For 95 %, t is 12.706 with 1 degree of freedom, 2.776 with 4 and 2.045 with 29."""
    assert [round(t_quantile(freedom), 3) for freedom in (1, 4, 29)] == [12.706, 2.776, 2.045]


def test_the_probability_at_zero() -> None:
    """The probability of an absolute value below 0 is 0."""
    assert within(0.0, 3) == within(0.0, 4) == 0.0


def test_estimates() -> None:
    """For 1, 2, 3, the mean is 2, the deviation 1, and the interval 4.303 / sqrt(3) on each side."""
    found = estimate([1.0, 2.0, 3.0])
    assert found is not None
    assert (found.mean, found.std, found.samples) == (2.0, 1.0, 3)
    assert found.ci95 == pytest.approx(4.302653 / math.sqrt(3))


def test_a_single_sample_has_no_interval() -> None:
    """A single sample has a mean only, and no sample has no estimate."""
    found = estimate([5.0])
    assert found is not None
    assert (found.mean, found.std, found.ci95) == (5.0, None, None)
    assert estimate([]) is None
