"""A port that a server answers at: uvicorn, which can be stopped in the middle of everything and started again."""

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
    """uvicorn's, which lets a request reach its connection, so that it can be dropped."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {TRANSPORT: {"transport": self.transport}}


class Listener:
    """One port on loopback.

    Parameters
    ----------
    app
        What answers.
    port
        Which port; 0 for a free one, which is kept over stops.
    certificates
        For TLS; None for plain HTTP.
    clients
        Whether clients have to show a certificate.
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
        """Whether it answers."""
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
            ws="none",
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
        """Answer no more: the port is closed and every connection dropped, whatever was going on.

        uvicorn's own end waits for a while; a server that fails does not.
        """
        server, self._server = self._server, None
        if server is None:
            return
        for port in server.servers:
            port.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(*(port.wait_closed() for port in server.servers))
