"""Namespaces of tenants in one API server. Each is created, with its content, before its first job."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from time import monotonic
from typing import Any

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.objects.core import Item
from seaway.adapters.kubernetes.objects.decode import read_body
from seaway.adapters.kubernetes.templates.names import TENANT
from seaway.adapters.kubernetes.templates.namespace_objects import NamespaceOptions
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.errors import RejectedError, UnavailableError

RENEWAL_S = 600.0
"""Time in seconds after which the content of a namespace is written again before the next job, because others may have
changed it."""

COLLECTION = "/api/v1/namespaces"
RIGHTS = "deploy/kubernetes/namespaces.yaml grants the rights"


class TenantNamespaces:
    """Namespaces of one API server, for one event loop.

    Parameters
    ----------
    names
        Names of the namespaces.
    options
        Their content.
    now_s
        Clock in seconds.
    """

    def __init__(
        self,
        api: Api,
        objects: Objects,
        names: Namespaces,
        options: NamespaceOptions,
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        self._api = api
        self._objects = objects
        self.names = names
        self._options = options
        self._now_s = now_s
        self._written_s: dict[str, float] = {}
        """Time of the last write of each namespace's content."""
        self._writing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def content(self, namespace: str, tenant: str) -> list[dict[str, Any]]:
        """Return the objects of a tenant's namespace."""
        return self._options.objects(namespace, tenant)

    async def prepare(self, tenant: str) -> None:
        """Create the namespace of a tenant with its content, unless that happened a short time ago.

        Raises
        ------
        RejectedError
            When Seaway lacks a right, or the namespace is not for this tenant.
        UnavailableError, ApiError
            When the server does not answer, or refuses for now.
        """
        namespace = self.names.of(tenant)
        if not self.names.per_tenant or self._is_written(namespace):
            return
        async with self._writing[namespace]:
            if not self._is_written(namespace):
                await self._claim(namespace, tenant)
                for body in self.content(namespace, tenant):
                    await self._write(body)
                self._written_s[namespace] = self._now_s()

    async def restore(self, namespace: str, tenant: str) -> None:
        """Create a missing namespace again; raise as `prepare`."""
        if namespace != self.names.of(tenant):
            raise UnavailableError(f"{self._api.name} has no namespace {namespace!r} any more")
        self._written_s.pop(namespace, None)
        if self.names.per_tenant:
            await self.prepare(tenant)
            return
        async with self._writing[namespace]:
            await self._create(namespace, "")

    def _is_written(self, namespace: str) -> bool:
        written_s = self._written_s.get(namespace)
        return written_s is not None and self._now_s() - written_s < RENEWAL_S

    async def _claim(self, namespace: str, tenant: str) -> None:
        """Create a namespace, or check that the existing one is for the tenant."""
        try:
            there = read_body(await self._api.get(f"{COLLECTION}/{namespace}"), Item).metadata
        except ApiError as error:
            if error.missing:
                await self._create(namespace, tenant)
                return
            if error.transient:
                raise
            raise RejectedError(f"namespace {namespace!r} cannot be read: {error}; {RIGHTS}") from None
        if there.labels.get(TENANT) != tenant:
            raise RejectedError(
                f"namespace {namespace!r} exists without the label of tenant {tenant!r}; "
                f"if jobs may run there: kubectl label namespace {namespace} {TENANT}={tenant}"
            )

    async def _create(self, namespace: str, tenant: str) -> None:
        try:
            await self._api.create(COLLECTION, self._options.namespace(namespace, tenant))
        except ApiError as error:
            if error.reason == "AlreadyExists":
                if tenant:
                    raise UnavailableError(f"namespace {namespace!r} was created by someone else just now") from None
                return
            if error.transient:
                raise
            raise RejectedError(
                f"namespace {namespace!r} does not exist, and Seaway cannot create it: {error}; create it as in "
                f"deploy/kubernetes/tenant.yaml, or apply deploy/kubernetes/namespaces.yaml"
            ) from None

    async def _write(self, body: dict[str, Any]) -> None:
        kind, name = body["kind"], f"{body['metadata']['namespace']}/{body['metadata']['name']}"
        try:
            await self._objects.write(body, lambda _: None)
        except ApiError as error:
            if error.missing:
                raise UnavailableError(f"{kind} {name} is not written yet: {error}") from None
            if error.transient:
                raise
            raise RejectedError(f"{kind} {name} cannot be written: {error}; {RIGHTS}") from None
