from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from seaway.application.control.arrays import MAX_QUEUED
from seaway.application.fleet.queues import QueueViews
from seaway.application.jobs import SubmitKey, stored_job, tasks_of
from seaway.application.ports.store import JobFilter, Retention
from seaway.domain.arrays import task_array
from seaway.domain.dependencies import After
from seaway.domain.errors import ConflictError, RejectedError, UnknownError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import following_id
from seaway.domain.job_state import JobState
from seaway.domain.tenancy import DEFAULT, Quota, Tenant
from tests.unit.application.scene import Scene, scene, spec

S = JobState


def submit(made: Scene, indexes: str, **fields: Any) -> str:  # noqa: ANN401  # fields of `spec`
    """Submit an array of jobs of 3 s; return its ID."""
    array = spec(**{"expected_duration_s": 3, "array": task_array(indexes), **fields})
    return asyncio.run(made.plane.jobs.submit([array], "ada"))[0][0].id


def tasks(made: Scene, array: str, *states: JobState) -> list[JobRecord]:
    """Return the stored tasks of an array by index."""
    return made.plane.store.jobs(JobFilter(array=array, states=frozenset(states)), 1000)


def counts(made: Scene, array: str) -> dict[str, int]:
    """Return the numbers of stored tasks by state."""
    return {state.value: count for state, count in made.plane.store.task_counts([array])[array].items()}


def waiting(made: Scene) -> int:
    """Return the number of waiting jobs that queues show."""
    return sum(use.waiting for use in QueueViews(made.plane.controller).uses())


def placed(made: Scene) -> int:
    """Return the number of live attempts."""
    return sum(attempt.state.live for attempt in made.plane.store.held_attempts())


def test_tasks_run_to_the_end_and_never_more_at_once_than_allowed() -> None:
    """Each index runs once, in order, with its index in the environment; the array ends with the last one."""
    made = scene()
    array = submit(made, "0-8:2,20-24%3")
    assert made.job(array).unstarted == "0-8:2,20-24"
    for _ in range(60):
        made.plane.run(1)
        assert placed(made) <= 3
    assert (made.state(array), made.job(array).reason) == ("completed", "tasks: 10 completed")
    assert [each.index for each in tasks(made, array)] == [0, 2, 4, 6, 8, 20, 21, 22, 23, 24]
    for task in tasks(made, array):
        (attempt,) = made.plane.store.attempts(task.id)
        assert dict(attempt.spec.run.env)["SEAWAY_ARRAY_TASK_ID"] == str(task.index)
    assert not made.plane.controller.live.arrays.known
    states = [each.state for each in made.plane.store.events(0, 100, job_id=array)]
    assert states == ["pending", "queued", "running", "completed"]


def test_only_some_tasks_are_stored_at_a_time() -> None:
    """A large array costs one record, and those tasks that may be in the queue."""
    made = scene()
    array = submit(made, "0-99999", expected_duration_s=None)
    made.plane.run(5)
    assert len(tasks(made, array)) <= 1000
    assert sum(counts(made, array).values()) == MAX_QUEUED + 4
    assert waiting(made) == 100_000 - 4


def test_failed_tasks_are_retried_together_or_alone() -> None:
    """An array with a failed task has failed. A retry runs only failed tasks again, and completes the array."""
    made = scene()
    array = submit(made, "0-3", expected_duration_s=30)
    made.plane.run(4)
    for task in tasks(made, array)[:2]:
        made.cluster(made.where(task.id)).fail_copy(task.id, 1, "killed")
    made.plane.run(60)
    assert (made.state(array), made.job(array).reason) == ("failed", "tasks: 2 completed, 2 failed")
    first = tasks(made, array)[0]
    made.plane.jobs.retry(first.id, "ada")
    made.plane.run(60)
    assert (made.state(array), counts(made, array)) == ("failed", {"completed": 3, "failed": 1})
    made.plane.jobs.retry(array, "ada", "new data")
    made.plane.run(60)
    assert (made.state(array), counts(made, array)) == ("completed", {"completed": 4})
    assert [made.job(each.id).attempt for each in tasks(made, array)] == [2, 2, 1, 1]
    with pytest.raises(ConflictError, match="no task of the array has failed"):
        made.plane.jobs.retry(array, "ada")


def test_a_job_is_retried_from_its_start() -> None:
    """A retried job waits for its predecessors again, and its attempts go on counting."""
    made = scene()
    job = made.submit(expected_duration_s=30)
    made.plane.run(4)
    with pytest.raises(ConflictError, match="only failed, cancelled and skipped"):
        made.plane.jobs.retry(job, "ada")
    made.plane.jobs.cancel(job, "ada")
    follower = replace(spec(expected_duration_s=3), after=(After(job),))
    late = asyncio.run(made.plane.jobs.submit([follower], "ada"))[0][0].id
    made.plane.run(5)
    assert made.state(late) == "skipped"
    assert made.plane.jobs.retry(late, "ada").state is S.HELD
    made.plane.jobs.retry(job, "ada")
    made.plane.run(5)
    assert (made.state(job), made.job(job).attempt, made.job(job).ended_ns) == ("running", 2, None)
    made.plane.run(60)
    assert (made.state(job), made.state(late)) == ("completed", "completed")


@pytest.mark.parametrize("restart", [False, True])
def test_an_action_on_an_array_reaches_all_its_tasks(restart: bool) -> None:
    """Suspending, resuming and cancelling an array do the same with its tasks, also if the process ends in between."""
    made = scene()
    array = submit(made, "0-99%3", expected_duration_s=None)
    alone = submit(made, "0-1%1", expected_duration_s=None)
    made.plane.run(5)

    def act(do: Any) -> None:  # noqa: ANN401
        do(array, "ada")
        if restart:
            made.plane.restart()
        made.plane.run(10)

    act(made.plane.jobs.suspend)
    assert counts(made, array) == {"suspended": 3}
    assert counts(made, alone) == {"running": 1}
    act(made.plane.jobs.resume)
    assert (made.state(array), counts(made, array)) == ("running", {"running": 3})
    act(made.plane.jobs.cancel)
    assert (made.state(array), counts(made, array)) == ("cancelled", {"cancelled": 3})
    assert waiting(made) == 1
    act(made.plane.jobs.retry)
    assert (made.state(array), placed(made)) == ("running", 4)
    act(made.plane.jobs.delete)
    assert placed(made) == 1
    assert made.plane.store.prune(Retention(None, None, None, None), made.clock.now_ns())["jobs"] >= 4
    assert not tasks(made, array)
    assert made.plane.store.job(array) is None


def test_a_change_applies_to_tasks_that_have_not_started() -> None:
    """Priority and request of an array change for its waiting tasks; running ones continue, and the limit follows."""
    made = scene()
    array = submit(made, "0-9%1", expected_duration_s=20)
    made.plane.run(5)
    before = made.job(array).spec
    after = replace(before, priority=7, array=task_array("0-9%2"))
    made.plane.jobs.change(array, after, "ada")
    made.plane.run(5)
    assert placed(made) == 2
    assert all(each.spec.priority == 7 for each in tasks(made, array))
    assert [len(made.plane.store.attempts(each.id)) for each in tasks(made, array)] == [1, 1]
    with pytest.raises(RejectedError, match="cannot change"):
        made.plane.jobs.change(array, replace(before, array=task_array("0-99%1")), "ada")
    with pytest.raises(ConflictError, match="task of an array"):
        made.plane.jobs.change(tasks(made, array)[0].id, before, "ada")


def test_one_task_can_be_cancelled_before_it_starts() -> None:
    """A task that is not stored yet has its ID, is listed, and is stored by its first change."""
    made = scene()
    array = submit(made, "0-5%2")
    record = made.job(array)
    fifth = following_id(array, 1 + 5)
    waiting = stored_job(made.plane.store, fifth)
    assert waiting
    assert (waiting.index, waiting.state, waiting.version) == (5, S.PENDING, 0)
    assert made.plane.jobs.cancel(fifth, "ada", "not needed").state is S.CANCELLED
    assert made.job(array).unstarted == "0-4"
    assert [each.index for each in tasks_of(made.plane.store, record, set(), "", 3)] == [0, 1, 2]
    with pytest.raises(UnknownError):
        made.plane.jobs.cancel(following_id(array, 1 + 6), "ada")
    made.plane.run(30)
    assert (made.state(array), made.job(array).reason) == ("cancelled", "tasks: 5 completed, 1 cancelled")


def test_lists_join_stored_tasks_and_others_by_index() -> None:
    """Pages of tasks go by index, whatever is stored; a filter by state applies to both kinds."""
    made = scene()
    array = submit(made, "0-19%2", expected_duration_s=None)
    made.plane.run(5)
    record, store = made.job(array), made.plane.store
    pages, after = [], ""
    while page := tasks_of(store, record, set(), after, 7):
        pages.append([each.index for each in page])
        after = page[-1].id
    assert [len(page) for page in pages] == [7, 7, 6]
    assert [index for page in pages for index in page] == list(range(20))
    assert [each.index for each in tasks_of(store, record, {S.RUNNING}, "", 9)] == [0, 1]
    later = tasks_of(store, record, {S.PENDING}, "", 1)[0]
    assert (later.index, later.reason) == (2, "its array has at most 2 tasks at once")
    assert [job.id for job in store.jobs(JobFilter(), 9)] == [array]


def test_tasks_that_cannot_start_name_what_holds_them() -> None:
    """A task names the predecessor, the limit, the other tasks or the end of its array; `accepted` is no reason."""
    made = scene()
    first = made.submit(expected_duration_s=None)
    held = submit(made, "0-3", expected_duration_s=None, after=(After(first),))
    full = submit(made, f"0-{MAX_QUEUED + 5}", expected_duration_s=None)

    def reasons(array: str) -> set[str]:
        """Return the reasons of the tasks that are not stored."""
        made.plane.run(3)
        return {
            each.reason for each in tasks_of(made.plane.store, made.job(array), set(), "", 2000) if not each.version
        }

    assert reasons(held) == {f"waits for {first} to complete"}
    assert reasons(full) == {"other tasks of its array go first"}
    made.plane.jobs.suspend(full, "ada")
    assert reasons(full) == {"suspended with its array"}
    made.plane.jobs.cancel(first, "ada")
    assert reasons(held) == {"skipped with its array"}
    task = stored_job(made.plane.store, following_id(held, 1))
    assert (task and task.reason) == "skipped with its array"


def test_quotas_count_tasks() -> None:
    """The tasks of an array count as waiting jobs, and a key returns the same array."""
    made = scene()
    made.plane.operations.put_tenant(Tenant(DEFAULT, quotas={DEFAULT: Quota(max_waiting=10)}), "ada")
    made.plane.settle()
    with pytest.raises(ConflictError, match="but the array has 11 tasks"):
        submit(made, "0-10")
    array, key = spec(array=task_array("0-8%1"), gpus=2), SubmitKey("k", "d")
    (first,), new = asyncio.run(made.plane.jobs.submit([array], "ada", key))
    again = asyncio.run(made.plane.jobs.replayed(key, [array]))
    assert (new, again) == (True, [first])
    made.plane.run(4)
    submit(made, "0-1")
    with pytest.raises(ConflictError, match="10 waiting jobs"):
        submit(made, "0", gpus=2)


def test_jobs_come_after_whole_arrays() -> None:
    """A follower starts when all tasks have completed, and an array can be a follower itself."""
    made = scene()
    specs = [
        replace(spec(expected_duration_s=3, array=task_array("0-4%2")), name="sweep"),
        replace(spec(expected_duration_s=3, after=(After("sweep"),), array=task_array("0-1")), name="check"),
    ]
    (sweep, check), _ = asyncio.run(made.plane.jobs.submit(specs, "ada"))
    made.plane.run(8)
    assert (made.state(sweep.id), made.state(check.id), counts(made, check.id)) == ("running", "held", {})
    made.plane.run(60)
    assert (made.state(sweep.id), made.state(check.id)) == ("completed", "completed")


def test_restarts_neither_lose_nor_repeat_tasks() -> None:
    """However often the process ends, each task runs exactly once."""
    made = scene()
    array = submit(made, "0-19%4")
    for _ in range(80):
        made.plane.run(1)
        made.plane.restart()
        assert placed(made) <= 4
        if made.plane.state(array).final:
            break
    assert made.state(array) == "completed"
    assert Counter(len(made.plane.store.attempts(each.id)) for each in tasks(made, array)) == {1: 20}


def test_a_task_costs_its_own_part_of_its_array() -> None:
    """A task and its array can be asked for together."""
    made = scene()
    array = submit(made, "0-2")
    made.plane.run(30)
    first, second, _ = tasks(made, array)
    of_array, *of_tasks = (
        made.plane.overview.costs.of_jobs([array, first.id, second.id])[each].gpu_hours
        for each in (array, first.id, second.id)
    )
    assert all(each > 0 for each in of_tasks)
    assert of_array > sum(of_tasks)
    with pytest.raises(ConflictError, match=f"name one of its tasks, such as {array}_2"):
        made.plane.overview.attempt(made.job(array))
