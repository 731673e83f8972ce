"""Arrays of jobs: indexes in Slurm's syntax, and parameters of a matrix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason, also

MAX_INDEX = 999_999

Ranges = tuple[range, ...]
"""Indexes in order, none twice."""

_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)


TASK_ID = "SEAWAY_ARRAY_TASK_ID"
"""Environment variable with the index of a task."""


def index_of(env: Iterable[tuple[str, str]]) -> int | None:
    """Return the index of the task with an environment; None for other jobs."""
    return next((int(value) for name, value in env if name == TASK_ID and value.isdecimal()), None)


@dataclass(frozen=True, slots=True)
class TaskArray:
    """Tasks of an array.

    Attributes
    ----------
    indexes
        Indexes of the tasks, as text.
    limit
        Maximum number of tasks at once; 0 for no limit.
    matrix
        Values of each parameter. The last parameter changes fastest with the index.
    """

    indexes: str
    limit: int = 0
    matrix: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def text(self) -> str:
        """The indexes and the limit in Slurm's syntax."""
        return f"{self.indexes}%{self.limit}" if self.limit else self.indexes

    @property
    def last(self) -> int:
        """The largest index."""
        return parse_indexes(self.indexes)[-1][-1]

    def variables(self, array_id: str, index: int) -> tuple[tuple[str, str], ...]:
        """Return the environment variables of a task: index and parameters."""
        ranges = parse_indexes(self.indexes)
        return (
            ("SEAWAY_ARRAY_JOB_ID", array_id),
            (TASK_ID, str(index)),
            ("SEAWAY_ARRAY_TASK_COUNT", str(count_of(ranges))),
            ("SEAWAY_ARRAY_TASK_MIN", str(ranges[0][0])),
            ("SEAWAY_ARRAY_TASK_MAX", str(ranges[-1][-1])),
            *self.parameters(index),
        )

    def parameters(self, index: int) -> tuple[tuple[str, str], ...]:
        """Return the parameters of a task with their values."""
        values = []
        rest = index
        for name, options in reversed(self.matrix):
            rest, at = divmod(rest, len(options))
            values.append((name, options[at]))
        return tuple(reversed(values))


def task_array(text: str, matrix: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> TaskArray:
    """Read an array in Slurm's syntax. Without indexes, a matrix has a task for each combination of values.

    Raises
    ------
    RejectedError
        If the text is invalid, or an index is beyond the combinations of the matrix.
    """
    written, percent, most = text.partition("%")
    if percent and not (most.isascii() and most.isdigit() and 0 < int(most[:9]) <= MAX_INDEX):
        raise RejectedError(also(Reason("no_number_after_percent"), Reason("use_indexes")), where="array")
    count = prod(len(values) for _, values in matrix)
    if matrix and count > MAX_INDEX + 1:
        raise RejectedError(Reason("combinations_too_many", count=count, most=MAX_INDEX + 1), where="matrix")
    if not written and matrix:
        written = f"0-{count - 1}"
    ranges = parse_indexes(written)
    if matrix and ranges[-1][-1] >= count:
        raise RejectedError(Reason("index_beyond_matrix", index=ranges[-1][-1], count=count), where="array")
    return TaskArray(indexes_text(ranges), int(most) if percent else 0, matrix)


def parse_indexes(text: str) -> Ranges:
    """Read indexes like ``0-9,20-40:5``; none for an empty text of a stored array.

    Raises
    ------
    RejectedError
        If the text is invalid, names an index twice, or one above `MAX_INDEX`.
    """
    found = []
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise RejectedError(also(Reason("is_value", value=text[:60]), Reason("use_indexes")), where="array")
        first = int(match[1])
        last, step = int(match[2] or first), int(match[3] or 1)
        if last < first or not step:
            raise RejectedError(also(Reason("empty_range", part=part), Reason("use_indexes")), where="array")
        found.append(range(first, last + 1, step))
    found.sort(key=lambda each: each[0])
    for before, after in pairwise(found):
        if after[0] <= before[-1]:
            raise RejectedError(Reason("ranges_overlap", index=after[0]), where="array")
    if found[-1][-1] > MAX_INDEX:
        raise RejectedError(Reason("index_too_large", index=found[-1][-1], most=MAX_INDEX), where="array")
    return tuple(found)


def indexes_text(ranges: Iterable[range]) -> str:
    """Write indexes like ``0-9,20-40:5``; empty for none."""
    return ",".join(_range_text(each) for each in ranges if each)


def _range_text(each: range) -> str:
    if len(each) == 1:
        return str(each[0])
    return f"{each[0]}-{each[-1]}" if each.step == 1 else f"{each[0]}-{each[-1]}:{each.step}"


def stored_indexes(text: str) -> Ranges:
    """Read indexes that `indexes_text` wrote; none for an empty text."""
    return parse_indexes(text) if text else ()


def count_of(ranges: Iterable[range]) -> int:
    """Return the number of indexes."""
    return sum(map(len, ranges))


def taken(ranges: Sequence[range], count: int) -> tuple[list[int], Ranges]:
    """Return the first indexes, up to `count`, and the others."""
    first: list[int] = []
    for at, each in enumerate(ranges):
        part = each[: count - len(first)]
        first += part
        if len(part) < len(each):
            return first, (each[len(part) :], *ranges[at + 1 :])
    return first, ()


def without(ranges: Iterable[range], index: int) -> Ranges:
    """Return the indexes without one of them."""
    parts = []
    for each in ranges:
        if index in each:
            at = each.index(index)
            parts += [each[:at], each[at + 1 :]]
        else:
            parts.append(each)
    return tuple(part for part in parts if part)
