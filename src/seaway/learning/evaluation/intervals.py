"""Means with how far they may be off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, stdev

CONFIDENCE = 0.95

CLOSE = 1e-12
"""Two ends of a search that are this near to each other, for their size, are one."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What some samples say of the mean they were drawn around.

    Attributes
    ----------
    mean
        Of the samples.
    std
        Sample standard deviation (n - 1); None with a single sample.
    ci95
        Half the width of the 95 % confidence interval of the mean, by Student's t with n - 1 degrees of freedom;
        None with a single sample.
    samples
        How many there are.
    """

    mean: float
    std: float | None
    ci95: float | None
    samples: int


def estimate(samples: Sequence[float]) -> Estimate | None:
    """Estimate the mean; None without samples.

    References
    ----------
    Student: The Probable Error of a Mean. Biometrika 6 (1908). DOI 10.1093/biomet/6.1.1
    """
    if not samples:
        return None
    count = len(samples)
    if count == 1:
        return Estimate(samples[0], None, None, 1)
    spread = stdev(samples)
    return Estimate(fmean(samples), spread, t_quantile(count - 1) * spread / math.sqrt(count), count)


@lru_cache
def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the t that abs(T) stays below with the given confidence, T of Student's distribution.

    Parameters
    ----------
    freedom
        Degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while within(high, freedom) < confidence:
        low, high = high, 2 * high
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2


def within(t: float, freedom: int) -> float:
    """Return the probability that abs(T) is below `t`, for whole degrees of freedom.

    References
    ----------
    Abramowitz and Stegun: Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine**2 * k / (k + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
