"""Integer programmes as plain values, so that they can be sent to the process that solves them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Term(NamedTuple):
    """A variable, by its number, times a whole number."""

    times: int
    variable: int


class Row(NamedTuple):
    """A sum of terms that must be from `least` to `most`; None for no lower limit."""

    terms: tuple[Term, ...]
    least: int | None
    most: int


@dataclass(slots=True)
class Programme:
    """Whole numbers, what sums of them have to keep, and the sum that is to be as large as possible.

    Attributes
    ----------
    most
        The largest value of each variable; the least is 0.
    rows
        The sums that are limited.
    goal
        Variables whose sum is to be as large as possible.
    start
        Values to begin with, by variable: a hint, which may break limits.
    """

    most: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    goal: list[int] = field(default_factory=list)
    start: dict[int, int] = field(default_factory=dict)

    def add_variable(self, most: int) -> int:
        """Add a variable of 0 to `most`; return its number."""
        self.most.append(most)
        return len(self.most) - 1

    def limit(self, terms: Iterable[tuple[int, int]], most: int, *, least: int | None = None) -> None:
        """Limit a sum of terms, each a whole number and the variable that it multiplies."""
        row = Row(tuple(Term(*term) for term in terms), least, most)
        if row.terms:
            self.rows.append(row)


@dataclass(frozen=True, slots=True)
class Effort:
    """Effort of a search.

    Attributes
    ----------
    seconds
        On the solver's deterministic clock; each takes several seconds of CPU.
    workers, seed
        Its threads, and its random seed.
    """

    seconds: float
    workers: int
    seed: int


@dataclass(frozen=True, slots=True)
class Solution:
    """Solution of the solver.

    Attributes
    ----------
    values
        Best values of all variables; None without a solution.
    bound
        Upper bound of the sum of values.
    """

    values: tuple[int, ...] | None
    bound: int
