"""Schedule of running and planned jobs."""

from __future__ import annotations

import asyncio

from seaway.application.fleet.schedule import Grouping, Schedule, ScheduleFilter
from seaway.application.views import ClusterState
from seaway.domain.arrays import task_array
from seaway.domain.queues import Queue
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import START_S, Scene, known, scene, spec

NS = 1_000_000_000


def look(made: Scene, by: Grouping = Grouping.CLUSTER, limit: int = 100, **wanted: str | int) -> Schedule:
    """Return the schedule."""
    return made.plane.overview.schedule(by, ScheduleFilter(**wanted), limit)  # type: ignore[arg-type]  # as it takes them


def test_bars_last_from_the_start_to_the_expected_end() -> None:
    """Running jobs start when they ran, planned ones when room is expected, but not before now.

    The first job of a queue is in the cluster that is reserved for it.
    """
    made = scene()
    for name in "abc":
        made.submit(name=name, gpus=2, expected_duration_s=100)
    made.submit(name="d", gpus=2)
    made.plane.run(10)
    found = look(made)
    jobs = {job.name: job for group in found.groups for job in group.jobs}
    assert {group.name: [job.name for job in group.jobs] for group in found.groups} == {
        "alpha": ["a", "c"],
        "beta": ["b"],
        "": ["d"],
    }
    at = {name: ((job.starts_ns - found.now_ns) // NS, job.ends_ns) for name, job in jobs.items()}
    assert [at[name][0] for name in "abcd"] == [START_S - 10, START_S - 10, START_S + 90, START_S + 90]
    assert jobs["a"].ends_ns == jobs["a"].starts_ns + 100 * NS
    assert jobs["c"].ends_ns == jobs["c"].starts_ns + 100 * NS
    assert jobs["d"].ends_ns is None
    made.clock.advance_s(1000)
    assert all(job.starts_ns >= found.now_ns for group in look(made).groups for job in group.jobs if job.planned)


def test_tasks_of_an_array_have_their_numbers() -> None:
    """Running and planned tasks have their index in the array; other jobs have none."""
    made = scene()
    made.submit(name="alone", gpus=2, expected_duration_s=100)
    array = spec(name="many", gpus=2, expected_duration_s=100, array=task_array("4-6"))
    asyncio.run(made.plane.jobs.submit([array], "ada"))
    made.plane.run(10)
    jobs = [job for group in look(made).groups for job in group.jobs]
    assert sorted((job.name, job.task) for job in jobs if job.task is not None) == [("many", at) for at in (4, 5, 6)]
    assert [job.name for job in jobs if job.task is None] == ["alone"]
    assert {job.planned for job in jobs if job.name == "many"} == {True, False}


def test_jobs_that_only_a_lost_cluster_could_hold_have_no_start() -> None:
    """Their start is unknown, their answers name the cluster, and a job that ran there says what it still holds."""
    parts = fleet(
        cluster(node(gpu(model="NVIDIA L4")), name="alpha"), cluster(node(gpu(model="NVIDIA V100")), name="beta")
    )
    made = scene(parts, grace_period_s=30)
    needs = {"models": {"NVIDIA V100"}, "expected_duration_s": 50}
    ran = made.submit(name="ran", **needs)
    waits = made.submit(name="waits", **needs)
    made.plane.run(10)
    assert made.plane.overview.reason(made.job(waits)).estimated_start_ns
    made.cluster("beta").disconnect(10_000)
    made.plane.run(300, step_s=5)
    assert known(made, "beta") is ClusterState.LOST
    reasons = {each: made.plane.overview.reason(made.job(each)) for each in (ran, waits)}
    assert [each.estimated_start_ns for each in reasons.values()] == [None, None]
    assert all("1 node in a cluster that does not answer" in each.message for each in reasons.values())
    held = "it still holds 1 GPU in beta, which does not answer, and GPU-hours count on"
    assert [held in str(each.reason) for each in made.plane.overview.present(map(made.job, reasons))] == [True, False]
    found = look(made)
    assert (found.groups, found.unplanned) == ([], 2)


def test_groups_share_the_limit_and_count_what_they_leave_out() -> None:
    """Each group shows its largest running jobs and its first planned ones, in turn; all jobs are counted."""
    made = scene()
    made.plane.operations.put_queue(Queue("q", limit={"gpus": 1000}), "ada")
    made.submit(name="large", gpus=2, expected_duration_s=100)
    for number in range(2):
        made.submit(name=f"small-{number}", gpus=1, expected_duration_s=50)
    for number in range(4):
        made.submit(name=f"later-{number}", gpus=1, expected_duration_s=50)
    for number in range(3):
        made.submit(name=f"q-{number}", gpus=1, queue="q", expected_duration_s=50)
    found = look(made, Grouping.QUEUE, limit=4)
    shown = {group.name: [job.name.partition("-")[0] for job in group.jobs] for group in found.groups}
    assert [(group.running, group.planned) for group in found.groups] == [(3, 4), (0, 3)]
    assert shown == {"default": ["large", "later"], "q": ["q", "q"]}
    early = look(made, Grouping.QUEUE, within_s=60)
    assert early.unplanned + sum(group.planned for group in early.groups) == 7
    assert early.unplanned > 0


def test_a_job_of_several_clusters_is_in_the_group_of_each() -> None:
    """A gang over both clusters has a bar in each; a planned job that may use only one is in its group."""
    made = scene()
    made.submit(name="wide", gpus=2, replicas=2, gang=True, expected_duration_s=100)
    made.submit(name="bound", gpus=1, clusters={"beta"}, expected_duration_s=10)
    groups = {group.name: [job.name for job in group.jobs] for group in look(made).groups}
    assert groups == {"alpha": ["wide"], "beta": ["wide", "bound"]}
    assert [group.name for group in look(made, cluster="alpha").groups] == ["alpha"]
