"""Browsers' tabs: whose each is, how many a user has, and that those go that never come to life.

The library makes a tab with each page that is asked for, and keeps it until its browser's web socket has been gone for
a while. What it does not know is who looks.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from nicegui import Client
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Scope

from seaway.client.calls import service as access
from seaway.domain.errors import SeawayError
from seaway.web import cookies
from seaway.web.api_client import Asker

if TYPE_CHECKING:
    from seaway.wire.tokens import CallerOut

UNSEEN_S = 10.0
"""How long a page is kept whose browser never connects; its scripts take seconds on a slow line when they are new."""

MOST = 200
"""Pages that are kept for one token: many tabs, and a wall of screens, but an end to it."""

OF_TABS = "/_nicegui/client/"
"""What paths begin with on which tabs send files; their next part is the tab."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asked for a page.

    Attributes
    ----------
    asker
        Asks in his name; has another token once his is renewed.
    who
        Who he is, as the API sees him.
    """

    asker: Asker
    who: CallerOut


def visitor_of(client: Client) -> Visitor | None:
    """Return whose a tab is; None for one that was made without a visitor."""
    return getattr(client.request.state, "visitor", None)


def count(token: str) -> int:
    """Return how many pages are kept for who has a token."""
    visitors = (visitor_of(client) for client in Client.instances.values())
    return sum(visitor is not None and visitor.asker.token == token for visitor in visitors)


def drop_unless_it_comes(client: Client) -> None:
    """Let go of a tab that does not connect in time."""
    if client.has_socket_connection or client.is_deleted:
        return
    waiting = asyncio.get_running_loop().call_later(UNSEEN_S, client.delete)

    def wait_no_longer() -> None:  # the library looks at how it is called, and cannot at what is compiled
        waiting.cancel()

    client.on_connect(wait_no_longer)
    client.on_delete(wait_no_longer)


def named(scope: Scope) -> str:
    """Return which tab a request for its web socket, or of a file that it sends, speaks of; empty for none."""
    path: str = scope["path"]
    if path.startswith(OF_TABS):
        return path.removeprefix(OF_TABS).partition("/")[0]
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get("client_id", [""])[0]


async def is_of(scope: Scope, api: ASGIApp) -> bool:
    """Tell whether a request that speaks of a tab comes from its visitor.

    That is who has its token, or another by which the API knows him as the same, as one that came in its place.

    Parameters
    ----------
    api
        Says who a token lets in.
    """
    client = Client.instances.get(named(scope))
    visitor = visitor_of(client) if client is not None else None
    if visitor is None:
        return False
    connection = HTTPConnection(scope)
    token = cookies.token_of(connection.cookies)
    if secrets.compare_digest(token.encode(), visitor.asker.token.encode()):
        return True
    try:
        return await Asker.of(connection, api, token).ask(access.me()) == visitor.who
    except SeawayError:
        return False
