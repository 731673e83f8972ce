"""Arrays: the tasks that become jobs, the limit of tasks at once, and actions on whole arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from seaway.application.changes import Change
from seaway.application.ports.store import Store
from seaway.application.transitions import accepted, moved, stepped, stopped
from seaway.domain.arrays import indexes_text, stored_indexes, taken
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.reasons import TEXTS, Reason
from seaway.scheduling.cycle.plan import LaterTasks

ACTOR = "controller"

MAX_QUEUED = 1024
"""Maximum number of tasks of an array in its queue."""

MAX_TOGETHER = 512
"""Maximum number of tasks that one transaction stores, and that one cycle stops."""

OF_ARRAY = TEXTS["state_of_array"].removeprefix("{state} ")
"""End of the reason of a task that was suspended with its array, and is resumed with it."""

STARTS = frozenset({JobState.PENDING, JobState.QUEUED, JobState.RUNNING})
"""States of an array whose tasks may start."""


@dataclass(slots=True)
class _Tasks:
    """Stored tasks of an array that have not ended.

    Attributes
    ----------
    live
        All of them.
    granted
        Those that may be in the queue or run. A task returns its grant when nothing of it runs any more.
    queued
        Granted ones without a placement.
    waiting
        Heap of others that could be in the queue.
    """

    live: dict[str, JobRecord] = field(default_factory=dict)
    granted: set[str] = field(default_factory=set)
    queued: set[str] = field(default_factory=set)
    waiting: list[str] = field(default_factory=list)


class Arrays:
    """Arrays with unfinished tasks. It changes only by stored changes of jobs.

    Attributes
    ----------
    known
        The arrays.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all arrays."""
        self.known: dict[str, JobRecord] = {}
        self._tasks: defaultdict[str, _Tasks] = defaultdict(_Tasks)
        self._changed: dict[str, None] = {}

    def put(self, array: JobRecord) -> Collection[str] | None:
        """Apply a stored array; return its tasks if their specification changed, and None if it is known already."""
        before = self.known.get(array.id)
        if before and before.version >= array.version:
            return None
        self.known[array.id] = array
        self._changed[array.id] = None
        return list(self._tasks[array.id].live) if before and before.spec is not array.spec else ()

    def spec_of(self, task: JobRecord) -> JobRecord:
        """Return a task with the present specification of its array."""
        array = self.known.get(task.array)
        return replace(task, spec=array.spec) if array and array.spec is not task.spec else task

    def note(self, task: JobRecord) -> None:
        """Apply a stored task."""
        tasks = self._tasks[task.array]
        self._changed[task.array] = None
        if task.state.final:
            tasks.live.pop(task.id, None)
        else:
            tasks.live[task.id] = task
        tasks.queued.discard(task.id)
        if task.state.placed:
            tasks.granted.add(task.id)
        elif task.state.waits and task.id in tasks.granted:
            tasks.queued.add(task.id)
        elif task.state.waits:
            heappush(tasks.waiting, task.id)

    def may_wait(self, task: JobRecord) -> bool:
        """Report whether a task may be in the queue."""
        return task.id in self._tasks[task.array].granted

    def first_queued(self, array_id: str) -> JobRecord | None:
        """Return the first task of an array in its queue; None for none."""
        tasks = self._tasks[array_id] if array_id in self._tasks else _Tasks()
        return tasks.live.get(min(tasks.queued)) if tasks.queued else None

    def release(self, task: JobRecord) -> None:
        """Return the grant of a task of which nothing runs, and that does not wait."""
        tasks = self._tasks[task.array]
        if task.id in tasks.granted:
            tasks.granted.discard(task.id)
            tasks.queued.discard(task.id)
            self._changed[task.array] = None

    def _room(self, array: JobRecord) -> int:
        """Return the number of further tasks that may be in the queue."""
        tasks, limit = self._tasks[array.id], array.spec.array.limit if array.spec.array else 0
        room = MAX_QUEUED - len(tasks.queued)
        return max(0, min(room, limit - len(tasks.granted)) if limit else room)

    def later(self) -> Iterator[LaterTasks]:
        """Yield the tasks of each array that are not in the queue yet."""
        for array_id, array in self.known.items():
            tasks = self._tasks[array_id]
            stored = sum(each.state.waits and each.id not in tasks.granted for each in tasks.live.values())
            if array.state in STARTS and (count := array.unstarted_count + stored):
                yield LaterTasks(array, count, frozenset(tasks.granted - tasks.queued))

    def grant(self) -> list[str]:
        """Grant the queue to waiting tasks of changed arrays; return these tasks."""
        found: list[str] = []
        for array_id in self._changed:
            array, tasks = self.known.get(array_id), self._tasks[array_id]
            if array is None or array.state not in STARTS:
                continue
            room = self._room(array)
            while room and tasks.waiting:
                task = tasks.live.get(heappop(tasks.waiting))
                if task and task.state.waits and task.id not in tasks.granted:
                    tasks.granted.add(task.id)
                    tasks.queued.add(task.id)
                    found.append(task.id)
                    room -= 1
        return found

    def look_up(self, store: Store) -> dict[str, dict[JobState, int]]:
        """Return the numbers of tasks by state of the arrays that may have ended."""
        over = [each for each in self._changed if (array := self.known.get(each)) and self._is_over(array)]
        return store.task_counts(over) if over else {}

    def _is_over(self, array: JobRecord) -> bool:
        return array.state in STARTS and not array.unstarted and not self._tasks[array.id].live

    def changes(
        self, counts: Mapping[str, Mapping[JobState, int]], latest: Callable[[str], Attempt | None], now_ns: int
    ) -> Iterator[Change]:
        """Yield the changes of arrays and of their tasks. Arrays without a change are not considered again.

        Parameters
        ----------
        counts
            Result of `look_up`.
        latest
            Return the latest attempt of a task, if it has not ended.
        """
        for array_id in list(self._changed):
            array, tasks = self.known.get(array_id), self._tasks[array_id]
            if array is None:
                del self._changed[array_id]
                continue
            found = [*self._follow(array, tasks, latest, now_ns)]
            if self._is_over(array) and array_id in counts:
                found = [_ended(array, counts[array_id], now_ns)]
            if found:
                yield from found
            elif not self._is_over(array):
                del self._changed[array_id]
                if array.state.final and not tasks.live and not tasks.granted:
                    del self.known[array_id], self._tasks[array_id]

    def _follow(
        self, array: JobRecord, tasks: _Tasks, latest: Callable[[str], Attempt | None], now_ns: int
    ) -> Iterator[Change]:
        """Yield the changes that the state of an array requires."""
        if array.state in STARTS:
            suspended = (each for each in tasks.live.values() if each.state is JobState.SUSPENDED)
            back = [each for each in suspended if each.reason.endswith(OF_ARRAY)][:MAX_TOGETHER]
            for task in back:
                yield stepped(moved(task, JobState.QUEUED, Reason("resumed_with_array"), now_ns), ACTOR)
            room = self._room(array)
            if room and array.unstarted and not tasks.waiting and not back:
                yield _stored(array, min(room, MAX_TOGETHER), now_ns)
            elif array.state is not JobState.RUNNING and any(each.state.placed for each in tasks.live.values()):
                yield stepped(_running(array, now_ns), ACTOR)
        elif array.state.final or array.state is JobState.SUSPENDED:
            ends = [each for each in tasks.live.values() if each.state is not array.state]
            for task in ends[:MAX_TOGETHER]:
                reason = Reason("state_of_array", state=array.state.value)
                yield stopped(task, latest(task.id), array.state, reason, ACTOR, now_ns)[1]


def _stored(array: JobRecord, count: int, now_ns: int) -> Change:
    """Return the change that stores the next tasks of an array as jobs."""
    indexes, rest = taken(stored_indexes(array.unstarted), count)
    after = replace(array, unstarted=indexes_text(rest), version=array.version + 1)
    if array.state is JobState.PENDING:
        after = replace(after, state=JobState.QUEUED, reason=Reason("tasks_queued"), changed_ns=now_ns)
        change = stepped(after, ACTOR)
    else:
        change = Change(update=[after])
    for index in indexes:
        change.add(accepted(replace(array.task(index), changed_ns=now_ns)))
    return change


def _running(array: JobRecord, now_ns: int) -> JobRecord:
    """Return an array of which a task was placed. It has no placement of its own, so it skips the states of one."""
    started_ns = array.started_ns or now_ns
    after = replace(array, state=JobState.RUNNING, reason=Reason("tasks_run"), changed_ns=now_ns, started_ns=started_ns)
    return replace(after, version=array.version + 1)


def _ended(array: JobRecord, counts: Mapping[JobState, int], now_ns: int) -> Change:
    """Return the change for an array whose tasks have ended."""
    failed, completed = counts.get(JobState.FAILED, 0), counts.get(JobState.COMPLETED, 0)
    others = sum(counts.values()) - failed - completed
    parts = [(completed, "completed"), (failed, "failed"), (others, "cancelled")]
    counted = [Reason("count_of", count=count, state=name) for count, name in parts if count]
    state = JobState.FAILED if failed else JobState.CANCELLED if others else JobState.COMPLETED
    runs = array if array.state is JobState.RUNNING else replace(_running(array, now_ns), version=array.version)
    return stepped(moved(runs, state, Reason("tasks_ended", counts=tuple(counted)), now_ns), ACTOR)
