"""Order in which an episode offers jobs, without and with a virtual clock."""

from __future__ import annotations

from bisect import insort
from collections import deque
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from seaway.learning.episodes.outcomes import Accounts, UsageOverTime
from seaway.scheduling.columns import DEMAND_BANDWIDTH, JOB_DEMAND, PLAN_NODE
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.candidates import first_nodes
from seaway.scheduling.kernels.queries import fitting_demands
from seaway.scheduling.snapshot.snapshot import Snapshot

NO_JOB = -1
"""Number at the end, when there is no current job."""


class ArrivalOrder(Protocol):
    """Order in which jobs are offered.

    Attributes
    ----------
    number
        Number of the current job; `NO_JOB` at the end.
    arrived
        Number of jobs that have arrived, including the current one.
    """

    number: int
    arrived: int

    @property
    def may_wait(self) -> bool:
        """True if the current job would be offered again."""

    def reset(self) -> None:
        """Restart with the first job."""

    def advance(self, *, waits: bool, placed: bool) -> None:
        """Advance to the next job. The current one was placed, waits, or is lost."""


class Rounds:
    """Order in rounds: all jobs as they arrive, then the waiting ones again in the same order.

    Parameters
    ----------
    jobs
        Number of jobs.
    offers
        Number of offers of a job that waits.
    """

    def __init__(self, jobs: int, offers: int) -> None:
        self._jobs = jobs
        self._offers = offers
        self.reset()

    @property
    def may_wait(self) -> bool:
        """True if the current job would be offered again."""
        return self._round < self._offers

    def reset(self) -> None:
        """Restart with the first job."""
        self._round = 1
        self._waiting: deque[int] = deque()
        self._left = 0
        self.number = 0
        self.arrived = 1

    def advance(self, *, waits: bool, placed: bool) -> None:
        """Advance to the next job."""
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


QueueKey = tuple[int, int]
"""Sort key of a waiting job: its negative priority, and its number."""


class ArrivalsAndDepartures:
    """Order on a virtual clock: jobs arrive, run and depart.

    A job is offered when it arrives. After each departure, waiting jobs that fit are offered again, by priority and
    then first come, first served. Within a second, jobs depart before others arrive. After the last arrival, when no
    departure is due, waiting jobs that fit are offered for the last time. A job that waits then is lost, unless a
    departure is due by then.

    Parameters
    ----------
    snapshot, queue
        The fleet, and the jobs in order of arrival.
    accounts
        Allocations of jobs, released when they depart.

    Attributes
    ----------
    number, arrived
        See `ArrivalOrder`.
    usage
        Figures over time.
    now_s
        The virtual clock, seconds.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, accounts: Accounts) -> None:
        self._snapshot = snapshot
        self._jobs = queue.jobs
        self._demands = queue.rows[:, JOB_DEMAND].copy()
        self._needs_bandwidth = snapshot.demands.arrays.amounts[self._demands, DEMAND_BANDWIDTH] > 0
        self._accounts = accounts
        self._firsts = np.zeros(len(snapshot.clusters), np.int64)
        self.usage = UsageOverTime(snapshot, queue, accounts)
        self.reset()

    @property
    def may_wait(self) -> bool:
        """True if the current job would be offered again when it fits.

        In the last pass, this requires a departure of a job that was placed in that pass.
        """
        return not self._last_pass or bool(self._departures)

    def reset(self) -> None:
        """Restart with the first job."""
        self._waiting: list[QueueKey] = []
        self._retries: deque[QueueKey] = deque()
        self._departures: list[tuple[int, int]] = []
        self._last_pass = False
        self.now_s = self._jobs[0].arrives_s
        self.usage.reset(self.now_s)
        self.number = 0
        self.arrived = 1

    def advance(self, *, waits: bool, placed: bool) -> None:
        """Advance to the next job."""
        job = self._jobs[self.number]
        if placed:
            self.usage.start(self.number, self.now_s)
            if job.expected_duration_s is not None:
                heappush(self._departures, (self.now_s + job.expected_duration_s, self.number))
        elif waits and self.may_wait:
            insort(self._waiting, (-job.priority, self.number))
        self.number = self._next()

    def _next(self) -> int:
        """Return the next job to offer, and advance the clock as far as necessary."""
        while True:
            while self._retries:
                key = self._retries.popleft()
                if self._fits(key[1]):
                    self._waiting.remove(key)
                    return key[1]
            if self.arrived < len(self._jobs) and self._jobs[self.arrived].arrives_s <= self.now_s:
                self.arrived += 1
                return self.arrived - 1
            self.usage.add_point(self.now_s, self.arrived, replaces=self._last_pass)
            if not self._advance_clock():
                return NO_JOB

    def _advance_clock(self) -> bool:
        """Advance the clock to the next event. Return False if there is none."""
        due = [self._departures[0][0]] if self._departures else []
        if self.arrived < len(self._jobs):
            due.append(self._jobs[self.arrived].arrives_s)
        if not due:
            if self._last_pass:
                return False
            self._last_pass = True
            self._retries = deque(self._waiting)
            return bool(self._retries)
        self.now_s = max(min(due), self.now_s)
        self.usage.advance_to(self.now_s)
        ended = []
        while self._departures and self._departures[0][0] <= self.now_s:
            ended.append(heappop(self._departures)[1])
        if ended:
            nodes = np.unique(self._accounts.rows[ended, PLAN_NODE])
            self.usage.end(ended)
            self._retries = deque(self._candidates(nodes))
        return True

    def _candidates(self, freed: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[QueueKey]:
        """Return waiting jobs that may fit after departures from some nodes.

        A job that did not fit before can only fit on these nodes, unless it needs bandwidth.
        """
        numbers = np.array([number for _, number in self._waiting], np.intp)
        arrays, demands = self._snapshot.arrays, self._snapshot.demands.arrays
        candidates = fitting_demands(arrays, demands, self._demands[numbers], freed) != 0
        candidates |= self._needs_bandwidth[numbers] | self._accounts.was_feasible[numbers]
        return [key for key, candidate in zip(self._waiting, candidates.tolist(), strict=True) if candidate]

    def _fits(self, number: int) -> bool:
        """Report whether a job fits on any node."""
        arrays, demands = self._snapshot.arrays, self._snapshot.demands.arrays
        return first_nodes(arrays, demands, int(self._demands[number]), self._firsts) > 0
