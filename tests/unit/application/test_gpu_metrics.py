"""The allocations of devices and by whom, for metrics."""

from __future__ import annotations

from dataclasses import replace

from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.application.fleet.gpu_metrics import PART, GpuMetrics
from seaway.application.ports.backend import CollectorState
from seaway.application.views import DeviceUse
from seaway.domain.deployment import ReplicaStatus, UnmanagedPod, Workload, WorkloadPhase
from seaway.domain.placement import DeviceSlice
from seaway.testing.plugins import cluster, gpu, node
from tests.unit.application.scene import Scene, scene


def held(made: Scene) -> list[DeviceUse]:
    """Return the devices of which something is held."""
    return [each for each in made.plane.overview.gpu_uses() if each.holdings]


def test_every_device_is_there_whether_held_or_not() -> None:
    """By cluster, node and index; of one cluster when asked for it."""
    made = scene()
    assert [(each.cluster, each.device.index) for each in made.plane.overview.gpu_uses()] == [
        ("alpha", 0),
        ("alpha", 1),
        ("beta", 0),
        ("beta", 1),
    ]
    assert {each.cluster for each in made.plane.overview.gpu_uses("beta")} == {"beta"}
    assert made.plane.overview.cluster_names() == ["alpha", "beta"]


def test_a_job_holds_what_was_decided_even_before_its_pods_are_seen() -> None:
    """Where no pod is known, the copy and the replica stand for it, so that no two have one name."""
    made = scene()
    job_id = made.submit(cpu_milli=1000, gpu_memory_mib=10_000, gpu_milli=300)
    made.plane.controller.live.seen[job_id, 1].clear()
    (use,) = held(made)
    (holding,) = use.holdings
    assert (holding.namespace, holding.pod, holding.container) == ("", f"sw-{job_id}-1-0", "")
    assert (holding.memory_mib, holding.core_milli, holding.tenant) == (10_000, 300, "default")


def test_a_job_s_pods_have_the_names_that_their_cluster_tells() -> None:
    """Namespace and pod come from what is seen, the container by the device that it holds."""
    made = scene()
    job_id = made.submit(gpus=2)
    live = made.plane.controller.live
    attempt = live.attempts[job_id, 1]
    where, slices = attempt.clusters[0], attempt.placements[0].slices
    containers = tuple(f"main-{taken.uuid}" for taken in slices)
    status = ReplicaStatus(0, WorkloadPhase.RUNNING, "", slices[::-1], pod="seaway/train-0", holders=containers[::-1])
    live.seen[job_id, 1][where] = Workload(job_id, 1, where, WorkloadPhase.RUNNING, (status,))
    found = [(each.namespace, each.pod, each.container) for use in held(made) for each in use.holdings]
    assert sorted(found) == sorted(("seaway", "train-0", container) for container in containers)


def test_others_pods_and_orphans_hold_like_jobs() -> None:
    """By their own names; an ended orphan this one has nothing."""
    made = scene()
    live = made.plane.controller.live.fleet
    alpha = live.clusters["alpha"].cluster
    assert alpha is not None
    first, second = (DeviceSlice(device.uuid, 1024, 100) for device in alpha.nodes[0].devices)
    live.occupy("alpha", [UnmanagedPod("kube-system/agent", "node-0", (first,), containers=("driver",))], complete=True)
    replicas = (ReplicaStatus(0, WorkloadPhase.RUNNING, "node-0", (second,), pod="seaway/old", holders=("main",)),)
    orphan = Workload("x" * 13, 1, "alpha", WorkloadPhase.RUNNING, replicas)
    live.put_orphan(orphan)
    named = [(each.tenant, each.namespace, each.pod, each.container) for use in held(made) for each in use.holdings]
    assert named == [("", "kube-system", "agent", "driver"), ("", "seaway", "old", "main")]
    live.put_orphan(replace(orphan, phase=WorkloadPhase.SUCCEEDED))
    assert [use.device.uuid for use in held(made)] == [first.uuid]


def test_a_cluster_that_never_answered_has_no_devices() -> None:
    """It is there by name."""
    made = scene()
    made.cluster("alpha").disconnect()
    made.restart_without_reports()
    made.plane.settle()
    assert made.plane.overview.gpu_uses("alpha") == []
    assert "alpha" in made.plane.overview.cluster_names()


def test_the_lock_is_held_for_parts_only() -> None:
    """A cluster with many attempts gives others the lock in between; what ends meanwhile is left out."""
    made = scene()
    job_id = made.submit(gpu_memory_mib=100, gpu_milli=10)
    controller = made.plane.controller
    where = made.where(job_id)
    keys = controller.live.by_cluster[where]
    keys |= {(f"gone-{number}", 1) for number in range(3 * PART)}
    taken, real = [], controller.lock

    class Counting:
        """Counts how often the lock is taken."""

        def __enter__(self) -> None:
            taken.append(1)
            real.__enter__()

        def __exit__(self, *_: object) -> None:
            real.__exit__()

    controller.lock = Counting()  # type: ignore[assignment]
    assert [len(use.holdings) for use in GpuMetrics(controller).uses(where) if use.holdings] == [1]
    assert len(taken) == 2 + 4


def test_backends_that_collect_say_how_that_goes() -> None:
    """Figures have it by cluster; other backends are left out."""
    made = scene()
    assert made.plane.overview.figures().collecting == {}
    state = CollectorState({"broken": 2, "duplicate": 0}, {"/api/v1/nodes": 0.0})

    class Collector(SimulatedCluster):
        def collector_state(self) -> CollectorState:
            return state

    collector = Collector(cluster(node(gpu()), name="gamma"), made.clock)
    topology = made.plane.controller._topology  # noqa: SLF001  # which clusters there are
    assert topology.known is not None
    topology.known = replace(topology.known, backends=(*topology.known.backends, collector))
    assert made.plane.overview.figures().collecting == {"gamma": state}


def test_nodes_that_list_what_others_have_are_a_trouble_of_their_cluster() -> None:
    """As long as they do, once each."""
    made = scene()
    fleet = made.plane.controller.live.fleet
    alpha, beta = (fleet.clusters[name].cluster for name in ("alpha", "beta"))
    assert alpha
    assert beta

    class Collector(SimulatedCluster):
        def collector_state(self) -> CollectorState:
            return CollectorState({"broken": 2}, {})

    collector = Collector(cluster(node(gpu()), name="beta"), made.clock)
    topology = made.plane.controller._topology  # noqa: SLF001  # which clusters there are
    assert topology.known is not None
    topology.known = replace(topology.known, backends=(collector,))
    fleet.tell(replace(alpha, name="beta"))
    assert made.plane.overview.figures().collecting["beta"].problems == {"broken": 2, "duplicate": 1}
    fleet.tell(beta)
    assert made.plane.overview.figures().collecting["beta"].problems == {"broken": 2, "duplicate": 0}
