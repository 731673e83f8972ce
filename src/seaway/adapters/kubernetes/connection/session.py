"""Connections to one API server with one identity."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from weakref import WeakSet

import aiohttp
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from seaway.adapters.kubernetes.connection.credentials import Identity
from seaway.domain.errors import RejectedError

MAX_CONNECTIONS = 64
"""Maximum number of connections. Each watch uses one; calls share the others."""

USER_AGENT = "seaway"
"""User agent, which appears in the server's audit log."""

MAX_MESSAGE_BYTES = 4 << 20
"""Maximum size of a message of a web socket."""

PING_S = 30.0
"""Interval of pings of a web socket, and the maximum time until the answer, in seconds."""


class _Connect(connect):
    """Connection that follows no redirect, as all requests of a session."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Treat a redirect as an error."""
        return exc


class Session:
    """Connection pool with the credentials of an identity, for one event loop.

    Parameters
    ----------
    identity
        Address and credentials of the server.
    connect_timeout_s
        Timeout of a new connection.
    """

    def __init__(self, identity: Identity, connect_timeout_s: float) -> None:
        self.address = identity.server.rstrip("/")
        self._server_name = identity.server_name or None
        self._proxy = identity.proxy or None
        self._tls = identity.tls
        self._connect_s = connect_timeout_s
        self._expires_at = identity.expires_at
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=identity.tls, limit=MAX_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": USER_AGENT, "accept": "application/json"},
        )
        self._read: set[aiohttp.ClientResponse] = set()
        self._sockets: WeakSet[ClientConnection] = WeakSet()

    @property
    def expired(self) -> bool:
        """True if the client certificate expired. A proxy may refuse it before the request reaches the server."""
        return self._expires_at is not None and datetime.now(UTC) >= self._expires_at

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        content: bytes | None = None,
        idle_timeout_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request. The answer's headers are available when the context is entered.

        Parameters
        ----------
        idle_timeout_s
            Maximum time without data before the connection is closed; None if the caller has its own timeout.

        Raises
        ------
        aiohttp.ClientConnectionError
            When the session is closed.
        RejectedError
            When the path contains ``.`` or ``..``.
        """
        self._require(path)
        async with self._session.request(
            method,
            self.address + path,
            params=params,
            headers=headers,
            data=content,
            allow_redirects=False,
            proxy=self._proxy,
            server_hostname=self._server_name,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s, sock_read=idle_timeout_s),
        ) as answer:
            self._read.add(answer)
            try:
                yield answer
            finally:
                self._read.discard(answer)

    async def socket(
        self, path: str, params: Sequence[tuple[str, str]], headers: Mapping[str, str], subprotocols: Sequence[str]
    ) -> ClientConnection:
        """Open a web socket; raise as `request`.

        Raises
        ------
        websockets.exceptions.InvalidHandshake
            When the server does not accept it.
        """
        self._require(path)
        tls: dict[str, Any] = {"ssl": self._tls} if self.address.startswith("https:") else {}
        if tls and self._server_name:
            tls["server_hostname"] = self._server_name
        opened = await _Connect(
            f"ws{self.address.removeprefix('http')}{path}?{urlencode(params)}",
            subprotocols=[Subprotocol(each) for each in subprotocols],
            compression=None,
            additional_headers=dict(headers),
            user_agent_header=USER_AGENT,
            proxy=self._proxy,
            open_timeout=None,
            ping_interval=PING_S,
            ping_timeout=PING_S,
            close_timeout=1.0,
            max_size=MAX_MESSAGE_BYTES,
            **tls,
        )
        self._sockets.add(opened)
        return opened

    def _require(self, path: str) -> None:
        """Check that the session is open, and that a path stays within itself."""
        if self._session.closed:
            raise aiohttp.ClientConnectionError("its connections are closed")
        if not {".", ".."}.isdisjoint(path.split("/")):  # a cluster may send a name that leads to another path
            raise RejectedError(f"{path} leads out of where it is")

    async def close(self) -> None:
        """Close all connections and fail the readers of open answers, because aiohttp never wakes these readers."""
        for answer in self._read:
            answer.content.set_exception(aiohttp.ClientConnectionError("its connections are closed"))
        for each in list(self._sockets):
            await each.close()
        await self._session.close()
