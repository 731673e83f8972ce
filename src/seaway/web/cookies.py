"""Cookies: the token, its renewal, language and theme.

Scripts cannot read the token's cookie, and browsers do not send it with requests that other sites initiate. The API
ignores it: a page sends the token in the same header as every other client. Over https, the names of a log-in's cookies
have a prefix. Browsers accept such cookies from this host (``__Host-``) and over https (both) only.

References
----------
RFC 6265, section 6.1: browsers store at least fifty cookies of 4,096 bytes. RFC 6265bis (draft), section 4.1.3: cookie
name prefixes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import HTTPConnection
from starlette.responses import Response

TOKEN = "seaway_token"
RENEWAL = "seaway_renewal"
HINT = "seaway_hint"
LANGUAGE = "seaway_language"
THEME = "seaway_theme"
SEEN = "seaway_seen"
"""Time at which the visitor last opened the notifications. Scripts set it."""

SECURE = "seaway.secure"
"""Key in a request's scope: True if users connect over https, although a proxy connects without it."""

LOGIN_COOKIE = "seaway_login"
"""Name of the cookie for a log-in at a provider that is in progress."""

LOGIN_COOKIE_S = 600
"""Time limit of a log-in at a provider, in seconds."""

THEMES = ("auto", "light", "dark")
STORED_S = 365 * 24 * 3600
"""Lifetime of preferences, in seconds."""

PART = 3600
"""Number of characters of a token in one cookie.

Browsers drop cookies over 4,096 bytes, and some tokens of providers are longer.
"""

LONGEST = 8192
"""Maximum number of characters of a token, as in the API. It is split into several cookies."""

PATHS = {TOKEN: "/", RENEWAL: "/login", HINT: "/logout", LOGIN_COOKIE: "/"}
"""Path of each cookie of a log-in."""


@dataclass(frozen=True, slots=True)
class Login:
    """Cookies of a log-in. The browser deletes them when it closes.

    Attributes
    ----------
    token
        Access token. Each token has at most `LONGEST` characters.
    renewal
        Refresh token of a provider; empty for none.
    hint
        ID token that identifies the user when the provider logs the user out. It is empty for a log-in without a
        provider. None keeps the current cookie.
    """

    token: str
    renewal: str = ""
    hint: str | None = ""


def is_secure(connection: HTTPConnection) -> bool:
    """Report whether a user connects over https."""
    return bool(connection.scope.get(SECURE)) or connection.url.scheme in ("https", "wss")


def token_of(connection: HTTPConnection) -> str:
    """Return the token in the cookies; empty for none."""
    return _retained(connection, TOKEN)


def renewal_of(connection: HTTPConnection) -> str:
    """Return the refresh token; empty for none."""
    return _retained(connection, RENEWAL)


def hint_of(connection: HTTPConnection) -> str:
    """Return the ID token that the provider's log-out requires; empty for none."""
    return _retained(connection, HINT)


def login_of(connection: HTTPConnection) -> str:
    """Return the log-in that is in progress; empty for none."""
    return connection.cookies.get(_prefixed(LOGIN_COOKIE, secure=is_secure(connection)), "")


def theme_of(cookies: Mapping[str, str]) -> str:
    """Return the theme: light, dark, or auto, which follows the system."""
    theme = cookies.get(THEME, "")
    return theme if theme in THEMES else THEMES[0]


def keep_login(response: Response, login: Login, *, secure: bool) -> None:
    """Set the cookies of a log-in.

    Parameters
    ----------
    secure
        True if browsers send the cookies over https only.
    """
    for name, text in ((TOKEN, login.token), (RENEWAL, login.renewal), (HINT, login.hint)):
        if text is None:
            continue
        for at, part in enumerate(_names(name, secure=secure)):
            if piece := text[at * PART : (at + 1) * PART]:
                response.set_cookie(part, piece, httponly=True, samesite="lax", secure=secure, path=PATHS[name])
            else:
                response.delete_cookie(part, path=PATHS[name], secure=secure, httponly=True, samesite="lax")


def drop_login(response: Response, *, secure: bool) -> None:
    """Delete the cookies of a log-in."""
    keep_login(response, Login(""), secure=secure)


def store_login(response: Response, text: str, *, secure: bool) -> None:
    """Set the cookie of a log-in that is in progress; an empty text deletes it."""
    age_s = LOGIN_COOKIE_S if text else 0
    name = _prefixed(LOGIN_COOKIE, secure=secure)
    response.set_cookie(
        name, text, max_age=age_s, httponly=True, samesite="lax", secure=secure, path=PATHS[LOGIN_COOKIE]
    )


def keep(response: Response, name: str, value: str, *, secure: bool) -> None:
    """Set the cookie of a preference."""
    response.set_cookie(name, value, max_age=STORED_S, samesite="lax", secure=secure, path="/")


def _retained(connection: HTTPConnection, name: str) -> str:
    return "".join(connection.cookies.get(part, "") for part in _names(name, secure=is_secure(connection)))


def _names(name: str, *, secure: bool) -> list[str]:
    name = _prefixed(name, secure=secure)
    return [name, *(f"{name}_{part}" for part in range(1, -(-LONGEST // PART)))]


def _prefixed(name: str, *, secure: bool) -> str:
    if not secure:
        return name
    return f"__Host-{name}" if PATHS[name] == "/" else f"__Secure-{name}"


def seen_of(cookies: Mapping[str, str]) -> str:
    """Return the time at which the visitor last opened the notifications, with its zone; empty if it is unknown."""
    try:
        at = datetime.fromisoformat(cookies.get(SEEN, ""))
    except ValueError:
        return ""
    return at.isoformat() if at.tzinfo else ""


def seen(at: str) -> str:
    """Return the cookie of that time, as scripts write it."""
    return f"{SEEN}={at}; path=/; max-age={STORED_S}; samesite=lax"
