"""Finding nodes and devices says what looking at each of them would say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.fleet.search import FleetFilter
from seaway.application.views import ClusterState, DeviceView, NodeView
from seaway.domain.deployment import UnmanagedPod
from seaway.domain.placement import DeviceSlice
from seaway.domain.reasons import Reason
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

LARGE = 1 << 20


@pytest.fixture
def made() -> Scene:
    """Make three nodes in two clusters, with devices of two models, jobs, and a pod that is no one's."""
    world = fleet(
        cluster(
            node(gpu(model="NVIDIA A100"), gpu(model="NVIDIA A100"), name="Rack-1"),
            node(gpu(model="NVIDIA L4", memory_mib=24_000), name="rack-2"),
            node(name="cpu-1"),
            name="alpha",
        ),
        cluster(node(gpu(model="NVIDIA A100"), name="rack-1"), name="beta"),
    )
    made = scene(world)
    for memory_mib, milli in ((10_000, 300), (20_000, 200), (9_000, 500)):
        made.plane.submit(spec(gpu_memory_mib=memory_mib, gpu_milli=milli))
    made.plane.run(5)
    last = made.plane.overview.nodes("beta")[0].devices[0]
    unmanaged = UnmanagedPod("kube-system/agent", "rack-1", (DeviceSlice(last.uuid, 4096, 100),))
    made.plane.controller.live.fleet.occupy("beta", [unmanaged], complete=True)
    return made


def test_what_is_not_known_is_not_summed_up(made: Scene) -> None:
    """Cards of a cluster that does not answer are listed and counted as unknown; what takes no work is not free."""
    found = made.plane.overview.find_nodes(FleetFilter())
    assert (found.unknown, found.schedulable_memory_mib) == (0, found.memory_mib.free)
    live = made.plane.controller.live
    live.fleet.clusters["beta"].state = ClusterState.LOST
    lost = made.plane.overview.find_nodes(FleetFilter())
    alpha = made.plane.overview.find_nodes(FleetFilter(cluster="alpha"))
    assert (len(lost.devices), lost.unknown) == (len(found.devices), 1)
    assert (lost.memory_mib, sum(lost.fullness)) == (alpha.memory_mib, len(alpha.devices))


def meant(wanted: FleetFilter, node: NodeView, device: DeviceView) -> bool:
    """Tell of a device, looked at by itself, whether it is meant."""
    return (
        wanted.model.casefold() in device.model.casefold()
        and wanted.device.casefold() in device.uuid.casefold()
        and device.memory_mib.free >= wanted.free_memory_mib
        and device.core_milli.free >= wanted.free_core_milli
        and wanted.name.casefold() in node.name.casefold()
        and wanted.cluster in ("", node.cluster)
        and wanted.node in ("", node.name)
        and (wanted.ready is None or wanted.ready == node.ready)
    )


def used_milli(device: DeviceView) -> int:
    """Return the larger share of cores and memory in thousandths."""
    return max(each.used * 1000 // each.total for each in (device.memory_mib, device.core_milli))


@pytest.mark.parametrize(
    "wanted",
    [
        FleetFilter(),
        FleetFilter(cluster="alpha"),
        FleetFilter(cluster="gamma"),
        FleetFilter(node="rack-1"),
        FleetFilter(name="RACK"),
        FleetFilter(model="a100"),
        FleetFilter(device="1"),
        FleetFilter(free_memory_mib=22_000),
        FleetFilter(free_core_milli=600),
        FleetFilter(free_core_milli=600, model="L4"),
        FleetFilter(free_memory_mib=LARGE),
        FleetFilter(ready=True),
        FleetFilter(ready=False),
        FleetFilter(ready=True, model="A100"),
    ],
)
def test_what_is_found_is_what_each_one_says_of_itself(made: Scene, wanted: FleetFilter) -> None:
    """Devices are found by their free amounts, nodes by their devices, and the results have sums."""
    made.plane.operations.cordon("beta", "rack-1", "ada", "repair")
    made.plane.settle()
    overview = made.plane.overview
    all_nodes = overview.nodes()
    devices = [each for node in all_nodes for each in node.devices if meant(wanted, node, each)]
    found = overview.find_nodes(wanted)
    shown = overview.look_at_devices(found, found.devices.tolist())
    assert [each.uuid for each in shown] == [each.uuid for each in devices]
    assert shown == devices
    nodes = list(overview.look_at(found, found.nodes.tolist()))
    with_devices = list(dict.fromkeys((each.cluster, each.node) for each in devices))
    assert [(each.cluster, each.name) for each in nodes if each.devices] == with_devices
    uses = [(each.name, each.gpus, each.gpu_milli_used, each.ready, each.jobs) for each in overview.node_uses(found)]
    assert uses == [
        (each.name, len(each.devices), sum(map(used_milli, each.devices)), each.ready, each.jobs) for each in nodes
    ]
    assert found.memory_mib.free == sum(each.memory_mib.free for each in devices)
    assert found.core_milli.used == sum(each.core_milli.used for each in devices)
    assert sum(found.fullness) == len(devices)
    assert found.fullness[0] == sum(each.memory_mib.used == 0 for each in devices)
    held = [each.uuid for each in devices if each.slices]
    assert [each.uuid for each in overview.look_at_devices(found, found.shared.tolist())] == held


def test_stored_data_for_the_first_of_a_queue_is_not_taken() -> None:
    """While a place is kept, sums and filters say what really runs, as each device does."""
    made = scene(fleet(cluster(node(gpu()), node(gpu()), name="alpha")))
    made.plane.submit(spec(gpu_memory_mib=30_000, gpu_milli=500))
    made.plane.run(5)
    made.plane.submit(spec(gpus=1, gpu_milli=1000, replicas=2))
    made.plane.run(5)
    assert made.plane.controller.scheduler.reservations.bookings()
    found = made.plane.overview.find_nodes(FleetFilter())
    one_by_one = [each for view in made.plane.overview.nodes() for each in view.devices]
    assert found.memory_mib.used == sum(each.memory_mib.used for each in one_by_one) == 30_000
    assert [each.memory_mib.used for each in made.plane.overview.models()] == [30_000]


def test_nodes_without_devices_are_found_unless_devices_are_asked_for() -> None:
    """A node that has none is part of the fleet, and has nothing that is free of a device."""
    world = fleet(cluster(node(name="cpu-1"), node(gpu(), name="gpu-1"), name="alpha"))
    plane = scene(world).plane
    assert len(plane.overview.find_nodes(FleetFilter()).nodes) == 2
    assert len(plane.overview.find_nodes(FleetFilter(free_memory_mib=1)).nodes) == 1


def test_a_fleet_that_changes_is_found_as_it_is() -> None:
    """Nodes that come and go, and devices that fail, count from when their cluster tells of them."""
    made = scene()
    live = made.plane.controller.live.fleet
    alpha = live.clusters["alpha"].cluster
    assert alpha
    assert len(made.plane.overview.find_nodes(FleetFilter()).devices) == 4
    bad = replace(alpha.nodes[0].devices[0], healthy=False)
    live.tell(replace(alpha, nodes=(replace(alpha.nodes[0], devices=(bad, alpha.nodes[0].devices[1])),)))
    assert len(made.plane.overview.find_nodes(FleetFilter(ready=True, model="NVIDIA")).devices) == 3
    live.tell(replace(alpha, nodes=()))
    found = made.plane.overview.find_nodes(FleetFilter())
    assert (len(found.nodes), len(found.devices)) == (1, 2)
    assert [(each.devices, each.memory_mib.used) for each in made.plane.overview.models()] == [(2, 0)]
    assert made.plane.overview.models("alpha") == []


def test_free_gpus_of_a_model_accept_jobs_and_have_none() -> None:
    """Of four GPUs of a model, one is used in part, one is broken, and one is on a cordoned node."""
    bad = gpu(healthy=False, reason="falls off")
    nodes = node(gpu(), name="a"), node(gpu(), name="b"), node(bad, name="c"), node(gpu(), name="d")
    made = scene(fleet(cluster(*nodes, node(gpu(model="Tesla T4"), name="e"), name="alpha")))
    made.plane.submit(spec(gpu_memory_mib=30_000, gpu_milli=500, models={"A100"}))
    made.plane.run(5)
    used = next(iter(made.plane.controller.live.attempts.values())).placements[0].node
    made.plane.operations.cordon("alpha", next(each for each in ("a", "b", "d") if each != used), "ada", "")
    made.plane.run(5)
    found = {each.model: (each.devices, each.free) for each in made.plane.overview.models()}
    assert found == {"NVIDIA A100-SXM4-80GB": (4, 1), "Tesla T4": (1, 1)}
    assert len(made.plane.overview.find_nodes(FleetFilter(model="a100-80gb")).devices) == 4
    assert len(made.plane.overview.find_nodes(FleetFilter(model="A10")).devices) == 0


def test_unhealthy_nodes_have_a_broken_gpu_or_do_not_answer() -> None:
    """A node that is cordoned in its cluster answers and is healthy; the map marks the others."""
    bad = gpu(healthy=False, reason="falls off")
    dead = replace(node(gpu(), name="dead"), ready=False, reason=Reason("no_kubelet"))
    closed = replace(node(gpu(), name="closed"), ready=False, reason=Reason("cordoned_there"))
    made = scene(fleet(cluster(node(gpu(), bad, name="bad"), dead, closed, node(gpu(), name="good"), name="alpha")))
    overview = made.plane.overview
    unhealthy = overview.node_uses(overview.find_nodes(FleetFilter(healthy=False)))
    assert [(each.name, each.unhealthy, each.answers) for each in unhealthy] == [("bad", 1, True), ("dead", 0, False)]
    healthy = overview.node_uses(overview.find_nodes(FleetFilter(healthy=True)))
    assert [(each.name, each.ready) for each in healthy] == [("closed", False), ("good", True)]


def test_an_empty_fleet_has_nothing_to_find() -> None:
    """Without clusters nothing is found, and nothing fails."""
    made = scene()
    made.plane.controller.live.fleet.know((), 0)
    plane = made.plane
    found = plane.overview.find_nodes(FleetFilter(free_memory_mib=1, name="x"))
    assert (len(found.nodes), len(found.devices), found.memory_mib.total) == (0, 0, 0)
    assert plane.overview.models() == []


def test_nodes_forget_who_held_something_of_them() -> None:
    """Anything that is over is with no node any more, so that looking at one costs as much as it has now."""
    made = scene()
    job_id = made.submit(gpu_memory_mib=1000)
    made.plane.run(5)
    live = made.plane.controller.live
    (place,) = live.by_node
    assert live.by_node[place] == {(job_id, 1)}
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.run(5)
    assert live.by_node == {}
    assert len(made.plane.overview.find_nodes(FleetFilter()).shared) == 0
