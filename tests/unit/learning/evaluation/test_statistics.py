import math

import numpy as np
import pytest

from seaway.learning.evaluation.statistics import estimate, t_quantile, within


def density(t: np.ndarray, freedom: int) -> np.ndarray:
    """Return the density of Student's t as its definition has it."""
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    values: np.ndarray = scale * (1 + t**2 / freedom) ** (-(freedom + 1) / 2)
    return values


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 29, 60])
def test_the_interval_holds_as_much_as_it_says(freedom: int) -> None:
    """Between -t and t lies 95 % of the area under Student's density, for odd and even degrees of freedom."""
    t = np.linspace(0, t_quantile(freedom), 200_001)
    assert 2 * np.trapezoid(density(t, freedom), t) == pytest.approx(0.95, abs=1e-6)


def test_quantiles_are_those_of_the_tables() -> None:
    """Printed tables of t for 95 % have 12.706 for 1 degree of freedom, 2.776 for 4 and 2.045 for 29."""
    assert [round(t_quantile(freedom), 3) for freedom in (1, 4, 29)] == [12.706, 2.776, 2.045]


def test_nothing_lies_within_no_width() -> None:
    """The probability to be nearer to 0 than 0 is 0."""
    assert within(0.0, 3) == within(0.0, 4) == 0.0


def test_an_estimate_is_mean_deviation_and_interval() -> None:
    """Of 1, 2, 3: mean 2, deviation 1, and 4.303 / sqrt(3) to each side."""
    found = estimate([1.0, 2.0, 3.0])
    assert found is not None
    assert (found.mean, found.std, found.samples) == (2.0, 1.0, 3)
    assert found.ci95 == pytest.approx(4.302653 / math.sqrt(3))


def test_a_single_sample_has_no_interval() -> None:
    """One sample says nothing of how far it may be off; none says nothing at all."""
    found = estimate([5.0])
    assert found is not None
    assert (found.mean, found.std, found.ci95) == (5.0, None, None)
    assert estimate([]) is None
