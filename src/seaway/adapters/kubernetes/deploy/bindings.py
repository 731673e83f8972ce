"""Seaway as the scheduler of Karmada's bindings: each is told the cluster that its policy names.

References
----------
work.karmada.io/v1alpha2 ResourceBinding; policies name their scheduler in ``spec.schedulerName``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.errors import ApiError
from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.objects.page import Broken
from seaway.adapters.kubernetes.objects.part import Part
from seaway.adapters.kubernetes.templates.karmada import SCHEDULER
from seaway.domain.errors import UnavailableError

log = logging.getLogger(__name__)

BINDINGS = "/apis/work.karmada.io/v1alpha2/resourcebindings"
AT_ONCE = 16
AGAIN_S = 1.0


class ClusterAffinity(Part, frozen=True):
    """Which clusters a policy allows."""

    cluster_names: tuple[str, ...] = ()


class BindingPlacement(Part, frozen=True):
    """Where a policy wants its objects."""

    cluster_affinity: ClusterAffinity = ClusterAffinity()


class Target(Part, frozen=True):
    """A cluster that a binding was given."""

    name: str = ""
    replicas: int = 0


class BindingSpec(Part, frozen=True):
    """What is wanted of a binding."""

    scheduler_name: str = ""
    replicas: int = 0
    clusters: tuple[Target, ...] = ()
    placement: BindingPlacement = BindingPlacement()


class BindingObject(Part, frozen=True):
    """A ResourceBinding."""

    metadata: Meta = Meta()
    spec: BindingSpec = BindingSpec()


class Bindings:
    """Gives every binding that is Seaway's the cluster that its policy names, whoever changed it. For one event loop.

    Parameters
    ----------
    api
        Karmada's API server.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._bound: dict[str, tuple[Target, ...]] = {}
        self._awaited: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._free = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def bound(self, names: Sequence[str], within_s: float) -> None:
        """Wait until bindings, ``namespace/name``, have their clusters.

        Raises
        ------
        UnavailableError
            When that takes too long: Karmada has not made them yet, or did not take what they were given.
        """
        try:
            async with asyncio.timeout(within_s):
                for name in names:
                    while not self._bound.get(name):
                        await self._news_of(name)
        except TimeoutError:
            missing = next((name for name in names if not self._bound.get(name)), names[-1])
            raise UnavailableError(f"Karmada has not bound {missing} within {within_s:g} s") from None

    async def _news_of(self, name: str) -> None:
        """Wait until something is told of a binding."""
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited[name].add(news)
        try:
            await news
        finally:
            self._awaited[name].discard(news)
            if not self._awaited[name]:
                del self._awaited[name]

    # What is told of bindings.

    def replace(self, items: Sequence[BindingObject]) -> None:
        """Take these for all bindings."""
        self._bound.clear()
        for each in items:
            self.put(each)

    def put(self, item: BindingObject) -> None:
        """Take a binding as it is now, and mend it if need be."""
        spec = item.spec
        if spec.scheduler_name != SCHEDULER:
            return
        name = f"{item.metadata.namespace}/{item.metadata.name}"
        wanted = _wanted(spec)
        self._bound[name] = spec.clusters if spec.clusters == wanted else ()
        if wanted and spec.clusters != wanted:
            self._begin(self._bind(item.metadata, wanted))
        for news in self._awaited.get(name, ()):
            if not news.done():
                news.set_result(None)

    def drop(self, item: BindingObject) -> None:
        """Note that a binding is gone."""
        self._bound.pop(f"{item.metadata.namespace}/{item.metadata.name}", None)

    def broken(self, what: Broken) -> None:
        """Say that a binding cannot be read."""
        log.warning("%s: the binding %s/%s cannot be read: %s", self._api.name, what.namespace, what.name, what.text)

    async def _bind(self, meta: Meta, wanted: tuple[Target, ...]) -> None:
        clusters: list[dict[str, Any]] = [
            {"name": each.name} | ({"replicas": each.replicas} if each.replicas else {}) for each in wanted
        ]
        path = f"/apis/work.karmada.io/v1alpha2/namespaces/{meta.namespace}/resourcebindings/{meta.name}"
        body = {"metadata": {"resourceVersion": meta.resource_version}, "spec": {"clusters": clusters}}
        while not self._bound.get(f"{meta.namespace}/{meta.name}", wanted):
            try:
                async with self._free:
                    await self._api.patch(path, body)
            except ApiError as error:
                if not (error.conflict or error.missing):  # else the next event says how it is now
                    log.warning("%s: %s/%s cannot be bound: %s", self._api.name, meta.namespace, meta.name, error)
                return
            except UnavailableError as error:
                log.warning("%s: %s/%s is not bound yet: %s", self._api.name, meta.namespace, meta.name, error)
                await asyncio.sleep(AGAIN_S)
            else:
                return

    def _begin(self, work: Any) -> None:  # noqa: ANN401  # a coroutine
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _wanted(spec: BindingSpec) -> tuple[Target, ...]:
    """Return what a binding has to say: the one cluster that its policy names, with all replicas."""
    names = spec.placement.cluster_affinity.cluster_names
    return (Target(names[0], spec.replicas),) if len(names) == 1 else ()
