"""Remedies of waiting jobs beside reservations, limits, and other jobs of their queue."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.application.changes import Change
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import Remedy
from seaway.domain.queues import Backfill, Order, Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import DEFAULT, Quota, Tenant
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import scene, spec

NS = 1_000_000_000

SPECS = st.builds(
    spec,
    queue=st.sampled_from(["x", "y"]),
    tenant=st.sampled_from([DEFAULT, "other"]),
    gpus=st.integers(1, 3),
    cpu_milli=st.sampled_from([1000, 9000]),
    gpu_milli=st.sampled_from([1000, 500]),
    replicas=st.integers(1, 3),
    gang=st.just(True),
    single_cluster=st.booleans(),
    priority=st.integers(0, 1),
    expected_duration_s=st.sampled_from([60, 300, 3600]),
)
"""Jobs that run until they are stopped, and that are expected to end earlier."""


@dataclass(frozen=True)
class World:
    """Queues, limits and reservations."""

    backfill: Backfill
    order: Order
    limit: int
    quota: int
    reserved: tuple[int, bool] | None
    """Start in seconds, and whether it is one whole node."""


WORLDS = st.builds(
    World,
    st.sampled_from(Backfill),
    st.sampled_from(Order),
    st.sampled_from([0, 2000, 4000]),
    st.sampled_from([0, 3000, 6000]),
    st.none() | st.tuples(st.sampled_from([30, 400, 4000]), st.booleans()),
)


@given(WORLDS, st.lists(SPECS, min_size=3, max_size=8), st.data())
@settings(max_examples=25)
def test_a_waiting_job_starts_with_the_change_that_is_offered(
    world: World, specs: list[JobSpec], data: st.DataObject
) -> None:
    """Whatever is reserved for others, is beyond limits or waits before it; a job behind others is offered nothing."""
    made = scene(fleet(*[cluster(node(gpu(), gpu()), node(gpu()), name=name) for name in ("alpha", "beta")]))
    plane = made.plane
    limit = {"gpus": world.limit} if world.limit else {}
    quota = {DEFAULT: Quota(limit={"gpus": world.quota})} if world.quota else {}
    queues = [Queue("x", backfill=world.backfill, order=world.order, limit=limit), Queue("y")]
    plane.writer.commit([Change(put=[*queues, Tenant(DEFAULT, quotas=quota), Tenant("other")])])
    plane.settle()
    if world.reserved:
        starts_ns = plane.clock.now_ns() + world.reserved[0] * NS
        whole = {"clusters": frozenset({"alpha"}), "nodes": frozenset({"node-0"})}
        what: dict[str, Any] = whole if world.reserved[1] else {"gpus": 2}
        plane.operations.put_reservation(
            AdvanceReservation("r", starts_ns, starts_ns + 9000 * NS, queue="y", **what), "ada"
        )
    jobs = plane.submit(*specs)
    plane.run(3)
    waiting = [each for each in jobs if made.state(each) == "queued"]
    offered = []
    for each in waiting:
        explanation = plane.overview.reason(made.job(each)).explanation
        offered += [(each, remedy) for remedy in explanation.remedies] if explanation else []
    if offered:
        job, remedy = data.draw(st.sampled_from(offered))
        plane.jobs.change(job, applied(made.job(job).spec, remedy), "ada")
        plane.run(1)
        assert made.job(job).state.placed, (made.job(job).reason, remedy)


def applied(before: JobSpec, remedy: Remedy) -> JobSpec:
    """Return a spec with the change of a remedy."""
    if remedy.field == "time_limit_s":
        return replace(before, time_limit_s=int(remedy.required), expected_duration_s=None)
    if remedy.field == "replicas":
        return replace(before, replicas=int(remedy.required))
    demand = before.demand
    name, part = next(
        (each.name, getattr(demand, each.name))
        for each in fields(demand)
        if hasattr(getattr(demand, each.name), remedy.field)
    )
    was = getattr(part, remedy.field)
    value = remedy.required if isinstance(was, int | str) else type(was)()
    return replace(before, demand=replace(demand, **{name: replace(part, **{remedy.field: value})}))
