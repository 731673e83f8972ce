"""Summaries of pods. They need little memory, regardless of the size of the pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import intern

from seaway.adapters.kubernetes.collect.owned import attempt_of
from seaway.adapters.kubernetes.collect.pod_status import PodState, pod_state
from seaway.adapters.kubernetes.device_plugins.views import Held, PodView
from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.adapters.kubernetes.templates.names import INDEX, PART, REPLICA_INDEX, REPLICAS, TASK_INDEX, numbers_of
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.adapters.kubernetes.templates.pinning import HOSTNAME
from seaway.domain.deployment import Container
from seaway.domain.placement import DeviceSlice


@dataclass(frozen=True, slots=True)
class PodSummary:
    """Summary of a pod.

    Attributes
    ----------
    namespace, name, uid, created_at
        Its metadata.
    node
        Its node; empty before it is bound.
    slices
        Device shares that it holds, or held before it ended.
    holds_resources
        True while it holds resources.
    attempt
        Job and attempt; None for an unmanaged pod.
    part, replicas, index
        For a Seaway pod: its part, the part's replicas, and the pod's index among them; -1 for any.
    state
        For a Seaway pod: the state of the replica.
    containers
        For a Seaway pod: its containers, sidecars last.
    init_containers
        For a Seaway pod: names of the init containers that end before the containers start.
    deleting
        True if it is being deleted.
    pinned_to
        For a Seaway pod: hostname label of the pinned node; empty if the pod is not pinned to one node.
    holders
        Container name of each slice; empty if unknown.
    pods
        For an unmanaged pod: its count toward the node's pods; 0 after it ended.
    ip
        For a Seaway pod: its address; empty before it has one.
    resource_version
        Version of the pod that the summary describes; ignored in comparisons.
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
    ip: str = ""
    resource_version: str = field(default="", compare=False)

    @property
    def full_name(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


def summarise_pod(pod: PodObject, view: PodView, namespaces: Namespaces) -> PodSummary:
    """Return the summary of a pod.

    Parameters
    ----------
    view
        Use of the node by the pod.
    namespaces
        Namespaces of Seaway's pods.
    """
    meta = pod.metadata
    held = view.held if view.alive else view.holding
    slices = tuple(each.slice for each in held if each.uuid)
    mine = attempt_of(meta, namespaces)
    if mine is None:
        alive = view.alive and bool(view.node)
        cpu, memory = (view.cpu_milli, view.memory_mib) if alive else (0, 0)
        holds, holders = alive or bool(view.holding), _holders(pod, held)
        which, taken = (meta.namespace, meta.name, meta.uid, "", view.node), (slices, cpu, memory, holds)
        return PodSummary(*which, *taken, holders=holders, pods=int(alive), resource_version=meta.resource_version)
    index = meta.annotations.get(INDEX) or meta.labels.get(REPLICA_INDEX) or meta.annotations.get(TASK_INDEX, "")
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
        ip=pod.status.pod_ip,
        resource_version=meta.resource_version,
    )


def _containers(pod: PodObject) -> tuple[Container, ...]:
    sidecars = [each for each in pod.spec.init_containers if each.sidecar]
    return tuple(
        Container(each.name, tuple(port.container_port for port in each.ports))
        for each in (*pod.spec.containers, *sidecars)
    )


def _holders(pod: PodObject, held: Iterable[Held]) -> tuple[str, ...]:
    """Return the container of each share. Container indexes count init containers first."""
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
