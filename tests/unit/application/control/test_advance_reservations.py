"""Advance reservations and maintenance windows, through the control loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from seaway.application.whatif.dry_run import DryRuns
from seaway.application.whatif.question import Question
from seaway.domain.cluster import Fleet
from seaway.domain.errors import ConflictError, RejectedError, UnknownError
from seaway.domain.placement import Refusal
from seaway.domain.queues import Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import DEFAULT, Tenant
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec, two_clusters
from tests.unit.application.test_whatif import what_if

NS = 1_000_000_000


def mixed() -> Fleet:
    """Return a cluster with two GPUs of each of two models."""
    return fleet(cluster(node(*[gpu(model=name) for name in ("A100", "A100", "L4", "L4")]), name="alpha"))


def reserve(made: Scene, name: str = "demo", starts_s: float = 100, ends_s: float = 300, **fields: object) -> None:
    """Store a reservation with times from now."""
    now_ns = made.clock.now_ns()
    times = now_ns + int(starts_s * NS), now_ns + int(ends_s * NS)
    made.plane.operations.put_reservation(AdvanceReservation(name, *times, **fields), "ada")  # type: ignore[arg-type]
    made.plane.settle()


def with_tenants(parts: Fleet) -> Scene:
    """Create a control plane with the tenants a and b."""
    made = scene(parts)
    for name in "ab":
        made.plane.operations.put_tenant(Tenant(name), "ada")
    return made


def placed(made: Scene, **fields: object) -> bool:
    """Submit a job of one GPU, and report whether it starts."""
    return made.plane.state(made.submit(**fields)).placed


def start_s(made: Scene) -> float:
    """Return the expected start of the only waiting job, seconds from now; -1 if it is unknown."""
    (waiting,) = made.plane.overview.waiting()
    return -1 if waiting.starts_ns is None else (waiting.starts_ns - made.clock.now_ns()) / NS


def test_only_its_tenant_and_jobs_that_end_in_time_use_reserved_gpus() -> None:
    """Others get the rest; a job that may run into the reservation waits, and the reason names it."""
    made = with_tenants(fleet(cluster(node(gpu(), gpu()), name="alpha")))
    reserve(made, tenant="a", gpus=2)
    waits = made.submit(tenant="b")
    assert made.state(waits) == "queued"
    reason = DryRuns(made.plane.controller).reason(made.job(waits), None)
    assert reason.code == "reserved_in_advance"
    assert "1 node reserved for others from " in reason.message
    assert "demo" not in reason.message, "users may not see reservations of other tenants"
    assert not made.plane.controller.live.advance.view(made.plane.operations.reservations()[0].reservation).active
    assert not placed(made, tenant="b", expected_duration_s=50), "only a time limit is certain"
    assert placed(made, tenant="b", time_limit_s=50)
    assert placed(made, tenant="a")
    made.plane.run(301)
    assert made.plane.state(waits).placed, "the reservation has ended"
    assert made.plane.operations.reservations() == []


def test_gpus_of_its_model_are_reserved_where_they_are_free() -> None:
    """Jobs may use other models, and a GPU that a job holds without an end is not chosen while another is free."""
    made = with_tenants(mixed())
    first = made.submit(tenant="b", models=frozenset({"A100"}))
    held = {each.uuid for place in made.plane.attempt(first).placements for each in place.slices}
    reserve(made, tenant="a", gpus=1, gpu_model="a100")
    (view,) = made.plane.operations.reservations()
    assert (view.gpus_reserved, view.gpus_ready) == (1, 1)
    assert not made.plane.controller.live.advance.devices(view.reservation) & held
    assert not placed(made, tenant="b", models=frozenset({"A100"}))
    assert placed(made, tenant="b", models=frozenset({"L4"}))
    reserve(made, tenant="a", gpus=2, gpu_model="A100")
    (view,) = made.plane.operations.reservations()
    assert (view.gpus_reserved, view.gpus_ready) == (2, 1), "a running job without an end holds one"


def test_maintenance_cordons_its_cluster_for_its_time() -> None:
    """Before, only jobs that end in time start there; with `drain`, running jobs move when it begins."""
    made = scene(two_clusters())
    stays = made.submit(replicas=1, clusters=frozenset({"alpha"}))
    reserve(made, "upgrade", clusters=frozenset({"alpha"}), drain=True, description="new driver")
    late = made.submit(clusters=frozenset({"alpha"}))
    assert made.state(late) == "queued"
    short = made.submit(clusters=frozenset({"alpha"}), time_limit_s=30)
    assert made.where(short) == "alpha"
    assert not made.plane.store.cordons()
    made.plane.run(110)
    (cordon,) = made.plane.store.cordons()
    assert (cordon.cluster, cordon.drain, cordon.reason) == ("alpha", True, "new driver")
    assert made.state(stays) == "queued"
    made.plane.run(200)
    assert not made.plane.store.cordons()
    made.plane.run(60)
    assert (made.state(stays), made.state(late)) == ("running", "running")


@pytest.mark.parametrize(
    "places", [{"clusters": frozenset({"alpha"})}, {"clusters": frozenset({"alpha"}), "nodes": frozenset({"node-0"})}]
)
def test_the_end_of_maintenance_is_the_expected_start_of_its_jobs(places: dict[str, Any]) -> None:
    """A job that only the closed cluster or node can run starts when the maintenance ends."""
    made = scene(fleet(cluster(node(gpu(), gpu()), name="alpha")))
    reserve(made, "upgrade", starts_s=1, **places)
    made.plane.run(20)
    assert made.plane.store.cordons()
    job = made.submit(gpus=2, expected_duration_s=60)
    assert start_s(made) == pytest.approx(280, abs=5)
    made.plane.run(290)
    assert made.plane.state(job).placed


def test_explanations_name_the_decision_that_closes_a_cluster() -> None:
    """Maintenance that has begun is named with its end, and a cordon as one, also for a job that does not exist yet."""
    made = scene(two_clusters())
    reserve(made, "upgrade", starts_s=0, ends_s=1000, clusters=frozenset({"alpha"}))
    made.plane.operations.cordon("beta", "", "ada", "broken")
    made.plane.run(5)
    said = {each.clusters[0][0]: each.reason for each in refusals(made)}
    assert said["alpha"].startswith("under maintenance upgrade until ")
    assert said["beta"] == "cordoned: broken"


def test_the_model_goes_before_maintenance_and_reservations() -> None:
    """A job that no node can ever take reads of the model, not of a refusal, or a UUID, that it never had."""
    made = with_tenants(mixed())
    reserve(made, "upgrade", starts_s=100, ends_s=1000, clusters=frozenset({"alpha"}))
    reserve(made, tenant="a", gpus=1, gpu_model="A100", starts_s=2000, ends_s=3000)
    said = [each.reason for each in refusals(made, tenant="b", models=frozenset({"H100"}))]
    assert said == ["GPU model or mode not allowed"]


def test_gpus_in_use_go_before_the_reservation_that_they_belong_to() -> None:
    """A job without UUIDs never reads of UUIDs."""
    made = with_tenants(fleet(cluster(node(gpu()), name="alpha")))
    reserve(made, tenant="a", gpus=1, starts_s=0, ends_s=1000)
    made.submit(tenant="a")
    assert [each.reason for each in refusals(made, tenant="b")] == ["GPUs in use"]


def refusals(made: Scene, **fields: object) -> Sequence[Refusal]:
    """Return the reasons in a dry run of a job."""
    trial = made.plane.overview.dry_run(spec(**fields))
    return trial.explanation.refusals


def test_a_reservation_survives_a_restart() -> None:
    """It is read from the database, and still keeps jobs away."""
    made = with_tenants(fleet(cluster(node(gpu()), name="alpha")))
    reserve(made, tenant="a", gpus=1)
    made.plane.restart()
    assert not placed(made, tenant="b")


def test_a_shadow_policy_leaves_reserved_gpus_free_too() -> None:
    """Both policies of a queue get the same jobs, without what those may not use."""
    made = with_tenants(fleet(cluster(node(gpu()), name="alpha")))
    made.plane.operations.put_queue(Queue(DEFAULT, shadow="greedy"), "ada")
    reserve(made, tenant="a", gpus=1)
    assert not placed(made, tenant="b")
    (result,) = made.plane.store.shadows(DEFAULT, 10)
    assert (result.live_placed, result.shadow_placed) == (0, 0)


def test_a_removed_reservation_frees_its_capacity_at_once() -> None:
    """Waiting jobs start, and maintenance that has begun ends; cordons of operators stay."""
    made = scene(two_clusters())
    made.plane.operations.cordon("beta", "", "ada", "broken")
    reserve(made, starts_s=0, clusters=frozenset({"alpha", "beta"}))
    waits = made.submit()
    assert made.state(waits) == "queued"
    assert len(made.plane.store.cordons()) == 2
    made.plane.operations.delete_reservation("demo", "ada")
    made.plane.run(5)
    assert (made.state(waits), made.where(waits)) == ("running", "alpha")
    assert [each.cluster for each in made.plane.store.cordons()] == ["beta"]


def test_expected_starts_count_a_closed_cluster_once() -> None:
    """A job that still runs where nothing new starts takes no room elsewhere, nor does maintenance that has begun."""
    made = scene(two_clusters())
    made.submit(gpus=2, clusters=frozenset({"beta"}))
    made.submit(gpus=2, clusters=frozenset({"alpha"}), expected_duration_s=100)
    for close in (
        lambda: made.plane.operations.cordon("beta", "", "ada", "broken"),
        lambda: reserve(made, starts_s=0, ends_s=1000, clusters=frozenset({"beta"})),
    ):
        close()
        waits = made.submit(gpus=2, expected_duration_s=10)
        made.plane.run(5)
        assert 0 < start_s(made) < 105
        made.plane.jobs.cancel(waits, "ada", "enough")


@pytest.mark.parametrize("endless", [False, True])
def test_expected_starts_count_overlapping_reservations_once(endless: bool) -> None:
    """A place of several reservations is missing once: where maintenance overlaps others, and for endless jobs."""
    made = with_tenants(two_clusters())
    made.submit(gpus=2, tenant="b", clusters=frozenset({"alpha"}), expected_duration_s=100)
    beta = frozenset({"beta"})
    reserve(made, "held", tenant="a", starts_s=0, ends_s=1000, clusters=beta)
    reserve(made, "fix", starts_s=0, ends_s=500, clusters=beta, nodes=frozenset({"node-0"}))
    reserve(made, "later", starts_s=1000, ends_s=2000, clusters=beta)
    made.submit(gpus=2, tenant="b", **{"expected_duration_s" if endless else "time_limit_s": 400})
    assert start_s(made) == pytest.approx(100, abs=5)


def test_expected_starts_count_the_memory_of_the_models_that_a_job_may_use() -> None:
    """With one large GPU reserved, a job that needs all the memory of another starts when that is free."""
    large, small = {"model": "A100", "memory_mib": 80_000}, {"model": "L4", "memory_mib": 24_000}
    parts = [gpu(**large), gpu(**large), gpu(**small), gpu(**small)]
    made = with_tenants(fleet(cluster(node(*parts), name="alpha")))
    fields = {"tenant": "b", "models": frozenset({"A100"}), "gpu_memory_mib": 80_000, "expected_duration_s": 100}
    reserve(made, tenant="a", gpus=1, gpu_model="A100", starts_s=0, ends_s=5000)
    made.submit(**fields)
    made.submit(**fields)
    assert start_s(made) == pytest.approx(100, abs=5)


def test_what_if_places_no_job_on_capacity_reserved_for_others() -> None:
    """Jobs of a question, waiting jobs and jobs that have to move leave it free, and the reason names it."""
    made = with_tenants(two_clusters())
    made.submit(gpus=2, tenant="b", clusters=frozenset({"beta"}))
    reserve(made, tenant="a", clusters=frozenset({"alpha"}))
    made.submit(gpus=2, tenant="b")
    jobs = tuple(spec(name=name, gpus=1, tenant=name) for name in "ab")
    answer = what_if(made).ask(Question(jobs=jobs))
    assert [each.job for each in answer.started] == ["a"]
    assert [each.job for each in answer.waiting] == ["work", "b"]
    assert "; but capacity is reserved for others from " in answer.waiting[1].why
    assert len(what_if(made).ask(Question(drain=("beta",))).stopped) == 1
    made.plane.operations.delete_reservation("demo", "ada")
    reserve(made, tenant="a", gpus=1, clusters=frozenset({"alpha"}))
    assert [each.job for each in what_if(made).ask(Question(jobs=jobs)).started] == ["a", "b"]


def test_two_reservations_never_share_a_gpu() -> None:
    """A reservation that the fleet has too few GPUs for is rejected, with the figures."""
    made = with_tenants(fleet(cluster(node(gpu(), gpu(), gpu()), name="alpha")))
    reserve(made, "one", tenant="a", gpus=2)
    with pytest.raises(RejectedError, match=r"is 2, but its clusters have 3 healthy GPUs, and other.*have 2 of them"):
        reserve(made, "two", tenant="b", gpus=2)
    reserve(made, "two", tenant="b", gpus=2, starts_s=300, ends_s=400)
    reserve(made, "three", tenant="b", gpus=1)
    views = {each.reservation.name: each for each in made.plane.operations.reservations()}
    devices = {name: made.plane.controller.live.advance.devices(each.reservation) for name, each in views.items()}
    assert not devices["one"] & devices["three"]


def test_mistakes_name_what_is_unknown() -> None:
    """Holders and places have to exist, and holders with a reservation cannot be removed."""
    made = with_tenants(two_clusters())
    for fields, error, says in (
        ({"tenant": "x", "gpus": 1}, RejectedError, "unknown tenant 'x'"),
        ({"queue": "x", "gpus": 1}, RejectedError, "unknown queue 'x'"),
        ({"clusters": frozenset({"x"})}, UnknownError, "cluster 'x' not found"),
        ({"clusters": frozenset({"alpha"}), "nodes": frozenset({"x"})}, UnknownError, "no node 'x'"),
        ({"gpus": 1, "tenant": "a", "starts_s": -200, "ends_s": -100}, RejectedError, "in the past"),
        ({"gpus": 1}, RejectedError, "needs a tenant or a queue"),
        ({"tenant": "a"}, RejectedError, "name a cluster, or the number"),
        ({"tenant": "a", "gpus": 1, "drain": True}, RejectedError, "for maintenance"),
        ({"tenant": "a", "gpus": 1, "ends_s": 50}, RejectedError, "after the start"),
    ):
        with pytest.raises(error, match=says):
            reserve(made, **fields)
    reserve(made, tenant="a", gpus=1)
    with pytest.raises(ConflictError, match="reservation 'demo' is for tenant 'a'"):
        made.plane.operations.delete_tenant("a", "ada")


def test_whole_places_and_numbers_of_gpus_do_not_overlap() -> None:
    """Maintenance pushes reserved GPUs elsewhere; two holders never have the same place at the same time."""
    made = with_tenants(two_clusters())
    reserve(made, "few", tenant="a", gpus=2)
    reserve(made, "fix", clusters=frozenset({"alpha"}))
    few = made.plane.controller.names.reservations["few"]
    beta = made.plane.controller.live.fleet.clusters["beta"].cluster
    assert beta
    devices = {device.uuid for node in beta.nodes for device in node.devices}
    assert made.plane.controller.live.advance.devices(few) == devices
    reserve(made, "all", tenant="b", clusters=frozenset({"beta"}), starts_s=300, ends_s=400)
    with pytest.raises(RejectedError, match="have 2 healthy GPUs, and other reservations have 2 of them"):
        reserve(made, "both", tenant="a", clusters=frozenset({"beta"}), starts_s=350, ends_s=500)


def test_gpus_of_cordoned_nodes_are_not_ready() -> None:
    """A reservation chooses other GPUs, and counts those that it has to take there as not ready."""
    made = with_tenants(two_clusters())
    made.plane.operations.cordon("alpha", "", "ada", "broken")
    made.plane.settle()
    reserve(made, tenant="a", gpus=3)
    (view,) = made.plane.operations.reservations()
    assert (view.gpus_reserved, view.gpus_ready) == (3, 2)


def test_maintenance_follows_its_changes_while_it_is_active() -> None:
    """It drains under an operator's cordon too, and a window that moves to another time opens its places."""
    made = scene(two_clusters())
    made.plane.operations.cordon("alpha", "", "ada", "looked at")
    stays = made.submit(clusters=frozenset({"beta"}))
    reserve(made, "fix", starts_s=0, clusters=frozenset({"beta"}))
    made.plane.run(5)
    assert made.state(stays) == "running"
    reserve(made, "fix", starts_s=0, clusters=frozenset({"beta"}), drain=True)
    made.plane.run(5)
    assert made.state(stays) == "queued"
    assert [(each.cluster, each.drain) for each in made.plane.store.cordons()] == [("alpha", False), ("beta", True)]
    reserve(made, "fix", starts_s=500, ends_s=600, clusters=frozenset({"beta"}))
    made.plane.run(5)
    assert [each.cluster for each in made.plane.store.cordons()] == ["alpha"]
    reserve(made, "own", starts_s=0, clusters=frozenset({"alpha"}), drain=True)
    made.plane.run(5)
    made.plane.operations.delete_reservation("own", "ada")
    made.plane.settle()
    assert [each.reason for each in made.plane.store.cordons()] == ["looked at"]
