"""Invariants of every plan, for any policy, fleet and jobs."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial, reduce
from itertools import groupby, permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.job import GpuTopology, Job
from seaway.domain.network import NetworkNeed
from seaway.domain.placement import Placement, Remedy
from seaway.scheduling.arrays import FleetArrays
from seaway.scheduling.columns import (
    CLUSTERS_ALLOWED,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY_FREE,
    DEVICE_SLOTS_FREE,
    NODE_CLUSTER,
    NODE_CPU_FREE,
    NODE_MEMORY_FREE,
    NODE_PODS_FREE,
    PLAN_NODE,
    PLAN_REPLICA,
)
from seaway.scheduling.engine import decide, placer_for, trial_placements
from seaway.scheduling.explain import combined_remedies, remedies
from seaway.scheduling.gang import place_spanning
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import Level, PolicyOptions, make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.encode import link_meets
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement
from tests.property.strategies import fleets, jobs

LEDGERS = ("nodes", "devices", "blocks", "clusters", "bandwidth", "gateways")
"""The tables of total and free resources."""

EXAMPLES = settings().max_examples // 6

PROFILES: list[tuple[str, Level]] = [("bestfit", "node"), ("random", "node"), ("spread", "cluster")]
POLICIES: list[tuple[str, Level]] = [*PROFILES, ("volcano-divided", "node"), ("volcano-duplicated", "node")]


def planned(fleet: Fleet, queue: list[Job], name: str, level: Level) -> Plan:
    """Schedule a queue on an empty fleet."""
    snapshot = Snapshot(fleet)
    return decide(snapshot, JobQueue(snapshot, queue), make_policy(name, PolicyOptions(level=level)))


def profile(name: str, level: Level, *, plain: bool = False) -> Profile:
    """Create a policy that is a profile."""
    policy = make_policy(name, PolicyOptions(level=level, plain=plain))
    assert isinstance(policy, Profile)
    return policy


def accounts(arrays: FleetArrays) -> dict[str, np.ndarray]:
    """Copy the tables of free resources."""
    return {table: getattr(arrays, table).copy() for table in LEDGERS}


def assert_ledgers(arrays: FleetArrays, before: dict[str, np.ndarray]) -> None:
    """Check that the fleet is unchanged."""
    for table, figures in before.items():
        np.testing.assert_array_equal(getattr(arrays, table), figures, err_msg=table)
    assert arrays.clusters_open[CLUSTERS_ALLOWED].all()


def clusters_of(plan: Plan, number: int) -> list[Cluster]:
    """Return the clusters of a job's replicas."""
    nodes = plan.decisions[plan.rows_of(number), PLAN_NODE]
    found = plan.snapshot.arrays.nodes[NODE_CLUSTER, nodes[nodes >= 0]]
    return [plan.snapshot.clusters[c] for c in found]


@pytest.mark.parametrize(("name", "level"), POLICIES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs())
def test_nothing_is_given_twice(name: str, level: Level, fleet: Fleet, queue: list[Job]) -> None:
    """No device, node, link or interface of a gateway is allocated beyond its capacity."""
    arrays = planned(fleet, queue, name, level).snapshot.arrays
    gateways = {gateway.name: g for g, gateway in enumerate(fleet.gateways)}
    assert (arrays.devices[[DEVICE_MEMORY_FREE, DEVICE_CORE_FREE, DEVICE_SLOTS_FREE]] >= 0).all()
    assert (arrays.nodes[[NODE_CPU_FREE, NODE_MEMORY_FREE, NODE_PODS_FREE]] >= 0).all()
    assert all(arrays.bandwidth[gateways[link.source], gateways[link.target]] >= 0 for link in fleet.links)
    assert (arrays.gateways >= 0).all()


@pytest.mark.parametrize(("name", "level"), POLICIES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs())
def test_releasing_a_plan_leaves_nothing(name: str, level: Level, fleet: Fleet, queue: list[Job]) -> None:
    """When every decision of a plan is released, the fleet is as it was before."""
    before = accounts(Snapshot(fleet).arrays)
    plan = planned(fleet, queue, name, level)
    plan.snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))
    assert_ledgers(plan.snapshot.arrays, before)


@pytest.mark.parametrize(("name", "level"), POLICIES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs())
def test_gang_is_placed_whole_or_not_at_all(name: str, level: Level, fleet: Fleet, queue: list[Job]) -> None:
    """Either all of a gang's replicas have a node or none."""
    plan = planned(fleet, queue, name, level)
    for number, job in enumerate(queue):
        found = plan.placed[plan.rows_of(number)]
        assert not job.gang or found.all() or not found.any()


@pytest.mark.parametrize(("name", "level"), PROFILES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most=6, most_replicas=6))
def test_links_between_replicas_keep_their_bounds(name: str, level: Level, fleet: Fleet, queue: list[Job]) -> None:
    """The link between any two clusters of a job meets the job's bounds."""
    plan = planned(fleet, queue, name, level)
    links = {(link.source, link.target): link for link in fleet.links}
    for number, job in enumerate(queue):
        where = clusters_of(plan, number)
        ring = zip(where, [*where[1:], *where[:1]], strict=True)
        for one, other in ring if job.ring else permutations(where, 2):
            if job.between_replicas.any and one is not other and (one.gateway != other.gateway or not one.gateway):
                there = links.get((one.gateway, other.gateway))
                back = links.get((other.gateway, one.gateway))
                assert there or back
                for link in (there, back):
                    only_quality = job.ring and link is back and there is not None
                    least = 0 if only_quality else job.between_replicas.min_bandwidth_mbps
                    need = replace(job.between_replicas, min_bandwidth_mbps=least)
                    assert link is None or link_meets(need, link)


@pytest.mark.parametrize(("name", "level"), PROFILES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most=6, most_replicas=6), order=st.randoms(use_true_random=False))
def test_a_ring_enters_each_cluster_once_and_is_released_in_any_order(
    name: str, level: Level, fleet: Fleet, queue: list[Job], order: Random
) -> None:
    """Its replicas are numbered along the ring, and whichever is released first, nothing remains at the end."""
    before = accounts(Snapshot(fleet).arrays)
    plan = planned(fleet, queue, name, level)
    for number, job in enumerate(queue):
        where = [each.name for each in clusters_of(plan, number)]
        if job.ring and where:
            assert plan.decisions[plan.rows_of(number), PLAN_REPLICA].tolist() == list(range(job.replicas))
            assert len(list(groupby(where))) == len(set(where))
    rows = list(range(len(plan.decisions)))
    order.shuffle(rows)
    for row in rows:
        plan.snapshot.release(plan.decisions, plan.slices, np.array([row]))
    assert_ledgers(plan.snapshot.arrays, before)


@pytest.mark.parametrize(("name", "level"), PROFILES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(most=6, most_replicas=6))
def test_gang_is_not_refused_when_a_cluster_holds_it(name: str, level: Level, fleet: Fleet, queue: list[Job]) -> None:
    """A gang that is not placed fits into no single cluster."""
    plan = planned(fleet, queue, name, level)
    policy = profile(name, level)
    last = len(queue) - 1
    if not queue[last].gang or plan.jobs_placed[last]:
        return
    for cluster in fleet.clusters:
        rules = replace(queue[last].demand.nodes, clusters=frozenset({cluster.name}))
        alone = replace(queue[last], demand=replace(queue[last].demand, nodes=rules))
        if queue[last].demand.nodes.clusters <= rules.clusters:
            snapshot = plan.snapshot.copy()
            assert not decide(snapshot, JobQueue(snapshot, [alone]), policy).jobs_placed[0]


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(), held=jobs(most=3))
def test_rolling_back_is_exact(fleet: Fleet, queue: list[Job], held: list[Job], *, plain: bool) -> None:
    """A statement that is rolled back leaves the fleet bit for bit as it was."""
    snapshot = Snapshot(fleet)
    policy = profile("bestfit", "node", plain=plain)
    decide(snapshot, JobQueue(snapshot, held), policy)
    jobs_ = JobQueue(snapshot, queue)
    before = accounts(snapshot.arrays)
    statement, placer = Statement(snapshot, jobs_), placer_for(snapshot, policy)
    for number in range(len(queue)):
        if queue[number].replicas > 1:
            place_spanning(placer, statement, number)
        else:
            placer.place(statement, number, number + 1)
    statement.rollback()
    assert statement.checkpoint() == (0, 0)
    assert_ledgers(snapshot.arrays, before)


@pytest.mark.parametrize(("name", "level"), PROFILES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(), seed=st.integers(0, 3), cut=st.integers(0, 12))
def test_same_seed_gives_the_same_plan(
    name: str, level: Level, fleet: Fleet, queue: list[Job], seed: int, cut: int
) -> None:
    """A queue gets the same places when it is scheduled again, or in two parts."""
    policy = make_policy(name, PolicyOptions(level=level, seed=seed))
    snapshots = [Snapshot(fleet) for _ in range(2)]
    whole, parted = (JobQueue(snapshot, queue) for snapshot in snapshots)
    at = min(cut, len(queue))
    expected = list(decide(snapshots[0], whole, policy).placements())
    parts = [decide(snapshots[1], parted.part(*ends), policy) for ends in ((0, at), (at, len(queue)))]
    assert [each for part in parts for each in part.placements()] == expected


@pytest.mark.parametrize(("name", "level"), PROFILES)
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), held=jobs(most=6), asked=jobs(most=1))
def test_each_remedy_admits_the_whole_job(
    name: str, level: Level, fleet: Fleet, held: list[Job], asked: list[Job]
) -> None:
    """A job with one of its remedies starts with all replicas on the same fleet; one that fits gets none."""
    snapshot, policy, [waiting] = planned(fleet, held, name, level).snapshot, profile(name, level), asked
    admits = partial(trial_placements, policy=policy)

    def started(job: Job) -> tuple[Placement, ...]:
        copy = snapshot.copy()
        plan = decide(copy, JobQueue(copy, [job]), policy)
        return tuple(plan.placements()) if plan.jobs_placed[0] else ()

    found = remedies(snapshot, waiting, policy, admits)
    assert not (found and started(waiting))
    for remedy in found:
        mended = applied(waiting, remedy)
        placements = started(mended)
        assert len(placements) == mended.replicas == remedy.replicas
        assert (placements[0].cluster, placements[0].node) == (remedy.cluster, remedy.node)
    if not found and (together := combined_remedies(snapshot, waiting, policy, admits)):
        assert started(reduce(applied, together, waiting))


def applied(job: Job, remedy: Remedy) -> Job:
    """Return a job with the change of a remedy."""
    value: Any = remedy.required
    if remedy.field == "replicas":
        return replace(job, replicas=value, ring=job.ring and value > 1)
    if remedy.field == "between_replicas":
        return replace(job, between_replicas=NetworkNeed())
    if remedy.field == "gpu_topology":
        topology = GpuTopology(value)
        return replace(job, demand=replace(job.demand, devices=replace(job.demand.devices, topology=topology)))
    parts = (getattr(job.demand, part) for part in ("request", "network", "nodes", "devices"))
    part = next(each for each in parts if hasattr(each, remedy.field))
    before = getattr(part, remedy.field)
    new = replace(part, **{remedy.field: value if isinstance(before, int | str) else type(before)()})
    named = next(each.name for each in fields(job.demand) if getattr(job.demand, each.name) is part)
    return replace(job, demand=replace(job.demand, **{named: new}))
