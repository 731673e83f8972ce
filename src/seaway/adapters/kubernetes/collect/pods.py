"""Pods as Seaway keeps them: a few figures each, whatever their objects weigh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import intern

import msgspec

from seaway.adapters.kubernetes.collect.owned import attempt_of
from seaway.adapters.kubernetes.collect.pod_status import PodState, pod_state
from seaway.adapters.kubernetes.device_plugins.views import Held, PodView
from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.adapters.kubernetes.objects.meta import Meta, Part
from seaway.adapters.kubernetes.templates.names import INDEX, PART, REPLICAS, numbers_of
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.domain.deployment import Container
from seaway.domain.placement import DeviceSlice


@dataclass(frozen=True, slots=True)
class PodSummary:
    """A pod.

    Attributes
    ----------
    namespace, name, uid, created_at
        Which one, and since when.
    node
        Where it is; empty before it is bound.
    slices
        The shares of devices that it holds, or held before it ended.
    holds_resources
        Whether it still does.
    attempt
        Job and attempt; None for a pod that is not Seaway's.
    part, replicas, index
        Of Seaway's own: its part, the replicas of that, and which of these it is, -1 where any will do.
    state
        Of Seaway's own: how the replica does.
    containers
        Of Seaway's own: what runs in it, sidecars last.
    init_containers
        Of Seaway's own: names of what runs in it before those do, and ends.
    deleting
        Whether it is being deleted.
    pinned_to
        Of Seaway's own: the node that it is pinned to, by its label; empty where several would do.
    holders
        Which container holds each of the slices, by name; empty where that cannot be told.
    pods
        How many pods it is among those of its node, where it is not Seaway's: 0 once it has ended.
    resource_version
        Which of its versions this is of; another that reads the same is the same.
    """

    namespace: str
    name: str
    uid: str
    created_at: str
    node: str
    slices: tuple[DeviceSlice, ...]
    cpu_milli: int
    memory_mib: int
    holds_resources: bool
    attempt: tuple[str, int] | None = None
    part: str = ""
    replicas: tuple[int, ...] = ()
    index: int = -1
    state: PodState | None = None
    containers: tuple[Container, ...] = ()
    deleting: bool = False
    pinned_to: str = ""
    holders: tuple[str, ...] = ()
    init_containers: tuple[str, ...] = ()
    pods: int = 1
    resource_version: str = field(default="", compare=False)

    @property
    def full_name(self) -> str:
        """Its name in its cluster."""
        return f"{self.namespace}/{self.name}"


def summarise_pod(pod: PodObject, view: PodView, namespace: str) -> PodSummary:
    """Keep what matters of a pod.

    Parameters
    ----------
    view
        What it takes of its node.
    namespace
        Where Seaway's own pods are.
    """
    meta = pod.metadata
    held = view.held if view.alive else view.holding
    slices = tuple(each.slice for each in held if each.uuid)
    mine = attempt_of(meta, namespace)
    if mine is None:
        alive = view.alive and bool(view.node)
        cpu, memory = (view.cpu_milli, view.memory_mib) if alive else (0, 0)
        holds, holders = alive or bool(view.holding), _holders(pod, held)
        which, taken = (meta.namespace, meta.name, meta.uid, "", view.node), (slices, cpu, memory, holds)
        return PodSummary(*which, *taken, holders=holders, pods=int(alive), resource_version=meta.resource_version)
    index = meta.annotations.get(INDEX, "")
    return PodSummary(
        meta.namespace,
        meta.name,
        meta.uid,
        meta.creation_timestamp,
        view.node,
        tuple(each.slice for each in view.held if each.uuid),
        view.cpu_milli,
        view.memory_mib,
        view.alive,
        mine,
        meta.labels.get(PART, ""),
        _numbers(meta.annotations.get(REPLICAS, "")),
        int(index) if index.isascii() and index.isdigit() else -1,
        pod_state(pod),
        _containers(pod),
        bool(meta.deletion_timestamp),
        pod.spec.node_selector.get(HOSTNAME, ""),
        _holders(pod, view.held),
        tuple(intern(each.name) for each in pod.spec.init_containers if not each.sidecar),
        resource_version=meta.resource_version,
    )


def _containers(pod: PodObject) -> tuple[Container, ...]:
    sidecars = [each for each in pod.spec.init_containers if each.sidecar]
    return tuple(
        Container(each.name, tuple(port.container_port for port in each.ports))
        for each in (*pod.spec.containers, *sidecars)
    )


def _holders(pod: PodObject, held: Iterable[Held]) -> tuple[str, ...]:
    """Name the container of each share; containers count with init containers first."""
    known = [each for each in held if each.uuid]
    if not known:
        return ()
    names = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
    return tuple(intern(names[each.container]) if 0 <= each.container < len(names) else "" for each in known)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return numbers_of(text)
    except ValueError:
        return ()


HEADLESS = "None"


class ServicePort(Part, frozen=True):
    """A port of a service."""

    port: int = 0


class ServiceSpec(Part, frozen=True):
    """What is wanted of a service."""

    type: str = "ClusterIP"
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: tuple[ServicePort, ...] = ()


class Ingress(Part, frozen=True):
    """Where a load balancer lets in."""

    ip: str = ""
    hostname: str = ""


class LoadBalancer(Part, frozen=True):
    """What a load balancer says of itself."""

    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(Part, frozen=True):
    """What is seen of a service."""

    load_balancer: LoadBalancer = LoadBalancer()


class ServiceObject(Part, frozen=True):
    """A service."""

    metadata: Meta = Meta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


def address(service: ServiceObject) -> str:
    """Return where a service answers: outside of its cluster if it can, else its name inside.

    Empty without ports, and for one that only gives pods names.
    """
    if service.spec.cluster_ip == HEADLESS:
        return ""
    ports = ",".join(str(each.port) for each in service.spec.ports)
    if not ports:
        return ""
    outside = next((each.hostname or each.ip for each in service.status.load_balancer.ingress), "")
    host = outside or f"{service.metadata.name}.{service.metadata.namespace}.svc"
    return f"{host}:{ports}"
