"""API discovery with a cache. A missing kind is looked up again."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.objects.core import Part
from seaway.adapters.kubernetes.objects.decode import read_body


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects.

    Attributes
    ----------
    prefix
        Path of its group and version, such as ``/apis/apps/v1``.
    plural
        Its name in paths, such as ``deployments``.
    namespaced
        True if its objects are in namespaces.
    """

    prefix: str
    plural: str
    namespaced: bool

    @property
    def path(self) -> str:
        """Path of its objects in all namespaces."""
        return f"{self.prefix}/{self.plural}"

    def collection(self, namespace: str) -> str:
        """Return the path of its objects in a namespace, or of all objects of a cluster-scoped kind."""
        return f"{self.prefix}/namespaces/{namespace}/{self.plural}" if self.namespaced else self.path


class _Resource(Part, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _Resources(Part, frozen=True):
    resources: tuple[_Resource, ...] = ()


class _Version(Part, frozen=True):
    group_version: str = ""


class _Group(Part, frozen=True):
    preferred_version: _Version = _Version()


class Discovery:
    """Index of the kinds of one API server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kinds: dict[tuple[str, str], Kind] = {}

    async def kind(self, version: str, name: str) -> Kind | None:
        """Return a kind by its ``apiVersion`` and ``kind``; None if the server does not have it.

        Raises
        ------
        UnavailableError
            When the server does not answer.
        """
        if (version, name) not in self._kinds:
            await self._fetch(version)
        return self._kinds.get((version, name))

    async def refresh_kind(self, version: str, name: str) -> Kind | None:
        """Return a kind as `kind` does, but skip the cache, because the server may have removed the kind."""
        self._kinds.pop((version, name), None)
        return await self.kind(version, name)

    async def version(self, group: str) -> str:
        """Return the preferred ``apiVersion`` of a group; empty if the server does not have the group.

        Raises
        ------
        UnavailableError
            When the server does not answer.
        """
        if not group:
            return "v1"
        try:
            return read_body(await self._api.get(f"/apis/{group}"), _Group).preferred_version.group_version
        except ApiError as error:
            if error.missing:
                return ""
            raise

    async def _fetch(self, version: str) -> None:
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            reported = read_body(await self._api.get(prefix), _Resources)
        except ApiError as error:
            if error.missing:
                return
            raise
        for each in reported.resources:
            if "/" not in each.name:  # skips subresources
                self._kinds[version, each.kind] = Kind(prefix, each.name, each.namespaced)
