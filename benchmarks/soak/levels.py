"""Decision whether a figure levels off: its robust slope after a warm-up, with a confidence interval.

References
----------
P. K. Sen (1968), Estimates of the regression coefficient based on Kendall's tau, Journal of the American Statistical
Association 63(324), doi:10.1080/01621459.1968.10480934: the median of slopes, and its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

WARM_UP = 0.4
"""Share of the samples at the begin that do not count."""

Z95 = 1.96


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of a figure after the warm-up.

    Attributes
    ----------
    first, last
        Median of the first and of the last quarter of the samples that count.
    growth, least_growth
        Growth over these samples by the slope, and by the lower end of its interval of 95 %.
    tolerance
        Growth that is accepted.
    """

    first: float
    last: float
    growth: float
    least_growth: float
    tolerance: float

    @property
    def level(self) -> bool:
        """True if the figure levels off: it does not grow, or by less than the tolerance."""
        return self.least_growth <= 0 or self.growth <= self.tolerance


def trend(times_s: Sequence[float], values: Sequence[float], share: float, floor: float) -> Trend:
    """Return the trend of a figure.

    Parameters
    ----------
    share, floor
        Tolerated growth after the warm-up: the larger of a share of the median, and a number.

    Raises
    ------
    ValueError
        If there are fewer than eight samples after the warm-up.
    """
    begin = int(len(values) * WARM_UP)
    at, figures = np.asarray(times_s[begin:], float), np.asarray(values[begin:], float)
    if len(figures) < 8:
        raise ValueError("too few samples")
    slope, least = sen_slope(at, figures)
    seconds, quarter = float(at[-1] - at[0]), len(figures) // 4
    return Trend(
        first=float(np.median(figures[:quarter])),
        last=float(np.median(figures[-quarter:])),
        growth=slope * seconds,
        least_growth=least * seconds,
        tolerance=max(share * float(np.median(figures)), floor),
    )


def sen_slope(at: ArrayLike, figures: ArrayLike) -> tuple[float, float]:
    """Return the median of the slopes between all pairs, and the lower end of its interval of 95 %."""
    times, values = np.asarray(at, float), np.asarray(figures, float)
    count = len(values)
    left, right = np.triu_indices(count, 1)
    slopes = np.sort((values[right] - values[left]) / (times[right] - times[left]))
    ties = np.unique(values, return_counts=True)[1]
    variance = (count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    lowest = int((len(slopes) - Z95 * sqrt(max(variance, 0.0))) / 2)
    return float(np.median(slopes)), float(slopes[max(lowest, 0)])
