"""Removal of a workload from a cluster: it is complete when none of its pods runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import PODS_TERMINATING, KubernetesCluster
from seaway.application.ports.backend import Answer, Command
from seaway.domain.deployment import Deployment
from seaway.testing.backends import BackendUnderTest, deploy, removal
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish, wait
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import JOBS, NODES, PODS
from tests.fakes.kubernetes.server import CONTROLLERS

WAIT_S = 30.0


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Return a server whose kubelets do not end pods."""
    with ApiServer("alpha", controllers=set(CONTROLLERS) - {"kubelet"}) as made:
        furnish(made)
        yield made


@pytest.fixture
def under(server: ApiServer, tmp_path: Path) -> Iterator[BackendUnderTest]:
    """Join it."""
    server.kubeconfig(tmp_path / "alpha")
    backends = KubernetesBackends(tmp_path, OPTIONS, seed=1)
    yield Under(server, backends.clusters()[0], backends.close, server).made()
    backends.close()


def answer(under: BackendUnderTest, command: Command) -> Answer:
    """Send a command, and wait for its result."""
    (sent,) = under.backend.send([command])
    return sent.result(WAIT_S) if isinstance(sent, Future) else sent


def bound(under: BackendUnderTest, template: str = "job") -> Deployment:
    """Deploy, until the pod is bound and observed."""
    made = deploy(under)
    deployment = replace(made, spec=replace(made.spec, template=template))
    assert answer(under, deployment).done
    cluster = under.backend
    assert isinstance(cluster, KubernetesCluster)
    wait(
        lambda: any(pod.node for pod in cluster.view.replica_pods((deployment.job_id, 1)).values()),
        "the pod on its node",
    )
    return deployment


def ready(cluster: KubernetesCluster, node: str) -> bool:
    """Report whether a node accepts new jobs."""
    known = cluster.view.node(node)
    return known is not None and known.node.ready


def test_a_removal_waits_for_pods_that_still_end(under: BackendUnderTest, server: ApiServer) -> None:
    """The devices of a deleted pod are not free until it has ended; the answer names the pods."""
    deployment = bound(under)
    assert answer(under, removal(deployment)) == PODS_TERMINATING
    assert not server.list(JOBS, "seaway-default")
    for each in server.list(PODS, "seaway-default"):
        server.delete(PODS, "seaway-default", each["metadata"]["name"], grace_period_s=0)
    wait(lambda: answer(under, removal(deployment)).done, "the removal done")


def test_a_removal_waits_for_pods_of_a_node_that_is_cordoned(under: BackendUnderTest, server: ApiServer) -> None:
    """A cordoned node's pods continue until they end, slowly with `kubectl drain`."""
    deployment = bound(under)
    cluster = under.backend
    assert isinstance(cluster, KubernetesCluster)
    server.patch(NODES, "", "node-1", {"spec": {"unschedulable": True}})
    wait(lambda: not ready(cluster, "node-1"), "the node cordoned")
    assert answer(under, removal(deployment)) == PODS_TERMINATING
    down = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    server.patch(NODES, "", "node-1", down, "status")
    wait(lambda: answer(under, removal(deployment)).done, "the removal done")


def test_a_removal_waits_for_a_pod_that_another_was_made_for(under: BackendUnderTest, server: ApiServer) -> None:
    """An evicted pod ends slowly, while the next waits for a node: its devices are not free."""
    deployment = bound(under, template="deployment")
    cluster, key = under.backend, (deployment.job_id, 1)
    assert isinstance(cluster, KubernetesCluster)
    (evicted,) = cluster.view.pods_of(key)
    server.patch(NODES, "", "node-1", {"spec": {"unschedulable": True}})
    server.patch(PODS, "seaway-default", evicted.name, {"metadata": {"finalizers": ["example.com/slow"]}})
    server.delete(PODS, "seaway-default", evicted.name, grace_period_s=0)
    wait(lambda: any(each.name != evicted.name for each in cluster.view.pods_of(key)), "the next pod")
    assert answer(under, removal(deployment)) == PODS_TERMINATING
    server.patch(PODS, "seaway-default", evicted.name, {"metadata": {"finalizers": []}})
    wait(lambda: answer(under, removal(deployment)).done, "the removal done")


def test_a_removal_does_not_wait_for_a_node_that_is_down(under: BackendUnderTest, server: ApiServer) -> None:
    """A node that is down reports no end of its pods, so their jobs would never start elsewhere."""
    deployment = bound(under)
    down = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    server.patch(NODES, "", "node-1", down, "status")
    wait(lambda: answer(under, removal(deployment)).done, "the removal done")
    assert server.list(PODS, "seaway-default")
