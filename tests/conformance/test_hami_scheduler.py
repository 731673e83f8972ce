"""Pods with HAMi's devices name HAMi's scheduler themselves if a setting names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.adapters.kubernetes.cluster import KubernetesCluster
from seaway.application.clusters import ClusterNames
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.clusters import make_clusters
from seaway.bootstrap.settings import ClusterSettings, KarmadaSettings
from seaway.testing.backends import deploy
from tests.conformance.test_kubernetes_backends import Under, furnish, wait
from tests.fakes.kubernetes import KarmadaWorld


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "through Karmada"])
@pytest.mark.parametrize("name", ["hami-scheduler", ""])
def test_what_is_set_is_written(name: str, karmada: bool, tmp_path: Path) -> None:
    """A pod names the scheduler of the setting, in case the webhook is down; without the setting it names none."""
    with KarmadaWorld(["alpha"]) as world:
        member = world.members["alpha"]
        furnish(member)
        (tmp_path / "kubeconfigs").mkdir()
        member.kubeconfig(tmp_path / "kubeconfigs" / "alpha")
        control = KarmadaSettings(str(world.kubeconfig(tmp_path / "karmada")) if karmada else "")
        settings = ClusterSettings(karmada=control, hami_scheduler=name)
        made = make_clusters(settings, SystemClock(), tmp_path, ClusterNames())
        try:
            wait(lambda: bool(made.backends.clusters()), "the cluster")
            (cluster,) = made.backends.clusters()
            assert isinstance(cluster, KubernetesCluster)
            deployment = deploy(Under(member, cluster, made.close, member).made())
            (job,) = [each for each in cluster.manifests(deployment) if each["kind"] == "Job"]
            assert job["spec"]["template"]["spec"].get("schedulerName", "") == name
        finally:
            made.close()
