"""In-process API client that sends the visitor's token."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Self, TypeVar

import httpx
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from seaway.client.aio import AsyncClient
from seaway.client.call import Call, Paged
from seaway.client.config import Target
from seaway.client.connection import Pace
from seaway.web.session import PageSession, open_session

T = TypeVar("T")

BASE = "http://127.0.0.1"
"""Base URL of requests, which never leave this process."""

ONCE = Pace(patience_s=0)
"""No retries: a page shows errors immediately, and its visitor can retry."""


class ApiClient:
    """API client of a visitor.

    Parameters
    ----------
    api
        The application that answers.
    token
        The visitor's token; empty for none.
    address
        The visitor's network address, for the count of failed log-ins.

    Raises
    ------
    RejectedError
        When the token is malformed.
    """

    def __init__(self, api: ASGIApp, token: str, address: str) -> None:
        self._api, self._address = api, address
        self._transport = httpx.ASGITransport(api, raise_app_exceptions=False, client=(address or "127.0.0.1", 0))
        self.take(token)

    def take(self, token: str) -> None:
        """Use another token from now on; raise the errors of the class."""
        self.client = AsyncClient(Target(BASE, token), transport=self._transport, pace=ONCE)
        self.token = token

    @classmethod
    def of(cls, request: HTTPConnection, api: ASGIApp, token: str) -> Self:
        """Create a client from a visitor's request and token; raise the errors of the class."""
        return cls(api, token, request.client.host if request.client else "")

    async def ask(self, call: Call[T]) -> T:
        """Make a call; raise the errors of `seaway.client.errors`."""
        return await self.client.send(call)

    def session(self, call: Call[Any]) -> AbstractAsyncContextManager[PageSession]:
        """Open a session with a container; raise as `ask`."""
        return open_session(self._api, call, self.token, self._address)

    async def all(self, paged: Paged[T]) -> list[T]:
        """Fetch a list, page by page, up to its limit."""
        return [each async for each in self.client.each(paged)]
