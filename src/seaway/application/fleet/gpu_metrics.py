"""Allocations of every device by holder, for metrics, fast enough for 80,000 devices.

The data is read in parts, and the lock of the loop is released between them. So one response can show clusters at
slightly different times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from seaway.application.control.allocations import everyone, own, unfinished
from seaway.application.control.fleet import Key, LiveCluster
from seaway.application.control.loop import Controller
from seaway.application.ports.usage import NodeUsage, usage_of
from seaway.application.views import DeviceUse, Holding
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import ReplicaStatus, UnmanagedPod, Workload, deployment_name
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice

PART = 4096
"""Number of attempts to read before the lock is released once."""


class GpuMetrics:
    """Read-only view of the allocations. Thread-safe."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def cluster_names(self) -> list[str]:
        """Return the names of all clusters."""
        with self._controller.lock:
            return [each.name for each in everyone(self._controller.live)]

    def uses(self, cluster: str = "") -> list[DeviceUse]:
        """Return the devices of one cluster or of all, ordered by cluster, node and index."""
        with self._controller.lock:
            reported = [live for live in self._controller.live.fleet.clusters.values() if cluster in {"", live.name}]
        return [use for live in reported for use in self._cluster(live)]

    def _cluster(self, live: LiveCluster) -> Iterator[DeviceUse]:
        with self._controller.lock:
            mine, others = own(self._controller.live, live), list(live.occupied)
            backends = list(self._controller.backends)
            orphans = [each.copy for each in live.orphans.values()]
            keys = list(self._controller.live.by_cluster[live.name])
        held: defaultdict[str, list[Holding]] = defaultdict(list)
        for attempt, copy in attempts_in(self._controller, live.name, keys, PART):
            _add_attempt(held, attempt, copy, live.name)
        for copy in unfinished(orphans):
            for replica in copy.replicas:
                _add(held, "", _pod_of(replica, copy.name), replica.slices, replica.holders)
        for pod in (*others, *mine.guests):
            _add_unmanaged_pod(held, pod)
        yield from _uses(live.name, mine.nodes, held, usage_of(live.name, backends))


def attempts_in(
    controller: Controller, cluster: str, keys: Sequence[Key], part: int
) -> Iterator[tuple[Attempt, Workload | None]]:
    """Yield attempts with their workloads in a cluster; skip attempts that have ended.

    Parameters
    ----------
    part
        Maximum number of attempts that are read while the lock is held.
    """
    live = controller.live
    for first in range(0, len(keys), part):
        with controller.lock:
            found = [
                (live.attempts[key], live.seen[key].get(cluster) if key in live.seen else None)
                for key in keys[first : first + part]
                if key in live.attempts
            ]
        yield from found


def _uses(
    cluster: str, nodes: Iterable[Node], held: Mapping[str, list[Holding]], measured: Mapping[str, NodeUsage]
) -> Iterator[DeviceUse]:
    none = ()
    for node in nodes:
        name, usage = node.name, measured.get(node.name)
        for device in node.devices:
            holdings = held.get(device.uuid, none)
            if usage is None:
                yield DeviceUse(cluster, name, device, holdings)
            else:
                yield DeviceUse(cluster, name, device, _used(holdings, device.uuid, usage), usage.device(device.uuid))


def _used(holdings: Iterable[Holding], uuid: str, usage: NodeUsage) -> list[Holding]:
    """Add the measured use to each holder of a device."""
    return [each._replace(used=usage.container(uuid, each.namespace, each.pod, each.container)) for each in holdings]


def _add_attempt(held: defaultdict[str, list[Holding]], attempt: Attempt, copy: Workload | None, cluster: str) -> None:
    """Add the allocation of an attempt, with the names of its observed pods."""
    seen = {each.replica: each for each in copy.replicas} if copy else {}
    name = deployment_name(attempt.job_id, attempt.number)
    for placement in attempt.holding:
        if placement.cluster == cluster and placement.slices:
            replica = seen.get(placement.replica)
            pod = _pod_of(replica, name) if replica else f"/{name}-{placement.replica}"
            containers = containers_of(placement.slices, replica)
            _add(held, attempt.spec.tenant, pod, placement.slices, containers, attempt.spec.queue)


def containers_of(slices: Sequence[DeviceSlice], replica: ReplicaStatus | None) -> Sequence[str]:
    """Return the container of a replica for each slice, if observed."""
    if replica is None or not replica.holders:
        return ()
    there = {taken.uuid: container for taken, container in zip(replica.slices, replica.holders, strict=False)}
    return [there.get(taken.uuid, "") for taken in slices]


def _add_unmanaged_pod(held: defaultdict[str, list[Holding]], pod: UnmanagedPod) -> None:
    if pod.slices:
        _add(held, "", pod.name if "/" in pod.name else f"/{pod.name}", pod.slices, pod.containers)


def _add(
    held: defaultdict[str, list[Holding]],
    tenant: str,
    pod: str,
    slices: Iterable[DeviceSlice],
    containers: Sequence[str],
    queue: str = "",
) -> None:
    namespace, _, name = pod.partition("/")
    for number, taken in enumerate(slices):
        container = containers[number] if number < len(containers) else ""
        amounts = taken.memory_mib, taken.core_milli
        held[taken.uuid].append(Holding(tenant, namespace, name, container, *amounts, queue=queue))


def _pod_of(replica: ReplicaStatus, name: str) -> str:
    """Return the pod of a replica as ``namespace/pod``, or a unique name from its workload if no pod was observed."""
    return replica.pod or f"/{name}-{replica.replica}"
