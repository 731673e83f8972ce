"""A page: who may see it, what stands around it, and what is said where it cannot be shown."""

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
"""Puts a page together for a visitor."""

SLOWEST_S = 10.0
"""How long a page may take before its visitor is told that it failed."""

LIBRARY_S = 2 * SLOWEST_S
"""How long the library would wait; what it says then is no page of ours."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes
    ----------
    path
        Its address, with parts in braces.
    title
        What it is called, in English.
    build
        Puts it together.
    icon
        Its sign in the menu; empty for a page that is not there.
    style
        The style sheet that it has besides everybody's, without its ending.
    role
        Who sees it in the menu. What may be done on it the API says.
    """

    path: str
    title: str
    build: Build
    icon: str = ""
    style: str = ""
    role: str = "viewer"


@dataclass(frozen=True, slots=True)
class Platform:
    """What all pages have in common.

    Attributes
    ----------
    api
        The application that pages ask.
    board
        Has answers at hand that many look at.
    renewals
        Has tokens renewed before they end.
    menu
        All pages.
    """

    api: ASGIApp
    query_cache: QueryCache
    renewals: Renewals
    menu: Sequence[Page]


class TurnedAwayError(Exception):
    """A user comes to a page who may not see it.

    Attributes
    ----------
    response
        What he gets instead.
    """

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def add_page(page: Page, platform: Platform) -> None:
    """Serve a page."""

    async def let_in(request: Request) -> None:
        """Find out who comes, before anything is made and kept for him.

        Raises
        ------
        TurnedAwayError
            When he may not look.
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
    """Return what is shown in place of a page that could not be made; None where that is a mistake of ours."""
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
    """Lead to the log-in, and from there back; what does not hold any more stays where it may be renewed."""
    had, here = bool(cookies.token_of(request.cookies)), addresses.here(request)
    query = ({"next": here} if here != addresses.HOME else {}) | ({"ended": "1"} if had else {})
    return RedirectResponse(f"{addresses.LOGIN}?{urlencode(query)}" if query else addresses.LOGIN, 303)
