"""Integer programs as plain values, which can be sent to the solver process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Term(NamedTuple):
    """Product of an integer coefficient and a variable, by number."""

    coefficient: int
    variable: int


class Constraint(NamedTuple):
    """Bounds of a sum of terms; None for no lower bound."""

    terms: tuple[Term, ...]
    lower: int | None
    upper: int


@dataclass(slots=True)
class IntegerProgram:
    """Integer program: maximize a sum of variables under linear constraints.

    Attributes
    ----------
    upper_bounds
        Upper bound of each variable; the lower bound is 0.
    constraints
        Linear constraints.
    objective
        Variables whose sum is maximized.
    hint
        Values of variables to start from; they may violate constraints.
    """

    upper_bounds: list[int] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    objective: list[int] = field(default_factory=list)
    hint: dict[int, int] = field(default_factory=dict)

    def add_variable(self, upper: int) -> int:
        """Add a variable from 0 to `upper`, and return its number."""
        self.upper_bounds.append(upper)
        return len(self.upper_bounds) - 1

    def add_constraint(self, terms: Iterable[tuple[int, int]], upper: int, *, lower: int | None = None) -> None:
        """Add bounds of a sum of terms, each a coefficient and a variable."""
        constraint = Constraint(tuple(Term(*term) for term in terms), lower, upper)
        if constraint.terms:
            self.constraints.append(constraint)


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of a search.

    Attributes
    ----------
    seconds
        Time limit on the deterministic clock of the solver; a second takes several seconds of CPU.
    workers, seed
        Number of threads, and random seed.
    """

    seconds: float
    workers: int
    seed: int


@dataclass(frozen=True, slots=True)
class Solution:
    """Solution of an integer program.

    Attributes
    ----------
    values
        Best values of all variables; None without a solution.
    bound
        Upper bound of the objective.
    """

    values: tuple[int, ...] | None
    bound: int
