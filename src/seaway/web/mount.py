"""Mount of the pages next to the API, and limits of their web sockets."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import nicegui.ui_run_with as run_with_module
from engineio.async_drivers.asgi import WebSocket
from fastapi import FastAPI
from nicegui import __version__, core, ui
from nicegui import app as nicegui_app
from socketio import AsyncServer, packet
from socketio.exceptions import ConnectionRefusedError as RefusedError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seaway.client.calls import service as access
from seaway.domain.errors import ForbiddenError, InvariantError, SeawayError, UnknownError
from seaway.web import addresses, cookies, tabs
from seaway.web.api_client import ApiClient
from seaway.web.cookies import SECURE
from seaway.web.page import Page, PageRefusedError, Platform, add_page, know
from seaway.web.pages import settings
from seaway.web.pages.fleet import alerts, fleet, history, node, overview
from seaway.web.pages.jobs import compare, job, submit
from seaway.web.pages.jobs import list as jobs
from seaway.web.pages.network import link, network
from seaway.web.pages.policies import policies
from seaway.web.pages.queues import queues, schedule
from seaway.web.pages.whatif import whatif
from seaway.web.plain import ICON, broken, posted, wrong
from seaway.web.provider import Provider, ProviderSettings
from seaway.web.query_cache import Busy, QueryCache
from seaway.web.renewals import Renewals
from seaway.web.routes import LoginRoutes
from seaway.web.words import words_for

REFUSED = "Implicit handshake failed"
"""Reply of the library for an unknown page, after which its script reloads the page."""

MESSAGES = ("handshake", "event", "javascript_response", "ack")
"""Messages of a page's script that the library accepts."""

BINARY = (str(packet.BINARY_EVENT), str(packet.BINARY_ACK))
"""Kinds of packets that announce binary ones. Pages send none, and the library would collect them without a limit."""

PACKET_TYPES = tuple("0123456")
"""First characters of packets. The library logs an exception for another one."""

WINDOW_S = 60.0
MAX_BYTES = 32 << 20
"""Maximum number of characters that a browser sends on one web socket within `WINDOW_S`."""

LONGEST_BEFORE_PAGE = 4096
"""Maximum length of a packet on a web socket that is not connected to a page yet. Everyone can open one, and parsing a
long packet takes up to half a second.
"""

LOG_INTERVAL_S = 60.0
"""Minimum interval between two log entries about invalid messages, in seconds."""

LONGEST = 200
"""Maximum number of characters in such an entry."""

log = logging.getLogger(__name__)


class _WebSocket(WebSocket):  # type: ignore[misc]  # the library has no types
    """Web socket of the library whose end is no error.

    The library keeps an error in a task of the frame that the error refers to. Such cycles stay for long, see
    `seaway.api.http.server.tuned_gc`.
    """

    def __init__(self, handler: Callable[..., Any], server: Any) -> None:  # noqa: ANN401  # the library has no types
        super().__init__(handler, server)
        self._longest = server.max_http_buffer_size

    async def wait(self) -> str | bytes | None:
        """Return the next packet; None at the end, or if it is too long or has no type."""
        try:
            received: str | bytes = await super().wait()
        except OSError:
            return None
        valid = isinstance(received, bytes) or received[:1] in PACKET_TYPES
        return received if valid and len(received) <= self._longest else None


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
        self._received: dict[str, tuple[float, int]] = {}  # start of the window, and characters since then

    def guard(self, server: AsyncServer) -> None:
        """Wrap the library's handlers."""
        handlers = server.handlers["/"]
        handlers["connect"] = self._connecting(handlers["connect"])
        for name in MESSAGES:
            handlers[name] = self._taking(server, name, handlers[name])
        handlers["log"] = self._logging
        server.eio._async["websocket"] = _WebSocket  # noqa: SLF001
        beneath = server.eio.handlers
        beneath["message"] = self._reading(server, beneath["message"])
        beneath["disconnect"] = self._leaving(beneath["disconnect"])

    def _connecting(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        async def connecting(sid: str, environ: dict[str, Any], _: object = None) -> None:
            """Accept connections only from the visitor of the page."""
            if not await tabs.is_of(environ["asgi.scope"], self._api):
                raise RefusedError(REFUSED)
            try:
                await connect(sid, environ)
            except RefusedError:
                raise
            except Exception as error:  # noqa: BLE001  # an invalid number, or a missing field
                self._log_invalid(f"connect: {type(error).__name__}: {error}")
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
                self._log_invalid(f"{name}: {type(error).__name__}: {error}")
                return False

        return taking

    def _reading(self, server: AsyncServer, read: Callable[..., Any]) -> Callable[..., Any]:
        async def reading(sid: str, received: str | bytes) -> None:
            """Read a packet. Drop an invalid one. Disconnect a browser that sends binary packets, or too much."""
            if isinstance(received, bytes) or received.startswith(BINARY):
                self._log_invalid("packet: binary packets are not accepted")
                await server.eio.disconnect(sid)
                return
            if len(received) > LONGEST_BEFORE_PAGE and not _is_connected(server, sid):
                self._log_invalid(f"packet: {len(received)} characters before a page")
                await server.eio.disconnect(sid)
                return
            if self._add(sid, len(received)) > MAX_BYTES:
                self._log_invalid(f"packet: more than {MAX_BYTES} characters in {WINDOW_S:g} s")
                await server.eio.disconnect(sid)
                return
            try:
                await read(sid, received)
            except Exception as error:  # noqa: BLE001  # errors of message handlers are handled elsewhere
                self._log_invalid(f"packet: {type(error).__name__}: {error}")

        return reading

    def _leaving(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        async def leaving(sid: str, *reason: object) -> None:
            """Forget a web socket."""
            self._received.pop(sid, None)
            await leave(sid, *reason)

        return leaving

    def _add(self, sid: str, size: int) -> int:
        """Count received characters; return their number in the current window."""
        now_s = time.monotonic()
        began_s, before = self._received.get(sid, (now_s, 0))
        if now_s - began_s > WINDOW_S:
            began_s, before = now_s, 0
        self._received[sid] = began_s, before + size
        return before + size

    def _logging(self, _: str, *given: object) -> None:
        self._log_invalid(f"log: {given}")

    def _log_invalid(self, what: str) -> None:
        """Log an invalid message on one line, at most once per `LOG_INTERVAL_S`."""
        now_s = time.monotonic()
        if now_s - self._said_s < LOG_INTERVAL_S:
            self._unsaid += 1
            return
        log.warning("a browser sent an invalid message (%d times before): %.*r", self._unsaid, LONGEST, what)
        self._said_s, self._unsaid = now_s, 0


def _is_connected(server: AsyncServer, sid: str) -> bool:
    """Report whether a web socket is connected to a page of its visitor."""
    known = server.manager.sid_from_eio_sid(sid, "/")
    return known is not None and server.manager.is_connected(known, "/")


PAGES = (
    Page("/", "Overview", overview.build, "space_dashboard"),
    Page("/submit", "Submit", submit.build, "add_circle", "jobs", "user"),
    Page("/jobs", "Jobs", jobs.build, "list_alt", "jobs"),
    Page("/jobs/{job}", "Job", job.build, style="jobs"),
    Page("/compare", "Compare", compare.build, style="jobs"),
    Page("/queues", "Queues", queues.build, "queue", "queues"),
    Page("/schedule", "Schedule", schedule.build, "view_timeline", "schedule"),
    Page("/history", "History", history.build, "query_stats", "history"),
    Page("/fleet", "Fleet", fleet.build, "dns", "fleet"),
    Page("/fleet/{cluster}/{node}", "Node", node.build, style="fleet"),
    Page("/network", "Network", network.build, "hub", "network"),
    Page("/network/{source}/{target}", "Link", link.build, style="network"),
    Page("/policies", "Policies", policies.build, "psychology", "policies"),
    Page("/whatif", "What if", whatif.build, "science", "whatif", "operator"),
    Page("/settings", "Settings", settings.build, "settings", "settings"),
)
"""All pages in the order of the menu."""

LIBRARY = "3.18"
"""Supported version of NiceGUI.

Check these internals before an upgrade: the objects that it searches at start, its last route, and the messages of its
script with the lookup of their page. Also check the ids of its pop-ups, and the name that marks lines in its editor.
"""

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
"""Content security policy. It forbids foreign content and foreign frames. The library's templates require eval."""

LEFT = "No response returned."
"""Error message of the framework when a browser disconnects before the response."""

RECONNECT_S = 30.0
"""Lifetime of a page after its browser loses the connection, in seconds."""


def mount(
    app: FastAPI,
    api: ASGIApp,
    provider: ProviderSettings | None = None,
    public_url: str = "",
    busy: Busy = lambda: False,
) -> None:
    """Serve pages next to the API; call this once per process.

    Parameters
    ----------
    app
        Application of the API for external clients.
    api
        Application of the API for pages.
    provider
        Identity provider for log-ins, in addition to Seaway's own tokens; None for none.
    public_url
        Public URL if it differs from the listen address; else empty.
    busy
        Reports whether a scheduling cycle is running; pages then use little CPU time.

    Raises
    ------
    InvariantError
        When the version of the library is not `LIBRARY`.
    """
    _check_library()
    public, renewals = addresses.origin_of(public_url), Renewals()
    platform = Platform(api, QueryCache(busy), renewals, PAGES, alerts.texts)
    nicegui_app.add_static_files(addresses.STATIC, Path(str(files("seaway.web") / "static")))
    for page in PAGES:
        add_page(page, platform)
    entrance = LoginRoutes(api, Provider(provider) if provider else None, renewals)
    entrance.add_to(nicegui_app)
    ui.run_with(
        app,
        title="Seaway",
        favicon=ICON,
        dark=None,
        reconnect_timeout=RECONNECT_S,
        tailwind=False,
        binding_refresh_interval=None,
        show_welcome_message=False,
    )
    run_with_module.gc = _Objects  # type: ignore[assignment,attr-defined]  # see `_Objects`
    if getattr(app.router.routes[-1], "app", None) is not core.app:
        raise InvariantError("NiceGUI is not mounted where it was: look at `mount` of seaway.web")
    app.router.routes[-1] = _Pages(core.app, api, public)  # replaces a mount that includes the API's paths
    Sockets(api).guard(core.sio)
    core.app.add_exception_handler(PageRefusedError, _refuse)

    async def unknown(request: Request, _: Exception) -> Response:
        """Return an error page, with the menu if a log-in is known."""
        with suppress(SeawayError):
            asker = ApiClient.of(request, api, cookies.token_of(request))
            know(request, tabs.Visitor(asker, await asker.ask(access.me())), PAGES)
        words = words_for(request)
        return wrong(request, UnknownError(words("No page has this address.")))

    core.app.add_exception_handler(404, unknown)  # the library's own stores state for each unknown path
    core.app.add_exception_handler(405, _posted)
    core.app.add_exception_handler(Exception, _broken)  # the library's own shows the exception


def _check_library() -> None:
    if not __version__.startswith(f"{LIBRARY}."):
        raise InvariantError(
            f"pages are made for NiceGUI {LIBRARY}, and this is {__version__}: install nicegui~={LIBRARY}.0"
        )


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, PageRefusedError)
    return error.response


async def _posted(request: Request, _: Exception) -> Response:
    return posted(request)


async def _broken(request: Request, _: Exception) -> Response:
    return broken(request)  # the server logs the exception


class _Objects:
    """Replacement for the `gc` module in the library, which searches all objects for its server.

    Other threads create tuples at the same time, and Python raises SystemError for an incomplete tuple
    (`gc.get_objects`). Seaway uses no feature that requires the server.
    """

    @staticmethod
    def get_objects() -> list[object]:
        """Return no objects."""
        return []


class _Pages(Mount):
    """Mount of all paths except the API's.

    It accepts requests only from this server's own pages, and requests for a page only from the page's visitor.
    """

    def __init__(self, app: ASGIApp, api: ASGIApp, public: str) -> None:
        super().__init__("/", app)
        self._api, self._public = api, public

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match paths of pages."""
        if scope["type"] in ("http", "websocket") and addresses.is_api(scope["path"]):
            return Match.NONE, {}
        return super().matches(scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page or one of its resources."""
        scope["app"] = self.app  # needed also for a response that is refused here
        scope[SECURE] = self._public.startswith("https:")
        if not addresses.is_own_origin(Headers(scope=scope), self._public):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": "another site's page"})
            else:
                refused = ForbiddenError("this comes from another site's page")
                await wrong(Request(scope), refused)(scope, receive, send)
            return
        if scope["path"].startswith(tabs.OF_TABS) and not await tabs.is_of(scope, self._api):
            refused = ForbiddenError("this message belongs to a page of another user or a closed page")
            await wrong(Request(scope), refused)(scope, receive, send)
            return

        exchange = _Exchange(receive, send)
        try:
            await super().handle(scope, exchange.receive, exchange.send)
        except RuntimeError as error:
            if str(error) != LEFT:
                raise
        finally:
            exchange.end()


class _Exchange:
    """Request for a page or one of its resources, and the response.

    The library keeps `receive` and `send` in cycles, which stay for long (see `seaway.api.http.server.tuned_gc`). So
    they must not refer to the connection after its end.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send

    async def receive(self) -> Message:
        """Return a part of the request."""
        return await self._receive()

    async def send(self, message: Message) -> None:
        """Send a part of the response, with the content security policy of pages."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("text/html"):
                headers.setdefault("content-security-policy", POLICY)
                headers["cache-control"] = "no-store"
        await self._send(message)

    def end(self) -> None:
        """Forget the connection."""
        self._receive = self._send = _ended


async def _ended(*_: Message) -> Any:  # noqa: ANN401  # it never returns
    raise OSError("the connection has ended")
