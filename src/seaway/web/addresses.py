"""Addresses of the API and of pages."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

API = ("/api", "/metrics", "/healthz", "/readyz", "/standbyz", "/docs", "/openapi.json")
"""First parts of paths that belong to the API."""

LOGIN = "/login"
LOGIN_PROVIDER = "/login/provider"
LOGIN_CALLBACK = "/login/callback"
LOGIN_RENEW = "/login/renew"
LOGOUT = "/logout"
PREFERENCES = "/preferences"
DOWN = "/down"
DOWN_SCRIPT = "/down.js"
STATIC = "/static/seaway"
HOME = "/"

POSTED = (LOGOUT, LOGIN_RENEW)
"""Paths that accept form data and have no page."""

LEFT = "left"
"""Value of ``state`` in the address of the log-in page after a user logged out."""


def is_api(path: str) -> bool:
    """Report whether a path belongs to the API."""
    return any(path == each or path.startswith(f"{each}/") for each in API)


def own(address: str) -> str:
    """Return the path and query of an address of this server.

    Return `HOME` for a path of `POSTED`, and for an address that a browser could interpret as another server's.
    Browsers ignore control characters and spaces at both ends, and treat a backslash as a slash.
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
    """Return the number in a part of an address; 0 if it is not a number less than `below`."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(below)):
        return 0
    return int(text) if int(text) < below else 0


def here(request: Request) -> str:
    """Return the path and query of a request."""
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def origin_of(url: str) -> str:
    """Return the origin of a URL in the form that browsers send; empty for an empty URL.

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
    """Report whether a request comes from a page of this server; True also without an ``Origin`` header.

    Parameters
    ----------
    public
        Public origin of this server if it differs from the host of its requests; else empty.
    """
    origin = headers.get("origin")
    if origin == "null":  # some browsers hide the origin of a form
        return headers.get("sec-fetch-site") == "same-origin"
    if origin is None or (public and origin == public):
        return True
    try:
        return urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False
