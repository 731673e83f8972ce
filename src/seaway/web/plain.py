"""Pages without scripts. The server stores no state for them."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from markupsafe import Markup
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
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
"""HTTP headers: style sheets and form targets only from this server, and no caching."""

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


def broken(request: Request) -> HTMLResponse:
    """Return the page for an internal error. The server's log contains the exception."""
    words = words_for(request)
    why = words("An internal error occurred. Reload the page; if that does not help, see the server's log.")
    return plain(request, "wrong", 500, title=words("Page unavailable"), why=why)


def posted(request: Request) -> HTMLResponse:
    """Return the page for an address that only accepts form data."""
    words = words_for(request)
    why = words("This address accepts form data only. Continue to the overview.")
    return plain(request, "wrong", 405, title=words("No page at this address"), why=why)


def too_many(request: Request, most: int) -> HTMLResponse:
    """Return the page for a token with too many open pages."""
    words = words_for(request)
    why = words(
        "This token has {most} open pages. Close some, wait for half a minute, and reload this page.", most=most
    )
    return plain(request, "wrong", 429, title=words("Too many pages are open"), why=why)


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
    return plain(request, "wrong", status_of(error), title=head, why=str(error))
