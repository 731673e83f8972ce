"""Faults on command."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
import yaml

from tests.fakes.kubernetes import ApiServer

PATH = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("code", "reason"),
    [(401, "Unauthorized"), (403, "Forbidden"), (500, "InternalError"), (503, "ServiceUnavailable")],
)
def test_errors_hit_what_matches(api: httpx.Client, server: ApiServer, code: int, reason: str) -> None:
    """An error hits the paths and methods that it is for, as often as it is to."""
    server.faults.error(code, "*/configmaps*", "GET", times=1)
    assert api.get("/api/v1/nodes").status_code == 200
    assert api.post(PATH, json={"metadata": {"name": "a"}}).status_code == 201
    failed = api.get(PATH)
    assert (failed.status_code, failed.json()["reason"]) == (code, reason)
    assert api.get(PATH).status_code == 200


def test_throttling_says_when_to_return(api: httpx.Client, server: ApiServer) -> None:
    """429 comes with Retry-After."""
    fault = server.faults.throttle(7)
    found = api.get(PATH)
    assert (found.status_code, found.headers["retry-after"]) == (429, "7")
    assert fault.hits == 1
    server.faults.end(fault)
    assert api.get(PATH).status_code == 200


def test_hanging_requests_get_no_answer_until_it_ends(api: httpx.Client, server: ApiServer) -> None:
    """While it hangs, requests time out; afterwards all is as before."""
    with server.faults.during(server.faults.hang()), pytest.raises(httpx.ReadTimeout):
        api.get(PATH, timeout=0.05)
    assert api.get(PATH).status_code == 200


def test_open_watches_fall_unreachable_and_go_on(api: httpx.Client, server: ApiServer) -> None:
    """A fault that hangs keeps what watches would tell, and they tell it when the fault ends."""
    query = {"watch": "1", "resourceVersion": str(server.version)}
    with api.stream("GET", PATH, params=query, timeout=httpx.Timeout(10, read=0.2)) as response:
        lines = response.iter_lines()
        fault = server.faults.hang()
        server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        server.faults.end(fault)
        assert json.loads(next(lines))["object"]["metadata"]["name"] == "a"


def test_slow_requests_are_answered_late(api: httpx.Client, server: ApiServer) -> None:
    """A slow server exceeds a short time limit, and answers within a long one."""
    server.faults.slow(0.1)
    with pytest.raises(httpx.ReadTimeout):
        api.get(PATH, timeout=0.02)
    assert api.get(PATH).status_code == 200


def test_dropped_requests_get_no_answer_at_all(api: httpx.Client, server: ApiServer) -> None:
    """A dropped connection is closed without an answer."""
    server.faults.drop(times=1)
    with pytest.raises(httpx.RemoteProtocolError):
        api.get(PATH)
    assert api.get(PATH).status_code == 200


def test_stopped_server_returns_with_its_objects(api: httpx.Client, server: ApiServer) -> None:
    """A stopped server refuses connections and cuts watches; started again it is the same at the same place."""
    made = api.post(PATH, json={"metadata": {"name": "a"}}).json()
    with api.stream("GET", PATH, params={"watch": "1", "resourceVersion": "1"}) as response:
        lines = response.iter_lines()
        next(lines)
        server.stop()
        with pytest.raises(httpx.RemoteProtocolError):
            next(lines)
    with pytest.raises(httpx.ConnectError):
        api.get(PATH)
    assert not server.running
    server.start()
    assert api.get(f"{PATH}/a").json() == made


def test_kubeconfig_names_all_servers(server: ApiServer, tmp_path: Path) -> None:
    """A kubeconfig has a context for each server and can be read by its owner only."""
    with ApiServer("member2") as other:
        path = server.kubeconfig(tmp_path / "config", other)
        assert path.stat().st_mode & 0o077 == 0
        config = yaml.safe_load(path.read_text())
        assert [one["name"] for one in config["contexts"]] == ["member1", "member2"]
        assert config["current-context"] == "member1"
        for cluster, user in zip(config["clusters"], config["users"], strict=True):
            headers = {"Authorization": f"Bearer {user['user']['token']}"}
            assert httpx.get(f"{cluster['cluster']['server']}/api/v1/nodes", headers=headers).status_code == 200
