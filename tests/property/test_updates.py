"""Invariants of a snapshot that follows a fleet through any history of jobs, nodes and links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.scheduling.arrays import FleetArrays, copy_arrays
from seaway.scheduling.columns import (
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GPU_CORE,
    CLUSTER_GPU_CORE_FREE,
    CLUSTER_GPU_MEMORY,
    CLUSTER_GPU_MEMORY_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY_FREE,
    DEVICE_MIG,
    DEVICE_NODE,
    DEVICE_OPEN,
    DEVICE_SLOTS_FREE,
    NODE_CLUSTER,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
    NODE_OPEN,
    NODE_PODS_FREE,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.allocate import refresh_all
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import job
from tests.property.fleet_changes import Change, History, Place, changes, fleets
from tests.property.strategies import jobs
from tests.unit.scheduling.requesting import refusals

EXAMPLES = settings().max_examples // 2

SUMS = (
    (CLUSTER_CPU, NODE_CPU),
    (CLUSTER_CPU_FREE, NODE_CPU_FREE),
    (CLUSTER_MEMORY, NODE_MEMORY),
    (CLUSTER_MEMORY_FREE, NODE_MEMORY_FREE),
    (CLUSTER_GPU_MEMORY, NODE_GPU_MEMORY),
    (CLUSTER_GPU_MEMORY_FREE, NODE_GPU_MEMORY_FREE),
    (CLUSTER_GPU_CORE, NODE_GPU_CORE),
    (CLUSTER_GPU_CORE_FREE, NODE_GPU_CORE_FREE),
)

MIX = [
    job("third", cpu_milli=2_000, gpus=1, gpu_memory_mib=17_000, gpu_milli=300),
    job("most", cpu_milli=5_000, gpus=1, gpu_memory_percent=70, gpu_milli=700, replicas=2),
    job("pair", cpu_milli=8_000, gpus=2, replicas=2),
    job("plain", cpu_milli=1_000),
]
"""The mix that policies learn from, without jobs bound to nodes.

Prices of those depend on the time of their last computation.
"""


def same_columns(one: FleetArrays, other: FleetArrays, tables: tuple[str, ...]) -> None:
    """Check that tables of two fleets are equal."""
    for table in tables:
        np.testing.assert_array_equal(getattr(one, table), getattr(other, table), err_msg=table)


def history(fleet: Fleet, past: list[Change]) -> History:
    """Apply a history with best fit."""
    reported = History.of(fleet, make_policy("bestfit"))
    reported.live(past)
    return reported


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), past=changes())
def test_snapshot_in_the_end_is_that_of_the_fleet_in_the_end(fleet: Fleet, past: list[Change]) -> None:
    """After everything is released, each node, device, cluster and link is as if the fleet had always been so."""
    reported = history(fleet, past)
    reported.release_all()
    snapshot, fresh = reported.snapshot, Snapshot(reported.fleet())
    assert snapshot.node_index.keys() == fresh.node_index.keys()
    nodes = np.delete(np.arange(len(fresh.arrays.nodes)), [NODE_DEVICE_FIRST, NODE_DEVICE_END])
    for at, n in fresh.node_index.items():
        found = snapshot.arrays.nodes[nodes, snapshot.node_index[at]]
        np.testing.assert_array_equal(found, fresh.arrays.nodes[nodes, n], err_msg=str(at))
    devices = np.delete(np.arange(len(fresh.arrays.devices)), [DEVICE_NODE, DEVICE_MIG])
    for uuid, d in fresh.device_index.items():
        found = snapshot.arrays.devices[devices, snapshot.device_index[uuid]]
        np.testing.assert_array_equal(found, fresh.arrays.devices[devices, d], err_msg=uuid)
    assert snapshot.arrays.devices[DEVICE_OPEN].sum() == fresh.arrays.devices[DEVICE_OPEN].sum()
    same_columns(snapshot.arrays, fresh.arrays, ("clusters", "bandwidth", "gateways"))


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), past=changes(), queue=jobs(most=3))
def test_rules_are_judged_by_the_fleet_in_the_end(fleet: Fleet, past: list[Change], queue: list[Job]) -> None:
    """After everything is released, each node accepts or rejects a job as if the fleet had always been so."""
    reported = history(fleet, past)
    reported.release_all()
    fresh = Snapshot(reported.fleet())
    for each in queue:
        verdicts, expected = refusals(reported.snapshot, each), refusals(fresh, each)
        for at, n in fresh.node_index.items():
            assert bool(verdicts[reported.snapshot.node_index[at]]) == bool(expected[n])


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), past=changes())
def test_derived_figures_stay_true(fleet: Fleet, past: list[Change]) -> None:
    """After every change, rooms, blocks and sums of clusters over open nodes equal a new computation."""
    reported = History.of(fleet, make_policy("bestfit"))
    for change in past:
        reported.go(change)
        again = copy_arrays(reported.snapshot.arrays)
        refresh_all(again)
        same_columns(reported.snapshot.arrays, again, ("nodes", "devices", "blocks", "clusters"))
        for sum_, figure in SUMS:
            figures = again.nodes[figure] * again.nodes[NODE_OPEN]
            sums = np.bincount(again.nodes[NODE_CLUSTER], figures, len(fleet.clusters))
            np.testing.assert_array_equal(again.clusters[sum_], sums)


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), past=changes())
def test_nothing_that_did_not_shrink_is_given_twice(fleet: Fleet, past: list[Change]) -> None:
    """Only nodes and devices that shrank under running replicas can be over capacity."""
    reported = History.of(fleet, make_policy("bestfit"))
    for change in past:
        reported.go(change)
        arrays = reported.snapshot.arrays
        for at, n in reported.snapshot.node_index.items():
            assert at in reported.shrunk or (arrays.nodes[[NODE_CPU_FREE, NODE_PODS_FREE], n] >= 0).all()
        for uuid, d in reported.snapshot.device_index.items():
            if uuid not in reported.shrunk:
                assert (arrays.devices[[DEVICE_MEMORY_FREE, DEVICE_SLOTS_FREE], d] >= 0).all()
                assert arrays.devices[DEVICE_MIG, d] >= 0 or arrays.devices[DEVICE_CORE_FREE, d] >= 0


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("name", ["fgd", "seaway", "bestfit", "nearest"])
@settings(max_examples=EXAMPLES // 2)
@given(fleet=fleets(), past=changes())
def test_what_is_remembered_decides_as_what_is_worked_out_again(
    name: str, plain: bool, fleet: Fleet, past: list[Change]
) -> None:
    """A policy with a history decides as one that sees the fleet for the first time."""
    options = PolicyOptions(mix=MIX, plain=plain)
    reported = History.of(fleet, make_policy(name, options))
    for change in past:
        if not isinstance(change, Place) or change.undone:
            reported.go(change)
            continue
        twin = reported.snapshot.copy()
        plan = reported.place(change.jobs)
        again = decide(twin, JobQueue(twin, change.jobs), make_policy(name, options))
        np.testing.assert_array_equal(plan.decisions, again.decisions)
        np.testing.assert_array_equal(plan.slices, again.slices)
        same_columns(
            reported.snapshot.arrays, twin.arrays, ("nodes", "devices", "blocks", "clusters", "bandwidth", "gateways")
        )


def state(snapshot: Snapshot) -> list[object]:
    """Return a deep copy of a snapshot's state."""
    demands = snapshot.demands.arrays
    lists = (snapshot.nodes, snapshot.devices, snapshot.links)
    indices = (snapshot.node_index, snapshot.device_index, snapshot.removed)
    return [
        *(table.copy() for table in snapshot.arrays),
        *(table.copy() for table in (demands.node_ok, demands.device_ok, demands.cluster_ok)),
        *(list(each) for each in lists),
        *(dict(each) for each in indices),
    ]


def same_state(snapshot: Snapshot, before: list[object]) -> None:
    """Check that a snapshot has the same state as before."""
    for old, now in zip(before, state(snapshot), strict=True):
        np.testing.assert_equal(now, old)


@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), past=changes(), queue=jobs(most=4), one=changes(), other=changes())
def test_copies_keep_to_themselves(
    fleet: Fleet, past: list[Change], queue: list[Job], one: list[Change], other: list[Change]
) -> None:
    """A copy of a snapshot is independent of it, in both directions."""
    reported = history(fleet, past)
    later = [each for change in [*one, *other] if isinstance(change, Place) for each in change.jobs]
    JobQueue(reported.snapshot, [*queue, *later])  # so that no line is added to the shared table
    twin = History.of(reported.fleet(), reported.policy)
    twin.snapshot = reported.snapshot.copy()
    before = state(twin.snapshot)
    reported.place(queue)
    reported.live(one)
    same_state(twin.snapshot, before)
    before = state(reported.snapshot)
    twin.place(queue)
    twin.live(other)
    same_state(reported.snapshot, before)
