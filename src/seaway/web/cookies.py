"""What a browser keeps: the token that lets it in, its language, light or dark.

The token's cookie is no script's to read, and is not sent along with what other sites have a browser do. The API does
not look at it: a page asks the API in the name of its visitor, with the token in the header that every client sends.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

TOKEN = "seaway_token"
LANGUAGE = "seaway_language"
THEME = "seaway_theme"
BEGUN = "seaway_login"
"""A log-in at a provider that is under way."""

BEGUN_S = 600
"""How long that may take."""

THEMES = ("auto", "light", "dark")
KEPT_S = 365 * 24 * 3600
"""How long preferences are kept."""

PART = 3600
"""How much of a token one cookie takes: browsers drop cookies of more than 4,096 bytes; some providers' tokens are."""

MOST_PARTS = 3


def token_of(cookies: Mapping[str, str]) -> str:
    """Return the token that a browser keeps; empty for none."""
    return "".join(cookies.get(name, "") for name in _names())


def theme_of(cookies: Mapping[str, str]) -> str:
    """Return light, dark, or whatever the system has."""
    theme = cookies.get(THEME, "")
    return theme if theme in THEMES else THEMES[0]


def keep_token(response: Response, token: str, *, secure: bool) -> None:
    """Have a browser keep a token until it is closed."""
    for at, name in enumerate(_names()):
        if part := token[at * PART : (at + 1) * PART]:
            response.set_cookie(name, part, httponly=True, samesite="lax", secure=secure, path="/")
        else:
            response.delete_cookie(name, path="/")


def drop_token(response: Response) -> None:
    """Have a browser forget its token."""
    keep_token(response, "", secure=False)


def keep_begun(response: Response, text: str, *, secure: bool) -> None:
    """Have a browser keep a log-in that is under way; empty for none."""
    age_s = BEGUN_S if text else 0
    response.set_cookie(BEGUN, text, max_age=age_s, httponly=True, samesite="lax", secure=secure, path="/login")


def keep(response: Response, name: str, value: str) -> None:
    """Have a browser keep a preference."""
    response.set_cookie(name, value, max_age=KEPT_S, samesite="lax", path="/")


def _names() -> list[str]:
    return [TOKEN, *(f"{TOKEN}_{part}" for part in range(1, MOST_PARTS))]
