"""Views of clusters, nodes, devices and slices: inventories, and allocations of attempts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from seaway.application.control.allocations import (
    Own,
    amounts_of_cluster,
    everyone,
    held,
    held_by_orphans,
    own,
    unfinished,
)
from seaway.application.control.attempt_totals import Held
from seaway.application.control.fleet import LiveCluster
from seaway.application.control.loop import Controller
from seaway.application.fleet.gpu_metrics import containers_of
from seaway.application.fleet.search import Columns, FleetFilter, FleetSearch, Found
from seaway.application.ports.usage import NodeUsage, Used, usage_of
from seaway.application.records import NS_PER_S, Cordon
from seaway.application.views import (
    Amount,
    ClusterState,
    ClusterView,
    DeviceView,
    ModelView,
    NodeUse,
    NodeView,
    SliceView,
)
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import ReplicaStatus, UnmanagedPod
from seaway.domain.device import Device
from seaway.domain.facts import NO_FACTS
from seaway.domain.node import Node
from seaway.domain.placement import Placement
from seaway.domain.reasons import Reason

NOT_READY = Reason("reported_not_ready")
NOT_HEALTHY = Reason("reported_unhealthy")


@dataclass(frozen=True, slots=True)
class Holder:
    """Replica with an allocation on a node.

    Attributes
    ----------
    seen
        Workload as last observed; None before the first report.
    """

    attempt: Attempt
    placement: Placement
    seen: ReplicaStatus | None


def node_view(
    cluster: str,
    node: Node,
    held: Sequence[Holder],
    others: Sequence[UnmanagedPod],
    cordon: Cordon | None,
    closed: str,
    usage: NodeUsage | None,
) -> NodeView:
    """Create the view of a node.

    Parameters
    ----------
    held, others
        Replicas and unmanaged pods with an allocation on the node.
    closed
        Reason why the whole cluster accepts no new work; empty if it does.
    usage
        Measured use; None without measurements.
    """
    requests = [each.attempt.spec.demand.request for each in held]
    slices: defaultdict[str, list[SliceView]] = defaultdict(list)
    for uuid, slice_ in (*_of_jobs(held, usage), *_of_others(others, usage)):
        slices[uuid].append(slice_)
    cpu_milli = sum(request.cpu_milli for request in requests) + sum(pod.cpu_milli for pod in others)
    memory_mib = sum(request.memory_mib for request in requests) + sum(pod.memory_mib for pod in others)
    reason = closed if node.ready else node.reason or NOT_READY
    keeps = reason or (_cordoned(cordon) if cordon else "")
    from_node = Reason("of_node", what=keeps) if keeps else ""
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
        len({each.attempt.job_id for each in held if each.attempt.policy}),  # an orphan has no policy
    )


def closed_cluster(live: LiveCluster, cordon: Cordon | None) -> str:
    """Return the reason why a cluster accepts no new work; empty if it does."""
    if live.state is not ClusterState.UP:
        return Reason("cluster_silent", why=live.unreachable_reason)
    return Reason("of_cluster", what=_cordoned(cordon)) if cordon else ""


def _of_jobs(held: Sequence[Holder], usage: NodeUsage | None) -> Iterator[tuple[str, SliceView]]:
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


def _of_others(pods: Sequence[UnmanagedPod], usage: NodeUsage | None) -> Iterator[tuple[str, SliceView]]:
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
        *(device.numa, device.island, device.pcie_switch),
    )


def _cordoned(cordon: Cordon) -> str:
    return Reason("drained_by" if cordon.drain else "cordoned_by", who=cordon.actor, why=cordon.reason)


PART = 256
"""Number of nodes to read before the lock is released once."""


@dataclass(frozen=True, slots=True)
class _ClusterContext:
    """Properties of a cluster, computed once for all its nodes.

    Attributes
    ----------
    closed
        Reason why the whole cluster accepts no new work; empty if it does.
    orphans, guests
        Allocations of orphans and of pods of other clusters, by node.
    measured
        Measured use, by node.
    """

    live: LiveCluster
    closed: str
    orphans: Mapping[str, Sequence[Holder]]
    guests: Mapping[str, Sequence[UnmanagedPod]]
    measured: Mapping[str, NodeUsage]


class FleetViews:
    """Views of clusters, nodes and devices."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._search = FleetSearch(controller)

    def clusters(self) -> list[ClusterView]:
        """Return all clusters with their totals, followed by removed clusters that still have attempts."""
        with self._controller.lock:
            live = self._controller.live
            now = live.clock.monotonic_ns(), live.clock.now_ns()
            owns = [(each, own(live, each)) for each in everyone(live)]
            reported = [(each, held(live, each, mine), mine) for each, mine in owns]
            cordons = {each.name: live.fleet.cordon_of(each.name) for each, _, _ in reported}
            orphans = {each.name: tuple(sorted(each.orphans)) for each, _, _ in reported}
            gateways_by_cluster = {
                each.name: live.fleet.gateway_of(each.cluster) if each.cluster else "" for each, _, _ in reported
            }
            facts = {each.name: live.fleet.own_facts(each.name) for each, _, _ in reported}
            unusable = {each.name: self._unusable(each) for each, _, _ in reported}
        views = [
            _cluster(each, by_jobs, mine, cordons[each.name], now, orphans[each.name], gateways_by_cluster[each.name])
            for each, by_jobs, mine in reported
        ]
        return [
            replace(
                each.with_own_facts(facts[each.name]),
                gpu_milli=replace(each.gpu_milli, unusable=unusable[each.name][0]),
                gpu_memory_mib=replace(each.gpu_memory_mib, unusable=unusable[each.name][1]),
            )
            for each in views
        ]

    def _unusable(self, cluster: LiveCluster) -> tuple[int, int]:
        """Return cores and memory of devices that are not allocated and accept no new work, thousandths and MiB."""
        milli = memory_mib = 0
        for node, devices in cluster.cluster.unusable.items() if cluster.cluster else ():
            slices = [taken for each in self._holders(cluster.name, node) for taken in each.placement.slices]
            slices += [taken for pod in cluster.occupied.on(node) for taken in pod.slices]
            for device in devices:
                held = [taken for taken in slices if taken.uuid == device.uuid]
                milli += max(0, device.core_milli - sum(taken.core_milli for taken in held))
                memory_mib += max(0, device.memory_mib - sum(taken.memory_mib for taken in held))
        return milli, memory_mib

    def models(self, cluster: str = "") -> list[ModelView]:
        """Return the totals of the devices of one cluster or of all, by model."""
        return self._search.models(cluster)

    def find(self, wanted: FleetFilter) -> Found:
        """Find nodes, and devices on them."""
        return self._search.find(wanted)

    def nodes(self, cluster: str = "") -> list[NodeView]:
        """Return the nodes of one cluster or of all, with their devices and slices."""
        found = self.find(FleetFilter(cluster=cluster))
        return list(self.look(found.columns, found.nodes.tolist()))

    def uses(self, found: Found) -> list[NodeUse]:
        """Return the use of the nodes of a search result. Much cheaper than `look`."""
        columns, at = found.columns, found.nodes.tolist()
        owners: list[Sequence[tuple[str, str]]] = []
        for first in range(0, len(at), PART):
            with self._controller.lock:
                owners += [self._owners(columns, each) for each in at[first : first + PART]]
        return [
            NodeUse(
                columns.clusters[columns.cluster_of[each]],
                node.name,
                tuple(dict.fromkeys(device.model for device in node.devices)),
                len(node.devices),
                int(columns.unhealthy[each]),
                int(found.node_used_milli[each]),
                bool(found.node_ready[each]),
                node.answers,
                tuple(sorted({tenant for _, tenant in of})),
                len(of),
            )
            for each, of in zip(at, owners, strict=True)
            for node in [columns.nodes[each]]
        ]

    def _owners(self, columns: Columns, at: int) -> Sequence[tuple[str, str]]:
        """Return the jobs of a node with their tenants."""
        live, cluster = self._controller.live, columns.clusters[columns.cluster_of[at]]
        keys = live.by_node.get((cluster, columns.nodes[at].name), ())
        there = live.by_cluster[cluster] if keys else ()
        return list({(key[0], live.attempts[key].spec.tenant) for key in keys if key in there})

    def look(self, columns: Columns, nodes: Sequence[int]) -> Iterator[NodeView]:
        """Yield the current views of nodes, given by their indices, computed on demand."""
        around: dict[str, _ClusterContext | None] = {}
        for first in range(0, len(nodes), PART):
            yield from self._part(columns, nodes[first : first + PART], around)

    def look_at_devices(self, columns: Columns, devices: Sequence[int]) -> list[DeviceView]:
        """Return the current views of devices, given by their indices, without removed devices."""
        wanted = [columns.device(at) for at in devices]
        nodes = self.look(columns, list(dict.fromkeys(node for node, _ in wanted)))
        there = {each.uuid: each for node in nodes for each in node.devices}
        return [there[uuid] for _, uuid in wanted if uuid in there]

    def _part(
        self, columns: Columns, nodes: Sequence[int], around: dict[str, _ClusterContext | None]
    ) -> Iterator[NodeView]:
        named = [(columns.clusters[columns.cluster_of[at]], columns.nodes[at]) for at in nodes]
        with self._controller.lock:
            for cluster in {cluster for cluster, _ in named} - around.keys():
                around[cluster] = self._around(cluster)
            seen = [
                (each, node, self._holders(cluster, node.name), list(each.live.occupied.on(node.name)), cordon)
                for cluster, node in named
                if (each := around[cluster])
                for cordon in [self._controller.live.fleet.cordon_of(cluster, node.name)]
            ]
        for each, node, replicas, pods, cordon in seen:
            held = [*replicas, *each.orphans.get(node.name, ())]
            others = [*pods, *each.guests.get(node.name, ())]
            yield node_view(each.live.name, node, held, others, cordon, each.closed, each.measured.get(node.name))

    def _around(self, cluster: str) -> _ClusterContext | None:
        """Return the properties that all nodes of a cluster share; None for a removed cluster."""
        live = self._controller.live
        reported = live.fleet.clusters.get(cluster)
        if reported is None:
            return None
        closed = closed_cluster(reported, live.fleet.cordon_of(cluster))
        guests = own(live, reported).guests if cluster in live.fleet.duplicates() else ()
        return _ClusterContext(
            reported, closed, _orphans(reported), _by_node(guests), usage_of(cluster, self._controller.backends)
        )

    def _holders(self, cluster: str, node: str) -> list[Holder]:
        live = self._controller.live
        found = []
        for key in sorted(live.by_node.get((cluster, node), ())):
            attempt = live.attempts[key]
            if key not in live.by_cluster[cluster]:
                continue
            copy = live.seen[key].get(cluster) if key in live.seen else None
            here = [each for each in attempt.holding if (each.cluster, each.node) == (cluster, node)]
            wanted = {each.replica for each in here}
            seen = {each.replica: each for each in copy.replicas if each.replica in wanted} if copy else {}
            found += [Holder(attempt, each, seen.get(each.replica)) for each in here]
        return found


def _orphans(cluster: LiveCluster) -> Mapping[str, Sequence[Holder]]:
    found: defaultdict[str, list[Holder]] = defaultdict(list)
    replicas = [
        each for copy in unfinished(orphan.copy for orphan in cluster.orphans.values()) for each in copy.replicas
    ]
    for attempt, seen in zip(held_by_orphans(cluster), replicas, strict=True):
        for placement in attempt.placements:
            found[placement.node].append(Holder(attempt, placement, seen))
    return found


def _by_node(pods: Iterable[UnmanagedPod]) -> Mapping[str, Sequence[UnmanagedPod]]:
    found: defaultdict[str, list[UnmanagedPod]] = defaultdict(list)
    for pod in pods:
        found[pod.node].append(pod)
    return found


def _cluster(
    live: LiveCluster,
    by_jobs: Held,
    mine: Own,
    cordon: Cordon | None,
    now: tuple[int, int],
    orphans: tuple[str, ...],
    gateway: str,
) -> ClusterView:
    """Return the totals of a cluster. `now` is the monotonic and the wall-clock time."""
    now_ns, wall_ns = now
    age_ns = now_ns - live.last_seen_ns if live.reported_ns is None else wall_ns - live.reported_ns
    reported, sums = live.cluster, amounts_of_cluster(live, by_jobs, mine)
    return ClusterView(
        name=live.name,
        state=live.state,
        last_seen_s=max(0, age_ns // NS_PER_S),
        unreachable_s=(now_ns - live.last_seen_ns) / NS_PER_S,
        reported_ns=live.reported_ns,
        gateway=gateway or (reported.gateway if reported else ""),
        facts=live.reported_facts,
        reported_facts=live.reported_facts,
        configured_facts=reported.configured if reported else NO_FACTS,
        models=reported.models if reported else {},
        cordon=cordon,
        nodes=sums.nodes,
        gpus=sums.gpus,
        cpu_milli=sums.cpu_milli,
        memory_mib=sums.memory_mib,
        gpu_milli=sums.gpu_milli,
        gpu_memory_mib=sums.gpu_memory_mib,
        jobs=sums.jobs,
        orphans=orphans,
        reason="" if live.state is ClusterState.UP else live.unreachable_reason,
        not_ready=reported.not_ready if reported else (),
        unhealthy=reported.unhealthy if reported else {},
        gpus_used_milli=sums.gpus_used_milli,
    )
