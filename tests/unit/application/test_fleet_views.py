from __future__ import annotations

from dataclasses import replace

from seaway.application.views import Amount, ClusterState
from seaway.domain.deployment import UnmanagedPod
from seaway.domain.placement import DeviceSlice
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import scene


def test_what_attempts_hold_is_taken() -> None:
    """Clusters, nodes, devices and slices show what there is and what is taken, by whom."""
    made = scene()
    job_id = made.submit(cpu_milli=2000, memory_mib=512, gpu_memory_mib=10_000, gpu_milli=300)
    made.plane.run(5)
    alpha, beta = made.plane.overview.clusters()
    assert (alpha.name, alpha.nodes, alpha.gpus, alpha.jobs, beta.jobs) == ("alpha", 1, 2, 1, 0)
    assert alpha.gpu_milli == Amount(2000, 300)
    assert alpha.cpu_milli == Amount(64_000, 2000)
    assert alpha.memory_mib.free == 262_144 - 512
    (node,) = made.plane.overview.nodes("alpha")
    (taken,) = [each for device in node.devices for each in device.slices]
    assert (taken.job_id, taken.attempt, taken.memory_mib, taken.core_milli) == (job_id, 1, 10_000, 300)
    assert sum(device.core_milli.used for device in node.devices) == 300
    assert len(made.plane.overview.nodes()) == 2
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.settle()
    assert made.plane.overview.clusters()[0].gpu_milli.used == 0


def test_jobs_of_a_node_count_with_and_without_gpus() -> None:
    """A job counts once, whatever its replicas; pods of others and orphans are no jobs."""
    made = scene(fleet(cluster(node(gpu(), gpu()), name="alpha")))
    counts = [made.plane.overview.nodes()[0].jobs]
    for fields in ({"replicas": 2}, {"gpus": 0}):
        made.submit(**fields)
        counts.append(made.plane.overview.nodes()[0].jobs)
    made.plane.run(5)
    live = made.plane.controller.live.fleet
    live.occupy("alpha", [UnmanagedPod("other/pod", "node-0", ())], complete=True)
    assert [*counts, made.plane.overview.nodes()[0].jobs] == [0, 1, 2, 2]


def test_nodes_that_take_no_work_say_so() -> None:
    """A node is ready when its cluster answers and says so, and no one cordoned it."""
    made = scene()
    made.plane.operations.cordon("alpha", "node-0", "ada", "repair")
    made.cluster("beta").disconnect()
    made.plane.run(20)
    alpha, beta = made.plane.overview.nodes()
    assert (alpha.ready, beta.ready) == (False, False)
    assert alpha.cordon is not None
    assert alpha.cordon.reason == "repair"
    views = made.plane.overview.clusters()
    assert [(view.state, view.last_seen_s) for view in views] == [(ClusterState.UP, 0), (ClusterState.STALE, 20)]
    assert views[0].cordon is None


def test_what_takes_no_work_says_why() -> None:
    """A device for its own sake first, then for its node's and its cluster's.

    A node's own cordon is reported as such.
    """
    made = scene()
    live = made.plane.controller.live.fleet

    def reported() -> tuple[str, list[str]]:
        node = next(each for each in made.plane.overview.nodes("alpha"))
        assert node.ready == (not node.reason and node.cordon is None)
        return node.reason, [each.reason for each in node.devices]

    cluster = live.clusters["alpha"].cluster
    assert cluster is not None
    node = cluster.nodes[0]
    assert reported() == ("", ["", ""])
    first, second = node.devices
    bad = replace(first, healthy=False, reason="tainted xid=79:NoExecute")
    live.tell(replace(cluster, nodes=(replace(node, devices=(bad, replace(second, cordoned=True))),)))
    mute = "its cluster reports it as unhealthy"
    assert reported() == ("", ["tainted xid=79:NoExecute", mute])
    down = replace(node, ready=False, reason="not ready: Kubelet stopped posting node status.", devices=(bad, second))
    live.tell(replace(cluster, nodes=(down,)))
    assert reported() == (down.reason, ["tainted xid=79:NoExecute", f"its node: {down.reason}"])
    live.tell(replace(cluster, nodes=(replace(node, ready=False),)))
    assert reported() == (
        mute.replace("unhealthy", "not ready"),
        [f"its node: {mute.replace('unhealthy', 'not ready')}"] * 2,
    )
    live.tell(cluster)
    made.plane.operations.cordon("alpha", "node-0", "ada", "repair")
    made.plane.settle()
    assert reported() == ("", ["its node: cordoned by ada: repair"] * 2)
    made.plane.operations.uncordon("alpha", "node-0", "ada")
    made.plane.operations.cordon("alpha", "", "ada", "", drain=True)
    made.plane.settle()
    assert reported() == ("its cluster is drained by ada", ["its node: its cluster is drained by ada"] * 2)
    made.cluster("alpha").disconnect()
    made.plane.run(20)
    reason, of_devices = reported()
    assert reason.startswith("its cluster does not answer: ")
    assert of_devices == [f"its node: {reason}"] * 2


def test_a_unreachable_cluster_says_why() -> None:
    """Why a cluster does not answer is shown once it counts as silent, and no more when it is up again."""
    made = scene()
    made.cluster("beta").disconnect()
    made.plane.run(5)
    assert [view.reason for view in made.plane.overview.clusters()] == ["", ""]
    made.plane.run(15)
    alpha, beta = made.plane.overview.clusters()
    assert (alpha.reason, beta.state) == ("", ClusterState.STALE)
    assert "beta" in beta.reason
    made.cluster("beta").reconnect()
    made.plane.run(5)
    assert [view.reason for view in made.plane.overview.clusters()] == ["", ""]


def test_a_cluster_that_never_answered_is_shown_empty() -> None:
    """It is there by name, with nothing in it."""
    made = scene()
    made.cluster("alpha").disconnect()
    made.restart_without_reports()
    made.plane.settle()
    alpha = made.plane.overview.clusters()[0]
    assert (alpha.name, alpha.nodes, alpha.state) == ("alpha", 0, ClusterState.STALE)


def test_what_pods_of_others_hold_is_shown_and_summed_up() -> None:
    """A pod that is no one's copy shows by its name, and counts like a job's."""
    made = scene()
    live = made.plane.controller.live.fleet
    cluster = live.clusters["alpha"].cluster
    assert cluster is not None
    node = cluster.nodes[0]
    taken = DeviceSlice(node.devices[0].uuid, 1024, 100)
    before = next(each for each in made.plane.overview.clusters() if each.name == "alpha")
    live.occupy("alpha", [UnmanagedPod("kube-system/agent", node.name, (taken,), 500, 256)], complete=True)
    after = next(each for each in made.plane.overview.clusters() if each.name == "alpha")
    assert after.cpu_milli.used - before.cpu_milli.used == 500
    assert after.gpu_memory_mib.used - before.gpu_memory_mib.used == 1024
    seen = next(each for each in made.plane.overview.nodes("alpha") if each.name == node.name)
    assert seen.memory_mib.used == 256
    assert [each.job for each in seen.devices[0].slices] == ["kube-system/agent"]
    assert seen.pods is None
    live.tell(replace(cluster, nodes=(replace(node, pods=110), *cluster.nodes[1:])))
    made.submit()
    made.plane.run(5)
    seen = next(each for each in made.plane.overview.nodes() if each.name == node.name and each.pods)
    assert seen.pods == Amount(110, 2)


def test_devices_that_failed_are_not_free() -> None:
    """A failed device, and those of a node that is not ready, have nothing free; the allocated part is still used."""
    made = scene()
    uuids = [device.uuid for node in made.plane.overview.nodes("alpha") for device in node.devices]
    made.cluster("alpha").fail_device(uuids[0])
    made.plane.run(2)
    job_id = made.submit(gpu_memory_mib=10_000, gpu_milli=300, clusters={"alpha"})
    alpha, beta = made.plane.overview.clusters()
    assert (alpha.gpus_unhealthy, alpha.nodes_not_ready, beta.gpus_unhealthy) == (1, 0, 0)
    assert (made.where(job_id), alpha.gpu_milli.used, alpha.gpu_milli.free) == ("alpha", 300, 700)
    memory = made.plane.overview.nodes("alpha")[0].devices[0].memory_mib.total
    assert alpha.gpu_memory_mib.free == memory - 10_000
    made.cluster("beta").fail_node("node-0")
    made.plane.run(2)
    beta = made.plane.overview.clusters()[1]
    assert (beta.nodes_not_ready, beta.gpu_milli.free, beta.gpu_memory_mib.free) == (1, 0, 0)
