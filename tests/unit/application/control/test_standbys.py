"""Standbys of services, through the control loop on simulated clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.application.pairs import standby_name
from seaway.application.ports.store import JobFilter
from seaway.application.views import ClusterState
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.errors import ConflictError
from seaway.domain.job_record import JobRecord, Pair
from seaway.domain.job_spec import Expose, ServiceType, Standby, StandbyMode
from seaway.domain.queues import Preemption, Queue
from seaway.domain.runtime import Run
from seaway.domain.scaling import Metric, Trigger
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.control_plane import SetMetrics
from tests.unit.application.scene import Scene, known, scene

WARM, COLD = Standby(), Standby(StandbyMode.COLD)

GRACE_S = 30


def world(names: str = "alpha beta gamma", gpus: int = 1, **settings: object) -> Scene:
    """Create clusters of one node each."""
    parts = [cluster(node(*[gpu() for _ in range(gpus)]), name=name) for name in names.split()]
    return scene(fleet(*parts), **{"grace_period_s": GRACE_S, "stale_after_s": 10, **settings})


def service(made: Scene, standby: Standby = WARM, **fields: object) -> str:
    """Submit a service with a standby, and wait until both copies run."""
    job_id = made.submit(**{"name": "chat", "template": "deployment", "standby": standby, **fields})
    made.plane.run(10)
    return job_id


def other(made: Scene, job_id: str) -> JobRecord:
    """Return the other copy of a service."""
    return made.job(made.job(job_id).other)


def active(made: Scene, job_id: str) -> JobRecord:
    """Return the active copy of a service. Exactly one of the two is active."""
    one, two = made.job(job_id), other(made, job_id)
    assert one.is_standby != two.is_standby
    return two if one.is_standby else one


def reasons(made: Scene, job_id: str, kind: str) -> list[str]:
    """Return the reasons of the events of a job of a kind."""
    return [each.reason for each in made.plane.store.events(0, 1000, job_id=job_id) if each.kind == kind]


def test_a_warm_standby_runs_in_another_cluster_and_counts() -> None:
    """The second copy is a job of its own: it holds devices, in the queue and quota of the same tenant and user."""
    made = world(gpus=2)
    job_id = service(made)
    standby = other(made, job_id)
    assert (made.state(job_id), made.where(job_id)) == ("running", "alpha")
    assert (standby.spec.name, standby.state.value, standby.clusters) == ("chat-standby", "running", ("beta",))
    assert (standby.submitted_by, standby.spec.copy_of, standby.pair) == ("ada", job_id, Pair(job_id, active=False))
    held = {each.queue: each.used["gpus"] for each in made.plane.overview.queue_totals() if each.used}
    assert held["default"] == 2000


def test_on_the_loss_of_its_cluster_the_standby_is_active_within_a_cycle() -> None:
    """Names, addresses and events say so, and the time counts from the last report. A new standby is placed."""
    made = world()
    run = Run(ports=(8080,))
    job_id = service(made, run=run, expose=Expose(ServiceType.LOAD_BALANCER))
    second = other(made, job_id).id
    [before] = list(made.plane.overview.standby_of(made.job(job_id)).serving)
    assert before.endpoints[0].address == f"lb-{job_id}.alpha.simulated:8080"
    made.cluster("alpha").disconnect()
    made.plane.run(GRACE_S + 2)
    first, new = made.job(job_id), made.job(second)
    assert (new.spec.name, new.is_standby, new.state.value) == ("chat", False, "running")
    assert (first.spec.name, first.is_standby, first.clusters) == ("chat-standby", True, ("gamma",))
    assert new.attempt == 1  # it ran on, and did not start again
    text = reasons(made, second, "failover")[-1]
    assert text.startswith("beta is active instead of alpha, 3")
    assert text.endswith("alpha does not answer")
    assert reasons(made, job_id, "failover")[-1] == text
    assert new.pair
    assert new.pair.lost_ns
    assert new.pair.switched_ns
    assert GRACE_S <= (new.pair.switched_ns - new.pair.lost_ns) / 1e9 <= GRACE_S + 2
    for each in (first, new):  # the ID of either copy leads to the addresses of the active one
        [serving] = made.plane.overview.standby_of(each).serving
        assert serving.endpoints[0].address == f"lb-{job_id}.beta.simulated:8080"
    made.plane.run(5)
    assert made.state(job_id) == "running"
    assert [each.cluster for each in made.plane.overview.standby_of(new).workloads] == ["gamma"]


def test_the_copy_of_a_cluster_that_returns_is_removed_before_the_next_standby() -> None:
    """With two clusters, the standby waits for the lost one, and starts there only when the old copy is gone."""
    made = world("alpha beta")
    job_id = service(made)
    made.cluster("alpha").disconnect()
    made.plane.run(GRACE_S + 60)
    assert active(made, job_id).clusters == ("beta",)
    assert made.state(job_id) == "queued"
    assert "the other copy of the service is there" in made.plane.overview.reason(made.job(job_id)).message
    made.cluster("alpha").reconnect()
    made.plane.run(30)
    assert made.phase("alpha", job_id, attempt=1) is None
    assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "alpha", 2)
    assert active(made, job_id).clusters == ("beta",)  # it does not switch back


def test_both_copies_lost_at_once_are_placed_again_in_different_clusters() -> None:
    """The active copy goes first, and the standby never joins it."""
    made = world("alpha beta gamma delta epsilon")
    job_id = service(made)
    for name in ("alpha", "beta"):
        made.cluster(name).disconnect()
    made.plane.run(GRACE_S + 20)
    copies = made.job(job_id), other(made, job_id)
    assert {each.state.value for each in copies} == {"running"}
    assert {each.clusters for each in copies} == {("gamma",), ("delta",)}
    assert active(made, job_id).id == job_id


def test_a_standby_in_a_silent_cluster_does_not_become_active() -> None:
    """The last report of a cluster that does not answer now does not count."""
    made = world("alpha beta gamma delta", grace_period_s=60, unhealthy_cluster_threshold=0.6)
    job_id = service(made)
    made.cluster("beta").disconnect()
    made.plane.run(15)
    assert known(made, "beta") is ClusterState.STALE
    with pytest.raises(ConflictError, match="beta does not answer"):
        made.plane.jobs.failover(job_id, "ada")
    made.plane.operations.cordon("alpha", "", "ada", "", drain=True)
    made.plane.run(10)
    assert (active(made, job_id).id, made.where(job_id)) == (job_id, "gamma")


@pytest.mark.parametrize("steps", range(8))
def test_a_kill_at_any_step_of_the_switch_loses_nothing(steps: int) -> None:
    """A new process continues from what is stored: one active copy, two copies, in different clusters."""
    made = world()
    job_id = service(made)
    made.cluster("alpha").disconnect()
    made.plane.run(GRACE_S - 1)
    for _ in range(steps):
        made.clock.advance_s(0.5)
        made.plane.controller.step()
    made.plane.restart()
    made.plane.run(2 * GRACE_S)
    serving = active(made, job_id)
    assert (serving.state.value, serving.clusters) == ("running", ("beta",))
    assert (made.state(job_id), made.where(job_id)) == ("running", "gamma")
    assert len(made.plane.store.jobs(JobFilter(), 10)) == 2


def test_a_restart_keeps_roles_and_counts_the_time_from_the_stored_loss() -> None:
    """The link between the copies, and the time of the loss, are stored."""
    made = world()
    job_id = service(made)
    before = made.job(job_id).pair, other(made, job_id).pair
    made.plane.restart()
    made.plane.run(20)
    assert (made.job(job_id).pair, other(made, job_id).pair) == before
    assert len(reasons(made, job_id, "failover")) == 0


def test_a_drain_of_the_active_cluster_switches_first() -> None:
    """Clients of the service notice nothing: the standby runs, and the drained copy becomes the standby."""
    made = world()
    job_id = service(made)
    second = other(made, job_id).id
    made.plane.operations.cordon("alpha", "", "ada", "repair", drain=True)
    made.plane.run(10)
    assert active(made, job_id).id == second
    [text] = reasons(made, second, "failover")
    assert text.startswith("beta is active instead of alpha: alpha/")
    assert (made.state(job_id), made.where(job_id)) == ("running", "gamma")


def test_a_preempted_active_copy_hands_over() -> None:
    """A job of higher priority displaces one copy; the other serves."""
    made = world("alpha beta")
    made.plane.writer.commit([Change(put=[Queue("default", preemption=Preemption.PREEMPT_LOWER_PRIORITY)])])
    job_id = service(made)
    made.submit(priority=5)
    made.plane.run(10)
    serving = active(made, job_id)
    assert serving.state.value == "running"
    assert other(made, serving.id).state.value == "queued"


def test_a_switch_by_hand() -> None:
    """Both copies run on; only their roles and names change places."""
    made = world()
    job_id = service(made)
    leads = made.plane.jobs.failover(job_id, "eve", "test")
    assert (leads.spec.name, leads.clusters, leads.is_standby) == ("chat", ("beta",), False)
    assert reasons(made, job_id, "failover") == ["beta is active instead of alpha: requested by eve: test"]
    made.plane.run(20)
    assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "alpha", 1)
    assert made.plane.jobs.failover(leads.id, "eve").id == job_id


def test_a_switch_by_hand_needs_a_running_standby() -> None:
    """Otherwise it says what is missing."""
    made = world("alpha beta")
    plain = made.submit()
    with pytest.raises(ConflictError, match="has no standby; set standby"):
        made.plane.jobs.failover(plain, "ada")
    made.plane.jobs.cancel(plain, "ada")
    job_id = service(made)
    made.plane.operations.cordon("beta", "", "ada", "", drain=True)
    made.plane.run(5)
    with pytest.raises(ConflictError, match="cannot become active: it is queued"):
        made.plane.jobs.failover(job_id, "ada")


@pytest.mark.parametrize("by_standby", [False, True])
def test_cancel_suspend_and_resume_act_on_both_copies(by_standby: bool) -> None:
    """A service is one thing: whichever of its jobs is named."""
    made = world()
    job_id = service(made)
    second = other(made, job_id).id
    named = second if by_standby else job_id
    made.plane.jobs.suspend(named, "ada")
    assert {made.state(each) for each in (job_id, second)} == {"suspended"}
    made.plane.run(20)
    made.plane.jobs.resume(named, "ada")
    made.plane.run(20)
    assert {made.state(each) for each in (job_id, second)} == {"running"}
    made.plane.jobs.cancel(named, "ada")
    made.plane.run(20)
    assert {made.state(each) for each in (job_id, second)} == {"cancelled"}
    assert {each.gpu_milli.used for each in made.plane.overview.clusters()} == {0}


@pytest.mark.parametrize("by_standby", [False, True])
def test_a_change_restarts_one_copy_after_the_other(by_standby: bool) -> None:
    """The standby restarts with the change and takes over; at each moment a copy runs."""
    made = world()
    job_id = service(made)
    second = other(made, job_id).id
    named = made.job(second if by_standby else job_id)
    spec = named.spec
    made.plane.jobs.change(named.id, replace(spec, run=Run(image="new:2")), "ada")
    serving = []
    for _ in range(40):
        made.plane.run(0.5, step_s=0.5)
        serving.append(active(made, job_id).state.value)
    assert set(serving) == {"running"}
    for each in (job_id, second):
        assert made.state(each) == "running"
        assert made.plane.attempt(each).spec.run.image == "new:2"
    assert active(made, job_id).spec.name == "chat"


@pytest.mark.parametrize("by_standby", [False, True])
@pytest.mark.parametrize("standby", [WARM, COLD])
def test_both_copies_get_more_and_fewer_replicas_without_a_stop(standby: Standby, by_standby: bool) -> None:
    """Each copy stays in its cluster, with its attempt; without room there, its replicas wait."""
    made = world(gpus=4)
    job_id = service(made, standby, replicas=2)
    copies = [job_id, *filter(None, [made.job(job_id).other])]
    clusters = [made.where(each) for each in copies]
    for number in (4, 1, 3):
        named = made.job(copies[-1 if by_standby else 0])
        made.plane.jobs.change(named.id, replace(named.spec, replicas=number), "ada")
        made.plane.run(10)
        for each, place in zip(copies, clusters, strict=True):
            attempt = made.plane.attempt(each)
            assert (attempt.number, len(attempt.placements), made.state(each)) == (1, number, "running")
            assert set(attempt.clusters) == {place}
    named = made.job(job_id)
    made.plane.jobs.change(job_id, replace(named.spec, replicas=6), "ada")
    made.plane.run(10)
    assert [len(made.plane.attempt(each).placements) for each in copies] == [4] * len(copies)
    assert [made.job(each).attempt for each in copies] == [1] * len(copies)
    assert len(copies) == 1 or active(made, job_id).id == job_id


ELASTIC = {"replicas": 4, "min_replicas": 1, "max_replicas": 4}


@pytest.mark.parametrize("standby", [WARM, COLD])
def test_both_copies_of_an_elastic_service_grow_and_shrink(standby: Standby) -> None:
    """Each has its range: it starts with the minimum, uses the room of its cluster, and shrinks before it is displaced.

    A switch and the loss of a cluster apply as to any service.
    """
    made = world(gpus=4)
    queue = Queue("default", grow_cooldown_s=0, preemption=Preemption.PREEMPT_LOWER_PRIORITY)
    made.plane.writer.commit([Change(put=[queue])])
    job_id = service(made, standby, **ELASTIC)
    copies = [job_id, *filter(None, [made.job(job_id).other])]
    assert [len(made.plane.attempt(each).placements) for each in copies] == [4] * len(copies)
    for each in copies:
        urgent = made.submit(gpus=1, priority=9, clusters={made.where(each)}, expected_duration_s=20)
        made.plane.run(10)
        assert (made.state(urgent), len(made.plane.attempt(each).remaining), made.job(each).attempt) == (
            "running",
            3,
            1,
        )
    made.plane.run(60)
    assert [len(made.plane.attempt(each).placements) for each in copies] == [4] * len(copies)
    lost = made.where(job_id)
    made.cluster(lost).disconnect()
    made.plane.run(GRACE_S + 60)
    serves = active(made, job_id) if len(copies) > 1 else made.job(job_id)
    assert (serves.state.value, len(made.plane.attempt(serves.id).placements)) == ("running", 4)
    assert lost not in serves.clusters


def scaled(made: Scene, least: int, standby: Standby = WARM) -> tuple[str, SetMetrics]:
    """Start a service with a standby that follows its requests, 20 a second for each replica."""
    metrics = made.plane.controller.scaler.metrics = SetMetrics({Metric.REQUESTS: 20.0})
    made.plane.writer.commit([Change(put=[Queue("default", grow_cooldown_s=0)])])
    fields = {"replicas": 1, "min_replicas": least, "max_replicas": 4, "scale": (Trigger(Metric.REQUESTS, 20_000),)}
    return service(made, standby, **fields), metrics


def test_triggers_of_the_active_copy_set_the_number_of_both() -> None:
    """The standby has as many replicas when it takes over, and its triggers count from then on."""
    made = world(gpus=4)
    job_id, metrics = scaled(made, 1)
    second = other(made, job_id).id

    def sizes() -> list[int]:
        made.plane.run(40)
        return [len(made.plane.attempt(each).remaining) for each in (job_id, second)]

    metrics.values[Metric.REQUESTS] = 55.0
    assert sizes() == [3, 3]
    for each in (job_id, second):
        assert reasons(made, each, "updated")[-1].startswith("wants 3 replicas instead of 1: there are 55 requests")
    assert {each.job_id for each in metrics.asked} == {job_id}
    made.plane.jobs.failover(job_id, "ada")
    metrics.asked.clear()
    metrics.values[Metric.REQUESTS] = 75.0
    assert sizes() == [4, 4]
    assert {each.job_id for each in metrics.asked} == {second}
    assert [made.job(each).attempt for each in (job_id, second)] == [1, 1]


@pytest.mark.parametrize("by_standby", [False, True])
def test_both_copies_end_and_start_with_their_requests(by_standby: bool) -> None:
    """Scaled to zero, both are suspended. A user can start both, and keep both stopped, by either of them."""
    made = world(gpus=4)
    job_id, metrics = scaled(made, 0)
    copies = [job_id, other(made, job_id).id]
    named = copies[by_standby]

    def states(seconds: float) -> tuple[str, str]:
        made.plane.run(seconds, 10)
        return made.state(copies[0]), made.state(copies[1])

    metrics.values[Metric.REQUESTS] = 0.0
    assert states(400) == ("suspended", "suspended")
    assert not made.plane.controller.live.tree.node("default").use.held.get("gpus")
    metrics.values[Metric.REQUESTS] = 50.0
    assert states(60) == ("running", "running")
    assert [len(made.plane.attempt(each).placements) for each in copies] == [3, 3]
    assert active(made, job_id).id == job_id
    metrics.values[Metric.REQUESTS] = 0.0
    assert states(400) == ("suspended", "suspended")
    made.plane.jobs.resume(named, "ada")
    assert states(20) == ("running", "running")
    assert states(400) == ("suspended", "suspended")
    made.plane.jobs.suspend(named, "ada")
    metrics.values[Metric.REQUESTS] = 50.0
    assert states(60) == ("suspended", "suspended")
    made.plane.jobs.resume(named, "ada")
    assert states(60) == ("running", "running")


def test_a_cold_standby_needs_room_for_the_minimum() -> None:
    """The service starts elsewhere with it, and then follows its requests again. Without replicas, it has no place."""
    made = world(gpus=4)
    job_id, metrics = scaled(made, 0, COLD)
    metrics.values[Metric.REQUESTS] = 75.0
    made.plane.run(40)
    assert len(made.plane.attempt(job_id).placements) == 4
    made.plane.jobs.failover(job_id, "ada")
    made.plane.run(60)
    assert (made.state(job_id), len(made.plane.attempt(job_id).placements)) == ("running", 4)
    assert made.where(job_id) != "alpha"
    metrics.values[Metric.REQUESTS] = 0.0
    made.plane.run(400, 10)
    assert made.state(job_id) == "suspended"
    metrics.values[Metric.REQUESTS] = 20.0
    made.plane.run(60)
    assert made.state(job_id) == "running"


def test_a_service_without_a_standby_any_more_keeps_its_active_copy() -> None:
    """The standby ends; with a standby again, a new one is placed."""
    made = world()
    job_id = service(made)
    second = other(made, job_id).id
    spec = made.job(job_id).spec
    made.plane.jobs.change(job_id, replace(spec, standby=None), "ada")
    made.plane.run(10)
    assert (made.state(job_id), made.state(second), made.job(job_id).pair) == ("running", "cancelled", None)
    made.plane.jobs.change(job_id, spec, "ada")
    made.plane.run(10)
    assert other(made, job_id).state.value == "running"
    assert other(made, job_id).id != second


def test_a_cold_standby_holds_nothing_but_has_a_verified_place() -> None:
    """The place is checked again and again; its loss and its return are events."""
    made = world("alpha beta")
    job_id = service(made, COLD)
    view = made.plane.overview.standby_of(made.job(job_id))
    assert (view.state, view.clusters, made.job(job_id).other) == ("verified", ("beta",), "")
    assert sum(each.gpu_milli.used for each in made.plane.overview.clusters()) == 1000
    taken = made.submit()
    made.plane.run(60)
    view = made.plane.overview.standby_of(made.job(job_id))
    assert (view.state, view.clusters) == ("no place", ())
    made.plane.jobs.cancel(taken, "ada")
    made.plane.run(60)
    assert made.plane.overview.standby_of(made.job(job_id)).state == "verified"
    texts = reasons(made, job_id, "standby")
    assert [each.split(":")[0] for each in texts] == [
        "beta has room for a standby",
        "no cluster has room for a standby",
        "beta has room for a standby",
    ]


@pytest.mark.parametrize("standby", [WARM, COLD])
def test_missing_standbys_are_counted(standby: Standby) -> None:
    """A service counts while its standby does not run or has no place, and no more when it has ended."""
    made = world("alpha beta")
    job_id, missing = service(made, standby), made.plane.controller.standbys.missing
    made.plane.run(40)
    assert missing() == (1, 0)
    made.plane.operations.cordon("beta", "", "eve", "", drain=True)
    made.plane.run(40)
    assert missing() == (1, 1)
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.run(10)
    assert missing() == (0, 0)


def test_a_service_with_a_cold_standby_starts_elsewhere_on_the_loss_of_its_cluster() -> None:
    """The time until it runs there is reported."""
    made = world("alpha beta gamma")
    job_id = service(made, COLD)
    made.cluster("alpha").disconnect()
    made.plane.run(GRACE_S + 10)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")
    [text] = reasons(made, job_id, "failover")
    assert text.startswith("beta is active instead of alpha, 3")


def test_a_cold_standby_by_hand_moves_the_service_and_a_restart_does_not_send_it_back() -> None:
    """The cluster that it leaves is stored with the job, so that a new process does not choose it again."""
    made = world("alpha beta")
    job_id = service(made, COLD)
    made.plane.jobs.failover(job_id, "ada")
    made.plane.restart()
    made.plane.run(20)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")
    assert reasons(made, job_id, "failover")[0].startswith("beta is active instead of alpha")


def test_names_of_standbys_are_valid() -> None:
    """A long name is cut, so that the name of the standby is one too."""
    assert standby_name("chat") == "chat-standby"
    assert len(standby_name("a" * 63)) == 63
    assert standby_name("a" * 54 + "-b" + "c" * 7) == "a" * 54 + "-standby"


def test_a_limit_without_room_for_two_leaves_the_active_copy_alone() -> None:
    """The standby counts in the queue: without room there it waits, and says so."""
    made = world(gpus=2)
    made.plane.writer.commit([Change(put=[Queue("default", limit={"gpus": 1000})])])
    job_id = service(made)
    assert made.state(job_id) == "running"
    assert other(made, job_id).state.value == "queued"
    assert "limit" in other(made, job_id).reason


def test_phase_of_the_old_copy_ends_before_a_new_one_uses_its_names() -> None:
    """In one cluster there is never more than one copy of a service."""
    made = world("alpha beta")
    service(made)
    made.cluster("alpha").disconnect()
    made.plane.run(GRACE_S + 5)
    made.cluster("alpha").reconnect()
    for _ in range(60):
        made.plane.run(0.5, step_s=0.5)
        copies = made.cluster("alpha").changes("", 0).workloads
        assert sum(each.phase is not WorkloadPhase.GONE for each in copies) <= 1
