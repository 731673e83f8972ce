"""The unbounded knapsack: the most valuable way to fill one device."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.state import Float64, Int64


@compiled
def fill_values(sizes: Int64, values: Float64, capacity: int) -> tuple[Float64, Int64]:
    """Work out the best filling of every capacity up to `capacity`, any size any number of times.

    Parameters
    ----------
    sizes
        Positive sizes, shape (I,).
    values
        What one of each is worth, at least 0, shape (I,).

    Returns
    -------
    tuple of arrays
        The worth of the best filling, shape (capacity + 1,), and the size that was put in last,
        -1 where the capacity is no better used than one unit less of it.
    """
    worth = np.zeros(capacity + 1)
    last = np.full(capacity + 1, -1, np.int64)
    for room in range(1, capacity + 1):
        worth[room] = worth[room - 1]
        for i in range(sizes.shape[0]):
            if sizes[i] <= room and worth[room - sizes[i]] + values[i] > worth[room] + 1e-12:
                worth[room] = worth[room - sizes[i]] + values[i]
                last[room] = i
    return worth, last


@compiled
def filling(sizes: Int64, last: Int64, capacity: int) -> Int64:
    """Read the best filling of `capacity` from `fill_values`: how many of each size, shape (I,)."""
    counts = np.zeros(sizes.shape[0], np.int64)
    room = capacity
    while room > 0:
        if last[room] < 0:
            room -= 1
        else:
            counts[last[room]] += 1
            room -= sizes[last[room]]
    return counts
