"""Seaway's own policy beside a slow twin in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from seaway.domain.cluster import Fleet
from seaway.domain.job import Demand, Job
from seaway.scheduling.columns import DEMAND_NEAR, NODE_GPU_CORE_FREE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.policies.seaway.kernel import BASE, FINE, NEAR_SHIFT, NEAR_STEPS, SeawayParams, value_column
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import fleet, gpu, job, node
from tests.property.strategies import L4, fleets, jobs
from tests.unit.scheduling.kernels.seaway_twin import Worth, prices
from tests.unit.scheduling.twin import Twin, node_allowed

EXAMPLES = settings().max_examples // 2


def partly_used(fleet: Fleet, running: list[Job]) -> tuple[Snapshot, Twin]:
    """Return a fleet on which some jobs run, and its twin."""
    snapshot, twin = Snapshot(fleet), Twin(fleet)
    plan = decide(snapshot, JobQueue(snapshot, running), make_policy("random", PolicyOptions(plain=True)))
    for number, each in enumerate(running):
        twin.place(each, [plan.placement(int(row)) for row in plan.rows_of(number) if plan.placed[row]])
    return snapshot, twin


def scores(params: SeawayParams, snapshot: Snapshot, job: Job) -> list[int]:
    """Ask the kernel."""
    line = snapshot.demands.index(job.demand)
    return [int(score) for score in value_column(params, snapshot.arrays, snapshot.demands.arrays, line)]


def check_scores(snapshot: Snapshot, twin: Twin, mix: list[Job], asked: Job) -> None:
    """Check the score of every node against the twin."""
    params, demand = Seaway(mix).params(snapshot), asked.demand
    line = snapshot.demands.index(demand)
    steps_of_near = NEAR_STEPS if snapshot.demands.arrays.amounts[line, DEMAND_NEAR] >= 0 else 1
    found = scores(params, snapshot, asked)
    milli = demand.request.filled().gpu_milli or 1_000
    for n, (cluster, machine) in enumerate(twin.fleet.nodes):
        fits = twin.resources_fit(cluster, machine, demand) and twin.devices_fit(cluster, machine, demand)
        if not (fits and node_allowed(cluster, machine, demand)):
            assert found[n] == -BASE * NEAR_STEPS
            continue
        at = cluster.name, machine.name
        change = Worth(params, n).change(machine, twin.used[at], twin.cards[at], demand)
        cost = params.price[params.kind[n]] * milli * demand.request.gpus
        steps = (change - cost) * FINE
        low, high = (int((steps + slack) // 2**NEAR_SHIFT) for slack in (-2, 2))
        assert low <= found[n] // steps_of_near <= high


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), mix=jobs(), running=jobs(), asked=jobs(most=1))
def test_score_is_the_change_of_value_less_the_price(
    fleet: Fleet, mix: list[Job], running: list[Job], asked: list[Job]
) -> None:
    """A node scores by what its value changes, less what its kind costs, in steps of 16 thousandths of a device.

    For a job that likes to be near, what is left of a step says how near.
    """
    check_scores(*partly_used(fleet, running), mix, asked[0])


def test_devices_of_different_sizes_are_told_apart() -> None:
    """The best device counts though one before it has as large a share free."""
    small, large = gpu(model=L4, memory_mib=23_034), gpu()
    slice_ = job("slice", gpus=1, gpu_memory_mib=17_000, gpu_milli=100)
    check_scores(*partly_used(fleet(node(small, large)), []), [slice_], slice_)


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), mix=jobs(), running=jobs(), asked=jobs(most=1))
def test_prices_follow_scarcity(fleet: Fleet, mix: list[Job], running: list[Job], asked: list[Job]) -> None:
    """A kind of node costs the more the less is free of it, for the work that can go nowhere else; 0 to 1."""
    snapshot, _ = partly_used(fleet, running)
    params = Seaway(mix).params(snapshot)
    scores(params, snapshot, asked[0])
    free: Counter[int] = Counter()
    for kind, core in zip(params.kind, snapshot.arrays.nodes[NODE_GPU_CORE_FREE], strict=True):
        free[int(kind)] += int(core)
    assert params.price == pytest.approx(prices(params, free))
    assert ((params.price >= 0) & (params.price <= 1)).all()


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), running=jobs())
def test_nothing_costs_where_no_rule_is_narrow(fleet: Fleet, running: list[Job]) -> None:
    """Without jobs that are bound to some of the nodes no kind of node has a price."""
    snapshot, _ = partly_used(fleet, running)
    mix = [Job(job.name, Demand(job.demand.request)) for job in running]
    params = Seaway(mix).params(snapshot)
    scores(params, snapshot, mix[0])
    assert not len(params.group)
    assert not params.price.any()


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), mix=jobs())
def test_tables_are_what_they_stand_for(fleet: Fleet, mix: list[Job]) -> None:
    """Worth never falls as more is free, nor what CPU and memory serve, nor what hosts; shares lie in 0-1."""
    params = Seaway(mix).params(Snapshot(fleet))
    worth = params.worth.reshape(-1, 101, 101)
    assert (np.diff(worth, axis=1) >= -1e-9).all()
    assert (np.diff(worth, axis=2) >= -1e-9).all()
    assert worth[:, 100, 100] == pytest.approx(1000)
    assert worth.min(initial=0) >= 0
    assert ((params.served >= 0) & (params.served <= 1 + 1e-9)).all()
    assert (np.diff(params.served, axis=1) >= -1e-9).all()
    assert (np.diff(params.hosting, axis=1) >= 0).all()
    steps = params.hosting.reshape(-1, len(params.cpu_steps) + 1, params.hosting.shape[1])
    assert (np.diff(steps, axis=1) >= 0).all()
