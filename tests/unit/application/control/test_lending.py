"""Replicas of elastic jobs beyond their minimum, which leave for waiting jobs."""

from __future__ import annotations

import asyncio
import re
from random import Random
from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.domain.arrays import task_array
from seaway.domain.job_spec import Checkpoint, JobSpec
from seaway.domain.queues import Backfill, Elastic, Preemption, Queue, Reclaim
from seaway.domain.reasons import time_param
from seaway.scheduling.cycle.resize import leaving_order
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.queueing.tree import Owner
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

LONG_S = 1_000_000


def nodes_of_four(*clusters: int, **settings: Any) -> Scene:  # noqa: ANN401  # of the control loop
    """Create clusters with a number of nodes of four GPUs each."""
    names = ("alpha", "beta", "gamma")
    parts = [
        cluster(*[node(*[gpu() for _ in range(4)]) for _ in range(count)], name=name)
        for name, count in zip(names, clusters, strict=False)
    ]
    return scene(fleet(*parts), **settings)


def elastic_spec(least: int, most: int, **fields: Any) -> JobSpec:  # noqa: ANN401  # of a job
    """Return an elastic job of single GPUs."""
    bounds = {"replicas": most, "min_replicas": least, "max_replicas": most}
    return spec(**{"gpus": 1, "name": "hog", "tenant": "ta", "expected_duration_s": LONG_S} | bounds | fields)


def grown(made: Scene, least: int = 1, most: int = 112, **fields: Any) -> str:  # noqa: ANN401  # of a job
    """Submit an elastic job, and wait until it has what fits."""
    job = made.plane.submit(elastic_spec(least, most, **fields))[0]
    made.plane.run(100)
    return job


def put(made: Scene, *records: Any) -> None:  # noqa: ANN401  # queues, tenants and pools
    """Store queues, tenants and pools."""
    made.plane.writer.commit([Change(put=[*records])])
    made.plane.settle()


def size(made: Scene, job: str) -> int:
    """Return the number of replicas of a job."""
    return len(made.plane.attempt(job).remaining)


def resizes(made: Scene, job: str) -> list[str]:
    """Return the reasons of the resizes of a job."""
    return [each.reason for each in made.plane.store.events(0, 10_000, job_id=job) if each.kind == "resized"]


def test_many_tasks_get_their_room_at_once() -> None:
    """More tasks than one search covers do not wait for the grace period of the first ones."""
    made = nodes_of_four(3, 3)
    hog = grown(made)
    tasks = made.plane.submit(*[spec(gpus=1, tenant="tb", expected_duration_s=LONG_S) for _ in range(30)])
    made.plane.run(10)
    assert sum(made.state(each) == "running" for each in tasks) == 23
    assert (size(made, hog), made.job(hog).attempt) == (1, 1)


def test_both_jobs_say_what_happens() -> None:
    """The waiting job names the one that shrinks, and the time of its grace; the other one names the waiting job."""
    made = nodes_of_four(1)
    hog = grown(made, checkpoint=Checkpoint("SIGUSR1", 90))
    small = made.plane.submit(spec(gpus=1, name="small", tenant="ta"))[0]
    made.plane.run(10)
    assert resizes(made, hog)[-1] == "shrinks from 4 to 3 replicas for job small of queue 'default'"
    waits = next(each for each in made.plane.store.events(0, 1000, job_id=small) if each.state == "queued")
    ends = time_param(waits.at_ns + 90 * 10**9, seconds=True).replace("T", " ").replace("Z", " UTC")
    assert waits.reason == f"waits until job hog has shrunk by 1 replica, at {ends} at the latest"


def test_a_dry_run_names_the_jobs_that_would_be_displaced() -> None:
    """So it does for preemption and reclaim, and says that a job waits where the rules allow neither."""
    made = nodes_of_four(1)
    put(
        made,
        Queue("top", limit={"gpus": 4000}),
        Queue("a", parent="top", preemption=Preemption.PREEMPT_LOWER_PRIORITY),
        Queue("b", parent="top", reclaim=Reclaim.FAIR_SHARE),
    )
    for at in range(2):
        made.submit(name=f"low-{at}", gpus=2, queue="a", expected_duration_s=LONG_S)
    for fields, says in (
        ({"queue": "a", "gpus": 4, "priority": 5}, "would start now and displace low-0, low-1"),
        ({"queue": "b", "gpus": 1}, "would start now and displace low-"),
        ({"queue": "a", "gpus": 1}, "but queue 'top' holds 4 of its limit of 4 gpus"),
    ):
        new = spec(**fields, name="new", expected_duration_s=60)
        trial = made.plane.overview.dry_run(new, "ada")
        assert says in trial.message
        job = made.plane.submit(new)[0]
        made.plane.run(10)
        assert (made.state(job) == "running") is trial.fits
        made.plane.jobs.cancel(job, "ada")
        made.plane.run(20)


def test_a_task_that_is_displaced_has_its_index() -> None:
    """Tasks of an array have one name, so a list of them needs their indexes."""
    made = nodes_of_four(1)
    put(made, Queue("a", preemption=Preemption.PREEMPT_LOWER_PRIORITY))
    array = spec(name="low", gpus=2, queue="a", array=task_array("0-1"), expected_duration_s=LONG_S)
    asyncio.run(made.plane.jobs.submit([array], "ada"))
    made.plane.run(3)
    trial = made.plane.overview.dry_run(spec(queue="a", gpus=4, priority=5, expected_duration_s=60), "ada")
    assert trial.message.startswith("would start now and displace low_")
    assert {"low_0", "low_1"} <= set(re.split("[ ,;]+", trial.message))


def test_explain_names_who_shrinks_and_by_when() -> None:
    """The names are those of the tenants that the asker may see. The expected start is the end of the grace."""
    made = nodes_of_four(1)
    hog = grown(made, checkpoint=Checkpoint("SIGUSR1", 90))
    made.cluster("alpha").disconnect()
    small = made.plane.submit(spec(gpus=1, name="small", tenant="tb"))[0]
    made.plane.settle()
    ends_ns = made.clock.now_ns() + 90 * 10**9
    ends = time_param(ends_ns, seconds=True).replace("T", " ").replace("Z", " UTC")
    made.plane.run(3)
    reason = made.plane.overview.reason(made.job(small))
    waits = f"waits until job hog has shrunk by 1 replica, at {ends} at the latest"
    assert reason.message == f"{waits}; alpha/node-0 is reserved for it"
    assert (reason.code, [each.job_id for each in reason.room_from]) == ("reserved", [hog])
    assert reason.estimated_start_ns == pytest.approx(ends_ns, abs=2 * 10**9)
    other = made.plane.overview.reason(made.job(small), lambda tenant: tenant == "tb")
    assert made.job(small).reason == waits.replace("hog", hog)
    assert other.message == reason.message.replace("hog", hog)
    assert [(each.name, each.tenant) for each in other.room_from] == [("", "")]


def test_a_decision_to_shrink_survives_a_restart_at_every_commit() -> None:
    """The waiting job gets its place, and no more replicas leave."""
    for commits in range(1, 6):
        made = nodes_of_four(2)
        hog = grown(made, 2)
        small = made.plane.submit(spec(gpus=2, tenant="tb", expected_duration_s=LONG_S))[0]
        for _ in range(commits):
            made.plane.controller.step()
        made.plane.restart()
        made.plane.run(60)
        assert (made.state(small), size(made, hog), made.job(hog).attempt) == ("running", 6, 1)


def test_replicas_in_reachable_clusters_leave_while_another_cluster_is_lost() -> None:
    """A job over several clusters gives back what it has where the waiting job may run."""
    made = nodes_of_four(1, 1)
    hog = grown(made, 1)
    assert size(made, hog) == 8
    made.cluster("beta").disconnect()
    made.plane.run(20)
    small = made.plane.submit(spec(gpus=2, tenant="tb"))[0]
    made.plane.run(30)
    assert made.state(small) == "running"
    assert made.where(small) == "alpha"


def helped(made: Scene) -> list[str]:
    """Return the waiting jobs that would fit, within all limits, if all lent replicas were gone."""
    live = made.plane.controller.live
    snapshot, tree = live.fleet.snapshot.copy(), live.tree.fork()
    for job_id, key in live.extended.items():
        attempt = live.attempts[key]
        keeps = tree.node(attempt.spec.queue).queue.elastic is Elastic.KEEP
        if keeps or any(each.completed for each in attempt.placements):
            continue
        most = len(attempt.remaining) - attempt.spec.least_replicas
        spare = [each.replica for workload in leaving_order(attempt) for each in workload][:most]
        booking = live.fleet.booking(key)
        assert booking
        booking.part(set(spare)).release(snapshot)
        share = len(attempt.remaining) - len(spare)
        amounts = {name: amount * share // len(attempt.remaining) for name, amount in attempt.amounts.items()}
        job = made.job(job_id)
        tree.hold(key, Owner(job.spec.queue, job.spec.tenant, job.submitted_by), amounts)
    found, scheduler = [], made.plane.controller.scheduler
    for entry in live.waiting.entries():
        reserved = scheduler.reservations.made() and not scheduler.reservations.may_pass(entry)
        if live.waiting.is_behind(entry) or (reserved and not scheduler.reservations.own(entry)):
            continue
        if tree.hit(entry.owner, entry.kind.requested, entry.id) or tree.model_hits(entry.owner, entry.kind.requested):
            continue
        profile = scheduler.profile(entry.queue)
        if decide(snapshot.copy(), JobQueue(snapshot, [entry.job]), profile, dry_run=True).jobs_placed[0]:
            found.append(entry.id)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_no_job_waits_for_room_that_is_lent(seed: int) -> None:
    """After the grace period, no job that limits admit waits while elastic jobs hold replicas that would let it run.

    Queues have limits and guarantees, and one keeps its replicas. Jobs of several sizes come and end.
    """
    random = Random(seed)
    made = nodes_of_four(2, random.choice((1, 2)))
    put(
        made,
        Queue("root", limit={"gpus": random.choice((8000, 12_000))}),
        *[
            Queue(
                name,
                parent=random.choice(("root", "")),
                guarantee={"gpus": 1000 * random.randrange(3)},
                backfill=random.choice((Backfill.GREEDY, Backfill.EASY, Backfill.NONE)),
                grow_cooldown_s=random.choice((0, 30)),
                elastic=Elastic.KEEP if name == "c" and random.random() < 0.3 else Elastic.LEND,
            )
            for name in "abc"
        ],
    )
    for _ in range(30):
        shape = random.choice(
            (
                {"gpus": random.randrange(1, 5)},
                {"gpus": 1, "replicas": random.randrange(2, 4), "gang": True},
                {"gpus": 1, "replicas": 12, "min_replicas": random.randrange(1, 4), "max_replicas": 12},
                {"gpus": 2, "replicas": 6, "min_replicas": 1, "max_replicas": 6},
            )
        )
        more = {"queue": random.choice("abc"), "tenant": random.choice(("ta", "tb")), "priority": random.randrange(3)}
        made.plane.submit(spec(**shape, **more, expected_duration_s=random.randrange(20, 300)))
        made.plane.run(random.choice((3, 12, 40)))
        made.plane.run(45)
        assert helped(made) == []
