"""Browser tabs: their owners, their number per token, and removal of tabs that never connect.

The library creates a tab for each requested page, and deletes it a while after its web socket has closed. It does not
know the user of a tab.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from nicegui import Client
from nicegui.element import Element
from nicegui.elements.mixins.value_element import ValueElement
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Scope

from seaway.client.calls import service as access
from seaway.domain.errors import SeawayError
from seaway.web import cookies
from seaway.web.api_client import ApiClient

if TYPE_CHECKING:
    from seaway.wire.tokens import CallerOut

HIDDEN_S = 10.0
"""Lifetime of a page that never connects, in seconds. Over a slow connection, scripts first take seconds to load."""

MOST = 200
"""Maximum number of open pages per token: enough for many tabs and a wall of screens."""

OF_TABS = "/_nicegui/client/"
"""Prefix of paths to which tabs send files. The id of the tab follows."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Visitor of a page.

    Attributes
    ----------
    asker
        API client with the visitor's token, which changes with renewals.
    who
        Identity from the API.
    """

    asker: ApiClient
    who: CallerOut


def visitor_of(client: Client) -> Visitor | None:
    """Return the visitor of a tab; None if it has none."""
    return getattr(client.request.state, "visitor", None)


def count(token: str) -> int:
    """Count the open pages of a token."""
    visitors = (visitor_of(client) for client in Client.instances.values())
    return sum(visitor is not None and visitor.asker.token == token for visitor in visitors)


def drop_unless_it_comes(client: Client) -> None:
    """Delete a tab that does not connect in time."""
    if client.has_socket_connection or client.is_deleted:
        return
    waiting = asyncio.get_running_loop().call_later(HIDDEN_S, client.delete)

    def wait_no_longer() -> None:  # the library inspects its signature, which fails for compiled functions
        waiting.cancel()

    client.on_connect(wait_no_longer)
    client.on_delete(wait_no_longer)


def free_when_deleted(client: Client) -> None:
    """Break the reference cycles of a tab once it is deleted, so that its memory is freed at once.

    The garbage collector rarely examines old objects. Until then, deleted tabs would fill the memory.
    """

    def schedule() -> None:
        asyncio.get_running_loop().call_soon(_break_cycles, client, list(client.elements.values()))

    client.on_delete(schedule)


def _break_cycles(client: Client, elements: Iterable[Element]) -> None:
    for element in elements:
        element._event_listeners.clear()  # noqa: SLF001  # the library has no call for it
        for each in (element.props, element.classes, element.style):
            each._change_handlers.clear()  # noqa: SLF001  # one is a method of `each`
        if isinstance(element, ValueElement):
            element._change_handlers.clear()  # noqa: SLF001  # the library has no call for it
    for handlers in (client.connect_handlers, client.disconnect_handlers, client.delete_handlers):
        handlers.clear()
    client._exception_handlers.clear()  # noqa: SLF001  # the library has no call for it


def named(scope: Scope) -> str:
    """Return the tab's id in a request for a web socket or a file upload; empty if there is none."""
    path: str = scope["path"]
    if path.startswith(OF_TABS):
        return path.removeprefix(OF_TABS).partition("/")[0]
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get("client_id", [""])[0]


async def is_of(scope: Scope, api: ASGIApp) -> bool:
    """Report whether a request for a tab comes from its visitor.

    The request must have the visitor's token, or another token of the same identity, such as a renewed one.

    Parameters
    ----------
    api
        Application that authenticates tokens.
    """
    client = Client.instances.get(named(scope))
    visitor = visitor_of(client) if client is not None else None
    if visitor is None:
        return False
    connection = HTTPConnection(scope)
    token = cookies.token_of(connection)
    if secrets.compare_digest(token.encode(), visitor.asker.token.encode()):
        return True
    try:
        return await ApiClient.of(connection, api, token).ask(access.me()) == visitor.who
    except SeawayError:
        return False
