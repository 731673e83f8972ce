"""Web sockets of operations. The handshake is a GET request, which passes all checks of other requests.

References
----------
ASGI, WebSocket Denial Response: an ordinary response instead of a web socket.
"""

from __future__ import annotations

from fastapi import Request, Response
from starlette.types import Message, Receive, Scope, Send

from seaway.api.http.replies import problem
from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

SOCKET = "seaway.socket"
"""Key in a request's scope: the web socket that the client requests; absent for other requests."""

SCHEMES = {"ws": "http", "wss": "https"}

SWITCHED = 101
"""Status of an accepted handshake."""


class Socket:
    """Web socket that a client requests.

    Attributes
    ----------
    subprotocols
        Subprotocols that the client offers.
    accepted
        True after the handshake.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.subprotocols: list[str] = scope.get("subprotocols", [])
        self.accepted = False
        self._receive, self._send = receive, send

    async def accept(self, subprotocol: str) -> None:
        """Complete the handshake."""
        await self._receive()  # the request to connect
        await self._send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": []})
        self.accepted = True

    async def receive(self) -> bytes | None:
        """Return the next binary message; None if the client left.

        Raises
        ------
        RejectedError
            If the message is a text.
        """
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            return None
        data = message.get("bytes")
        if data is None:
            raise RejectedError(Reason("messages_binary"))
        return bytes(data)

    async def send(self, data: bytes) -> None:
        """Send a binary message, when the client has read most of the earlier ones.

        Raises
        ------
        OSError
            If the client left.
        """
        await self._send({"type": "websocket.send", "bytes": data})

    async def close(self) -> None:
        """Close the connection; raise as `send`."""
        await self._send({"type": "websocket.close", "code": 1000, "reason": ""})


def as_request(scope: Scope, receive: Receive, send: Send) -> tuple[Scope, Receive, Send]:
    """Return a handshake as a request, whose response is sent unless the web socket is accepted."""
    request = {
        **scope,
        "type": "http",
        "method": "GET",
        "scheme": SCHEMES[scope.get("scheme", "ws")],
        SOCKET: Socket(scope, receive, send),
    }

    async def no_body() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def refuse(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    return request, no_body, refuse


def socket_of(request: Request, subprotocol: str) -> Socket | Response:
    """Return the web socket that a request asks for, or the response to a request for something else.

    Raises
    ------
    RejectedError
        If the client does not offer the subprotocol.
    """
    socket: Socket | None = request.scope.get(SOCKET)
    if socket is None:
        detail = "this operation requires a web socket"
        return problem(426, detail, request.scope["path"], headers={"upgrade": "websocket", "connection": "upgrade"})
    if subprotocol not in socket.subprotocols:
        raise RejectedError(Reason("must_offer", subprotocol=subprotocol), where="Sec-WebSocket-Protocol")
    return socket
