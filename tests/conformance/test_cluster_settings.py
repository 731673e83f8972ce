"""Settings of real clusters apply to their observed state and to written workloads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.kubernetes.cluster import KubernetesCluster
from seaway.application.clusters import ClusterNames
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.clusters import Clusters, make_clusters
from seaway.bootstrap.settings import ClusterSettings, HamiSettings, KarmadaSettings
from seaway.domain.deployment import Deployment
from seaway.domain.device import Device
from seaway.domain.job_spec import JobSpec
from seaway.domain.runtime import Run
from seaway.testing.backends import deploy
from tests.conformance.test_kubernetes_backends import Under, gpu_node, wait
from tests.fakes.kubernetes import KarmadaWorld

ways = pytest.mark.parametrize("karmada", [False, True], ids=["directly", "through Karmada"])

OTHERWISE = HamiSettings("example.com/vgpu", "example.com/mem", "example.com/percent", "example.com/cores")


def counted(name: str) -> dict[str, Any]:
    """Write a node whose device has an unusual resource name."""
    node = gpu_node("node-1", 1)
    status = node["status"]
    for which in ("allocatable", "capacity"):
        status[which] = {name if each == "nvidia.com/gpu" else each: amount for each, amount in status[which].items()}
    return node


@contextmanager
def running(
    settings: ClusterSettings, folder: Path, node: dict[str, Any], *, karmada: bool
) -> Iterator[tuple[Clusters, KubernetesCluster, Deployment]]:
    """Run a cluster of one node with these settings, and a deployment on its first device."""
    with KarmadaWorld(["alpha"]) as world:
        member = world.members["alpha"]
        member.put(node)
        (folder / "kubeconfigs").mkdir()
        member.kubeconfig(folder / "kubeconfigs" / "alpha")
        control = KarmadaSettings(str(world.kubeconfig(folder / "karmada")) if karmada else "")
        made = make_clusters(replace(settings, karmada=control), SystemClock(), folder, ClusterNames())
        try:
            wait(lambda: bool(made.backends.clusters()), "the cluster")
            (cluster,) = made.backends.clusters()
            assert isinstance(cluster, KubernetesCluster)
            yield made, cluster, deploy(Under(member, cluster, made.close, member).made())
        finally:
            made.close()


def devices(cluster: KubernetesCluster) -> list[Device]:
    """Return the devices of a cluster."""
    inventory = cluster.changes("", 0).inventory
    assert inventory is not None
    return [device for node in inventory.nodes for device in node.devices]


def written(cluster: KubernetesCluster, deployment: Deployment, template: str = "job") -> dict[str, Any]:
    """Return the workload of a deployment with a template."""
    spec = replace(deployment.spec, template=template)
    return cluster.manifests(replace(deployment, spec=spec))[-1]


@ways
def test_hami_may_call_its_resources_otherwise(karmada: bool, tmp_path: Path) -> None:
    """Resource names of HAMi's chart are read from nodes, and requested in pods."""
    node = counted("example.com/vgpu")
    with running(ClusterSettings(hami=OTHERWISE), tmp_path, node, karmada=karmada) as (_, cluster, deployment):
        assert [device.healthy for device in devices(cluster)] == [True]
        (container,) = written(cluster, deployment)["spec"]["template"]["spec"]["containers"]
        named = {name for name in container["resources"]["limits"] if "/" in name}
        assert named == {"example.com/vgpu", "example.com/mem", "example.com/cores"}


def test_who_did_not_say_so_is_informed_of_it(tmp_path: Path) -> None:
    """Devices with another resource name cannot be allocated, and the problem names the setting."""
    node = counted("example.com/vgpu")
    with running(ClusterSettings(), tmp_path, node, karmada=False) as (_, cluster, _):
        assert [device.healthy for device in devices(cluster)] == [False]
        (trouble,) = cluster.view.problems()["node/node-1"]
        assert "clusters.hami.resource_name" in trouble.text


def test_units_of_volcanos_memory_are_set(tmp_path: Path) -> None:
    """The settings give the unit of memory, which no node reports."""
    node = counted("volcano.sh/vgpu-number")
    node["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": "GPU-a,10,819,NVIDIA-A100,true,hami-core:"}
    settings = ClusterSettings(volcano_memory_factor=100)
    with running(settings, tmp_path, node, karmada=False) as (_, cluster, deployment):
        assert [device.memory_mib for device in devices(cluster)] == [81_900]
        (container,) = written(cluster, deployment)["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["limits"]["volcano.sh/vgpu-memory"] == "82"


@ways
def test_pods_get_what_pulls_their_images(karmada: bool, tmp_path: Path) -> None:
    """Image pull secrets are in every pod, and a default image in pods of jobs without one, which are admitted."""
    settings = ClusterSettings(pull_secrets="registry, mirror", default_image="fallback:1")
    with running(settings, tmp_path, gpu_node("node-1", 1), karmada=karmada) as (made, cluster, deployment):
        bare = replace(deployment.spec, run=Run())
        assert made.templates.problems(bare) == []
        pod = written(cluster, replace(deployment, spec=bare))["spec"]["template"]["spec"]
        assert pod["imagePullSecrets"] == [{"name": "registry"}, {"name": "mirror"}]
        assert pod["containers"][0]["image"] == "fallback:1"


def test_without_a_default_every_job_names_its_image(tmp_path: Path) -> None:
    """A job without an image is rejected if there is no default image."""
    with running(ClusterSettings(), tmp_path, gpu_node("node-1", 1), karmada=False) as (made, _, deployment):
        spec: JobSpec = replace(deployment.spec, run=Run())
        assert [each.where for each in made.templates.problems(spec)] == ["run.image"]


@pytest.mark.parametrize(("local", "volcano"), [("", ""), ("research", "night")])
def test_queues_of_others_are_set(local: str, volcano: str, tmp_path: Path) -> None:
    """Kueue's queue has the name of the job's queue and Volcano's is its default, unless settings name another."""
    settings = ClusterSettings(local_queue=local, volcano_queue=volcano)
    with running(settings, tmp_path, gpu_node("node-1", 1), karmada=False) as (_, cluster, deployment):
        queued = written(cluster, deployment, "kueue")["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
        assert queued == (local or deployment.spec.queue)
        assert written(cluster, deployment, "volcanojob")["spec"].get("queue", "") == volcano
