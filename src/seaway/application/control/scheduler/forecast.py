"""Expected order and starts of waiting jobs, planned from the live state on demand.

The scheduling cycle runs on a copy of the state, and time passes there from the end of one job to the next. For jobs
that have not started there after some time, and with many jobs, amounts are counted (`seaway.scheduling.cycle.plan`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from seaway.application.control.scheduler.forks import copy_of, plan_inputs
from seaway.application.control.scheduler.scheduler import Scheduler
from seaway.application.control.state import ControlState
from seaway.application.control.tenancy import Names
from seaway.application.histogram import Timed, Timing
from seaway.domain.attempt import Attempt
from seaway.scheduling.cycle.ahead import Ahead
from seaway.scheduling.cycle.plan import (
    MAX_PLANNED,
    PlannedStart,
    PlanState,
    Running,
    in_order,
    later_entries,
    planned,
    running,
)
from seaway.scheduling.queueing.tree import Key

FRESH_S = 0.5
"""Minimum age of a plan before it is made again, seconds."""

REST = 20
"""Minimum age of a plan, as a multiple of the time that it took."""

STALE_NS = 2_000_000_000
"""Time for which callers get the last plan while a new one is made, nanoseconds."""

NS_PER_S = 1_000_000_000

MAX_FOLLOWED = 2000
"""Maximum number of running and waiting jobs of which each is followed."""

LOOK_NS = 250_000_000
"""Time after which the other jobs are not followed, nanoseconds. A virtual clock does not count it."""

RECORD_NS = 60 * NS_PER_S
"""Minimum age of a plan before it is made again only to record estimates, nanoseconds."""


class Forecast:
    """Expected starts of waiting jobs. Thread-safe; all callers share one plan.

    Parameters
    ----------
    lock
        Lock of the control-plane state.
    """

    def __init__(
        self,
        live: ControlState,
        scheduler: Scheduler,
        names: Names,
        lock: AbstractContextManager[None],
    ) -> None:
        self._live = live
        self._scheduler = scheduler
        self._names = names
        self._lock = lock
        self._making = threading.Lock()
        self._until_ns = -STALE_NS
        self._recorded_ns = -RECORD_NS
        self._plan: Mapping[str, PlannedStart] = {}
        self._first: dict[str, int] = {}
        self._error = Timing()

    def plan(self) -> Mapping[str, PlannedStart]:
        """Return the planned starts by job ID, in the expected order.

        While another thread makes a new plan, this may be the last one.
        """
        late = self._live.clock.monotonic_ns() >= self._until_ns + STALE_NS
        if not self._making.acquire(blocking=late):
            return self._plan
        try:
            if self._live.clock.monotonic_ns() >= self._until_ns:
                self._make()
            return self._plan
        finally:
            self._making.release()

    def _make(self) -> None:
        """Make a new plan, which is fresh for a multiple of the time that it took."""
        clock = self._live.clock
        began_ns = clock.monotonic_ns()
        with self._lock:
            state = self.state()
            ahead = self.ahead(state)
        until_ns = clock.monotonic_ns() + LOOK_NS
        self._plan = expected_starts(state, running(state), ahead, late=lambda: clock.monotonic_ns() >= until_ns)
        self._compare()
        self._recorded_ns = clock.monotonic_ns()
        took_s = (clock.monotonic_ns() - began_ns) / NS_PER_S
        self._until_ns = clock.monotonic_ns() + int(max(FRESH_S, REST * took_s) * NS_PER_S)

    def started(self, attempts: Iterable[Attempt]) -> None:
        """Count the errors of the first estimates of jobs that start. Only the control loop calls it."""
        for each in attempts:
            if promised_ns := self._first.pop(each.job_id, None):
                self._error.note(abs(each.created_ns - promised_ns) / NS_PER_S)

    def error(self) -> Timed:
        """Return how far the first estimate of each started job was off.

        If nothing else planned for a while, and jobs without an estimate wait, plan to record their estimates.
        """
        if self._live.clock.monotonic_ns() >= self._recorded_ns + RECORD_NS:
            with self._lock:
                lack = not self._live.waiting.ids() <= self._first.keys()
            if lack:
                self.plan()
        return self._error.timed()

    def _compare(self) -> None:
        """Record the first estimates of jobs, and drop those of jobs that ended in the queue."""
        with self._lock:
            jobs, waiting = self._live.jobs, self._live.waiting
            for job_id in self._first.keys() - self._plan.keys():
                if (job := jobs.get(job_id)) is None or job.state.final:
                    self._first.pop(job_id, None)
            for job_id, planned in self._plan.items():
                if planned.starts_ns is not None and job_id in waiting:
                    self._first.setdefault(job_id, planned.starts_ns)

    def ahead(self, state: PlanState, most: int = MAX_FOLLOWED) -> Ahead | None:
        """Return a copy of the control loop if each of its jobs can be followed. The caller holds the lock."""
        return copy_of(self._live, self._scheduler, self._lock).ahead if state.follows(most) else None

    def state(self) -> PlanState:
        """Return the inputs of a plan. The caller holds the lock of the control-plane state."""
        live, scheduler = self._live, self._scheduler
        state = plan_inputs(live, self._names).of_jobs(live, scheduler.reservations, scheduler.preemptor)
        return replace(state, later=[(each, live.entry(each.array.task(0))) for each in live.arrays.later()])


def expected_starts(
    state: PlanState,
    attempts: Sequence[tuple[Key, Running]],
    ahead: Ahead | None,
    most: int = MAX_PLANNED,
    late: Callable[[], bool] = lambda: False,
) -> Mapping[str, PlannedStart]:
    """Return the expected starts of waiting jobs, in order.

    Parameters
    ----------
    attempts
        Running attempts, see `running`.
    ahead
        Copy of the control loop in this state, in which time passes; None to count amounts.
    most
        Maximum number of jobs with a planned start.
    late
        Report whether amounts are counted for the jobs that have not started yet in the copy.
    """
    return _followed(state, ahead, most, late) if ahead else planned(state, attempts, most)


def _followed(state: PlanState, ahead: Ahead, most: int, late: Callable[[], bool]) -> Mapping[str, PlannedStart]:
    """Return the starts that the scheduling cycle decides as time passes, in the order of starts; the others follow."""
    arrays = {tasks.array.id: tasks.array for tasks, _ in state.later}
    for entry in later_entries(state, most):
        array = arrays[entry.array]
        task = replace(array.task(0), id=entry.id), replace(entry, array="")
        if array.spec.array and array.spec.array.limit:
            ahead.later.setdefault(array.id, deque()).append(task)
        else:
            ahead.fork.submit(*task)
    shift_ns = state.now_ns - ahead.fork.clock.now_ns()
    complete = ahead.look(most, late)
    waiting = {each.id: each for each in state.entries}
    started = sorted((at_ns, job_id) for job_id, at_ns in ahead.starts_ns.items() if job_id in waiting)
    left = [each for job_id, each in waiting.items() if job_id not in ahead.starts_ns]
    found: dict[str, PlannedStart] = {}
    for rank, (at_ns, job_id) in enumerate(started):
        entry, starts_ns = waiting[job_id], at_ns + shift_ns
        lasts_s = entry.max_duration_s
        ends_ns = None if lasts_s is None else starts_ns + lasts_s * NS_PER_S
        clusters = entry.job.demand.nodes.clusters
        found[job_id] = PlannedStart(rank, starts_ns, ends_ns, clusters, by_amounts=False)
    if not complete:
        rest = _rest(state, ahead, most - len(started))
        found.update({key: each.later(len(started), shift_ns) for key, each in rest.items() if key in waiting})
        return found
    for rank, entry in enumerate(in_order(state.discipline, ahead.fork.tree, left), len(started)):
        clusters = entry.job.demand.nodes.clusters
        found[entry.id] = PlannedStart(rank, None, None, clusters, by_amounts=False)
    return found


def _rest(state: PlanState, ahead: Ahead, most: int) -> Mapping[str, PlannedStart]:
    """Plan the jobs that have not started yet in a copy of the control loop, by amounts."""
    fork, later = ahead.fork, []
    for tasks, one in state.later:
        placed = (key[0] for key in fork.attempts if (job := fork.jobs.get(key[0])) and job.array == tasks.array.id)
        later.append((replace(tasks, count=len(ahead.later.get(tasks.array.id, ())), placed=frozenset(placed)), one))
    rest = replace(ahead.plan.of_jobs(fork, ahead.cycle.reservations, ahead.cycle.preemptor), later=later)
    return planned(rest, running(rest), most)
