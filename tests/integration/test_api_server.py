"""The API behind a real server: streams, disconnects, TLS, large bodies and shutdown."""

# options go on as they are

from __future__ import annotations

import json
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from seaway.api import hub as hub_module
from seaway.api import hub as listener_module
from seaway.api.http import guard as guard_module
from seaway.api.http.server import make_server, trusted
from seaway.application.changes import Change
from seaway.application.login_limit import MAX_FAILURES
from seaway.application.records import Event
from seaway.bootstrap.settings import ServerSettings
from seaway.domain.errors import RejectedError
from seaway.wire.fields import moment
from tests.integration.served import TIMEOUT_S, Served, certificate, serving
from tests.unit.api.rig import JOB, make_rig


@pytest.fixture
def served() -> Iterator[Served]:
    """Serve a rig over HTTP."""
    with serving() as made:
        yield made


def events(lines: Iterator[str], count: int) -> list[dict[str, Any]]:
    """Read some events of a stream."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        line = next(lines)
        if line.startswith("data: "):
            found.append(json.loads(line[6:]))
    return found


def test_new_queue_accepts_jobs_immediately(served: Served) -> None:
    """The queue accepts dry runs and jobs before the control loop knows it."""
    with served.client("operator") as client:
        assert client.put("/api/v1/queues/new", json={"policy": "bestfit"}).status_code == 200
        job = {**JOB, "tenant": "default", "queue": "new"}
        tried = client.post("/api/v1/jobs?dry_run=true", json=job)
        assert (tried.status_code, tried.json()["fits"]) == (200, True), tried.text
        assert client.post("/api/v1/jobs", json=job).status_code == 201
        assert client.delete("/api/v1/queues/new").status_code == 409
        assert client.put("/api/v1/queues/new", json={"open": False}).status_code == 200
        assert "closed" in client.post("/api/v1/jobs", json=job).json()["detail"]


def test_stream_sends_new_events(served: Served) -> None:
    """A follower receives a submit event soon after the submission."""
    with served.client() as client, client.stream("GET", "/api/v1/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"
        job = client.post("/api/v1/jobs", json=JOB).json()
        (event,) = events(lines, 1)
    assert (event["job_id"], event["state"], event["actor"]) == (job["id"], "pending", "user")


def test_stream_resumes_after_the_last_event(served: Served) -> None:
    """After the last event's ID no event is lost or duplicated, in all forms of the ID."""
    served.store_events(10)
    last = served.rig.store.last_event()
    with served.client() as client:
        for options in (
            {"headers": {"last-event-id": str(last - 5)}},
            {"params": {"after": str(last - 5)}},
            {"params": {"after": "1"}, "headers": {"last-event-id": str(last - 5)}},
        ):
            with client.stream("GET", "/api/v1/events", **options) as stream:  # type: ignore[arg-type]
                lines = stream.iter_lines()
                seen = events(lines, served.rig.store.last_event() - last + 5)
                served.store_events(1)
                seen += events(lines, 1)
            assert [each["id"] for each in seen] == list(range(last - 4, served.rig.store.last_event() + 1))
        for headers in ({"last-event-id": "x"}, {"last-event-id": "9" * 30}):
            assert client.get("/api/v1/events", headers=headers).status_code == 422


def test_events_of_a_time_are_listed_and_followed(served: Served) -> None:
    """`since` starts lists and streams at a time; a tenant sees its own events and those of the fleet."""
    with served.client("admin") as client:
        job = client.post("/api/v1/jobs", json=JOB).json()["id"]
    now_ns = served.rig.clock.now_ns() + 10**9
    stored = [Event(now_ns + at, kind, "x", "test", tenant) for at, kind, tenant in (
        (0, "state", "default"), (5_000, "state", "other"), (9_000, "pool", ""), (9_000, "cluster", ""),
    )]  # fmt: skip
    for each in stored:
        served.rig.plane.writer.commit([Change(insert=[each])])
    since = {at: moment(now_ns + at) for at in (0, 1_000, 9_000, 10_000)}

    def listed(role: str, **query: str | int) -> list[tuple[str, str]]:
        with served.client(role) as client:
            found: list[tuple[str, str]] = []
            after: int | None = 0
            while after is not None:
                page = client.get("/api/v1/events/history", params={"after": after, **query})
                assert page.status_code == 200, page.text
                found += [(each["kind"], each["tenant"]) for each in page.json()["events"]]
                after = page.json()["next"]
            return found

    all_of = [(each.kind, each.tenant) for each in stored]
    assert listed("admin", since=since[0]) == listed("admin", since=since[0], limit=1) == all_of
    assert listed("admin", since=since[1_000]) == all_of[1:]
    assert listed("admin", since=since[10_000]) == []
    assert listed("admin", since=since[0], tenant="other") == all_of[1:]
    assert listed("other", since=since[0]) == [all_of[1], all_of[3]]
    with served.client("admin") as client:
        of_job = f"/api/v1/jobs/{job}/events"
        assert client.get(of_job, params={"since": since[10_000]}).json()["events"] == []
        assert len(client.get(of_job, params={"since": "2001-01-01T00:00:00Z"}).json()["events"]) == 1
        for path in ("/api/v1/events/history", of_job, "/api/v1/events"):
            assert client.get(path, params={"since": "1h"}).status_code == 422
        with client.stream("GET", "/api/v1/events", params={"since": since[9_000]}) as stream:
            assert [each["kind"] for each in events(stream.iter_lines(), 2)] == ["pool", "cluster"]


def test_stream_reads_older_events_from_the_store(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that are older than the feed's memory are read in pages."""
    monkeypatch.setattr(hub_module, "MAX_ROWS", 7)
    served.store_events(50)
    feed = served.rig.plane.feed
    feed._events = deque(list(feed._events)[-5:], maxlen=5)  # noqa: SLF001  # as after very many events
    last = served.rig.store.last_event()
    with served.client() as client, client.stream("GET", "/api/v1/events?after=0") as stream:
        lines = stream.iter_lines()
        first = events(lines, 45)
        served.store_events(30)
        rest = events(lines, 35)
    ids = [each["id"] for each in first + rest]
    assert ids == sorted(set(ids))
    assert ids[-1] <= last + 30


def test_stream_of_a_job_has_only_its_events(served: Served) -> None:
    """Other events are not sent."""
    with served.client() as client:
        first = client.post("/api/v1/jobs", json={**JOB, "name": "one"}).json()
        client.post("/api/v1/jobs", json={**JOB, "name": "two"})
        with client.stream("GET", "/api/v1/events?after=0&job=one") as stream:
            lines = stream.iter_lines()
            assert events(lines, 1)[0]["job_id"] == first["id"]
            client.post("/api/v1/jobs/two/cancel")
            client.post("/api/v1/jobs/one/cancel")
            assert events(lines, 1)[0]["state"] == "cancelled"
        assert client.get("/api/v1/events?job=none").status_code == 404


def test_tenant_receives_own_events_and_those_of_the_fleet(served: Served) -> None:
    """Events of other tenants, and objects of theirs, are not sent, live or later."""
    for after in ("", "?after=0"):
        with served.client("other") as client, client.stream("GET", f"/api/v1/events{after}") as stream:
            lines = stream.iter_lines()
            served.store_events(3, tenant="default", reason="secret")
            served.store_events(1, tenant="", reason="all")
            served.store_events(1, tenant="other", reason="ours")
            seen = events(lines, 2)
            while seen[-1]["message"] != "ours":
                seen += events(lines, 1)
        assert {each["tenant"] for each in seen} <= {"", "other"}
        assert not [each for each in seen if each["kind"] in {"tenant", "queue", "pool"}]
    with served.client("other") as client:
        assert client.get("/api/v1/events?tenant=default").status_code == 404


def test_slow_reader_does_not_delay_others(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow reader gets everything when it reads again."""
    monkeypatch.setattr(listener_module, "MAX_BYTES", 20_000)
    begin = served.rig.store.last_event()
    with served.client() as slow, served.client() as quick:
        with slow.stream("GET", "/api/v1/events") as slow_stream, quick.stream("GET", "/api/v1/events") as stream:
            lines = stream.iter_lines()
            for _ in range(20):
                served.store_events(300, reason="x" * 500)
                events(lines, 300)
            ids = [each["id"] for each in events(slow_stream.iter_lines(), 6000)]
        assert ids == list(range(begin + 1, begin + 6001))


def test_revoked_token_ends_its_streams(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream gets no more events, and ends with the next heartbeat."""
    monkeypatch.setattr(hub_module, "HEARTBEAT_S", 0.1)
    with served.client() as client, client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        while next(lines) != ":":
            pass
        token = next(each for each in served.rig.store.tokens() if each.name == "user")
        served.rig.plane.access.revoke(token.id)
        served.store_events(1, reason="not for him")
        assert not any("not for him" in line for line in lines)


def test_disconnected_client_is_removed(served: Served) -> None:
    """The server keeps no state of it."""
    hub = served.rig.app.state.hub
    with served.client() as client, client.stream("GET", "/api/v1/events"):
        assert len(hub) == 1
    until = time.monotonic() + TIMEOUT_S
    while len(hub) and time.monotonic() < until:
        time.sleep(0.01)
    assert len(hub) == 0


def test_server_stops_despite_followers(served: Served) -> None:
    """Streams end in order, and the server does not wait for clients."""
    with served.client() as client, client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        began = time.monotonic()
        served.server.should_exit = True
        for _ in lines:
            pass
    served.thread.join(TIMEOUT_S)
    assert time.monotonic() - began < 5
    assert not served.thread.is_alive()


def test_audit_entries_are_stored_before_shutdown() -> None:
    """The store has all entries after the server has stopped."""
    with serving() as served, served.client() as client:
        assert client.post("/api/v1/jobs", json=JOB).status_code == 201
    assert served.rig.store.audit(0, 1)[0].verb == "POST submit_job"


def test_chunked_bodies_are_limited(served: Served) -> None:
    """A chunked body is rejected as soon as it is too long."""

    def chunks() -> Iterator[bytes]:
        for _ in range(32):
            yield b" " * 65_536

    with served.client() as client:
        answer = client.post("/api/v1/jobs", content=chunks(), headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=["nonsense", "length", "smuggled", "two lengths", "nul"],
)
def test_invalid_http_gets_400(served: Served, raw: bytes) -> None:
    """A request that is not HTTP gets 400, and its connection is closed."""
    with socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S) as connection:
        connection.sendall(raw)
        answer = connection.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 4")


BEGUN = [
    ("POST", "/api/v1/jobs", "user"),
    ("POST", "/api/v1/jobs?dry_run=true", "user"),
    ("POST", "/api/v1/tokens", "admin"),
    ("PUT", "/api/v1/network", "operator"),
    ("POST", "/api/v1/network/reports", "agent"),
    ("POST", "/api/v1/network/gateways/gw-a/applied", "agent"),
]
"""Requests with a body, and the roles that may send them."""


def begin(served: Served, method: str, path: str, token: str) -> socket.socket:
    """Connect and send the first byte of a request's body."""
    connection = socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S)
    who = served.headers(token)["authorization"]
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {who}\r\n"
    connection.sendall(head.encode() + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    return connection


def test_half_a_request_harms_no_other_client(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Half a request leaves nothing, not even a log entry, and other clients are served."""
    audited = len(served.rig.store.audit(0, 100))
    for _ in range(5):
        for each in BEGUN:
            begin(served, *each).close()
    with served.client() as client:
        assert client.post("/api/v1/jobs", json=JOB).status_code == 201
    with served.client("operator") as client:
        until = time.monotonic() + TIMEOUT_S
        while _given_up(client.get("/metrics").text) < 5 * len(BEGUN):
            assert time.monotonic() < until
            time.sleep(0.01)
    assert [record.message for record in caplog.records if record.exc_info] == []
    assert len(served.rig.store.audit(0, 100)) == audited + 1


def test_unread_body_closes_the_connection(served: Served) -> None:
    """A rejection before the body is read closes the connection, unless the body has arrived completely."""
    served.rig.tokens["nobody"] = "none"
    for each in BEGUN:
        with begin(served, *each[:2], "nobody") as connection:
            answer = b""
            while piece := connection.recv(65_536):
                answer += piece
        assert answer.startswith(b"HTTP/1.1 401 ")
    with served.client() as client:
        assert "connection" not in client.post("/api/v1/jobs", json={}).headers


def _given_up(metrics: str) -> float:
    lines = (line for line in metrics.splitlines() if line.startswith("seaway_http_requests_total"))
    return sum(float(line.rpartition(" ")[2]) for line in lines if 'status="408"' in line)


@pytest.mark.parametrize(("method", "path", "token"), BEGUN)
def test_slow_body_times_out(
    served: Served, monkeypatch: pytest.MonkeyPatch, method: str, path: str, token: str
) -> None:
    """A client that sends a body byte by byte, or stops, gets an error and is disconnected, on any path."""
    monkeypatch.setattr(guard_module, "BODY_S", 0.2)
    for bytewise in (False, True):
        with begin(served, method, path, token) as connection:
            began = time.monotonic()
            connection.settimeout(0.02)
            answer = b""
            while time.monotonic() < began + TIMEOUT_S:
                try:
                    if bytewise:
                        connection.sendall(b" ")
                    if not (piece := connection.recv(65_536)):
                        break
                    answer += piece
                except TimeoutError:
                    continue
                except OSError:  # closed while the client sent more
                    break
            assert time.monotonic() - began < TIMEOUT_S
            assert answer.startswith(b"HTTP/1.1 408 ")


def test_server_with_certificate_accepts_only_tls(tmp_path: Path) -> None:
    """Streams use TLS too."""
    settings = certificate(tmp_path)
    with serving(settings) as served:
        context = ssl.create_default_context(cafile=settings.tls_certificate)
        with served.client(verify=context) as client:
            assert client.post("/api/v1/jobs", json=JOB).status_code == 201
            with client.stream("GET", "/api/v1/events?after=0") as stream:
                assert events(stream.iter_lines(), 1)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{served.port}/healthz", timeout=TIMEOUT_S)


def test_server_without_tokens_listens_on_loopback_only() -> None:
    """Addresses that others can reach are rejected."""
    rig = make_rig(no_auth=True)
    with pytest.raises(RejectedError, match="everybody"):
        make_server(rig.app, ServerSettings(host="0.0.0.0", no_auth=True))
    rig.plane.stop()


@pytest.mark.slow
def test_a_thousand_clients_receive_an_event(served: Served) -> None:
    """Each has its own stream."""
    sockets = []
    request = (
        f"GET /api/v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: {served.headers('user')['authorization']}\r\n\r\n"
    )
    try:
        for _ in range(1000):
            connection = socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S)
            connection.sendall(request.encode())
            sockets.append(connection)
        until = time.monotonic() + TIMEOUT_S
        while len(served.rig.app.state.hub) < 1000 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)
        began = time.monotonic()
        served.store_events(1, reason="to all of you")
        for connection in sockets:
            text = b""
            while b"to all of you" not in text:
                piece = connection.recv(65_536)
                assert piece
                text += piece
        assert time.monotonic() - began < 5
    finally:
        for connection in sockets:
            connection.close()


def fails_from(served: Served, address: str) -> int:
    """Fail to log in, from an address that a proxy reports; return the status code."""
    headers = {"authorization": "Bearer sw_no_token", "x-forwarded-for": f"203.0.113.9, {address}"}
    return httpx.get(f"{served.url}/api/v1/me", headers=headers).status_code


@pytest.mark.parametrize(("trusted_proxies", "status"), [("10.0.0.0/8, 127.0.0.1", 401), ("10.0.0.0/8", 429)])
def test_trusted_proxy_determines_the_client_address(trusted_proxies: str, status: int) -> None:
    """Behind a trusted proxy each address has its own limit of failed logins; headers of other proxies are ignored."""
    with serving(ServerSettings(trusted_proxies=trusted_proxies)) as served:
        assert [fails_from(served, "192.0.2.1") for _ in range(MAX_FAILURES + 1)][-1] == 429
        assert fails_from(served, "192.0.2.2") == status


def test_trusted_network_matches_ipv6_mapped_addresses() -> None:
    """On a dual-stack socket, an IPv4 client has an IPv6-mapped address."""
    hosts = ProxyHeadersMiddleware(make_rig().app, trusted("10.0.0.0/8, 192.0.2.1, fd00::/8")).trusted_hosts  # type: ignore[arg-type]
    assert all(each in hosts for each in ("10.1.2.3", "::ffff:10.1.2.3", "192.0.2.1", "::ffff:192.0.2.1", "fd00::1"))
    assert not any(
        each in hosts for each in ("11.1.2.3", "::ffff:11.1.2.3", "192.0.2.2", "::ffff:192.0.2.2", "fe80::1")
    )
