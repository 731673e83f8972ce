"""Simulated clusters over HTTP: faults between client and server, and clusters that survive a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from socket import create_server
from threading import Event

import httpx
import pytest

import seaway.adapters.simulated.server as server_module
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.client import RemoteSimulatedBackends, RemoteSimulatedCluster
from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.adapters.simulated.faults import Options
from seaway.adapters.simulated.messages import FaultRequest
from seaway.adapters.simulated.server import Server
from seaway.application.ports.backend import Changes
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, node
from tests.unit.adapters.simulated_fleet import deployment, small, uuid

SERVE = "import sys; from seaway.cli.serving.simulate import app; app(sys.argv[1:])"


@pytest.fixture
def url() -> Iterator[str]:
    """Serve a small cluster."""
    server = Server(SimulatedBackends(small(), VirtualClock(), Options(waits=False)))
    server.start()
    yield server.url
    server.stop()


def test_a_client_waits_for_its_server() -> None:
    """Without the server, everything is unavailable; when it starts, the same client knows its clusters."""
    with create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    remote = RemoteSimulatedBackends(f"http://127.0.0.1:{port}")
    for call in (remote.clusters, remote.gateways, remote.links, lambda: remote.cluster("alpha")):
        with pytest.raises(UnavailableError):
            call()
    server = Server(SimulatedBackends(small(), VirtualClock(), Options(waits=False)), port)
    server.start()
    alpha = remote.cluster("alpha")
    assert [each.cluster for each in remote.clusters()] == ["alpha"]
    assert alpha.send([deployment()])[0].done
    server.stop()
    assert [each.cluster for each in remote.clusters()] == ["alpha"]
    with pytest.raises(UnavailableError, match="cluster 'alpha' does not answer"):
        alpha.changes("", 0)
    remote.close()


def test_a_waiting_user_is_answered_when_the_server_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A server that ends answers waiting calls for changes, in order, and logs no errors."""
    waits, until_due_s = Event(), SimulatedCluster._until_due_s  # noqa: SLF001  # asked just before a call waits

    def note(cluster: SimulatedCluster) -> float:
        waits.set()
        return until_due_s(cluster)

    monkeypatch.setattr(SimulatedCluster, "_until_due_s", note)
    server = Server(SimulatedBackends(small(), VirtualClock()))
    server.start()
    with ThreadPoolExecutor(1) as pool, closing(RemoteSimulatedBackends(server.url)) as remote:
        alpha = remote.cluster("alpha")
        cursor = alpha.changes("", 0).cursor
        waiting = pool.submit(alpha.changes, cursor, 50)
        assert waits.wait(50)
        server.stop()
        assert waiting.result() == Changes(cursor, complete=False)
    assert capfd.readouterr().err == ""


def test_everything_comes_through_as_it_was(url: str) -> None:
    """Deployments, workloads, nodes and devices are the same on both ends."""
    there = RemoteSimulatedBackends(url)
    here = SimulatedBackends(small(), VirtualClock(), Options(waits=False))
    remote, local = there.cluster("alpha"), here.cluster("alpha")
    assert (tuple(there.links()), tuple(there.gateways())) == (tuple(here.links()), tuple(here.gateways()))
    sent = [deployment("a", places=(0, 2), expected_duration_s=5), deployment("b", cpu_milli=10**7), deployment("c")]
    assert remote.send(sent) == local.send(sent)
    far, near = remote.changes("", 0), local.changes("", 0)
    assert (far.workloads, far.inventory, far.complete) == (near.workloads, near.inventory, near.complete)
    assert remote.manifests(sent[0]) == local.manifests(sent[0])
    assert list(remote.logs("sw-a-1", 0, 5)) == list(local.logs("sw-a-1", 0, 5))
    assert list(remote.logs("sw-a-1", 0, 5, "main")) == list(local.logs("sw-a-1", 0, 5))
    assert list(remote.logs("sw-a-1", 0, 5, "main", 4_102_444_800_000_000_000)) == []
    there.close()


def test_reasons_keep_their_codes() -> None:
    """Those of answers, addresses and errors have their codes and parameters on both ends."""
    clock = VirtualClock()
    server = Server(SimulatedBackends(small(), clock, Options(waits=False)))
    server.start()
    with closing(RemoteSimulatedBackends(server.url)) as there:
        remote = there.cluster("alpha")
        _, refused = remote.send([deployment("a"), deployment("b", cpu_milli=10**7)])
        clock.advance_s(60)
        (started,) = remote.changes("", 0).workloads
        remote.cause(FaultRequest("cut"))
        with pytest.raises(UnavailableError) as caught:
            remote.changes("", 0)
    server.stop()
    found = [refused.reason, started.endpoints[0].reason, caught.value.args[0]]
    assert [(each.code, *each.params) for each in found] == [
        ("in_cluster", "cluster", "text"),
        ("inside_only", "type"),
        ("simulated_silence", "cluster", "text"),
    ]
    assert found[0].params["text"].code == "node_cpu_left"


def test_a_cluster_that_the_server_lacks_is_rejected(url: str) -> None:
    """An unknown name is an error of the caller."""
    with (
        closing(RemoteSimulatedBackends(url)) as remote,
        pytest.raises(RejectedError, match="cluster 'beta' not found"),
    ):
        remote.cluster("beta")
    with (
        closing(RemoteSimulatedCluster(url, "a/b c")) as other,
        pytest.raises(RejectedError, match="cluster 'a/b c'"),
    ):
        other.changes("", 0)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/clusters/alpha/commands", "{"),
        ("POST", "/clusters/alpha/commands", '[{"kind": "explode"}]'),
        ("POST", "/clusters/alpha/commands", '[{"kind": "create", "deployment": {}}]'),
        ("POST", "/clusters/alpha/manifests", "null"),
        ("POST", "/clusters/alpha/faults", '{"kind": 5}'),
        ("POST", "/clusters/alpha/heal", '{"kind": "copy"}'),
        ("GET", "/clusters/alpha/changes?wait_s=nan", ""),
        ("GET", "/clusters/alpha/changes?wait_s=-1", ""),
        ("GET", "/clusters/alpha/logs?copy=sw-a-1&replica=x", ""),
    ],
)
def test_what_cannot_be_read_is_rejected_with_a_reason(url: str, method: str, path: str, body: str) -> None:
    """An invalid request gets an error with the reason, and changes nothing."""
    answer = httpx.request(method, url + path, content=body)
    assert answer.status_code == 422
    assert answer.json()["message"]


def test_pages_of_browsers_and_large_bodies_are_rejected(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page on another site cannot change clusters of this machine, and a body has a bound."""
    monkeypatch.setattr(server_module, "LARGEST_BODY", 100)
    path, heal = f"{url}/clusters/alpha/heal", '{"kind": "disconnect"}'
    answer = httpx.post(path, content=heal, headers={"origin": "http://elsewhere.example"})
    assert (answer.status_code, "a page of a browser" in answer.text) == (422, True)
    answer = httpx.post(path, content=heal + " " * 100)
    assert (answer.status_code, "the body may have 100 bytes at most" in answer.text) == (422, True)
    assert "bytes at most" not in httpx.post(path, content=heal).text


def test_an_answer_that_is_none_is_unavailable() -> None:
    """If another program listens at the address, the error reports that."""
    with create_server(("127.0.0.1", 0)) as other:
        remote = RemoteSimulatedBackends(f"http://127.0.0.1:{other.getsockname()[1]}", timeout_s=0.05)
        with pytest.raises(UnavailableError, match="timed out"):
            remote.clusters()
        remote.close()


@pytest.mark.slow
def test_clusters_outlive_a_kill(tmp_path: Path) -> None:
    """After SIGKILL, a server that starts again on its data folder has every workload that it acknowledged."""
    with create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "clusters: [{name: alpha, nodes: [{name: 'node-{}', count: 3, cpu: 64, memory: 256Gi, "
        "gpus: 2, model: A100, gpu_memory: 80Gi}]}]"
    )
    command = [
        sys.executable,
        "-c",
        SERVE,
        "serve",
        "--fleet",
        str(fleet),
        "--port",
        port,
        "--data",
        str(tmp_path / "d"),
    ]
    remote = RemoteSimulatedBackends(f"http://127.0.0.1:{port}")
    sent = [deployment(f"j{number}") for number in range(5)]
    assert sent[0].placements[0].slices[0].uuid == uuid()
    for round_ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("1 clusters with 6 devices at ")
            alpha = remote.cluster("alpha")
            before = {copy.job_id for copy in alpha.changes("", 0).workloads}
            assert before == ({f"j{number}" for number in range(5)} if round_ else set())
            assert all(answer.done for answer in alpha.send(sent))
            process.send_signal(signal.SIGKILL)
    remote.close()


def test_another_fleet_is_noticed() -> None:
    """The clusters are those of the last request for links; remaining ones are the same objects."""
    fleets = [small(), fleet(cluster(node(), name="alpha"), cluster(node(), name="beta")), fleet()]
    names, remote, port = [], None, 0
    for each in fleets:
        server = Server(SimulatedBackends(each, VirtualClock(), Options(waits=False)), port)
        server.start()
        port = httpx.URL(server.url).port or 0
        remote = remote or RemoteSimulatedBackends(server.url)
        before = remote.clusters()
        remote.links()
        names.append([one.cluster for one in remote.clusters()])
        assert all(one is other for one, other in zip(before, remote.clusters(), strict=False))
        server.stop()
    assert names == [["alpha"], ["alpha", "beta"], []]
    assert remote is not None
    remote.close()
