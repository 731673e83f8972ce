"""Access control of web sockets: only a page's visitor can connect to it or send messages for it.

The library identifies a page by an id within it, and accepts any client that knows the id.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
from typing import Any

from socketio import AsyncServer
from socketio.exceptions import ConnectionRefusedError as RefusedError
from starlette.types import ASGIApp

from seaway.web import tabs

REFUSED = "Implicit handshake failed"
"""Reply of the library for an unknown page; its script then reloads the page."""

MESSAGES = ("handshake", "event", "javascript_response", "ack")
"""Messages of a page's script that the library accepts."""

SAID_EVERY_S = 60.0
"""Interval of log entries about invalid messages."""

LONGEST = 200
"""Limit of characters in such an entry."""

log = logging.getLogger(__name__)


class Sockets:
    """Filter between the browsers' web sockets and the library.

    Parameters
    ----------
    api
        Application that authenticates tokens.
    """

    def __init__(self, api: ASGIApp) -> None:
        self._api = api
        self._said_s, self._unsaid = float("-inf"), 0

    def guard(self, server: AsyncServer) -> None:
        """Wrap the library's handlers."""
        handlers = server.handlers["/"]
        handlers["connect"] = self._connecting(handlers["connect"])
        for name in MESSAGES:
            handlers[name] = self._taking(server, name, handlers[name])
        handlers["log"] = self._logging
        beneath = server.eio.handlers
        beneath["message"] = self._reading(beneath["message"])

    def _connecting(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        async def connecting(sid: str, environ: dict[str, Any], _: object = None) -> None:
            """Accept connections from the visitor of the page."""
            if not await tabs.is_of(environ["asgi.scope"], self._api):
                raise RefusedError(REFUSED)
            try:
                await connect(sid, environ)
            except RefusedError:
                raise
            except Exception as error:  # noqa: BLE001  # an invalid number, or a missing field
                self._say(f"connect: {type(error).__name__}: {error}")
                raise RefusedError(REFUSED) from None

        return connecting

    def _taking(self, server: AsyncServer, name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
        async def taking(sid: str, *given: dict[str, Any]) -> object:
            """Forward messages for the page of this socket."""
            try:
                message = given[0]
                if message["client_id"] != tabs.named(server.get_environ(sid)["asgi.scope"]):
                    raise ValueError("it is of another page")
                done = handler(sid, message)
                return await done if inspect.isawaitable(done) else done
            except Exception as error:  # noqa: BLE001  # errors of pages themselves are handled elsewhere
                self._say(f"{name}: {type(error).__name__}: {error}")
                return False

        return taking

    def _reading(self, read: Callable[..., Any]) -> Callable[..., Any]:
        async def reading(sid: str, packet: str | bytes) -> None:
            """Read a packet; drop an invalid one."""
            try:
                await read(sid, packet)
            except Exception as error:  # noqa: BLE001  # errors of message handlers are handled elsewhere
                self._say(f"packet: {type(error).__name__}: {error}")

        return reading

    def _logging(self, _: str, *given: object) -> None:
        self._say(f"log: {given}")

    def _say(self, what: str) -> None:
        """Log an invalid message on one line, at most once per `SAID_EVERY_S`."""
        now_s = time.monotonic()
        if now_s - self._said_s < SAID_EVERY_S:
            self._unsaid += 1
            return
        log.warning("a browser sent what makes no sense here (%d times before): %.*r", self._unsaid, LONGEST, what)
        self._said_s, self._unsaid = now_s, 0
