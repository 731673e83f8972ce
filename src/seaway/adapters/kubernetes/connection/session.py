"""Connections to one API server with one identity."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp

from seaway.adapters.kubernetes.connection.credentials import Identity
from seaway.domain.errors import RejectedError

MAX_CONNECTIONS = 64
"""Maximum number of connections. Each watch uses one; calls share the others."""

USER_AGENT = "seaway"
"""User agent, which appears in the server's audit log."""


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
        self._connect_s = connect_timeout_s
        self._expires_at = identity.expires_at
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=identity.tls, limit=MAX_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": USER_AGENT, "accept": "application/json"},
        )
        self._read: set[aiohttp.ClientResponse] = set()

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
        if self._session.closed:
            raise aiohttp.ClientConnectionError("its connections are closed")
        if not {".", ".."}.isdisjoint(path.split("/")):  # a cluster may send a name that leads to another path
            raise RejectedError(f"{path} leads out of where it is")
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

    async def close(self) -> None:
        """Close all connections and fail the readers of open answers, because aiohttp never wakes these readers."""
        for answer in self._read:
            answer.content.set_exception(aiohttp.ClientConnectionError("its connections are closed"))
        await self._session.close()
