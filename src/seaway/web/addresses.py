"""Which addresses are whose: the API's, and those of pages."""

from __future__ import annotations

from urllib.parse import urlsplit

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
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or not parts.path.startswith("/") or "\\" in address or address.startswith("//"):
        return HOME
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
