"""Health endpoints of a process while another one is the leader."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import Receive, Scope, Send

from seaway.api.http.health import ALIVE, READY_OR_WAITING
from seaway.api.http.replies import json_reply, problem
from seaway.bootstrap.settings import ServerSettings

RETRY_AFTER_S = 2


class Standby:
    """Server in its own thread, on the port that the API server uses later.

    Parameters
    ----------
    settings
        Settings of the API server.
    why
        Returns the reason why this process is not ready.
    can_follow
        Reports whether it can take over from the leader.
    """

    def __init__(self, settings: ServerSettings, why: Callable[[], str], can_follow: Callable[[], bool]) -> None:
        self._why, self._can_follow = why, can_follow
        tls = bool(settings.tls_certificate)
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            ws="none",
            lifespan="off",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_config=None,
            timeout_graceful_shutdown=1,
            ssl_certfile=settings.tls_certificate if tls else None,
            ssl_keyfile=settings.tls_key if tls else None,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def start(self, listener: socket.socket) -> None:
        """Start the server; `listener` remains open after `stop`."""
        own = listener.dup()
        self._thread = threading.Thread(target=self._server.run, args=([own],), name="standby", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the server; idempotent. New connections wait for the API server."""
        self._server.should_exit = True
        if self._thread:
            self._thread.join()
            self._thread = None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of any path."""
        if scope["type"] != "http":
            return
        headers = {"retry-after": str(RETRY_AFTER_S), "connection": "close"}
        unready = problem(503, self._why(), scope["path"], headers=headers)
        fine = json_reply({"status": "ok"}, headers={"connection": "close"})
        well = scope["path"] == ALIVE or (scope["path"] == READY_OR_WAITING and self._can_follow())
        with suppress(OSError):
            await (fine if well else unready)(scope, receive, send)
