"""Checks before any other processing of a request: completeness, size of the body, and origin."""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from urllib.parse import urlsplit

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from seaway.api.http.meter import Meter
from seaway.api.http.pipeline import CALLER, CHANGING, HEADERS, INSIDE, OPERATION, Call, RequestPipeline
from seaway.api.http.replies import PIECE, BadRequestError, BytesInFlight, answer
from seaway.api.http.routes import PREFIX
from seaway.api.http.sockets import SOCKET, SWITCHED, as_request
from seaway.application.access import is_loopback
from seaway.application.records import PART_BYTES, Role
from seaway.domain.errors import ForbiddenError, SeawayError, UnavailableError, UnknownError
from seaway.domain.reasons import Reason
from seaway.learning.policies.file import LARGEST_FILE

SUBMIT = ("POST", "/api/v1/jobs")
LARGER = {
    ("PUT", "/api/v1/network"): 8 << 20,
    ("POST", "/api/v1/policies"): LARGEST_FILE,
    ("POST", "/api/v1/whatif"): 32 << 20,
}
"""Maximum body size of operations with large bodies, bytes: the network configuration, policy files, and traces."""

UNDER = {("POST", "/_nicegui/client/"): LARGEST_FILE, ("PUT", f"{PREFIX}/workdirs/"): PART_BYTES}
"""The same for paths that begin so: uploads from the web interface, each of which may be a policy file, and parts of
archives."""

WHOLE = "seaway.whole"
"""Key in a request's scope: True if its body was read completely."""

BODY_S = 30.0
"""Maximum time to receive a body, seconds."""

LEFT_S = 60.0
"""Minimum time between log lines about clients that left, seconds."""

ONCE = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"if-match",
        b"if-none-match",
        b"last-event-id",
    }
)
"""Headers that must not be repeated, since several values would be ambiguous."""

OTHER = "other"
"""Label of requests that are neither operations nor pages."""

HSTS = (b"strict-transport-security", b"max-age=31536000")
"""Header by which browsers use https only. Not sent for loopback names, which all servers of a machine share."""

SECURITY = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]

log = logging.getLogger(__name__)


class Guard:
    """Checks in front of the application.

    Submits bypass the framework and go directly to the request pipeline, since they are the most frequent requests.

    Parameters
    ----------
    app
        Application behind the guard.
    pipeline
        Pipeline for submits.
    meter
        Request counters.
    """

    def __init__(self, app: ASGIApp, pipeline: RequestPipeline, meter: Meter, submit: Call) -> None:
        self._app = app
        self._pipeline = pipeline
        self._meter = meter
        self._submit = submit
        self._limit = pipeline.plane.settings.body_limit_bytes
        self._anonymous_access = pipeline.plane.access.everybody
        self._in_flight = BytesInFlight()
        self._left, self._log_left_s = 0, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on or return an error."""
        if scope["type"] == "websocket" and scope["path"].startswith(f"{PREFIX}/"):
            scope, receive, send = as_request(scope, receive, send)
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, api = perf_counter(), scope.get("app")
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                more = [HSTS] if scope["scheme"] == "https" and not _is_local(scope) else []
                message["headers"] = [*message["headers"], *SECURITY, *more, *_closing_headers(scope, status)]
            await send(message)

        try:
            await self._pass(scope, self._limited(scope, receive), self._in_pieces(scope, receive, sending))
        except Exception as error:  # the client gets a response to every error
            if isinstance(error, ClientDisconnected):  # the client left before the end of its response
                self._note_left(scope["path"])
                return
            if status:
                log.error("the response to %s was interrupted", scope["path"], exc_info=error)
                raise
            await answer(error, scope["path"])(scope, receive, sending)
        if SOCKET in scope and scope[SOCKET].accepted:
            status = SWITCHED
        seconds = perf_counter() - began
        if scope.get("app") is not api:  # a mounted application answered: the web interface
            path = getattr(scope.get("route"), "path", OTHER)
            self._meter.pages.count(OTHER if path.startswith("/_") else path, status, seconds)
        else:
            tally = self._meter.queries if scope.get(INSIDE) else self._meter.requests
            tally.count(scope.get(OPERATION, OTHER), status, seconds)

    def _in_pieces(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Count large bodies while they are sent, in pieces, as the client reads them.

        The start of such a response waits for its body. With too many unread bytes, an error replaces both.
        """
        held: Message = {}
        refused = False

        async def sending(message: Message) -> None:
            nonlocal held, refused
            if refused:
                return
            if message["type"] == "http.response.start" and _announces_large(message):
                held = message
                return
            if not held:
                await send(message)
                return
            start, held = held, {}
            body, follows = memoryview(message.get("body", b"")), message.get("more_body", False)
            try:
                with self._in_flight.sending(_caller(scope), 0 if follows else len(body)):
                    await send(start)
                    for at in range(0, len(body) or 1, PIECE):
                        more = follows or at + PIECE < len(body)
                        await send({**message, "body": bytes(body[at : at + PIECE]), "more_body": more})
            except UnavailableError as error:
                refused = True
                await answer(error, scope["path"])(scope, receive, send)

        return sending

    def _note_left(self, path: str) -> None:
        """Count a client that left, and log the number at most once a minute."""
        self._left += 1
        now_s = perf_counter()
        if now_s >= self._log_left_s:
            log.warning(
                "clients that left before the end of their responses: %d, the latest that to %s", self._left, path
            )
            self._left, self._log_left_s = 0, now_s + LEFT_S

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
        except SeawayError as error:
            reply = answer(error, scope["path"])
            reply.headers["connection"] = "close"
            await reply(scope, receive, send)
            return
        if (scope["method"], scope["path"]) == SUBMIT and not scope["query_string"]:
            request = Request(scope, receive)
            reply = await self._pipeline.serve(request, "submit_job", Role.USER, self._submit)
            await reply(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Check path and headers.

        Raises
        ------
        BadRequestError
            If the request is invalid or too large.
        UnknownError
            If the path contains an encoded slash.
        ForbiddenError
            If the request comes from a page of another site.
        """
        if b"%2f" in scope.get("raw_path", b"").lower():  # the framework would decode it to a path separator
            raise UnknownError(Reason("not_found_no_slash"))
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in headers and name in ONCE:
                raise BadRequestError(400, f"the header {name.decode('latin-1')} is duplicated")
            headers[name] = value
        scope[HEADERS] = headers
        length, limit = headers.get(b"content-length"), self._limit_of(scope)
        if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > limit):
            raise BadRequestError(413, f"the body may have {limit} bytes at most")
        if self._anonymous_access:
            _require_own(headers, changing=scope["method"] in CHANGING or SOCKET in scope)

    def _limit_of(self, scope: Scope) -> int:
        """Return the maximum body size of a request, bytes."""
        method, path = scope["method"], scope["path"]
        starting = (size for (verb, begin), size in UNDER.items() if method == verb and path.startswith(begin))
        return max(self._limit, LARGER.get((method, path), 0), *starting)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Limit the size and the duration of a body. A client that takes too long counts as disconnected."""
        until_s = asyncio.get_running_loop().time() + BODY_S
        limit = self._limit_of(scope)
        size, whole = 0, False

        async def limited() -> Message:
            nonlocal size, whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(until_s):
                    message = await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > limit:
                    raise BadRequestError(413, f"the body may have {limit} bytes at most")
                whole = scope[WHOLE] = not message.get("more_body", False)
            return message

        return limited


def _closing_headers(scope: Scope, status: int) -> list[tuple[bytes, bytes]]:
    """Return headers that close the connection if a request is rejected before its body is read."""
    headers = scope.get(HEADERS, {})
    announced = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    return [(b"connection", b"close")] if status >= 400 and announced and not scope.get(WHOLE) else []


def _announces_large(start: Message) -> bool:
    """Report whether a response has a known length of more than one piece."""
    length = next((value for name, value in start["headers"] if name.lower() == b"content-length"), b"0")
    return int(length) > PIECE


def _caller(scope: Scope) -> str:
    """Return the name under which the unread bytes of a request count: of its token, or of its address."""
    return CALLER.get() or str((scope.get("client") or [""])[0])


def _is_local(scope: Scope) -> bool:
    """Report whether a request names this machine by a loopback name."""
    return is_loopback(_name(f"//{scope.get(HEADERS, {}).get(b'host', b'').decode('latin-1')}"))


def _require_own(headers: dict[bytes, bytes], *, changing: bool) -> None:
    """Reject requests from pages of other sites. Without authentication, their scripts could use this server."""
    host = headers.get(b"host", b"").decode("latin-1")
    if host and not is_loopback(_name(f"//{host}")):
        raise ForbiddenError(Reason("local_only"))
    origin = headers.get(b"origin", b"").decode("latin-1")
    foreign = bool(origin) and urlsplit(origin).netloc != host
    if changing and (foreign or headers.get(b"sec-fetch-site") == b"cross-site"):
        raise ForbiddenError(Reason("other_site"))


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
