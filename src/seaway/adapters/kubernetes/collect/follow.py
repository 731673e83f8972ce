"""Follows everything in one cluster that Seaway looks at, and keeps its view told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar

from seaway.adapters.kubernetes.collect.events import EVENTS, Denied
from seaway.adapters.kubernetes.collect.follow_kinds import KindsFollower, Listener, kind_sources
from seaway.adapters.kubernetes.collect.health import Aside, Health
from seaway.adapters.kubernetes.collect.kinds import PLAIN, SERVICE, is_made_by_another
from seaway.adapters.kubernetes.collect.kueue import follow_kueue
from seaway.adapters.kubernetes.collect.ours import attempt_of
from seaway.adapters.kubernetes.collect.ping import SOURCE, ping
from seaway.adapters.kubernetes.collect.reflect import Source, reflect
from seaway.adapters.kubernetes.collect.services import ServiceObject, address
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import WorkloadObject
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff, Bell
from seaway.adapters.kubernetes.objects.claim import ResourceClaim
from seaway.adapters.kubernetes.objects.meta import Item
from seaway.adapters.kubernetes.objects.node import NodeObject
from seaway.adapters.kubernetes.objects.page import Broken
from seaway.adapters.kubernetes.objects.part import Part
from seaway.adapters.kubernetes.objects.pod import PodObject
from seaway.adapters.kubernetes.objects.slice import ResourceSlice
from seaway.adapters.kubernetes.templates.registry import KindName

NODES = Source("/api/v1/nodes", NodeObject)
PODS = Source("/api/v1/pods", PodObject)
SLICES = Source("/apis/resource.k8s.io/v1/resourceslices", ResourceSlice, optional=True)
CLAIMS = Source("/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim, optional=True)

PINGS = 4
"""How often a cluster is asked whether it is there before its silence counts."""

T = TypeVar("T", bound=Part)


def sources(kinds: Sequence[KindName]) -> tuple[str, ...]:
    """Return what has to be heard before a cluster's view can be relied on; `kinds` are those that templates write."""
    return (SOURCE, NODES.path, PODS.path, SLICES.path, CLAIMS.path, *kind_sources(kinds))


@dataclass(frozen=True)
class _Sink(Generic[T]):
    """Hands objects on to functions."""

    what: str
    replace: Callable[[Sequence[T]], Coroutine[Any, Any, None]]
    put: Callable[[T], None]
    drop: Callable[[T], None]
    said: Callable[[str, Broken], None]

    def broken(self, what: Broken) -> None:
        """Tell of an object that cannot be read."""
        self.said(self.what, what)


async def follow(api: Api, view: ClusterView, health: Health, random: Random, kinds: tuple[KindName, ...]) -> None:
    """Keep a cluster's view told, until cancelled; pods after nodes, which say what pods' annotations mean.

    Pods are followed everywhere, for those of others hold devices too; what templates write in Seaway's namespace.
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

    bell = Bell()

    def tried() -> Backoff:
        return Backoff(random, bell=bell)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ping(api, health, random, view.patience_s / PINGS, bell))
        tasks.create_task(_stir(view))
        tasks.create_task(reflect(api, NODES, nodes, health, tried()))
        tasks.create_task(reflect(api, SLICES, slices, health, tried()))
        tasks.create_task(reflect(api, CLAIMS, claims, health, tried()))
        aside = Aside(f"{view.name}: events of workloads")
        tasks.create_task(reflect(api, EVENTS.within(view.namespace), Denied(view), aside, tried()))
        tasks.create_task(follow_kueue(api, view, tried))
        own = KindsFollower(api, view.namespace, health, tried, lambda kind, path: _listener(view, kind, path))
        tasks.create_task(own.run(kinds))
        while not health.has(NODES.path):
            await asyncio.sleep(0.01)
        tasks.create_task(reflect(api, PODS, pods, health, tried()))


def _listener(view: ClusterView, kind: KindName, path: str) -> Listener:
    """Say who is told of a kind."""
    if kind == SERVICE:
        return Listener(ServiceObject, _services(view, path))
    if kind.qualified in PLAIN:
        return Listener(Item, _plain(view, path))
    return Listener(WorkloadObject, _workloads(view, path))


def _workloads(view: ClusterView, path: str) -> _Sink[WorkloadObject]:
    def put(workload: WorkloadObject) -> None:
        if not is_made_by_another(workload.metadata):
            view.put_workload(path, workload)

    return _Sink[WorkloadObject](
        path,
        lambda items: view.replace_workloads(path, [each for each in items if not is_made_by_another(each.metadata)]),
        put,
        lambda each: view.drop_workload(path, each.metadata.full_name),
        view.broken,
    )


def _plain(view: ClusterView, path: str) -> _Sink[Item]:
    """Tell of objects that run nothing, and only have to be removed."""

    def put(item: Item) -> None:
        if not is_made_by_another(item.metadata):
            view.put_object(path, item.metadata)

    return _Sink[Item](
        path,
        lambda items: view.replace_objects(
            path, [each.metadata for each in items if not is_made_by_another(each.metadata)]
        ),
        put,
        lambda each: view.drop_workload(path, each.metadata.full_name),
        view.broken,
    )


def _services(view: ClusterView, path: str) -> _Sink[ServiceObject]:
    def put(service: ServiceObject) -> None:
        view.put_object(path, service.metadata)
        lead(service)

    def lead(service: ServiceObject) -> None:
        if (key := attempt_of(service.metadata, view.namespace)) and (where := address(service)):
            view.put_address(key, where)

    def drop(service: ServiceObject) -> None:
        view.drop_workload(path, service.metadata.full_name)
        if (key := attempt_of(service.metadata, view.namespace)) and address(service):
            view.put_address(key, "")

    async def replace(items: Sequence[ServiceObject]) -> None:
        await view.replace_objects(path, [each.metadata for each in items])
        for key in view.addressed() - {attempt_of(each.metadata, view.namespace) for each in items}:
            view.put_address(key, "")
        for each in items:
            lead(each)

    return _Sink[ServiceObject](path, replace, put, drop, view.broken)


async def _stir(view: ClusterView) -> None:
    """Have who waits for changes look every so often whether the cluster is still heard."""
    while True:
        await asyncio.sleep(view.patience_s / PINGS)
        view.stir()
