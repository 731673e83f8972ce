"""Arrivals on a virtual clock: jobs arrive, run and end; waiting jobs are offered again when one has ended."""

from __future__ import annotations

from bisect import insort
from collections import deque
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from seaway.learning.episodes.outcomes import Accounts, Hours
from seaway.scheduling.columns import DEMAND_BANDWIDTH, JOB_DEMAND, PLAN_NODE
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.candidates import first_nodes
from seaway.scheduling.kernels.queries import fitting_demands
from seaway.scheduling.snapshot.snapshot import Snapshot

NO_JOB = -1
"""Placeholder of a job's number: no job is left."""


class ArrivalOrder(Protocol):
    """The order in which jobs are offered.

    Attributes
    ----------
    number
        The job at hand, `NO_JOB` at the end.
    arrived
        How many jobs have been offered at least once or are at hand.
    """

    number: int
    arrived: int

    @property
    def may_wait(self) -> bool:
        """True if the job at hand would be offered again."""

    def reset(self) -> None:
        """Begin again with the first job."""

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
        """True if the job at hand would be offered again."""
        return self._round < self._offers

    def reset(self) -> None:
        """Begin again with the first job."""
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
            self.number = NO_JOB
            return
        self._left -= 1
        self.number = self._waiting.popleft()


Place = tuple[int, int]
"""Position of a waiting job: its priority (negative), and its number."""


class ComeAndGo:
    """Order of offers when jobs end too.

    A job is offered when it arrives. Whenever a job has ended, waiting jobs that fit are offered again, by priority and
    then first come, first served. Within a second, jobs end before others arrive. After the last arrival, when no
    running job will end, waiting jobs that fit are offered for the last time. A job that waits then is lost, unless a
    job that was placed before it still has to end.

    Parameters
    ----------
    snapshot, queue
        The fleet, and the jobs in order of arrival.
    books
        Allocations of jobs, released when they end.

    Attributes
    ----------
    number, arrived
        As `ArrivalOrder` has them.
    hours
        Amounts multiplied by time.
    now_s
        The virtual clock, seconds.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, accounts: Accounts) -> None:
        self._snapshot = snapshot
        self._jobs = queue.jobs
        self._lines = queue.rows[:, JOB_DEMAND].copy()
        self._sends = snapshot.demands.arrays.amounts[self._lines, DEMAND_BANDWIDTH] > 0
        self._accounts = accounts
        self._firsts = np.zeros(len(snapshot.clusters), np.int64)
        self.hours = Hours(snapshot, queue, accounts)
        self.reset()

    @property
    def may_wait(self) -> bool:
        """True if the job at hand would be offered again, provided that it fits then.

        In the last pass it would where one that was placed in that pass is still to end.
        """
        return not self._last or bool(self._ends)

    def reset(self) -> None:
        """Begin again with the first job."""
        self._waiting: list[Place] = []
        self._again: deque[Place] = deque()
        self._ends: list[tuple[int, int]] = []
        self._last = False
        self.now_s = self._jobs[0].arrives_s
        self.hours.reset(self.now_s)
        self.number = 0
        self.arrived = 1

    def go_on(self, *, waits: bool, placed: bool) -> None:
        """Pass to the next job."""
        job = self._jobs[self.number]
        if placed:
            self.hours.start(self.number, self.now_s)
            if job.expected_duration_s is not None:
                heappush(self._ends, (self.now_s + job.expected_duration_s, self.number))
        elif waits and self.may_wait:
            insort(self._waiting, (-job.priority, self.number))
        self.number = self._next()

    def _next(self) -> int:
        """Find who is at hand now; let time pass until someone is."""
        while True:
            while self._again:
                place = self._again.popleft()
                if self._fits(place[1]):
                    self._waiting.remove(place)
                    return place[1]
            if self.arrived < len(self._jobs) and self._jobs[self.arrived].arrives_s <= self.now_s:
                self.arrived += 1
                return self.arrived - 1
            self.hours.note(self.now_s, self.arrived, again=self._last)
            if not self._pass_time():
                return NO_JOB

    def _pass_time(self) -> bool:
        """Go on to when something happens; return whether anything does."""
        due = [self._ends[0][0]] if self._ends else []
        if self.arrived < len(self._jobs):
            due.append(self._jobs[self.arrived].arrives_s)
        if not due:
            if self._last:
                return False
            self._last = True
            self._again = deque(self._waiting)
            return bool(self._again)
        self.now_s = max(min(due), self.now_s)
        self.hours.pass_to(self.now_s)
        ended = []
        while self._ends and self._ends[0][0] <= self.now_s:
            ended.append(heappop(self._ends)[1])
        if ended:
            nodes = np.unique(self._accounts.lines[ended, PLAN_NODE])
            self.hours.end(ended)
            self._again = deque(self._who_may_fit(nodes))
        return True

    def _who_may_fit(self, freed: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Place]:
        """Return those who wait and may fit now that something has ended on some nodes.

        Who fitted nowhere before can only fit there, unless it is bandwidth that it waits for.
        """
        numbers = np.array([number for _, number in self._waiting], np.intp)
        arrays, demands = self._snapshot.arrays, self._snapshot.demands.arrays
        may = fitting_demands(arrays, demands, self._lines[numbers], freed) != 0
        may |= self._sends[numbers] | self._accounts.could_have[numbers]
        return [place for place, maybe in zip(self._waiting, may.tolist(), strict=True) if maybe]

    def _fits(self, number: int) -> bool:
        """Tell whether a job fits anywhere now."""
        arrays, demands = self._snapshot.arrays, self._snapshot.demands.arrays
        return first_nodes(arrays, demands, int(self._lines[number]), self._firsts) > 0
