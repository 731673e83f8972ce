"""What a browser keeps: the token that lets it in, how that is renewed, its language, light or dark.

The token's cookie is no script's to read, and is not sent along with what other sites have a browser do. The API does
not look at it: a page asks the API in the name of its visitor, with the token in the header that every client sends.

References
----------
RFC 6265, section 6.1: 4,096 bytes and fifty cookies are what browsers keep at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response

TOKEN = "seaway_token"
RENEWAL = "seaway_renewal"
HINT = "seaway_hint"
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

LONGEST = 3 * PART
"""Letters of a token that a browser keeps."""

PATHS = {TOKEN: "/", RENEWAL: "/login", HINT: "/logout"}
"""Where what belongs to a log-in is sent to, and nowhere else."""


@dataclass(frozen=True, slots=True)
class Login:
    """What a browser keeps of a log-in until it is closed.

    Attributes
    ----------
    token
        Lets it in; at most `LONGEST` letters, as the others.
    renewal
        By which a provider gives another; empty for none.
    hint
        By which a provider knows whom to log out; empty for who did not log in there, None for what is kept already.
    """

    token: str
    renewal: str = ""
    hint: str | None = ""


def token_of(cookies: Mapping[str, str]) -> str:
    """Return the token that a browser keeps; empty for none."""
    return _retained(cookies, TOKEN)


def renewal_of(cookies: Mapping[str, str]) -> str:
    """Return by what a token is renewed; empty for nothing."""
    return _retained(cookies, RENEWAL)


def hint_of(cookies: Mapping[str, str]) -> str:
    """Return by what a provider knows whom to log out; empty for nothing."""
    return _retained(cookies, HINT)


def theme_of(cookies: Mapping[str, str]) -> str:
    """Return light, dark, or whatever the system has."""
    theme = cookies.get(THEME, "")
    return theme if theme in THEMES else THEMES[0]


def keep_login(response: Response, login: Login, *, secure: bool) -> None:
    """Have a browser keep a log-in until it is closed.

    Parameters
    ----------
    secure
        Whether it is sent over https only.
    """
    for name, text in ((TOKEN, login.token), (RENEWAL, login.renewal), (HINT, login.hint)):
        if text is None:
            continue
        for at, part in enumerate(_names(name)):
            if piece := text[at * PART : (at + 1) * PART]:
                response.set_cookie(part, piece, httponly=True, samesite="lax", secure=secure, path=PATHS[name])
            else:
                response.delete_cookie(part, path=PATHS[name])


def drop_login(response: Response) -> None:
    """Have a browser forget its log-in."""
    keep_login(response, Login(""), secure=False)


def keep_begun(response: Response, text: str, *, secure: bool) -> None:
    """Have a browser keep a log-in that is under way; empty for none."""
    age_s = BEGUN_S if text else 0
    response.set_cookie(BEGUN, text, max_age=age_s, httponly=True, samesite="lax", secure=secure, path="/login")


def keep(response: Response, name: str, value: str, *, secure: bool) -> None:
    """Have a browser keep a preference."""
    response.set_cookie(name, value, max_age=KEPT_S, samesite="lax", secure=secure, path="/")


def _retained(cookies: Mapping[str, str], name: str) -> str:
    return "".join(cookies.get(part, "") for part in _names(name))


def _names(name: str) -> list[str]:
    return [name, *(f"{name}_{part}" for part in range(1, LONGEST // PART))]
