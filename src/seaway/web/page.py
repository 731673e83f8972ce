"""Pages: access control, frame and error pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Depends, Request
from nicegui import context, ui
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from seaway.client.calls import service as access
from seaway.domain.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError, UnavailableError
from seaway.web import addresses, cookies, tabs
from seaway.web.api_client import Asker
from seaway.web.frame import frame
from seaway.web.plain import too_many, wrong
from seaway.web.query_cache import QueryCache
from seaway.web.renewals import Renewals
from seaway.web.tabs import Visitor
from seaway.web.visit import Visit
from seaway.web.words import words_for

Build = Callable[[Visit], Awaitable[None]]
"""Function that builds a page for a visitor."""

SLOWEST_S = 10.0
"""Time limit of a page; after it the visitor gets an error."""

LIBRARY_S = 2 * SLOWEST_S
"""Time limit of the library, whose error page is not Seaway's."""


@dataclass(frozen=True, slots=True)
class Page:
    """Page of the menu, or below one.

    Attributes
    ----------
    path
        Address, with variable parts in braces.
    title
        Title in English.
    build
        Function that builds the page.
    icon
        Icon in the menu; empty for a page that is not in the menu.
    style
        Additional style sheet, without its extension.
    role
        Lowest role that sees it in the menu. The API enforces permissions.
    """

    path: str
    title: str
    build: Build
    icon: str = ""
    style: str = ""
    role: str = "viewer"


@dataclass(frozen=True, slots=True)
class Platform:
    """Objects that all pages share.

    Attributes
    ----------
    api
        Application that pages call.
    query_cache
        Shared answers of the API.
    renewals
        Renewal of tokens.
    menu
        All pages.
    """

    api: ASGIApp
    query_cache: QueryCache
    renewals: Renewals
    menu: Sequence[Page]


class TurnedAwayError(Exception):
    """Access to a page is refused.

    Attributes
    ----------
    response
        Response to the browser.
    """

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def add_page(page: Page, platform: Platform) -> None:
    """Register a page."""

    async def let_in(request: Request) -> None:
        """Identify the user before any state is created for the page.

        Raises
        ------
        TurnedAwayError
            When the user may not see it.
        """
        try:
            asker = Asker.of(request, platform.api, cookies.token_of(request.cookies))
            who = await asker.ask(access.me())
            if who.role == "agent":
                raise ForbiddenError("an agent's token shows no pages")
        except (UnauthenticatedError, RejectedError):
            raise TurnedAwayError(_to_login(request)) from None
        except SeawayError as error:
            raise TurnedAwayError(wrong(request, error)) from None
        if tabs.count(asker.token) >= tabs.MOST:
            raise TurnedAwayError(too_many(request, tabs.MOST))
        request.state.visitor = Visitor(asker, who)

    async def handler(request: Request) -> None:
        visitor: Visitor = request.state.visitor
        words, theme = words_for(request), cookies.theme_of(request.cookies)
        visit = Visit(visitor.who, visitor.asker, platform.query_cache, words, theme, request, context.client)
        lines = [each for each in platform.menu if each.icon and visit.may(each.role)]
        try:
            with frame(visit, words(page.title), lines, page.style):
                async with asyncio.timeout(SLOWEST_S):
                    await visit.stay()
                    platform.renewals.watch(visit)
                    await page.build(visit)
        except Exception as error:
            visit.client.delete()
            if (response := _instead(request, error)) is None:
                raise
            raise TurnedAwayError(response) from None
        tabs.drop_unless_it_comes(visit.client)

    ui.page(page.path, response_timeout=LIBRARY_S, dependencies=[Depends(let_in)])(handler)


def _instead(request: Request, error: Exception) -> Response | None:
    """Return the response in place of a page that failed; None for a bug of Seaway."""
    words = words_for(request)
    match error:
        case UnauthenticatedError():
            return _to_login(request)
        case SeawayError():
            return wrong(request, error)
        case TimeoutError():
            return wrong(request, UnavailableError(words("The server is busy. Try again in a while.")))
    return None


def _to_login(request: Request) -> Response:
    """Redirect to the log-in page and from there back.

    An expired token stays in its cookie so that it can be renewed.
    """
    had, here = bool(cookies.token_of(request.cookies)), addresses.here(request)
    query = ({"next": here} if here != addresses.HOME else {}) | ({"ended": "1"} if had else {})
    return RedirectResponse(f"{addresses.LOGIN}?{urlencode(query)}" if query else addresses.LOGIN, 303)
