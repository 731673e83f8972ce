"""Calls to one API server: every one ends in time, and says what went wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from seaway.adapters.kubernetes.connection.credentials import Credentials, Identity
from seaway.adapters.kubernetes.connection.errors import refusal
from seaway.domain.errors import RejectedError, UnavailableError

log = logging.getLogger(__name__)

CALL_S = 10.0
"""How long a call may take."""

CREDENTIALS_S = 30.0
"""How long it may take to find out who Seaway is: a program of somebody's cloud may have to ask around."""

HEADER_S = 10.0
"""How long a token is used before it is looked at whether it expired."""

MOST_RETIRED = 2
"""Connections with credentials that were replaced, which calls that are under way may go on with."""

MOST_CONNECTIONS = 32

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
MANAGER = "seaway"
"""Who Seaway is to the fields that it writes."""

SOON_S = 1
"""When another try makes sense where the server does not say it; who tries again has delays of its own."""

BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
"""What an API server answers that may do better a little later."""


class Api:
    """An API server, or a member cluster behind the proxy of one. For one event loop.

    Parameters
    ----------
    name
        What errors call it.
    credentials
        Who Seaway is there.
    prefix
        What stands before every path: of a member, where its proxy is.
    call_s
        How long a call may take.
    """

    def __init__(self, name: str, credentials: Credentials, prefix: str = "", call_s: float = CALL_S) -> None:
        self.name = name
        self.call_s = call_s
        self._credentials = credentials
        self._prefix = prefix
        self._client: httpx.AsyncClient | None = None
        self._retired: list[httpx.AsyncClient] = []
        self._connecting = asyncio.Lock()
        self._header: dict[str, str] = {}
        self._header_until_s = 0.0

    def behind(self, name: str, prefix: str) -> Api:
        """Return the API server that this one has a proxy to."""
        return Api(name, self._credentials, self._prefix + prefix, self.call_s)

    async def close(self) -> None:
        """Let go of all connections."""
        clients, self._client, self._retired = [self._client, *self._retired], None, []
        for client in clients:
            if client:
                await client.aclose()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Read something; raises as `call`."""
        return await self.call("GET", path, params)

    async def create(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Create an object in the collection `path`; raises as `call`."""
        return await self.call("POST", path, {"fieldManager": MANAGER}, body)

    async def apply(self, path: str, body: Mapping[str, Any], *, dry: bool = False) -> bytes:
        """Have the object at `path` be as `body` says, on the server's side; raises as `call`."""
        params = {"fieldManager": MANAGER, "force": "true"} | ({"dryRun": "All"} if dry else {})
        return await self.call("PATCH", path, params, body, APPLY)

    async def patch(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Merge `body` into the object at `path`; raises as `call`."""
        return await self.call("PATCH", path, {"fieldManager": MANAGER}, body, MERGE)

    async def delete(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Delete an object or, with a selector in `params`, a collection; raises as `call`."""
        return await self.call("DELETE", path, {"propagationPolicy": "Background"} | dict(params or {}))

    async def call(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> bytes:
        """Make a call and return what was answered.

        Raises
        ------
        ApiError
            The server refused.
        UnavailableError
            It did not answer in time, or is not able to right now; what was asked may be done all the same.
        """
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if content is None else {"content-type": kind}
        async with self._answering(method, path):
            for again in (False, True):
                client = await self._connected(anew=again)
                who = await self._who()
                async with asyncio.timeout(self.call_s):
                    answer = await client.request(
                        method, self._prefix + path, params=params, content=content, headers=headers | who
                    )
                if answer.status_code != httpx.codes.UNAUTHORIZED:
                    break
        if answer.is_success:
            return answer.content
        raise self._error(answer.status_code, answer.content, answer.headers)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer line by line for as long as it goes on; raises as `call`, also while it is read.

        Parameters
        ----------
        silence_s
            After how long without a byte the server is given up.
        """
        timeout = httpx.Timeout(self.call_s, read=silence_s)
        async with self._answering("GET", path):
            client = await self._connected(anew=False)
            request = client.build_request(
                "GET", self._prefix + path, params=params, headers=await self._who(), timeout=timeout
            )
            async with asyncio.timeout(self.call_s):
                answer = await client.send(request, stream=True)
            try:
                if not answer.is_success:
                    async with asyncio.timeout(self.call_s):
                        body = await answer.aread()
                    if answer.status_code == httpx.codes.UNAUTHORIZED:
                        await self._connected(anew=True)  # for who tries again
                    raise self._error(answer.status_code, body, answer.headers)
                yield _lines(answer)
            finally:
                await answer.aclose()

    def _error(self, status: int, body: bytes, headers: httpx.Headers) -> Exception:
        said = refusal(status, body)
        if status in BUSY:
            wait = headers.get("retry-after", "")
            return UnavailableError(f"{self.name}: {said}", retry_after_s=int(wait) if wait.isdecimal() else SOON_S)
        return said

    @asynccontextmanager
    async def _answering(self, method: str, path: str) -> AsyncIterator[None]:
        """Say of a connection that failed whose it was."""
        try:
            yield
        except (httpx.TimeoutException, TimeoutError):
            raise UnavailableError(
                f"{self.name} did not answer {method} {path} in time", retry_after_s=SOON_S
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            why = str(error) or type(error).__name__
            where = f" at {self._client.base_url}" if self._client else ""
            raise UnavailableError(f"{self.name} cannot be reached{where}: {why}", retry_after_s=SOON_S) from None

    async def _who(self) -> dict[str, str]:
        """Return the headers that say who asks."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._header_until_s:
            header = await asyncio.to_thread(self._credentials.authorization)
            self._header = {"authorization": header} if header else {}
            self._header_until_s = now_s + HEADER_S
        return self._header

    async def _connected(self, *, anew: bool) -> httpx.AsyncClient:
        """Return the client; one made anew when nobody is known, or who was known is not any more."""
        before = self._client
        if before is not None and not anew:
            return before
        async with self._connecting:
            if self._client is not None and self._client is not before:
                return self._client  # somebody else was quicker
            try:
                who = await asyncio.wait_for(asyncio.to_thread(self._credentials.load), CREDENTIALS_S)
            except TimeoutError:
                raise UnavailableError(
                    f"who Seaway is to {self.name} was not found out in {CREDENTIALS_S:g} s"
                ) from None
            except RejectedError as error:
                raise UnavailableError(error.message) from None  # somebody may mend the file
            self._client, self._header_until_s = _client(who, self.call_s), 0.0
        if before is not None:
            log.debug("%s: credentials were read anew", self.name)
            self._retired.append(before)
            while len(self._retired) > MOST_RETIRED:
                await self._retired.pop(0).aclose()
        return self._client


def _client(who: Identity, call_s: float) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS)
    transport = _Named(who.server_name, verify=who.tls, limits=limits, proxy=who.proxy or None)
    return httpx.AsyncClient(base_url=who.server, transport=transport, timeout=call_s, trust_env=False)


class _Named(httpx.AsyncHTTPTransport):
    """Expects a name of its own in the server's certificate."""

    def __init__(self, server_name: str, **options: Any) -> None:  # noqa: ANN401  # httpx's
        super().__init__(**options)
        self._server_name = server_name

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._server_name:
            request.extensions["sni_hostname"] = self._server_name
        return await super().handle_async_request(request)


async def _lines(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Cut an answer into lines, without what ends them."""
    rest = bytearray()
    async for piece in answer.aiter_bytes():
        rest += piece
        if b"\n" in piece:
            *whole, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in whole:
                if line:
                    yield line
    if rest:
        yield bytes(rest)
