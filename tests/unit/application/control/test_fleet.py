from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from seaway.application.control.fleet import LiveFleet
from seaway.application.records import Cordon
from seaway.application.views import ClusterState
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Cluster
from seaway.domain.facts import Facts
from seaway.domain.job_state import AttemptState
from seaway.domain.network import Gateway, Link
from seaway.domain.placement import DeviceSlice, Placement
from seaway.scheduling.allocations import allocate
from seaway.scheduling.columns import (
    DEVICE_CORE_FREE,
    DEVICE_MEMORY_FREE,
    DEVICE_OPEN,
    DEVICE_SLOTS_FREE,
    NODE_CPU_FREE,
    NODE_OPEN,
)
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.control_plane import make_policy
from tests.unit.application.scene import spec

ALPHA = fleet(cluster(node(gpu(), gpu()), node(gpu()), name="alpha", gateway="door")).clusters[0]
BETA = fleet(cluster(node(gpu()), name="beta")).clusters[0]


def live(*reported: Cluster) -> LiveFleet:
    """Create a fleet of clusters that have reported and answer."""
    made = LiveFleet()
    made.know([each.name for each in reported], 0)
    for each in reported:
        made.tell(each)
        made.set_state(each.name, ClusterState.UP)
    return made


def fits(made: LiveFleet, **fields: object) -> str:
    """Return the place of a job; empty for none."""
    snapshot = made.snapshot.copy()
    plan = decide(snapshot, JobQueue(snapshot, [spec(**fields).job("x")]), make_policy("bestfit", ()))
    placements = list(plan.placements())
    return f"{placements[0].cluster}/{placements[0].node}" if placements else ""


def held(number: int = 1, *, cluster: str = "alpha", node: str = "node-0", gateway: str = "") -> Attempt:
    """Create an attempt of one GPU on a node."""
    taken = DeviceSlice(f"GPU-{cluster}-{node}-0", 81_920, 1000)
    places = (Placement("job", 0, cluster, node, (taken,)),)
    made = spec(gateway=gateway, min_bandwidth_mbps=10) if gateway else spec()
    return Attempt("job", number, AttemptState.RUNNING, made, "bestfit", places, 0, 0)


def same(made: LiveFleet) -> None:
    """Check that a fleet's accounting equals that of a rebuilt one."""
    fresh = Snapshot(made.fleet())
    for attempt, job, _ in made._held.values():  # noqa: SLF001
        allocate(fresh, job, attempt.placements)
    for table in ("nodes", "devices", "blocks", "clusters", "bandwidth", "gateways"):
        np.testing.assert_array_equal(getattr(made.snapshot.arrays, table), getattr(fresh.arrays, table), table)


def alike(made: LiveFleet) -> None:
    """Check that every node and device has as much left as in a fleet that was read again."""
    fresh = Snapshot(made.fleet())
    for attempt, job, _ in made._held.values():  # noqa: SLF001
        allocate(fresh, job, attempt.placements)
    assert {each.uuid for each in made.fleet().devices} <= made.snapshot.device_index.keys()
    assert made.snapshot.node_index.keys() == fresh.node_index.keys()
    rows = [DEVICE_OPEN, DEVICE_MEMORY_FREE, DEVICE_CORE_FREE, DEVICE_SLOTS_FREE]
    for uuid, at in fresh.device_index.items():
        now, then = made.snapshot.arrays.devices[rows, made.snapshot.device_index[uuid]], fresh.arrays.devices[rows, at]
        assert now.tolist() == then.tolist(), uuid
    for key, at in fresh.node_index.items():
        now, then = made.snapshot.arrays.nodes[:, made.snapshot.node_index[key]], fresh.arrays.nodes[:, at]
        assert now[[NODE_CPU_FREE, NODE_OPEN]].tolist() == then[[NODE_CPU_FREE, NODE_OPEN]].tolist(), key


def hold(made: LiveFleet, attempt: Attempt) -> None:
    """Allocate the resources of an attempt."""
    made.hold(attempt, attempt.spec.job(attempt.job_id))


def test_what_an_attempt_holds_is_taken_until_it_lets_go() -> None:
    """An allocation uses exactly its devices, and a release, even twice, frees exactly those."""
    made = live(BETA)
    hold(made, held(cluster="beta"))
    assert not fits(made)
    same(made)
    version = made.version
    made.release_allocation(("job", 1))
    made.release_allocation(("job", 1))
    assert made.version == version + 1
    assert fits(made) == "beta/node-0"
    same(made)


def test_what_runs_on_a_node_that_no_one_informed_of_is_reserved_when_it_is() -> None:
    """Attempts may be known before their cluster is, as after a restart; nothing is lost or allocated twice."""
    made = LiveFleet()
    hold(made, held())
    made.know(["alpha"], 0)
    made.tell(ALPHA)
    made.set_state("alpha", ClusterState.UP)
    same(made)
    assert fits(made, gpus=2) == ""


def test_what_runs_behind_an_unknown_gateway_is_reserved_all_the_same() -> None:
    """An attempt holds its devices even if its gateway was removed, or is not known yet."""
    made = live(ALPHA)
    hold(made, held(gateway="user"))
    same(made)
    links = [Link("user", "door", 1, bandwidth_mbps=100)]
    made.connect([Gateway("user"), Gateway("door")], links)
    same(made)
    assert made.snapshot.arrays.bandwidth[0, 1] == 90
    made.connect([Gateway("door")], [])
    same(made)


def test_a_node_that_changes_keeps_what_it_holds() -> None:
    """Nodes and devices fail, appear, disappear and return: allocations stay."""
    made = live(ALPHA)
    hold(made, held())
    broken = replace(ALPHA.nodes[0], ready=False)
    for nodes in (
        (broken, ALPHA.nodes[1]),
        (ALPHA.nodes[1],),
        ALPHA.nodes,
        (*ALPHA.nodes, node(gpu(uuid="GPU-new"), name="node-9")),
    ):
        made.tell(replace(ALPHA, nodes=nodes))
        assert fits(made, gpus=2) == ""
    made.release_allocation(("job", 1))
    assert fits(made, gpus=2) == "alpha/node-0"


def test_a_device_that_moves_between_nodes_is_followed() -> None:
    """When a device appears on another node of its cluster, the fleet is rebuilt rather than given up."""
    made = live(ALPHA)
    first, second = ALPHA.nodes
    moved = replace(
        ALPHA,
        nodes=(
            replace(first, devices=first.devices[:1]),
            replace(second, devices=(*second.devices, replace(first.devices[1], index=1))),
        ),
    )
    made.tell(moved)
    assert fits(made, gpus=2) == "alpha/node-1"
    back = replace(ALPHA, nodes=ALPHA.nodes)
    made.tell(back)
    assert fits(made, gpus=2) == "alpha/node-0"


def test_a_cluster_that_tells_nonsense_keeps_the_others_going() -> None:
    """When a cluster reports impossible values, its last valid report stays."""
    made = live(ALPHA, BETA)
    made.tell(replace(BETA, nodes=(replace(BETA.nodes[0], cpu_milli=1 << 40),)))
    assert made.clusters["beta"].cluster == BETA
    assert fits(made, clusters={"beta"}) == "beta/node-0"
    same(made)


def test_clusters_that_are_reported_together_cost_no_more_than_one() -> None:
    """New clusters are added in one rebuild, beside small changes, with the same result as one by one."""
    made = LiveFleet()
    made.know(["alpha", "beta"], 0)
    version = made.version
    made.tell(ALPHA, BETA)
    assert made.version == version + 1
    same(made)
    assert made.snapshot.node_index.keys() == live(ALPHA, BETA).snapshot.node_index.keys()
    made.tell(replace(ALPHA, nodes=ALPHA.nodes[:1]), replace(BETA, facts=Facts(region="eu")))
    assert [len(each.nodes) for each in made.fleet().clusters] == [1, 1]
    assert made.snapshot.clusters[1].region == "eu"
    same(made)


def test_nonsense_reported_together_with_others_hides_none_of_them() -> None:
    """Of new clusters, one with impossible values does not hide the others."""
    gamma = fleet(cluster(node(gpu()), name="gamma")).clusters[0]
    nonsense = replace(BETA, nodes=(replace(BETA.nodes[0], cpu_milli=1 << 40),))
    made = LiveFleet()
    made.know(["alpha", "beta", "gamma"], 0)
    made.tell(ALPHA, nonsense, gamma)
    assert [each.name for each in made.fleet().clusters] == ["alpha", "gamma"]
    same(made)


MOVED = ALPHA.nodes[0]
"""A machine of alpha that is added again, in beta or under another name, while its old node stays."""


def without(reported: Cluster, *, ready: bool = False) -> Cluster:
    """Return alpha after the machine left: its node stays, and is not ready."""
    return replace(reported, nodes=(replace(MOVED, ready=ready), *reported.nodes[1:]))


def with_moved(reported: Cluster, name: str = "new", *, ready: bool = True) -> Cluster:
    """Return a cluster with the machine added."""
    return replace(reported, nodes=(*reported.nodes, replace(MOVED, name=name, ready=ready)))


def test_a_machine_that_moves_to_another_cluster_is_followed() -> None:
    """Its devices move as soon as its old node is not ready, in any order of reports, and all else continues."""
    for first in (True, False):
        made = live(ALPHA, BETA)
        reported = (without(ALPHA), with_moved(BETA))
        for each in reported if first else reversed(reported):
            made.tell(each)
            alike(made)
        assert fits(made, gpus=2) == "beta/new"
        made.tell(replace(with_moved(BETA), nodes=(*with_moved(BETA).nodes, node(gpu(uuid="GPU-9"), name="node-9"))))
        assert "node-9" in {each.name for each in made.clusters["beta"].cluster.nodes}  # type: ignore[union-attr]
        made.tell(replace(ALPHA, nodes=ALPHA.nodes[1:]))
        alike(made)
        assert fits(made, gpus=2) == "beta/new"


def test_what_two_ready_nodes_list_stays_where_it_was() -> None:
    """It is not known which one is right, so nothing moves; the other node offers only its own devices."""
    made = live(ALPHA, BETA)
    made.tell(with_moved(BETA))
    assert fits(made, gpus=2) == "alpha/node-0"
    assert fits(made, gpus=2, clusters={"beta"}) == ""
    assert fits(made, clusters={"beta"}) == "beta/node-0"
    alike(made)
    made.tell(replace(ALPHA, nodes=ALPHA.nodes[1:]))
    assert fits(made, gpus=2) == "beta/new"
    made.know(["alpha"], 0)
    made.tell(ALPHA)
    assert fits(made, gpus=2) == "alpha/node-0"
    alike(made)


def test_a_node_that_is_down_for_a_while_keeps_what_no_one_else_has() -> None:
    """Of two nodes that are not ready the owner keeps the devices, so that nothing moves back and forth."""
    made = live(ALPHA, BETA)
    made.tell(without(ALPHA), with_moved(BETA))
    hold(made, replace(held(cluster="beta", node="new"), placements=(on("beta", "new"),)))
    version = made.make
    made.tell(with_moved(BETA, ready=False))
    made.tell(with_moved(BETA))
    assert made.make == version + 2
    assert fits(made, gpus=2) == ""
    alike(made)


def on(cluster: str, name: str) -> Placement:
    """Place a job on the machine that moved."""
    return Placement("job", 0, cluster, name, (DeviceSlice(MOVED.devices[0].uuid, 81_920, 1000),))


def test_allocations_on_a_device_that_moved_is_held_where_it_is_now() -> None:
    """A placement on the old node reserves its devices until it is removed."""
    made = live(ALPHA, BETA)
    hold(made, held())
    made.tell(without(ALPHA))
    made.tell(with_moved(BETA))
    assert fits(made, gpus=2) == ""
    made.release_allocation(("job", 1))
    assert fits(made, gpus=2) == "beta/new"
    alike(made)


def test_a_machine_that_is_joined_by_another_name_is_followed(caplog: pytest.LogCaptureFixture) -> None:
    """Its old node does not block it, also after a restart; it is logged once."""
    reported = with_moved(without(ALPHA))
    for made in (live(ALPHA), LiveFleet()):
        caplog.clear()
        made.know(["alpha"], 0)
        made.tell(reported)
        made.set_state("alpha", ClusterState.UP)
        assert fits(made, gpus=2) == "alpha/new"
        made.tell(replace(reported, nodes=tuple(replace(each, labels={"a": "b"}) for each in reported.nodes)))
        alike(made)
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith("alpha/new and alpha/node-0 list the same 2 devices; they are counted on")


@pytest.mark.parametrize("seed", range(20))
def test_anyone_lists_what_every_device_is_offered_once(seed: int) -> None:
    """For any lists and readiness of nodes, a device has one node, and allocations equal the held resources."""
    random = Random(seed)
    names, uuids = ("alpha", "beta", "gamma"), [f"GPU-{at}" for at in range(6)]
    made = LiveFleet()
    made.know(names, 0)
    hold(made, replace(held(), placements=(Placement("job", 0, "alpha", "n0", (DeviceSlice("GPU-0", 1000, 100),)),)))
    for _ in range(60):
        if random.random() < 0.1:
            made.know([name for name in names if random.random() < 0.8], 0)
        there = random.sample(sorted(made.clusters), random.randint(0, len(made.clusters)))
        reported = []
        for name in there:
            nodes = [
                replace(
                    node(*[gpu(uuid=uuid) for uuid in random.sample(uuids, 3)], name=f"n{at}"),
                    ready=random.random() < 0.6,
                )
                for at in range(random.randint(1, 3))
            ]
            reported.append(Cluster(name, tuple(nodes)))
        made.tell(*reported)
        alike(made)
        offered = [device.uuid for device in made.fleet().devices]
        listed = {
            d.uuid for each in made.clusters.values() if each.cluster for n in each.cluster.nodes for d in n.devices
        }
        assert sorted(offered) == sorted(listed)
        ready = {
            d.uuid for c in made.clusters.values() if c.cluster for n in c.cluster.nodes if n.ready for d in n.devices
        }
        usable = {device.uuid for _, each in made.fleet().nodes if each.ready for device in each.devices}
        assert usable == ready


@pytest.mark.parametrize("place", ["", "node-0"])
def test_cordons_keep_work_away(place: str) -> None:
    """A cordoned node or cluster gets no new jobs, keeps the running ones, and accepts jobs again afterwards."""
    made = live(BETA)
    made.cordon([Cordon("beta", place, drain=False, reason="", actor="ada", at_ns=0)])
    assert not fits(made)
    assert made.cordon_of("beta", place) is not None
    made.tell(replace(BETA, facts=Facts(region="eu")))  # rebuilt
    assert not fits(made)
    made.cordon([])
    assert fits(made) == "beta/node-0"


def test_a_unreachable_cluster_takes_no_work() -> None:
    """Only a cluster that answers is offered to the engine, also after the fleet was rebuilt."""
    made = live(ALPHA, BETA)
    for state in (ClusterState.STALE, ClusterState.LOST):
        made.set_state("beta", state)
        made.rebuild()
        assert not fits(made, clusters={"beta"})
    made.set_state("beta", ClusterState.UP)
    assert fits(made, clusters={"beta"}) == "beta/node-0"


def test_a_cluster_that_left_is_forgotten() -> None:
    """A cluster that left the fleet is no longer offered; its attempts can still be released."""
    made = live(ALPHA, BETA)
    hold(made, held(cluster="beta"))
    made.know(["alpha"], 5)
    assert [each.name for each in made.fleet().clusters] == ["alpha"]
    made.release_allocation(("job", 1))
    same(made)


def test_versions_count_what_may_let_jobs_fit() -> None:
    """A change that may let a job fit increases the version; a change of the fleet itself, the generation."""
    made = live(ALPHA)
    before = (made.version, made.make)
    made.tell(ALPHA)
    made.connect([Gateway("door")], [])
    assert made.version > before[0]
    assert made.make > before[1]
    before = (made.version, made.make)
    made.set_state("alpha", ClusterState.STALE)
    assert (made.version, made.make) == (before[0] + 1, before[1])
