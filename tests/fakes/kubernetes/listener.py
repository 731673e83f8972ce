"""A port for a server: uvicorn, with immediate stops and restarts."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tests.fakes.kubernetes.app import TRANSPORT, Application
from tests.fakes.kubernetes.certificates import Certificates


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which gives a request its connection, to drop it."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {TRANSPORT: {"transport": self.transport}}


class Listener:
    """One port on loopback.

    Parameters
    ----------
    app
        The ASGI application.
    port
        The port; 0 for a free one, which stays the same over stops.
    certificates
        For TLS; None for plain HTTP.
    clients
        Whether clients must present a certificate.
    """

    def __init__(
        self, app: Application, port: int = 0, certificates: Certificates | None = None, *, clients: bool = False
    ) -> None:
        self._app = app
        self.port = port
        self._certificates = certificates
        self._clients = clients
        self._server: uvicorn.Server | None = None

    @property
    def running(self) -> bool:
        """True while it answers."""
        return self._server is not None

    async def start(self) -> None:
        """Begin to answer."""
        if self._server is not None:
            return
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("127.0.0.1", self.port))
        self.port = opened.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            http=_Protocol,
            ws="websockets-sansio",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=120,
        )
        config.load()
        config.ssl = self._context()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([opened])
        self._server = server

    def _context(self) -> ssl.SSLContext | None:
        if self._certificates is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            certificate, key, authority = self._certificates.write(Path(folder))
            context.load_cert_chain(certificate, key)
            if self._clients:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(authority)
        return context

    async def stop(self) -> None:
        """Stop immediately: close the port and drop every connection, whatever their state.

        uvicorn's own shutdown waits for a while; a server that fails does not.
        """
        server, self._server = self._server, None
        if server is None:
            return
        for port in server.servers:
            port.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(*(port.wait_closed() for port in server.servers))
