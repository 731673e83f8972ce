"""Which addresses are whose: the API's, and those of pages."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers

API = ("/api", "/metrics", "/healthz", "/readyz", "/standbyz", "/docs", "/openapi.json")
"""What paths begin with that are no pages."""

LOGIN = "/login"
LOGIN_PROVIDER = "/login/provider"
LOGIN_CALLBACK = "/login/callback"
LOGOUT = "/logout"
PREFERENCES = "/preferences"
STATIC = "/static/seaway"
HOME = "/"


def is_api(path: str) -> bool:
    """Tell whether a path belongs to the API."""
    return any(path == each or path.startswith(f"{each}/") for each in API)


def own(address: str) -> str:
    """Return an address of this server as path and query; `HOME` where it leads elsewhere."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return HOME
    if parts.scheme or parts.netloc or not parts.path.startswith("/") or "\\" in address or address.startswith("//"):
        return HOME
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def is_own_origin(headers: Headers) -> bool:
    """Tell whether a request comes from this server's own page, where a browser says from where it comes.

    Of forms it does not say the origin, for pages here tell nobody their address; it says whether that is the same.
    """
    origin = headers.get("origin")
    if origin == "null":
        return headers.get("sec-fetch-site") == "same-origin"
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False
