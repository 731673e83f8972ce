"""A page's web socket is its visitor's: no one else connects to it, or speaks for it.

The library finds a page by an identifier that stands in the page, and takes whoever knows it for its visitor.
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
"""What the library says where it does not know a page; its script loads the page again then."""

MESSAGES = ("handshake", "event", "javascript_response", "ack")
"""What a page's script sends that the library takes."""

SAID_EVERY_S = 60.0
"""How often the log has a line of what browsers send that makes no sense."""

LONGEST = 200
"""Letters of such a line."""

log = logging.getLogger(__name__)


class Sockets:
    """Stands between the browsers' web sockets and the library.

    Parameters
    ----------
    api
        The application that says who a token lets in.
    """

    def __init__(self, api: ASGIApp) -> None:
        self._api = api
        self._said_s, self._unsaid = float("-inf"), 0

    def guard(self, server: AsyncServer) -> None:
        """Take the place of what the library has the server call."""
        handlers = server.handlers["/"]
        handlers["connect"] = self._connecting(handlers["connect"])
        for name in MESSAGES:
            handlers[name] = self._taking(server, name, handlers[name])
        handlers["log"] = self._logging
        beneath = server.eio.handlers
        beneath["message"] = self._reading(beneath["message"])

    def _connecting(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        async def connecting(sid: str, environ: dict[str, Any], _: object = None) -> None:
            """Let in who asked for the page."""
            if not await tabs.is_of(environ["asgi.scope"], self._api):
                raise RefusedError(REFUSED)
            try:
                await connect(sid, environ)
            except RefusedError:
                raise
            except Exception as error:  # noqa: BLE001  # it is a number that is none, or something left out
                self._say(f"connect: {type(error).__name__}: {error}")
                raise RefusedError(REFUSED) from None

        return connecting

    def _taking(self, server: AsyncServer, name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
        async def taking(sid: str, *given: dict[str, Any]) -> object:
            """Hand on what is of the page to which the socket was let in."""
            try:
                message = given[0]
                if message["client_id"] != tabs.named(server.get_environ(sid)["asgi.scope"]):
                    raise ValueError("it is of another page")
                done = handler(sid, message)
                return await done if inspect.isawaitable(done) else done
            except Exception as error:  # noqa: BLE001  # mistakes of pages themselves do not come here
                self._say(f"{name}: {type(error).__name__}: {error}")
                return False

        return taking

    def _reading(self, read: Callable[..., Any]) -> Callable[..., Any]:
        async def reading(sid: str, packet: str | bytes) -> None:
            """Take a packet, as far as it can be read."""
            try:
                await read(sid, packet)
            except Exception as error:  # noqa: BLE001  # what messages bring about does not come here
                self._say(f"packet: {type(error).__name__}: {error}")

        return reading

    def _logging(self, _: str, *given: object) -> None:
        """Take what a page's script has to complain of."""
        self._say(f"log: {given}")

    def _say(self, what: str) -> None:
        """Put into the log what came, on a line, unless that was done a short while ago."""
        now_s = time.monotonic()
        if now_s - self._said_s < SAID_EVERY_S:
            self._unsaid += 1
            return
        log.warning("a browser sent what makes no sense here (%d times before): %.*r", self._unsaid, LONGEST, what)
        self._said_s, self._unsaid = now_s, 0
