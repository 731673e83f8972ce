"""Idempotent writes and deletions of objects in one API server."""

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
from seaway.adapters.kubernetes.objects.core import Item
from seaway.adapters.kubernetes.objects.decode import read_body
from seaway.adapters.kubernetes.templates.names import ATTEMPT, JOB
from seaway.domain.errors import RejectedError


async def run_concurrently(works: Iterable[Callable[[], Awaitable[None]]], limit: int) -> None:
    """Run functions with limited concurrency; start no further functions after a failure.

    Parameters
    ----------
    works
        Functions to call.
    limit
        Maximum number of concurrent calls.

    Raises
    ------
    Exception
        The first failure, after the running calls have ended.
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
"""Maximum number of concurrent writes. Other writes wait, and the wait does not count for their timeout."""

MAX_WRITES_PER_ATTEMPT = 8
"""Maximum number of concurrent writes for one attempt, so that hanging calls do not block other attempts."""

FORBIDDEN_RETRY_S = 1.0
"""Delay in seconds of the only retry after 403. A server that just started may not have loaded its rules."""


class Objects:
    """Objects of one API server.

    Parameters
    ----------
    api
        The server.

    Attributes
    ----------
    answered
        Number of writes that the server has answered, with any result.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._discovery = Discovery(api)
        self._free = asyncio.Semaphore(MAX_CONCURRENT_WRITES)
        self.answered = 0

    async def write(
        self,
        body: Mapping[str, Any],
        begun: Callable[[str], None],
        *,
        create_only: bool = False,
        restore: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Write an object.

        Parameters
        ----------
        begun
            Called with the path of the kind before the write, because the answer may be lost.
        restore
            Creates the missing namespace; None if it exists.

        Raises
        ------
        ApiError
            When the server refuses the request.
        RejectedError
            When the server does not have the kind, or as `restore`.
        UnavailableError
            When the server does not answer.
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
            if not kind.namespaced or restore is None:
                raise
            begun(kind.path)
            await restore()
            await self._put(kind, body, create_only=create_only)

    async def remove(self, body: Mapping[str, Any]) -> None:
        """Delete an object, if it exists; raise as `write`."""
        kind = await self._discovery.kind(str(body["apiVersion"]), str(body["kind"]))
        if kind:
            metadata = body["metadata"]
            await self._delete(kind.path, f"{metadata['namespace']}/{metadata['name']}")

    async def delete(self, places: Iterable[tuple[str, str]]) -> None:
        """Delete objects concurrently; skip missing ones.

        Parameters
        ----------
        places
            Path of the kind and ``namespace/name`` of each object.

        Raises
        ------
        ApiError, UnavailableError
            As for `write`.
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
        """Write an object; retry once if it is forbidden."""
        try:
            await self._put_once(kind, body, create_only=create_only)
        except ApiError as error:
            if not error.forbidden or error.transient:
                raise
            await asyncio.sleep(FORBIDDEN_RETRY_S)
            await self._put_once(kind, body, create_only=create_only)

    async def _put_once(self, kind: Kind, body: Mapping[str, Any], *, create_only: bool) -> None:
        collection = kind.collection(body["metadata"].get("namespace", ""))
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
        """Apply an object. Keep an existing object if an immutable field differs.

        In this case an authorized controller changed it, as Kueue does while a Job is suspended, or another version of
        Seaway wrote it. The labels confirm that it belongs to the same attempt.
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
        """Wait for a slot to call the server, and count the answer."""
        async with self._free:
            try:
                yield
            except ApiError:
                self.answered += 1
                raise
            self.answered += 1
