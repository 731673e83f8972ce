"""Clusters, nodes, devices and slices as people look at them: what clusters told, and what attempts hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seaway.application.control.fleet import LiveCluster
from seaway.application.control.held import Own, everyone, held, own, sum_up
from seaway.application.control.holdings import Held
from seaway.application.control.loop import Controller
from seaway.application.fleet_columns import Columns
from seaway.application.fleet_search import FleetFilter, FleetSearch, Found
from seaway.application.node_views import Holder, closed_cluster, node_view
from seaway.application.ports.usage import NodeUsage, usage_of
from seaway.application.records import Cordon
from seaway.application.stray_views import held_by_strays, lives
from seaway.application.views import ClusterState, ClusterView, DeviceView, ModelView, NodeView
from seaway.domain.deployment import Occupant

PART = 256
"""Nodes that are looked at before others may have the lock."""


@dataclass(frozen=True, slots=True)
class _Around:
    """What of a cluster is looked up once for all its nodes.

    Attributes
    ----------
    closed
        Why none of its nodes takes new work; empty when they do.
    strays, guests
        What strays hold there, and pods of other clusters, by node.
    measured
        What is really used, by node.
    """

    live: LiveCluster
    closed: str
    strays: Mapping[str, Sequence[Holder]]
    guests: Mapping[str, Sequence[Occupant]]
    measured: Mapping[str, NodeUsage]


class FleetViews:
    """Makes views of the fleet.

    Parameters
    ----------
    controller
        Whose state is looked at.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._search = FleetSearch(controller)

    def clusters(self) -> list[ClusterView]:
        """Return every cluster, summed up, and after them those that are gone while something is held there."""
        with self._controller.lock:
            live = self._controller.live
            now_ns = live.clock.monotonic_ns()
            owns = [(each, own(live, each)) for each in everyone(live)]
            told = [(each, held(live, each, mine), mine) for each, mine in owns]
            cordons = {each.name: live.fleet.cordon_of(each.name) for each, _, _ in told}
            strays = {each.name: tuple(sorted(each.strays)) for each, _, _ in told}
            doors = {each.name: live.fleet.gateway_of(each.cluster) if each.cluster else "" for each, _, _ in told}
        return [
            _cluster(each, by_jobs, mine, cordons[each.name], now_ns, strays[each.name], doors[each.name])
            for each, by_jobs, mine in told
        ]

    def models(self, cluster: str = "") -> list[ModelView]:
        """Sum up the devices of a cluster, or of all, by model."""
        return self._search.models(cluster)

    def find(self, wanted: FleetFilter) -> Found:
        """Find nodes, and devices on them."""
        return self._search.find(wanted)

    def nodes(self, cluster: str = "") -> list[NodeView]:
        """Return the nodes of a cluster, or of all, with their devices and slices."""
        found = self.find(FleetFilter(cluster=cluster))
        return list(self.look(found.columns, found.nodes.tolist()))

    def look(self, columns: Columns, nodes: Sequence[int]) -> Iterator[NodeView]:
        """Look at nodes, given by their places, as they are now; the later ones when they are asked for."""
        around: dict[str, _Around | None] = {}
        for first in range(0, len(nodes), PART):
            yield from self._part(columns, nodes[first : first + PART], around)

    def look_at_devices(self, columns: Columns, devices: Sequence[int]) -> list[DeviceView]:
        """Look at devices, given by their places, as they are now; those that are gone are left out."""
        wanted = [columns.device(at) for at in devices]
        nodes = self.look(columns, list(dict.fromkeys(node for node, _ in wanted)))
        there = {each.uuid: each for node in nodes for each in node.devices}
        return [there[uuid] for _, uuid in wanted if uuid in there]

    def _part(self, columns: Columns, nodes: Sequence[int], around: dict[str, _Around | None]) -> Iterator[NodeView]:
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
            held = [*replicas, *each.strays.get(node.name, ())]
            others = [*pods, *each.guests.get(node.name, ())]
            yield node_view(each.live.name, node, held, others, cordon, each.closed, each.measured.get(node.name))

    def _around(self, cluster: str) -> _Around | None:
        """Look up what is the same for all nodes of a cluster; None for one that is gone."""
        live = self._controller.live
        told = live.fleet.clusters.get(cluster)
        if told is None:
            return None
        closed = closed_cluster(told, live.fleet.cordon_of(cluster))
        guests = own(live, told).guests if cluster in live.fleet.doubles() else ()
        return _Around(told, closed, _strays(told), _by_node(guests), usage_of(cluster, self._controller.backends))

    def _holders(self, cluster: str, node: str) -> list[Holder]:
        """List who holds something of a node."""
        live = self._controller.live
        found = []
        for key in sorted(live.by_node.get((cluster, node), ())):
            attempt = live.attempts[key]
            if key not in live.by_cluster[cluster]:
                continue
            copy = live.seen[key].get(cluster) if key in live.seen else None
            here = [each for each in attempt.placements if (each.cluster, each.node) == (cluster, node)]
            wanted = {each.replica for each in here}
            seen = {each.replica: each for each in copy.replicas if each.replica in wanted} if copy else {}
            found += [Holder(attempt, each, seen.get(each.replica)) for each in here]
        return found


def _strays(cluster: LiveCluster) -> Mapping[str, Sequence[Holder]]:
    """List what strays hold in a cluster, by node."""
    found: defaultdict[str, list[Holder]] = defaultdict(list)
    replicas = [each for copy in lives(stray.copy for stray in cluster.strays.values()) for each in copy.replicas]
    for attempt, seen in zip(held_by_strays(cluster), replicas, strict=True):
        for placement in attempt.placements:
            found[placement.node].append(Holder(attempt, placement, seen))
    return found


def _by_node(pods: Iterable[Occupant]) -> Mapping[str, Sequence[Occupant]]:
    found: defaultdict[str, list[Occupant]] = defaultdict(list)
    for pod in pods:
        found[pod.node].append(pod)
    return found


def _cluster(
    live: LiveCluster,
    by_jobs: Held,
    mine: Own,
    cordon: Cordon | None,
    now_ns: int,
    strays: tuple[str, ...],
    gateway: str,
) -> ClusterView:
    told, sums = live.cluster, sum_up(live, by_jobs, mine)
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
