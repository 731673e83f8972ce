"""Turns: which job is at hand when."""

from __future__ import annotations

from collections import deque
from typing import Protocol

NOBODY = -1
"""In the place of a job's number: there is none any more."""


class Turns(Protocol):
    """The order in which jobs are offered.

    Attributes
    ----------
    number
        The job at hand, `NOBODY` at the end.
    arrived
        How many jobs have been offered at least once or are at hand.
    """

    number: int
    arrived: int

    @property
    def may_wait(self) -> bool:
        """Whether the job at hand would be offered again."""

    def reset(self) -> None:
        """Begin anew with the first job."""

    def go_on(self, *, waits: bool, placed: bool) -> None:
        """Pass to the next job; the one at hand was placed, waits, or is gone."""


class Rounds:
    """Jobs arrive in their order; those that wait are offered again, in the same order, after the last arrival.

    Parameters
    ----------
    jobs
        How many there are.
    offers
        How often a job that waits is offered in all.
    """

    def __init__(self, jobs: int, offers: int) -> None:
        self._jobs = jobs
        self._offers = offers
        self.reset()

    @property
    def may_wait(self) -> bool:
        """Whether the job at hand would be offered again."""
        return self._round < self._offers

    def reset(self) -> None:
        """Begin anew with the first job."""
        self._round = 1
        self._waiting: deque[int] = deque()
        self._left = 0
        self.number = 0
        self.arrived = 1

    def go_on(self, *, waits: bool, placed: bool) -> None:
        """Pass to the next job."""
        if waits and self.may_wait:
            self._waiting.append(self.number)
        if self.arrived < self._jobs:
            self.number = self.arrived
            self.arrived += 1
            return
        if not self._left:
            self._left = len(self._waiting)
            self._round += 1
        if not self._left:
            self.number = NOBODY
            return
        self._left -= 1
        self.number = self._waiting.popleft()
