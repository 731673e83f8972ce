"""Sessions with containers of jobs over web sockets.

A message is a frame: its first byte is the channel, see `Channel`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.typing import Subprotocol

from seaway.application.ports.sessions import MAX_FRAME_BYTES, SUBPROTOCOL, Channel, Outcome
from seaway.client.call import Call
from seaway.client.config import Target
from seaway.client.connection import error_of, headers_of, trusted, warn_if_exposed
from seaway.domain.errors import UnavailableError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.http11 import Response as Refusal

__all__ = ["MAX_FRAME_BYTES", "SUBPROTOCOL", "Channel", "ClientSession", "Frames", "Outcome", "open_session"]

OPEN_S = 30.0
"""Time limit to open a session, in seconds. The server connects to the cluster first."""

MAX_MESSAGE_BYTES = 4 * MAX_FRAME_BYTES


class Frames(Protocol):
    """Open session."""

    async def send(self, frame: bytes) -> None:
        """Send a frame, when the server has read most of the earlier ones."""

    async def receive(self) -> bytes:
        """Return the next frame; no bytes after the last one."""


class ClientSession:
    """`Frames` over a web socket."""

    def __init__(self, server: str, socket: ClientConnection) -> None:
        self._server, self._socket = server, socket

    async def send(self, frame: bytes) -> None:
        """Send a frame.

        Raises
        ------
        UnavailableError
            When the connection is closed.
        """
        try:
            await self._socket.send(frame)
        except ConnectionClosed:
            raise UnavailableError(f"the connection to {self._server} broke") from None

    async def receive(self) -> bytes:
        """Return the next frame; no bytes after the last one."""
        try:
            frame = await self._socket.recv()
        except ConnectionClosed:
            return b""
        return frame if isinstance(frame, bytes) else frame.encode()


class _Refused:
    """Response to a handshake that the server refused."""

    def __init__(self, refusal: Refusal) -> None:
        self.status_code, self.reason_phrase = refusal.status_code, refusal.reason_phrase
        self.headers: Mapping[str, str] = refusal.headers
        self.content = bytes(refusal.body or b"")
        self.text = self.content.decode(errors="replace")
        self.is_success = False


class _Connect(connect):
    """Connection that follows no redirect, as all requests of the client."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Treat a redirect as an error."""
        return exc


@asynccontextmanager
async def open_session(target: Target, call: Call[Any]) -> AsyncIterator[ClientSession]:
    """Open a session that `seaway.client.calls.jobs` describes.

    Raises
    ------
    SeawayError
        As in `seaway.client.errors`.
    """
    warn_if_exposed(target)
    tls: dict[str, Any] = {"ssl": trusted(target)} if target.server.startswith("https:") else {}
    query = urlencode(call.parameters)
    opening = _Connect(
        f"ws{target.server.removeprefix('http')}{call.path}{f'?{query}' if query else ''}",
        subprotocols=[Subprotocol(SUBPROTOCOL)],
        compression=None,
        additional_headers={name: value for name, value in headers_of(target).items() if name != "User-Agent"},
        user_agent_header=headers_of(target)["User-Agent"],
        proxy=None if target.loopback else True,
        open_timeout=OPEN_S,
        close_timeout=1.0,
        max_size=MAX_MESSAGE_BYTES,
        **tls,
    )
    try:
        socket = await opening
    except InvalidStatus as error:
        raise error_of(_Refused(error.response)) from None
    except (InvalidHandshake, OSError) as error:
        raise UnavailableError(f"{target.server} cannot be reached: {str(error) or type(error).__name__}") from None
    async with socket:
        yield ClientSession(target.server, socket)
