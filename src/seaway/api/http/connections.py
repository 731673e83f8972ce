"""Connections of the server: limits on their number, on request heads, and on clients that send or read slowly.

A connection that waits for a request is the cheapest to lose. When a limit on the number of connections is reached, the
oldest of these is closed in favor of the new one, so idle connections of one client do not keep others out.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from seaway.api.http.replies import problem
from seaway.api.http.web_sockets import STALLED_S, IncompleteMessages, WebSocketProtocol, reset
from seaway.application.login_limit import site

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

MAX_CONNECTIONS = 8192
MAX_PER_ADDRESS = 1024

HEAD_S = 15.0
"""Maximum time to receive a request head, seconds: from the connection on, or from the first byte of later requests."""

LINGER_S = 10.0
"""Maximum time to deliver the rest of a response after the connection is closed, seconds."""

LONGEST_TARGET = 8192
"""Maximum length of path and query, bytes."""

LARGEST_HEADERS = 65_536
"""Maximum total size of names and values of all headers of a request, trailers included, bytes."""

MAX_HEADERS = 100
LARGEST_HEAD = LONGEST_TARGET + LARGEST_HEADERS + 4 * MAX_HEADERS + 64
"""Maximum size of a head, bytes, with a few bytes for the method, the version and the ends of lines."""

MAX_PIPELINED = 16
"""Maximum number of requests that a client sends ahead of a response."""

RESERVED_FILES = 512
"""File descriptors for everything but connections of clients."""

ACCEPTS = 64
"""Maximum number of connections accepted at a time, before requests are handled again."""

NO_FILES_S = 0.5
"""Pause after the process ran out of file descriptors, seconds."""

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

REASONS = (
    "displaced",
    "address_limit",
    "limit",
    "head_limit",
    "invalid",
    "head_timeout",
    "unread_body",
    "stalled_reader",
    "incomplete_message",
    "fragments",
)
"""Reasons to close a connection."""

log = logging.getLogger(__name__)


class Connection:
    """One connection in a table of connections.

    Parameters
    ----------
    client
        Connections of the same client.
    """

    __slots__ = ("client", "drop")

    def __init__(self, client: _Client) -> None:
        self.client: _Client | None = client
        self.drop: Callable[[], object] = lambda: None
        """Closes the connection immediately."""


class _Client:
    """Connections of one address."""

    __slots__ = ("count", "key", "waiting")

    def __init__(self, key: str) -> None:
        self.key = key
        self.count = 0
        self.waiting: OrderedDict[Connection, None] = OrderedDict()


class Connections:
    """Table of open connections.

    Parameters
    ----------
    limit, limit_per_address
        Maximum numbers of connections.
    trusted
        Networks of proxies. They have no limit of their own, because their connections are of many clients.

    Attributes
    ----------
    closed
        Number of connections closed by the server before their time, by reason.
    incomplete
        Incomplete messages of web sockets.
    """

    def __init__(
        self,
        limit: int = MAX_CONNECTIONS,
        limit_per_address: int = MAX_PER_ADDRESS,
        trusted: Sequence[IPv4Network | IPv6Network] = (),
    ) -> None:
        self._limit, self._limit_per_address, self._trusted = limit, limit_per_address, trusted
        self._clients: dict[str, _Client] = {}
        self._waiting: OrderedDict[Connection, None] = OrderedDict()
        self._count = 0
        self.closed: Counter[str] = Counter()
        self.incomplete = IncompleteMessages()

    def __len__(self) -> int:
        return self._count

    def open(self, address: str) -> Connection | None:
        """Add a connection that waits for a request, and close the oldest such connection if a limit is reached.

        Returns
        -------
        Connection or None
            The connection; None if a limit is reached and all connections have a request.
        """
        key = site(address)
        client = self._clients.get(key)
        full = client is not None and client.count >= self._limit_per_address and not self._is_trusted(address)
        if client and full and not self._close_oldest(client.waiting):
            self.closed["address_limit"] += 1
            return None
        if self._count >= self._limit and not self._close_oldest(self._waiting):
            self.closed["limit"] += 1
            return None
        client = self._clients.setdefault(key, _Client(key))  # closing its last connection removed it
        client.count += 1
        self._count += 1
        connection = Connection(client)
        self.wait(connection)
        return connection

    def wait(self, connection: Connection) -> None:
        """Mark a connection as waiting for a request."""
        if connection.client:
            connection.client.waiting[connection] = self._waiting[connection] = None

    def work(self, connection: Connection) -> None:
        """Mark a connection as having a request."""
        if connection.client:
            connection.client.waiting.pop(connection, None)
            self._waiting.pop(connection, None)

    def close(self, connection: Connection) -> None:
        """Remove a connection; a second call has no effect."""
        client = connection.client
        if client is None:
            return
        self.work(connection)
        connection.client = None
        self._count -= 1
        client.count -= 1
        if not client.count:
            del self._clients[client.key]

    def free_files(self) -> None:
        """Close the oldest waiting connections to free file descriptors."""
        for _ in range(ACCEPTS):
            if not self._close_oldest(self._waiting):
                break

    def _close_oldest(self, waiting: OrderedDict[Connection, None]) -> bool:
        oldest = next(iter(waiting), None)
        if oldest is None:
            return False
        self.close(oldest)
        oldest.drop()
        self.closed["displaced"] += 1
        return True

    def _is_trusted(self, address: str) -> bool:
        if not self._trusted:
            return False
        try:
            read = ip_address(address)
        except ValueError:
            return False
        return any(read in network for network in self._trusted)


class _HeadError(Exception):
    """Request head beyond a limit.

    Parameters
    ----------
    status
        Status of the response.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class HttpProtocol(HttpToolsProtocol):
    """HTTP protocol with limits on heads and on slow clients.

    Parameters
    ----------
    connections, connection
        The table of connections, and the entry of this one.
    """

    def __init__(self, connections: Connections, connection: Connection, **given: Any) -> None:  # noqa: ANN401  # uvicorn's
        super().__init__(**given)
        self._connections, self._connection = connections, connection
        self._upgraded = False
        self._in_request = False
        self._received = (
            0  # bytes since the last progress: the end of a head, a part of a body, or the end of a message
        )
        self._header_count = self._header_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._error: _HeadError | None = None
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._connection.drop = transport.abort
        if self._connection.client is None:  # displaced during the TLS handshake
            transport.abort()
            return
        self._head_timer = self.loop.call_later(HEAD_S, self._end, "head_timeout")

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the table."""
        self._cancel_timers()
        if not self._upgraded:
            self._connections.close(self._connection)
        super().connection_lost(exc)
        # Requests refer to this protocol, and so does the error's traceback. Only the collector would free such cycles.
        self._error = None
        self.cycle = None  # type: ignore[assignment]  # as before the first request
        self.pipeline.clear()
        if self._running:  # the base class knows the last request only, and others may be ahead of it
            self._running.disconnected = True
            self._running.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, in parts that are at most as large as a head may be."""
        self._unset_keepalive_if_required()
        while data and not self.transport.is_closing():
            part, data = data[: LARGEST_HEAD - self._received], data[LARGEST_HEAD - self._received :]
            self._received += len(part)
            try:
                self.parser.feed_data(part)
            except httptools.HttpParserUpgrade:
                if self._should_upgrade():
                    self._upgrade()
                    return
            except httptools.HttpParserError:
                self._reject(self._error or _HeadError(400, "invalid HTTP request"))
                return
            if self._received >= LARGEST_HEAD:
                self._reject(_HeadError(431, f"the head of the request is larger than {LARGEST_HEAD} bytes"))
                return
        if not self._in_request and self._received and self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_S, self._end, "head_timeout")

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._header_count = self._header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Collect the path and query."""
        super().on_url(url)
        if len(self.url) > LONGEST_TARGET:
            self._fail(414, f"the path is longer than {LONGEST_TARGET} characters")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header, or a trailer."""
        self._header_count += 1
        self._header_bytes += len(name) + len(value)
        if self._header_count > MAX_HEADERS or self._header_bytes > LARGEST_HEADERS:
            self._fail(431, "too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to handle a request."""
        if len(self.pipeline) >= MAX_PIPELINED:
            self._fail(400, "too many requests ahead of their responses")
        self._received, self._in_request = 0, True
        self._cancel_head_timer()
        self._connections.work(self._connection)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Collect a part of a body."""
        self._received = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._received, self._in_request = 0, False
        self._cancel_head_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, and a limited time for what is left of the body of this one."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._linger()
        elif not self.pipeline and self.cycle.response_complete:
            self._connections.wait(self._connection)
            if self.cycle.more_body and self._head_timer is None:
                self._head_timer = self.loop.call_later(HEAD_S, self._end, "unread_body")

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without further requests."""
        super().timeout_keep_alive_handler()
        self._linger()

    def pause_writing(self) -> None:
        """Give the client time to read."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(STALLED_S, self._end, "stalled_reader")

    def resume_writing(self) -> None:
        """Continue to write."""
        super().resume_writing()
        if self._write_timer:
            self._write_timer.cancel()
            self._write_timer = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing, because any client can send such requests."""

    def _fail(self, status: int, text: str) -> None:
        """Stop the parser, which hides the error from its caller."""
        self._error = _HeadError(status, text)
        raise self._error

    def _reject(self, error: _HeadError) -> None:
        """Close the connection, with a response unless another one is in progress."""
        self._connections.closed["head_limit" if error.status != 400 else "invalid"] += 1
        self._cancel_timers()
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]
            reply = problem(error.status, str(error), "", headers={"connection": "close"})
            lines = [STATUS_LINE[error.status]]
            lines += [name + b": " + value + b"\r\n" for name, value in reply.raw_headers]
            self.transport.write(b"".join((*lines, b"\r\n", bytes(reply.body))))
        self.transport.close()
        self._linger()

    def _end(self, reason: str) -> None:
        """Disconnect a slow client."""
        if not self.transport.is_closing():
            self._connections.closed[reason] += 1
        reset(self.transport)

    def _linger(self) -> None:
        """Limit the time to deliver what is left to write."""
        if self._write_timer is None and self._connection.client is not None:
            self._write_timer = self.loop.call_later(LINGER_S, reset, self.transport)

    def _upgrade(self) -> None:
        self._upgraded = True
        self._cancel_timers()
        self._connections.work(self._connection)
        self.ws_protocol_class = partial(  # type: ignore[assignment]
            WebSocketProtocol,
            self._connections.incomplete,
            self._connections.closed,
            partial(self._connections.close, self._connection),
        )
        self.handle_websocket_upgrade()
        self.parser = None  # type: ignore[assignment]  # it refers to this protocol, which ends here

    def _cancel_head_timer(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None

    def _cancel_timers(self) -> None:
        self._cancel_head_timer()
        if self._write_timer:
            self._write_timer.cancel()
            self._write_timer = None


class BoundedServer(uvicorn.Server):
    """Server that accepts connections up to the limits of a table.

    Parameters
    ----------
    connections
        Table of connections.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections
        self._listeners: list[_Listener] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets=[])
        for each in [self.config.bind_socket()] if sockets is None else sockets:
            self._listeners.append(_Listener(self, each, self._connections))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop to accept connections, and shut down."""
        for each in self._listeners:
            each.close()
        await super().shutdown(sockets)


class _Listener:
    """Accepts the connections of a socket."""

    def __init__(self, server: BoundedServer, listener: socket.socket, connections: Connections) -> None:
        self._server, self._listener, self._connections = server, listener, connections
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[Any]] = set()
        self._closed = False
        listener.listen(server.config.backlog)
        listener.setblocking(False)
        self._watch()

    def close(self) -> None:
        """Stop to accept connections; cancel TLS handshakes in progress."""
        self._closed = True
        self._loop.remove_reader(self._listener)
        for task in self._connecting:
            task.cancel()

    def _watch(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            try:
                client, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    raise
                log.warning("cannot accept a connection: %s", error.strerror)
                self._connections.free_files()
                self._loop.remove_reader(self._listener)
                self._loop.call_later(NO_FILES_S, self._watch)
                return
            connection = self._connections.open(str(address[0]))
            if connection is None:
                client.close()
                continue
            task = self._loop.create_task(self._connect(client, connection))
            self._connecting.add(task)
            task.add_done_callback(partial(self._connected, client, connection))
            connection.drop = task.cancel

    def _connected(self, client: socket.socket, connection: Connection, task: asyncio.Task[None]) -> None:
        """Close a connection if its handshake failed or was cancelled."""
        self._connecting.discard(task)
        if task.cancelled() or isinstance(task.exception(), OSError):  # among them errors of TLS
            self._connections.close(connection)
            with suppress(OSError):
                client.close()

    async def _connect(self, client: socket.socket, connection: Connection) -> None:
        """Hand a connection to its protocol, after the TLS handshake if there is one."""
        server, tls = self._server, self._server.config.ssl
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(STALLED_S * 1000))
        made = partial(
            HttpProtocol,
            self._connections,
            connection,
            config=server.config,
            server_state=server.server_state,
            app_state=server.lifespan.state,
        )
        await self._loop.connect_accepted_socket(made, client, ssl=tls, ssl_handshake_timeout=HEAD_S if tls else None)


def raise_file_limit(wanted: int) -> int:
    """Raise the limit on open files for a number of connections; return the number that is possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted + RESERVED_FILES if hard == resource.RLIM_INFINITY else min(wanted + RESERVED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    return wanted if soft == resource.RLIM_INFINITY else max(min(wanted, soft - RESERVED_FILES), 1)
