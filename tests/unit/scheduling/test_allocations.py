from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.domain.placement import DeviceSlice, Placement
from seaway.scheduling.allocations import Allocation, allocate, allocate_all, allocations_of, join
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, mig_gpu, node

TABLES = ("nodes", "devices", "blocks", "clusters", "bandwidth", "gateways")


def some_fleet() -> Fleet:
    """Create two clusters with all kinds of devices behind gateways."""
    return fleet(
        cluster(node(gpu(), gpu()), node(mig_gpu()), name="alpha", gateway="door"),
        cluster(node(gpu(), mig_gpu()), name="beta", gateway="gate"),
        links=[Link(*ends, 1, bandwidth_mbps=100) for ends in (("user", "door"), ("user", "gate"), ("door", "gate"))],
        gateways=(Gateway("user", speed_mbps=1_000), Gateway("door", speed_mbps=1_000, used_in_mbps=1)),
    )


JOBS = [
    job("half", cpu_milli=500, gpus=1, gpu_memory_mib=40_000, gpu_milli=500),
    job("mig", gpus=1, gpu_memory_mib=9_000, models={"NVIDIA A100-SXM4-40GB"}),
    job("far", cpu_milli=100, gpus=1, gpu_memory_mib=1_000, gateway="user", min_bandwidth_mbps=30, replicas=2),
    job("plain", cpu_milli=1_000, memory_mib=64, replicas=3),
    job("never", gpus=9),
    job("gang", gpus=1, gpu_memory_mib=5_000, replicas=3, gang=True, gateway="user", min_bandwidth_mbps=10),
    job("wide", cpu_milli=40_000, replicas=3, gang=True, between_replicas=NetworkNeed(min_bandwidth_mbps=20)),
]


def state(snapshot: Snapshot) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Return all columns that allocations change."""
    return [getattr(snapshot.arrays, table).copy() for table in TABLES]


def same(one: Snapshot, other: Snapshot) -> None:
    """Check that two snapshots have equal allocations."""
    for table in TABLES:
        np.testing.assert_array_equal(getattr(one.arrays, table), getattr(other.arrays, table), table)


def decided(jobs: list[Job]) -> tuple[Snapshot, list[tuple[Placement, ...]], list[bool]]:
    """Plan jobs; return their placements."""
    snapshot = Snapshot(some_fleet())
    plan = decide(snapshot, JobQueue(snapshot, jobs), make_profile("bestfit"))
    where = [
        tuple(plan.placement(int(row)) for row in plan.rows_of(at)) if fits else ()
        for at, fits in enumerate(plan.jobs_placed)
    ]
    return snapshot, where, plan.jobs_placed.tolist()


def test_stored_placements_restore_the_allocations_of_the_engine() -> None:
    """After a restart the allocations are equal bit by bit."""
    snapshot, where, fits = decided(JOBS)
    assert fits == [True, True, True, True, False, True, True]
    assert len({place.cluster for place in where[-1]}) == 2
    again = Snapshot(some_fleet())
    for each, placements in zip(JOBS, where, strict=True):
        allocate(again, each, placements)
    same(again, snapshot)


def test_jobs_are_released_independently() -> None:
    """Jobs of a plan are released in any order without changes to others; a second release does nothing."""
    for order in ([0, 1, 2, 3, 4, 5, 6], [5, 3, 6, 1, 4, 2, 0]):
        snapshot = Snapshot(some_fleet())
        empty = state(snapshot)
        plan = decide(snapshot, JobQueue(snapshot, JOBS), make_profile("bestfit"))
        parts = list(allocations_of(plan))
        assert len(parts) == len(JOBS)
        for at in order:
            parts[at].release(snapshot)
            parts[at].release(snapshot)
        for table, before in zip(TABLES, empty, strict=True):
            np.testing.assert_array_equal(getattr(snapshot.arrays, table), before, table)


@pytest.mark.parametrize(("first", "end"), [(0, 7), (2, 6), (4, 7), (3, 3)])
def test_joined_allocations_are_released_and_restored_like_each_of_them(first: int, end: int) -> None:
    """Jobs that share links do so after they are joined; what is restored equals what was released."""
    one, other = Snapshot(some_fleet()), Snapshot(some_fleet())
    parts = list(allocations_of(decide(one, JobQueue(one, JOBS), make_profile("bestfit"))))
    decide(other, JobQueue(other, JOBS), make_profile("bestfit"))
    joined, rows = join(parts)
    assert rows[-1] == sum(len(each.decisions) for each in parts)
    chosen = Allocation(joined.decisions[rows[first] : rows[end]], joined.slices)
    full = one.copy()
    chosen.copy().release(one)
    for each in parts[first:end]:
        each.copy().release(other)
    same(one, other)
    chosen.restore(one)
    same(one, full)


def test_release_on_a_clone_leaves_the_snapshot() -> None:
    """An allocation that a clone releases remains on the snapshot."""
    snapshot, where, _ = decided(JOBS[:1])
    held = allocate(Snapshot(some_fleet()), JOBS[0], where[0])
    twin = snapshot.copy()
    before = state(snapshot)
    held.copy().release(twin)
    for table, retained in zip(TABLES, before, strict=True):
        np.testing.assert_array_equal(getattr(snapshot.arrays, table), retained, table)
    same(twin, Snapshot(some_fleet()))


def test_placements_are_allocated_even_beyond_capacity() -> None:
    """An overcommitted node has negative free amounts, and all amounts again after the release."""
    snapshot = Snapshot(some_fleet())
    places = (Placement("x", 0, "alpha", "node-0", (DeviceSlice("GPU-alpha-node-0-0", 81_920, 1000),)),)
    whole = job("x", gpus=1)
    held = [allocate(snapshot, whole, places) for _ in range(2)]
    assert snapshot.arrays.devices.min() < 0
    for each in held:
        each.release(snapshot)
    same(snapshot, Snapshot(some_fleet()))


@pytest.mark.parametrize(
    "places",
    [
        (Placement("x", 0, "gone", "node-0"),),
        (Placement("x", 0, "alpha", "gone", (DeviceSlice("GPU-alpha-node-0-0", 1, 1),)),),
    ],
)
def test_placements_on_unknown_nodes_change_nothing(places: tuple[Placement, ...]) -> None:
    """The snapshot ignores such placements."""
    snapshot = Snapshot(some_fleet())
    allocate(snapshot, job("x", gpus=1), places).release(snapshot)
    same(snapshot, Snapshot(some_fleet()))


def test_removed_gateway_reserves_no_bandwidth() -> None:
    """Jobs of a removed gateway keep their devices, but no bandwidth."""
    snapshot = Snapshot(some_fleet())
    places = (Placement("x", 0, "alpha", "node-0", (DeviceSlice("GPU-alpha-node-0-0", 1_000, 10),)),)
    strange = job("x", gpus=1, gpu_memory_mib=1_000, gateway="elsewhere", min_bandwidth_mbps=50)
    plain = replace(strange, demand=job("x", gpus=1, gpu_memory_mib=1_000).demand)
    held = allocate(snapshot, strange, places)
    other = Snapshot(some_fleet())
    allocate(other, plain, places)
    same(snapshot, other)
    held.release(snapshot)
    same(snapshot, Snapshot(some_fleet()))


def test_batch_allocation_equals_single_allocations() -> None:
    """Each job has a separate allocation and release."""
    apart, together = Snapshot(some_fleet()), Snapshot(some_fleet())
    before = state(together)
    plan = decide(apart.copy(), JobQueue(apart, JOBS), make_profile("bestfit"))
    places = list(plan.placements())
    held = [(each, [place for place in places if place.job == each.name], 1) for each in JOBS]
    one_by_one = [allocate(apart, each, placed) for each, placed, _ in held]
    at_once = allocate_all(together, held)
    same(apart, together)
    for one, other in zip(one_by_one, at_once, strict=True):
        np.testing.assert_array_equal(one.decisions, other.decisions)
        np.testing.assert_array_equal(one.slices, other.slices)
    for one, other in zip(one_by_one, reversed(at_once), strict=True):
        one.release(apart)
        other.release(together)
    same(apart, together)
    for was, now in zip(before, state(together), strict=True):
        np.testing.assert_array_equal(was, now)


def test_a_split_has_the_parts_of_all_replicas() -> None:
    """Each replica apart is what `part` returns for it, with its slices and without bandwidth."""
    snapshot = Snapshot(some_fleet())
    plan = decide(snapshot, JobQueue(snapshot, JOBS), make_profile("bestfit"))
    for allocation in allocations_of(plan):
        for replica, apart in allocation.split().items():
            alone = allocation.part({replica})
            np.testing.assert_array_equal(apart.decisions, alone.decisions)
            np.testing.assert_array_equal(apart.slices, alone.slices)
