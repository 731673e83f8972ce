"""A node as people look at it: its devices, who holds which slices of them, and what is really used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seaway.application.control.fleet import LiveCluster
from seaway.application.gpu_metrics import containers_of
from seaway.application.ports.usage import NodeUsage, Used
from seaway.application.records import Attempt, Cordon
from seaway.application.views import Amount, ClusterState, DeviceView, NodeView, SliceView
from seaway.domain.deployment import Occupant, ReplicaStatus
from seaway.domain.device import Device
from seaway.domain.node import Node
from seaway.domain.placement import Placement

NOT_READY = "its cluster says that it is not ready"
NOT_HEALTHY = "its cluster says that it is not healthy"


@dataclass(frozen=True, slots=True)
class Holder:
    """A replica that holds something of a node.

    Attributes
    ----------
    seen
        What its cluster told of it last; None as long as that is nothing.
    """

    attempt: Attempt
    placement: Placement
    seen: ReplicaStatus | None


def node_view(
    cluster: str,
    node: Node,
    held: Sequence[Holder],
    others: Sequence[Occupant],
    cordon: Cordon | None,
    closed: str,
    usage: NodeUsage | None,
) -> NodeView:
    """Make the view of a node.

    Parameters
    ----------
    held, others
        Replicas that hold something of it, and pods that are nobody's.
    closed
        Why no node of its cluster takes new work; empty when they do.
    usage
        What was measured there; None for nothing.
    """
    requests = [each.attempt.spec.demand.request for each in held]
    slices: defaultdict[str, list[SliceView]] = defaultdict(list)
    for uuid, slice_ in (*_of_jobs(held, usage), *_of_others(others, usage)):
        slices[uuid].append(slice_)
    cpu_milli = sum(request.cpu_milli for request in requests) + sum(pod.cpu_milli for pod in others)
    memory_mib = sum(request.memory_mib for request in requests) + sum(pod.memory_mib for pod in others)
    reason = closed if node.ready else node.reason or NOT_READY
    keeps = reason or (_cordoned(cordon) if cordon else "")
    from_node = f"its node: {keeps}" if keeps else ""
    return NodeView(
        cluster,
        node.name,
        not keeps,
        reason,
        cordon,
        Amount(node.cpu_milli, cpu_milli),
        Amount(node.memory_mib, memory_mib),
        tuple(_device(cluster, node.name, each, slices[each.uuid], from_node, usage) for each in node.devices),
        None if node.pods is None else Amount(node.pods, len(held) + sum(pod.pods for pod in others)),
    )


def closed_cluster(live: LiveCluster, cordon: Cordon | None) -> str:
    """Say why none of a cluster takes new work; empty when it does."""
    if live.state is not ClusterState.UP:
        return f"its cluster does not answer: {live.silence}" if live.silence else "its cluster does not answer"
    return f"its cluster is {_cordoned(cordon)}" if cordon else ""


def _of_jobs(held: Sequence[Holder], usage: NodeUsage | None) -> Iterator[tuple[str, SliceView]]:
    """List what replicas hold, by device."""
    for each in held:
        attempt, slices, pod = each.attempt, each.placement.slices, each.seen.pod if each.seen else ""
        containers = containers_of(slices, each.seen) or ("",) * len(slices)
        for taken, container in zip(slices, containers, strict=True):
            yield (
                taken.uuid,
                SliceView(
                    attempt.job_id,
                    attempt.spec.name,
                    attempt.spec.tenant,
                    attempt.number,
                    each.placement.replica,
                    taken.memory_mib,
                    taken.core_milli,
                    taken.mig_profile,
                    pod,
                    container,
                    _used(usage, taken.uuid, pod, container),
                ),
            )


def _of_others(pods: Sequence[Occupant], usage: NodeUsage | None) -> Iterator[tuple[str, SliceView]]:
    """List what pods hold that are nobody's, by device."""
    for pod in pods:
        for taken, container in zip(pod.slices, pod.containers or ("",) * len(pod.slices), strict=False):
            used = _used(usage, taken.uuid, pod.name, container)
            of = (taken.memory_mib, taken.core_milli, taken.mig_profile, pod.name, container, used)
            yield taken.uuid, SliceView("", pod.name, "", 0, 0, *of)


def _used(usage: NodeUsage | None, uuid: str, pod: str, container: str) -> Used | None:
    namespace, _, name = pod.partition("/")
    return usage.container(uuid, namespace, name, container) if usage and name else None


def _device(
    cluster: str, node: str, device: Device, slices: Sequence[SliceView], from_node: str, usage: NodeUsage | None
) -> DeviceView:
    healthy = device.healthy and not device.cordoned
    return DeviceView(
        cluster,
        node,
        device.uuid,
        device.index,
        device.model,
        device.vendor,
        device.mode.value,
        healthy,
        from_node if healthy else device.reason or NOT_HEALTHY,
        device.share_limit,
        Amount(device.memory_mib, sum(each.memory_mib for each in slices)),
        Amount(device.core_milli, sum(each.core_milli for each in slices)),
        tuple(slices),
        usage.device(device.uuid) if usage else None,
    )


def _cordoned(cordon: Cordon) -> str:
    said = f"{'drained' if cordon.drain else 'cordoned'} by {cordon.actor}"
    return f"{said}: {cordon.reason}" if cordon.reason else said
