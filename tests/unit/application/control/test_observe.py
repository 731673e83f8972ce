from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from seaway.application.control.rejections import Refusals
from seaway.application.control.reports import Answered, Observation
from seaway.application.control.settings import Drift
from seaway.application.control.state import deployment
from seaway.application.ports.backend import Answer, Changes
from seaway.application.records import Event, PendingCommand, Verb
from seaway.application.views import ClusterState
from seaway.domain.deployment import Cause, ObjectDrift, Reach, UnmanagedPod, Workload, WorkloadPhase
from seaway.domain.job_spec import Expose, ServiceType
from seaway.domain.job_state import AttemptState
from seaway.domain.placement import DeviceSlice
from seaway.domain.queues import Queue
from seaway.domain.runtime import Run
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.records import IDS, NOW_NS
from tests.unit.application.scene import Scene, known, scene, spec


def running(**fields: object) -> tuple[Scene, str]:
    """Create a scene in which one job runs."""
    made = scene()
    job_id = made.submit(**fields)
    made.plane.run(5)
    assert made.state(job_id) == "running"
    return made, job_id


def spread() -> tuple[Scene, str]:
    """Create a scene in which a job of four replicas runs in both clusters."""
    made, job_id = running(replicas=4)
    assert set(made.job(job_id).clusters) == {"alpha", "beta"}
    return made, job_id


def test_a_job_is_placed_taken_over_and_runs_to_completion() -> None:
    """Every transition of a job is an event, in order, with actor and reason."""
    made = scene()
    job_id = made.submit(expected_duration_s=10)
    made.plane.run(20)
    assert made.plane.states(job_id) == ["pending", "queued", "scheduled", "deploying", "running", "completed"]
    reported = made.plane.store.events(0, 100, job_id=job_id)
    assert all(event.reason and event.at_ns for event in reported)
    assert [event.actor for event in reported] == ["ada", "scheduler", "scheduler", *["controller"] * 3]
    job, attempt = made.job(job_id), made.plane.attempt(job_id)
    assert (job.attempt, attempt.state) == (1, AttemptState.ENDED)
    assert job.started_ns is not None
    assert job.ended_ns is not None
    assert job.started_ns < job.ended_ns
    assert not list(made.plane.store.pending_commands())


def test_addresses_for_clients_outside_are_events_of_a_running_job() -> None:
    """They are reported once, with a new version of the job, and not again after a restart; others are not."""
    made = scene()
    serving = {"run": Run(ports=(8080,)), "template": "deployment"}
    inside = made.submit(**serving)
    outside = made.submit(**serving, expose=Expose(ServiceType.NODE_PORT))
    made.plane.run(5)

    def reported(job_id: str) -> list[str]:
        return [each.reason for each in made.plane.store.events(0, 100, job_id=job_id) if each.kind == "endpoint"]

    (copy,) = made.plane.overview.workloads(made.job(outside))
    assert copy.endpoints[0].reach is Reach.OUTSIDE
    assert reported(outside) == [f"port 8080 answers at {copy.address}"]
    version = made.job(outside).version
    made.plane.restart()
    made.plane.run(5)
    assert (len(reported(outside)), reported(inside), made.job(outside).version) == (1, [], version)
    (copy,) = made.plane.overview.workloads(made.job(inside))
    assert [(each.reach, bool(each.reason)) for each in copy.endpoints] == [(Reach.CLUSTER, True)]


def test_a_cluster_whose_port_of_nodes_is_taken_rejects_a_job() -> None:
    """The next job with the same fixed port runs in another cluster; a third one waits until a port is free."""
    made = scene()
    serving = {"run": Run(ports=(8080,)), "template": "deployment", "restarts": True}
    expose = Expose(ServiceType.NODE_PORT, node_ports=(30080,))
    jobs = [made.submit(**serving, expose=expose) for _ in range(3)]
    made.plane.run(60)
    running = [each for each in jobs if made.state(each) == "running"]
    assert {made.where(each) for each in running} == {"alpha", "beta"}
    for each in running:
        (copy,) = made.plane.overview.workloads(made.job(each))
        assert copy.address.endswith(":30080")
    (waiting,) = {*jobs}.difference(running)
    said = [each.reason for each in made.plane.store.events(0, 100, job_id=waiting)]
    assert any("port 30080 of nodes is allocated to another job" in each for each in said)
    made.plane.jobs.cancel(running[0], "ada")
    for _ in range(100):
        made.plane.run(10)
        if made.state(waiting) == "running":
            break
    assert made.state(waiting) == "running"


def test_nothing_is_reported_before_it_is_stored() -> None:
    """The step that stores a placement sends nothing; the next one sends the commands."""
    made = scene()
    job_id = made.plane.submit(spec())[0]
    made.plane.controller.step()
    assert made.state(job_id) == "scheduled"
    assert [each.verb for each in made.plane.store.pending_commands()] == [Verb.CREATE]
    assert made.phase(made.where(job_id), job_id) is None
    made.plane.controller.step()
    assert made.phase(made.where(job_id), job_id) is WorkloadPhase.STARTING
    assert not list(made.plane.store.pending_commands())


def test_a_late_answer_of_an_old_attempt_changes_nothing() -> None:
    """While an attempt is being removed, the answer to its create command does not matter."""
    made = scene()
    job_id = made.plane.submit(spec())[0]
    made.plane.controller.step()
    created = next(iter(made.plane.store.pending_commands()))
    made.plane.jobs.suspend(job_id, "ada")
    made.plane.settle()
    observer = made.plane.controller.observer
    for answer in (Answer(done=True), Answer(done=False, refused=True, reason="late")):
        assert not observer.changes([Answered(created, answer)])
    assert made.state(job_id) == "suspended"


def test_what_is_seen_of_an_old_attempt_changes_nothing() -> None:
    """A workload of an earlier attempt that fails or ends does not affect the job."""
    made, job_id = running(retries=1)
    made.cluster(made.where(job_id)).fail_copy(job_id, 1, "killed")
    made.plane.run(15)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)
    before = made.job(job_id)
    for phase in (WorkloadPhase.FAILED, WorkloadPhase.SUCCEEDED, WorkloadPhase.GONE, WorkloadPhase.RUNNING):
        late = Observation(
            "alpha", Changes("late", complete=False, workloads=(Workload(job_id, 1, "alpha", phase),)), 0
        )
        assert not made.plane.controller.observer.changes([late])
    assert made.job(job_id) == before


def test_a_removal_by_hand_is_repaired() -> None:
    """A vanished workload is re-created in the same attempt, with an event."""
    made, job_id = running()
    made.cluster(made.where(job_id)).vanish(job_id, 1)
    made.plane.run(5)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)
    assert made.plane.states(job_id)[-3:] == ["running", "deploying", "running"]
    assert "drift" in [event.kind for event in made.plane.store.events(0, 100, job_id=job_id)]


@pytest.mark.parametrize("drift", Drift)
def test_changes_of_others_are_reported_once_and_repaired_as_configured(drift: Drift) -> None:
    """A cluster that reports a change gets the command again, or only an event is written; a job keeps its attempt."""
    made = scene(drift=drift.value)
    job_id = made.submit()
    made.plane.run(5)
    at, observer = made.where(job_id), made.plane.controller.observer
    (copy,) = made.plane.overview.workloads(made.job(job_id))
    drifted = ObjectDrift("jobs/sw: kubectl changed spec.parallelism", "2")
    changed = replace(copy, drift=(drifted,))
    report = Observation(at, Changes("x", complete=False, workloads=(changed,)), 0)
    (change,) = observer.changes([report])
    how = {Drift.REPAIR: "it is restored", Drift.REPORT: "it stays"}[drift]
    assert [each.reason for each in change.insert if isinstance(each, Event)] == [f"{at}: {drifted.text}; {how}"]
    assert [each.verb for each in change.put if isinstance(each, PendingCommand)] == (
        [Verb.CREATE] if drift is Drift.REPAIR else []
    )
    assert not observer.changes([report])
    again = Changes("y", complete=False, workloads=(replace(copy, drift=(replace(drifted, version="4"),)),))
    assert bool(observer.changes([Observation(at, again, 0)])) == (drift is Drift.REPAIR)


def test_what_vanishes_again_and_again_is_placed_again() -> None:
    """After three repairs of one attempt a user must want it gone: it ends, and after a pause another follows."""
    made, job_id = running()
    for _ in range(4):
        made.cluster(made.where(job_id)).vanish(job_id, 1)
        made.plane.run(4)
    assert made.job(job_id).attempt == 1
    assert "are gone for the 4th time" in made.job(job_id).reason
    made.plane.run(10)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)


def test_what_vanishes_before_its_making_is_confirmed_is_made_again() -> None:
    """A cluster may report a deletion before it acknowledges the create command: the answer alone is not enough."""
    made = scene()
    job_id = made.plane.submit(spec())[0]
    made.plane.controller.step()
    created = next(iter(made.plane.store.pending_commands()))
    gone = Changes("next", complete=False, workloads=(Workload(job_id, 1, created.cluster, WorkloadPhase.GONE),))
    observer = made.plane.controller.observer
    assert not observer.changes([Observation(created.cluster, gone, 0)])
    changes = observer.changes([Answered(created, Answer(done=True))])
    assert [record for change in changes for record in change.put] == [
        PendingCommand(job_id, 1, created.cluster, Verb.CREATE, made.clock.now_ns())
    ]


def test_a_copy_missing_from_all_there_is_has_vanished() -> None:
    """After a restart the cluster reports everything, and missing workloads are re-created."""
    made, job_id = running()
    where = made.where(job_id)
    made.cluster(where).vanish(job_id, 1)
    made.plane.restart()
    made.clock.advance_s(1)
    made.plane.run(5)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)
    assert made.phase(where, job_id) is WorkloadPhase.RUNNING


def test_a_part_that_succeeded_may_go() -> None:
    """A finished part of a job in two clusters may be deleted before the other finishes."""
    made = scene()
    made.cluster("beta").slow_down(30)
    job_id = made.submit(replicas=4, expected_duration_s=10)
    made.plane.run(15)
    assert made.phase("alpha", job_id) is WorkloadPhase.SUCCEEDED
    made.cluster("alpha").vanish(job_id, 1)
    made.plane.run(40)
    assert made.state(job_id) == "completed"


def test_a_refusal_sends_the_job_elsewhere() -> None:
    """A rejected placement is retried after a pause, on other devices."""
    made = scene()
    made.cluster("alpha").refuse("not today")
    job_id = made.submit()
    made.plane.settle()
    assert (made.state(job_id), made.where(job_id)) == ("queued", "alpha")
    assert "not today" in made.job(job_id).reason
    made.plane.run(30)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")


def test_a_cluster_that_has_no_use_for_a_job_is_stored_from_as_a_whole() -> None:
    """If an object's kind is unknown no node would do: the next attempt uses another cluster, if there is one."""
    made = scene()
    made.plane.submit(spec())
    answer = Answer(done=False, refused=True, reason="no such kind", everywhere=True)
    refused = []
    for _ in range(20):
        made.plane.controller.step()
        for pending_commands in list(made.plane.store.pending_commands()):
            if pending_commands.verb is Verb.CREATE:
                made.plane.writer.commit(made.plane.controller.observer.changes([Answered(pending_commands, answer)]))
                refused.append(pending_commands.cluster)
        made.clock.advance_s(5)
    assert refused[:3] == ["alpha", "beta", "beta"]


def test_a_refusal_on_the_way_to_a_cluster_is_not_held_against_it() -> None:
    """If Karmada itself rejects a job no other of its members would do: the job waits, longer and longer."""
    made = scene()
    job_id = made.plane.submit(spec())[0]
    answer = Answer(done=False, refused=True, reason="no rights", everywhere=True, by="Karmada")
    asked: list[tuple[int, str]] = []
    for second in range(40):
        made.plane.controller.step()
        for pending_commands in list(made.plane.store.pending_commands()):
            if pending_commands.verb is Verb.CREATE:
                made.plane.writer.commit(made.plane.controller.observer.changes([Answered(pending_commands, answer)]))
                asked.append((second, pending_commands.cluster))
                assert "Karmada refused it: no rights" in made.job(job_id).reason
        made.clock.advance_s(1)
    assert [cluster for _, cluster in asked] == ["alpha"] * 4
    pauses = [after - before for (before, _), (after, _) in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= 2 * pauses[0]
    assert made.plane.controller.live.refusals[job_id] == Refusals(4)


def test_a_cluster_that_decides_otherwise_only_later_is_a_refusal_too() -> None:
    """Its own scheduler decides; a rejected job moves to other devices, without using a retry."""
    made = scene()
    job_id = made.submit()
    made.plane.settle()
    where = made.where(job_id)
    before = {each.uuid for place in made.plane.attempt(job_id).placements for each in place.slices}
    turned_away = Workload(
        job_id, 1, where, WorkloadPhase.FAILED, reason="no node accepts it", cause=Cause.UNSCHEDULABLE
    )
    made.plane.writer.commit(
        made.plane.controller.observer.changes(
            [Observation(where, Changes("x", complete=False, workloads=(turned_away,)), 0)]
        )
    )
    assert f"{where} refused it: no node accepts it" in made.job(job_id).reason
    made.plane.run(30)
    after = {each.uuid for place in made.plane.attempt(job_id).placements for each in place.slices}
    assert (made.state(job_id), made.job(job_id).failures) == ("running", 0)
    assert not before & after


def test_a_cluster_that_denies_a_job_is_stored_from_it_as_a_whole() -> None:
    """A quota or a webhook applies to all of its nodes; the next attempt uses another cluster."""
    made = scene()
    job_id = made.submit()
    made.plane.settle()
    where = made.where(job_id)
    denied = Workload(job_id, 1, where, WorkloadPhase.FAILED, reason="exceeded quota", cause=Cause.REJECTED)
    made.plane.writer.commit(
        made.plane.controller.observer.changes(
            [Observation(where, Changes("x", complete=False, workloads=(denied,)), 0)]
        )
    )
    assert f"{where} refused it: exceeded quota" in made.job(job_id).reason
    made.plane.run(30)
    assert (made.state(job_id), made.job(job_id).failures) == ("running", 0)
    assert made.where(job_id) != where


def test_what_pods_of_others_hold_is_stored_from_jobs() -> None:
    """A job waits for a device that another user's pod holds, and gets it when that is gone."""
    made = scene()
    for name in ("alpha", "beta"):
        live = made.plane.controller.live.fleet.clusters[name].cluster
        assert live is not None
        pods = tuple(
            UnmanagedPod(device.uuid, each.name, (DeviceSlice(device.uuid, device.memory_mib, device.core_milli),))
            for each in live.nodes
            for device in each.devices
        )
        made.plane.controller.observer.changes(
            [Observation(name, Changes("x", complete=False, unmanaged_pods=pods), 0)]
        )
    job_id = made.submit()
    made.plane.settle()
    assert made.state(job_id) == "queued"
    made.plane.controller.observer.changes(
        [
            Observation(
                "beta",
                Changes("y", complete=False, unmanaged_pods=tuple(UnmanagedPod(each.name, "") for each in pods)),
                0,
            )
        ]
    )
    made.plane.run(5)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")


def test_a_refusal_everywhere_is_forgiven() -> None:
    """A job that every device rejected retries them after a while, with longer and longer pauses."""
    made = scene(exclusion_period_s=100)
    for each in made.clusters.clusters():
        each.refuse("admission is broken")
    job_id = made.submit()
    made.plane.run(99)
    tries = made.job(job_id).attempt
    assert made.state(job_id) == "queued"
    assert tries == 4, "one for each device"
    for each in made.clusters.clusters():
        each.refuse("")
    made.plane.run(300)
    assert made.state(job_id) == "running"


def test_pauses_double_with_every_failure() -> None:
    """A failed job is retried after a pause that doubles, up to its number of retries."""
    made, job_id = running(retries=2)
    waited = []
    for attempt in (1, 2):
        made.cluster(made.where(job_id)).fail_copy(job_id, attempt, "killed")
        made.plane.settle()
        assert made.state(job_id) == "queued"
        begun_ns = made.clock.monotonic_ns()
        while made.state(job_id) == "queued":
            made.plane.run(0.5, 0.5)
        waited.append((made.clock.monotonic_ns() - begun_ns) / 1e9)
        made.plane.run(5)
    assert waited == [5, 10]
    made.cluster(made.where(job_id)).fail_copy(job_id, 3, "killed")
    made.plane.settle()
    job = made.job(job_id)
    assert (job.state.value, job.failures, job.attempt, job.reason) == ("failed", 3, 3, "killed")


def test_a_pause_is_not_moved_by_setting_the_clock() -> None:
    """A pause has the same length, whatever the time of day is set to."""
    for jump_s in (-86_400, 86_400):
        made, job_id = running(retries=1)
        made.cluster(made.where(job_id)).fail_copy(job_id, 1, "killed")
        made.plane.settle()
        made.clock.jump(jump_s * 10**9)
        made.plane.run(4)
        assert made.state(job_id) == "queued"
        made.plane.run(6)
        assert made.state(job_id) == "running"


def test_a_replica_that_fails_ends_all_parts() -> None:
    """When a part of a job fails, the parts in other clusters are removed before a retry."""
    made, job_id = spread()
    made.cluster("alpha").fail_copy(job_id, 1, "killed")
    made.plane.settle()
    assert made.state(job_id) == "failed"
    assert made.phase("beta", job_id) is None
    assert made.plane.attempt(job_id).state is AttemptState.ENDED


def test_an_attempt_has_the_reason_of_its_end() -> None:
    """Also the last one of a job, whose workloads ended by themselves."""
    made, job_id = running()
    made.cluster(made.where(job_id)).fail_copy(job_id, 1, "killed")
    made.plane.settle()
    assert (made.state(job_id), made.plane.attempt(job_id).reason) == ("failed", made.job(job_id).reason)
    done = made.submit(expected_duration_s=5)
    made.plane.run(20)
    assert (made.state(done), made.plane.attempt(done).reason) == ("completed", made.job(done).reason)


def test_both_removals_confirmed_at_once_end_the_attempt() -> None:
    """When every cluster of an attempt confirms its removal in the same moment, nothing is held any more."""
    made, job_id = spread()
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.settle()
    assert made.plane.attempt(job_id).state is AttemptState.ENDED
    assert not list(made.plane.store.held_attempts())
    assert job_id not in made.plane.controller.live.jobs


def test_finished_copies_are_collected_later() -> None:
    """Objects of a finished job stay for their logs, and are removed after a while, also over a restart."""
    for restarts in (False, True):
        made = scene(ttl_after_finished_s=100)
        job_id = made.submit(expected_duration_s=5)
        made.plane.run(20)
        where = made.where(job_id)
        assert made.phase(where, job_id) is WorkloadPhase.SUCCEEDED
        if restarts:
            made.plane.restart()
        made.plane.run(70, 10)
        assert made.phase(where, job_id) is WorkloadPhase.SUCCEEDED
        made.plane.run(40, 10)
        assert made.phase(where, job_id) is None


def test_orphans_of_known_jobs_are_removed() -> None:
    """A workload of an ended attempt is removed."""
    made, job_id = running(expected_duration_s=500)
    attempt = made.plane.attempt(job_id)
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.settle()
    made.cluster(attempt.clusters[0]).send([deployment(attempt, attempt.clusters[0])])
    made.plane.run(2)
    assert made.phase(attempt.clusters[0], job_id) is None
    assert made.state(job_id) == "cancelled"


def test_a_copy_of_a_live_attempt_elsewhere_is_removed() -> None:
    """A workload of the attempt in another cluster than its own, as after a name changed, is removed."""
    made, job_id = running(expected_duration_s=500)
    attempt = made.plane.attempt(job_id)
    where = attempt.clusters[0]
    elsewhere = next(name for name in ("alpha", "beta") if name != where)
    inventory = made.plane.controller.live.fleet.clusters[elsewhere].cluster
    assert inventory is not None
    node = inventory.nodes[0].name
    placements = tuple(replace(each, cluster=elsewhere, node=node, slices=()) for each in attempt.placements)
    copy = replace(deployment(attempt, where), cluster=elsewhere, placements=placements)
    assert made.cluster(elsewhere).send([copy])[0].done
    made.plane.run(3)
    assert made.phase(elsewhere, job_id) is None
    assert made.phase(where, job_id) is WorkloadPhase.RUNNING
    assert made.state(job_id) == "running"


def test_orphans_that_no_one_knows_are_left_and_shown() -> None:
    """A workload of a job outside the database may be another user's: it stays, and operators see it."""
    made, job_id = running()
    strange = IDS.generate(NOW_NS)
    where = made.where(job_id)
    copy = replace(deployment(made.plane.attempt(job_id), where), job_id=strange)
    inventory = made.plane.controller.live.fleet.clusters[where].cluster
    assert inventory is not None
    used = copy.placements[0].slices[0].uuid
    other = next(device.uuid for each in inventory.nodes for device in each.devices if device.uuid != used)
    copy = replace(
        copy,
        placements=tuple(
            replace(each, slices=tuple(replace(one, uuid=other) for one in each.slices)) for each in copy.placements
        ),
    )
    assert made.cluster(where).send([copy])[0].done
    made.plane.run(3)
    shown = {view.name: view.orphans for view in made.plane.overview.clusters()}
    assert shown[where] == (copy.name,)
    made.cluster(where).vanish(strange, 1)
    made.plane.run(2)
    assert not any(view.orphans for view in made.plane.overview.clusters())


def test_why_a_copy_does_not_start_is_passed_on() -> None:
    """While a job deploys, its cluster's message becomes its reason, with one event."""
    made = scene()
    job_id = made.plane.submit(spec())[0]
    made.plane.controller.step()
    made.plane.controller.step()
    where = made.where(job_id)
    reported = Workload(job_id, 1, where, WorkloadPhase.STARTING, (), "the image is being pulled")
    for _ in range(2):
        made.plane.writer.commit(
            made.plane.controller.observer.changes(
                [Observation(where, Changes("x", complete=False, workloads=(reported,)), 0)]
            )
        )
        made.plane.controller.step()
    assert made.job(job_id).reason == "the image is being pulled"
    kinds = [event.kind for event in made.plane.store.events(0, 100, job_id=job_id)]
    assert kinds.count("blocked") == 1


def test_a_cluster_that_answers_again_is_up() -> None:
    """The first answer after silence makes a cluster usable, with an event."""
    made = scene(fleet(cluster(node(gpu()), name="alpha")))
    made.cluster("alpha").disconnect()
    made.plane.run(20)
    assert known(made, "alpha") is ClusterState.STALE
    made.cluster("alpha").reconnect()
    made.plane.run(1)
    assert known(made, "alpha") is ClusterState.UP
    reported = [event.reason for event in made.plane.store.events(0, 100) if event.kind == "cluster"]
    assert reported[-1] == "alpha answers (it was stale)"


def test_a_change_in_between_does_not_swallow_an_end() -> None:
    """When a user changes a job while its end is stored, the end is stored next."""
    made, job_id = running(expected_duration_s=10)

    def reprioritize() -> None:
        jobs = made.plane.jobs
        jobs.change(job_id, replace(jobs.find(job_id).spec, priority=7), "ada")

    made.clock.advance_s(10)
    made.plane.writer.meanwhile.append(reprioritize)
    made.plane.settle()
    assert made.state(job_id) == "completed"
    assert made.job(job_id).spec.priority == 7


def test_what_a_job_runs_on_may_fail_as_often_as_it_likes() -> None:
    """A job without retries survives failures of its node and device; they do not count, but the pauses grow."""
    made = scene(fleet(cluster(node(gpu()), name="alpha")), initial_backoff_s=5)
    job_id = made.submit()
    (device,) = made.plane.overview.nodes()[0].devices
    pauses = []
    for at in range(3):
        made.plane.run(5)
        assert made.state(job_id) == "running"
        if at % 2:
            made.cluster("alpha").fail_device(device.uuid, 1)
        else:
            made.cluster("alpha").fail_node("node-0", 1)
        made.plane.settle()
        job = made.job(job_id)
        assert (job.state.value, job.failures) == ("queued", 0)
        assert job.not_before_ns is not None
        pauses.append((job.not_before_ns - made.clock.now_ns()) / 1e9)
        made.plane.run(pauses[-1])
    assert pauses == [5, 10, 20]
    assert "failed; attempt 4 follows in 20 s" in job.reason


def test_a_long_run_ends_a_row_of_setbacks() -> None:
    """A job that ran for longer than the longest pause begins with the shortest again when its node fails."""
    made, job_id = running()
    for _ in range(2):
        made.cluster(made.where(job_id)).fail_node("node-0", 1)
        made.plane.run(400, 10)
        assert made.state(job_id) == "running"
    assert made.plane.controller.live.setbacks[job_id] == 1


def test_a_deployment_always_returns() -> None:
    """A service is restarted after every failure of its own, after pauses that double, whatever its retries."""
    made, job_id = running(template="deployment")
    for attempt in (1, 2, 3):
        made.cluster(made.where(job_id)).fail_copy(job_id, attempt, "killed")
        made.plane.settle()
        assert made.job(job_id).reason == f"killed; attempt {attempt + 1} follows in {5 * 2 ** (attempt - 1)} s"
        made.plane.run(25)
        assert (made.state(job_id), made.job(job_id).failures) == ("running", attempt)


def test_labels_and_expected_length_change_while_a_job_runs() -> None:
    """Neither restarts the job; its workload keeps its labels until the next attempt."""
    made, job_id = running()
    made.plane.jobs.change(job_id, replace(made.job(job_id).spec, labels={"team": "a"}, expected_duration_s=900), "ada")
    made.plane.settle()
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


def test_a_job_whose_queue_is_gone_is_placed_nowhere() -> None:
    """A job of a removed queue waits with a reason; it runs when the queue is back."""
    made = scene()
    job_id = made.submit(queue="gone")
    made.plane.run(3)
    assert made.state(job_id) == "queued"
    assert "its queue 'gone' does not exist any more" in made.job(job_id).reason
    made.plane.operations.put_queue(Queue("gone"), "ada")
    made.plane.run(5)
    assert made.state(job_id) == "running"


def test_what_hinders_a_copy_is_reported_also_when_it_was_observed_before_its_answer() -> None:
    """A cluster may report a workload, and why it does not start, before it acknowledges the create command."""
    made = scene()
    job_id = made.plane.submit(spec())[0]
    made.plane.controller.step()
    created = next(iter(made.plane.store.pending_commands()))
    copy = Workload(job_id, 1, created.cluster, WorkloadPhase.STARTING, (), "the image is being pulled")
    observer = made.plane.controller.observer
    early = Observation(created.cluster, Changes("x", complete=False, workloads=(copy,)), 0)
    made.plane.writer.commit(observer.changes([early]))
    made.plane.writer.commit(observer.changes([Answered(created, Answer(done=True))]))
    assert (made.state(job_id), made.job(job_id).reason) == ("deploying", "the image is being pulled")
