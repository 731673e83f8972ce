"""Asking the API in the name of a visitor, without a network in between."""

from __future__ import annotations

from typing import Self, TypeVar

import httpx
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from seaway.client.aio import AsyncClient
from seaway.client.call import Call, Paged
from seaway.client.config import Target
from seaway.client.retries import Pace

T = TypeVar("T")

BASE = "http://127.0.0.1"
"""Stands in requests that never leave this process."""

ONCE = Pace(patience_s=0)
"""Whoever looks at a page sees at once what is wrong, and can try again."""


class Asker:
    """Asks the API.

    Parameters
    ----------
    api
        The application that answers.
    token
        In whose name; empty for no one's.
    address
        Where the visitor is, whom failed logins count against.

    Raises
    ------
    RejectedError
        When that can be no token.
    """

    def __init__(self, api: ASGIApp, token: str, address: str) -> None:
        self._transport = httpx.ASGITransport(api, raise_app_exceptions=False, client=(address or "127.0.0.1", 0))
        self.take(token)

    def take(self, token: str) -> None:
        """Ask by another token from now on; raises as the class."""
        self.client = AsyncClient(Target(BASE, token), transport=self._transport, pace=ONCE)
        self.token = token

    @classmethod
    def of(cls, request: HTTPConnection, api: ASGIApp, token: str) -> Self:
        """Ask by a token that came with a visitor's request; raises as the class."""
        return cls(api, token, request.client.host if request.client else "")

    async def ask(self, call: Call[T]) -> T:
        """Make a call; raises what `seaway.client.errors` has."""
        return await self.client.send(call)

    async def all(self, paged: Paged[T]) -> list[T]:
        """Fetch a list as far as it is wanted, page by page."""
        return [each async for each in self.client.each(paged)]
