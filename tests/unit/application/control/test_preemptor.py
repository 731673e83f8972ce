"""Preemption and reclaim through the control loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.changes import Change
from seaway.application.control.settings import SchedulerSettings
from seaway.application.whatif.dry_run import DryRuns
from seaway.domain.amounts import Amounts
from seaway.domain.cluster import Fleet
from seaway.domain.errors import UnavailableError
from seaway.domain.network import Link, NetworkNeed
from seaway.domain.queues import Preemption, Queue
from seaway.domain.tenancy import Quota, Tenant
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

BY_PRIORITY = Queue("x", preemption=Preemption.PREEMPT_LOWER_PRIORITY)


def gpus(count: int) -> Fleet:
    """Return a fleet of one node."""
    return fleet(cluster(node(*[gpu() for _ in range(count)]), name="alpha"))


def with_queues(parts: Fleet, *queues: Queue, **settings: object) -> Scene:
    """Create a control plane with queues and two tenants."""
    made = scene(parts, **settings)
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b"), *queues])])
    made.plane.settle()
    return made


def started(made: Scene, *jobs: str) -> int:
    """Return the number of jobs with a place."""
    made.plane.settle()
    return sum(made.plane.state(each).placed for each in jobs)


def test_changes_are_not_kept_for_ever_while_no_job_displaces_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs for months without preemption keeps no trace of old attempts, and can displace new ones."""
    monkeypatch.setattr("seaway.scheduling.cycle.displace.MAX_CHANGES", 4)
    made = with_queues(gpus(2), BY_PRIORITY)
    for _ in range(8):
        made.submit(queue="x", expected_duration_s=5)
        made.plane.run(10)
    live = made.plane.controller.live
    assert len(live.changed) <= 4 + len(live.attempts)
    low = made.plane.submit(*[spec(queue="x", expected_duration_s=600) for _ in range(2)])
    made.plane.run(10)
    high = made.submit(queue="x", priority=5, expected_duration_s=60)
    made.plane.run(10)
    assert made.state(high) == "running"
    assert started(made, *low) == 1


@pytest.mark.parametrize(
    ("queue", "why", "rule"),
    [
        ("x", " of higher priority", "priority"),
        ("y", " of higher priority, of queue 'y'", "priority"),
        ("z", " of queue 'z'", "reclaim"),
    ],
)
def test_events_name_the_winner_and_the_rule(queue: str, why: str, rule: str) -> None:
    """The victim waits with its age and names the winner, and the winner says that it waits for the victim."""
    made = with_queues(
        gpus(2), BY_PRIORITY, replace(BY_PRIORITY, name="y"), Queue("z", guarantee={"gpus": 1000}), reservations=False
    )
    low = made.plane.submit(*[spec(queue="x") for _ in range(2)])
    made.plane.run(10)
    high = made.submit(queue=queue, priority=5 if rule == "priority" else 0)
    made.plane.run(10)
    (victim,) = [each for each in low if made.state(each) != "running"]
    assert made.job(victim).submitted_ns == made.job(low[0]).submitted_ns
    said = {each.reason: each.state for each in made.plane.store.events(0, 1000, job_id=victim)}
    assert said[f"preempted by job work{why}"] == "preempted"
    assert made.plane.overview.reason(made.job(victim)).end_reason == f"preempted by job work{why}"
    reasons = [each.reason for each in made.plane.store.events(0, 1000, job_id=high)]
    assert any(each.startswith("waits until job work has ended, at 20") for each in reasons)
    assert made.plane.controller.scheduler.preemptor.displaced == {("x", rule): 1}


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
def test_equal_jobs_do_not_displace_each_other_after_the_clock_was_set(jump_s: int) -> None:
    """In a queue with ageing, a job that was submitted before the time of day changed runs to completion."""
    made = with_queues(gpus(1), replace(BY_PRIORITY, ageing_s=60))
    equal = made.plane.submit(*[spec(queue="x", expected_duration_s=60) for _ in range(3)])
    made.clock.jump(jump_s * 10**9)
    made.plane.run(300)
    assert [(made.state(each), made.job(each).attempt) for each in equal] == [("completed", 1)] * 3


def test_jobs_are_displaced_after_the_clock_was_set_back() -> None:
    """Without a minimum run time, jobs that started later than the present time of day may be displaced as others."""
    made = with_queues(gpus(4), BY_PRIORITY)
    low = made.plane.submit(*[spec(queue="x") for _ in range(4)])
    made.plane.run(10)
    made.clock.jump(-86_400 * 10**9)
    high = made.submit(queue="x", priority=5)
    made.plane.run(10)
    assert (made.state(high), started(made, *low)) == ("running", 3)
    assert sum(made.plane.controller.scheduler.preemptor.displaced.values()) == 1


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
@pytest.mark.parametrize("reloads", [False, True])
def test_the_minimum_time_passes_as_it_does_though_the_clock_is_set(jump_s: int, *, reloads: bool) -> None:
    """A step of the clock neither ends nor prolongs the protection, also if the state is read again afterwards."""
    made = with_queues(gpus(1), replace(BY_PRIORITY, min_runtime_s=300))
    low = made.submit(queue="x")
    made.plane.run(150)
    made.clock.jump(jump_s * 10**9)
    if reloads:
        made.plane.store.set_available(False)
        with pytest.raises(UnavailableError):
            made.plane.submit(spec())
        made.plane.store.set_available(True)
    high = made.submit(queue="x", priority=5)
    made.plane.run(130)
    assert [made.state(each) for each in (low, high)] == ["running", "queued"]
    made.plane.run(40)
    assert [made.state(each) for each in (low, high)] == ["queued", "running"]


def test_after_a_restart_a_job_is_protected_for_the_minimum_time_at_most() -> None:
    """A job that seems to have started later than now is displaced after the minimum time, not after the step."""
    made = with_queues(gpus(1), replace(BY_PRIORITY, min_runtime_s=300))
    low = made.submit(queue="x")
    made.plane.run(150)
    made.clock.jump(-86_400 * 10**9)
    made.plane.restart()
    high = made.submit(queue="x", priority=5)
    made.plane.run(250)
    assert [made.state(each) for each in (low, high)] == ["running", "queued"]
    made.plane.run(70)
    assert [made.state(each) for each in (low, high)] == ["queued", "running"]


def test_a_restart_in_the_middle_displaces_no_further_job() -> None:
    """After a crash between the displacement and the placement, the winner gets the place of the same victims."""
    made = with_queues(gpus(3), BY_PRIORITY)
    low = made.plane.submit(*[spec(queue="x") for _ in range(3)])
    made.plane.run(10)
    made.cluster("alpha").disconnect(for_s=5)
    high = made.submit(queue="x", priority=5)
    ending = [each for each in made.plane.controller.live.attempts.values() if not each.state.live]
    assert len(ending) == 1
    made.plane.restart()
    made.plane.run(30)
    assert made.state(high) == "running"
    assert started(made, *low) == 2


def test_nothing_is_displaced_before_all_clusters_have_reported() -> None:
    """After a restart, neither a winner nor another job displaces more while a cluster with room is not known yet."""
    parts = fleet(*[cluster(node(gpu(), gpu()), name=name) for name in ("alpha", "beta")])
    made = with_queues(parts, BY_PRIORITY)
    old = made.plane.submit(*[spec(queue="x", clusters={"beta"}) for _ in range(2)])
    made.plane.run(100)
    young = made.submit(queue="x", clusters={"alpha"})
    made.plane.run(10)
    made.cluster("alpha").disconnect(for_s=10)
    winner = made.submit(queue="x", gpus=2, priority=5)
    made.plane.restart()
    other = made.submit(queue="x", priority=5)
    made.plane.run(5)
    assert started(made, *old) == 2
    made.plane.run(30)
    assert [made.state(each) for each in (young, winner, other)] == ["queued", "running", "running"]
    assert (made.where(winner), made.where(other), started(made, *old)) == ("alpha", "beta", 1)


@pytest.mark.parametrize("limit", [{}, {"gpus": 1000}])
def test_the_place_of_a_winner_goes_to_a_higher_priority(limit: Amounts) -> None:
    """While its victim is ending, a winner yields to a job that would displace it, and no further job ends."""
    made = with_queues(gpus(1 if not limit else 4), replace(BY_PRIORITY, limit=limit))
    low = made.submit(queue="x")
    made.plane.run(10)
    made.cluster("alpha").disconnect(for_s=10)
    winner = made.submit(queue="x", priority=1)
    made.plane.run(2)
    high = made.submit(queue="x", tenant="b", priority=5)
    made.plane.run(30)
    assert [made.state(each) for each in (low, winner, high)] == ["queued", "queued", "running"]
    assert made.job(winner).attempt == 0
    reasons = [each.reason for each in made.plane.store.events(0, 1000, job_id=winner)]
    assert f"its place goes to job {high} of higher priority" in reasons, "of another tenant: without its name"
    assert made.plane.controller.scheduler.preemptor.displaced.total() == 1


def test_the_place_of_a_winner_goes_to_an_equal_job_that_is_first() -> None:
    """An earlier job with the same request that has to move takes over the place, and neither waits for the other."""
    parts = fleet(*[cluster(node(gpu()), name=name) for name in ("alpha", "beta")])
    made = with_queues(parts, BY_PRIORITY)
    early = made.submit(queue="x", priority=5)
    made.submit(queue="x")
    made.plane.run(10)
    away = made.where(early)
    made.cluster("alpha" if away == "beta" else "beta").disconnect(for_s=10)
    winner = made.submit(queue="x", priority=5)
    made.plane.operations.cordon(away, "", "ada", "test", drain=True)
    made.plane.run(60)
    assert [made.state(each) for each in (early, winner)] == ["running", "queued"]
    assert made.plane.controller.scheduler.preemptor.displaced.total() == 1


ROOM = {"gpus": 1000}
"""Room of one GPU, where the fleet has four."""


@pytest.mark.parametrize("crash", [None, *range(5)])
@pytest.mark.parametrize("limited", ["queue", "parent", "tenant", "user", "lending"])
def test_another_job_does_not_take_the_room_of_the_victims(limited: str, crash: int | None) -> None:
    """Room under limits is reserved for the winner until it has its place, also if a crash comes before any commit."""
    made = with_queues(
        gpus(4),
        Queue("lab", limit=ROOM if limited == "parent" else {}),
        replace(BY_PRIORITY, parent="lab", limit=ROOM if limited == "queue" else {}),
        Queue("y", parent="lab", priority=9),
        *([Queue("keeps", guarantee={"gpus": 3000}, lending_limit={"gpus": 0})] if limited == "lending" else ()),
    )
    quotas = {"tenant": Quota(limit=ROOM), "user": Quota(user_limit=ROOM)}
    if limited in quotas:
        made.plane.writer.commit([Change(put=[Tenant("a", quotas={"default": quotas[limited]})])])
    made.submit(queue="x", tenant="a", gpus=0)  # so that the other tenant goes first
    low = made.submit(queue="x", tenant="a", expected_duration_s=3600)
    made.plane.run(10)
    queue, tenant = ("x" if limited == "queue" else "y"), ("a" if limited in quotas else "b")
    high, other = made.plane.submit(
        spec(queue="x", tenant="a", priority=5), spec(queue=queue, tenant=tenant, expected_duration_s=3600)
    )
    if crash is not None:
        made.plane.writer.meanwhile.extend([lambda: None] * crash + [_crash])
        with pytest.raises(_CrashError):
            made.plane.run(10)
        made.plane.restart()
    made.plane.run(30)
    assert [made.state(each) for each in (low, high, other)] == ["queued", "running", "queued"]
    assert made.plane.attempt(low).number == made.plane.attempt(high).number == 1
    made.plane.jobs.cancel(high, "ada")
    made.plane.run(10)
    assert started(made, low, other) == 1


def test_a_waiting_job_says_that_room_is_reserved() -> None:
    """While one of two victims is still ending, the room of the other is not free for a third job."""
    parts = fleet(*[cluster(node(gpu(), gpu()), name=name) for name in ("alpha", "beta")])
    made = with_queues(parts, replace(BY_PRIORITY, limit={"gpus": 2000}))
    made.plane.submit(*[spec(queue="x", clusters={name}) for name in ("alpha", "beta")])
    made.plane.run(10)
    made.cluster("beta").disconnect(for_s=10)
    high = made.submit(queue="x", gpus=1, replicas=2, gang=True, priority=5)
    other = made.submit(queue="x", tenant="b")
    reason = DryRuns(made.plane.controller).reason(made.job(other), None)
    assert (reason.code, reason.params["reserved"]) == ("queue_limit", "1")
    assert made.job(other).reason == (
        "queue 'x' holds 1 of its limit of 2 gpus, with 1 reserved for jobs that displaced others, "
        "and this job requests 1"
    )
    made.plane.run(30)
    assert [made.state(each) for each in (high, other)] == ["running", "queued"]


@pytest.mark.parametrize("crash", [1, 2, 3])
def test_room_is_reserved_before_the_cluster_of_the_winner_reports(crash: int) -> None:
    """After a restart, a job in a cluster that reports earlier does not take the room of a winner in another."""
    parts = fleet(*[cluster(node(gpu()), name=name) for name in ("alpha", "beta")])
    made = with_queues(parts, replace(BY_PRIORITY, limit=ROOM))
    low = made.submit(queue="x", clusters={"alpha"}, expected_duration_s=3600)
    made.plane.run(10)
    high, other = made.plane.submit(
        spec(queue="x", clusters={"alpha"}, priority=5), spec(queue="x", clusters={"beta"}, tenant="b")
    )
    made.plane.writer.meanwhile.extend([lambda: None] * crash + [_crash])
    with pytest.raises(_CrashError):
        made.plane.run(10)
    made.cluster("alpha").disconnect(for_s=5)
    made.plane.restart()
    made.plane.run(30)
    assert [made.state(each) for each in (low, high, other)] == ["queued", "running", "queued"]
    assert (made.job(low).attempt, made.job(other).attempt) == (1, 0)


class _CrashError(Exception):
    """End of the process before a commit."""


def _crash() -> None:
    raise _CrashError


def test_a_waiting_job_says_what_it_waits_for() -> None:
    """Explain names the reservation while victims are ending."""
    made = with_queues(gpus(1), BY_PRIORITY)
    made.submit(queue="x")
    made.plane.run(5)
    made.cluster("alpha").disconnect(for_s=5)
    high = made.submit(queue="x", priority=5)
    reason = DryRuns(made.plane.controller).reason(made.job(high), None)
    assert reason.code == "reserved"
    assert reason.message.startswith("waits until job work has ended, at 20")
    assert reason.message.endswith(" at the latest; alpha/node-0 is reserved for it")


def test_a_gang_over_clusters_takes_bandwidth_between_them_back() -> None:
    """Where devices are free in both clusters, the gang that holds the bandwidth between them ends as a whole."""
    links = [Link("gw-alpha", "gw-beta", 1, bandwidth_mbps=1000), Link("gw-beta", "gw-alpha", 1, bandwidth_mbps=1000)]
    parts = [cluster(node(gpu(), gpu()), name=name, gateway=f"gw-{name}") for name in ("alpha", "beta")]
    made = with_queues(fleet(*parts, links=links), BY_PRIORITY)
    wide = {"queue": "x", "gpus": 1, "replicas": 2, "gang": True, "cpu_milli": 40_000}
    low = made.submit(**wide, between_replicas=NetworkNeed(min_bandwidth_mbps=700))
    made.plane.run(10)
    assert made.job(low).clusters == ("alpha", "beta")
    small = made.submit(queue="x", gpus=0)
    wide["cpu_milli"] = 20_000
    high = made.submit(**wide, priority=5, between_replicas=NetworkNeed(min_bandwidth_mbps=500))
    made.plane.run(10)
    assert [made.state(each) for each in (low, small, high)] == ["queued", "running", "running"]


def test_without_a_restart_cost_the_least_work_is_lost() -> None:
    """The setting counts from the next start on; 0 compares the lost work alone."""
    made = with_queues(fleet(*[cluster(node(gpu(), gpu()), name=name) for name in ("alpha", "beta")]), BY_PRIORITY)
    made.plane.controller.live.scheduler = SchedulerSettings(restart_cost=0)
    made.plane.store.set_available(False)
    with pytest.raises(UnavailableError):
        made.plane.submit(spec())
    made.plane.store.set_available(True)
    made.plane.run(5)
    long = made.submit(queue="x", gpus=2)
    made.plane.run(25)
    new = [made.submit(queue="x") for _ in range(2)]
    made.plane.run(5)
    urgent = made.submit(queue="x", gpus=2, priority=50)
    made.plane.run(10)
    assert [made.state(each) for each in (urgent, long, *new)] == ["running", "running", "queued", "queued"]
