"""A user who looks at a page."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from nicegui import Client, app, context, ui

from seaway.client.call import Call, Paged
from seaway.client.calls import service as access
from seaway.domain.errors import SeawayError, UnauthenticatedError
from seaway.web import addresses
from seaway.web.api_client import Asker
from seaway.web.query_cache import EVERY_S, Callback, Follower, QueryCache
from seaway.web.words import Words

if TYPE_CHECKING:
    from starlette.requests import Request

    from seaway.wire.tokens import CallerOut


_NOTE = "window.shownAddress = location.pathname + location.search;"

GOING_BACK = f"""{_NOTE}
addEventListener("popstate", () => {{
    if (location.pathname + location.search !== window.shownAddress) location.reload();
}});"""
"""Has a page be loaded again where a user goes back to, or on: its address says what was looked at."""


def turning(address: str, *, back: bool) -> str:
    """Return the script that shows an address.

    Parameters
    ----------
    back
        Whether one is to get back to what was there before.
    """
    verb = "pushState" if back else "replaceState"
    return f'history.{verb}({{}}, "", {json.dumps(address)}); {_NOTE}'


T = TypeVar("T")

ROLES = ("viewer", "user", "operator", "admin")
"""Who looks at pages; each may do what those before may."""

ME_EVERY_S = 5.0
"""How often it is seen whether a visitor's token still holds."""


@dataclass(slots=True)
class Visit:
    """A visitor on one page, from its load on.

    Attributes
    ----------
    who
        Who it is, as the API sees him.
    asker, board
        Ask the API in his name: once, or again and again.
    words
        His language.
    theme
        Light, dark or auto.
    request
        What his browser asked for.
    client
        His browser's tab.
    """

    who: CallerOut
    asker: Asker
    query_cache: QueryCache
    words: Words
    theme: str
    request: Request
    client: Client
    error_listeners: list[Callable[[SeawayError | None], None]] = field(default_factory=list)
    """Told when following fails, and with None when it is well again."""

    _stops: dict[Follower[Any], Callable[[], None]] = field(default_factory=dict)
    _wrong: dict[Follower[Any], SeawayError] = field(default_factory=dict)
    _retained: dict[str, str | None] | None = None
    _ended: bool = False
    _held: Callable[[], None] = lambda: None  # until it is looked at

    @property
    def _scope(self) -> object:
        """Who sees the same as he."""
        return self.who.role, self.who.tenant

    @property
    def query(self) -> dict[str, str]:
        """What the page's address asks for."""
        return dict(self.request.query_params)

    def part(self, name: str) -> str:
        """Return a part of the page's path."""
        return str(self.request.path_params[name])

    def may(self, role: str) -> bool:
        """Tell whether he has at least a role."""
        return may(self.who, role)

    async def ask(self, call: Call[T]) -> T:
        """Make a call in his name; raises what `seaway.client.errors` has."""
        return await self.asker.ask(call)

    async def all(self, paged: Paged[T]) -> list[T]:
        """Fetch a list in his name, as far as it is wanted."""
        return await self.asker.all(paged)

    async def follow(
        self, call: Call[T], callback: Callable[[T], Awaitable[None] | None], interval_s: float = EVERY_S
    ) -> Callable[[], None]:
        """Have `callback` take the answer of a call now, and whenever it has changed; return what ends that.

        It is asked again only while his browser is connected.

        Elements that `callback` makes belong to where this is called. It ends by itself with the page.

        Raises
        ------
        SeawayError
            What goes wrong with the first answer.
        """
        slot = context.slot

        async def in_place(value: T) -> None:
            with slot:
                try:
                    done = callback(value)
                    if inspect.isawaitable(done):
                        await done
                except Exception as error:  # noqa: BLE001  # it is told and logged as those of pressing something
                    app.handle_exception(error)

        return await self._follow(self._scope, call, in_place, interval_s)

    def ask_again(self, call: Call[Any]) -> None:
        """Have a call that he follows be asked at once, for its answer is known to have changed."""
        self.query_cache.ask_again(self._scope, call)

    async def stay(self) -> None:
        """See again and again whether he may still look, tell him what goes wrong, and end all when he leaves."""
        self.client.on_connect(self._come)
        self.client.on_delete(self._end)
        self.client.on_exception(self._failed)
        await self._see_whether_it_holds()

    async def take(self, token: str) -> None:
        """Go on by another token of the same visitor.

        Raises
        ------
        SeawayError
            When it does not hold.
        """
        self.asker.take(token)
        self._held()
        await self._see_whether_it_holds()

    async def _see_whether_it_holds(self) -> None:
        """Follow who he is, together with those who have the same token."""
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
                self._say(follower, error)

        follower = Follower(self.asker, callback, failed, looks=lambda: self.client.has_socket_connection)
        stop = await self.query_cache.follow(scope, call, follower, interval_s)

        def end() -> None:
            self._stops.pop(follower, None)
            stop()
            if follower in self._wrong:
                self._say(follower, None)

        if self._over():
            stop()
        else:
            self._stops[follower] = end
        return end

    def _come(self) -> None:
        """Have what he follows be asked again and again: his browser is there."""
        for follower in list(self._stops):
            self.query_cache.come(follower)

    def _say(self, follower: Follower[Any], error: SeawayError | None) -> None:
        """Say what is wrong with what is followed, as long as anything is."""
        self._wrong.pop(follower, None)
        if error is not None:
            self._wrong[follower] = error
        for show_error in self.error_listeners:
            show_error(next(reversed(self._wrong.values()), None))

    def _failed(self, error: Exception) -> None:
        """Tell him that something that he did, or that came, could not be dealt with; the log has it, too."""
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
        """Follow nothing any more."""
        self._ended = True
        for stop in list(self._stops.values()):
            stop()

    def leave(self) -> None:
        """End it where a token does not hold any more: nothing new is shown; the page leads to the log-in, and back."""
        self._end()
        with self.client:
            ui.navigate.to(f"{addresses.LOGIN}?{urlencode({'next': self._here(), 'ended': '1'})}")

    def keep(self, **query: str | None) -> None:
        """Put into the page's address what is looked at, so that it survives a reload; None and empty leave it out."""
        self._address(query, back=False)

    def turn(self, **query: str | None) -> None:
        """Do so where something else is turned to, so that one gets back to what was there before."""
        self._address(query, back=True)

    def _address(self, query: Mapping[str, str | None], *, back: bool) -> None:
        before, self._retained = self._here(), {**(self.query if self._retained is None else self._retained), **query}
        ui.run_javascript(turning(self._here(), back=back and self._here() != before))

    def _here(self) -> str:
        """Return the page's address with what is looked at."""
        if self._retained is None:
            return addresses.here(self.request)
        text = urlencode({name: value for name, value in self._retained.items() if value})
        path = self.request.url.path
        return f"{path}?{text}" if text else path


def may(who: CallerOut, role: str) -> bool:
    """Tell whether a user has at least a role."""
    return who.role in ROLES and ROLES.index(who.role) >= ROLES.index(role)
