"""Limits on incomplete messages of web sockets, which everyone can send."""

from __future__ import annotations

import gc
import inspect
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.frames import Frame, Opcode

from seaway.api.http import web_sockets as module
from seaway.api.http.connections import Connections
from seaway.api.http.web_sockets import LARGE_BYTES, MAX_FRAGMENTS, MAX_INCOMPLETE_BYTES, WebSocketProtocol
from tests.integration.served import TIMEOUT_S, Served, serving

UPGRADE = (
    b"GET /lengths HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
PART = 3 << 19
WHOLE = PART + (1 << 18)
MOST = MAX_INCOMPLETE_BYTES // PART
"""Number of parts within the limit."""


async def lengths(client: WebSocket) -> None:
    """Answer each message with its length."""
    await client.accept()
    try:
        while True:
            await client.send_text(str(len(await client.receive_text())))
    except WebSocketDisconnect:
        pass


@pytest.fixture
def served() -> Iterator[Served]:
    """Serve a rig with a web socket."""
    with serving() as made:
        made.rig.app.router.routes.insert(0, WebSocketRoute("/lengths", lengths))
        yield made


def connect(served: Served) -> socket.socket:
    """Open a web socket."""
    client = socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S)
    client.sendall(UPGRADE)
    assert client.recv(65_536).startswith(b"HTTP/1.1 101 ")
    return client


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


def text(payload: bytes, opcode: Opcode = Opcode.TEXT, *, final: bool = True) -> bytes:
    """Return a frame of a client."""
    return Frame(opcode, payload, fin=final).serialize(mask=True)


def test_incomplete_messages_share_a_limit_and_the_oldest_are_lost(served: Served) -> None:
    """Clients that hold parts of large messages use bounded memory together, and do not keep others from sending."""
    whole, connections = text(b"x" * WHOLE), table(served)
    with ExitStack() as stack:
        clients = []
        for number in range(MOST + 3):
            clients.append(stack.enter_context(connect(served)))
            clients[-1].sendall(whole[:PART])
            until(lambda number=number: _held(connections) == min(number + 1, MOST))  # type: ignore[misc]
        until(lambda: connections.closed["incomplete_message"] == 3)
        assert connections.incomplete.total <= MAX_INCOMPLETE_BYTES
        with pytest.raises(ConnectionError):
            clients[0].recv(1)
        clients[-1].sendall(whole[PART:])
        assert str(WHOLE).encode() in clients[-1].recv(100)
    until(lambda: connections.incomplete.total == 0)


def _held(connections: Connections) -> int:
    """Return the number of parts that the server holds."""
    return (connections.incomplete.total + LARGE_BYTES) // PART


def test_large_message_has_to_arrive_in_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops within a large message is disconnected; one between messages is not."""
    monkeypatch.setattr(module, "MESSAGE_S", 0.3)
    with connect(served) as idle, connect(served) as slow:
        idle.sendall(text(b"x" * LARGE_BYTES * 2))
        assert str(LARGE_BYTES * 2).encode() in idle.recv(100)
        slow.sendall(text(b"x" * LARGE_BYTES * 2)[:-1])
        with pytest.raises(ConnectionError):
            slow.recv(1)
        idle.sendall(text(b"x"))
        assert b"1" in idle.recv(100)
    assert table(served).closed == {"incomplete_message": 1}


@pytest.mark.parametrize("payload", [b"", b"xy"])
def test_message_has_a_limited_number_of_fragments(served: Served, payload: bytes) -> None:
    """Fragments use memory beside their content, so that their number is limited."""
    more = text(payload, Opcode.CONT, final=False)
    with connect(served) as client:
        client.sendall(text(b"x", final=False) + more * (MAX_FRAGMENTS - 2) + text(b"y", Opcode.CONT))
        assert str(2 + len(payload) * (MAX_FRAGMENTS - 2)).encode() in client.recv(100)
        client.sendall(text(b"x", final=False) + more * MAX_FRAGMENTS)
        with pytest.raises(ConnectionError):
            client.recv(1)
    assert table(served).closed == {"fragments": 1}


def test_small_messages_do_not_count(served: Served) -> None:
    """Many small messages and pings of a page are within the limits."""
    with connect(served) as client:
        for _ in range(3 * LARGE_BYTES // 125):
            client.sendall(text(b"x" * 125, Opcode.PING))
        client.sendall(text(b"x" * 100)[:50])
        time.sleep(0.1)
        assert table(served).incomplete.total == 0
        assert not table(served).closed


@pytest.mark.parametrize("final", [True, False])
def test_lost_web_sockets_hold_no_message(served: Served, *, final: bool) -> None:
    """The part of a message that a client sent is freed when it leaves, although cycles keep the protocol."""
    with connect(served) as client:
        client.sendall(text(b"x" * WHOLE, final=final)[: PART if final else None])
        until(lambda: table(served).incomplete.total >= LARGE_BYTES)
        protocols = [each for each in gc.get_objects() if isinstance(each, WebSocketProtocol) and not each.disconnected]
    assert len(protocols) == 1
    until(lambda: protocols[0].disconnected)
    left = protocols[0].conn
    assert (len(left.reader.buffer), protocols[0].frames) == (0, [])
    assert inspect.getgeneratorstate(left.parser) == inspect.GEN_CLOSED
