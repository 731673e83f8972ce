"""Pages without scripts. The server stores no state for them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, urlencode

from markupsafe import Markup
from nicegui import __version__
from starlette.requests import Request
from starlette.responses import HTMLResponse

from seaway.domain.errors import ForbiddenError, RejectedError, SeawayError, UnauthenticatedError, UnknownError
from seaway.web import addresses, cookies
from seaway.web.fragment import written
from seaway.web.words import LANGUAGES, words_for

_LOGO_PATH = (
    '<path d="M5 12q5.5-5 11 0t11 0M5 18q5.5-5 11 0t11 0M5 24q5.5-5 11 0t11 0" fill="none" stroke="#fff" '
    'stroke-width="2.4" stroke-linecap="round"/>'
)


def _sign(attributes: str, colour: str) -> str:
    return (
        f'<svg viewBox="0 0 32 32" {attributes}><rect width="32" height="32" rx="7" fill="{colour}"/>{_LOGO_PATH}</svg>'
    )


BRAND = _sign('width="26" height="26" aria-hidden="true" focusable="false"', "var(--brand)")
"""Logo in pages, in the colours of the theme."""

ICON = _sign('xmlns="http://www.w3.org/2000/svg"', "#0b6e8a")
"""Logo for the browser's tab, as a separate image."""


HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' data:; "
    "form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
"""HTTP headers: style sheets and form targets only from this server, and no caching."""

ICONS = f"/_nicegui/{__version__}/static/fonts.css"
"""Style sheet of the library with the font of icons."""

SCHEMES = {"auto": "light dark", "light": "light", "dark": "dark"}
"""Colour scheme of the browser's own controls, by theme."""


def plain(request: Request, template: str, status: int = 200, here: str = "", **figures: object) -> HTMLResponse:
    """Return a page.

    Parameters
    ----------
    template
        File of `seaway.web.templates` that extends ``plain``, without its extension.
    here
        Address to return to after a change of the language; empty for the request's own.
    """
    words, theme = words_for(request), cookies.theme_of(request.cookies)
    other = next(each for each in LANGUAGES if each != words.language)
    html = written(
        template,
        words,
        **figures,
        theme=theme,
        scheme=SCHEMES[theme],
        static=addresses.STATIC,
        brand=Markup(BRAND),
        icon=f"data:image/svg+xml,{quote(ICON)}",
        other=other,
        other_name=LANGUAGES[other],
        choose=f"{addresses.PREFERENCES}?{urlencode({'language': other, 'next': here or addresses.here(request)})}",
    )
    return HTMLResponse(html, status, HEADERS)


def _wrong(request: Request, status: int, title: str, why: str) -> HTMLResponse:
    """Return the page for an error: within the frame of pages if the visitor is known."""
    menu, visitor = getattr(request.state, "menu", ()), getattr(request.state, "visitor", None)
    return plain(
        request,
        "wrong",
        status,
        title=title,
        why=why,
        steps=list(_steps(request, status)),
        who=visitor and visitor.who,
        menu=menu,
        above="/" + request.url.path.split("/")[1],
        icons=ICONS,
    )


def _steps(request: Request, status: int) -> Iterator[tuple[str, str]]:
    """Yield what the visitor can do after an error, with an address or an empty text."""
    words, parts, here = words_for(request), request.url.path.split("/")[1:], addresses.here(request)
    match status, parts:
        case 404, ["jobs", job]:
            yield words("Search for jobs with this name"), f"/jobs?{urlencode({'name': job})}"
            yield words("It may be deleted, or belong to another tenant."), ""
        case 404, ["fleet", cluster, node]:
            yield words("Search for nodes with this name"), f"/fleet?{urlencode({'name': node})}"
            yield words("See the nodes of {cluster}", cluster=cluster), f"/fleet?{urlencode({'cluster': cluster})}"
        case 404, ["network", *_]:
            yield words("See all links"), "/network"
        case 403, _:
            yield words("Ask an admin for a token with another role."), ""
            yield words("Log in with another token"), f"{addresses.LOGIN}?{urlencode({'next': here})}"
        case 400, _ if request.url.query:
            yield words("Open this page without its filters"), request.url.path
        case 429 | 500 | 503, _:
            yield words("Reload this page"), here
    if status != 403:
        yield words("Continue to the overview"), addresses.HOME


def broken(request: Request) -> HTMLResponse:
    """Return the page for an internal error. The server's log contains the exception."""
    words = words_for(request)
    why = words("An internal error occurred. Reload the page; if that does not help, see the server's log.")
    return _wrong(request, 500, words("Page unavailable"), why)


def posted(request: Request) -> HTMLResponse:
    """Return the page for an address that only accepts form data."""
    words = words_for(request)
    why = words("This address accepts form data only. Continue to the overview.")
    return _wrong(request, 405, words("No page at this address"), why)


def too_many(request: Request, most: int) -> HTMLResponse:
    """Return the page for a token with too many open pages."""
    words = words_for(request)
    why = words(
        "This token has {most} open pages. Close some, wait for half a minute, and reload this page.", most=most
    )
    return _wrong(request, 429, words("Too many pages are open"), why)


def status_of(error: SeawayError) -> int:
    """Return the HTTP status of an error page."""
    match error:
        case UnknownError():
            return 404
        case ForbiddenError():
            return 403
        case UnauthenticatedError():
            return 401
        case RejectedError():
            return 400
        case _:
            return 503


def wrong(request: Request, error: SeawayError) -> HTMLResponse:
    """Return the page for an error of the API."""
    words = words_for(request)
    match error:
        case UnknownError():
            head = words("Page not found")
        case ForbiddenError():
            head = words("Access denied")
        case RejectedError():
            head = words("Page not available")
        case _:
            head = words("Page unavailable")
    return _wrong(request, status_of(error), head, str(words.error(error)))
