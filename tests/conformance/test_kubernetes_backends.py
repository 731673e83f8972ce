"""Real clusters follow the rules of backends with each way of sending commands: on API servers in memory."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions, KubernetesCluster
from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.domain.errors import UnavailableError
from seaway.testing.backends import BackendSuite, BackendUnderTest
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.kinds import JOBS, NODES, PODS

TIMEOUT_S = 0.4
OPTIONS = ClusterOptions(
    request_timeout_s=1, limits=Limits(unreachable_timeout_s=TIMEOUT_S, unschedulable_timeout_s=0.2, history_size=16)
)
WAIT_S = 30.0


def gpu_node(name: str, cards: int) -> dict[str, Any]:
    """Write a node as HAMi registers it."""
    register = [
        {
            "id": f"GPU-{name}-{index}",
            "index": index,
            "count": 10,
            "devmem": 81_920,
            "devcore": 100,
            "type": "NVIDIA A100-SXM4-80GB",
            "mode": "hami-core",
            "health": True,
        }
        for index in range(cards)
    ]
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(10 * cards)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": {"hami.io/node-nvidia-register": json.dumps(register)} if cards else {},
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@dataclass
class Under:
    """A cluster under test, and its server."""

    member: ApiServer
    cluster: KubernetesCluster
    close: Callable[[], None]
    commands: ApiServer
    """The server that gets commands."""

    def made(self) -> BackendUnderTest:
        """Return it with its hooks, after its first list."""
        wait(self.received, "the first list")
        return BackendUnderTest(
            self.cluster,
            lambda seconds: time.sleep(seconds / 20),
            self.close,
            self.disconnect,
            self.reconnect,
            self.member.fail_node,
            self.member.heal_node,
            self.vanish,
            self.overrun,
            self.finish,
            self.vanish_part,
            refuses_overbooking=False,
        )

    def received(self) -> bool:
        """Report whether the cluster answers."""
        try:
            self.cluster.changes("", 0)
        except UnavailableError:
            return False
        return True

    def disconnect(self) -> None:
        """Make servers hang, until that is noticed."""
        for server in {self.member.name: self.member, self.commands.name: self.commands}.values():
            server.faults.hang()
        wait(lambda: not self.received(), "the silence")

    def reconnect(self) -> None:
        """End the hang."""
        for server in (self.member, self.commands):
            server.faults.clear()
        wait(self.received, "the cluster again")

    def vanish(self, job_id: str, attempt: int, most: int | None = None) -> None:
        """Delete workloads as a user with kubectl would."""
        found = self.commands.list(JOBS, "seaway-default", f"seaway.io/job={job_id},seaway.io/attempt={attempt}")
        for each in found[:most]:
            self.commands.delete(JOBS, "seaway-default", each["metadata"]["name"], propagation="Background")

    def vanish_part(self, job_id: str, attempt: int) -> None:
        """Delete one of the objects of a workload."""
        self.vanish(job_id, attempt, 1)

    def finish(self, job_id: str, attempt: int) -> None:
        """Make the pods of a workload exit with 0."""
        for each in self.member.list(PODS, "seaway-default", f"seaway.io/job={job_id},seaway.io/attempt={attempt}"):
            ended = {"name": "main", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
            change = {"status": {"phase": "Succeeded", "containerStatuses": [ended]}}
            self.member.patch(PODS, "seaway-default", each["metadata"]["name"], change, "status")

    def overrun(self) -> None:
        """Change a node more often than the history stores."""
        before = self.cluster.changes("", 0).cursor
        for number in range(50):
            self.member.patch(NODES, "", "node-1", {"metadata": {"labels": {"number": str(number)}}})
        wait(lambda: self.cluster.changes(before, 0).complete, "the overrun")


def wait(what: Callable[[], bool], why: str) -> None:
    """Wait until a condition is met."""
    give_up_s = time.monotonic() + WAIT_S
    while not what():
        if time.monotonic() > give_up_s:
            pytest.fail(f"never seen: {why}")
        time.sleep(0.01)


def furnish(server: ApiServer) -> None:
    """Create two nodes on a server, the first without devices."""
    server.put(gpu_node("node-0", 0))
    server.put(gpu_node("node-1", 2))


@pytest.fixture(autouse=True)
def folder(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each test a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        request.instance.folder = Path(name)
        yield


class TestKubernetesDirectly(BackendSuite):
    """Direct access to the cluster."""

    folder: Path

    def make(self) -> BackendUnderTest:
        """Start a server and join it."""
        server = ApiServer("alpha").open()
        furnish(server)
        server.kubeconfig(self.folder / "alpha")
        backends = KubernetesBackends(self.folder, OPTIONS, seed=1)

        def close() -> None:
            server.faults.clear()
            backends.close()
            server.close()

        return Under(server, backends.clusters()[0], close, server).made()


class TestKubernetesThroughKarmada(BackendSuite):
    """Commands through Karmada, and observation through its proxy."""

    folder: Path

    def make(self) -> BackendUnderTest:
        """Start a control plane with one member."""
        world = KarmadaWorld(["alpha"]).open()
        furnish(world.members["alpha"])
        backends = KarmadaBackends(world.kubeconfig(self.folder / "karmada"), OPTIONS, seed=1)

        def close() -> None:
            for server in world.servers.values():
                server.faults.clear()
            backends.close()
            world.close()

        return Under(world.members["alpha"], backends.clusters()[0], close, world.control).made()
