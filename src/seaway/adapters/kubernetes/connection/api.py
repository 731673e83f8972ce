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

from seaway.adapters.kubernetes.connection.credentials import Credentials, Renewing
from seaway.adapters.kubernetes.connection.event_loop import in_thread
from seaway.adapters.kubernetes.connection.responses import ApiError, at_most, last, lines, refusal, whole
from seaway.adapters.kubernetes.connection.session import Line
from seaway.domain.errors import RejectedError, UnavailableError

log = logging.getLogger(__name__)

Read = TypeVar("Read")

CALL_S = 10.0
"""How long a call may take."""

CREDENTIALS_S = 30.0
"""How long it may take to find out who Seaway is: a program of somebody's cloud may have to ask around."""

LINGERS_S = 1.0
"""How long a program is waited for that is ended because it took longer."""

HEADER_S = 10.0
"""How long a token is used before it is looked at whether it expired."""

RENEW_S = 60.0
"""How often a page behind a proxy may have it asked anew who Seaway is."""

LONGEST_WAIT_S = 30
"""The longest that a server, or a proxy before it, may tell Seaway to stay away."""

MOST_RETIRED = 2
"""Connections with credentials that were replaced, which calls that are under way may go on with."""

MERGE = "application/merge-patch+json"
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
        self._line: Line | None = None
        self._retired: list[Line] = []
        self._connecting = asyncio.Lock()
        self._reading: Future[Any] | None = None
        self._header: dict[str, str] = {}
        self._header_until_s = 0.0
        self._unknown = ""
        """Why it could not be found out who Seaway is, while nothing is known of that."""
        self._renewing = Renewing(time.monotonic)
        self._renewing_for_pages = Renewing(time.monotonic, RENEW_S, RENEW_S)
        self._closed = False

    def behind(self, name: str, prefix: str) -> Api:
        """Return the API server that this one has a proxy to."""
        return Api(name, self._credentials, self._prefix + prefix, self.call_s)

    async def close(self) -> None:
        """Let go of all connections, and make no other: who still asks for something is told that it is unavailable.

        What a kubeconfig runs to find out who Seaway is ends, too.
        """
        self._closed = True
        if self._reading is not None and not self._reading.done():
            self._credentials.end()
        lines, self._line, self._retired = [self._line, *self._retired], None, []
        for line in lines:
            if line:
                await line.close()

    async def ready(self) -> None:
        """Find out who Seaway is, where that is not known, so that the next call asks the server at once.

        Raises
        ------
        UnavailableError
            When that fails.
        """
        async with self._answering("GET", "/"):
            await self._connected()
            await self._who()

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
            refused: Line | None = None
            while (line := await self._connected(refused)) is not refused:
                who = await self._who()
                ask = partial(line.ask, method, self._prefix + path, params, headers | who, content)
                async with asyncio.timeout(self.call_s):
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
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer line by line for as long as it goes on; raises as `call`, also while it is read.

        Parameters
        ----------
        silence_s
            After how long without a byte the server is given up.
        """
        async with self._opened(path, params, silence_s) as answer:
            yield lines(answer)

    @asynccontextmanager
    async def pieces(
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer as it comes, as `stream` does its lines."""
        async with self._opened(path, params, silence_s) as answer:
            yield answer.content.iter_any()

    async def tail(self, path: str, params: Mapping[str, str], most_bytes: int) -> bytes:
        """Read an answer, however long it is, and return its last bytes; raises as `call`.

        It may take longer than a call, for as long as it goes on.
        """
        try:
            return await self._tail(path, params, most_bytes)
        except ApiError as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
        return await self._tail(path, params, most_bytes)  # as whom the kubeconfig says now

    async def _tail(self, path: str, params: Mapping[str, str], most_bytes: int) -> bytes:
        async with self._opened(path, params, self.call_s) as answer:
            return await last(answer, most_bytes)

    @asynccontextmanager
    async def _opened(
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask for an answer that is read bit by bit."""
        async with self._answering("GET", path):
            line = await self._connected()
            asked = line.ask("GET", self._prefix + path, params, await self._who(), silence_s=silence_s)
            async with AsyncExitStack() as ended:
                async with asyncio.timeout(self.call_s):
                    answer = await ended.enter_async_context(asked)
                if not _is_success(answer):
                    async with asyncio.timeout(self.call_s):
                        said = await whole(answer)
                    if answer.status == HTTPStatus.UNAUTHORIZED:
                        await self._connected(line)  # for who tries again
                    raise self._error(answer, said)
                yield answer

    async def page(self, path: str, most_bytes: int) -> bytes:
        """Read what somebody behind the server's proxy says: whatever that is, it ends; raises as `call`.

        That somebody may answer as if it were the server that does not know Seaway any more: who Seaway is is asked
        anew for that seldom.

        Raises
        ------
        RejectedError
            When it says more than `most_bytes`, or says it compressed.
        """
        headers = {"accept": "text/plain", "accept-encoding": "identity"}
        async with self._answering("GET", path):
            line = await self._connected()
            who = await self._who()
            async with (
                asyncio.timeout(self.call_s),
                line.ask("GET", self._prefix + path, None, headers | who) as answer,
            ):
                said = await at_most(answer, most_bytes)
            if answer.status == HTTPStatus.UNAUTHORIZED and self._renewing_for_pages.may():
                await self._connected(line)  # for who tries again
        if _is_success(answer):
            return said
        raise self._error(answer, said)

    def _error(self, answer: aiohttp.ClientResponse, said: bytes) -> Exception:
        error = refusal(answer.status, said)
        if error.status in BUSY:
            wait = answer.headers.get("retry-after", "")
            return UnavailableError(f"{self.name}: {error}", retry_after_s=_wait_s(wait))
        return error

    @asynccontextmanager
    async def _answering(self, method: str, path: str) -> AsyncIterator[None]:
        """Say of a connection that failed whose it was."""
        try:
            yield
        except TimeoutError:
            raise UnavailableError(
                f"{self.name}: did not answer {method} {path} in time", retry_after_s=SOON_S
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            why = _why(error)
            where = f" at {self._line.address}" if self._line else ""
            raise UnavailableError(f"{self.name}: cannot be reached{where}: {why}", retry_after_s=SOON_S) from None

    async def _who(self) -> dict[str, str]:
        """Return the headers that say who asks."""
        clock = asyncio.get_running_loop().time
        if clock() >= self._header_until_s:
            async with self._connecting:
                if clock() >= self._header_until_s:  # else somebody else was quicker
                    header = await self._found_out(self._credentials.authorization)
                    if not (header.isascii() and header.isprintable()):
                        raise UnavailableError(f"the token for {self.name} has characters that no token has")
                    self._header = {"authorization": header} if header else {}
                    self._header_until_s = clock() + HEADER_S
        return self._header

    async def _found_out(self, read: Callable[[], Read], *, now: bool = False) -> Read:
        """Read credentials. Where that failed it is not done for whoever asks next, who is told what went wrong.

        Parameters
        ----------
        now
            Whether it is known to be time for it.

        Raises
        ------
        UnavailableError
            When it fails, or did before; somebody may mend the file, or log in.
        """
        if self._unknown and not (now or self._renewing.may()):
            raise UnavailableError(self._unknown)
        try:
            found = await self._patiently(read)
        except (RejectedError, UnavailableError) as error:
            self._unknown = str(error)
            self._renewing.failed()
            raise UnavailableError(self._unknown) from None
        self._unknown = ""
        return found

    async def _patiently(self, read: Callable[[], Read]) -> Read:
        """Read credentials in a thread of their own: a program that a kubeconfig names may take as long as it likes.

        One that hangs is ended, keeps nobody else from reading theirs, and is not begun again before it ended.
        """
        if self._reading is not None and not self._reading.done():
            raise UnavailableError(
                f"{self.name}: who Seaway is there is not known: what its kubeconfig runs does not end"
            )
        self._reading = begun = in_thread(read)
        reading: asyncio.Future[Read] = asyncio.wrap_future(begun)
        reading.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # too late, nobody hears it
        done, _ = await asyncio.wait([reading], timeout=CREDENTIALS_S)
        if not done:
            self._credentials.end()
            await asyncio.wait([reading], timeout=LINGERS_S)
        if not done and (not reading.done() or reading.exception()):  # else what was given before still holds
            raise UnavailableError(f"{self.name}: who Seaway is there was not found out in {CREDENTIALS_S:g} s")
        return reading.result()

    async def _connected(self, refused: Line | None = None) -> Line:
        """Return the connections; others than those over which Seaway was refused, if it is time to find out who it is.

        That costs, where a program has to say it, so it is not done for every refusal of a server that goes on.
        """
        if (line := self._line) and line is not refused and not line.ended:
            return line
        async with self._connecting:
            before = self._line
            if before and before is not refused and not before.ended:
                return before  # somebody else was quicker
            self._not_closed()
            if before and not self._renewing.may():
                return before
            who = await self._found_out(self._credentials.load, now=before is not None)
            self._not_closed()
            self._line, self._header_until_s = Line(who, self.call_s), 0.0
        if before is not None:
            log.debug("%s: credentials were read anew", self.name)
            self._retired.append(before)
            while len(self._retired) > MOST_RETIRED:
                await self._retired.pop(0).close()
        return self._line

    def _not_closed(self) -> None:
        if self._closed:
            raise UnavailableError(f"{self.name} is not followed any more")


async def _read(asked: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> tuple[aiohttp.ClientResponse, bytes]:
    async with asked as answer:
        return answer, await whole(answer)


def _wait_s(said: str) -> int:
    """Return for how long a server is to be left alone, by its header."""
    return min(int(said), LONGEST_WAIT_S) if said.isdecimal() and len(said) < LONGEST_WAIT_S else SOON_S


def _why(error: Exception) -> str:
    """Say what went wrong with a connection, without the address of a proxy, which may have a password in it."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{error.status} {error.message}".strip()
    return str(error) or type(error).__name__


def _is_success(answer: aiohttp.ClientResponse) -> bool:
    return HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES
