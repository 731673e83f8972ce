"""Anything that pods say behind the proxy of their API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from tests.fakes.kubernetes import ApiServer

PATH = "/api/v1/namespaces/default/pods/exporter:9400/proxy"


def run_exporter(server: ApiServer) -> None:
    """Add a pod that runs."""
    pod = {"metadata": {"name": "exporter"}, "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "b"}]}}
    server.put({"apiVersion": "v1", "kind": "Pod", **pod, "status": {"phase": "Running"}})


def test_a_pod_answers_where_it_listens(api: httpx.Client, server: ApiServer) -> None:
    """At its port and path; each request is counted."""
    run_exporter(server)
    server.serve_page("default", "exporter", 9400, b"up 1\n")
    answer = api.get(f"{PATH}/metrics")
    assert (answer.status_code, answer.text) == (200, "up 1\n")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert api.get(f"{PATH}/health").status_code == 404
    assert api.post(f"{PATH}/metrics").status_code == 405
    assert server.pages.asked == {f"{PATH}/metrics": 1, f"{PATH}/health": 1}


def test_a_page_may_be_made_as_it_is_asked_for(api: httpx.Client, server: ApiServer) -> None:
    """All at once, or piece by piece."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"up "
        yield b"1\n"

    run_exporter(server)
    for page in (lambda: b"up 1\n", pieces):
        server.serve_page("default", "exporter", 9400, page)
        assert api.get(f"{PATH}/metrics").text == "up 1\n"


def test_where_no_one_listens_the_server_says_so(api: httpx.Client, server: ApiServer) -> None:
    """503 for another port and for a pod that does not run, 404 for one that is not there; as Kubernetes answers."""
    assert api.get(f"{PATH}/metrics").json()["reason"] == "NotFound"
    run_exporter(server)
    refused = api.get(f"{PATH}/metrics")
    assert (refused.status_code, refused.json()["reason"]) == (503, "ServiceUnavailable")
    assert "connection refused" in refused.json()["message"]
    assert api.get("/api/v1/namespaces/default/pods/exporter").json()["kind"] == "Pod"
