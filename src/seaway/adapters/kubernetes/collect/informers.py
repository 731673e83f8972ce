"""Informers of a cluster. They update its view with all objects that Seaway reads, and with Events of its pods."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import Any, Generic, TypeVar

from seaway.adapters.kubernetes.collect.health import SOURCE, Health, OptionalHealth, ping
from seaway.adapters.kubernetes.collect.health import SOURCE as ANSWERS
from seaway.adapters.kubernetes.collect.kueue import follow_kueue
from seaway.adapters.kubernetes.collect.owned import (
    CORE,
    HTTP_ROUTE,
    INGRESS,
    PASSIVE_KINDS,
    SELECTOR,
    SERVICE,
    has_controller,
    leftover_kinds,
    source_of,
)
from seaway.adapters.kubernetes.collect.reflector import ABSENT_RETRY_S, Sink, Source, read_all, reflect
from seaway.adapters.kubernetes.collect.rejections import attempt_named, pods_rejected
from seaway.adapters.kubernetes.collect.services import Exposing, IngressObject, RouteObject, ServiceObject
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff, WakeSignal
from seaway.adapters.kubernetes.connection.discovery import Discovery
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.objects.core import Item, Meta, NodeObject, Part, PodObject
from seaway.adapters.kubernetes.objects.decode import Broken, UndecodableError
from seaway.adapters.kubernetes.objects.dra import ResourceClaim, ResourceSlice
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.adapters.kubernetes.templates.registry import KindName
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import in_cluster, reason_of


class Involved(Part, frozen=True):
    """Object of an event."""

    name: str = ""


class EventObject(Part, frozen=True):
    """An event."""

    metadata: Meta = Meta()
    involved_object: Involved = Involved()
    reason: str = ""
    message: str = ""


EVENTS = Source("/api/v1/events", EventObject, fields="type=Warning,involvedObject.kind!=Pod")
"""Warning events except those of pods. Pods have many events, and their status has the same information."""

_CREATING = re.compile(r"Failed(To)?Create")


class EventSink:
    """Receiver of events that reports rejected pods to a view."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._known: set[str] = set()

    async def replace(self, items: Sequence[EventObject]) -> None:
        """Replace all events."""
        for name in self._known - {each.metadata.full_name for each in items}:
            self._forget(name)
        for each in items:
            self.put(each)

    def put(self, item: EventObject) -> None:
        """Add an event or its repetition."""
        key = attempt_named(item.involved_object.name)
        if key and _CREATING.match(item.reason) and self._view.namespaces.matches(item.metadata.namespace):
            self._known.add(item.metadata.full_name)
            self._view.reject(key, _source(item.metadata.full_name), pods_rejected(item.message))

    def drop(self, item: EventObject) -> None:
        """Remove an event that the server deleted."""
        self._forget(item.metadata.full_name)

    def broken(self, what: Broken) -> None:
        """Ignore an invalid event."""

    def _forget(self, name: str) -> None:
        if name in self._known:
            self._known.discard(name)
            self._view.allow(_source(name))


def _source(name: str) -> str:
    return f"event {name}"


log = logging.getLogger(__name__)

_Followed = tuple[Source[Any], Sink[Any]]

LEFTOVERS = "left by templates"
"""Name of the health source for the leftovers of removed templates."""

MAX_TRIES = 5


def kind_sources(kinds: Sequence[KindName]) -> tuple[str, ...]:
    """Return the sources that must answer before the objects of `kinds` are known."""
    return (*map(source_of, kinds), LEFTOVERS)


@dataclass(frozen=True)
class KindSink:
    """Receiver of the objects of a kind.

    Attributes
    ----------
    kind
        Type to decode the objects as.
    """

    kind: type[Any]
    sink: Sink[Any]


@dataclass(frozen=True)
class KindInformers:
    """Informers of kinds in one API server.

    Attributes
    ----------
    namespaces
        Namespaces of the objects.
    new_backoff
        Creates a back-off for retries.
    sink_of
        Returns the receiver of a kind, by the kind and the path of its objects.
    """

    api: Api
    namespaces: Namespaces
    health: Health
    new_backoff: Callable[[], Backoff]
    sink_of: Callable[[KindName, str], KindSink]

    async def run(self, kinds: tuple[KindName, ...]) -> None:
        """Follow the kinds, and the leftovers of other kinds, until cancelled."""
        discovery = Discovery(self.api)
        async with asyncio.TaskGroup() as tasks:
            for kind in kinds:
                tasks.create_task(self._follow(kind, discovery))
            left = await asyncio.gather(*(self._leftovers(each, discovery) for each in leftover_kinds(kinds)))
            for source, sink in chain.from_iterable(left):
                tasks.create_task(reflect(self.api, source, sink, self.health, self.new_backoff()))
            self.health.succeeded(LEFTOVERS)

    async def _follow(self, kind: KindName, discovery: Discovery) -> None:
        path = CORE.get(kind) or await self._path(kind, discovery)
        source, sink = self._of(kind, path)
        await reflect(self.api, source, sink, self.health, self.new_backoff())

    def _of(self, kind: KindName, path: str) -> _Followed:
        reported, essential = self.sink_of(kind, path), kind in CORE
        label = source_of(kind)
        source = Source(path, reported.kind, SELECTOR, not essential, label=label, skippable=not essential)
        return source.across(self.namespaces), reported.sink

    async def _path(self, kind: KindName, discovery: Discovery) -> str:
        """Wait until the server supports a kind; return the path of its objects."""
        backoff = self.new_backoff()
        while True:
            try:
                found = await discovery.kind(*kind)
            except (ApiError, UnavailableError, UndecodableError) as error:
                self.health.failed(source_of(kind), _named(self.api, error), optional=True)
                await backoff.pause()
                continue
            if found and found.namespaced:
                return found.path
            self.health.succeeded(source_of(kind))
            await asyncio.sleep(ABSENT_RETRY_S)

    async def _leftovers(self, qualified: str, discovery: Discovery) -> list[_Followed]:
        """Return the source and sink of a kind that no template writes, if it has objects. Check only once.

        Skip a kind that Seaway may not list: the administrator may have removed the permission with the template. Skip
        a kind that keeps failing on a responding server.
        """
        backoff, tries = self.new_backoff(), 0
        while tries < MAX_TRIES:
            try:
                return await self._leftovers_of(qualified, discovery)
            except ApiError:
                break
            except (UnavailableError, UndecodableError) as error:
                tries += self.health.has(ANSWERS)
                if tries == MAX_TRIES:
                    log.warning(
                        "%s: leftovers of templates of kind %s are not searched: %s", self.api.name, qualified, error
                    )
                else:
                    self.health.failed(LEFTOVERS, reason_of(error))
                    await backoff.pause()
        return []

    async def _leftovers_of(self, qualified: str, discovery: Discovery) -> list[_Followed]:
        name, _, group = qualified.partition(".")
        kind = KindName(await discovery.version(group), name)
        known = await discovery.kind(*kind) if kind.version else None
        if known is None or not known.namespaced:
            return []
        source, sink = self._of(kind, known.path)
        items, _, _ = await read_all(self.api, source)
        if all(has_controller(each.metadata) for each in items):
            return []
        await sink.replace(items)
        return [(source, sink)]


def _named(api: Api, error: Exception) -> str:
    """Describe an error with the server's name."""
    return in_cluster(api.name, reason_of(error))


NODES = Source("/api/v1/nodes", NodeObject)
PODS = Source("/api/v1/pods", PodObject)
SLICES = Source("/apis/resource.k8s.io/v1/resourceslices", ResourceSlice, optional=True)
CLAIMS = Source("/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim, optional=True)

PINGS = 4
"""Number of health checks before a cluster counts as unreachable."""

EXPOSING: Mapping[KindName, type[Exposing]] = {
    SERVICE: ServiceObject,
    INGRESS: IngressObject,
    HTTP_ROUTE: RouteObject,
}
"""Types of the objects that give ports an address, by kind."""

T = TypeVar("T", bound=Part)


def sources(kinds: Sequence[KindName]) -> tuple[str, ...]:
    """Return the sources that must answer before a view is usable; `kinds` are the kinds that templates write."""
    return (SOURCE, NODES.path, PODS.path, SLICES.path, CLAIMS.path, *kind_sources(kinds))


@dataclass(frozen=True)
class _Sink(Generic[T]):
    """Receiver that passes objects to functions."""

    what: str
    replace: Callable[[Sequence[T]], Coroutine[Any, Any, None]]
    put: Callable[[T], None]
    drop: Callable[[T], None]
    said: Callable[[str, Broken], None]

    def broken(self, what: Broken) -> None:
        """Report an object that cannot be decoded."""
        self.said(self.what, what)


async def follow(api: Api, view: ClusterView, health: Health, random: Random, kinds: tuple[KindName, ...]) -> None:
    """Update a cluster's view until cancelled. Nodes are listed before pods, because pods' annotations refer to them.

    Follow pods in all namespaces, because unmanaged pods use devices, too. Follow kinds of templates where
    tenants have their namespaces.
    """
    nodes = _Sink[NodeObject](
        "node", view.replace_nodes, view.put_node, lambda each: view.drop_node(each.metadata.name), view.broken
    )
    pods = _Sink[PodObject](
        "pod", view.replace_pods, view.put_pod, lambda each: view.drop_pod(each.metadata.full_name), view.broken
    )

    slices = _Sink[ResourceSlice](
        "resource slice",
        view.replace_slices,
        lambda each: view.put_slices((each,)),
        lambda each: view.put_slices((), (each.metadata.name,)),
        view.broken,
    )
    claims = _Sink[ResourceClaim](
        "resource claim",
        view.replace_claims,
        view.put_claim,
        lambda each: view.drop_claim(each.metadata.full_name),
        view.broken,
    )

    bell = WakeSignal()

    def tried() -> Backoff:
        return Backoff(random, wake_signal=bell)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ping(api, health, random, view.unreachable_timeout_s / PINGS, bell))
        tasks.create_task(_wake_periodically(view))
        tasks.create_task(reflect(api, NODES, nodes, health, tried()))
        tasks.create_task(reflect(api, SLICES, slices, health, tried()))
        tasks.create_task(reflect(api, CLAIMS, claims, health, tried()))
        aside = OptionalHealth(f"{view.name}: events of workloads")
        tasks.create_task(reflect(api, EVENTS.across(view.namespaces), EventSink(view), aside, tried()))
        tasks.create_task(follow_kueue(api, view, tried))
        own = KindInformers(api, view.namespaces, health, tried, lambda kind, path: _listener(view, kind, path))
        tasks.create_task(own.run(kinds))
        while not health.has(NODES.path):
            await asyncio.sleep(0.01)
        tasks.create_task(reflect(api, PODS, pods, health, tried()))


def _listener(view: ClusterView, kind: KindName, path: str) -> KindSink:
    """Return the receiver of a kind."""
    if kind in EXPOSING:
        return KindSink(EXPOSING[kind], _sink(view, path, view.replace_exposing, view.put_exposing))
    if kind.qualified in PASSIVE_KINDS:  # they run nothing, and Seaway only removes them
        return KindSink(
            Item,
            _sink(
                view,
                path,
                lambda path, items: view.replace_objects(path, [each.metadata for each in items]),
                lambda path, item: view.put_object(path, item.metadata),
            ),
        )
    return KindSink(WorkloadObject, _sink(view, path, view.replace_workloads, view.put_workload))


def _sink(
    view: ClusterView,
    path: str,
    replace: Callable[[str, list[Any]], Coroutine[Any, Any, None]],
    put: Callable[[str, Any], None],
) -> _Sink[Any]:
    """Return a receiver of the objects that no controller manages."""

    def put_own(item: Any) -> None:  # noqa: ANN401  # an object of any kind
        if not has_controller(item.metadata):
            put(path, item)

    return _Sink[Any](
        path,
        lambda items: replace(path, [each for each in items if not has_controller(each.metadata)]),
        put_own,
        lambda each: view.drop_workload(path, each.metadata.full_name),
        view.broken,
    )


async def _wake_periodically(view: ClusterView) -> None:
    """Wake waiting threads periodically, so that they check the cluster's health."""
    while True:
        await asyncio.sleep(view.unreachable_timeout_s / PINGS)
        view.wake()
