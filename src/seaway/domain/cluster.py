"""Clusters, and the fleet of all clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.facts import NO_FACTS, Facts
from seaway.domain.network import Gateway, Link
from seaway.domain.node import Node
from seaway.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Totals:
    """Total resources of nodes, allocated or not."""

    nodes: int
    gpus: int
    cpu_milli: int
    memory_mib: int
    gpu_milli: int
    gpu_memory_mib: int


def totals_of(nodes: Sequence[Node]) -> Totals:
    """Return the total resources of nodes."""
    devices = [device for node in nodes for device in node.devices]
    return Totals(
        nodes=len(nodes),
        gpus=len(devices),
        cpu_milli=sum(node.cpu_milli for node in nodes),
        memory_mib=sum(node.memory_mib for node in nodes),
        gpu_milli=sum(device.core_milli for device in devices),
        gpu_memory_mib=sum(device.memory_mib for device in devices),
    )


@dataclass(frozen=True)  # no slots: cached_property needs __dict__
class Cluster:
    """A Kubernetes cluster.

    Attributes
    ----------
    name
        Name, unique in the fleet.
    nodes
        Nodes, in the order that decides ties.
    gateway
        Name of its gateway; empty if unknown. Jobs with bounds on the network cannot run in a cluster without a
        gateway.
    facts
        Its location, hardware and prices.
    configured
        Those of `facts` that the settings have.
    """

    name: str
    nodes: tuple[Node, ...] = ()
    gateway: str = ""
    facts: Facts = NO_FACTS
    configured: Facts = NO_FACTS

    @property
    def region(self) -> str:
        """Its region; empty if unknown."""
        return self.facts.region

    @cached_property
    def totals(self) -> Totals:
        """Total resources of its nodes."""
        return totals_of(self.nodes)

    @cached_property
    def not_ready(self) -> tuple[str, ...]:
        """Names of its nodes that accept no new work."""
        return tuple(node.name for node in self.nodes if not node.ready)

    @cached_property
    def unhealthy(self) -> Mapping[str, int]:
        """Number of devices that are not reported as healthy, by node; only nodes with such devices."""
        return Counter(node.name for node in self.nodes for device in node.devices if not device.healthy)

    @cached_property
    def unusable(self) -> Mapping[str, Sequence[Device]]:
        """Devices that accept no new work, because they or their nodes do not, by node."""
        found: dict[str, Sequence[Device]] = {}
        for node in self.nodes:  # most nodes have none
            if devices := [device for device in node.devices if not device.healthy] if node.ready else node.devices:
                found[node.name] = devices
        return found

    @cached_property
    def models(self) -> Mapping[tuple[str, bool], int]:
        """Number of its devices by model, and by whether their nodes are spot capacity."""
        nodes: dict[bool, list[Node]] = {False: [], True: []}
        for node in self.nodes:
            nodes[node.spot].append(node)
        return {
            (model, spot): count
            for spot, same in nodes.items()
            for model, count in Counter([device.model for node in same for device in node.devices]).items()
        }


@dataclass(frozen=True)
class Fleet:
    """All clusters, gateways and links that Seaway schedules work on.

    Raises
    ------
    RejectedError
        If two clusters, two gateways, two nodes of a cluster or two devices share a name, or a link or cluster names an
        unknown gateway.
    """

    clusters: tuple[Cluster, ...]
    gateways: tuple[Gateway, ...] = ()
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        """Check that all names are unique and all named gateways exist."""
        _only_once("cluster", (cluster.name for cluster in self.clusters))
        _only_once("gateway", (gateway.name for gateway in self.gateways))
        _only_once("device", (device.uuid for device in self.devices))
        for cluster in self.clusters:
            _only_once(f"node of cluster {cluster.name!r}", (node.name for node in cluster.nodes))
        known = {gateway.name for gateway in self.gateways}
        for cluster in self.clusters:
            if cluster.gateway and cluster.gateway not in known:
                raise RejectedError(Reason("cluster_unknown_gateway", name=cluster.name, gateway=cluster.gateway))
        for link in self.links:
            for end in (link.source, link.target):
                if end not in known:
                    raise RejectedError(
                        Reason("link_unknown_gateway", source=link.source, target=link.target, gateway=end)
                    )

    @property
    def devices(self) -> Iterable[Device]:
        """Every device of the fleet, cluster by cluster and node by node."""
        return (device for _, node in self.nodes for device in node.devices)

    @property
    def nodes(self) -> Iterable[tuple[Cluster, Node]]:
        """Every node with its cluster, in the order that breaks ties."""
        return ((cluster, node) for cluster in self.clusters for node in cluster.nodes)

    @cached_property
    def device_count(self) -> int:
        """Number of devices of the fleet."""
        return sum(1 for _ in self.devices)


def _only_once(kind: str, names: Iterable[str]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise RejectedError(Reason("appears_twice", kind=kind, name=twice[0]))
