"""Follows everything in one cluster that Seaway looks at, and keeps its view told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from seaway.adapters.kubernetes.collect.events import EVENTS, Denied
from seaway.adapters.kubernetes.collect.health import Aside, Health
from seaway.adapters.kubernetes.collect.ours import SELECTOR, attempt_of
from seaway.adapters.kubernetes.collect.ping import SOURCE, ping
from seaway.adapters.kubernetes.collect.reflect import Source, reflect
from seaway.adapters.kubernetes.collect.services import ServiceObject, address
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.collect.workloads import KINDS, WorkloadObject
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff, Bell
from seaway.adapters.kubernetes.objects.claim import ResourceClaim
from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.objects.node import NodeObject
from seaway.adapters.kubernetes.objects.page import Broken
from seaway.adapters.kubernetes.objects.part import Part
from seaway.adapters.kubernetes.objects.pod import PodObject
from seaway.adapters.kubernetes.objects.slice import ResourceSlice

NODES = Source("/api/v1/nodes", NodeObject)
PODS = Source("/api/v1/pods", PodObject)
SLICES = Source("/apis/resource.k8s.io/v1/resourceslices", ResourceSlice, optional=True)
CLAIMS = Source("/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim, optional=True)
SERVICES = Source("/api/v1/services", ServiceObject, SELECTOR)
WORKLOADS = tuple(Source(path, WorkloadObject, SELECTOR, optional) for path, optional in KINDS.items())
SOURCES = (SOURCE, NODES.path, PODS.path, SLICES.path, CLAIMS.path, SERVICES.path, *KINDS)
"""What has to be heard before a cluster's view can be relied on."""

PINGS = 4
"""How often a cluster is asked whether it is there before its silence counts."""

T = TypeVar("T", bound=Part)


@dataclass(frozen=True)
class _Sink(Generic[T]):
    """Hands objects on to functions."""

    what: str
    replace: Callable[[Sequence[T]], None]
    put: Callable[[T], None]
    drop: Callable[[T], None]
    said: Callable[[str, Broken], None]

    def broken(self, what: Broken) -> None:
        """Tell of an object that cannot be read."""
        self.said(self.what, what)


async def follow(api: Api, view: ClusterView, health: Health, random: Random) -> None:
    """Keep a cluster's view told, until cancelled; pods after nodes, which say what pods' annotations mean.

    Pods are followed everywhere, for those of others hold devices too; workloads and services in Seaway's namespace.
    """
    nodes = _Sink[NodeObject](
        "node", view.replace_nodes, view.put_node, lambda each: view.drop_node(each.metadata.name), view.broken
    )
    pods = _Sink[PodObject](
        "pod", view.replace_pods, view.put_pod, lambda each: view.drop_pod(_full_name(each.metadata)), view.broken
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
        lambda each: view.drop_claim(_full_name(each.metadata)),
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
        tasks.create_task(reflect(api, SERVICES.within(view.namespace), _services(view), health, tried()))
        aside = Aside(f"{view.name}: events of workloads")
        tasks.create_task(reflect(api, EVENTS.within(view.namespace), Denied(view), aside, tried()))
        for source in WORKLOADS:
            tasks.create_task(
                reflect(api, source.within(view.namespace), _workloads(view, source.path), health, tried())
            )
        while not health.has(NODES.path):
            await asyncio.sleep(0.01)
        tasks.create_task(reflect(api, PODS, pods, health, tried()))


def _workloads(view: ClusterView, kind: str) -> _Sink[WorkloadObject]:
    return _Sink[WorkloadObject](
        "workload",
        lambda items: view.replace_workloads(kind, items),
        lambda each: view.put_workload(kind, each),
        lambda each: view.drop_workload(kind, _full_name(each.metadata)),
        view.broken,
    )


def _services(view: ClusterView) -> _Sink[ServiceObject]:
    kind = SERVICES.path

    def put(service: ServiceObject) -> None:
        view.put_object(kind, service.metadata)
        if (key := attempt_of(service.metadata, view.namespace)) and (where := address(service)):
            view.put_address(key, where)

    def drop(service: ServiceObject) -> None:
        view.drop_workload(kind, _full_name(service.metadata))
        if (key := attempt_of(service.metadata, view.namespace)) and address(service):
            view.put_address(key, "")

    def replace(items: Sequence[ServiceObject]) -> None:
        view.replace_workloads(kind, ())
        for key in view.addressed() - {attempt_of(each.metadata, view.namespace) for each in items}:
            view.put_address(key, "")
        for each in items:
            put(each)

    return _Sink[ServiceObject]("service", replace, put, drop, view.broken)


async def _stir(view: ClusterView) -> None:
    """Have who waits for changes look every so often whether the cluster is still heard."""
    while True:
        await asyncio.sleep(view.patience_s / PINGS)
        view.stir()


def _full_name(meta: Meta) -> str:
    return f"{meta.namespace}/{meta.name}"
