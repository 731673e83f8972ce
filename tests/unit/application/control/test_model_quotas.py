"""Quotas by GPU model, under any name of the model, through the control loop."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.application.changes import Change
from seaway.application.fleet.quota_warnings import QuotaWarnings
from seaway.application.views import ClusterState
from seaway.domain.amounts import amount_of
from seaway.domain.arrays import task_array
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Order, Preemption, Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Quota, Tenant
from seaway.scheduling.queueing.tree import quota_key
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, known, scene, spec

A100, PCIE, A1000, T4 = "NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-40GB", "NVIDIA RTX A1000", "Tesla T4"


def mixed(count: int = 4) -> Fleet:
    """Return a cluster with a node of each of four models."""
    return fleet(
        cluster(*(node(*[gpu(model=each) for _ in range(count)]) for each in (A100, PCIE, A1000, T4)), name="alpha")
    )


def with_records(parts: Fleet, *records: Queue | Tenant, **control: object) -> Scene:
    """Create a control plane with queues and tenants."""
    made = scene(parts, **control)
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b"), *records])])
    made.plane.settle()
    return made


def models(made: Scene, *jobs: str) -> list[str]:
    """Return the models of the GPUs that jobs hold."""
    made.plane.settle()
    snapshot = made.plane.controller.live.fleet.snapshot
    return sorted(
        snapshot.device(taken.uuid).model  # type: ignore[union-attr]  # the fleet has it
        for attempt in made.plane.controller.live.attempts.values()
        if attempt.job_id in jobs or not jobs
        for placement in attempt.remaining
        for taken in placement.slices
    )


def test_a_limit_of_the_only_product_stops_jobs_of_the_family() -> None:
    """A job that names the family waits for the limit of its only product, and says so."""
    parts = fleet(cluster(node(gpu(model=A100), gpu(model=A100), gpu(model=T4)), name="alpha"))
    made = with_records(parts, Queue("x", limit={f"gpus/{A100.casefold()}": 1000}))
    jobs = [made.submit(queue="x", models={"A100"}) for _ in range(2)]
    assert [made.plane.state(job).placed for job in jobs] == [True, False]
    assert made.job(jobs[1]).reason == f"queue 'x' holds 1 of its limit of 1 gpus/{A100.casefold()}"


def test_limits_of_tenants_and_users_cover_products() -> None:
    """A quota of a tenant and of its users limits a model in all queues of the pool."""
    quota = Quota(limit={"gpus/a100": 2000}, user_limit={"gpus/t4": 1000})
    made = with_records(mixed(), Tenant("a", quotas={"default": quota}), Queue("x"), Queue("y"))
    jobs = [made.submit(queue=queue, tenant="a", models={"A100", "T4"}) for queue in "xyxyxy"]
    found = models(made, *jobs)
    assert (found.count(T4), len(found)) == (1, 3)
    assert made.plane.controller.live.tree.use_lately(quota_key("default", "a")).amount("gpus/a100") == 2000


def test_a_job_larger_than_a_limit_of_its_model_is_refused() -> None:
    """Admission compares the names, so a limit of the family refuses a job of one product."""
    made = with_records(mixed(), Queue("x", limit={"gpus/a100": 1000}))
    with pytest.raises(RejectedError, match="limit of 1 gpus/a100"):
        made.plane.admission.admit(spec(queue="x", gpus=2, models={"A100-SXM4-80GB"}))
    made.plane.admission.admit(spec(queue="x", gpus=2, models={"A1000"}))
    made.plane.admission.admit(spec(queue="x", gpus=2, models={"A1000", "A100"}))


def test_weights_of_short_names_weigh_their_products() -> None:
    """A100s count three times as much in shares, T4s half, as the documentation shows it."""
    made = with_records(mixed(), Queue("x"), gpu_weights="A100=3, T4=0.5")
    node_of_x = made.plane.controller.live.tree.node("x")
    total = 4 * 3 + 4 * 3 + 4 + 4 * 0.5
    made.submit(queue="x", models={"A100"})
    assert node_of_x.share_of(node_of_x.use.held) == pytest.approx(3 / total)
    made.submit(queue="x", models={"T4"})
    assert made.plane.controller.live.tree.node("x").share_beyond_guarantee() == pytest.approx(3.5 / total)


def test_a_weight_of_a_model_of_no_gpu_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Weights of models that are there are not."""
    made = with_records(mixed(), Queue("x"), gpu_weights="A100=3, H999=2")
    made.plane.run(30)
    assert [each.message for each in caplog.records] == ["gpu_weights: no GPU is of the model 'h999'"]


def test_the_most_specific_weight_counts() -> None:
    """A weight of one product goes before that of its family."""
    made = with_records(mixed(), Queue("x"), gpu_weights="A100=3, A100-PCIE-40GB=2")
    tree = made.plane.controller.live.tree
    total = 4 * 3 + 4 * 2 + 8
    assert tree.node("x").share_of({"gpus": 1000, f"gpus/{PCIE.casefold()}": 1000}) == pytest.approx(2 / total)
    assert tree.node("x").share_of({"gpus": 1000, f"gpus/{A100.casefold()}": 1000}) == pytest.approx(3 / total)


def test_a_reservation_finds_the_products_of_its_model() -> None:
    """`A100` reserves GPUs of both products; an unknown model is refused with those that are there."""
    made = with_records(mixed())
    now_ns = made.clock.now_ns()
    times: dict[str, Any] = {"queue": "default", "starts_ns": now_ns + 10**11, "ends_ns": now_ns + 10**12}
    advance = made.plane.controller.live.advance
    advance.require_room(AdvanceReservation("r", gpus=8, gpu_model="A100", **times))
    with pytest.raises(RejectedError, match="8 healthy GPUs A100"):
        advance.require_room(AdvanceReservation("r", gpus=9, gpu_model="A100", **times))
    with pytest.raises(RejectedError, match=r"no GPU is of the model 'H999'.*models here: .*Tesla T4"):
        advance.require_room(AdvanceReservation("r", gpus=1, gpu_model="H999", **times))


def test_a_job_of_an_unknown_model_is_refused_with_those_that_are_there() -> None:
    """The error names the nearest products and all models of the fleet."""
    made = with_records(mixed())
    with pytest.raises(RejectedError) as unknown:
        made.plane.admission.admit(spec(models={"A10"}))
    assert unknown.value.where == "resources.gpu_model"
    assert unknown.value.message == (
        f"no GPU is of the model 'A10'; models here: {PCIE}, {A100}, {A1000}, {T4}; did you mean '{PCIE}' or '{A100}'?"
    )
    with pytest.raises(RejectedError, match="no GPU is of the model 'MI300X'; models here"):
        made.plane.admission.admit(spec(use_types=("MI300X",)))
    made.plane.admission.admit(spec(models={"A10", "T4"}))


def test_the_models_of_a_lost_cluster_count_as_there() -> None:
    """A job may wait for the GPUs of a cluster that does not answer now."""
    parts = fleet(cluster(node(gpu(model=T4)), name="alpha"), cluster(node(gpu(model=A100)), name="beta"))
    made = with_records(parts, Queue("x", limit={"gpus/a100": 1000}))
    made.cluster("beta").disconnect()
    made.plane.run(600)
    assert known(made, "beta") is ClusterState.LOST
    made.plane.admission.admit(spec(models={"A100"}))
    assert not QuotaWarnings(made.plane.controller).of_queue(Queue("x", limit={"gpus/a100": 1000}))


def test_warnings_name_models_of_no_gpu_and_figures() -> None:
    """A limit below the use, a guarantee beyond the pool and an unknown model are accepted with a warning."""
    made = with_records(mixed(), Queue("x"), Queue("y", guarantee={"gpus": 10_000}))
    for _ in range(3):
        made.submit(queue="x", models={"A100"})
    warnings = QuotaWarnings(made.plane.controller)
    assert warnings.of_queue(Queue("x", limit={"gpus": 4000, "gpus/t4": 0})) == []
    assert warnings.of_queue(Queue("x", limit={"gpus": 2000, "gpus/a100": 1000, "jobs": 2})) == [
        "queue 'x' holds 3 gpus, more than its limit of 2 gpus: new jobs wait until it holds less",
        "queue 'x' holds 3 gpus/a100, more than its limit of 1 gpus/a100: new jobs wait until it holds less",
        "queue 'x' holds 3 jobs, more than its limit of 2 jobs: new jobs wait until it holds less",
    ]
    assert warnings.of_queue(Queue("x", guarantee={"gpus": 17_000, "gpus/a100": 9000})) == [
        "queue 'x' has a guarantee of 17 gpus, but pool 'default' has 16 gpus",
        "queue 'x' has a guarantee of 9 gpus/a100, but pool 'default' has 8 gpus/a100",
    ]
    assert warnings.of_queue(Queue("x", guarantee={"gpus": 7000})) == [
        "guarantees in pool 'default' are 17 gpus together, but it has 16 gpus"
    ]
    (unknown,) = warnings.of_queue(Queue("x", limit={"gpus/h999": 1000}))
    assert unknown.startswith("limit.gpus/h999: no GPU is of the model 'h999'; models here: ")


def test_warnings_about_a_tenant_name_its_pool_and_its_users() -> None:
    """A quota of a tenant has the same warnings in each of its pools."""
    quota = Quota(user_limit={"gpus": 4000})
    made = with_records(mixed(), Tenant("a", quotas={"default": quota}), Queue("x"))
    for _ in range(2):
        made.submit(queue="x", tenant="a")
    found = QuotaWarnings(made.plane.controller).of_tenant(
        Tenant("a", quotas={"default": Quota(limit={"gpus": 1000}, user_limit={"gpus": 1000, "gpus/h999": 1000})})
    )
    assert [each.code for each in found] == ["model_in_quota", "limit_below_held", "limit_below_held"]
    assert "holds 2 gpus, more than its limit of 1 gpu" in found[1]
    assert [each.params["holder"].code for each in found[1:]] == ["tenant_in_pool", "user_in_pool"]  # type: ignore[union-attr]


def _held(made: Scene, queue: str, name: str) -> int:
    return amount_of(made.plane.controller.live.tree.use(queue).held, name)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_limits_by_model_are_never_exceeded(seed: int) -> None:
    """Arrays, gangs, elastic jobs, shares of GPUs, preemption and ends of jobs keep every limit at each step."""
    random = Random(seed)
    names = ["a100", A100.casefold(), "t4", "rtx a1000", "a100-pcie"]
    limits = {
        name: {f"gpus/{each}": random.randint(0, 5) * 1000 for each in random.sample(names, 2)}
        for name in ("top", "x", "y")
    }
    rules: dict[str, Any] = {"order": Order.PRIORITY, "preemption": Preemption.PREEMPT_LOWER_PRIORITY, "ageing_s": 30}
    made = with_records(
        mixed(3),
        Queue("top", limit=limits["top"]),
        *(Queue(name, parent="top", limit=limits[name], **rules) for name in ("x", "y")),
    )
    shapes: tuple[dict[str, Any], ...] = (
        {},
        {"gpus": 2},
        {"replicas": 3, "gang": True},
        {"replicas": 4, "min_replicas": 1, "max_replicas": 4, "template": "deployment", "restarts": True},
        {"array": task_array("0-3")},
        {"gpu_milli": 300, "gpu_memory_mib": 20_000},
    )
    for _ in range(25):
        fields = dict(random.choice(shapes))
        if random.random() < 0.6:
            fields["models"] = set(random.sample(["A100", "T4", "A1000", A100, "A100-PCIE"], random.randint(1, 2)))
        job = spec(
            queue=random.choice("xy"),
            priority=random.randint(0, 3),
            expected_duration_s=random.randint(5, 60),
            **fields,
        )
        made.plane.submit(job)
        made.clock.advance(random.randint(0, 15))
        made.plane.settle()
        for queue, limit in limits.items():
            for name, most in limit.items():
                assert _held(made, queue, name) <= most
                assert made.plane.controller.live.tree.holder(queue).use.amount(name) <= most  # type: ignore[union-attr]
