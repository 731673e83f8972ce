"""Clusters, nodes, devices and slices as people look at them: what clusters told, and what attempts hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from seaway.application.control.fleet import LiveCluster
from seaway.application.control.held import Own, everyone, holders, own, sum_up
from seaway.application.control.loop import Controller
from seaway.application.ports.usage import NodeUsage, usage_of
from seaway.application.records import Attempt, Cordon
from seaway.application.views import Amount, ClusterState, ClusterView, DeviceView, NodeView, SliceView
from seaway.domain.deployment import Occupant
from seaway.domain.device import Device
from seaway.domain.node import Node
from seaway.domain.placement import Placement

Held = tuple[Attempt, Placement]

NOT_READY = "its cluster says that it is not ready"
NOT_HEALTHY = "its cluster says that it is not healthy"


class FleetViews:
    """Makes views of the fleet.

    Parameters
    ----------
    controller
        Whose state is looked at.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def clusters(self) -> list[ClusterView]:
        """Return every cluster, summed up, and after them those that are gone while something is held there."""
        with self._controller.lock:
            live = self._controller.live
            now_ns = live.clock.monotonic_ns()
            told = [(each, holders(live, each), own(live, each)) for each in everyone(live)]
            cordons = {each.name: live.fleet.cordon_of(each.name) for each, _, _ in told}
            strays = {each.name: tuple(sorted(each.strays)) for each, _, _ in told}
            doors = {each.name: live.fleet.gateway_of(each.cluster) if each.cluster else "" for each, _, _ in told}
        return [
            _cluster(each, attempts, mine, cordons[each.name], now_ns, strays[each.name], doors[each.name])
            for each, attempts, mine in told
        ]

    def nodes(self, cluster: str = "") -> list[NodeView]:
        """Return the nodes of a cluster, or of all, with their devices and slices."""
        with self._controller.lock:
            live = self._controller.live
            told = [
                (each, holders(live, each), list(each.occupied), own(live, each))
                for each in live.fleet.clusters.values()
                if cluster in {"", each.name}
            ]
            cordons = {(each.cluster, each.node): each for each in live.fleet.cordons()}
            backends = list(self._controller.backends)
        return [
            view
            for each, attempts, others, mine in told
            for view in _nodes(each, attempts, [*others, *mine.guests], mine, cordons, usage_of(each.name, backends))
        ]


def _nodes(
    live: LiveCluster,
    attempts: Iterable[Attempt],
    others: Iterable[Occupant],
    mine: Own,
    cordons: Mapping[tuple[str, str], Cordon],
    measured: Mapping[str, NodeUsage],
) -> Iterable[NodeView]:
    pods: defaultdict[str, list[Occupant]] = defaultdict(list)
    for pod in others:
        pods[pod.node].append(pod)
    by_node: defaultdict[str, list[Held]] = defaultdict(list)
    for attempt in attempts:
        for placement in attempt.placements:
            if placement.cluster == live.name:
                by_node[placement.node].append((attempt, placement))
    closed = _closed_cluster(live, cordons.get((live.name, "")))
    for node in mine.nodes:
        cordon = cordons.get((live.name, node.name))
        view = _node(live.name, node, by_node[node.name], pods[node.name], cordon, closed)
        usage = measured.get(node.name)
        yield _measured(view, usage) if usage else view


def _measured(node: NodeView, usage: NodeUsage) -> NodeView:
    """Say of each device what is used of it, where that was measured."""
    return replace(node, devices=tuple(replace(each, used=usage.device(each.uuid)) for each in node.devices))


def _node(
    cluster: str, node: Node, held: Sequence[Held], others: Sequence[Occupant], cordon: Cordon | None, closed: str
) -> NodeView:
    requests = [attempt.spec.demand.request for attempt, _ in held]
    slices: defaultdict[str, list[SliceView]] = defaultdict(list)
    for attempt, placement in held:
        for taken in placement.slices:
            slices[taken.uuid].append(
                SliceView(
                    attempt.job_id,
                    attempt.spec.name,
                    attempt.spec.tenant,
                    attempt.number,
                    placement.replica,
                    taken.memory_mib,
                    taken.core_milli,
                    taken.mig_profile,
                )
            )
    for pod in others:
        for taken in pod.slices:
            slices[taken.uuid].append(
                SliceView("", pod.name, "", 0, 0, taken.memory_mib, taken.core_milli, taken.mig_profile)
            )
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
        tuple(_device(cluster, node.name, device, slices[device.uuid], from_node) for device in node.devices),
        None if node.pods is None else Amount(node.pods, len(held) + sum(pod.pods for pod in others)),
    )


def _closed_cluster(live: LiveCluster, cordon: Cordon | None) -> str:
    """Say why none of a cluster takes new work; empty when it does."""
    if live.state is not ClusterState.UP:
        return f"its cluster does not answer: {live.silence}" if live.silence else "its cluster does not answer"
    return f"its cluster is {_cordoned(cordon)}" if cordon else ""


def _cordoned(cordon: Cordon) -> str:
    said = f"{'drained' if cordon.drain else 'cordoned'} by {cordon.actor}"
    return f"{said}: {cordon.reason}" if cordon.reason else said


def _device(cluster: str, node: str, device: Device, slices: Sequence[SliceView], from_node: str) -> DeviceView:
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
    )


def _cluster(
    live: LiveCluster,
    attempts: Sequence[Attempt],
    mine: Own,
    cordon: Cordon | None,
    now_ns: int,
    strays: tuple[str, ...],
    gateway: str,
) -> ClusterView:
    told, sums = live.cluster, sum_up(live, attempts, mine)
    return ClusterView(
        name=live.name,
        state=live.state,
        silent_s=(now_ns - live.heard_ns) // 1_000_000_000,
        gateway=gateway or (told.gateway if told else ""),
        region=told.region if told else "",
        hardware=tuple(sorted(told.hardware)) if told else (),
        microprice_per_gpu_hour=told.microprice_per_gpu_hour if told else 0,
        cordon=cordon,
        nodes=sums.nodes,
        gpus=sums.gpus,
        cpu_milli=sums.cpu_milli,
        memory_mib=sums.memory_mib,
        gpu_milli=sums.gpu_milli,
        gpu_memory_mib=sums.gpu_memory_mib,
        jobs=sums.jobs,
        strays=strays,
        silence="" if live.state is ClusterState.UP else live.silence,
    )
