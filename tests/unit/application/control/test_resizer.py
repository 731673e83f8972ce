"""Resizes of running jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.application.control.observe import without_leaving
from seaway.application.control.reports import Observation
from seaway.application.ports.backend import Changes
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.errors import RejectedError
from seaway.domain.job_state import JobState
from seaway.domain.placement import Placement
from seaway.domain.queues import Preemption, Queue
from seaway.domain.reasons import time_param
from seaway.scheduling.cycle.resize import chosen_to_leave
from seaway.testing.plugins import cluster, fleet, gpu, node
from seaway.wire.job_out import job_fields
from tests.unit.application.scene import Scene, scene, spec


def nodes_of_four(count: int = 2, **settings: float) -> Scene:
    """Create nodes of four GPUs."""
    return scene(fleet(cluster(*[node(*[gpu() for _ in range(4)]) for _ in range(count)], name="alpha")), **settings)


def service(made: Scene, replicas: int, **fields: object) -> str:
    """Start a service of single GPUs."""
    job = made.plane.submit(spec(gpus=1, template="deployment", restarts=True, replicas=replicas, **fields))[0]
    made.plane.run(10)
    assert made.state(job) == "running"
    return job


def scaled(made: Scene, job: str, replicas: int) -> None:
    """Set the number of replicas of a job, and wait."""
    made.plane.jobs.change(job, replace(made.job(job).spec, replicas=replicas), "ada")
    made.plane.run(10)


def nodes(made: Scene, job: str) -> list[str]:
    """Return the node of each replica."""
    return [each.node for each in made.plane.attempt(job).placements]


def pods(made: Scene, job: str) -> list[int]:
    """Return the replicas that the clusters run."""
    seen = made.plane.controller.live.seen[job, made.job(job).attempt]
    return sorted(each.replica for copy in seen.values() for each in copy.replicas)


def test_a_service_grows_and_shrinks_without_a_stop() -> None:
    """The attempt stays, replicas come and go, and the queue holds what the attempt holds."""
    made = nodes_of_four()
    job = service(made, 2)
    scaled(made, job, 6)
    attempt = made.plane.attempt(job)
    assert (attempt.number, len(attempt.placements), attempt.spec.replicas) == (1, 6, 6)
    assert pods(made, job) == list(range(6))
    assert made.plane.controller.live.tree.node("default").use.held["gpus"] == 6000
    scaled(made, job, 3)
    attempt = made.plane.attempt(job)
    assert (attempt.number, len(attempt.placements), made.state(job)) == (1, 3, "running")
    assert len(pods(made, job)) == 3
    assert made.plane.controller.live.tree.node("default").use.held["gpus"] == 3000
    reasons = [each.reason for each in made.plane.store.events(0, 1000, job_id=job) if each.kind == "resized"]
    assert [each.partition(" replica")[0] for each in reasons] == ["grows from 2 to 6", "shrinks from 6 to 3"]


def test_a_resize_is_the_reason_of_a_job_until_it_has_ended() -> None:
    """While replicas come or go, the reason of the job names both numbers; then it names its nodes."""
    made = nodes_of_four()
    job = service(made, 2)

    def reason() -> str:
        (shown,) = made.plane.overview.present([made.job(job)])
        assert made.plane.overview.reason(made.job(job)).message == f"running: {shown.reason}"
        return shown.reason

    assert reason() == "runs on alpha/node-0"
    for replicas, said in ((6, "grows from 2 to 6 replicas"), (3, "shrinks from 6 to 3 replicas")):
        made.plane.jobs.change(job, replace(made.job(job).spec, replicas=replicas), "ada")
        made.plane.controller.step()
        assert reason().startswith(said)
        made.plane.run(10)
        assert reason().startswith("runs on alpha/node-")


def test_replicas_leave_so_that_a_whole_node_becomes_free() -> None:
    """Of replicas on two nodes, those on the emptier node leave."""
    made = nodes_of_four()
    other = service(made, 2)
    job = service(made, 5)
    scaled(made, job, 2)
    assert set(nodes(made, job)) == set(nodes(made, other))


def test_devices_of_leaving_replicas_stay_allocated_until_the_cluster_confirms() -> None:
    """A cluster that does not answer keeps the devices of its leaving replicas."""
    made = nodes_of_four(1)
    job = service(made, 4)
    made.cluster("alpha").disconnect()
    made.plane.jobs.change(job, replace(made.job(job).spec, replicas=1), "ada")
    waits = made.plane.submit(spec(gpus=1))[0]
    made.plane.run(3)
    attempt = made.plane.attempt(job)
    assert (len(attempt.placements), len(attempt.remaining)) == (4, 1)
    assert made.state(waits) in {"pending", "queued"}
    made.cluster("alpha").reconnect()
    made.plane.run(10)
    assert len(made.plane.attempt(job).placements) == 1
    assert made.state(waits) == "running"


def test_a_cluster_that_refuses_more_replicas_leaves_the_others_running() -> None:
    """The new replicas are taken back with the reason, and tried again later."""
    made = nodes_of_four()
    job = service(made, 2)
    made.cluster("alpha").refuse("a quota")
    scaled(made, job, 4)
    attempt = made.plane.attempt(job)
    assert (attempt.number, len(attempt.remaining), made.state(job)) == (1, 2, "running")
    assert "a quota" in made.job(job).reason
    made.cluster("alpha").refuse("")
    made.plane.run(700)
    assert len(made.plane.attempt(job).placements) == 4


def test_a_resize_survives_a_restart_at_every_commit() -> None:
    """A process that ends before or after any commit of a resize loses and doubles nothing."""
    for target in (1, 6):
        for commits in range(4):
            made = nodes_of_four()
            job = service(made, 3)
            made.plane.jobs.change(job, replace(made.job(job).spec, replicas=target), "ada")
            for _ in range(commits):
                made.plane.controller.step()
            made.plane.restart()
            made.plane.run(20)
            attempt = made.plane.attempt(job)
            assert (attempt.number, len(attempt.placements)) == (1, target)
            assert len(pods(made, job)) == target


def test_waiting_replicas_of_independent_ones_start_as_room_appears() -> None:
    """A job whose replicas start one by one gets the others in the same attempt, before the first ones end."""
    made = nodes_of_four(1)
    made.submit(gpus=2, expected_duration_s=30)
    job = made.plane.submit(spec(gpus=1, replicas=4, one_by_one=True, expected_duration_s=1000))[0]
    made.plane.run(10)
    assert len(made.plane.attempt(job).placements) == 2
    assert made.job(job).reason.endswith("2 other replicas wait for room")
    made.plane.run(60)
    assert [each.replica for each in made.plane.attempt(job).placements] == [0, 1, 2, 3]
    assert made.job(job).attempt == 1


def test_completed_replicas_release_their_devices_before_the_others_end() -> None:
    """Their devices and amounts are free for other jobs, across a restart, and the job still completes as a whole."""
    parts = [cluster(node(gpu()), name=name) for name in ("alpha", "beta")]
    made = scene(fleet(*parts))
    blocker = made.submit(gpus=1, expected_duration_s=60)
    job = made.plane.submit(spec(gpus=1, replicas=2, one_by_one=True, expected_duration_s=100))[0]
    made.plane.run(70)
    later = made.plane.submit(spec(gpus=1, expected_duration_s=1000))[0]
    made.plane.run(10)
    assert [made.state(each) for each in (blocker, job, later)] == ["completed", "running", "queued"]
    made.plane.run(40)
    first, second = made.plane.attempt(job).placements
    assert (first.completed, second.completed, made.job(job).attempt) == (True, False, 1)
    assert (made.state(job), made.state(later), made.where(later)) == ("running", "running", first.cluster)
    assert made.plane.controller.live.tree.node("default").use.held["gpus"] == 2000
    made.plane.operations.cordon(first.cluster, "", "eve", "", drain=True)
    made.plane.restart()
    made.plane.run(20)
    assert (made.state(job), made.job(job).attempt) == ("running", 1)  # the drain concerns no replica that runs
    made.plane.run(100)
    assert made.state(job) == "completed"
    assert made.job(job).reason == "all replicas completed"


@pytest.mark.parametrize(
    ("template", "node", "released", "attempt"),
    [
        ("kueue", "", True, 1),
        ("torchrun", "", True, 1),
        ("volcanojob", "", True, 2),
        ("pytorchjob", "", True, 2),
        ("pytorchjob", "node-1", False, 1),  # its pod ran in place of another one, which may still run on its node
        ("rayjob", "", False, 1),
    ],
)
def test_templates_release_the_devices_of_completed_replicas(
    template: str, node: str, released: bool, attempt: int
) -> None:
    """Those of built-in templates whose pods end one by one. One object for all replicas is not created again then."""
    made = nodes_of_four(1)
    job = made.plane.submit(spec(gpus=1, replicas=4, template=template))[0]
    made.plane.run(10)
    copy = made.plane.controller.live.seen[job, 1]["alpha"]
    first, *others = copy.replicas
    first = replace(first, phase=WorkloadPhase.SUCCEEDED, node=node or first.node)
    seen = Changes("", complete=False, workloads=(replace(copy, replicas=(first, *others)),))
    report = Observation("alpha", seen, made.clock.monotonic_ns())
    made.plane.writer.commit(made.plane.controller.observer.changes([report]))
    other = made.submit(gpus=1)
    assert made.plane.attempt(job).placements[0].completed is released
    assert bool(made.plane.store.attempts(other)) is released
    made.plane.jobs.cancel(other, "ada")
    made.cluster("alpha").vanish(job, 1)
    made.plane.run(120)
    assert (made.state(job), made.job(job).attempt) == ("running", attempt)
    said = [each.reason for each in made.plane.store.events(0, 100, job_id=job)]
    assert any("are gone, and others have completed" in each for each in said) is (attempt == 2)


@pytest.mark.parametrize("template", ["raycluster", "pytorchjob"])
def test_the_replica_that_serves_the_others_never_leaves(template: str) -> None:
    """The head of a Ray cluster and the rendezvous of a training stay."""
    made = nodes_of_four()
    fields = {"min_replicas": 1, "max_replicas": 8} if template == "pytorchjob" else {"restarts": True}
    job = made.plane.submit(spec(gpus=1, template=template, replicas=5, single_cluster=True, **fields))[0]
    made.plane.run(20)
    scaled(made, job, 1)
    assert [each.replica for each in made.plane.attempt(job).placements] == [0]


def test_replicas_of_one_workload_leave_from_the_last_one_on() -> None:
    """Its controller numbers the pods of a workload, so a gap is impossible."""
    made = nodes_of_four()
    attempt = made.plane.attempt(service(made, 1))
    place = replace(attempt.placements[0], slices=())
    attempt = replace(attempt, placements=tuple(replace(place, replica=at) for at in range(5)))
    snapshot = made.plane.controller.live.fleet.snapshot
    assert chosen_to_leave(attempt, 2, snapshot) == {3, 4}
    assert chosen_to_leave(attempt, 2, snapshot, {4}) == frozenset()


def test_the_others_of_a_workload_remember_what_it_began_with() -> None:
    """The pod template of a workload names its first replicas, and must not change when some leave."""
    first = [Placement("j", at, "alpha", "n", leaving=at > 2) for at in range(4)]
    apart = Placement("j", 9, "alpha", "m")
    left = without_leaving([*first, apart], {"alpha"})
    assert [(each.replica, each.beside) for each in left] == [(0, "0-3"), (1, "0-3"), (2, "0-3"), (9, "")]


def test_a_gang_that_is_not_elastic_restarts() -> None:
    """Programs that know their number of replicas are started again with the new number."""
    made = nodes_of_four()
    job = made.plane.submit(spec(gpus=1, replicas=2, gang=True, expected_duration_s=1000))[0]
    made.plane.run(10)
    scaled(made, job, 3)
    made.plane.run(10)
    assert (made.job(job).attempt, made.plane.state(job)) == (2, JobState.RUNNING)


def elastic(made: Scene, least: int, most: int, **fields: object) -> str:
    """Submit an elastic job of single GPUs, and wait until it has what fits."""
    bounds = {"replicas": most, "min_replicas": least, "max_replicas": most}
    job = made.plane.submit(spec(gpus=1, **{"expected_duration_s": 100_000} | bounds | fields))[0]
    made.plane.run(200)
    return job


def test_a_gang_keeps_its_minimum() -> None:
    """An elastic gang waits for its minimum, and a lower wanted number is refused."""
    made = nodes_of_four(1)
    made.submit(gpus=2, expected_duration_s=1000)
    job = elastic(made, 3, 8, gang=True)
    assert made.state(job) == "queued"
    with pytest.raises(RejectedError, match="between 3 and 8"):
        replace(made.job(job).spec, replicas=2)


def test_an_elastic_job_says_what_its_next_replicas_wait_for() -> None:
    """In its cool-down it names the end of that, also with free devices; after it, room that no job waits for."""
    made = nodes_of_four(1)
    job = elastic(made, 1, 8)
    reason = made.plane.overview.reason(made.job(job)).message
    assert reason.endswith("; up to 4 more replicas follow once there is room that no job waits for")
    other = made.plane.submit(spec(gpus=1, expected_duration_s=5))[0]
    made.plane.run(20)
    assert made.state(other) == "completed"
    (ends_ns,) = [made.clock.now_ns() + each - made.clock.monotonic_ns() for each in resting(made)]
    ends = time_param(ends_ns, seconds=True).replace("T", " ").replace("Z", " UTC")
    reason = made.plane.overview.reason(made.job(job)).message
    assert reason.endswith(f"; up to 5 more replicas follow after its cool-down, which ends at {ends}")
    assert "room" not in reason


def resting(made: Scene) -> list[int]:
    """Return the monotonic end of each cool-down."""
    return [*made.plane.controller.live.resize_after_ns.values()]


def test_an_elastic_job_shrinks_before_another_is_preempted() -> None:
    """A job of higher priority takes what an elastic one has beyond its minimum; no job is stopped."""
    made = nodes_of_four(1)
    made.plane.writer.commit([Change(put=[Queue("default", preemption=Preemption.PREEMPT_LOWER_PRIORITY)])])
    other = made.submit(gpus=1, expected_duration_s=100_000)
    job = elastic(made, 1, 8)
    assert len(made.plane.attempt(job).placements) == 3
    urgent = made.plane.submit(spec(gpus=1, replicas=2, priority=5, expected_duration_s=100_000))[0]
    made.plane.run(20)
    assert [made.state(each) for each in (other, job, urgent)] == ["running"] * 3
    assert (len(made.plane.attempt(job).placements), made.job(job).attempt) == (1, 1)
    reasons = [each.reason for each in made.plane.store.events(0, 1000, job_id=job) if each.kind == "resized"]
    assert "shrinks from 3 to 1 replica, its minimum, for job work of queue 'default'" in reasons[-1]
    waited = [each.reason for each in made.plane.store.events(0, 1000, job_id=urgent)]
    assert any(each.startswith("waits until job work has shrunk by 2 replicas, at 20") for each in waited)


def test_a_job_shows_the_replicas_that_it_holds_beside_those_that_it_wants() -> None:
    """The number follows growth and shrinking, survives a restart, and is 0 without a place."""

    def shown() -> tuple[int, int]:
        fields = job_fields(made.job(job))
        return fields["held_replicas"], fields["replicas"]

    made = nodes_of_four(1)
    by_priority(made)
    job = made.plane.submit(spec(gpus=1, replicas=8, min_replicas=1, max_replicas=8))[0]
    assert shown() == (0, 8)
    made.plane.run(200)
    assert shown() == (4, 8)
    made.plane.submit(spec(gpus=3, priority=5, expected_duration_s=100_000))
    made.plane.run(20)
    made.plane.restart()
    assert shown() == (1, 8)
    made.plane.jobs.cancel(job, "ada")
    made.plane.run(20)
    assert shown() == (0, 8)


def by_priority(made: Scene, min_runtime_s: int = 0) -> None:
    """Let jobs of the default queue displace those of a lower priority."""
    queue = Queue("default", preemption=Preemption.PREEMPT_LOWER_PRIORITY, min_runtime_s=min_runtime_s)
    made.plane.writer.commit([Change(put=[queue])])


def urgent(made: Scene, *sizes: int, **fields: object) -> list[str]:
    """Submit jobs of a higher priority together, and wait until they run."""
    jobs = [spec(gpus=each, **({"priority": 5, "expected_duration_s": 100_000} | fields)) for each in sizes]
    found = made.plane.submit(*jobs)
    made.plane.run(30)
    return found


@pytest.mark.parametrize("age_s", [1, 100_000])
def test_what_shrinking_does_not_give_is_taken_by_preemption(age_s: int) -> None:
    """A job that needs more than shrinking frees displaces one job as well, however much work that loses.

    The elastic job keeps its minimum.
    """
    made = nodes_of_four(1)
    by_priority(made)
    other = made.submit(gpus=1, expected_duration_s=1_000_000)
    made.plane.run(age_s, age_s)
    job = elastic(made, 1, 8, expected_duration_s=1_000_000)
    (large,) = urgent(made, 3)
    assert [made.state(each) for each in (large, other, job)] == ["running", "queued", "running"]
    assert (len(made.plane.attempt(job).placements), made.job(job).attempt) == (1, 1)
    assert made.plane.controller.live.tree.node("default").use.held["gpus"] == 4000
    waited = [each.reason for each in made.plane.store.events(0, 1000, job_id=large)]
    shrinks = "waits until job work has shrunk by 2 replicas and job work has ended, at 20"
    assert any(each.startswith(shrinks) for each in waited)


def test_a_decision_to_shrink_and_displace_survives_a_restart_at_every_commit() -> None:
    """The winner gets its place, nothing is lost, and neither more jobs end nor more replicas leave."""
    for commits in range(1, 6):
        made = nodes_of_four(2)
        by_priority(made)
        made.plane.writer.commit([Change(put=[Queue("late")])])
        others = made.plane.submit(*[spec(gpus=1, expected_duration_s=100_000) for _ in range(2)])
        job = elastic(made, 2, 8)
        large = made.plane.submit(spec(gpus=3, replicas=2, gang=True, priority=5, expected_duration_s=100_000))[0]
        for _ in range(commits):
            made.plane.controller.step()
        made.plane.restart()
        late = made.plane.submit(spec(gpus=1, queue="late", expected_duration_s=100_000))[0]
        made.plane.run(60)
        assert [made.state(each) for each in (large, job)] == ["running", "running"]
        assert sum(made.state(each) == "running" for each in (*others, late)) == 0
        assert (len(made.plane.attempt(job).placements), made.job(job).attempt) == (2, 1)


def test_a_job_that_shrank_does_not_take_the_room_back() -> None:
    """The room is reserved for the job that it made room for, also across a restart."""
    made = nodes_of_four(1)
    made.plane.writer.commit([Change(put=[Queue("default", preemption=Preemption.PREEMPT_LOWER_PRIORITY)])])
    job = elastic(made, 1, 8)
    urgent = made.plane.submit(spec(gpus=2, priority=5, expected_duration_s=100_000))[0]
    made.plane.settle()
    made.plane.restart()
    made.plane.run(200)
    assert made.state(urgent) == "running"
    assert len(made.plane.attempt(job).placements) == 2


def test_a_displaced_elastic_job_counts_with_all_it_holds_until_it_is_gone() -> None:
    """Searches for other jobs take its minimum and the rest apart, and leave both counted."""
    made = nodes_of_four()
    made.plane.writer.commit([Change(put=[Queue("default", preemption=Preemption.PREEMPT_LOWER_PRIORITY)])])
    elastic(made, 4, 8)
    made.cluster("alpha").disconnect()
    jobs = [spec(gpus=4, replicas=2, priority=6), spec(gpus=3, priority=5)]
    made.plane.submit(*(replace(each, expected_duration_s=100_000) for each in jobs))
    made.plane.run(2)
    held = made.plane.controller.live.tree.node("default").use.held["gpus"]
    attempts = made.plane.controller.live.attempts.values()
    assert held == sum(each.amounts["gpus"] for each in attempts) == 8000


@pytest.mark.parametrize("then", ["nothing", "restart", "gone after a restart"])
def test_replicas_added_to_a_workload_that_had_ended_leave_again(then: str) -> None:
    """The cluster ended the workload before it got the command, so the job completes with the replicas that ran.

    It neither grows nor runs them again after a restart, or if the workload is gone then.
    """
    made = nodes_of_four(1)
    made.plane.writer.commit([Change(put=[Queue("small", limit={"gpus": 1000})])])
    job = elastic(made, 1, 3, queue="small", expected_duration_s=300)
    assert len(made.plane.attempt(job).placements) == 1
    made.cluster("alpha").disconnect()
    made.plane.clock.advance_s(105)
    made.plane.writer.commit([Change(put=[Queue("small")])])
    made.plane.run(5)
    assert len(made.plane.attempt(job).placements) == 3
    made.cluster("alpha").reconnect()
    if then == "restart":
        made.plane.run(20)
        made.plane.restart()
    while then == "gone after a restart" and not any(each.startswith("shrinks") for each in resizes(made, job)):
        made.clock.advance_s(1)
        made.plane.controller.step()
    if then == "gone after a restart":
        made.plane.restart()
        made.cluster("alpha").vanish(job, 1)
    made.plane.run(120)
    assert not any(each.kind == "drift" for each in made.plane.store.events(0, 1000, job_id=job))
    reasons = resizes(made, job)
    assert made.state(job) == "completed", reasons
    assert reasons[-1] == "shrinks from 3 to 1 replica: the workload in alpha ended before they were added"


def resizes(made: Scene, job: str) -> list[str]:
    """Return the reasons of the resizes of a job."""
    return [each.reason for each in made.plane.store.events(0, 1000, job_id=job) if each.kind == "resized"]


@pytest.mark.parametrize("how", ["node", "device", "drain"])
def test_an_elastic_job_continues_without_the_replicas_of_a_lost_node(how: str) -> None:
    """It shrinks in the same attempt, never runs on that node, and grows again when there is room elsewhere."""
    made = nodes_of_four(3)
    job = elastic(made, 2, 8, gang=True)
    place = made.plane.attempt(job).placements[-1]
    lost = sum(each.node == place.node for each in made.plane.attempt(job).placements)
    if how == "node":
        made.cluster("alpha").fail_node(place.node)
    elif how == "device":
        lost = 1
        made.cluster("alpha").fail_device(place.slices[0].uuid)
    else:
        made.plane.operations.cordon("alpha", place.node, "eve", "", drain=True)
    made.plane.run(3)
    said = {"node": f"node {place.node} failed", "device": "device", "drain": f"alpha/{place.node} is drained"}
    assert resizes(made, job)[-1].startswith(f"shrinks from 8 to {8 - lost} replicas: {said[how]}")
    made.plane.run(200)
    attempt = made.plane.attempt(job)
    assert (attempt.number, len(attempt.placements), made.state(job)) == (1, 8, "running")
    assert place not in attempt.placements
    assert how == "device" or place.node not in nodes(made, job)
    assert pods(made, job) == sorted(each.replica for each in attempt.placements)


def test_an_elastic_job_restarts_if_it_would_lose_its_minimum() -> None:
    """Fewer replicas than its minimum, or its head, are no elastic job."""
    made = nodes_of_four()
    job = elastic(made, 6, 8, gang=True)
    made.cluster("alpha").fail_node(nodes(made, job)[0], 60)
    made.plane.run(300)
    assert (made.job(job).attempt, len(made.plane.attempt(job).placements), made.state(job)) == (2, 8, "running")
    made = nodes_of_four(3)
    job = elastic(made, 1, 8, template="pytorchjob", single_cluster=True)
    placed = made.plane.attempt(job).placements
    made.plane.operations.cordon("alpha", placed[-1].node, "eve", "", drain=True)
    made.plane.run(200)
    assert made.job(job).attempt == 1
    made.plane.operations.cordon("alpha", placed[0].node, "eve", "", drain=True)
    made.plane.run(3)
    assert made.job(job).attempt == 2


def test_an_elastic_job_continues_without_a_lost_cluster() -> None:
    """Replicas in other clusters run on. The pods of the lost cluster are removed when it answers again."""
    fields = {"grace_period_s": 30, "stale_after_s": 10}
    parts = [cluster(node(*[gpu() for _ in range(4)]), name=name) for name in ("alpha", "beta", "gamma")]
    made = scene(fleet(*parts), **fields)
    job = elastic(made, 2, 8)
    assert sorted(made.job(job).clusters) == ["alpha", "beta"]
    made.cluster("beta").disconnect()
    made.plane.run(300)
    attempt = made.plane.attempt(job)
    assert (attempt.number, {each.cluster for each in attempt.remaining}) == (1, {"alpha", "gamma"})
    assert "shrinks from 8 to 4 replicas: beta does not answer" in resizes(made, job)
    made.cluster("beta").reconnect()
    made.plane.run(10)
    assert sorted(made.job(job).clusters) == ["alpha", "gamma"]
    assert made.phase("beta", job, attempt=1) is None


def test_the_loss_of_a_node_survives_a_restart_at_every_commit() -> None:
    """A process that ends before or after any commit of it loses and doubles nothing."""
    for commits in range(4):
        made = nodes_of_four(3)
        job = elastic(made, 2, 8, gang=True)
        lost = nodes(made, job)[-1]
        made.cluster("alpha").fail_node(lost)
        for _ in range(commits):
            made.plane.controller.step()
        made.plane.restart()
        made.plane.run(200)
        attempt = made.plane.attempt(job)
        assert (attempt.number, len(attempt.placements), made.state(job)) == (1, 8, "running")
        assert lost not in nodes(made, job)
