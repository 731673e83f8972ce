"""Exponential back-off."""

from __future__ import annotations

from random import Random

MAX_DOUBLINGS = 30


def backoff(failures: int, first: float, longest: float, random: Random | None = None) -> float:
    """Return the delay before the next try, in the unit of `first` and `longest`.

    Parameters
    ----------
    failures
        Number of failures in a row, from 1.
    first, longest
        Delay after the first failure, and maximum delay. The delay doubles with each failure.
    random
        Source of jitter of up to half of the delay, so that clients do not retry together; None for no jitter.
    """
    delay = min(first * 2.0 ** min(failures - 1, MAX_DOUBLINGS), longest)
    return delay if random is None else delay * random.uniform(0.5, 1)
