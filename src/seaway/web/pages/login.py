"""Log-in page, for a token or a provider. It requires no script, and the server stores no state for it."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from seaway.domain.errors import SeawayError
from seaway.web import addresses
from seaway.web.plain import plain, status_of
from seaway.web.words import words_for


def login_page(request: Request, provider: str, wanted: str, error: SeawayError | None = None) -> Response:
    """Return the log-in page.

    Parameters
    ----------
    provider
        Address of the identity provider; empty for none.
    wanted
        Address on this server to open after the log-in.
    error
        Reason why the log-in failed; None before the first try.
    """
    words, query = words_for(request), request.query_params
    said = ""
    if query.get("state") == addresses.LEFT:
        said = words("You are logged out.")
    elif query.get("ended"):
        said = words("Your token is not valid any more.")
    return plain(
        request,
        "login",
        status_of(error) if error else 200,
        here=f"{addresses.LOGIN}?{urlencode({'next': wanted})}",
        title=words("Log in"),
        to=addresses.LOGIN,
        wanted=wanted,
        why=str(error) if error else "",
        said=said,
        provider=name_of(provider),
        provider_address=f"{addresses.LOGIN_PROVIDER}?{urlencode({'next': wanted})}",
    )


def name_of(provider: str) -> str:
    """Return the host name of a provider, or its address if it has none."""
    return urlsplit(provider).netloc or provider
