"""Visits: a user on a page."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from nicegui import Client, app, background_tasks, context, ui

from seaway.client.call import Call, Paged
from seaway.client.calls import service as access
from seaway.client.errors import compiles
from seaway.domain.errors import SeawayError, UnauthenticatedError
from seaway.web import addresses
from seaway.web.api_client import ApiClient
from seaway.web.fragment import Fragment
from seaway.web.query_cache import EVERY_S, Callback, Follower, QueryCache
from seaway.web.words import Words

if TYPE_CHECKING:
    from starlette.requests import Request

    from seaway.wire.tokens import CallerOut


_NOTE = "window.shownAddress = location.pathname + location.search;"

HISTORY_SCRIPT = f"""{_NOTE}
addEventListener("popstate", () => {{
    if (location.pathname + location.search !== window.shownAddress) location.reload();
}});"""
"""Script that reloads a page when the user goes back or forward to another view of the page."""


def address_script(address: str, *, back: bool) -> str:
    """Return a script that changes the address of a page.

    Parameters
    ----------
    back
        True to add an entry to the browser's history.
    """
    verb = "pushState" if back else "replaceState"
    return f'history.{verb}({{}}, "", {json.dumps(address)}); {_NOTE}'


T = TypeVar("T")

ROLES = ("viewer", "monitor", "user", "operator", "admin")
"""Roles of visitors in ascending order. Each role includes the permissions of the previous ones."""

COMPILED_EVERY_S = 1.0
"""Interval of calls that wait for the compilation of a policy, seconds. The server waits, too."""

ZONE_SCRIPT = "Intl.DateTimeFormat().resolvedOptions().timeZone"
ZONE_S = 10.0
"""Maximum time for a browser to return its time zone, in seconds."""

ME_EVERY_S = 5.0
"""Interval of checks of a visitor's token, in seconds."""


@dataclass(slots=True)
class Visit:
    """Visitor of a page since the page was loaded.

    Attributes
    ----------
    who
        Identity from the API.
    asker, query_cache
        API client of the visitor, and shared cache of repeated calls.
    words
        Language of the visitor.
    theme
        Theme: light, dark or auto.
    request
        Request for the page.
    client
        Browser tab.
    """

    who: CallerOut
    asker: ApiClient
    query_cache: QueryCache
    words: Words
    theme: str
    request: Request
    client: Client
    error_listeners: list[Callable[[SeawayError | None], None]] = field(default_factory=list)
    """Called with an error when a followed call fails, and with None after it recovers."""

    place: Fragment | None = None
    """Line above the page that shows where it is; None outside a frame."""

    _stops: dict[Follower[Any], Callable[[], None]] = field(default_factory=dict)
    _wrong: dict[Follower[Any], SeawayError] = field(default_factory=dict)
    _retained: dict[str, str | None] | None = None
    _repeated: list[asyncio.Task[None]] = field(default_factory=list)
    _ended: bool = False
    _zone: ZoneInfo | None = None
    _held: Callable[[], None] = lambda: None  # replaced by the first check of the token

    @property
    def _scope(self) -> object:
        """Key of visitors who receive the same answers."""
        return self.who.role, self.who.tenant

    @property
    def query(self) -> dict[str, str]:
        """Parameters of the page's address."""
        return dict(self.request.query_params)

    def part(self, name: str) -> str:
        """Return a variable part of the page's path."""
        return str(self.request.path_params[name])

    def locate(self, *above: tuple[str, str], name: str) -> None:
        """Show the place of a detail page: links to the pages above it, as titles and addresses, and its own name."""
        ui.page_title(f"{name} · Seaway")
        if self.place is not None:
            self.place.show(above=above, name=name)

    def may(self, role: str) -> bool:
        """Report whether the visitor has at least a role."""
        return may(self.who, role)

    async def zone(self) -> ZoneInfo:
        """Return the time zone of the browser; UTC for one that this machine does not know."""
        if self._zone is None:
            name = await self.client.run_javascript(ZONE_SCRIPT, timeout=ZONE_S)
            try:
                self._zone = ZoneInfo(str(name))
            except (ValueError, OSError):
                self._zone = ZoneInfo("UTC")
        return self._zone

    async def ask(self, call: Call[T]) -> T:
        """Make a call with the visitor's token; raise the errors of `seaway.client.errors`."""
        with self._said():
            return await self.asker.ask(call)

    async def ask_when_compiled(self, call: Call[T], waits: Callable[[str], object]) -> T:
        """Make a call as `ask`, and repeat it while a policy that it needs is being compiled.

        Parameters
        ----------
        waits
            Called with the reason before each pause.
        """
        while True:
            try:
                return await self.asker.ask(call)
            except SeawayError as error:
                said = self.words.error(error)
                if self._over() or not compiles(error):
                    raise said from None
            waits(str(said))
            await asyncio.sleep(COMPILED_EVERY_S)

    async def all(self, paged: Paged[T]) -> list[T]:
        """Fetch a list with the visitor's token, up to its limit."""
        with self._said():
            return await self.asker.all(paged)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Raise errors with their texts in the visitor's language."""
        try:
            yield
        except SeawayError as error:
            raise self.words.error(error) from None

    async def follow(
        self, call: Call[T], callback: Callable[[T], Awaitable[None] | None], interval_s: float = EVERY_S
    ) -> Callable[[], None]:
        """Call `callback` with the answer of a call, now and after each change; return a function that stops it.

        Queries repeat only while the browser is connected, and end with the page. Elements that `callback` creates
        are placed in the element that was current at this call.

        Raises
        ------
        SeawayError
            When the first query fails.
        """
        slot = context.slot

        async def in_place(value: T) -> None:
            with slot:
                try:
                    done = callback(value)
                    if inspect.isawaitable(done):
                        await done
                except Exception as error:  # noqa: BLE001  # reported and logged like errors of click handlers
                    app.handle_exception(error)

        return await self._follow(self._scope, call, in_place, interval_s)

    def repeat(self, interval_s: float, act: Callable[[], Awaitable[None] | None]) -> None:
        """Call `act` after each interval while the browser is connected. It ends with the page.

        Timers of the library hold a closed page until their interval is over.
        """
        slot = context.slot

        async def run() -> None:
            while True:
                await asyncio.sleep(interval_s)
                if not self.client.has_socket_connection:
                    continue
                with slot:
                    try:
                        done = act()
                        if inspect.isawaitable(done):
                            await done
                    except Exception as error:  # noqa: BLE001  # reported and logged like errors of click handlers
                        app.handle_exception(error)

        if not self._over():
            self._repeated.append(background_tasks.create(run(), name=f"repeat {act}"))

    def ask_again(self, call: Call[Any]) -> None:
        """Query a followed call immediately, because its answer has changed."""
        self.query_cache.ask_again(self._scope, call)

    async def stay(self) -> None:
        """Check the visitor's token repeatedly, report errors, and stop all calls when the page closes."""
        self.client.on_connect(self._come)
        self.client.on_delete(self._end)
        self.client.on_exception(self._failed)
        await self._follow_identity()

    async def take(self, token: str) -> None:
        """Continue with another token of the same visitor.

        Raises
        ------
        SeawayError
            When the token is invalid.
        """
        self.asker.take(token)
        self._held()
        await self._follow_identity()

    async def _follow_identity(self) -> None:
        """Follow the visitor's identity. Pages with the same token share the query."""
        self._held = await self._follow(self.asker.token, access.me(), lambda _: None, ME_EVERY_S)

    async def _follow(
        self, scope: object, call: Call[T], callback: Callback[T], interval_s: float
    ) -> Callable[[], None]:
        if self._over():
            raise UnauthenticatedError("your token is not valid any more")

        def failed(error: SeawayError | None) -> None:
            if isinstance(error, UnauthenticatedError):
                self.leave()
            else:
                self._report_errors(follower, error)

        follower = Follower(self.asker, callback, failed, looks=lambda: self.client.has_socket_connection)
        with self._said():
            stop = await self.query_cache.follow(scope, call, follower, interval_s)

        def end() -> None:
            self._stops.pop(follower, None)
            stop()
            if follower in self._wrong:
                self._report_errors(follower, None)

        if self._over():
            stop()
        else:
            self._stops[follower] = end
        return end

    def _come(self) -> None:
        """Resume all followed calls when the browser has connected."""
        for follower in list(self._stops):
            self.query_cache.come(follower)

    def _report_errors(self, follower: Follower[Any], error: SeawayError | None) -> None:
        """Report errors of followed calls until all have recovered."""
        self._wrong.pop(follower, None)
        if error is not None:
            self._wrong[follower] = self.words.error(error)
        for show_error in self.error_listeners:
            show_error(next(reversed(self._wrong.values()), None))

    def _failed(self, error: Exception) -> None:
        """Notify the visitor of an error in a handler. The log contains the error, too."""
        if isinstance(error, UnauthenticatedError):
            self.leave()
            return
        words = self.words
        broken = words("An internal error occurred. Reload the page; if that does not help, see the server's log.")
        text = str(error) if isinstance(error, SeawayError) else broken
        close = {"label": words("Close"), "color": "white", "noCaps": True}
        ui.notify(text, type="negative", position="bottom-right", timeout=0, actions=[close])

    def _over(self) -> bool:
        return self._ended or self.client.is_deleted

    def _end(self) -> None:
        self._ended = True
        for stop in list(self._stops.values()):
            stop()
        for task in self._repeated:
            task.cancel()
        self._repeated.clear()
        self.error_listeners.clear()
        self._held = lambda: None

    def leave(self) -> None:
        """Redirect to the log-in page and back, because the token is no longer valid."""
        self._end()
        with self.client:
            ui.navigate.to(f"{addresses.LOGIN}?{urlencode({'next': self._current_address(), 'ended': '1'})}")

    def keep(self, **query: str | None) -> None:
        """Store a view in the page's address, so that it survives a reload.

        None and an empty text remove a parameter.
        """
        self._address(query, back=False)

    def turn(self, **query: str | None) -> None:
        """Store a view like `keep`, in a new entry of the browser's history."""
        self._address(query, back=True)

    def _address(self, query: Mapping[str, str | None], *, back: bool) -> None:
        before, self._retained = (
            self._current_address(),
            {**(self.query if self._retained is None else self._retained), **query},
        )
        ui.run_javascript(address_script(self._current_address(), back=back and self._current_address() != before))

    def _current_address(self) -> str:
        """Return the page's address with the current view."""
        if self._retained is None:
            return addresses.here(self.request)
        text = urlencode({name: value for name, value in self._retained.items() if value})
        path = self.request.url.path
        return f"{path}?{text}" if text else path


def may(who: CallerOut, role: str) -> bool:
    """Report whether a user has at least a role."""
    return who.role in ROLES and ROLES.index(who.role) >= ROLES.index(role)
