"""Logs of pods: their end, however long they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seaway.adapters.kubernetes import cluster as cluster_module
from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import KubernetesCluster
from seaway.domain.deployment import CopyPhase, Deployment
from seaway.testing.backends import BackendUnderTest, Watch, deploy
from seaway.testing.kubernetes import ApiServer
from seaway.testing.kubernetes.kinds import PODS
from tests.conformance.test_kubernetes_backends import WISHES, Under, furnish

MIB = 1 << 20


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Return a server with nodes."""
    with ApiServer("alpha") as made:
        furnish(made)
        yield made


@pytest.fixture
def under(server: ApiServer, tmp_path: Path) -> Iterator[BackendUnderTest]:
    """Join it."""
    server.kubeconfig(tmp_path / "alpha")
    backends = KubernetesBackends(tmp_path, WISHES, seed=1)
    yield Under(server, backends.clusters()[0], backends.close, server).made()
    backends.close()


def running(under: BackendUnderTest) -> tuple[KubernetesCluster, Deployment]:
    """Deploy something, until it runs."""
    watch, deployment = Watch(under), deploy(under)
    list(under.backend.send([deployment]))
    watch.until_phase(deployment, CopyPhase.RUNNING)
    assert isinstance(under.backend, KubernetesCluster)
    return under.backend, deployment


def write(server: ApiServer, text: str) -> None:
    """Have the only pod of Seaway's write lines."""
    (pod,) = server.list(PODS, "seaway")
    server.write_log("seaway", pod["metadata"]["name"], text)


def test_of_a_long_log_the_end_is_kept(
    under: BackendUnderTest, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a container writes, no more than so many bytes of it are held, and they begin with a whole line."""
    monkeypatch.setattr(cluster_module, "MOST_LOG_BYTES", MIB)
    cluster, deployment = running(under)
    write(server, "\n".join(f"{number} {'x' * 1000}" for number in range(4000)))
    lines = list(cluster.logs(deployment.name, 0, 10_000))
    assert lines[-1].startswith("3999 ")
    assert MIB - 2000 < sum(len(line) + 1 for line in lines) <= MIB
    assert {len(line.partition(" ")[2]) for line in lines} == {1000}


def test_a_log_without_end_is_given_up(
    under: BackendUnderTest, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is told how much is wanted in all, so that one line without end does not go on for ever."""
    monkeypatch.setattr(cluster_module, "LARGEST_LOG_BYTES", MIB)
    cluster, deployment = running(under)
    write(server, "x" * 3 * MIB)
    (line,) = cluster.logs(deployment.name, 0, 1)
    assert len(line) == MIB
