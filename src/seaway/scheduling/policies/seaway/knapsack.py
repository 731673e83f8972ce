"""Knapsack problems: the best filling of a device, and its earnings from jobs that arrive one by one."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Float64, Int64
from seaway.scheduling.kernels.compile import compiled


@compiled
def fill_values(sizes: Int64, values: Float64, capacity: int) -> tuple[Float64, Int64]:
    """Compute the best filling of each capacity up to `capacity`, with any number of items of each size.

    Parameters
    ----------
    sizes
        Positive sizes, shape (I,).
    values
        Value of an item of each size, at least 0, shape (I,).

    Returns
    -------
    tuple of arrays
        Value of the best filling, shape (capacity + 1,), and the size added last, -1 if the last unit of the capacity
        is not used.
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
    """Return the number of items of each size in the best filling from `fill_values`, shape (I,)."""
    counts = np.zeros(sizes.shape[0], np.int64)
    room = capacity
    while room > 0:
        if last[room] < 0:
            room -= 1
        else:
            counts[last[room]] += 1
            room -= sizes[last[room]]
    return counts


@compiled
def online_knapsack_values(
    asked: Int64, prices: Float64, shares: Float64, offers: int, rows: int, columns: int
) -> Float64:
    """Compute the earnings of a device from jobs that arrive one by one and can be accepted or rejected.

    Parameters
    ----------
    asked
        Units of the first and of the second resource that each kind of job requests, shape (I, 2).
    prices
        Price of a job of each kind, shape (I,).
    shares
        Frequency of each kind, shape (I,); sums to 1.
    offers
        Number of arriving jobs.
    rows, columns
        Units of an idle device, plus 1.

    Returns
    -------
    Float64
        Expected earnings by free units, ``first * columns + second``, shape (rows * columns,).
    """
    worth = np.zeros(rows * columns)
    later = np.zeros(rows * columns)
    for _ in range(offers):
        for here in range(rows * columns):
            later[here] = worth[here]
        for i in range(asked.shape[0]):
            taken = asked[i, 0] * columns + asked[i, 1]
            for first in range(asked[i, 0], rows):
                for second in range(asked[i, 1], columns):
                    here = first * columns + second
                    gain = prices[i] + worth[here - taken] - worth[here]
                    later[here] += shares[i] * max(gain, 0.0)
        worth, later = later, worth
    return worth
