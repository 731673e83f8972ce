"""A page: who may see it, what stands around it, and what is said where it cannot be shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from fastapi import Depends, Request
from nicegui import context, ui
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from seaway.client.calls import access
from seaway.domain.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError
from seaway.web import addresses, cookies
from seaway.web.asking import Asker
from seaway.web.board import Board
from seaway.web.frame import frame, problem
from seaway.web.plain import wrong
from seaway.web.renewals import Renewals
from seaway.web.visit import Visit
from seaway.web.words import words_for

if TYPE_CHECKING:
    from seaway.wire.tokens import WhoOut

Build = Callable[[Visit], Awaitable[None]]
"""Puts a page together for a visitor."""

SLOWEST_S = 10.0
"""How long a page may take before its visitor is told that it failed."""


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
    board: Board
    renewals: Renewals
    menu: Sequence[Page]


class TurnedAwayError(Exception):
    """Somebody comes to a page who may not see it.

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
        request.state.visitor = asker, who

    async def handler(request: Request) -> None:
        visitor: tuple[Asker, WhoOut] = request.state.visitor
        asker, who = visitor
        words, theme = words_for(request), cookies.theme_of(request.cookies)
        visit = Visit(who, asker, platform.board, words, theme, request, context.client)
        lines = [each for each in platform.menu if each.icon and visit.may(each.role)]
        with frame(visit, words(page.title), lines, page.style):
            await visit.stay()
            platform.renewals.watch(visit)
            try:
                await page.build(visit)
            except SeawayError as error:
                problem(words, error)

    ui.page(page.path, response_timeout=SLOWEST_S, dependencies=[Depends(let_in)])(handler)


def _to_login(request: Request) -> Response:
    """Lead to the log-in, and from there back; what does not hold any more stays where it may be renewed."""
    had, here = bool(cookies.token_of(request.cookies)), addresses.here(request)
    query = ({"next": here} if here != addresses.HOME else {}) | ({"ended": "1"} if had else {})
    return RedirectResponse(f"{addresses.LOGIN}?{urlencode(query)}" if query else addresses.LOGIN, 303)
