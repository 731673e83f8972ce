"""Tables that kernels borrow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.shared_arrays import borrowed


class Pair(NamedTuple):
    """A table with one axis, one with two, and a number."""

    line: Any
    table: Any
    number: int


@compiled
def add_up(line: Any) -> Any:  # noqa: ANN401
    """Sum a borrowed line."""
    total = 0
    for at in range(line.shape[0]):
        total += line[at]
    return total


@compiled
def exercise(pair: Pair, wide: Any) -> Any:  # noqa: ANN401
    """Write sums of lines, and the number, through borrowed tables, and read them again."""
    lent, target = borrowed(pair), borrowed(wide)
    for row in range(lent.table.shape[0]):
        line = lent.table[row]
        target[row, 0] = add_up(line)
        target[row, 1] = line.shape[0]
        line[0] = lent.number
        lent.line[row] += lent.table[row, 0] + lent.table[row, lent.table.shape[1] - 1]
    return lent.line.shape[0] + 10 * target.shape[0] + 100 * target.shape[1]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_borrowed_tables_share_memory(dtype: type) -> None:
    """Elements and whole lines, with one axis and with two, are in the array's own memory."""
    table: Any = np.arange(12, dtype=dtype).reshape(3, 4)
    line: Any = np.full(3, 100, dtype)
    wide = np.zeros((3, 2), np.int64)
    assert exercise(Pair(line, table, 7), wide) == 3 + 30 + 200
    assert wide.tolist() == [[6, 4], [22, 4], [38, 4]]
    assert table.tolist() == [[7, 1, 2, 3], [7, 5, 6, 7], [7, 9, 10, 11]]
    assert line.tolist() == [110, 114, 118]


def test_tables_may_be_empty() -> None:
    """A table without lines has a shape like any other."""
    empty = Pair(np.zeros(0, np.int64), np.zeros((0, 4), np.int64), 0)
    assert exercise(empty, np.zeros((0, 2), np.int64)) == 200


def test_index_has_to_match_the_axes() -> None:
    """Two indices for one axis are rejected at compile time, without a read past the end."""

    @compiled
    def wrong(line: Any) -> Any:  # noqa: ANN401
        lent = borrowed(line)
        return lent[0, 0]

    with pytest.raises(TypingError):
        wrong(np.zeros(3, np.int64))
