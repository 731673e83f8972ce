"""Changes of a fleet with running jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.job import Job, NodeRules
from seaway.domain.network import Link
from seaway.domain.node import Node
from seaway.scheduling.allocations import allocations_of
from seaway.scheduling.arrays import copy_arrays
from seaway.scheduling.columns import BLOCK_NODES, NODE_CPU_FREE
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import PolicyOptions, make_policy, make_profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_links, put_node, remove_node
from seaway.testing.plugins import cluster, fleet, gpu, job, node

HALF = job("half", gpus=1, gpu_memory_percent=50, gpu_milli=500, cpu_milli=1_000)
WHOLE = job("whole", gpus=1, cpu_milli=1_000)


def snapshot_of(*nodes: Node) -> Snapshot:
    """Create a snapshot of one cluster, ``c``."""
    return Snapshot(fleet(cluster(*nodes, name="c")))


def place(snapshot: Snapshot, *jobs: Job) -> Plan:
    """Plan jobs by best fit."""
    return decide(snapshot, JobQueue(snapshot, jobs), make_policy("bestfit"))


def where(snapshot: Snapshot, *jobs: Job) -> list[str]:
    """Plan jobs and return their devices."""
    return [slice_.uuid for placed in place(snapshot, *jobs).placements() for slice_ in placed.slices]


def release(plan: Plan, *rows: int) -> None:
    """Release some rows of a plan, or all."""
    plan.snapshot.release(plan.decisions, plan.slices, np.array(rows or range(len(plan.decisions))))


def test_new_node_takes_jobs() -> None:
    """A new node is equal to one of the initial fleet."""
    snapshot = snapshot_of(node(name="a"))
    put_node(snapshot, "c", node(gpu(uuid="x"), name="b"))
    assert where(snapshot, WHOLE) == ["x"]


def test_policy_tables_include_new_nodes_on_both_paths() -> None:
    """Compiled and plugin paths re-create the tables of a smaller fleet."""
    for plain in (False, True):
        for name in ("fgd", "seaway", "bestfit"):
            snapshot = snapshot_of(node(name="a"))
            policy = make_policy(name, PolicyOptions(mix=[WHOLE], plain=plain))
            assert not decide(snapshot, JobQueue(snapshot, [WHOLE]), policy).placed.any()
            put_node(snapshot, "c", node(gpu(), name="b"))
            assert decide(snapshot, JobQueue(snapshot, [WHOLE]), policy).placed.all()


@pytest.mark.parametrize(
    "closed",
    [
        node(gpu(uuid="x"), name="a", ready=False),
        node(gpu(uuid="x", healthy=False), name="a"),
        node(gpu(uuid="x", cordoned=True), name="a"),
        node(name="a"),
    ],
    ids=["cordoned node", "ill device", "cordoned device", "lost device"],
)
def test_closed_nodes_and_devices_take_jobs_after_reopening(closed: Node) -> None:
    """Closed nodes and devices take no jobs."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a"))
    put_node(snapshot, "c", closed)
    assert not where(snapshot, WHOLE)
    put_node(snapshot, "c", node(gpu(uuid="x"), name="a"))
    assert where(snapshot, WHOLE) == ["x"]


def test_changed_node_keeps_its_allocations() -> None:
    """Only the rest of the new capacity is free."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a", cpu_milli=4_000))
    plan = place(snapshot, HALF)
    n = put_node(snapshot, "c", node(gpu(uuid="x"), name="a", cpu_milli=500))
    assert snapshot.arrays.nodes[NODE_CPU_FREE, n] == -500
    release(plan)
    assert snapshot.arrays.nodes[NODE_CPU_FREE, n] == 500


def test_avoided_node_stays_avoided_after_changes_of_others() -> None:
    """Removed, restored or replaced nodes change neither the avoided node of a job nor the reason."""
    nodes = [node(gpu(uuid=f"g{at}"), name=f"n{at}") for at in range(3)]
    snapshot = snapshot_of(*nodes)
    stored_away = replace(WHOLE, demand=replace(WHOLE.demand, nodes=NodeRules(avoid=frozenset({("c", "n1")}))))

    def open_to_it() -> set[str]:
        reported = explain(snapshot, stored_away, make_profile("bestfit", PolicyOptions()))
        assert [(each.plugin, each.nodes) for each in reported.refusals] == [("Avoidance", 1)]
        return {each.node for each in reported.candidates}

    assert open_to_it() == {"n0", "n2"}
    remove_node(snapshot, "c", "n0")
    assert open_to_it() == {"n2"}
    put_node(snapshot, "c", nodes[0])
    assert open_to_it() == {"n0", "n2"}
    put_node(snapshot, "c", node(gpu(uuid="other"), name="n2"))
    assert open_to_it() == {"n0", "n2"}


def test_added_devices_leave_the_others_as_they_are() -> None:
    """Allocations on the node remain and can be released."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a"))
    plan = place(snapshot, HALF)
    put_node(snapshot, "c", node(gpu(uuid="x"), gpu(uuid="y"), name="a"))
    assert where(snapshot, HALF, WHOLE, HALF) == ["x", "y"]
    release(plan)
    assert where(snapshot, HALF) == ["x"]


def test_allocations_are_restored_where_their_node_is_now() -> None:
    """A released allocation is restored exactly on a node that has other devices since."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a"))
    (allocation,) = allocations_of(place(snapshot, HALF))
    put_node(snapshot, "c", node(gpu(uuid="x"), gpu(uuid="y"), name="a"))
    before = snapshot.copy()
    allocation.copy().release(snapshot)
    assert where(snapshot.copy(), WHOLE, WHOLE) == ["x", "y"]
    allocation.restore(snapshot)
    for table in ("nodes", "devices", "blocks", "clusters"):
        np.testing.assert_array_equal(getattr(snapshot.arrays, table), getattr(before.arrays, table), err_msg=table)


def test_restored_device_keeps_its_allocations() -> None:
    """A device that was absent while another was added is not idle."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a"))
    place(snapshot, HALF)
    put_node(snapshot, "c", node(gpu(uuid="y"), name="a"))
    put_node(snapshot, "c", node(gpu(uuid="x"), gpu(uuid="y"), name="a"))
    assert where(snapshot, WHOLE, WHOLE, HALF) == ["y", "x"]


def test_jobs_of_a_removed_node_can_be_released() -> None:
    """A removed node has no free resources, before and after the release."""
    snapshot = snapshot_of(node(gpu(), name="a"))
    plan = place(snapshot, HALF)
    remove_node(snapshot, "c", "a")
    assert not where(snapshot, HALF)
    release(plan)
    assert not where(snapshot, HALF)
    with pytest.raises(RejectedError, match="has no node 'a'"):
        remove_node(snapshot, "c", "a")


def test_restored_node_keeps_unreleased_allocations() -> None:
    """A removed node that joins again with the same devices has its allocations."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a"))
    plan = place(snapshot, HALF)
    remove_node(snapshot, "c", "a")
    put_node(snapshot, "c", node(gpu(uuid="x"), name="a"))
    assert not where(snapshot, WHOLE)
    release(plan)
    assert where(snapshot, WHOLE) == ["x"]


def test_device_may_move_but_is_never_on_two_nodes() -> None:
    """A device is rejected on a second node until the first node no longer has it."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a"), node(name="b"))
    place(snapshot, HALF)
    with pytest.raises(RejectedError, match="'x' of node 'b' is already on another node"):
        put_node(snapshot, "c", node(gpu(uuid="x"), name="b"))
    put_node(snapshot, "c", node(name="a"))
    put_node(snapshot, "c", node(gpu(uuid="x"), name="b"))
    assert [placed.node for placed in place(snapshot, WHOLE).placements()] == ["b"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (node(gpu(uuid="y"), gpu(uuid="y"), name="a"), "'y' of node 'a' appears more than once"),
        (node(gpu(uuid="x"), name="a", cpu_milli=2**31), "node 'a' has the figure 2147483648"),
        (node(gpu(uuid="x", memory_mib=2**31), name="a"), "device 'x' has the figure 2147483648"),
    ],
)
def test_rejected_node_changes_nothing(wrong: Node, message: str) -> None:
    """A rejected update leaves the snapshot unchanged."""
    snapshot = snapshot_of(node(gpu(uuid="x"), name="a"))
    before = copy_arrays(snapshot.arrays)
    with pytest.raises(RejectedError, match=message):
        put_node(snapshot, "c", wrong)
    np.testing.assert_equal(snapshot.arrays, before)


def test_unknown_names_are_rejected() -> None:
    """The error names the unknown cluster or gateway and the known ones."""
    snapshot = snapshot_of(node(name="a"))
    with pytest.raises(RejectedError, match=r"unknown cluster 'd'.*has: c"):
        put_node(snapshot, "d", node(name="b"))
    with pytest.raises(RejectedError, match="unknown gateway 'here'"):
        put_links(snapshot, [Link("here", "there", 1)])


TALKER = job("talker", replicas=3, gateway="user", min_bandwidth_mbps=60)
TIE = Link("user", "gw", 1, bandwidth_mbps=100)


def linked() -> Snapshot:
    """Create a cluster behind a gateway, with one node that holds any job."""
    return Snapshot(fleet(cluster(node(), name="c", gateway="gw"), links=[TIE]))


def free_mbps(snapshot: Snapshot) -> int:
    """Return the unreserved bandwidth of the link from the user to the cluster."""
    ends = [gateway.name for gateway in snapshot.fleet.gateways]
    return int(snapshot.arrays.bandwidth[ends.index("user"), ends.index("gw")])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_bandwidth_is_reserved_until_the_last_replica_ends(order: tuple[int, ...]) -> None:
    """A job reserves a link's bandwidth once, and releases it with its last replica there."""
    snapshot = linked()
    plan = place(snapshot, TALKER)
    assert free_mbps(snapshot) == 40
    for row in order[:2]:
        release(plan, row)
        assert free_mbps(snapshot) == 40
    release(plan, order[2])
    assert free_mbps(snapshot) == 100


def test_bandwidth_of_another_job_is_not_shared() -> None:
    """The release of one job leaves the reservation of another on the same link."""
    snapshot = linked()
    one = replace(TALKER, demand=replace(TALKER.demand, network=replace(TALKER.demand.network, min_bandwidth_mbps=30)))
    plan = place(snapshot, replace(one, name="a"), replace(one, name="b"))
    assert free_mbps(snapshot) == 40
    release(plan, 0, 1, 2)
    assert free_mbps(snapshot) == 70


def test_reservations_survive_new_measurements() -> None:
    """New measurements change the capacity, not the reservations of running jobs."""
    snapshot = linked()
    plan = place(snapshot, TALKER)
    put_links(snapshot, [replace(TIE, bandwidth_mbps=1_000, used_mbps=50)])
    assert free_mbps(snapshot) == 890
    put_links(snapshot, [])
    assert free_mbps(snapshot) == -60
    put_links(snapshot, [TIE])
    release(plan)
    assert free_mbps(snapshot) == 100


def test_degraded_links_reject_new_jobs() -> None:
    """Bounds are compared with the last measurement."""
    snapshot = linked()
    near = job("near", gateway="user", max_latency_ns=5)
    assert place(snapshot, near).placed.all()
    put_links(snapshot, [replace(TIE, latency_ns=6)])
    assert not place(snapshot, near).placed.any()


def test_bestfit_considers_devices_that_open_later() -> None:
    """Tables of best fit include the devices that were closed when it began."""
    small = gpu(uuid="small", memory_mib=1_000)
    full = [node(gpu(), name=f"node-{n}", cpu_milli=64_000) for n in range(BLOCK_NODES)]
    snapshot = snapshot_of(*full, node(replace(small, healthy=False), name="late", cpu_milli=66_000))
    policy = make_policy("bestfit")
    decide(snapshot, JobQueue(snapshot, [job("first")]), policy)
    put_node(snapshot, "c", node(small, name="late", cpu_milli=66_000))
    slice_ = job("slice", gpus=1, gpu_memory_mib=900, gpu_milli=10, cpu_milli=1_000)
    plan = decide(snapshot, JobQueue(snapshot, [slice_]), policy)
    assert [placed.node for placed in plan.placements()] == ["late"]
