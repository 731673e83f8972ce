from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from seaway.application.jobs import workflow
from seaway.application.ports.store import JobFilter, Retention
from seaway.domain.arrays import TaskArray
from seaway.domain.cluster import Fleet
from seaway.domain.dependencies import After, When
from seaway.domain.errors import ConflictError, RejectedError
from seaway.domain.job import DataSource
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.network import Link
from seaway.domain.tenancy import DEFAULT, Quota, Tenant
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

S = JobState


def part(name: str, *after: After | str, **fields: Any) -> JobSpec:  # noqa: ANN401  # fields of `spec`
    """Describe a job of 5 s that comes after others."""
    earlier = tuple(After(each) if isinstance(each, str) else each for each in after)
    return replace(spec(**{"expected_duration_s": 5, **fields}), name=name, after=earlier)


def submit(made: Scene, *specs: JobSpec) -> list[str]:
    """Submit jobs in one request; return their IDs."""
    jobs, new = asyncio.run(made.plane.jobs.submit(specs, "ada"))
    assert new
    return [job.id for job in jobs]


def states(made: Scene, ids: list[str]) -> list[str]:
    """Return the states of jobs."""
    return [made.state(each) for each in ids]


def test_jobs_of_a_request_run_one_after_the_other() -> None:
    """A job is held until its predecessor completed, and then runs as any other."""
    made = scene()
    ids = submit(made, part("c", "b"), part("a"), part("b", "a"))
    made.plane.run(4)
    assert states(made, ids) == ["held", "running", "held"]
    assert made.job(ids[0]).reason == f"waits for b ({ids[2]}) to complete"
    made.plane.run(8)
    assert states(made, ids) == ["held", "completed", "running"]
    made.plane.run(20)
    assert states(made, ids) == ["completed"] * 3
    said = [each.reason for each in made.plane.store.events(0, 100, job_id=ids[2]) if each.state == "pending"]
    assert said == [f"released: a ({ids[1]}) is completed"]


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("end", [S.COMPLETED, S.FAILED, S.CANCELLED])
def test_the_end_of_a_predecessor_releases_or_skips(when: When, end: JobState) -> None:
    """A follower runs if the end is the one that it asks for, and is skipped with the reason otherwise."""
    made = scene()
    first, second, third = submit(made, part("a"), part("b", After("a", when)), part("c", After("b", When.FINISHED)))
    made.plane.run(4)
    assert made.state(second) == ("running" if when is When.STARTED else "held")
    if end is S.FAILED:
        made.cluster(made.where(first)).fail_copy(first, 1, "killed")
    if end is S.CANCELLED:
        made.plane.jobs.cancel(first, "ada")
    made.plane.run(30)
    assert made.plane.state(first) is end
    runs = when in (When.STARTED, When.FINISHED) or (when, end) in {
        (When.SUCCEEDED, S.COMPLETED),
        (When.FAILED, S.FAILED),
    }
    assert made.state(second) == ("completed" if runs else "skipped")
    assert made.state(third) == "completed"
    if not runs:
        assert f"a ({first}) is required to have {when.value}, but is {end.value}" in made.job(second).reason
        assert made.job(second).ended_ns is not None
        assert not made.plane.store.attempts(second)


def test_a_job_waits_for_all_its_predecessors() -> None:
    """Conditions are met one by one, and each one that is met stays so, even if its job is deleted and pruned."""
    made = scene()
    a, b, c = submit(made, part("a"), part("b", expected_duration_s=40), part("c", "a", "b"))
    made.plane.run(15)
    assert [each.job for each in made.job(c).awaits] == [b]
    assert made.job(c).reason == f"waits for b ({b}) to complete"
    made.plane.jobs.delete(a, "ada")
    made.plane.run(5)
    assert made.plane.store.prune(Retention(None, None, None, None), made.clock.now_ns())["jobs"] == 1
    made.plane.restart()
    made.plane.run(60)
    assert made.state(c) == "completed"


def test_a_predecessor_that_is_deleted_too_early_skips_its_followers() -> None:
    """Deleted before its condition is met, a predecessor has ended without success."""
    made = scene()
    a, b, c = submit(made, part("a"), part("b", "a"), part("c", After("a", When.FINISHED)))
    made.plane.jobs.delete(a, "ada")
    made.plane.run(20)
    assert (made.state(b), made.state(c)) == ("skipped", "completed")


def test_a_restart_continues_where_it_was() -> None:
    """Held jobs are compared with what is stored at each start, also if their predecessors ended meanwhile."""
    made = scene()
    ids = submit(made, part("a"), part("b", "a"), part("c", After("a", When.FAILED)))
    for _ in range(12):
        made.plane.restart()
        made.plane.run(3)
    assert states(made, ids) == ["completed", "completed", "skipped"]
    made.plane.restart()
    later = submit(made, part("d", ids[0]), part("e", After(ids[0], When.FAILED)))
    made.plane.run(12)
    assert states(made, later) == ["completed", "skipped"]


def test_held_jobs_hold_nothing() -> None:
    """A held job of a high priority is in no queue and no quota, so that others start and are accepted."""
    made = scene()
    made.plane.operations.put_tenant(Tenant(DEFAULT, quotas={DEFAULT: Quota(max_waiting=1)}), "ada")
    made.plane.settle()
    long, held = submit(made, part("long", gpus=2, expected_duration_s=60), part("held", "long", gpus=2, priority=9))
    made.plane.run(4)
    assert (made.state(long), made.state(held)) == ("running", "held")
    assert held not in made.plane.controller.live.waiting
    other = submit(made, part("other", gpus=2, expected_duration_s=60))[0]
    made.plane.run(4)
    assert made.state(other) == "running"
    submit(made, part("waits", gpus=2))
    with pytest.raises(ConflictError, match="1 waiting job "):
        submit(made, part("more", gpus=2))
    submit(made, part("held-too", long))


def test_outputs_of_predecessors_attract_their_followers() -> None:
    """A follower goes where its predecessors left the most to transfer, though another cluster would be chosen."""
    made = scene(two_sites())
    a = submit(made, part("a", clusters=frozenset({"beta"}), output_mib=100_000))[0]
    made.plane.run(10)
    assert (made.state(a), made.where(a)) == ("completed", "beta")
    free = made.submit()
    b = submit(made, part("b", a))[0]
    made.plane.run(5)
    assert made.where(free) == "alpha"
    assert made.where(b) == "beta"
    assert made.job(b).spec.data == DataSource(others=(DataSource("beta", 100_000),))
    assert "its data is at beta" in made.plane.store.attempts(b)[0].why


def test_outputs_of_all_tasks_attract_the_jobs_after_an_array() -> None:
    """Each task leaves the output of its array where it ran, also for an array of followers; a task leaves its own."""
    made = scene(two_sites())
    sweep = replace(part("sweep", output_mib=40_000), array=TaskArray("0-2", limit=1))
    a = submit(made, sweep)[0]
    made.plane.operations.cordon("alpha", "", "ada", "test")
    made.plane.run(8)
    made.plane.operations.uncordon("alpha", "", "ada")
    made.plane.operations.cordon("beta", "", "ada", "test")
    made.plane.run(15)
    made.plane.operations.uncordon("beta", "", "ada")
    tasks = made.plane.store.jobs(JobFilter(array=a), 9)
    ran = Counter(task.clusters[0] for task in tasks)
    assert (made.state(a), ran) == ("completed", {"beta": 2, "alpha": 1})
    both = DataSource(others=(DataSource("alpha", 40_000), DataSource("beta", 80_000)))
    b, c, d = submit(
        made,
        part("b", a),
        replace(part("c", a), array=TaskArray("0-1")),
        part("d", next(t.id for t in tasks if t.clusters == ("alpha",))),
    )
    made.plane.run(5)
    for each in (b, c):
        data = made.job(each).spec.data
        assert replace(data, others=tuple(sorted(data.others, key=lambda part: part.location))) == both
    assert made.job(d).spec.data == DataSource(others=(DataSource("alpha", 40_000),))
    assert [made.where(each) for each in (b, d)] == ["beta", "alpha"]


def test_outputs_stay_when_a_follower_changes_and_count_once_after_a_retry() -> None:
    """A change does not name outputs, so it leaves them. A retry waits for the predecessors, and counts them again."""
    made = scene(two_sites())
    _, b = submit(made, part("a", output_mib=100), part("b", "a", expected_duration_s=30))
    made.plane.run(10)
    left = made.job(b).spec.data
    assert left.others
    made.plane.jobs.change(b, replace(made.job(b).spec, data=DataSource("alpha", 7), priority=1), "ada")
    assert made.job(b).spec.data == replace(left, location="alpha", size_mib=7)
    made.plane.jobs.cancel(b, "ada")
    made.plane.jobs.retry(b, "ada")
    made.plane.run(5)
    assert made.job(b).spec.data.others == left.others


def two_sites() -> Fleet:
    """Make the clusters ``alpha`` and ``beta`` at gateways with a slow link."""
    links = [Link(*ends, 1_000_000, bandwidth_mbps=100) for ends in (("gw-a", "gw-b"), ("gw-b", "gw-a"))]
    alpha = cluster(node(gpu(), gpu()), name="alpha", gateway="gw-a")
    return fleet(alpha, cluster(node(gpu(), gpu()), name="beta", gateway="gw-b"), links=links)


def test_cycles_are_rejected_with_their_jobs() -> None:
    """Neither a request nor a change may make jobs wait for each other; the error names the cycle."""
    made = scene()
    with pytest.raises(RejectedError, match="a → b → c → a") as raised:
        submit(made, part("d", "a"), part("a", "b"), part("b", "c"), part("c", "a"))
    assert raised.value.where == "jobs[1].after"
    with pytest.raises(RejectedError, match="a → a"):
        submit(made, part("a", "a"))
    with pytest.raises(RejectedError, match="2 jobs of the request have the name 'a'"):
        submit(made, part("a"), part("a"), part("b", "a"))
    _, b, c = submit(made, part("a", gpus=0, expected_duration_s=None), part("b", "a"), part("c", "b"))
    with pytest.raises(RejectedError, match=rf"b \({b}\) → c \({c}\) → b"):
        made.plane.jobs.change(b, part("b", c), "ada")
    assert made.state(b) == "held"


def test_a_held_job_can_be_changed_suspended_and_cancelled() -> None:
    """Actions on a held job leave it outside its queue; without predecessors it is released."""
    made = scene()
    a, b, c, d = submit(
        made, part("a", expected_duration_s=None), part("b", "a"), part("c", "a"), part("d", After("c", When.FINISHED))
    )
    made.plane.settle()
    assert made.plane.jobs.suspend(b, "ada").state is S.SUSPENDED
    assert made.plane.jobs.resume(b, "ada").state is S.HELD
    made.plane.jobs.change(b, replace(made.job(b).spec, priority=3), "ada")
    assert (made.job(b).state, made.job(b).awaits) == (S.HELD, (After(a),))
    made.plane.jobs.cancel(c, "ada")
    made.plane.jobs.change(b, replace(made.job(b).spec, after=()), "ada")
    made.plane.run(20)
    assert states(made, [a, b, c, d]) == ["running", "completed", "cancelled", "completed"]
    with pytest.raises(ConflictError, match="only a held job can get other predecessors"):
        made.plane.jobs.change(a, part("a", b), "ada")


def test_a_workflow_has_all_connected_jobs_of_a_tenant() -> None:
    """Predecessors and followers are found in both directions, and none of others."""
    made = scene()
    made.plane.operations.put_tenant(Tenant("other"), "ada")
    made.plane.settle()
    ids = submit(made, part("a"), part("b", "a"), part("c", "a"), part("d", "b", "c"))
    alone = submit(made, part("alone"))[0]
    theirs = submit(made, part("theirs", ids[0], tenant="other"))[0]
    store = made.plane.store
    assert [job.id for job in workflow(store, made.job(ids[2]), DEFAULT, 9)[0]] == ids
    assert [job.id for job in workflow(store, made.job(ids[2]), "", 9)[0]] == [*ids, theirs]
    assert [job.id for job in workflow(store, made.job(alone), "", 9)[0]] == [alone]
    some, more = workflow(store, made.job(ids[2]), "", 2)
    assert (len(some), more) == (2, True)


@pytest.mark.parametrize("array", [None, TaskArray("0-1")], ids=["job", "array"])
def test_a_retry_returns_the_jobs_that_were_skipped_because_of_it(array: TaskArray | None) -> None:
    """Their followers return with them. Jobs that were skipped because of another one, or cancelled, stay so."""
    made = scene()
    failing = replace(part("a"), array=array)
    ids = submit(made, failing, part("b", "a"), part("c", "b"), part("d", "a"), part("e", "f"), part("f"))
    made.plane.run(1)
    for each in (ids[0], ids[5]):
        made.plane.jobs.cancel(each, "ada")
    made.plane.run(3)
    assert states(made, ids) == ["cancelled", "skipped", "skipped", "skipped", "skipped", "cancelled"]
    made.plane.jobs.delete(ids[3], "ada")
    made.plane.jobs.retry(ids[0], "ada")
    assert states(made, ids)[1:3] == ["held", "held"]
    assert made.job(ids[2]).awaits
    said = [each.reason for each in made.plane.store.events(0, 100, job_id=ids[1]) if each.state == "held"]
    assert said[-1] == f"retried with its predecessor a ({ids[0]})"
    made.plane.run(60)
    assert states(made, ids) == ["completed", "completed", "completed", "deleted", "skipped", "cancelled"]
