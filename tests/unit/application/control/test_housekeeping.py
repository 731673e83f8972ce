from __future__ import annotations

import logging
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.application.changes import Change
from seaway.application.control.dispatch import InPlace
from seaway.application.ports.backend import Answer
from seaway.application.records import Event
from seaway.application.views import ClusterState
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.errors import ConflictError
from seaway.domain.job_state import AttemptState
from seaway.domain.queues import Queue
from seaway.domain.runtime import Run
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, known, scene

UNREACHABLE = "alpha does not answer: cluster 'alpha': cannot be reached (simulated)"


def three(gpus: int = 4, **settings: float) -> Scene:
    """Create three clusters of one node each."""
    parts = [cluster(node(*[gpu() for _ in range(gpus)]), name=name) for name in ("alpha", "beta", "gamma")]
    return scene(fleet(*parts), **settings)


def events(made: Scene, kind: str) -> list[str]:
    """Return the events of the fleet of a kind."""
    return [event.reason for event in made.plane.store.events(0, 1000) if event.kind == kind]


def test_a_placement_that_no_one_confirms_expires() -> None:
    """While a cluster does not answer, its placements are held for a while, then move elsewhere."""
    made = scene(assume_timeout_s=30, grace_period_s=1000)
    made.cluster("alpha").disconnect()
    job_id = made.submit()
    assert (made.state(job_id), made.where(job_id)) == ("scheduled", "alpha")
    made.plane.run(29)
    assert made.state(job_id) == "scheduled"
    made.plane.run(2)
    assert made.state(job_id) == "queued"
    assert made.job(job_id).reason == "alpha did not confirm it within 30 s"
    assert made.plane.attempt(job_id).state is AttemptState.ENDING
    made.cluster("alpha").reconnect()
    made.plane.run(20)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)


def test_a_placement_of_many_replicas_is_held_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replica may be an object to write: a slow cluster that makes progress can finish."""
    monkeypatch.setattr("seaway.application.control.settings.MANY", 2)
    made = scene(assume_timeout_s=30, grace_period_s=1000)
    made.cluster("alpha").disconnect()
    job_id = made.submit(replicas=4)
    assert (made.state(job_id), made.where(job_id)) == ("scheduled", "alpha")
    made.plane.run(89)
    assert made.state(job_id) == "scheduled"
    made.plane.run(2)
    assert made.job(job_id).reason == "alpha did not confirm it within 90 s"


def test_a_cluster_that_is_not_done_yet_gets_more_time_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst may take a cluster longer than one job: without more time none would ever run."""
    made = scene(assume_timeout_s=30, grace_period_s=10_000)
    slow = made.cluster("alpha")
    answer = Answer(done=False, reason="it is not bound yet", underway=True)
    monkeypatch.setattr(slow, "send", lambda commands: [answer] * len(commands))
    job_id = made.submit()
    made.plane.run(200)
    assert (made.state(job_id), made.job(job_id).attempt) == ("scheduled", 1)
    made.plane.run(120)
    assert made.state(job_id) != "scheduled"
    reported = [event.reason for event in made.plane.store.events(0, 1000, job_id=job_id)]
    assert any(each.startswith("alpha did not confirm it within 30") for each in reported)  # ten times as long


def test_a_cluster_that_was_not_reported_yet_need_not_have_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a burst a command may still be queued; its placement does not expire for that."""
    monkeypatch.setattr(InPlace, "awaits", lambda _, pending_commands: pending_commands.cluster == "alpha")
    made = scene(assume_timeout_s=30, grace_period_s=10_000)
    made.cluster("alpha").disconnect()
    job_id = made.submit()
    made.plane.run(200)
    assert (made.state(job_id), made.job(job_id).attempt) == ("scheduled", 1)


def test_a_confirmed_placement_does_not_expire() -> None:
    """A job that starts slowly was acknowledged; nothing is done about it."""
    made = scene(assume_timeout_s=10)
    made.cluster("alpha").slow_down(500)
    job_id = made.submit()
    made.plane.run(60)
    assert (made.state(job_id), made.job(job_id).attempt) == ("deploying", 1)


def held(made: Scene) -> dict[str, int]:
    """Return the number of GPUs that jobs hold in each cluster."""
    return {each.name: each.gpu_milli.used // 1000 for each in made.plane.overview.clusters()}


@pytest.mark.parametrize("unreachable", [False, True])
def test_a_gang_that_does_not_start_in_one_cluster_is_released_in_all(unreachable: bool) -> None:
    """After the time-out of its queue no cluster holds its devices, whether or not the late one answers then.

    A cluster that does not answer holds them until it confirms the removal, which delays no other cluster.
    """
    made = scene(grace_period_s=1000, exclusion_period_s=30)
    made.plane.writer.commit([Change(put=[Queue("default", start_timeout_s=120)])])
    made.cluster("beta").slow_down(100_000)
    job_id = made.submit(replicas=4, gang=True)
    made.plane.run(100)
    assert (made.state(job_id), held(made)) == ("deploying", {"alpha": 2, "beta": 2})
    if unreachable:
        made.cluster("beta").disconnect()
    made.plane.run(25)
    assert (made.state(job_id), held(made)) == ("queued", {"alpha": 0, "beta": 2 * unreachable})
    assert made.job(job_id).reason.startswith(
        "its replicas did not all run within 2m, so its devices are released; late: beta"
    )
    made.cluster("beta").slow_down(None)
    made.cluster("beta").reconnect()
    made.plane.run(60)
    assert (made.state(job_id), made.job(job_id).attempt, held(made)) == ("running", 2, {"alpha": 2, "beta": 2})


def test_a_restart_does_not_restart_the_time_out() -> None:
    """The time counts from the stored placement."""
    made = scene()
    made.plane.writer.commit([Change(put=[Queue("default", start_timeout_s=120)])])
    for name in ("alpha", "beta"):
        made.cluster(name).slow_down(100_000)
    job_id = made.submit()
    made.plane.run(100)
    made.plane.restart()
    made.plane.run(25)
    assert "did not all run within 2m" in [event.reason for event in events_of(made, job_id)][-1]


def events_of(made: Scene, job_id: str) -> list[Event]:
    """Return the state events of a job."""
    return [event for event in made.plane.store.events(0, 1000, job_id=job_id) if event.kind == "state"]


def test_a_queue_without_a_time_out_waits_for_ever() -> None:
    """Zero is no limit, and a change of the queue applies at once."""
    made = scene()
    made.plane.writer.commit([Change(put=[Queue("default", start_timeout_s=0)])])
    for name in ("alpha", "beta"):
        made.cluster(name).slow_down(100_000)
    job_id = made.submit()
    made.plane.run(20_000, 1000)
    assert (made.state(job_id), made.job(job_id).attempt) == ("deploying", 1)
    made.plane.writer.commit([Change(put=[Queue("default", start_timeout_s=600)])])
    made.plane.run(5)
    assert made.plane.attempt(job_id).state is not AttemptState.SENT or made.job(job_id).attempt > 1


def test_a_job_is_stopped_at_its_limit() -> None:
    """The limit counts from the start; then the job has failed, and its workloads are removed."""
    made = scene()
    job_id = made.submit(time_limit_s=30)
    made.plane.run(31)
    assert made.state(job_id) == "running"
    made.plane.run(3)
    assert made.state(job_id) == "failed"
    assert "limit of 30 s" in made.job(job_id).reason
    assert made.phase("alpha", job_id) is None


def test_a_limit_outlives_a_change_in_between() -> None:
    """When a user changes a job while its limit is reached, it ends a second later."""
    made = scene()
    job_id = made.submit(time_limit_s=30)
    made.plane.run(20)
    made.clock.advance_s(20)
    made.plane.writer.meanwhile.append(lambda: made.plane.jobs.change(job_id, made.job(job_id).spec, "ada"))
    made.plane.settle()
    made.plane.run(3)
    assert made.state(job_id) == "failed"


def test_a_lease_ends_on_time_after_a_warning() -> None:
    """The end is stored with the start. A quarter before it there is one warning, then the devices are given back."""
    made = scene()
    job_id = made.submit(lease_s=60)
    made.plane.run(5)
    expires_ns = made.job(job_id).expires_ns
    assert expires_ns is not None
    started_ns = made.job(job_id).started_ns
    assert expires_ns == (started_ns or 0) + 60 * 10**9

    def warnings() -> list[str]:
        return [each.reason for each in made.plane.store.events(0, 1000, job_id=job_id) if each.kind == "lease"]

    made.plane.run(35)
    assert warnings() == []
    made.plane.run(15)
    assert (made.state(job_id), len(warnings())) == ("running", 1)
    made.plane.run(10)
    assert (made.state(job_id), made.job(job_id).reason[:15]) == ("cancelled", "its lease ended")
    assert made.phase("alpha", job_id) is None
    assert len(warnings()) == 1


def test_a_lease_is_renewed_by_hand_and_by_use() -> None:
    """Each renewal counts from now, use at most once a minute, and a restart of Seaway changes no end."""
    made = scene()
    job_id, other = made.submit(lease_s=200), made.submit()
    with pytest.raises(ConflictError, match="has no lease"):
        made.plane.jobs.renew(other, "ada")
    made.plane.run(150)
    made.plane.jobs.renew(job_id, "ada")
    made.plane.run(10)
    before = made.job(job_id).expires_ns or 0
    for each in (job_id, other, "6hhgq2g019edv"):
        made.plane.jobs.used(each, "ada")
    assert made.job(job_id).expires_ns == before
    made.plane.run(140)
    made.plane.jobs.used(job_id, "ada")
    assert (made.job(job_id).expires_ns or 0) > before + 140 * 10**9
    made.plane.restart()
    made.plane.run(190)
    assert made.state(job_id) == "running"
    made.plane.run(20)
    assert (made.state(job_id), made.state(other)) == ("cancelled", "running")
    with pytest.raises(ConflictError, match="begins when it runs"):
        made.plane.jobs.renew(job_id, "ada")


def test_a_job_that_runs_again_has_a_new_lease() -> None:
    """While it waits, it has none."""
    made = scene()
    job_id = made.submit(lease_s=60)
    made.plane.run(30)
    made.plane.jobs.suspend(job_id, "ada")
    assert made.job(job_id).expires_ns is None
    made.plane.run(60)
    made.plane.jobs.resume(job_id, "ada")
    made.plane.run(50)
    assert made.state(job_id) == "running"
    made.plane.run(20)
    assert made.state(job_id) == "cancelled"


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
def test_setting_the_clock_ends_nothing(jump_s: int) -> None:
    """Limits and expiries use the monotonic time, not the time of day."""
    made = scene()
    job_id = made.submit(time_limit_s=60)
    made.plane.run(10)
    made.clock.jump(jump_s * 10**9)
    made.plane.run(40)
    assert made.state(job_id) == "running"
    made.plane.run(20)
    assert made.state(job_id) == "failed"


def test_a_unreachable_cluster_gets_no_work_then_loses_its_jobs() -> None:
    """After a while it gets no new jobs; after the grace period its jobs are placed elsewhere."""
    made = three(stale_after_s=15, grace_period_s=60)
    job_id = made.submit()
    made.plane.run(5)
    made.cluster("alpha").disconnect()
    made.plane.run(17)
    assert known(made, "alpha") is ClusterState.STALE
    assert made.where(made.submit()) != "alpha"
    assert made.where(job_id) == "alpha"
    made.plane.run(50)
    assert known(made, "alpha") is ClusterState.LOST
    assert made.state(job_id) == "running"
    assert made.where(job_id) != "alpha"
    assert "alpha has not answered for" in events(made, "cluster")[-1]


def test_a_silence_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    """The reason is logged when the cluster counts as silent, and the duration when it is back."""
    made = three(stale_after_s=15, grace_period_s=60)
    made.plane.run(5)
    caplog.set_level(logging.WARNING, "seaway.application.control")
    for _ in range(2):  # too short to count
        made.cluster("alpha").disconnect()
        made.plane.run(8)
        made.cluster("alpha").reconnect()
        made.plane.run(20)
    assert not caplog.messages
    for _ in range(2):
        caplog.clear()
        made.cluster("alpha").disconnect()
        made.plane.run(100)
        assert caplog.messages == [UNREACHABLE]
        made.cluster("alpha").reconnect()
        made.plane.run(20)
        assert len(caplog.messages) == 2
        assert re.fullmatch(r"alpha answers again, after 1\d\d s", caplog.messages[1])


def test_a_job_that_was_taken_from_a_place_says_what_it_waits_for_now() -> None:
    """The silence of its old cluster is no longer the reason once it was tried elsewhere, but names what it holds."""
    made = three(gpus=1)
    job_id, *_ = [made.submit() for _ in range(3)]
    made.plane.run(5)
    lost = made.where(job_id)
    made.cluster(lost).disconnect()
    made.plane.run(80)
    assert made.state(job_id) == "queued"
    held = f"it still holds 1 GPU in {lost}, which does not answer, and GPU-hours count on"
    reason = made.job(job_id).reason
    assert reason == f"waits first in its queue, and beta/node-0 is reserved for it; {held}"
    reported = [(event.kind, event.reason) for event in made.plane.store.events(0, 1000, job_id=job_id)]
    assert reported[-2:] == [
        ("state", f"{lost} does not answer; it is queued for another place"),
        ("blocked", reason),
    ]
    version = made.job(job_id).version
    made.submit(priority=9)
    made.cluster(lost).reconnect()
    for _ in range(30):
        made.plane.run(1)
        (shown,) = made.plane.overview.present([made.job(job_id)])
        assert (held in str(shown.reason)) is (known(made, lost) is ClusterState.LOST), "also while it is removed there"
    after = made.job(job_id)
    released = reason.removesuffix(f"; {held}")
    assert (after.state.value, after.reason, after.version) == ("queued", released, version + 1)


def test_a_job_of_a_drained_node_says_what_it_waits_for_now() -> None:
    """Its old node may already accept jobs again."""
    made = scene(fleet(cluster(node(gpu()), name="alpha")))
    job_id = made.submit()
    made.plane.run(5)
    made.plane.operations.cordon("alpha", "", "ada", "repair", drain=True)
    made.plane.run(20)
    assert (made.state(job_id), made.job(job_id).reason) == ("queued", "no node has room for it now")


def test_a_cluster_that_never_answered_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """It was never up; its silence is logged all the same, without an end."""
    caplog.set_level(logging.WARNING, "seaway.application.control")
    made = three(stale_after_s=15, grace_period_s=60)
    made.cluster("alpha").disconnect()
    made.plane.restart()
    made.plane.run(10)
    assert not caplog.messages
    made.plane.run(100)
    assert caplog.messages == [UNREACHABLE]


def test_the_old_copies_of_a_returning_cluster_are_removed() -> None:
    """Workloads of jobs that moved are removed there, and their devices are free only then."""
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    made.cluster("alpha").disconnect()
    made.plane.run(80)
    assert made.job(job_id).attempt == 2
    assert made.plane.store.attempts(job_id)[0].state is AttemptState.ENDING
    made.cluster("alpha").reconnect()
    assert made.phase("alpha", job_id, 1) is WorkloadPhase.RUNNING
    made.plane.run(12)
    assert made.phase("alpha", job_id, 1) is None
    assert made.plane.store.attempts(job_id)[0].state is AttemptState.ENDED
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)


def test_a_cluster_back_in_time_keeps_its_jobs() -> None:
    """Jobs of a cluster that answers again within the grace period continue in their place."""
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    made.cluster("alpha").disconnect(50)
    made.plane.run(100)
    assert (made.state(job_id), made.job(job_id).attempt, made.where(job_id)) == ("running", 1, "alpha")


def test_only_so_many_jobs_are_placed_again_in_a_minute() -> None:
    """The jobs of a large lost cluster do not move all at the same time."""
    made = three(gpus=8, max_reschedules_per_minute=3)
    jobs = [made.submit(cpu_milli=100) for _ in range(8)]
    made.plane.run(5)
    assert {made.where(job_id) for job_id in jobs} == {"alpha"}
    made.cluster("alpha").disconnect()
    made.plane.run(62)
    moved = [sum(made.where(job_id) != "alpha" for job_id in jobs)]
    for _ in range(3):
        made.plane.run(60)
        moved.append(sum(made.where(job_id) != "alpha" for job_id in jobs))
    assert moved == [3, 6, 8, 8]


def test_no_minute_moves_more_than_its_share() -> None:
    """In any minute, no more than `max_reschedules_per_minute` jobs are moved."""
    made = three(gpus=8, max_reschedules_per_minute=3)
    jobs = [made.submit(cpu_milli=100) for _ in range(8)]
    made.plane.run(5)
    made.cluster("alpha").disconnect()
    moved = []
    for _ in range(300):
        made.plane.run(1)
        moved.append(sum(made.where(job_id) != "alpha" for job_id in jobs))
    assert moved[-1] == 8
    assert max(after - before for before, after in zip(moved, moved[59:], strict=False)) == 3


def test_nothing_is_placed_elsewhere_when_most_clusters_are_unreachable() -> None:
    """When more than half of the clusters are silent, the fault is on this side: it is reported once, and all stays.

    Clusters that are still silent when enough answer again get the whole grace period once more.
    """
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    for name in ("alpha", "beta"):
        made.cluster(name).disconnect()
    made.plane.run(200)
    assert (made.job(job_id).attempt, made.where(job_id)) == (1, "alpha")
    assert len(events(made, "rescheduling_halted")) == 1
    made.cluster("beta").reconnect()
    made.plane.run(12)
    assert known(made, "beta") is ClusterState.UP
    assert made.where(job_id) == "alpha"
    made.plane.run(40)
    assert made.where(job_id) == "alpha"
    made.plane.run(20)
    assert made.where(job_id) != "alpha"


def test_what_a_unreachable_cluster_is_to_remove_is_not_started_elsewhere_during_a_halt() -> None:
    """A job that was withdrawn from a cluster waits until nothing runs there, or until the cluster is removed."""
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    for name in ("alpha", "beta"):
        made.cluster(name).disconnect()
    made.plane.jobs.change(job_id, replace(made.job(job_id).spec, run=Run("new")), "ada")
    made.plane.run(200)
    assert known(made, "alpha") is ClusterState.LOST
    assert (made.state(job_id), made.job(job_id).attempt) == ("queued", 1)
    assert "is being removed from alpha" in made.plane.overview.reason(made.job(job_id)).message
    made.cluster("beta").reconnect()
    made.plane.run(50)
    assert made.job(job_id).attempt == 1
    made.plane.run(30)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)


@pytest.mark.parametrize("gone_s", [0, 1, 2, 3])
@pytest.mark.parametrize("back_s", [0, 1, 2, 3])
def test_clusters_that_fall_unreachable_and_return_one_after_the_other_keep_their_jobs(
    gone_s: int, back_s: int
) -> None:
    """One fault can make clusters silent and return seconds apart; no job moves for that."""
    made = three()
    jobs = [made.submit() for _ in range(8)]
    made.plane.run(5)
    before = {job_id: made.where(job_id) for job_id in jobs}
    assert set(before.values()) == {"alpha", "beta"}
    made.cluster("beta").disconnect()
    made.plane.run(gone_s)
    made.cluster("alpha").disconnect()
    made.plane.run(150)
    made.cluster("alpha").reconnect()
    made.plane.run(back_s)
    made.cluster("beta").reconnect()
    made.plane.run(90)
    assert {job_id: made.where(job_id) for job_id in jobs} == before
    assert all(made.job(job_id).attempt == 1 for job_id in jobs)


@given(offsets=st.tuples(*[st.tuples(st.integers(0, 10), st.integers(0, 55))] * 3), outage_s=st.integers(0, 150))
@settings(max_examples=20, deadline=None)
def test_one_fault_of_many_clusters_moves_nothing(offsets: tuple[tuple[int, int], ...], outage_s: int) -> None:
    """However far apart most of the clusters fail and return within a grace period, no job moves."""
    made = scene(fleet(*[cluster(node(gpu()), name=name) for name in ("alpha", "beta", "gamma", "delta", "epsilon")]))
    jobs = [made.submit() for _ in range(3)]
    made.plane.run(5)
    before = {job_id: made.where(job_id) for job_id in jobs}
    steps = [(gone_s, "disconnect", name) for (gone_s, _), name in zip(offsets, before.values(), strict=True)]
    steps += [
        (10 + outage_s + back_s, "reconnect", name) for (_, back_s), name in zip(offsets, before.values(), strict=True)
    ]
    now_s = 0
    for at_s, verb, name in sorted(steps):
        made.plane.run(at_s - now_s)
        now_s = at_s
        getattr(made.cluster(name), verb)()
    made.plane.run(90)
    assert {job_id: made.where(job_id) for job_id in jobs} == before


def test_the_grace_after_a_halt_runs_only_while_a_user_listens() -> None:
    """An hour without a database right after a halt does not count against a cluster either."""
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    for name in ("alpha", "beta"):
        made.cluster(name).disconnect()
    made.plane.run(100)
    made.cluster("beta").reconnect()
    made.plane.run(5)
    made.clock.advance_s(3600)
    made.plane.run(20)
    made.cluster("alpha").reconnect()
    made.plane.run(30)
    assert (made.job(job_id).attempt, made.where(job_id)) == (1, "alpha")


def test_what_left_the_fleet_and_is_back_is_cleaned_up() -> None:
    """Removals for a cluster outside the fleet wait until it is back."""
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    everything = made.clusters.clusters()
    made.clusters.clusters = lambda: everything[1:]  # type: ignore[method-assign]
    made.plane.run(70)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")
    made.clusters.clusters = lambda: everything  # type: ignore[method-assign]
    made.plane.run(5)
    assert made.phase("alpha", job_id, 1) is None
    assert made.plane.store.attempts(job_id)[0].state is AttemptState.ENDED


def test_time_in_which_no_one_listened_is_held_against_no_cluster() -> None:
    """After an hour without a database, or of sleep, every cluster gets the usual time to answer."""
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    made.cluster("alpha").disconnect(3605)
    made.clock.advance_s(3600)
    made.plane.run(30)
    assert (made.job(job_id).attempt, made.where(job_id)) == (1, "alpha")
    assert made.plane.controller.live.fleet.clusters["alpha"].state is ClusterState.UP


def test_a_job_lost_in_part_goes_on_when_the_other_part_is_removed() -> None:
    """For a job in a lost and a reachable cluster, the reachable workload is removed first, then it is placed again."""
    made = scene(fleet(*[cluster(node(gpu()), name=name) for name in ("alpha", "beta", "gamma", "delta")]))
    job_id = made.submit(replicas=2)
    made.plane.run(5)
    assert made.job(job_id).clusters == ("alpha", "beta")
    made.cluster("alpha").disconnect()
    made.plane.run(90)
    assert made.state(job_id) == "running"
    assert "alpha" not in made.job(job_id).clusters
    assert made.phase("beta", job_id, 1) is None


def test_a_drained_node_is_left_by_its_jobs() -> None:
    """A drain moves running jobs and prevents new ones; a cordon only prevents new ones."""
    made = three()
    stays, moves = made.submit(), made.submit()
    made.plane.run(5)
    made.plane.operations.cordon("alpha", "node-0", "ada", "repair")
    made.plane.run(5)
    assert (made.where(stays), made.where(moves)) == ("alpha", "alpha")
    assert made.where(made.submit()) == "beta"
    made.plane.operations.cordon("alpha", "node-0", "ada", "repair", drain=True)
    made.plane.run(10)
    for job_id in (stays, moves):
        assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "beta", 2)
    made.plane.operations.uncordon("alpha", "node-0", "ada")
    assert made.where(made.submit()) in {"alpha", "beta"}


def test_a_drained_cluster_is_left_by_its_jobs() -> None:
    """A drain of a whole cluster applies to all of its nodes."""
    made = three()
    job_id = made.submit()
    made.plane.run(5)
    made.plane.operations.cordon("alpha", "", "ada", "repair", drain=True)
    made.plane.run(10)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")


def test_a_node_that_fails_is_left_by_its_jobs() -> None:
    """A job on a failed node is retried elsewhere, if it has retries."""
    made = three()
    job_id = made.submit(retries=1)
    made.plane.run(5)
    made.cluster("alpha").fail_node("node-0")
    made.plane.run(20)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")
    assert "node node-0 failed" in made.plane.store.attempts(job_id)[0].reason


def test_the_fleet_is_written_down_every_so_often() -> None:
    """Each cluster's usage is stored at intervals, for history."""
    made = scene(sample_interval_s=60)
    made.submit()
    made.plane.run(121, 10)
    samples = made.plane.store.cluster_samples("alpha", 0, 100)
    assert [sample.jobs for sample in samples] == [0, 1, 1]
    assert [sample.gpu_milli_used for sample in samples] == [0, 1000, 1000]
    assert all(sample.gpus == 2 and sample.gpu_milli == 2000 for sample in samples)
