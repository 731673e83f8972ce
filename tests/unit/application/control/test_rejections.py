from __future__ import annotations

from seaway.application.control.rejections import Refusals, any_node_fits
from seaway.application.control.reports import Observation
from seaway.application.ports.backend import Changes
from seaway.domain.cluster import Fleet
from seaway.domain.deployment import Cause, Workload, WorkloadPhase
from seaway.domain.placement import DeviceSlice, Placement
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.application.scene import Scene, scene

PLAIN = job(cpu_milli=1000).demand
ONE_GPU = job(gpus=1).demand


def two_and_two() -> Fleet:
    """Create clusters ``alpha`` and ``beta`` with two nodes each, of which one of alpha's has a GPU."""
    alpha = cluster(node(gpu(uuid="GPU-1"), name="a0"), node(name="a1"), name="alpha")
    return fleet(alpha, cluster(node(name="b0"), node(name="b1"), name="beta"))


def turned_away(made: Scene, job_id: str, cause: Cause) -> tuple[str, str]:
    """Have a cluster reject a job's latest attempt, and wait; return the place."""
    attempt = made.plane.attempt(job_id)
    place = attempt.placements[0]
    copy = Workload(job_id, attempt.number, place.cluster, WorkloadPhase.FAILED, reason="not here", cause=cause)
    received = Observation(place.cluster, Changes("x", complete=False, workloads=(copy,)), 0)
    made.plane.writer.commit(made.plane.controller.observer.changes([received]))
    made.plane.run(70)
    return place.cluster, place.node


def test_a_job_without_devices_goes_to_another_cluster_when_one_denies_it() -> None:
    """A quota applies to all nodes, so that none of them is retried while another cluster has one."""
    made = scene(two_and_two())
    job_id = made.submit(gpus=0)
    made.plane.settle()
    first, _ = turned_away(made, job_id, Cause.REJECTED)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 2)
    assert made.where(job_id) != first


def test_a_job_without_devices_goes_to_another_node_when_one_refuses_it() -> None:
    """A node with too many pods accepts none whatever is free there; the next attempt avoids it."""
    made = scene(two_and_two())
    job_id = made.submit(gpus=0)
    made.plane.settle()
    been = {turned_away(made, job_id, Cause.UNSCHEDULABLE) for _ in range(3)}
    assert len(been) == 3
    place = made.plane.attempt(job_id).placements[0]
    assert made.state(job_id) == "running"
    assert (place.cluster, place.node) not in been


def test_a_job_that_could_go_nowhere_else_is_sent_there_again() -> None:
    """If a job may use only one cluster, it waits for its quota there, with longer and longer pauses."""
    made = scene(two_and_two(), exclusion_period_s=10_000)
    job_id = made.submit(gpus=0, clusters={"alpha"})
    made.plane.settle()
    for cause in (Cause.REJECTED, Cause.REJECTED, Cause.UNSCHEDULABLE, Cause.UNSCHEDULABLE):
        turned_away(made, job_id, cause)
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 5)


def test_a_job_may_return_to_where_it_was_refused() -> None:
    """An exclusion ends after a while."""
    made = scene(two_and_two(), exclusion_period_s=100)
    job_id = made.submit(gpus=0)
    made.plane.settle()
    turned_away(made, job_id, Cause.REJECTED)
    assert made.plane.controller.live.refusals[job_id].places
    made.plane.run(100)
    assert made.plane.controller.live.refusals[job_id] == Refusals(1)


def test_devices_are_refused_apart_from_their_node() -> None:
    """A device that a node did not provide does not affect the node's others."""
    placement = Placement("job", 0, "alpha", "a0", (DeviceSlice("GPU-1", 1, 1),))
    made = Refusals().with_rejection(ONE_GPU, [placement], set(), Snapshot(two_and_two()))
    assert made == Refusals(1, frozenset({"GPU-1"}))


def test_what_the_job_was_stored_from_before_still_counts() -> None:
    """Exclusions add up until no place is left; then they stay."""
    snapshot = Snapshot(two_and_two())
    made = Refusals()
    for at in (("beta", "b0"), ("alpha", "a1"), ("alpha", "a0")):
        made = made.with_rejection(PLAIN, [Placement("job", 0, *at)], set(), snapshot)
    assert made == Refusals(3, places=frozenset({("beta", "b0"), ("alpha", "a1"), ("alpha", "a0")}))
    last = made.with_rejection(PLAIN, [Placement("job", 0, "beta", "b1")], {"beta"}, snapshot)
    assert last == Refusals(4, places=made.places)


def test_only_what_is_open_and_allowed_is_somewhere_to_go() -> None:
    """Closed nodes, nodes excluded by rules, and nodes without a free device do not count as other places."""
    parts = fleet(cluster(node(gpu(uuid="GPU-1")), name="alpha"), cluster(node(gpu(), ready=False), name="beta"))
    snapshot = Snapshot(parts)
    assert any_node_fits(ONE_GPU, snapshot)
    assert not any_node_fits(job(gpus=1, clusters={"beta"}).demand, snapshot)
    assert not any_node_fits(job(gpus=1, avoid_uuids={"GPU-1"}).demand, snapshot)
    assert any_node_fits(job(cpu_milli=1, avoid_uuids={"GPU-1"}).demand, snapshot)
