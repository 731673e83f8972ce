"""Clusters that left the fleet, and their attempts."""

from __future__ import annotations

import pytest

from seaway.application.changes import Change
from seaway.application.clusters import ClusterRemoval
from seaway.application.control.state import deployment
from seaway.application.records import PendingCommand, Verb
from seaway.application.views import ClusterState
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.errors import ConflictError, UnavailableError, UnknownError
from seaway.domain.job_state import AttemptState
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.records import cluster_name
from tests.unit.application.scene import Scene, scene


def of_fleet(made: Scene, *names: str) -> None:
    """Keep only these clusters in the fleet."""
    those = [made.cluster(name) for name in names]
    made.clusters.clusters = lambda: those  # type: ignore[method-assign]


def four(gpus: int = 2, **settings: float) -> Scene:
    """Create four clusters of one node each."""
    parts = [cluster(node(*[gpu() for _ in range(gpus)]), name=name) for name in ("alpha", "beta", "gamma", "delta")]
    return scene(fleet(*parts), **settings)


def events(made: Scene, kind: str) -> list[str]:
    """Return the events of the fleet of a kind."""
    return [event.reason for event in made.plane.store.events(0, 1000) if event.kind == kind]


def cluster_removal(made: Scene) -> ClusterRemoval:
    """Return the removal of clusters of a scene."""
    return ClusterRemoval(made.plane.store, made.plane.writer, made.plane.controller, made.clock)


def test_what_left_is_given_up_after_the_grace_period() -> None:
    """A fleet file may be fixed: jobs stay as long as in a silent cluster, then move elsewhere."""
    made = four(grace_period_s=60)
    job_id = made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(55)
    assert made.where(job_id) == "alpha"
    made.plane.run(10)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")
    assert (
        made.plane.store.attempts(job_id)[0].reason
        == "alpha is not in the fleet any more; it is queued for another place"
    )
    assert events(made, "cluster")[-1] == "alpha is not in the fleet any more and counts as lost"
    made.plane.run(60)
    assert sum("counts as lost" in each for each in events(made, "cluster")) == 1


def test_what_left_shows_the_age_of_its_last_report() -> None:
    """A cluster that left and still has jobs never reads as if it had not reported, also after a restart."""
    made = four(grace_period_s=600)
    made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(120)
    made.plane.restart()
    made.plane.run(5)
    (alpha,) = [each for each in made.plane.overview.clusters() if each.name == "alpha"]
    assert (alpha.state.value, alpha.reported_ns is not None) == ("gone", True)
    assert 120 <= alpha.last_seen_s <= 190


def test_a_job_waits_no_longer_for_a_lost_cluster_while_the_fleet_is_empty() -> None:
    """A job whose attempt is being removed from a cluster that left may be tried after the grace period.

    That is valid also if all other clusters have left meanwhile. The first that joins gets the job.
    """
    made = four(grace_period_s=60)
    job_id = made.submit()
    made.plane.run(5)
    made.cluster("alpha").disconnect(1000)
    made.plane.jobs.suspend(job_id, "ada")
    made.plane.jobs.resume(job_id, "ada")
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(10)
    of_fleet(made)
    live = made.plane.controller.live
    assert live.blocked(made.job(job_id)) == "attempt 1 is being removed from alpha"
    made.plane.run(60)
    assert (live.blocked(made.job(job_id)), job_id in live.waiting) == ("", True)
    assert events(made, "cluster")[-1] == "alpha is not in the fleet any more and counts as lost"
    of_fleet(made, "beta")
    made.plane.run(10)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")


def test_what_returns_in_time_keeps_its_jobs() -> None:
    """A cluster that returns to the fleet before the grace period ends counts as never gone."""
    made = four(grace_period_s=60)
    job_id = made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(50)
    of_fleet(made, "alpha", "beta", "gamma", "delta")
    made.plane.run(200)
    assert (made.state(job_id), made.where(job_id), made.job(job_id).attempt) == ("running", "alpha", 1)


def test_most_of_the_fleet_may_leave() -> None:
    """Clusters that left do not count as silent: nothing halts, and jobs move at the limited rate."""
    made = four(grace_period_s=20, stale_after_s=10, max_reschedules_per_minute=2)
    jobs = [made.submit() for _ in range(4)]
    made.plane.run(5)
    assert {made.where(each) for each in jobs} == {"alpha", "beta"}
    of_fleet(made, "gamma", "delta")
    made.plane.run(24)
    assert sum(made.where(each) in {"gamma", "delta"} for each in jobs) == 2
    made.plane.run(60)
    assert {made.where(each) for each in jobs} == {"gamma", "delta"}
    assert not events(made, "rescheduling_halted")


def test_a_halt_concerns_only_what_is_unreachable() -> None:
    """While most clusters of the fleet are silent, jobs of a cluster that left are still placed elsewhere."""
    made = four(grace_period_s=20, stale_after_s=10)
    in_alpha, in_beta = made.submit(gpus=2), made.submit(gpus=2)
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    for name in ("beta", "gamma"):
        made.cluster(name).disconnect()
    made.plane.run(40)
    assert (made.where(in_alpha), made.where(in_beta)) == ("delta", "beta")
    assert events(made, "rescheduling_halted") == [
        "2 of 3 clusters do not answer: the control plane may be at fault, so nothing is placed elsewhere"
    ]


def test_a_fleet_without_clusters_moves_nothing() -> None:
    """When every cluster left there is no other place, and a mistake is assumed."""
    made = four(grace_period_s=20)
    job_id = made.submit()
    made.plane.run(5)
    of_fleet(made)
    made.plane.run(100)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


@pytest.mark.parametrize("restart", [False, True])
def test_a_resumed_job_waits_for_what_left_as_others_do(restart: bool) -> None:
    """A workload in a cluster that left may still run: its job is placed elsewhere after the grace period."""
    made = four(grace_period_s=60)
    job_id = made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(10)
    made.plane.jobs.suspend(job_id, "ada")
    made.plane.jobs.resume(job_id, "ada")
    if restart:
        made.plane.restart()
    made.plane.run(45)
    assert (made.state(job_id), made.job(job_id).attempt) == ("queued", 1)
    assert "attempt 1 is being removed from alpha" in made.plane.overview.reason(made.job(job_id)).message
    made.plane.run(25)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")


def test_a_cluster_may_leave_over_a_restart() -> None:
    """The grace period of a cluster that a new process does not know begins with the first report of the others."""
    made = four(grace_period_s=20)
    job_id = made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.restart()
    made.plane.run(18)
    assert made.where(job_id) == "alpha"
    made.plane.run(10)
    assert (made.state(job_id), made.where(job_id)) == ("running", "beta")


def test_what_is_gone_is_shown_while_it_holds_something() -> None:
    """A cluster that left is listed after the others, with its attempts, until there are none."""
    made = four(grace_period_s=20, sample_interval_s=8)
    job_id = made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(8)
    last = made.plane.store.cluster_samples("alpha", 0, 100)[-1]
    assert (last.state, last.jobs, last.gpu_milli_used, last.gpus) == ("gone", 1, 1000, 0)
    shown = made.plane.overview.clusters()
    assert [each.name for each in shown] == ["beta", "gamma", "delta", "alpha"]
    gone = shown[-1]
    assert (gone.state, gone.jobs, gone.gpu_milli.used, gone.gpus, gone.last_seen_s) == (
        ClusterState.GONE,
        1,
        1000,
        0,
        8,
    )
    figures = made.plane.overview.figures()
    assert figures.clusters == {"up": 3, "gone": 1}
    assert figures.last_seen_s == {"beta": 0, "gamma": 0, "delta": 0, "alpha": 8}
    made.plane.run(40)
    assert made.where(job_id) == "beta"
    assert made.plane.overview.clusters()[-1].state is ClusterState.GONE
    assert cluster_removal(made).remove("alpha", "ada") == 1
    made.plane.settle()
    assert [each.name for each in made.plane.overview.clusters()] == ["beta", "gamma", "delta"]


def test_forgetting_frees_allocations_at_once() -> None:
    """With a removal, attempts there end immediately, no more commands are sent, and jobs move elsewhere."""
    made = four(grace_period_s=1000)
    runs, stops = made.submit(), made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(2)
    made.plane.jobs.cancel(stops, "ada")
    made.plane.settle()
    assert [each.verb for each in made.plane.store.pending_commands()] == [Verb.DELETE]
    assert cluster_removal(made).remove("alpha", "ada") == 2
    assert not list(made.plane.store.pending_commands())
    made.plane.run(5)
    assert (made.state(runs), made.where(runs), made.state(stops)) == ("running", "beta", "cancelled")
    assert {each.state for each in made.plane.store.attempts(stops)} == {AttemptState.ENDED}
    assert [event.actor for event in made.plane.store.events(0, 1000) if event.kind == "cluster_removed"] == ["ada"]
    of_fleet(made, "alpha", "beta", "gamma", "delta")
    made.plane.run(5)
    assert made.phase("alpha", runs) is None


def test_forgetting_frees_the_name() -> None:
    """Another cluster may use it then, also if nothing was held any more; others keep theirs."""
    made = four(grace_period_s=1000)
    made.plane.run(1)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.run(1)
    alpha, beta = cluster_name(name="alpha", uid="a"), cluster_name(name="beta", uid="b")
    made.plane.store.commit([Change(put=[alpha, beta])])
    assert cluster_removal(made).remove("alpha", "ada") == 0
    assert made.plane.store.cluster_names() == [beta]
    with pytest.raises(UnknownError, match="cluster 'alpha' not found"):
        cluster_removal(made).remove("alpha", "ada")


def test_the_rest_of_a_job_is_removed_first() -> None:
    """For a job in a removed and another cluster, the other workload is removed before the job is placed again."""
    made = four(gpus=1, grace_period_s=1000)
    job_id = made.submit(replicas=2)
    made.plane.run(5)
    assert made.job(job_id).clusters == ("alpha", "beta")
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.settle()
    made.cluster("beta").disconnect()
    assert cluster_removal(made).remove("alpha", "ada") == 1
    made.plane.run(8)
    assert [(each.cluster, each.verb) for each in made.plane.store.pending_commands()] == [("beta", Verb.DELETE)]
    assert made.state(job_id) == "queued"
    made.cluster("beta").reconnect()
    made.plane.run(20)
    assert made.state(job_id) == "running"
    assert made.plane.store.attempts(job_id)[0].state is AttemptState.ENDED
    assert made.phase("beta", job_id, 1) is None


def ends_in_two() -> tuple[Scene, str, list[PendingCommand]]:
    """Cancel a job of two clusters, one of which left and one is silent; return the pending commands of both."""
    made = four(gpus=1, grace_period_s=1000)
    job_id = made.submit(replicas=2)
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.settle()
    made.cluster("beta").disconnect()
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.settle()
    return made, job_id, list(made.plane.store.pending_commands())


def test_the_last_removal_and_forgetting_may_cross() -> None:
    """If both assume that the other still has something to do, the loop ends the attempt."""
    made, job_id, rows = ends_in_two()
    assert [(each.cluster, each.verb) for each in rows] == [("alpha", Verb.DELETE), ("beta", Verb.DELETE)]
    assert cluster_removal(made).remove("alpha", "ada") == 1
    assert [each.cluster for each in made.plane.store.pending_commands()] == ["beta"]
    made.plane.store.commit([Change(delete=[rows[1]])])
    made.plane.restart()
    made.plane.run(2)
    assert made.plane.attempt(job_id).state is AttemptState.ENDED


def test_forgetting_goes_on_where_a_user_was_quicker() -> None:
    """A job that changes concurrently is processed again."""
    made = four(grace_period_s=1000)
    job_id = made.submit()
    made.plane.run(5)
    of_fleet(made, "beta", "gamma", "delta")
    made.plane.settle()
    made.plane.writer.meanwhile.append(lambda: made.plane.jobs.suspend(job_id, "bob"))
    assert cluster_removal(made).remove("alpha", "ada") == 1
    made.plane.settle()
    assert made.state(job_id) == "suspended"
    assert made.plane.attempt(job_id).state is AttemptState.ENDED


def test_only_what_left_is_forgotten() -> None:
    """A cluster of the fleet cannot be removed, an unknown one is an error, and before the start it is undecided."""
    made = four()
    made.submit()
    made.plane.run(5)
    with pytest.raises(ConflictError, match="drain"):
        cluster_removal(made).remove("alpha", "ada")
    with pytest.raises(UnknownError, match="cluster 'nowhere' not found"):
        cluster_removal(made).remove("nowhere", "ada")
    made.plane.restart()
    with pytest.raises(UnavailableError, match="not known yet"):
        cluster_removal(made).remove("alpha", "ada")


def test_an_old_placement_is_confirmed_after_a_restart() -> None:
    """A placement without an answer during a restart gets the full timeout from the start."""
    made = four(assume_timeout_s=30, grace_period_s=1000)
    made.cluster("alpha").disconnect()
    job_id = made.submit()
    made.plane.run(10)
    made.clock.advance_s(3600)
    made.plane.restart()
    made.plane.run(12)
    assert (made.state(job_id), made.job(job_id).attempt) == ("scheduled", 1)
    made.cluster("alpha").reconnect()
    made.plane.run(20)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)
    assert made.phase("alpha", job_id) is WorkloadPhase.RUNNING


def test_an_old_placement_expires_after_a_restart_too() -> None:
    """If it is still not confirmed by then, the job moves elsewhere."""
    made = four(assume_timeout_s=30, grace_period_s=1000)
    made.cluster("alpha").disconnect()
    job_id = made.submit()
    made.plane.restart()
    made.plane.run(32)
    assert made.state(job_id) == "queued"
    assert made.job(job_id).reason == "alpha did not confirm it within 30 s"


def used(made: Scene, name: str) -> int:
    """Return the thousandths of GPUs in use in a cluster."""
    (found,) = [each for each in made.plane.overview.clusters() if each.name == name]
    return found.gpu_milli.used


def ending_in_two(made: Scene) -> str:
    """Cancel a job of two clusters while one of them, beta, does not answer."""
    job_id = made.submit(replicas=2)
    made.plane.run(5)
    assert {each.cluster for each in made.plane.attempt(job_id).placements} == {"alpha", "beta"}
    made.cluster("beta").disconnect()
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.run(5)
    return job_id


@pytest.mark.parametrize("restarted", [False, True])
def test_what_is_ending_holds_devices_only_where_a_removal_is_owed(restarted: bool) -> None:
    """A cluster that removed its part has room for others, whatever the other clusters of the attempt do."""
    made = scene(fleet(*[cluster(node(gpu()), name=name) for name in ("alpha", "beta")]), grace_period_s=1000)
    job_id = ending_in_two(made)
    if restarted:
        made.plane.restart()
        made.plane.run(5)
    assert (used(made, "alpha"), used(made, "beta")) == (0, 1000)
    other = made.submit()
    made.plane.run(5)
    assert (made.state(other), made.where(other)) == ("running", "alpha")
    made.cluster("beta").reconnect()
    made.plane.run(60)
    assert made.plane.attempt(job_id).state is AttemptState.ENDED
    assert (used(made, "alpha"), used(made, "beta")) == (1000, 0)


def test_a_cluster_that_left_keeps_nothing_of_an_attempt_but_its_own_part() -> None:
    """An ending attempt in a cluster that never returns this one has nothing elsewhere."""
    made = scene(fleet(*[cluster(node(gpu()), name=name) for name in ("alpha", "beta", "gamma")]), grace_period_s=20)
    job_id = made.submit(replicas=2)
    made.plane.run(5)
    of_fleet(made, "alpha", "gamma")
    made.plane.run(60)
    assert (made.state(job_id), made.job(job_id).clusters) == ("running", ("alpha", "gamma"))
    assert (used(made, "alpha"), used(made, "beta")) == (1000, 1000)


def test_what_is_left_where_a_removal_was_confirmed_is_removed_again() -> None:
    """A workload that reappears in a cluster that removed it is orphaned, while the attempt still ends elsewhere."""
    made = scene(fleet(*[cluster(node(gpu()), name=name) for name in ("alpha", "beta")]), grace_period_s=1000)
    job_id = made.submit(replicas=2)
    made.plane.run(5)
    again = deployment(made.plane.attempt(job_id), "alpha")
    made.cluster("beta").disconnect()
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.run(5)
    made.cluster("alpha").send([again])
    made.plane.run(5)
    assert made.phase("alpha", job_id) is None


def test_the_last_removal_and_forgetting_may_cross_while_the_loop_goes_on() -> None:
    """It ends the attempt also if that this one has nothing any more, and is only in memory."""
    made, job_id, rows = ends_in_two()
    made.plane.writer.commit([Change(delete=[row]) for row in rows])
    made.plane.run(2)
    assert made.plane.attempt(job_id).state is AttemptState.ENDED
    assert (used(made, "beta"), made.plane.controller.live.done) == (0, set())
