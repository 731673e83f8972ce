"""Sessions with containers over web sockets of an API server.

References
----------
Kubernetes API, ``pods/exec``, ``pods/attach`` and ``pods/portforward``. Commands use ``v5.channel.k8s.io``, or
``v4.channel.k8s.io`` of servers before 1.30, which cannot signal the end of input. Ports use ``v4.channel.k8s.io``: a
channel for data and one for errors, whose first frames have the number of the port as two bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from websockets.exceptions import ConnectionClosed

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.logs import Source
from seaway.application.ports.sessions import SUBPROTOCOL, Channel, SessionKind, SessionRequest, status_frame
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import Reason

V4 = "v4.channel.k8s.io"

DATA, ERROR = 0, 1
"""Channels of a connection to a port."""

PORT_BYTES = 2


class Socket(Protocol):
    """Web socket of an API server."""

    @property
    def subprotocol(self) -> str | None:
        """Negotiated subprotocol."""

    async def send(self, message: bytes) -> None:
        """Send a message."""

    async def recv(self) -> str | bytes:
        """Return the next message."""

    async def close(self) -> None:
        """Close the connection."""


class PodSession:
    """`Session` over a web socket.

    Parameters
    ----------
    name
        Name of the cluster for errors.
    on_close
        Called once when the session ends.
    """

    def __init__(self, name: str, event_loop: EventLoopThread, socket: Socket, on_close: Callable[[], None]) -> None:
        self._name, self._event_loop, self._socket, self._on_close = name, event_loop, socket, on_close
        self._closed = False

    def send(self, frame: bytes) -> Future[None]:
        """Send a frame; see `Session`."""
        return self._event_loop.submit(self._send(frame))

    def receive(self) -> Future[bytes]:
        """Return the next frame; see `Session`."""
        return self._event_loop.submit(self._receive())

    def close(self) -> None:
        """End the session."""
        if not self._closed:
            self._closed = True
            self._on_close()
            self._event_loop.submit(self._socket.close())

    async def _send(self, frame: bytes) -> None:
        if frame[0] == Channel.CLOSE and self._socket.subprotocol != SUBPROTOCOL:
            raise RejectedError(Reason("no_end_of_input", name=self._name))
        await self._send_message(frame)

    async def _send_message(self, message: bytes) -> None:
        try:
            await self._socket.send(message)
        except ConnectionClosed:
            raise UnavailableError(Reason("connection_closed_by", name=self._name)) from None

    async def _receive(self) -> bytes:
        while True:
            try:
                message = await self._socket.recv()
            except ConnectionClosed:
                return b""
            if isinstance(message, bytes) and len(message) > 1:  # the first frame of a channel may be empty
                return message


class PortSession(PodSession):
    """`Session` with a port of a pod."""

    def __init__(self, name: str, event_loop: EventLoopThread, socket: Socket, on_close: Callable[[], None]) -> None:
        super().__init__(name, event_loop, socket, on_close)
        self._begun: set[int] = set()
        self._ended = False

    async def _send(self, frame: bytes) -> None:
        if frame[0] == Channel.STDIN:
            await self._send_message(bytes([DATA]) + frame[1:])
        # The protocol has neither sizes of terminals nor a half-closed connection.

    async def _receive(self) -> bytes:
        """Return data, and at the end the outcome, which the protocol lacks."""
        while frame := await super()._receive():
            channel, data = frame[0], frame[1:]
            if channel not in self._begun:
                self._begun.add(channel)
                data = data[PORT_BYTES:]
            if data and channel == ERROR:
                self._ended = True
                return status_frame(data.decode("utf-8", "replace").strip())
            if data and channel == DATA:
                return bytes([Channel.STDOUT]) + data
        if self._ended:
            return b""
        self._ended = True
        return status_frame()


async def open_session(
    api: Api, event_loop: EventLoopThread, source: Source, wanted: SessionRequest, on_close: Callable[[], None]
) -> PodSession:
    """Open a session with a container of a pod; see `Accessible`."""
    path = f"/api/v1/namespaces/{source.pod.namespace}/pods/{source.pod.name}/{wanted.kind.value}"
    is_port = wanted.kind is SessionKind.PORT_FORWARD
    if is_port:
        params = [("ports", str(wanted.port))]
    else:
        params = [("command", each) for each in wanted.command]
        flags = {"stdin": wanted.stdin, "stdout": True, "stderr": not wanted.tty, "tty": wanted.tty}
        params += [(name, "true") for name, given in flags.items() if given]
        params += [("container", source.container)] if source.container else []
    try:
        socket = await api.socket(path, params, (V4,) if is_port else (SUBPROTOCOL, V4))
    except ApiError as error:
        raise RejectedError(f"{api.name}: {error}") from None
    return (PortSession if is_port else PodSession)(api.name, event_loop, socket, on_close)
