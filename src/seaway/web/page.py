"""Pages: access control, page frame and error pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from fastapi import Depends, Request
from nicegui import context, ui
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from seaway import __version__
from seaway.client.calls import service as access
from seaway.domain.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError, UnavailableError
from seaway.web import addresses, cookies, tabs
from seaway.web.api_client import ApiClient
from seaway.web.drafts import LEAVE, LEAVING
from seaway.web.fragment import Fragment
from seaway.web.parts.bell import Bell, Texts
from seaway.web.parts.palette import Entry, Palette
from seaway.web.plain import BRAND, too_many, wrong
from seaway.web.query_cache import QueryCache
from seaway.web.renewals import Renewals
from seaway.web.tabs import Visitor
from seaway.web.visit import HISTORY_SCRIPT, Visit, may
from seaway.web.words import LANGUAGES, Words, words_for

MENU_SCRIPT = """(() => {
    const narrow = matchMedia("(max-width: 900px)"), button = () => document.querySelector(".menu-button");
    const other = () => document.body.classList.contains("menu-other");
    const turn = on => {
        document.body.classList.toggle("menu-other", on);
        button().ariaExpanded = String(on === narrow.matches);
    };
    window.turnMenu = () => {
        turn(!other());
        if (narrow.matches && other()) document.querySelector(".menu-line").focus();
    };
    addEventListener("load", () => turn(other()));
    narrow.addEventListener("change", () => turn(false));
    addEventListener("keydown", event => {
        if (event.key === "Escape" && narrow.matches && other()) { turn(false); button().focus(); }
    });
})();"""
"""Script of every page.

On narrow screens, as the style sheet defines them, the menu is hidden at first, and Escape hides it.
"""

TURN = "() => turnMenu()"
"""JavaScript that shows or hides the menu."""


def translate_popups(words: Words) -> str:
    """Return JavaScript that translates the library's pop-ups, which are at the end of every page.

    `lost.js` fills in the time of the last figures.
    """
    said = {
        "popup": [
            words("The connection to the server is lost."),
            words("Last figures: {time}. Reconnecting…", time="{time}"),
        ],
        "too_long_message_popup": [words("The message is too long."), words("Make it shorter, and try again.")],
    }
    return f"""addEventListener("DOMContentLoaded", () => {{
    for (const [popup, lines] of Object.entries({json.dumps(said)}))
        document.querySelectorAll(`#${{popup}} > span`).forEach((line, at) => {{ line.textContent = lines[at]; }});
}});"""


ICONS = {"auto": "brightness_auto", "light": "light_mode", "dark": "dark_mode"}

COME_BACK = """event => {
    const address = new URL(event.currentTarget.href);
    address.searchParams.set("next", location.pathname + location.search);
    event.currentTarget.href = address;
}"""
"""JavaScript that adds the page's current address to a link, so that the user returns to the same view."""

DARK: dict[str, bool | None] = {"auto": None, "light": False, "dark": True}


@contextmanager
def frame(visit: Visit, title: str, menu: Sequence[Entry], texts: Texts, style: str = "") -> Iterator[Bell]:
    """Draw the frame of a page, and yield its notifications. The body of the ``with`` statement draws the page."""
    words, path = visit.words, visit.request.url.path
    apply_theme(visit.theme, words, title, style)
    down = f"{addresses.DOWN_SCRIPT}?{urlencode({'of': f'{__version__} {words.language} {visit.theme}'})}"
    worker = f"navigator.serviceWorker?.register({json.dumps(down)}).catch(() => {{}});"
    for script in (HISTORY_SCRIPT, MENU_SCRIPT, translate_popups(words), worker):
        ui.add_head_html(f"<script>{script}</script>")
    ui.add_head_html(f'<script src="{addresses.STATIC}/lost.js"></script>')
    _unmark(visit)
    with ui.element("div").classes("frame"):
        with ui.element("nav").classes("menu").props(f'aria-label="{words("Pages")}"'):
            _menu(words, path, menu)
        with ui.element("div").classes("beside"):
            with ui.element("header").classes("head"):
                with (
                    ui.element("button")
                    .classes("tool menu-button")
                    .props(f'type=button aria-label="{words("Menu")}"') as tool
                ):
                    ui.icon("menu").props("aria-hidden=true")
                tool.on("click", js_handler=TURN)
                ui.label(title).classes("head-title").props("role=heading aria-level=1")
                ui.space()
                Palette(visit, menu)
                bell = Bell(visit, texts)
                _who(visit)
            with ui.element("main").classes("page") as main:
                _trouble(visit)
                visit.place = Fragment("place", words)
                yield bell
    ui.skip_link(words("Skip to content"), target=main)


def _unmark(visit: Visit) -> None:
    """Remove the landmark of the library's page, so that screen readers go to the page within its frame."""
    page = visit.client.content.parent_slot
    assert page is not None
    page.parent.tag = "div"


def apply_theme(theme: str, words: Words, title: str, style: str = "") -> None:
    """Set the title, style sheets, theme and language of a page."""
    ui.page_title(f"{title} · Seaway")
    for sheet in filter(None, ("seaway", "dark", style)):
        ui.add_head_html(f'<link rel="stylesheet" href="{addresses.STATIC}/{sheet}.css">')
    ui.colors(primary="#0b6e8a", secondary="#35546b", accent="#c2571a", positive="#2a7d46", negative="#b3261e")
    ui.add_head_html('<meta name="referrer" content="same-origin">')  # forms send their origin, to this server only
    ui.dark_mode(DARK[theme])
    ui.add_head_html(f"<script>document.documentElement.lang = '{words.language}'</script>")


def _menu(words: Words, path: str, menu: Sequence[Entry]) -> None:
    with ui.link(target=addresses.HOME).classes("brand").props(f'aria-label="{words("Seaway, overview")}"'):
        ui.html(BRAND, sanitize=False)
        ui.label("Seaway")
    with ui.element("div").classes("menu-lines"):
        for each in menu:
            here = path == each.path or (each.path != addresses.HOME and path.startswith(f"{each.path}/"))
            link = ui.link(target=each.path).classes("menu-line")
            if here:
                link.classes("menu-here").props("aria-current=page")
            with link:
                ui.icon(each.icon).props("aria-hidden=true")
                ui.label(words(each.title))


def _who(visit: Visit) -> None:
    words, here = visit.words, quote(addresses.own(str(visit.request.url.path)))
    with ui.element("div").classes("head-tools"):
        following = cookies.THEMES[(cookies.THEMES.index(visit.theme) + 1) % len(cookies.THEMES)]
        said = {"auto": words("as the system"), "light": words("light"), "dark": words("dark")}[visit.theme]
        label = words("Colours: {theme}", theme=said)
        tool = _tool(ICONS[visit.theme], f"{addresses.PREFERENCES}?theme={following}&next={here}", label)
        tool.on("click", js_handler=COME_BACK)
        other = next(each for each in LANGUAGES if each != words.language)
        link = ui.link(target=f"{addresses.PREFERENCES}?language={other}&next={here}").classes("tool tool-text")
        link.on("click", js_handler=COME_BACK)
        with link:
            ui.label(LANGUAGES[other]).props(f"lang={other}")
        whom = visit.who.name + (f" · {visit.who.tenant}" if visit.who.tenant else "")
        with ui.element("div").classes("who"):
            ui.label(whom).classes("who-name")
            ui.label(words(visit.who.role)).classes("who-role")
        if visit.asker.token:
            ui.add_head_html(f"<script>{LEAVING}</script>")
            _log_out(words("Log out"))


def _log_out(label: str) -> None:
    """Draw a log-out form. A link on another site cannot submit it."""
    form = ui.element("form").props(f'method=post action="{addresses.LOGOUT}"')
    form.on("submit", js_handler=LEAVE)
    with form, ui.element("button").classes("tool").props(f'type=submit aria-label="{label}" title="{label}"'):
        ui.icon("logout").props("aria-hidden=true")


def _tool(icon: str, target: str, label: str) -> ui.link:
    with ui.link(target=target).classes("tool").props(f'aria-label="{label}" title="{label}"') as link:
        ui.icon(icon).props("aria-hidden=true")
    return link


def _trouble(visit: Visit) -> None:
    """Draw a line with the reason why the page is not up to date."""
    line = ui.label().classes("trouble").props("role=status")
    line.set_visibility(False)

    def show_error(error: SeawayError | None) -> None:
        if error is not None:
            line.set_text(f"{visit.words('Not up to date:')} {error}")
        line.set_visibility(error is not None)

    visit.error_listeners.append(show_error)


Build = Callable[[Visit], Awaitable[None]]
"""Function that builds a page for a visitor."""

SLOWEST_S = 10.0
"""Time limit for building a page, in seconds. After it, the visitor gets an error."""

LIBRARY_S = 2 * SLOWEST_S
"""Time limit of the library in seconds; the library then shows its own error page."""


@dataclass(frozen=True, slots=True)
class Page:
    """Page in the menu, or a subpage.

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
    texts
        Describes alerts.
    """

    api: ASGIApp
    query_cache: QueryCache
    renewals: Renewals
    menu: Sequence[Page]
    texts: Texts


class PageRefusedError(Exception):
    """Error that refuses access to a page.

    Attributes
    ----------
    response
        Response to the browser.
    """

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def know(request: Request, visitor: Visitor, pages: Sequence[Page]) -> None:
    """Remember the visitor of a request, and the menu of the visitor's role."""
    request.state.visitor = visitor
    request.state.menu = [each for each in pages if each.icon and may(visitor.who, each.role)]


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
            asker = ApiClient.of(request, platform.api, cookies.token_of(request))
            who = await asker.ask(access.me())
            know(request, Visitor(asker, who), platform.menu)
            if who.role == "agent":
                raise ForbiddenError("an agent's token shows no pages")
        except (UnauthenticatedError, RejectedError):
            raise PageRefusedError(_to_login(request)) from None
        except SeawayError as error:
            raise PageRefusedError(wrong(request, error)) from None
        if tabs.count(asker.token) >= tabs.MOST:
            raise PageRefusedError(too_many(request, tabs.MOST))

    async def handler(request: Request) -> None:
        visitor: Visitor = request.state.visitor
        words = replace(words_for(request), currency=visitor.who.currency)
        theme = cookies.theme_of(request.cookies)
        visit = Visit(visitor.who, visitor.asker, platform.query_cache, words, theme, request, context.client)
        tabs.free_when_deleted(visit.client)
        try:
            with frame(visit, words(page.title), request.state.menu, platform.texts, page.style) as bell:
                async with asyncio.timeout(SLOWEST_S):
                    await visit.stay()
                    platform.renewals.watch(visit)
                    await bell.follow()
                    await page.build(visit)
        except Exception as error:
            visit.client.delete()
            if (response := _instead(request, error)) is None:
                raise
            raise PageRefusedError(response) from None
        tabs.drop_unless_it_comes(visit.client)

    ui.page(page.path, response_timeout=LIBRARY_S, dependencies=[Depends(let_in)])(handler)


def _instead(request: Request, error: Exception) -> Response | None:
    """Return the response that replaces a page that failed; None if the error is a bug of Seaway."""
    words = words_for(request)
    match error:
        case UnauthenticatedError():
            return _to_login(request)
        case SeawayError():
            return wrong(request, error)
        case TimeoutError():
            return wrong(request, UnavailableError(words("The server is busy. Try again later.")))
    return None


def _to_login(request: Request) -> Response:
    """Redirect to the log-in page, which redirects back after the log-in.

    An expired token stays in its cookie so that it can be renewed.
    """
    had, here = bool(cookies.token_of(request)), addresses.here(request)
    query = ({"next": here} if here != addresses.HOME else {}) | ({"ended": "1"} if had else {})
    return RedirectResponse(f"{addresses.LOGIN}?{urlencode(query)}" if query else addresses.LOGIN, 303)
