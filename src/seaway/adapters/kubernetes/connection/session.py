"""Connections to one API server, as somebody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp

from seaway.adapters.kubernetes.connection.credentials import Identity
from seaway.domain.errors import RejectedError

MAX_CONNECTIONS = 64
"""Each watch holds one for as long as it goes on; the others are for calls."""

USER_AGENT = "seaway"
"""What the server's audit log says."""


class Session:
    """A pool of connections, with what an identity shows and trusts. For one event loop.

    Parameters
    ----------
    identity
        Whom to reach, and as whom.
    connect_timeout_s
        How long making a connection may take.
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
        """Whether the certificate that is shown has ended: a proxy may refuse that before anything is asked."""
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
        """Ask for something; the answer's head is there when the context is entered.

        Parameters
        ----------
        idle_timeout_s
            After how long without a byte the server is given up; None where whoever asks has a limit of his own.

        Raises
        ------
        aiohttp.ClientConnectionError
            When it was closed meanwhile.
        RejectedError
            When the path leads out of where it is.
        """
        if self._session.closed:
            raise aiohttp.ClientConnectionError("its connections are closed")
        if not {".", ".."}.isdisjoint(path.split("/")):  # a name that a cluster made up, to lead elsewhere
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
        """Let go of all connections, and tell who still reads: the library leaves them waiting for ever."""
        for answer in self._read:
            answer.content.set_exception(aiohttp.ClientConnectionError("its connections are closed"))
        await self._session.close()
