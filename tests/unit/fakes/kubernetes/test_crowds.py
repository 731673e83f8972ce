"""Servers filled with many objects, servers with TLS, and servers in a process of their own."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import NODES, PODS
from tests.fakes.kubernetes.kubeconfig import Entry
from tests.fakes.kubernetes.seeding import Crowd, seed
from tests.unit.fakes.kubernetes.bodies import pod

CROWD = Crowd(nodes=4, pods=20, cards=2)


def test_crowd_has_the_size_that_was_asked_for(server: ApiServer) -> None:
    """Nodes and pods are as many and at least as large as was asked for, and pages show all of them."""
    assert seed(server, CROWD) == 24
    with httpx.Client(base_url=server.url, headers=server.headers) as api:
        for path, count, size in (("nodes", 4, 8192), ("pods", 20, 4096)):
            first = api.get(f"/api/v1/{path}", params={"limit": 3}).json()
            rest = api.get(f"/api/v1/{path}", params={"continue": first["metadata"]["continue"]}).json()
            items = [*first["items"], *rest["items"]]
            assert len({one["metadata"]["uid"] for one in items}) == count
            assert all(len(json.dumps(one, separators=(",", ":"))) >= size for one in items)


def test_crowd_is_what_hami_leaves(server: ApiServer) -> None:
    """Each pod holds a card that its node has registered."""
    seed(server, CROWD)
    cards = {
        node["metadata"]["name"]: {
            one["id"] for one in json.loads(node["metadata"]["annotations"]["hami.io/node-nvidia-register"])
        }
        for node in server.list(NODES)
    }
    for one in server.list(PODS):
        annotations = one["metadata"]["annotations"]
        uuid = annotations["hami.io/vgpu-devices-allocated"].partition(",")[0]
        assert uuid in cards[annotations["hami.io/vgpu-node"]]


def test_same_seed_makes_the_same_crowd() -> None:
    """Two servers of one name and seed have the same objects."""
    found = []
    for _ in range(2):
        with ApiServer("a", controllers=()) as server:
            seed(server, CROWD, 7)
            found.append(server.list(PODS))
    assert found[0] == found[1]


def test_crowd_is_counted_by_the_scheduler(cluster: ApiServer) -> None:
    """Anything that a crowd holds is taken: a pod that would need it waits, another runs."""
    seed(cluster, Crowd(nodes=1, pods=4, cards=1, memory_mib=10000))
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "60000"}
    cluster.create(pod("large", limits=limits))
    cluster.create(pod("small", limits={**limits, "nvidia.com/gpumem": "5000"}))
    cluster.settle()
    nodes = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in cluster.list(PODS)}
    assert nodes["large"] is None
    assert nodes["small"] is not None


def context(entry: Entry, folder: Path) -> ssl.SSLContext:
    """Return what a client needs to speak TLS to a server."""
    made = ssl.create_default_context(cadata=entry.authority.decode())
    if entry.certificate:
        (folder / "crt").write_bytes(entry.certificate)
        (folder / "key").write_bytes(entry.key)
        made.load_cert_chain(folder / "crt", folder / "key")
    return made


def test_tls_with_a_token(tmp_path: Path) -> None:
    """A server with TLS shows a certificate of its own authority and takes tokens."""
    with ApiServer(tls="token", controllers=()) as server:
        trusting = context(server.entry(), tmp_path)
        assert server.url.startswith("https://")
        assert httpx.get(f"{server.url}/api/v1/nodes", headers=server.headers, verify=trusting).status_code == 200
        assert httpx.get(f"{server.url}/api/v1/nodes", verify=trusting).status_code == 401
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/readyz")


def test_tls_with_a_certificate(tmp_path: Path) -> None:
    """A server may want a client's certificate, which its kubeconfig has."""
    with ApiServer(tls="certificate", controllers=()) as server:
        trusting = context(server.entry(), tmp_path)
        assert httpx.get(f"{server.url}/api/v1/nodes", verify=trusting).status_code == 200
        stranger = ssl.create_default_context(cadata=server.entry().authority.decode())
        with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
            httpx.get(f"{server.url}/api/v1/nodes", verify=stranger)
        config = yaml.safe_load(server.kubeconfig(tmp_path / "config").read_text())
        assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_servers_in_a_process_of_their_own() -> None:
    """The process says where its servers are, takes commands at its desk, and ends with its standard input."""
    command = [sys.executable, "-m", "tests.fakes.kubernetes", "--members", "1", "--nodes", "2", "--karmada"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        said = json.loads(process.stdout.readline())
        member = said["servers"]["member1"]
        headers = {"Authorization": f"Bearer {member['token']}"}
        assert len(httpx.get(f"{member['url']}/api/v1/nodes", headers=headers).json()["items"]) == 2
        config = yaml.safe_load(Path(said["kubeconfig"]).read_text())
        assert config["current-context"] == "karmada"

        def order(**what: object) -> httpx.Response:
            return httpx.post(said["desk"], json={"server": "member1", **what}, timeout=10)

        assert order(do="stats").json()["objects"]["nodes"] == 2
        assert order(do="error", code=503, path="*/nodes").status_code == 200
        assert httpx.get(f"{member['url']}/api/v1/nodes", headers=headers).status_code == 503
        order(do="clear")
        order(do="stop")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{member['url']}/readyz")
        order(do="start")
        assert httpx.get(f"{member['url']}/readyz").text == "ok"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        assert order(do="create", body=body).json()["metadata"]["uid"]
        changed = order(do="patch", kind="configmaps", namespace="default", name="a", change={"data": {"b": "c"}})
        assert changed.json()["data"] == {"b": "c"}
        assert order(do="dance").status_code == 400
        process.stdin.close()
        assert process.wait(20) == 0
