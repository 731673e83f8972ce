"""Means with confidence intervals, and learning curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from seaway.learning.runs.table import read_rows
from seaway.simulation.outcome import Float64

CONFIDENCE = 0.95

TOLERANCE = 1e-12
"""Relative tolerance of a quantile."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of a mean from samples.

    Attributes
    ----------
    mean
        Mean of the samples.
    std
        Sample standard deviation (n - 1); None with a single sample.
    ci95
        Half the width of the 95 % confidence interval of the mean, by Student's t with n - 1 degrees of freedom;
        None with a single sample.
    samples
        Number of samples.
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
    """Return the t with P(abs(T) < t) = `confidence` for Student's distribution.

    Parameters
    ----------
    freedom
        Degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while within(high, freedom) < confidence:
        low, high = high, 2 * high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2


def within(t: float, freedom: int) -> float:
    """Return P(abs(T) < `t`) for an integer number of degrees of freedom.

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


SMOOTHED = 20
"""Maximum number of episodes in a moving mean, which has a tenth of all episodes if that is less."""


@dataclass(frozen=True, slots=True)
class Band:
    """Mean, minimum and maximum of a metric over several runs by episode, each of shape (E,)."""

    mean: Float64
    minimum: Float64
    maximum: Float64


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Learning curve of some runs.

    Attributes
    ----------
    episode
        Numbers of the episodes, shape (E,), up to the longest run. A shorter run counts for its own episodes.
    reward, placed
        Smoothed metrics.
    """

    episode: Float64
    reward: Band
    placed: Band


def learning_curve(files: Sequence[Path]) -> LearningCurve | None:
    """Return the learning curve of the runs of some files; None without episodes."""
    runs = [rows for file in files if (rows := read_rows(file))]
    if not runs:
        return None
    episode = np.arange(1, max(map(len, runs)) + 1, dtype=np.float64)
    bands = [_band([[float(row[name]) for row in rows] for rows in runs]) for name in ("reward", "placed")]
    return LearningCurve(episode, *bands)


def smoothed(values: Float64) -> Float64:
    """Return the moving mean over up to `SMOOTHED` values."""
    width = max(1, min(SMOOTHED, len(values) // 10))
    sums = np.concatenate(([0.0], np.cumsum(values)))
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(ends - width, 0)
    means: Float64 = (sums[ends] - sums[begins]) / (ends - begins)
    return means


def _band(runs: Sequence[Sequence[float]]) -> Band:
    table = np.full((len(runs), max(map(len, runs))), np.nan)
    for at, values in enumerate(runs):
        table[at, : len(values)] = smoothed(np.array(values))
    return Band(np.nanmean(table, axis=0), np.nanmin(table, axis=0), np.nanmax(table, axis=0))
