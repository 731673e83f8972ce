"""Replay with an order and a backfill rule, against slow twins that count processors in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.queues import Backfill, Order
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.queueing.backfill import NEVER_S, FreeOverTime
from seaway.simulation.timeline import replay_with_departures
from seaway.simulation.waiting.discipline import Discipline
from seaway.testing.plugins import cluster, fleet, gpu, job, node


class Task(NamedTuple):
    """Job of a log: submission and duration in seconds, and number of processors."""

    submit_s: int
    lasts_s: int
    size: int


tasks = st.builds(Task, st.integers(0, 60), st.integers(0, 40), st.integers(1, 4))
logs = st.lists(tasks, min_size=1, max_size=25).map(lambda log: sorted(log, key=lambda each: each.submit_s))


def starts(jobs: Sequence[Job], where: Fleet, order: str, backfill: str) -> list[int]:
    """Return the start of each job in a replay; -1 for a job that did not start."""
    discipline = Discipline(Order(order), Backfill(backfill))
    outcome = replay_with_departures(where, jobs, lambda: make_policy("greedy"), discipline=discipline)
    assert outcome.starts_s is not None
    return [int(each) for each in outcome.starts_s]


def jobs_of(log: Sequence[Task]) -> list[Job]:
    """Return gangs with one device for each processor of a task."""
    return [
        job(
            f"job-{at}",
            gpus=1,
            replicas=each.size,
            gang=True,
            arrives_s=each.submit_s,
            expected_duration_s=each.lasts_s,
        )
        for at, each in enumerate(log)
    ]


def replayed(log: Sequence[Task], processors: int, order: str, backfill: str) -> list[int]:
    """Return the start of each job on nodes with one device each."""
    return starts(jobs_of(log), fleet(*[node(gpu()) for _ in range(processors)]), order, backfill)


class Machine:
    """Slow twin of a replay: processors are counted, and each pass goes through the queue from the front."""

    def __init__(self, log: Sequence[Task], processors: int) -> None:
        self.log = log
        self.free = processors
        self.starts = [-1] * len(log)
        self._ends: list[tuple[int, int]] = []
        self._waiting: list[int] = []

    def run(self, key: Callable[[int], tuple[int, ...]], *, easy: bool) -> list[int]:
        """Return the start of each job."""
        arrived = 0
        while arrived < len(self.log) or self._ends:
            arrival = [self.log[arrived].submit_s] if arrived < len(self.log) else []
            now_s = min([*arrival, *(end_s for end_s, _ in self._ends)])
            while self._ends and self._ends[0][0] <= now_s:
                self.free += self.log[heappop(self._ends)[1]].size
            while arrived < len(self.log) and self.log[arrived].submit_s <= now_s:
                self._waiting.append(arrived)
                arrived += 1
            self._waiting.sort(key=key)
            while self._waiting and self.log[self._waiting[0]].size <= self.free:
                self._start(self._waiting[0], now_s)
            if easy and self._waiting:
                self._backfill(now_s)
        return self.starts

    def _backfill(self, now_s: int) -> None:
        shadow_s, extra = self._reservation(self.log[self._waiting[0]].size)
        for at in self._waiting[1:]:
            in_time = now_s + self.log[at].lasts_s <= shadow_s
            if self.log[at].size <= self.free and (in_time or self.log[at].size <= extra):
                extra -= 0 if in_time else self.log[at].size
                self._start(at, now_s)

    def _reservation(self, size: int) -> tuple[int, int]:
        free = self.free
        for end_s in sorted({end_s for end_s, _ in self._ends}):
            free += sum(self.log[at].size for each_s, at in self._ends if each_s == end_s)
            if free >= size:
                return end_s, free - size
        return NEVER_S, -1

    def _start(self, at: int, now_s: int) -> None:
        self.free -= self.log[at].size
        self.starts[at] = now_s
        self._waiting.remove(at)
        heappush(self._ends, (now_s + self.log[at].lasts_s, at))


def planned(log: Sequence[Task], processors: int) -> list[int]:
    """Plan each job on arrival at the first second at which enough processors stay free."""
    horizon = sum(each.lasts_s for each in log) + max(each.submit_s for each in log) + 2
    free = np.full(horizon, processors)
    begun = []
    for each in log:
        at = each.submit_s
        while (free[at : max(at + each.lasts_s, at + 1)] < each.size).any():
            at += 1
        free[at : at + each.lasts_s] -= each.size
        begun.append(at)
    return begun


@given(logs)
def test_without_backfill_nothing_overtakes(log: Sequence[Task]) -> None:
    """Each job starts as in a plain queue: first come, first served, or the shortest first."""
    assert replayed(log, 4, "fifo", "none") == Machine(log, 4).run(lambda at: (at,), easy=False)
    assert replayed(log, 4, "shortest", "none") == Machine(log, 4).run(lambda at: (log[at].lasts_s, at), easy=False)


@given(logs)
def test_easy_backfill_delays_the_first_job_by_nothing(log: Sequence[Task]) -> None:
    """Later jobs start early if they end before the first can start, or leave enough beside it."""
    assert replayed(log, 4, "fifo", "easy") == Machine(log, 4).run(lambda at: (at,), easy=True)


@given(logs)
def test_conservative_backfill_delays_no_earlier_job(log: Sequence[Task]) -> None:
    """Each job takes, on arrival, the earliest hole that delays no job before it."""
    assert replayed(log, 4, "fifo", "conservative") == planned(log, 4)


def test_easy_backfill_looks_at_nodes_not_only_at_sums() -> None:
    """A long job must not take the only node that the first job fits later, even if enough devices are free in sum."""
    where = fleet(cluster(node(gpu(), gpu()), node(gpu()), node(gpu())))
    jobs = [
        job("pair", gpus=2, arrives_s=0, expected_duration_s=50),
        job("first", gpus=2, arrives_s=1, expected_duration_s=50),
        job("long", gpus=1, arrives_s=2, expected_duration_s=500),
        job("third", gpus=1, arrives_s=2, expected_duration_s=500),
        job("fourth", gpus=1, arrives_s=2, expected_duration_s=500),
    ]
    begun = dict(zip([each.name for each in jobs], starts(jobs, where, "fifo", "easy"), strict=True))
    assert begun == {"pair": 0, "first": 50, "long": 2, "third": 2, "fourth": 100}


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative", "greedy"])
def test_a_job_that_never_fits_is_counted_and_blocks_no_one_forever(backfill: str) -> None:
    """A job that no node holds counts as refused; with backfill, jobs behind it still run."""
    jobs = [
        job("huge", gpus=4, arrives_s=0, expected_duration_s=10),
        job("small", gpus=1, arrives_s=1, expected_duration_s=10),
    ]
    discipline = Discipline(Order.FIFO, Backfill(backfill))
    outcome = replay_with_departures(fleet(node(gpu())), jobs, lambda: make_policy("greedy"), discipline=discipline)
    assert outcome.counts.refused == 1
    assert outcome.counts.placed == (0 if backfill == "none" else 1)


def test_free_amounts_over_time_find_the_first_hole() -> None:
    """A job starts at the first time from which its amounts stay free until it ends, and may run until they do not."""
    free = FreeOverTime(np.array([4, 8]), 0)
    free.add(10, 20, np.array([-3, 0]))
    assert free.earliest_start(np.array([2, 8]), 10, 0) == 0
    assert free.earliest_start(np.array([2, 8]), 11, 0) == 30
    assert free.earliest_start(np.array([1, 8]), NEVER_S, 5) == 5
    assert free.earliest_start(np.array([5, 0]), 1, 0) == -1
    assert [free.longest(np.array(need), 0) for need in ([2, 8], [1, 8], [5, 0])] == [10, NEVER_S, 0]
    free.add(30, NEVER_S, np.array([-4, 0]))
    assert free.earliest_start(np.array([2, 0]), 11, 0) == -1
    free.forget_before(12)
    assert free.earliest_start(np.array([1, 0]), 5, 12) == 12


def test_free_amounts_over_time_with_ends_from_the_beginning() -> None:
    """Ends of running jobs give the same times as amounts that are added one by one, also equal and past ends."""
    ends_s, needs = np.array([20, 5, 20, 0]), np.array([[1, 2], [1, 0], [2, 2], [1, 1]])
    made, added = FreeOverTime(np.array([0, 1]), 0, ends_s, needs), FreeOverTime(np.array([0, 1]), 0)
    for end_s, need in zip(ends_s, needs, strict=True):
        added.add(int(end_s), NEVER_S, need)
    for need in np.ndindex(7, 7):
        for lasts_s in (1, 10, 30):
            starts_s = {each.earliest_start(np.array(need), lasts_s, 0) for each in (made, added)}
            assert len(starts_s) == 1
            assert (made.longest(np.array(need), 0) >= lasts_s) == (starts_s == {0})
