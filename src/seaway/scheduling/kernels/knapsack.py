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


@compiled
def fill_cells(asked: Int64, values: Float64, cells: int) -> tuple[Float64, Int64]:
    """Work out the best filling of every pair of capacities, any piece any number of times.

    Parameters
    ----------
    asked
        What each piece takes of the first and of the second capacity, shape (I, 2), not both 0.
    values
        What one of each is worth, at least 0, shape (I,).
    cells
        Capacities go from 0 to `cells` - 1.

    Returns
    -------
    tuple of arrays
        Worth of the best filling of ``first * cells + second``, and the piece that was put in last: -1
        or -2 where one unit less of the first or of the second capacity is as good; shape (cells**2,).
    """
    worth = np.zeros(cells * cells)
    last = np.full(cells * cells, -1, np.int64)
    for first in range(cells):
        for second in range(cells):
            here = first * cells + second
            if first > 0:
                worth[here] = worth[here - cells]
            if second > 0 and worth[here - 1] >= worth[here]:
                worth[here] = worth[here - 1]
                last[here] = -2
            for i in range(asked.shape[0]):
                if asked[i, 0] <= first and asked[i, 1] <= second:
                    value = values[i] + worth[here - asked[i, 0] * cells - asked[i, 1]]
                    if value > worth[here] + 1e-12:
                        worth[here] = value
                        last[here] = i
    return worth, last


@compiled
def filling_of_cells(asked: Int64, last: Int64, cells: int) -> Int64:
    """Read the best filling of the largest capacities from `fill_cells`, shape (I,)."""
    counts = np.zeros(asked.shape[0], np.int64)
    here = cells * cells - 1
    while here > 0:
        i = last[here]
        if i >= 0:
            counts[i] += 1
            here -= asked[i, 0] * cells + asked[i, 1]
        elif i == -2:
            here -= 1
        elif here >= cells:
            here -= cells
        else:
            break
    return counts


@compiled
def own_fillings(asked: Int64, shares: Float64, cells: int) -> Float64:
    """Work out how much of every pair of capacities pieces of one kind alone would fill, on average.

    Returns
    -------
    Float64
        Thousandths of the larger capacity, shape (cells**2,).
    """
    filled = np.zeros(cells * cells)
    for first in range(cells):
        for second in range(cells):
            total = 0.0
            for i in range(asked.shape[0]):
                larger = max(asked[i, 0], asked[i, 1])
                fit = cells
                if asked[i, 0] > 0:
                    fit = first // asked[i, 0]
                if asked[i, 1] > 0:
                    fit = min(fit, second // asked[i, 1])
                total += shares[i] * fit * larger
            filled[first * cells + second] = total * 1000.0 / (cells - 1)
    return filled
