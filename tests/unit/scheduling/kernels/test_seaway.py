"""Seaway's own policy against a slow reference in plain Python."""

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
    """Return a fleet with running jobs, and its reference."""
    snapshot, twin = Snapshot(fleet), Twin(fleet)
    plan = decide(snapshot, JobQueue(snapshot, running), make_policy("random", PolicyOptions(plain=True)))
    for number, each in enumerate(running):
        twin.place(each, [plan.placement(int(row)) for row in plan.rows_of(number) if plan.placed[row]])
    return snapshot, twin


def scores(params: SeawayParams, snapshot: Snapshot, job: Job) -> list[int]:
    """Return the scores of the kernel."""
    line = snapshot.demands.index(job.demand)
    return [int(score) for score in value_column(params, snapshot.arrays, snapshot.demands.arrays, line)]


def check_scores(snapshot: Snapshot, twin: Twin, mix: list[Job], asked: Job) -> None:
    """Compare the score of every node with the reference."""
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
def test_score_is_change_of_value_minus_price(
    fleet: Fleet, mix: list[Job], running: list[Job], asked: list[Job]
) -> None:
    """The score is the change of the node's value minus the price of its kind, in steps of 16 thousandths of a device.

    For a job that prefers near clusters, the remainder of a step is the nearness.
    """
    check_scores(*partly_used(fleet, running), mix, asked[0])


def test_best_device_of_different_sizes_counts() -> None:
    """The best device counts, even after one with an equal free fraction."""
    small, large = gpu(model=L4, memory_mib=23_034), gpu()
    slice_ = job("slice", gpus=1, gpu_memory_mib=17_000, gpu_milli=100)
    check_scores(*partly_used(fleet(node(small, large)), []), [slice_], slice_)


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), mix=jobs(), running=jobs(), asked=jobs(most=1))
def test_prices_follow_scarcity(fleet: Fleet, mix: list[Job], running: list[Job], asked: list[Job]) -> None:
    """The less of a kind of node is free for the work that only it can serve, the higher its price, from 0 to 1."""
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
def test_prices_are_zero_without_restricted_jobs(fleet: Fleet, running: list[Job]) -> None:
    """Only jobs with restricted kinds of nodes make a kind scarce."""
    snapshot, _ = partly_used(fleet, running)
    mix = [Job(job.name, Demand(job.demand.request)) for job in running]
    params = Seaway(mix).params(snapshot)
    scores(params, snapshot, mix[0])
    assert not len(params.group)
    assert not params.price.any()


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), mix=jobs())
def test_tables_are_monotonic_and_in_range(fleet: Fleet, mix: list[Job]) -> None:
    """Value, served fractions and hosting never fall with free capacity; fractions are in 0-1."""
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
