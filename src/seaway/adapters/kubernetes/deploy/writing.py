"""Writing and deleting objects in one API server, so that doing it twice does no harm."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.discovery import Discovery, Kind
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.objects.decode import read_body
from seaway.adapters.kubernetes.objects.meta import Item
from seaway.adapters.kubernetes.templates.names import ATTEMPT, JOB
from seaway.domain.errors import RejectedError


async def run_concurrently(works: Iterable[Callable[[], Awaitable[None]]], limit: int) -> None:
    """Do works, so many at the same time; once one has failed no other is begun.

    Parameters
    ----------
    works
        Each called when its turn comes.
    limit
        At the same time.

    Raises
    ------
    Exception
        Of the first that failed, when those under way have ended.
    """
    free = asyncio.Semaphore(limit)
    failed: list[Exception] = []

    async def do(work: Callable[[], Awaitable[None]]) -> None:
        async with free:
            if failed:
                return
            try:
                await work()
            except Exception as error:  # noqa: BLE001  # it is raised below
                failed.append(error)

    await asyncio.gather(*(do(each) for each in works))
    if failed:
        raise failed[0]


log = logging.getLogger(__name__)

MAX_CONCURRENT_WRITES = 32
"""Calls that change something under way at the same time; others wait, which is none of their own time."""

MAX_WRITES_PER_ATTEMPT = 8
"""Of those at most so many for one attempt: where its calls hang, others have their turns."""

FORBIDDEN_RETRY_S = 1.0
"""How long until it is asked once more whether something is not allowed: a server that just began may not know yet."""


class Objects:
    """The objects of one API server.

    Parameters
    ----------
    api
        The server.
    namespace
        Where Seaway's objects go; made when it is missing.

    Attributes
    ----------
    answered
        How many calls that change something the server has answered, whatever it said.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._discovery = Discovery(api)
        self._making = asyncio.Lock()
        self._free = asyncio.Semaphore(MAX_CONCURRENT_WRITES)
        self.answered = 0

    async def write(self, body: Mapping[str, Any], begun: Callable[[str], None], *, create_only: bool = False) -> None:
        """Have an object be as `body` says.

        Parameters
        ----------
        begun
            Told the path of all of its kind before the object is written, for that may not be answered.

        Raises
        ------
        ApiError
            When the server refuses.
        RejectedError
            When it does not know the kind, or there is no namespace.
        UnavailableError
            When it does not answer.
        """
        version, name = str(body["apiVersion"]), str(body["kind"])
        kind = self._known(await self._discovery.kind(version, name), body)
        begun(kind.path)
        try:
            await self._put(kind, body, create_only=create_only)
        except ApiError as error:
            if not error.missing:
                raise
            kind = self._known(await self._discovery.refresh_kind(version, name), body)
            if not kind.namespaced:
                raise
            begun(kind.path)
            await self._make_namespace()
            await self._put(kind, body, create_only=create_only)

    async def delete(self, places: Iterable[tuple[str, str]]) -> None:
        """Delete objects, all at once; one that is not there is passed over.

        Parameters
        ----------
        places
            For each the path of all of its kind, and ``namespace/name``.

        Raises
        ------
        ApiError, UnavailableError
            As `write` does.
        """
        await run_concurrently((partial(self._delete, *each) for each in places), MAX_WRITES_PER_ATTEMPT)

    async def _delete(self, kind: str, full_name: str) -> None:
        namespace, _, name = full_name.partition("/")
        prefix, _, plural = kind.rpartition("/")
        try:
            async with self._slot():
                await self._api.delete(f"{prefix}/namespaces/{namespace}/{plural}/{name}")
        except ApiError as error:
            if not error.missing:
                raise

    def _known(self, kind: Kind | None, body: Mapping[str, Any]) -> Kind:
        if kind is None:
            raise RejectedError(f"{self._api.name} does not know {body['kind']} of {body['apiVersion']}")
        return kind

    async def _put(self, kind: Kind, body: Mapping[str, Any], *, create_only: bool) -> None:
        """Write an object; that it is not allowed is believed when it is said twice."""
        try:
            await self._put_once(kind, body, create_only=create_only)
        except ApiError as error:
            if not error.forbidden or error.transient:
                raise
            await asyncio.sleep(FORBIDDEN_RETRY_S)
            await self._put_once(kind, body, create_only=create_only)

    async def _put_once(self, kind: Kind, body: Mapping[str, Any], *, create_only: bool) -> None:
        collection = kind.collection(self._namespace)
        if not create_only:
            await self._apply(f"{collection}/{body['metadata']['name']}", body)
            return
        try:
            async with self._slot():
                await self._api.create(collection, body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _apply(self, path: str, body: Mapping[str, Any]) -> None:
        """Have an object be as `body` says; one that is there already stays where it may not be changed.

        What runs was changed then by a user in the cluster who may, as Kueue does while a Job is suspended, or it was
        written by another version of Seaway. It is the same attempt's.
        """
        async with self._slot():
            try:
                await self._api.apply(path, body)
            except ApiError as error:
                if not error.immutable:
                    raise
                there = read_body(await self._api.get(path), Item).metadata.labels
                wanted = body["metadata"].get("labels", {})
                if JOB not in wanted or any(there.get(each) != wanted.get(each) for each in (JOB, ATTEMPT)):
                    raise
                log.info("%s: %s stays as it is: %s", self._api.name, path, error)

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Wait for a turn to call the server, and note that it answered."""
        async with self._free:
            try:
                yield
            except ApiError:
                self.answered += 1
                raise
            self.answered += 1

    async def _make_namespace(self) -> None:
        """Make the namespace, unless another user just did."""
        async with self._making:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
            try:
                await self._api.create("/api/v1/namespaces", body)
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    return
                if error.transient:
                    raise
                raise RejectedError(
                    f"namespace {self._namespace!r} not found, and it cannot be made: {error}"
                ) from None
