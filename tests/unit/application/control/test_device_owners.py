"""Devices that nodes of two clusters list are shown once, with their owner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.application.control.allocations import duplicated
from seaway.application.views import Amount, ClusterView, NodeView
from seaway.domain.deployment import UnmanagedPod
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice
from tests.unit.application.scene import Scene, scene


@pytest.fixture
def made() -> Scene:
    """Create a fleet in which node ``copy`` of beta lists the two devices of alpha's node, and one of its own."""
    made = scene()
    fleet = made.plane.controller.live.fleet
    alpha, beta = (fleet.clusters[name].cluster for name in ("alpha", "beta"))
    assert alpha
    assert beta
    own = replace(beta.nodes[0].devices[0], uuid="GPU-own", index=2)
    copy = Node("copy", 8000, 1024, (*alpha.nodes[0].devices, own), pods=10)
    fleet.tell(replace(beta, nodes=(*beta.nodes, copy)))
    return made


def seen(made: Scene) -> tuple[ClusterView, ClusterView, NodeView, NodeView]:
    """Return both clusters, the node that has the devices, and the one that only lists them."""
    nodes = {each.name: each for each in made.plane.overview.nodes() if each.cluster == "alpha" or each.name == "copy"}
    alpha, beta = made.plane.overview.clusters()
    return alpha, beta, nodes["node-0"], nodes["copy"]


def test_a_device_is_shown_and_summed_up_where_it_is_placed_on(made: Scene) -> None:
    """The other node shows only its own device, with its CPU and memory; its cluster has a message for one node."""
    alpha, beta, has, lists = seen(made)
    assert (alpha.gpus, beta.gpus) == (2, 3)
    assert (alpha.gpu_milli.total, beta.gpu_milli.total) == (2000, 3000)
    assert beta.cpu_milli.total == 64_000 + 8000
    assert [len(each.devices) for each in (has, lists)] == [2, 1]
    uses = made.plane.overview.gpu_uses()
    assert len(uses) == len({use.device.uuid for use in uses}) == 5
    assert {use.cluster for use in uses if use.device.uuid in {each.uuid for each in has.devices}} == {"alpha"}
    assert duplicated(made.plane.controller.live) == {"beta": 1}
    made.plane.run(60)
    samples = {each.cluster: each for each in made.plane.store.cluster_samples("", 0, 1000)}
    assert {name: each.gpus for name, each in samples.items()} == {"alpha": 2, "beta": 3}


def test_what_the_other_node_says_is_held_of_it_shows_there_too(made: Scene) -> None:
    """It is allocated on the device, and named with its source; its own cluster has no such device."""
    live = made.plane.controller.live
    _, _, has, _ = seen(made)
    slices = (DeviceSlice(has.devices[0].uuid, 1024, 100), DeviceSlice("GPU-own", 2048, 200))
    held = UnmanagedPod("kube-system/agent", "copy", slices, 500, 256, ("driver", "other"))
    live.fleet.occupy("beta", [held], complete=True)
    alpha, beta, has, lists = seen(made)
    assert (alpha.gpu_milli, beta.gpu_milli) == (Amount(2000, 100), Amount(3000, 200))
    assert (alpha.cpu_milli.used, beta.cpu_milli.used) == (0, 500)
    assert [each.job for each in has.devices[0].slices] == ["kube-system/agent (beta)"]
    assert [each.job for each in lists.devices[0].slices] == ["kube-system/agent"]
    assert lists.pods == Amount(10, 1)
    (use,) = [use for use in made.plane.overview.gpu_uses("alpha") if use.holdings]
    (holding,) = use.holdings
    assert (holding.namespace, holding.pod, holding.container) == ("kube-system", "agent (beta)", "driver")


def test_a_job_stays_shown_when_its_device_became_another_clusters(made: Scene) -> None:
    """An earlier placement holds the device in its present place."""
    live = made.plane.controller.live
    job_id = made.submit(cpu_milli=1000, gpus=2, clusters={"alpha"})
    alpha = live.fleet.clusters["alpha"].cluster
    assert alpha
    live.fleet.tell(replace(alpha, nodes=(replace(alpha.nodes[0], ready=False),)))
    first, second, lost, gained = seen(made)
    assert (first.gpus, second.gpus) == (0, 5)
    assert (first.gpu_milli, second.gpu_milli.used) == (Amount(0, 0), 2000)
    assert first.cpu_milli.used == 1000
    assert lost.devices == ()
    names = [[each.job for each in device.slices] for device in gained.devices]
    assert names == [[f"sw-{job_id}-1-0 (alpha)"]] * 2 + [[]]
    assert duplicated(live) == {"alpha": 1}
