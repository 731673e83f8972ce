"""Clusters on real servers follow the rules of backends: those in SEAWAY_TEST_MEMBERS and SEAWAY_TEST_KARMADA.

The servers need no GPUs: each test creates a node with HAMi's annotations, and a namespace of its own. They need a fake
kubelet. Without HAMi nothing reports the devices of pods, so tests do not check them.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions, KubernetesCluster
from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.errors import UnavailableError
from seaway.testing.backends import BackendSuite, BackendUnderTest
from tests.conformance.real_servers import Relay, eventually
from tests.conformance.test_kubernetes_backends import gpu_node
from tests.fakes.kubernetes.real import KARMADA, MEMBERS, connect, kubeconfigs, new_name

MERGE = {"content-type": "application/merge-patch+json"}
LIMITS = Limits(unreachable_timeout_s=5, unschedulable_timeout_s=20, history_size=16)

needs_members = pytest.mark.skipif(not kubeconfigs(MEMBERS), reason=f"{MEMBERS} names no kubeconfig of a real server")
needs_karmada = pytest.mark.skipif(
    not (kubeconfigs(KARMADA) and kubeconfigs(MEMBERS)), reason=f"{KARMADA} and {MEMBERS} name no real Karmada"
)


class Member:
    """A real cluster with a GPU node and a namespace of the test's own."""

    def __init__(self, kubeconfig: Path) -> None:
        self.client = connect(kubeconfig)
        self.namespace = new_name()
        self.node = new_name("a-node")  # first by name: the suite uses the first node with devices
        node = gpu_node(self.node, 2)
        amounts = node["status"]["allocatable"] | {"nvidia.com/gpumem": "163840", "nvidia.com/gpucores": "200"}
        self._call("POST", "/api/v1/nodes", node)
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        self._call("PATCH", f"/api/v1/nodes/{self.node}/status", {"status": status})
        self._call("PATCH", f"/api/v1/nodes/{self.node}", {"spec": {"taints": None}})

    def finish(self, job_id: str, attempt: int) -> None:
        """Make the pods of a workload exit with 0."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        labels = {"labelSelector": f"seaway.io/job={job_id},seaway.io/attempt={attempt}"}
        for each in self.client.get(pods, params=labels).json()["items"]:
            ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-01-01T00:00:00Z"}}
            statuses = [{"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": ended}]
            change = {"status": {"phase": "Succeeded", "containerStatuses": statuses}}
            self._call("PATCH", f"{pods}/{each['metadata']['name']}/status", change)

    def overrun(self, cluster: KubernetesCluster) -> None:
        """Change the node more often than the history stores."""
        before = cluster.changes("", 0).cursor
        for number in range(50):
            self._call("PATCH", f"/api/v1/nodes/{self.node}", {"metadata": {"labels": {"number": str(number)}}})
        eventually(lambda: cluster.changes(before, 0).complete, "the overrun")

    def close(self) -> None:
        """Remove the created objects."""
        self.client.delete(f"/api/v1/nodes/{self.node}")
        self.client.delete(f"/api/v1/namespaces/{self.namespace}")
        self.client.close()

    def _call(self, method: str, path: str, body: dict[str, Any]) -> None:
        self.client.request(method, path, json=body, headers=MERGE if method == "PATCH" else {}).raise_for_status()


def vanish(client: httpx.Client, namespace: str, job_id: str, attempt: int) -> None:
    """Delete a workload as a user with kubectl would."""
    labels = {"labelSelector": f"seaway.io/job={job_id},seaway.io/attempt={attempt}"}
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    for each in client.get(jobs, params=labels).json()["items"]:
        client.delete(f"{jobs}/{each['metadata']['name']}", params={"propagationPolicy": "Background"})


def under_test(
    member: Member, cluster: KubernetesCluster, commands: httpx.Client, relay: Relay, close: Callable[[], None]
) -> BackendUnderTest:
    """Return a cluster with its hooks, after its first list with its node."""

    def received() -> bool:
        try:
            seen = cluster.changes("", 0).inventory
        except UnavailableError:
            return False
        return seen is not None and any(each.name == member.node and each.devices for each in seen.nodes)

    def disconnect() -> None:
        relay.block()
        eventually(lambda: not received(), "the silence")

    def reconnect() -> None:
        relay.unblock()
        eventually(received, "the cluster again")

    eventually(received, "the cluster")
    return BackendUnderTest(
        cluster,
        lambda seconds: time.sleep(seconds / 2),
        close,
        disconnect,
        reconnect,
        vanish=lambda job_id, attempt: vanish(commands, member.namespace, job_id, attempt),
        overrun=lambda: member.overrun(cluster),
        finish=member.finish,
        timeout_s=60,
        refuses_overbooking=False,
        tells_devices=False,
        keeps_logs=False,
    )


@needs_members
class TestRealKubernetes(BackendSuite):
    """Direct access to the first member."""

    def make(self) -> BackendUnderTest:
        """Join it."""
        (kubeconfig, *_) = kubeconfigs(MEMBERS)
        folder, relay = Path(tempfile.mkdtemp()), Relay(kubeconfig)
        (folder / "member").write_text(relay.config)
        member = Member(kubeconfig)
        backends = KubernetesBackends(folder, ClusterOptions(Namespaces(member.namespace), limits=LIMITS))

        def close() -> None:
            relay.unblock()
            backends.close()
            relay.close()
            member.close()
            shutil.rmtree(folder)

        return under_test(member, backends.clusters()[0], member.client, relay, close)


@needs_karmada
class TestRealKarmada(BackendSuite):
    """Commands through Karmada, for its member in the first kubeconfig of the members."""

    def make(self) -> BackendUnderTest:
        """Watch the control plane."""
        (karmada, *_), (kubeconfig, *_) = kubeconfigs(KARMADA), kubeconfigs(MEMBERS)
        folder, relay = Path(tempfile.mkdtemp()), Relay(karmada)
        (folder / "karmada").write_text(relay.config)
        member, commands = Member(kubeconfig), connect(karmada)
        backends = KarmadaBackends(folder / "karmada", ClusterOptions(Namespaces(member.namespace), limits=LIMITS))

        def close() -> None:
            relay.unblock()
            backends.close()
            relay.close()
            shutil.rmtree(folder)
            commands.delete(f"/api/v1/namespaces/{member.namespace}")
            commands.close()
            member.close()

        def has_node(cluster: KubernetesCluster) -> bool:
            try:
                seen = cluster.changes("", 0).inventory
            except UnavailableError:
                return False
            return seen is not None and any(each.name == member.node for each in seen.nodes)

        cluster = eventually(lambda: next(filter(has_node, backends.clusters()), None), "the member in Karmada")
        return under_test(member, cluster, commands, relay, close)
