"""Table of the demands of a snapshot. Equal demands share a row, and equal rules share a mask."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, DeviceRules, GpuTopology, NodeRules
from seaway.domain.network import Link, NetworkNeed
from seaway.domain.node import Node
from seaway.scheduling.arrays import DemandArrays, Int64, UInt8
from seaway.scheduling.columns import (
    DEMAND_MASK,
    DEMAND_NEAR,
    DEMAND_NETWORK,
    DEMAND_ROWS,
    DEMAND_STRICTER,
    STRICTER_ROWS,
)
from seaway.scheduling.snapshot.encode import allowed_devices, allowed_node, encode_demand, link_meets

INITIAL_ROWS = 8
"""Initial number of rows of a table, which is doubled when it is full."""

_Rules = tuple[DeviceRules, NodeRules, str]
_Network = tuple[str, NetworkNeed]
Table = TypeVar("Table", Int64, UInt8)
Key = TypeVar("Key")


def _rules_of(demand: Demand) -> _Rules:
    """Return the parts of a demand that its mask depends on. NUMA and exclusive use are checked elsewhere."""
    rules = demand.devices
    static = DeviceRules(
        rules.models,
        rules.use_types,
        rules.avoid_types,
        rules.use_uuids,
        rules.avoid_uuids,
        rules.vendors,
        rules.modes,
        slice_nodes=rules.slice_nodes,
        excluded=rules.excluded,
    )
    return static, demand.nodes, demand.request.mig


def stricter_rules(rules: DeviceRules) -> tuple[DeviceRules, ...]:
    """Return the rules that are tried before rules with the topology `BEST_EFFORT`."""
    return (
        replace(rules, topology=GpuTopology.SAME_ISLAND),
        replace(rules, topology=GpuTopology.SAME_SWITCH),
        replace(rules, topology=GpuTopology.ANY, same_numa=True),
    )


class FleetVersion:
    """Identity of a version of the fleet, shared by copies."""

    def __copy__(self) -> FleetVersion:
        return self


class DemandTable:
    """Rows of demands, and masks of the nodes, devices and clusters that their rules allow in a fleet.

    Parameters
    ----------
    fleet
        Initial fleet of the masks. `recheck_node`, `grow` and `use_links` apply its changes.

    Attributes
    ----------
    fleet_version
        Version of the fleet in this table and its copies, replaced when a change is applied. Caches for another version
        are out of date.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet_version = FleetVersion()
        self._clusters = list(fleet.clusters)
        self._gateways = {gateway.name: g for g, gateway in enumerate(fleet.gateways)}
        self._links: dict[tuple[str, str], Link] = {(link.source, link.target): link for link in fleet.links}
        self._indices: dict[Demand, int] = {}
        self._demands: list[Demand] = []
        self._masks: dict[_Rules, int] = {}
        self._networks: dict[_Network, int] = {}
        self._free_indices: list[int] = []
        self._free_masks: list[int] = []
        self._free_networks: list[int] = []
        self._amounts = np.zeros((INITIAL_ROWS, DEMAND_ROWS), np.int64)
        self._nodes = list(fleet.nodes)
        self._devices = list(fleet.devices)
        self._node_ok = np.zeros((INITIAL_ROWS, len(self._nodes)), np.uint8)
        self._device_ok = np.zeros((INITIAL_ROWS, len(self._devices)), np.uint8)
        self._cluster_ok = np.zeros((INITIAL_ROWS, len(fleet.clusters)), np.uint8)
        self.arrays = self._bundle()

    def __len__(self) -> int:
        return len(self._indices)

    def copy(self) -> DemandTable:
        """Return an independent copy of the table."""
        twin = object.__new__(DemandTable)
        twin.__dict__.update({name: copy.copy(value) for name, value in self.__dict__.items()})
        twin.arrays = twin._bundle()
        return twin

    def retain(self, indices: Collection[int]) -> None:
        """Remove all rows except `indices`, which keep their numbers. The other numbers are reused."""
        retained = set(indices)
        stricter = self._amounts[sorted(retained), DEMAND_STRICTER : DEMAND_STRICTER + STRICTER_ROWS] - 1
        retained.update(stricter[stricter >= 0].tolist())
        kept_amounts = self._amounts[sorted(retained)]
        masks = set(kept_amounts[:, DEMAND_MASK].tolist())
        networks = set(kept_amounts[:, [DEMAND_NETWORK, DEMAND_NEAR]].ravel().tolist())
        self._indices, self._free_indices = _retained(self._indices, self._free_indices, retained)
        self._masks, self._free_masks = _retained(self._masks, self._free_masks, masks)
        self._networks, self._free_networks = _retained(self._networks, self._free_networks, networks)

    def index(self, demand: Demand) -> int:
        """Return the row of `demand`. It is added if it is new.

        Raises
        ------
        RejectedError
            If the demand names an unknown gateway, or an amount is too large.
        """
        known = self._indices.get(demand)
        if known is not None:
            return known
        if demand.gateway and demand.gateway not in self._gateways:
            names = ", ".join(self._gateways) or "none"
            raise RejectedError(f"unknown gateway {demand.gateway!r}; the fleet has: {names}")
        mask = self._mask(_rules_of(demand))
        looked = self._network((demand.gateway, demand.network)) if demand.gateway else -1
        network, near_ = (looked, -1) if demand.network.any else (-1, looked)
        encoded = encode_demand(demand, mask, network, self._gateways.get(demand.gateway, -1), near_)
        at = _next(self._indices, self._free_indices)
        self._amounts = _with_capacity(self._amounts, at)
        self._amounts[at] = encoded
        self._indices[demand] = at
        self._demands[at : at + 1] = [demand]
        if demand.devices.topology is GpuTopology.BEST_EFFORT:
            stricter = [1 + self.index(replace(demand, devices=rules)) for rules in stricter_rules(demand.devices)]
            self._amounts[at, DEMAND_STRICTER : DEMAND_STRICTER + STRICTER_ROWS] = stricter
        self.arrays = self._bundle()
        return at

    def demand(self, line: int) -> Demand:
        """Return the demand of a row."""
        return self._demands[line]

    def recheck_node(self, n: int, cluster: Cluster, node: Node, devices: Mapping[int, Device]) -> None:
        """Recompute the masks of node `n` and of its devices, given by row."""
        self.fleet_version = FleetVersion()
        self._nodes[n] = (cluster, node)
        for d, device in devices.items():
            self._devices[d] = device
        rows = list(devices)
        for (device_rules, node_rules, mig), at in self._masks.items():
            self._node_ok[at, n] = allowed_node(node_rules, cluster, node)
            self._device_ok[at, rows] = allowed_devices(device_rules, list(devices.values()), mig)

    def grow(self, cluster: Cluster, node: Node) -> None:
        """Add a node and its devices to the masks."""
        self._nodes.append((cluster, node))
        self._devices.extend(node.devices)
        self._node_ok = _wider(self._node_ok, 1)
        self._device_ok = _wider(self._device_ok, len(node.devices))
        self.arrays = self._bundle()
        first = len(self._devices) - len(node.devices)
        self.recheck_node(len(self._nodes) - 1, cluster, node, dict(enumerate(node.devices, first)))

    def use_links(self, links: Iterable[Link]) -> None:
        """Recompute the masks of clusters from new links."""
        self.fleet_version = FleetVersion()
        self._links = {(link.source, link.target): link for link in links}
        for network, at in self._networks.items():
            self._cluster_ok[at] = self._clusters_meeting(network)

    def _mask(self, rules: _Rules) -> int:
        known = self._masks.get(rules)
        if known is not None:
            return known
        at = _next(self._masks, self._free_masks)
        self._node_ok = _with_capacity(self._node_ok, at)
        self._device_ok = _with_capacity(self._device_ok, at)
        device_rules, node_rules, mig = rules
        self._device_ok[at] = allowed_devices(device_rules, self._devices, mig)
        for n, (cluster, node) in enumerate(self._nodes):
            self._node_ok[at, n] = allowed_node(node_rules, cluster, node)
        self._masks[rules] = at
        return at

    def _network(self, network: _Network) -> int:
        known = self._networks.get(network)
        if known is not None:
            return known
        at = _next(self._networks, self._free_networks)
        self._cluster_ok = _with_capacity(self._cluster_ok, at)
        self._cluster_ok[at] = self._clusters_meeting(network)
        self._networks[network] = at
        return at

    def _clusters_meeting(self, network: _Network) -> UInt8:
        source, need = network
        if not need.any:
            return near(self._links.values(), self._clusters, source).astype(np.uint8)
        return np.array(
            [
                cluster.gateway == source or link_meets(need, self._links.get((source, cluster.gateway)))
                for cluster in self._clusters
            ],
            np.uint8,
        )

    def _bundle(self) -> DemandArrays:
        return DemandArrays(self._amounts, self._node_ok, self._device_ok, self._cluster_ok)


def _next(known: Sized, free: list[int]) -> int:
    """Return an unused number: a released one, or the next."""
    return free.pop() if free else len(known)


def _retained(known: dict[Key, int], free: list[int], numbers: set[int]) -> tuple[dict[Key, int], list[int]]:
    """Return the retained entries, and all released numbers."""
    retained = {key: at for key, at in known.items() if at in numbers}
    return retained, [*free, *(at for at in known.values() if at not in numbers)]


def _with_capacity(table: Table, at: int) -> Table:
    """Return `table`, doubled if it has no row `at`."""
    if at < table.shape[0]:
        return table
    return np.concatenate([table, np.zeros_like(table)])


def _wider(table: UInt8, columns: int) -> UInt8:
    """Return `table` with more columns on the right."""
    return np.concatenate([table, np.zeros((table.shape[0], columns), np.uint8)], axis=1)


FULL = 100
"""Maximum score of a cluster."""


UNKNOWN = 2**62
"""Marks an unknown value, larger than all others."""


def nearness(figures: Int64, among: NDArray[np.bool_]) -> Int64:
    """Scale values of clusters to 0-100 between the lowest and the highest; lower values are better.

    Parameters
    ----------
    figures
        Values, shape (C,); `UNKNOWN` scores 0.
    among
        Clusters that determine the scale, shape (C,).
    """
    known = figures < UNKNOWN
    scale = figures[known & among]
    low, high = scale.min(initial=UNKNOWN), scale.max(initial=0)
    if low >= high:
        return np.where(known, FULL, 0)
    inside = np.clip(figures, low, high)
    return np.where(known, (high - inside) * FULL // (high - low), 0)


def link_figures(links: Iterable[Link], clusters: Sequence[Cluster], gateway: str) -> Int64:
    """Return latency, jitter and loss from a gateway to each cluster, shape (3, C).

    All are 0 for clusters behind the gateway itself, and `UNKNOWN` if a link is not measured or does not respond.
    """
    found = {link.target: link for link in links if link.source == gateway and link.reachable}
    table = np.full((3, len(clusters)), UNKNOWN, np.int64)
    for c, cluster in enumerate(clusters):
        link = found.get(cluster.gateway)
        if cluster.gateway == gateway:
            table[:, c] = 0
        elif link is not None and link.latency_ns is not None:
            table[:, c] = link.latency_ns, link.jitter_ns, link.loss_ppm
    return table


def near(links: Iterable[Link], clusters: Sequence[Cluster], gateway: str) -> Int64:
    """Score clusters by latency, jitter and loss from a gateway with equal weights, shape (C,), 0-100."""
    everywhere = np.ones(len(clusters), np.bool_)
    sides = [nearness(figures, everywhere) for figures in link_figures(links, clusters, gateway)]
    scores: Int64 = np.sum(sides, axis=0) // len(sides)
    return scores
