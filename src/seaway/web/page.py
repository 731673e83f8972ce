"""A page: who may see it, what stands around it, and what is said where it cannot be shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from nicegui import context, ui
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from seaway.client.calls import access
from seaway.domain.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError
from seaway.web import addresses, cookies
from seaway.web.asking import Asker
from seaway.web.board import Board
from seaway.web.frame import frame, problem
from seaway.web.visit import Visit
from seaway.web.words import words_for

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


def add_page(page: Page, menu: list[Page], api: ASGIApp, board: Board) -> None:
    """Serve a page.

    Parameters
    ----------
    menu
        All pages, for the menu.
    api
        The application that pages ask.
    board
        Has answers at hand that many look at.
    """

    async def handler(request: Request) -> Response | None:
        words = words_for(request)
        try:
            asker = Asker.of(request, api, cookies.token_of(request.cookies))
            who = await asker.ask(access.me())
            if who.role == "agent":
                raise ForbiddenError("an agent's token shows no pages")
        except (UnauthenticatedError, RejectedError):
            return _to_login(request)
        except SeawayError as error:
            problem(words, error)
            return None
        theme = cookies.theme_of(request.cookies)
        visit = Visit(who, asker, board, words, theme, request, context.client)
        lines = [each for each in menu if each.icon and visit.may(each.role)]
        with frame(visit, words(page.title), lines, page.style):
            await visit.stay()
            try:
                await page.build(visit)
            except SeawayError as error:
                problem(words, error)
        return None

    ui.page(page.path, response_timeout=SLOWEST_S)(handler)


def _to_login(request: Request) -> Response:
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    wanted = f"?{urlencode({'next': here})}" if here != addresses.HOME else ""
    response = RedirectResponse(f"{addresses.LOGIN}{wanted}", 303)
    if cookies.token_of(request.cookies):
        cookies.drop_token(response)
    return response
