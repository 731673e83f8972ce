"""Limits on connections: request heads, slow clients, and many connections."""

from __future__ import annotations

import gc
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from seaway.api.http import connections as module
from seaway.api.http.connections import LARGEST_HEAD, MAX_HEADERS, MAX_PIPELINED, Connections
from seaway.bootstrap.settings import ServerSettings
from tests.integration.served import TIMEOUT_S, Served, certificate, serving

HEAD = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n"
UPGRADE = (
    HEAD
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
MIB = 1 << 20
READY_S = 0.1
"""Maximum duration of a readiness check while many clients are idle, seconds."""


@pytest.fixture
def served() -> Iterator[Served]:
    """Serve a rig over HTTP."""
    with serving() as made:
        yield made


def connect(served: Served, source: str = "127.0.0.1") -> socket.socket:
    """Connect from an address."""
    return socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S, (source, 0))


def table(served: Served) -> Connections:
    """Return the server's table of connections."""
    found: Connections = served.rig.app.state.connections
    return found


def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition."""
    ends = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)


def until_cut_off(step: Callable[[], object]) -> None:
    """Repeat a step until the server has closed the connection."""
    ends = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < ends:
            step()
    except ConnectionError:
        return
    pytest.fail("the server did not close the connection")


def send_and_read(connection: socket.socket, data: bytes, size: int = 65_536) -> None:
    """Send some bytes, and read for a moment.

    Raises
    ------
    ConnectionError
        If the connection is closed.
    """
    connection.settimeout(0.02)
    try:
        connection.sendall(data)
        if size and not connection.recv(size):
            raise ConnectionResetError
    except TimeoutError:
        pass


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    answer = b""
    try:
        while piece := connection.recv(65_536):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


def memory_bytes() -> int:
    """Return the memory of this process, which runs the server in a thread."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET / HTTP/1.1\r\nx: ", b"a" * 65_536),
        (b"GET / HTTP/1.1\r\n", b"a:b\r\n" * 10_000),
        (b"GET /", b"a" * 65_536),
        (b"", b"\r\n" * 32_768),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a:b\r\n" * 10_000),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1", b";a=b" * 16_384),
    ],
    ids=["one header", "many headers", "path", "empty lines", "trailers", "chunk extension"],
)
def test_endless_head_uses_no_memory(served: Served, begin: bytes, more: bytes) -> None:
    """An endless head from a client without a token is cut off at once."""
    httpx.get(f"{served.url}/readyz")
    before = memory_bytes()
    with connect(served) as client:
        client.sendall(begin)
        until_cut_off(lambda: client.sendall(more))
    assert memory_bytes() - before < 16 * MIB
    assert httpx.get(f"{served.url}/readyz").status_code == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (HEAD + b"a:b\r\n" * MAX_HEADERS + b"\r\n", 431),
        (HEAD + b"a: " + b"b" * 66_000 + b"\r\n\r\n", 431),
        (HEAD + b"a: " + b"b" * 60_000 + b"\r\n\r\n", 200),
        (HEAD + b"a:b\r\n" * (MAX_HEADERS - 1) + b"\r\n", 200),
        (HEAD + b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 200),
    ],
)
def test_client_learns_why_its_head_is_rejected(served: Served, request_: bytes, status: int) -> None:
    """The response to a large head names the problem, and a head within the limits is accepted."""
    with connect(served) as client:
        client.sendall(request_)
        answer = client.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert status == 200 or b"application/problem+json" in answer


@pytest.mark.parametrize(
    "request_", [HEAD + b"a: b\r\n" * (MAX_HEADERS + 1) + b"\r\n", UPGRADE, (HEAD + b"\r\n") * (MAX_PIPELINED + 2)]
)
def test_connections_are_freed_without_the_garbage_collector(served: Served, request_: bytes) -> None:
    """The collector visits objects that survive once an hour, so cycles of attackers would fill the memory."""
    gc.collect()
    gc.disable()
    try:
        with connect(served) as client:
            client.sendall(request_)
            client.recv(65_536)
        until(lambda: not any(isinstance(each, module.HttpProtocol) for each in gc.get_objects()))
    finally:
        gc.enable()


def test_many_small_parts_of_a_head_are_one_head(served: Served) -> None:
    """The size of a head counts, not the number of packets that it arrives in."""
    with connect(served) as client:
        for byte in HEAD + b"\r\n":
            client.sendall(bytes([byte]))
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
    with served.client() as other:
        kind = {"content-type": "application/json"}
        assert other.post("/api/v1/jobs", content=b" " * 2 * LARGEST_HEAD + b"{}", headers=kind).status_code == 422


def test_requests_ahead_of_their_responses_are_limited(served: Served) -> None:
    """A client may send some requests at once, and not thousands."""
    with connect(served) as client:
        client.sendall((HEAD + b"\r\n") * MAX_PIPELINED)
        answer = b""
        while answer.count(b"HTTP/1.1 200") < MAX_PIPELINED:
            answer += client.recv(65_536)
    with connect(served) as client:
        client.sendall((HEAD + b"\r\n") * 1000)
        assert read_all(client).count(b"HTTP/1.1 200") < MAX_PIPELINED


@pytest.mark.parametrize(
    ("sent", "again"),
    [(b"", False), (b"GET /", False), (HEAD, False), (b"GET /", True), (HEAD, True)],
    ids=["nothing", "half a line", "half a head", "half a line of a later request", "half a head of a later request"],
)
def test_slow_head_times_out(served: Served, monkeypatch: pytest.MonkeyPatch, sent: bytes, again: bool) -> None:
    """A connection without a complete head is closed, also if bytes arrive one by one."""
    monkeypatch.setattr(module, "HEAD_S", 0.3)
    with connect(served) as client:
        if again:
            client.sendall(HEAD + b"\r\n")
            client.recv(65_536)
        began = time.monotonic()
        client.sendall(sent)
        until_cut_off(lambda: send_and_read(client, b"a" if sent else b""))
    assert 0.2 < time.monotonic() - began < TIMEOUT_S / 2
    assert table(served).closed["head_timeout"] == 1


def test_half_open_connection_of_tls_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handshake has a limited time too, and counts as a connection from the start."""
    monkeypatch.setattr(module, "HEAD_S", 0.5)
    settings = certificate(tmp_path)
    with serving(settings) as served:
        with connect(served) as client:
            until(lambda: len(table(served)) == 1)
            assert read_all(client) == b""
        until(lambda: len(table(served)) == 0)
        trust = ssl.create_default_context(cafile=settings.tls_certificate)
        assert httpx.get(f"{served.url}/readyz", verify=trust).status_code == 200


def test_idle_clients_keep_no_one_out(served: Served) -> None:
    """With 2,000 idle connections, half of them with a part of a head, readiness is reported immediately."""
    idle = [connect(served, f"127.0.{number % 3}.{number % 7 + 1}") for number in range(2000)]
    for each in idle[::2]:
        each.sendall(b"GET / HTTP/1.1\r\nHost: a")
    until(lambda: len(table(served)) == len(idle))
    durations_s = []
    for _ in range(5):
        began = time.monotonic()
        with connect(served) as client:
            client.sendall(HEAD + b"\r\n")
            assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
        durations_s.append(time.monotonic() - began)
    assert sorted(durations_s)[2] < READY_S
    for each in idle:
        each.close()
    until(lambda: len(table(served)) == 0)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("per_address", [False, True])
def test_new_connection_replaces_the_oldest_without_a_request(tmp_path: Path, *, tls: bool, per_address: bool) -> None:
    """At a limit, connections that wait make room; those with a request stay, and then new ones are closed."""
    settings = certificate(tmp_path) if tls else ServerSettings()
    settings = replace(settings, max_connections_per_address=4) if per_address else replace(settings, max_connections=4)
    trust = ssl.create_default_context(cafile=settings.tls_certificate) if tls else False
    with serving(settings) as served:
        idle = [connect(served) for _ in range(6)]
        until(lambda: table(served).closed["displaced"] == 2)
        assert read_all(idle[0]) == b""
        assert len(table(served)) == 4
        follow = {**served.headers("user"), "accept": "text/event-stream"}
        with httpx.Client(base_url=served.url, verify=trust, timeout=TIMEOUT_S) as client:
            for _ in range(4):
                stream = client.send(client.build_request("GET", "/api/v1/events", headers=follow), stream=True)
                assert stream.status_code == 200
            assert len(table(served)) == 4
            with connect(served) as refused:
                assert read_all(refused) == b""
            assert table(served).closed["address_limit" if per_address else "limit"] == 1
        for each in idle:
            each.close()
        until(lambda: len(table(served)) == 0)


def test_proxy_has_no_limit_per_address() -> None:
    """Connections of a trusted proxy are of many clients."""
    with serving(ServerSettings(max_connections_per_address=2, trusted_proxies="127.0.0.0/8")) as served:
        idle = [connect(served) for _ in range(5)]
        until(lambda: len(table(served)) == len(idle))
        for each in idle:
            each.close()


@pytest.mark.parametrize("trickle", [False, True], ids=["reads nothing", "reads slowly"])
def test_slow_reader_is_disconnected(served: Served, monkeypatch: pytest.MonkeyPatch, *, trickle: bool) -> None:
    """A client that does not read its responses is disconnected, and its responses are dropped."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with client:
        client.connect(("127.0.0.1", served.port))
        until(lambda: len(table(served)) == 1)
        monkeypatch.setattr(
            module, "STALLED_S", 0.5
        )  # now, because the kernel has the same limit for a client that is away
        client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * MAX_PIPELINED)
        while len(table(served)):
            if trickle:
                with suppress(ConnectionResetError):
                    client.recv(10)
            time.sleep(0.01)
    assert table(served).closed == {"stalled_reader": 1}


def test_body_after_its_response_has_limited_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that goes on with a body that is not read is disconnected."""
    monkeypatch.setattr(module, "HEAD_S", 0.3)
    with connect(served) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
        until_cut_off(lambda: send_and_read(client, b" "))
    assert table(served).closed["unread_body"] == 1


def test_no_file_descriptors_left_stop_no_server(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without file descriptors, idle connections are closed, and the server accepts connections again."""
    idle = [connect(served) for _ in range(3)]
    until(lambda: len(table(served)) == len(idle))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(module, "NO_FILES_S", 0.1)
    pending = socket.socket()
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        pending.connect(("127.0.0.1", served.port))
        until(lambda: table(served).closed["displaced"] == len(idle))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    pending.settimeout(TIMEOUT_S)
    pending.sendall(HEAD + b"\r\n")
    assert pending.recv(65_536).startswith(b"HTTP/1.1 200 ")
    for each in (*idle, pending):
        each.close()
