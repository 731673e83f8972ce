"""Calls to one API server: every one ends in time, and says what went wrong."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
import msgspec

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

log = logging.getLogger(__name__)

Read = TypeVar("Read")

REQUEST_TIMEOUT_S = 10.0
"""How long a call may take."""

CREDENTIALS_TIMEOUT_S = 30.0
"""How long it may take to find out who Seaway is: a program of a user's cloud may have to ask around."""

TERMINATION_TIMEOUT_S = 1.0
"""How long a program is waited for that is ended because it took longer."""

HEADER_TTL_S = 10.0
"""How long a token is used before it is looked at whether it expired."""

PAGE_RENEWAL_INTERVAL_S = 60.0
"""How often a page behind a proxy may have it asked again who Seaway is."""

MAX_RETRY_AFTER_S = 30
"""The longest that a server, or a proxy before it, may tell Seaway to stay away."""

MAX_RETIRED = 2
"""Connections with credentials that were replaced, which calls that are under way may go on with."""

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
MANAGER = "seaway"
"""Who Seaway is to the fields that it writes."""

RETRY_AFTER_S = 1
"""When another try makes sense where the server does not say it; who tries again has delays of its own."""

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
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
    request_timeout_s
        How long a call may take.
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
        """Why it could not be found out who Seaway is, while nothing is known of that."""
        self._renewal_limit = RenewalLimit(time.monotonic)
        self._page_renewal_limit = RenewalLimit(time.monotonic, PAGE_RENEWAL_INTERVAL_S, PAGE_RENEWAL_INTERVAL_S)
        self._closed = False

    def proxied(self, name: str, prefix: str) -> Api:
        """Return the API server that this one has a proxy to."""
        return Api(name, self._credentials, self._prefix + prefix, self.request_timeout_s)

    async def close(self) -> None:
        """Let go of all connections, and make no other: who still asks for something is told that it is unavailable.

        What a kubeconfig runs to find out who Seaway is ends, too.
        """
        self._closed = True
        if self._reading is not None and not self._reading.done():
            self._credentials.end()
        lines, self._session, self._retired = [self._session, *self._retired], None, []
        for line in lines:
            if line:
                await line.close()

    async def authenticate(self) -> None:
        """Find out who Seaway is, where that is not known, so that the next call asks the server at once.

        Raises
        ------
        UnavailableError
            When that fails.
        """
        async with self._request_errors("GET", "/"):
            await self._get_session()
            await self._auth_headers()

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
        async with self._request_errors(method, path):
            refused: Session | None = None
            while (line := await self._get_session(refused)) is not refused:
                who = await self._auth_headers()
                ask = partial(line.request, method, self._prefix + path, params, headers | who, content)
                async with asyncio.timeout(self.request_timeout_s):
                    try:
                        answer, said = await _read(ask())
                    except aiohttp.ServerDisconnectedError:  # it hung up on a connection that it had kept open;
                        answer, said = await _read(ask())  # every call may be made twice
                if refused is not None or answer.status != HTTPStatus.UNAUTHORIZED:
                    break
                refused = line
        if _is_success(answer):
            return said
        raise self._error(answer, said)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer line by line for as long as it goes on; raises as `call`, also while it is read.

        Parameters
        ----------
        idle_timeout_s
            After how long without a byte the server is given up.
        """
        async with self._opened(path, params, idle_timeout_s) as answer:
            yield read_lines(answer)

    @asynccontextmanager
    async def pieces(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer as it comes, as `stream` does its lines."""
        async with self._opened(path, params, idle_timeout_s) as answer:
            yield answer.content.iter_any()

    async def tail(self, path: str, params: Mapping[str, str], max_bytes: int) -> bytes:
        """Read an answer, however long it is, and return its last bytes; raises as `call`.

        It may take longer than a call, for as long as it goes on.
        """
        try:
            return await self._tail(path, params, max_bytes)
        except ApiError as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
        return await self._tail(path, params, max_bytes)  # as whom the kubeconfig says now

    async def _tail(self, path: str, params: Mapping[str, str], max_bytes: int) -> bytes:
        async with self._opened(path, params, self.request_timeout_s) as answer:
            return await read_tail(answer, max_bytes)

    @asynccontextmanager
    async def _opened(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask for an answer that is read bit by bit."""
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
                        await self._get_session(line)  # for who tries again
                    raise self._error(answer, said)
                yield answer

    async def page(self, path: str, max_bytes: int) -> bytes:
        """Read what a user behind the server's proxy says: whatever that is, it ends; raises as `call`.

        That a user may answer as if it were the server that does not know Seaway any more: who Seaway is is asked
        again for that seldom.

        Raises
        ------
        RejectedError
            When it says more than `max_bytes`, or says it compressed.
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
                await self._get_session(line)  # for who tries again
        if _is_success(answer):
            return said
        raise self._error(answer, said)

    def _error(self, answer: aiohttp.ClientResponse, body: bytes) -> Exception:
        error = error_of(answer.status, body)
        if error.status in TRANSIENT_STATUSES:
            wait = answer.headers.get("retry-after", "")
            return UnavailableError(f"{self.name}: {error}", retry_after_s=_wait_s(wait))
        return error

    @asynccontextmanager
    async def _request_errors(self, method: str, path: str) -> AsyncIterator[None]:
        """Say of a connection that failed whose it was."""
        try:
            yield
        except TimeoutError:
            raise UnavailableError(
                f"{self.name}: did not answer {method} {path} in time", retry_after_s=RETRY_AFTER_S
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            why = _error_text(error)
            where = f" at {self._session.address}" if self._session else ""
            raise UnavailableError(
                f"{self.name}: cannot be reached{where}: {why}", retry_after_s=RETRY_AFTER_S
            ) from None

    async def _auth_headers(self) -> dict[str, str]:
        """Return the headers that say who asks."""
        clock = asyncio.get_running_loop().time
        if clock() >= self._header_until_s:
            async with self._connecting:
                if clock() >= self._header_until_s:  # else another user was quicker
                    header = await self._load_credentials(self._credentials.authorization)
                    if not (header.isascii() and header.isprintable()):
                        raise UnavailableError(f"the token for {self.name} has characters that no token has")
                    self._header = {"authorization": header} if header else {}
                    self._header_until_s = clock() + HEADER_TTL_S
        return self._header

    async def _load_credentials(self, read: Callable[[], Read], *, force: bool = False) -> Read:
        """Read credentials. Where that failed it is not done for whoever asks next, who is told what went wrong.

        Parameters
        ----------
        force
            Whether it is known to be time for it.

        Raises
        ------
        UnavailableError
            When it fails, or did before; somebody may mend the file, or log in.
        """
        if self._credentials_error and not (force or self._renewal_limit.allows()):
            raise UnavailableError(self._credentials_error)
        try:
            found = await self._read_in_thread(read)
        except (RejectedError, UnavailableError) as error:
            self._credentials_error = str(error)
            self._renewal_limit.failed()
            raise UnavailableError(self._credentials_error) from None
        self._credentials_error = ""
        return found

    async def _read_in_thread(self, read: Callable[[], Read]) -> Read:
        """Read credentials in a thread of their own: a program that a kubeconfig names may take as long as it likes.

        One that hangs is ended, keeps no one else from reading theirs, and is not begun again before it ended.
        """
        if self._reading is not None and not self._reading.done():
            raise UnavailableError(
                f"{self.name}: who Seaway is there is not known: what its kubeconfig runs does not end"
            )
        self._reading = begun = in_thread(read)
        reading: asyncio.Future[Read] = asyncio.wrap_future(begun)
        reading.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # too late, no one hears it
        done, _ = await asyncio.wait([reading], timeout=CREDENTIALS_TIMEOUT_S)
        if not done:
            self._credentials.end()
            await asyncio.wait([reading], timeout=TERMINATION_TIMEOUT_S)
        if not done and (not reading.done() or reading.exception()):  # else what was given before still holds
            raise UnavailableError(f"{self.name}: who Seaway is there was not found out in {CREDENTIALS_TIMEOUT_S:g} s")
        return reading.result()

    async def _get_session(self, rejected: Session | None = None) -> Session:
        """Return the connections; others than those over which Seaway was refused, if it is time to find out who it is.

        That costs, where a program has to say it, so it is not done for every refusal of a server that goes on.
        """
        if (line := self._session) and line is not rejected and not line.expired:
            return line
        async with self._connecting:
            before = self._session
            if before and before is not rejected and not before.expired:
                return before  # another user was quicker
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
            raise UnavailableError(f"{self.name} is not followed any more")


async def _read(request: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> tuple[aiohttp.ClientResponse, bytes]:
    async with request as answer:
        return answer, await read_body(answer)


def _wait_s(retry_after: str) -> int:
    """Return for how long a server is to be left alone, by its header."""
    return (
        min(int(retry_after), MAX_RETRY_AFTER_S)
        if retry_after.isdecimal() and len(retry_after) < MAX_RETRY_AFTER_S
        else RETRY_AFTER_S
    )


def _error_text(error: Exception) -> str:
    """Say what went wrong with a connection, without the address of a proxy, which may have a password in it."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{error.status} {error.message}".strip()
    return str(error) or type(error).__name__


def _is_success(answer: aiohttp.ClientResponse) -> bool:
    return HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
