"""Writing and deleting objects in one API server, so that doing it twice does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.discovery import Discovery
from seaway.adapters.kubernetes.connection.errors import ApiError
from seaway.domain.errors import RejectedError


class Objects:
    """The objects of one API server.

    Parameters
    ----------
    api
        The server.
    namespace
        Where Seaway's objects go; made when it is missing.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._discovery = Discovery(api)
        self._making = asyncio.Lock()

    async def write(self, body: Mapping[str, Any], *, create_only: bool = False) -> str:
        """Have an object be as `body` says; return the path of all of its kind.

        Raises
        ------
        RejectedError
            When the server will not have it.
        UnavailableError
            When it does not answer.
        """
        kind = await self._discovery.kind(str(body["apiVersion"]), str(body["kind"]))
        if kind is None:
            raise RejectedError(f"{self._api.name} does not know {body['kind']} of {body['apiVersion']}")
        collection, name = kind.collection(self._namespace), body["metadata"]["name"]
        try:
            await self._put(collection, name, body, create_only=create_only)
        except ApiError as error:
            if not (error.missing and kind.namespaced):
                raise _refused(error) from None
            await self._make_namespace()
            try:
                await self._put(collection, name, body, create_only=create_only)
            except ApiError as again:
                raise _refused(again) from None
        return kind.path

    async def delete(self, places: Iterable[tuple[str, str]]) -> None:
        """Delete objects, all at once; one that is not there is passed over.

        Parameters
        ----------
        places
            For each the path of all of its kind, and ``namespace/name``.

        Raises
        ------
        RejectedError, UnavailableError
            As `write` does.
        """
        await asyncio.gather(*(self._delete(kind, full_name) for kind, full_name in places))

    async def _delete(self, kind: str, full_name: str) -> None:
        namespace, _, name = full_name.partition("/")
        prefix, _, plural = kind.rpartition("/")
        try:
            await self._api.delete(f"{prefix}/namespaces/{namespace}/{plural}/{name}")
        except ApiError as error:
            if not error.missing:
                raise _refused(error) from None

    async def _put(self, collection: str, name: str, body: Mapping[str, Any], *, create_only: bool) -> None:
        if not create_only:
            await self._api.apply(f"{collection}/{name}", body)
            return
        try:
            await self._api.create(collection, body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _make_namespace(self) -> None:
        """Make the namespace, unless somebody else just did."""
        async with self._making:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
            try:
                await self._api.create("/api/v1/namespaces", body)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise RejectedError(
                        f"there is no namespace {self._namespace!r}, and it cannot be made: {error}"
                    ) from None


def _refused(error: ApiError) -> RejectedError:
    return RejectedError(str(error))
