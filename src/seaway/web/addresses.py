"""Which addresses are whose: the API's, and those of pages."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

API = ("/api", "/metrics", "/healthz", "/readyz", "/standbyz", "/docs", "/openapi.json")
"""What paths begin with that are no pages."""

LOGIN = "/login"
LOGIN_PROVIDER = "/login/provider"
LOGIN_CALLBACK = "/login/callback"
LOGIN_RENEW = "/login/renew"
LOGOUT = "/logout"
PREFERENCES = "/preferences"
STATIC = "/static/seaway"
HOME = "/"

POSTED = (LOGOUT, LOGIN_RENEW)
"""What takes what a page sends, and shows nothing."""

LEFT = "left"
"""The state in which the log-in page is asked for by who has just logged out."""


def is_api(path: str) -> bool:
    """Tell whether a path belongs to the API."""
    return any(path == each or path.startswith(f"{each}/") for each in API)


def own(address: str) -> str:
    """Return an address of this server as path and query; `HOME` where it leads elsewhere, or might for a browser.

    What shows nothing is nowhere to lead to, either. Browsers leave out control characters and spaces at the ends, and
    take a backslash for a slash.
    """
    if not address.isprintable() or address != address.strip() or "\\" in address:
        return HOME
    try:
        parts = urlsplit(address)
    except ValueError:
        return HOME
    if parts.scheme or parts.netloc or not parts.path.startswith("/") or parts.path.startswith("//"):
        return HOME
    if parts.path in POSTED:
        return HOME
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def number_of(text: str, below: int) -> int:
    """Return a number that an address has; 0 where it is none, or not below another."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(below)):
        return 0
    return int(text) if int(text) < below else 0


def here(request: Request) -> str:
    """Return what a browser asked for, as path and query."""
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def origin_of(url: str) -> str:
    """Return the origin of a URL, as a browser writes it; empty for an empty one.

    References
    ----------
    RFC 6454, section 6.2.
    """
    if not url:
        return ""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port not in (None, usual) else "")


def is_own_origin(headers: Headers, public: str) -> bool:
    """Tell whether a request comes from this server's own page, where a browser says from where it comes.

    Parameters
    ----------
    public
        The origin by which people know this server, where that is not what requests call it; else empty.
    """
    origin = headers.get("origin")
    if origin == "null":  # some browsers are told to keep to themselves where a form is
        return headers.get("sec-fetch-site") == "same-origin"
    if origin is None or (public and origin == public):
        return True
    try:
        return urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False
