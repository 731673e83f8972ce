"""Sessions with containers for pages: web sockets of the API in this process, with the visitor's token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlencode

import httpx
from starlette.types import ASGIApp, Message

from seaway.client.call import Call
from seaway.client.connection import error_of
from seaway.client.errors import UnavailableError
from seaway.client.sessions import SUBPROTOCOL

QUEUED = 4
"""Maximum number of frames that a page has not read yet. The container waits for the page."""


class PageSession:
    """Session of a page; see `seaway.client.sessions.Frames`."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[Message] = asyncio.Queue(QUEUED)
        self._received: asyncio.Queue[bytes] = asyncio.Queue(QUEUED)
        self._opened: asyncio.Future[httpx.Response | None] = asyncio.get_running_loop().create_future()
        self._refusal: dict[str, Any] = {}
        self._body = b""
        self._over = False

    async def send(self, frame: bytes) -> None:
        """Send a frame."""
        await self._sent.put({"type": "websocket.receive", "bytes": frame})

    async def receive(self) -> bytes:
        """Return the next frame; no bytes after the last one."""
        return b"" if self._over and self._received.empty() else await self._received.get()

    def end(self) -> None:
        """Let `receive` return no bytes after the frames that it has not returned yet."""
        self._over = True
        with suppress(asyncio.QueueFull):
            self._received.put_nowait(b"")

    async def run(self, api: ASGIApp, call: Call[Any], token: str, address: str) -> None:
        """Serve the session until it ends."""
        headers = [(b"host", b"127.0.0.1")] + ([(b"authorization", f"Bearer {token}".encode())] if token else [])
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": call.path,
            "raw_path": call.path.encode(),
            "root_path": "",
            "query_string": urlencode(call.parameters).encode(),
            "headers": headers,
            "client": (address or "127.0.0.1", 0),
            "server": ("127.0.0.1", 80),
            "subprotocols": [SUBPROTOCOL],
            "extensions": {"websocket.http.response": {}},
        }
        await self._sent.put({"type": "websocket.connect"})
        try:
            await api(scope, self._sent.get, self._take)
        finally:
            if not self._opened.done():
                self._opened.set_exception(UnavailableError("the session did not begin"))
                self._opened.exception()  # the page may be gone

    async def opened(self) -> None:
        """Wait until the session is open; raise the errors of `seaway.client.errors`."""
        if (refused := await self._opened) is not None:
            raise error_of(refused)

    async def _take(self, message: Message) -> None:
        match message["type"]:
            case "websocket.accept":
                self._opened.set_result(None)
            case "websocket.send":
                await self._received.put(message["bytes"])
            case "websocket.close":
                await self._received.put(b"")
            case "websocket.http.response.start":
                headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
                self._refusal = {"status_code": message["status"], "headers": headers}
            case "websocket.http.response.body":
                self._body += message.get("body", b"")
                if not message.get("more_body"):
                    self._opened.set_result(httpx.Response(**self._refusal, content=self._body))


@asynccontextmanager
async def open_session(api: ASGIApp, call: Call[Any], token: str, address: str) -> AsyncIterator[PageSession]:
    """Open a session that `seaway.client.calls.jobs` describes; raise the errors of `seaway.client.errors`."""
    session = PageSession()
    running = asyncio.create_task(session.run(api, call, token, address))
    running.add_done_callback(lambda _: session.end())
    try:
        await session.opened()
        yield session
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
