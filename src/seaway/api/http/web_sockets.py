"""Web sockets: limits on clients that read too slowly, and on messages that are not complete.

A message is in memory until its last part is there. Everyone can open a web socket, so the total size of such messages
is limited. When the limit is reached, the sockets with the oldest of them are closed.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

STALLED_S = 30.0
"""Time after which a client that reads nothing, or too slowly, is disconnected, seconds."""

MESSAGE_S = 30.0
"""Maximum time to receive a large message, seconds."""

LARGE_BYTES = 16_384
"""Size from which an incomplete message is large, bytes."""

MAX_INCOMPLETE_BYTES = 16 << 20
"""Maximum total size of large incomplete messages, bytes."""

MAX_FRAGMENTS = 1024
"""Maximum number of fragments of a message. Each uses memory, also an empty one."""


class IncompleteMessages:
    """Sizes of large messages that web sockets have received in part, in the order of their begin.

    Parameters
    ----------
    limit
        Maximum total size, bytes.
    """

    def __init__(self, limit: int = MAX_INCOMPLETE_BYTES) -> None:
        self._limit = limit
        self._sizes: OrderedDict[WebSocketProtocol, int] = OrderedDict()
        self.total = 0

    def hold(self, owner: WebSocketProtocol, size: int) -> None:
        """Record the size of a message. Close the sockets with the oldest messages if the limit is exceeded."""
        self.total += size - self._sizes.get(owner, 0)
        self._sizes[owner] = size
        while self.total > self._limit:
            oldest = next(iter(self._sizes))
            self.release(oldest)
            oldest.end("incomplete_message")

    def release(self, owner: WebSocketProtocol) -> None:
        """Remove the message of a socket; without one, there is no effect."""
        self.total -= self._sizes.pop(owner, 0)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Web-socket protocol with limits on slow clients and on incomplete messages.

    Parameters
    ----------
    incomplete
        Incomplete messages of all sockets.
    closed
        Number of connections closed by the server before their time, by reason.
    leave
        Called when the connection is lost.
    """

    def __init__(
        self,
        incomplete: IncompleteMessages,
        closed: Counter[str],
        leave: Callable[[], None],
        **given: Any,  # noqa: ANN401  # uvicorn's
    ) -> None:
        super().__init__(**given)
        self._incomplete, self._closed, self._leave = incomplete, closed, leave
        self._fragments_bytes = 0
        self._write_timer: asyncio.TimerHandle | None = None
        self._message_timer: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from all tables."""
        if self._write_timer:
            self._write_timer.cancel()
        self._end_message()
        self._leave()
        super().connection_lost(exc)
        # The protocol is part of cycles, which stay for long (see `tuned_gc`), so it must not hold messages.
        self.frames = []
        self.conn.reader.buffer = bytearray()
        self.conn.parser.close()  # a generator, whose frame refers to the last message

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and limit what is left of an incomplete message."""
        super().data_received(data)
        held = len(self.conn.reader.buffer) + self._fragments_bytes
        if self.transport.is_closing() or held < LARGE_BYTES:
            return
        if self._message_timer is None:
            self._message_timer = self.loop.call_later(MESSAGE_S, self.end, "incomplete_message")
        self._incomplete.hold(self, held)

    def handle_text(self, event: Frame) -> None:
        """Begin a message."""
        self._fragments_bytes = len(event.data)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Begin a message."""
        self._fragments_bytes = len(event.data)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Collect a fragment of a message."""
        self._fragments_bytes += len(event.data)
        if len(self.frames) >= MAX_FRAGMENTS:
            self.frames = []
            self.end("fragments")
            return
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Hand a complete message to the application."""
        super().send_receive_event_to_app()
        self._end_message()

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message. A refusal completes the handshake, which the base class would log as an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def pause_writing(self) -> None:
        """Give the client time to read."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(STALLED_S, self.end, "stalled_reader")

    def resume_writing(self) -> None:
        """Continue to write."""
        super().resume_writing()
        if self._write_timer:
            self._write_timer.cancel()
            self._write_timer = None

    def end(self, reason: str) -> None:
        """Disconnect the client."""
        if not self.transport.is_closing():
            self._closed[reason] += 1
        reset(self.transport)

    def _end_message(self) -> None:
        self._fragments_bytes = 0
        self._incomplete.release(self)
        if self._message_timer:
            self._message_timer.cancel()
            self._message_timer = None


def reset(transport: asyncio.Transport) -> None:
    """Close a connection without delivering what the kernel still has to send."""
    if plain := transport.get_extra_info("socket"):
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
