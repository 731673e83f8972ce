"""Calls to one API server, each with a timeout and a clear error."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidHandshake, InvalidStatus

from seaway.adapters.kubernetes.connection.credentials import Credentials, RenewalLimit
from seaway.adapters.kubernetes.connection.event_loop import in_thread
from seaway.adapters.kubernetes.connection.responses import (
    ApiError,
    error_of,
    read_at_most,
    read_body,
    read_lines,
    read_tail,
)
from seaway.adapters.kubernetes.connection.session import Session
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import Reason, in_cluster, reason_of

log = logging.getLogger(__name__)

Read = TypeVar("Read")

REQUEST_TIMEOUT_S = 10.0
"""Default timeout of a call, in seconds."""

CREDENTIALS_TIMEOUT_S = 30.0
"""Timeout for loading credentials, in seconds. An exec plugin of a cloud may need several requests."""

TERMINATION_TIMEOUT_S = 1.0
"""Maximum time to wait for an exec plugin to exit after Seaway kills it, in seconds."""

HEADER_TTL_S = 10.0
"""Time in seconds for which a token is used before Seaway checks its expiry."""

PAGE_RENEWAL_INTERVAL_S = 60.0
"""Minimum interval in seconds between two credential renewals that a page behind a proxy may cause."""

MAX_RETRY_AFTER_S = 30
"""Maximum accepted ``Retry-After`` of a server or of a proxy in front of it, in seconds."""

MAX_RETIRED = 2
"""Maximum number of sessions with replaced credentials that stay open for running calls."""

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
MANAGER = "seaway"
"""Name of Seaway as a field manager."""

RETRY_AFTER_S = 1
"""Default retry delay in seconds if the server sends none. Callers also use back-off."""

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses of temporary errors."""


class Api:
    """API server, or a member cluster behind the proxy of one, for one event loop.

    Parameters
    ----------
    name
        Name for error messages.
    credentials
        Credentials for the server.
    prefix
        Prefix of every path; for a member, the path of its proxy.
    request_timeout_s
        Timeout of a call.
    """

    def __init__(
        self, name: str, credentials: Credentials, prefix: str = "", request_timeout_s: float = REQUEST_TIMEOUT_S
    ) -> None:
        self.name = name
        self.request_timeout_s = request_timeout_s
        self._credentials = credentials
        self._prefix = prefix
        self._session: Session | None = None
        self._retired: list[Session] = []
        self._connecting = asyncio.Lock()
        self._reading: Future[Any] | None = None
        self._header: dict[str, str] = {}
        self._header_until_s = 0.0
        self._credentials_error = ""
        """Error of the last failed attempt to load credentials; empty after a success."""
        self._renewal_limit = RenewalLimit(time.monotonic)
        self._page_renewal_limit = RenewalLimit(time.monotonic, PAGE_RENEWAL_INTERVAL_S, PAGE_RENEWAL_INTERVAL_S)
        self._closed = False

    def proxied(self, name: str, prefix: str) -> Api:
        """Return the API server of a member behind this server's proxy."""
        return Api(name, self._credentials, self._prefix + prefix, self.request_timeout_s)

    async def close(self) -> None:
        """Close all connections, and end a running exec plugin. Later calls raise `UnavailableError`."""
        self._closed = True
        if self._reading is not None and not self._reading.done():
            self._credentials.end()
        lines, self._session, self._retired = [self._session, *self._retired], None, []
        for line in lines:
            if line:
                await line.close()

    async def authenticate(self) -> None:
        """Load missing credentials, so that the next call can contact the server immediately.

        Raises
        ------
        UnavailableError
            When the credentials cannot be loaded.
        """
        async with self._request_errors("GET", "/"):
            await self._get_session()
            await self._auth_headers()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Read an object or a list; raise the errors of `call`."""
        return await self.call("GET", path, params)

    async def create(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Create an object in the collection `path`; raise the errors of `call`."""
        return await self.call("POST", path, {"fieldManager": MANAGER}, body)

    async def apply(self, path: str, body: Mapping[str, Any], *, dry: bool = False) -> bytes:
        """Apply `body` to the object at `path` on the server side; raise the errors of `call`."""
        params = {"fieldManager": MANAGER, "force": "true"} | ({"dryRun": "All"} if dry else {})
        return await self.call("PATCH", path, params, body, APPLY)

    async def patch(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Merge `body` into the object at `path`; raise the errors of `call`."""
        return await self.call("PATCH", path, {"fieldManager": MANAGER}, body, MERGE)

    async def delete(self, path: str, params: Mapping[str, str] | None = None) -> bytes:
        """Delete an object or, with a selector in `params`, a collection; raise the errors of `call`."""
        return await self.call("DELETE", path, {"propagationPolicy": "Background"} | dict(params or {}))

    async def call(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> bytes:
        """Send a request and return the body of the answer.

        Raises
        ------
        ApiError
            When the server refuses the request.
        UnavailableError
            When the server does not answer in time or is temporarily unavailable. It may still have executed the
            request.
        """
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if content is None else {"content-type": kind}
        async with self._request_errors(method, path):
            refused: Session | None = None
            while (line := await self._get_session(refused)) is not refused:
                who = await self._auth_headers()
                ask = partial(line.request, method, self._prefix + path, params, headers | who, content)
                async with asyncio.timeout(self.request_timeout_s):
                    try:
                        answer, said = await _read(ask())
                    except aiohttp.ServerDisconnectedError:  # the server closed an idle connection;
                        answer, said = await _read(ask())  # calls are idempotent
                if refused is not None or answer.status != HTTPStatus.UNAUTHORIZED:
                    break
                refused = line
        if _is_success(answer):
            return said
        raise self._error_of(answer, said)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer line by line until it ends; raise the errors of `call`, also during the read.

        Parameters
        ----------
        idle_timeout_s
            Maximum time without data before the connection is closed.
        """
        async with self._opened(path, params, idle_timeout_s) as answer:
            yield read_lines(answer)

    @asynccontextmanager
    async def pieces(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer in chunks as they arrive; see `stream`."""
        async with self._opened(path, params, idle_timeout_s) as answer:
            yield answer.content.iter_any()

    async def tail(self, path: str, params: Mapping[str, str], max_bytes: int) -> bytes:
        """Read an answer of any length and return its last bytes; raise the errors of `call`.

        The read may exceed the timeout of a call while data arrives.
        """
        try:
            return await self._tail(path, params, max_bytes)
        except ApiError as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
        return await self._tail(path, params, max_bytes)  # with renewed credentials

    async def _tail(self, path: str, params: Mapping[str, str], max_bytes: int) -> bytes:
        async with self._opened(path, params, self.request_timeout_s) as answer:
            return await read_tail(answer, max_bytes)

    @asynccontextmanager
    async def _opened(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open an answer for reading in chunks."""
        async with self._request_errors("GET", path):
            line = await self._get_session()
            asked = line.request(
                "GET", self._prefix + path, params, await self._auth_headers(), idle_timeout_s=idle_timeout_s
            )
            async with AsyncExitStack() as ended:
                async with asyncio.timeout(self.request_timeout_s):
                    answer = await ended.enter_async_context(asked)
                if not _is_success(answer):
                    async with asyncio.timeout(self.request_timeout_s):
                        said = await read_body(answer)
                    if answer.status == HTTPStatus.UNAUTHORIZED:
                        await self._get_session(line)  # so that a retry uses renewed credentials
                    raise self._error_of(answer, said)
                yield answer

    async def socket(
        self, path: str, params: Sequence[tuple[str, str]], subprotocols: Sequence[str]
    ) -> ClientConnection:
        """Open a web socket; raise the errors of `call`."""
        async with self._request_errors("GET", path):
            refused: Session | None = None
            while (line := await self._get_session(refused)) is not refused:
                who = await self._auth_headers()
                try:
                    async with asyncio.timeout(self.request_timeout_s):
                        return await line.socket(self._prefix + path, params, who, subprotocols)
                except InvalidStatus as error:
                    answer = error.response
                    if refused is not None or answer.status_code != HTTPStatus.UNAUTHORIZED:
                        break
                    refused = line
                except InvalidHandshake as error:
                    raise aiohttp.ClientConnectionError(f"no web socket: {error}") from None
        raise self._error(answer.status_code, answer.headers.get("retry-after", ""), bytes(answer.body or b""))

    async def page(self, path: str, max_bytes: int) -> bytes:
        """Read a page behind the server's proxy, with limits on time and size; raise the errors of `call`.

        The page may answer 401 as if it were the server. Renewals of credentials for pages are therefore rare.

        Raises
        ------
        RejectedError
            When the page exceeds `max_bytes` or is compressed.
        """
        headers = {"accept": "text/plain", "accept-encoding": "identity"}
        async with self._request_errors("GET", path):
            line = await self._get_session()
            who = await self._auth_headers()
            async with (
                asyncio.timeout(self.request_timeout_s),
                line.request("GET", self._prefix + path, None, headers | who) as answer,
            ):
                said = await read_at_most(answer, max_bytes)
            if answer.status == HTTPStatus.UNAUTHORIZED and self._page_renewal_limit.allows():
                await self._get_session(line)  # so that a retry uses renewed credentials
        if _is_success(answer):
            return said
        raise self._error_of(answer, said)

    def _error_of(self, answer: aiohttp.ClientResponse, body: bytes) -> Exception:
        return self._error(answer.status, answer.headers.get("retry-after", ""), body)

    def _error(self, status: int, retry_after: str, body: bytes) -> Exception:
        error = error_of(status, body)
        if error.status in TRANSIENT_STATUSES:
            return UnavailableError(in_cluster(self.name, reason_of(error)), retry_after_s=_wait_s(retry_after))
        return error

    @asynccontextmanager
    async def _request_errors(self, method: str, path: str) -> AsyncIterator[None]:
        """Convert connection errors to `UnavailableError` with the server's name."""
        try:
            yield
        except TimeoutError:
            late = in_cluster(self.name, Reason("not_answered", method=method, path=path))
            raise UnavailableError(late, retry_after_s=RETRY_AFTER_S) from None
        except (aiohttp.ClientError, OSError) as error:
            why = Reason("not_reached", why=_error_text(error))
            if self._session:
                why = Reason("not_reached_at", address=self._session.address, why=_error_text(error))
            raise UnavailableError(in_cluster(self.name, why), retry_after_s=RETRY_AFTER_S) from None

    async def _auth_headers(self) -> dict[str, str]:
        """Return the authorization headers."""
        clock = asyncio.get_running_loop().time
        if clock() >= self._header_until_s:
            async with self._connecting:
                if clock() >= self._header_until_s:  # else another task was faster
                    header = await self._load_credentials(self._credentials.authorization)
                    if not (header.isascii() and header.isprintable()):
                        raise UnavailableError(f"the token for {self.name} contains invalid characters")
                    self._header = {"authorization": header} if header else {}
                    self._header_until_s = clock() + HEADER_TTL_S
        return self._header

    async def _load_credentials(self, read: Callable[[], Read], *, force: bool = False) -> Read:
        """Load credentials. Cache an error until the back-off expires.

        Parameters
        ----------
        force
            True to skip the check of the back-off, because the caller did it.

        Raises
        ------
        UnavailableError
            When loading fails, or failed a short time ago. A user may fix the file or log in.
        """
        if self._credentials_error and not (force or self._renewal_limit.allows()):
            raise UnavailableError(self._credentials_error)
        try:
            found = await self._read_in_thread(read)
        except (RejectedError, UnavailableError) as error:
            self._credentials_error = reason_of(error)
            self._renewal_limit.failed()
            raise UnavailableError(self._credentials_error) from None
        self._credentials_error = ""
        return found

    async def _read_in_thread(self, read: Callable[[], Read]) -> Read:
        """Read credentials in a separate thread, because an exec plugin may block for any time.

        Kill a plugin that exceeds the timeout. Do not start another plugin before it has ended. Other servers are not
        affected.
        """
        if self._reading is not None and not self._reading.done():
            raise UnavailableError(in_cluster(self.name, Reason("exec_does_not_end")))
        self._reading = begun = in_thread(read)
        reading: asyncio.Future[Read] = asyncio.wrap_future(begun)
        reading.add_done_callback(
            lambda ended: ended.cancelled() or ended.exception()
        )  # prevents a log entry for an unread exception
        done, _ = await asyncio.wait([reading], timeout=CREDENTIALS_TIMEOUT_S)
        if not done:
            self._credentials.end()
            await asyncio.wait([reading], timeout=TERMINATION_TIMEOUT_S)
        if not done and (not reading.done() or reading.exception()):  # else use the result
            raise UnavailableError(in_cluster(self.name, Reason("user_unknown", limit=CREDENTIALS_TIMEOUT_S)))
        return reading.result()

    async def _get_session(self, rejected: Session | None = None) -> Session:
        """Return the session. Renew the credentials if `rejected` is the current session or its certificate expired.

        A renewal can run an exec plugin, so the back-off limits renewals for a server that keeps refusing.
        """
        if (line := self._session) and line is not rejected and not line.expired:
            return line
        async with self._connecting:
            before = self._session
            if before and before is not rejected and not before.expired:
                return before  # another task was faster
            self._require_open()
            if before and not self._renewal_limit.allows():
                return before
            who = await self._load_credentials(self._credentials.load, force=before is not None)
            self._require_open()
            self._session, self._header_until_s = Session(who, self.request_timeout_s), 0.0
        if before is not None:
            log.debug("%s: credentials were read again", self.name)
            self._retired.append(before)
            while len(self._retired) > MAX_RETIRED:
                await self._retired.pop(0).close()
        return self._session

    def _require_open(self) -> None:
        if self._closed:
            raise UnavailableError(f"{self.name} is not watched any more")


async def _read(request: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> tuple[aiohttp.ClientResponse, bytes]:
    async with request as answer:
        return answer, await read_body(answer)


def _wait_s(retry_after: str) -> int:
    """Return the delay of a ``Retry-After`` header, in seconds."""
    return (
        min(int(retry_after), MAX_RETRY_AFTER_S)
        if retry_after.isdecimal() and len(retry_after) < MAX_RETRY_AFTER_S
        else RETRY_AFTER_S
    )


def _error_text(error: Exception) -> str:
    """Describe a connection error without the address of the proxy, which may contain a password."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{error.status} {error.message}".strip()
    return str(error) or type(error).__name__


def _is_success(answer: aiohttp.ClientResponse) -> bool:
    return HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
