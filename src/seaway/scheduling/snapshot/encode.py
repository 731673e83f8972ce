"""Encoding of fleets and demands as columns for the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, DeviceMode, MigProfile
from seaway.domain.errors import RejectedError
from seaway.domain.gpu_models import covers
from seaway.domain.job import OTHER_COPY, Demand, DeviceRules, GpuTopology, NodeRules
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.domain.node import Node, Taint
from seaway.scheduling.arrays import FleetArrays, Int32, Int64, UInt8
from seaway.scheduling.columns import (
    BLOCK_NODES,
    BLOCK_ROWS,
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_GATEWAY,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    CLUSTER_ROWS,
    CLUSTERS_ALLOWED,
    CLUSTERS_ROWS,
    DEMAND_ROWS,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_CORE_STEPS,
    DEVICE_ISLAND,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_MEMORY_STEP,
    DEVICE_MIG,
    DEVICE_MIG_TOGETHER,
    DEVICE_MOVED_TO,
    DEVICE_NODE,
    DEVICE_NUMA,
    DEVICE_OPEN,
    DEVICE_ROWS,
    DEVICE_SLOTS,
    DEVICE_SLOTS_FREE,
    DEVICE_SWITCH,
    EVEN_SHARES,
    GATEWAY_ROWS,
    MIG_ROWS,
    NODE_CLUSTER,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
    NODE_MOVED_TO,
    NODE_OPEN,
    NODE_PODS,
    NODE_PODS_FREE,
    NODE_ROWS,
    STRICTER_ROWS,
)

LARGEST = 2**31 - 1
"""Maximum value of a column: 2 PiB of memory, two million cores."""

NO_RULES = DeviceRules()
"""Rules that allow every device."""

LOG_LENGTH = 4096
"""Number of changes that the fleet's log stores. A cache row that is further behind is recomputed."""

SAME_GATEWAY_MBPS = 2**40
"""Bandwidth from a gateway to itself, which needs no link."""

NO_LIMIT_MBPS = 2**40
"""Capacity of an unknown interface, larger than that of all its links."""


def encode_fleet(fleet: Fleet, geometries: dict[tuple[MigProfile, ...], int]) -> FleetArrays:
    """Encode a fleet without allocations as columns.

    Parameters
    ----------
    geometries
        Numbers of known MIG geometries; new ones are added.

    Raises
    ------
    RejectedError
        If a value is too large for a column.
    """
    nodes = [node for _, node in fleet.nodes]
    cluster_of = [c for c, cluster in enumerate(fleet.clusters) for _ in cluster.nodes]
    devices = [device for node in nodes for device in node.devices]
    gateways = {gateway.name: g for g, gateway in enumerate(fleet.gateways)}
    node_table = np.zeros((NODE_ROWS, len(nodes)), np.int32)
    ends = np.cumsum([len(node.devices) for node in nodes], dtype=np.int32)
    firsts = ends - np.array([len(node.devices) for node in nodes], np.int32)
    for n, node in enumerate(nodes):
        encode_node(node_table[:, n], node)
    node_table[NODE_CLUSTER] = cluster_of
    node_table[NODE_DEVICE_FIRST] = firsts
    node_table[NODE_DEVICE_END] = ends
    device_table = np.zeros((DEVICE_ROWS, len(devices)), np.int32)
    for d, device in enumerate(devices):
        encode_device(device_table[:, d], device, geometries)
    device_table[DEVICE_NODE] = np.repeat(np.arange(len(nodes), dtype=np.int32), ends - firsts)
    clusters = np.zeros((CLUSTER_ROWS, len(fleet.clusters)), np.int64)
    for c, cluster in enumerate(fleet.clusters):
        clusters[CLUSTER_GATEWAY, c] = gateways.get(cluster.gateway, -1)
    for row, column in (
        (CLUSTER_CPU, NODE_CPU),
        (CLUSTER_CPU_FREE, NODE_CPU),
        (CLUSTER_MEMORY, NODE_MEMORY),
        (CLUSTER_MEMORY_FREE, NODE_MEMORY),
    ):
        np.add.at(clusters[row], node_table[NODE_CLUSTER], node_table[column] * node_table[NODE_OPEN].astype(np.int64))
    mig, mig_first = encode_geometries(geometries)
    return FleetArrays(
        nodes=node_table,
        devices=device_table,
        blocks=np.zeros((BLOCK_ROWS, -(-len(nodes) // BLOCK_NODES)), np.int32),
        clusters=clusters,
        bandwidth=encode_bandwidth(fleet.links, gateways),
        gateways=encode_gateways(fleet.gateways),
        mig=mig,
        mig_first=mig_first,
        log=np.zeros(LOG_LENGTH, np.int32),
        head=np.zeros(1, np.int64),
        clusters_open=open_clusters(len(fleet.clusters)),
    )


def open_clusters(clusters: int) -> UInt8:
    """Return flags that allow every cluster, shape (3, C), uint8."""
    marks = np.zeros((CLUSTERS_ROWS, clusters), np.uint8)
    marks[CLUSTERS_ALLOWED] = 1
    return marks


def encode_node(column: Int32, node: Node) -> None:
    """Encode a node without allocations into its column."""
    _check(f"node {node.name!r}", node.cpu_milli, node.memory_mib, node.pods or 0)
    column[NODE_OPEN] = node.ready
    column[NODE_MOVED_TO] = -1
    column[NODE_CPU] = column[NODE_CPU_FREE] = node.cpu_milli
    column[NODE_MEMORY] = column[NODE_MEMORY_FREE] = node.memory_mib
    column[NODE_PODS] = column[NODE_PODS_FREE] = LARGEST if node.pods is None else node.pods


def encode_device(column: Int32, device: Device, geometries: dict[tuple[MigProfile, ...], int]) -> None:
    """Encode an idle device into its column."""
    _check(f"device {device.uuid!r}", device.memory_mib, device.core_milli, device.share_limit, device.memory_step_mib)
    column[DEVICE_OPEN] = device.healthy and not device.cordoned
    column[DEVICE_MEMORY] = column[DEVICE_MEMORY_FREE] = device.memory_mib
    column[DEVICE_CORE] = column[DEVICE_CORE_FREE] = device.core_milli
    column[DEVICE_SLOTS] = column[DEVICE_SLOTS_FREE] = device.share_limit
    column[DEVICE_NUMA] = device.numa
    column[DEVICE_ISLAND] = device.island
    column[DEVICE_SWITCH] = device.pcie_switch
    column[DEVICE_MOVED_TO] = -1
    mig = device.mode is DeviceMode.MIG
    column[DEVICE_MIG_TOGETHER] = mig and device.mig_single_device
    column[DEVICE_CORE_STEPS] = EVEN_SHARES if device.even_shares else device.core_steps
    column[DEVICE_MEMORY_STEP] = EVEN_SHARES if device.even_shares else device.memory_step_mib
    column[DEVICE_MIG] = geometries.setdefault(smallest_first(device), len(geometries)) if mig else -1


def smallest_first(device: Device) -> tuple[MigProfile, ...]:
    """Return a device's MIG profiles in the order in which HAMi tries them: by memory, then by compute slices."""
    return tuple(sorted(device.mig_profiles, key=lambda profile: (profile.memory_mib, profile.slice_count)))


def encode_geometries(geometries: dict[tuple[MigProfile, ...], int]) -> tuple[Int32, Int32]:
    """Encode MIG geometries as a table of profiles and the index of the first profile of each geometry."""
    lines = [
        (
            *(p.memory_mib, p.core_milli, p.size, sum(1 << start for start in p.starts)),
            *(p.from_the_top, profile_code(p.name)),
        )
        for geometry in geometries
        for p in geometry
    ]
    first = np.concatenate(([0], np.cumsum([len(geometry) for geometry in geometries]))).astype(np.int32)
    return np.array(lines, np.int32).reshape(-1, MIG_ROWS), first


def profile_code(name: str) -> int:
    """Return the number of a MIG profile's name, above 0; 0 for an empty name."""
    return 1 + crc32(name.encode()) % LARGEST if name else 0


def encode_bandwidth(links: Iterable[Link], gateways: dict[str, int]) -> Int64:
    """Encode the available bandwidth of links, shape (G, G), Mbit/s."""
    table = np.zeros((len(gateways), len(gateways)), np.int64)
    np.fill_diagonal(table, SAME_GATEWAY_MBPS)
    for link in links:
        table[gateways[link.source], gateways[link.target]] = link.free_mbps
    return table


def encode_gateways(gateways: Iterable[Gateway]) -> Int64:
    """Encode the available bandwidth of the interfaces of gateways, shape (GATEWAY_ROWS, G), Mbit/s."""
    lines = [
        (each.speed_mbps - each.used_in_mbps, each.speed_mbps - each.used_out_mbps)
        if each.speed_mbps
        else (NO_LIMIT_MBPS, NO_LIMIT_MBPS)
        for each in gateways
    ]
    return np.ascontiguousarray(np.maximum(np.array(lines, np.int64).reshape(-1, GATEWAY_ROWS), 0).T)


def encode_demand(demand: Demand, mask: int, network: int, gateway: int, near: int) -> Int64:
    """Encode a demand as a row, shape (DEMAND_ROWS,), with the rows of its masks."""
    request = demand.request.filled()
    line = (
        request.cpu_milli,
        request.memory_mib,
        request.gpus,
        request.gpu_memory_mib,
        request.gpu_memory_percent,
        request.gpu_milli,
        demand.devices.exclusive,
        _group_row(demand.devices),
        mask,
        network,
        gateway,
        demand.network.min_bandwidth_mbps,
        near,
        profile_code(demand.request.mig),
        *([0] * STRICTER_ROWS),
    )
    assert len(line) == DEMAND_ROWS
    _check("the request", *line[:6])
    return np.array(line, np.int64)


def _group_row(rules: DeviceRules) -> int:
    """Return `DEMAND_GROUP` of rules."""
    if rules.same_numa:
        return DEVICE_NUMA
    return {GpuTopology.SAME_ISLAND: DEVICE_ISLAND, GpuTopology.SAME_SWITCH: DEVICE_SWITCH}.get(rules.topology, 0)


def allowed_devices(rules: DeviceRules, devices: Sequence[Device], mig: str = "") -> UInt8:
    """Return 1 for each device that `rules` allow and that has the MIG profile `mig`, if given, shape (D,), uint8."""
    allowed = np.array([each.slice_nodes in (1, rules.slice_nodes) for each in devices], np.uint8)
    if mig:
        allowed &= with_profile(devices, mig)
    if replace(rules, slice_nodes=1) == NO_RULES:
        return allowed
    kinds: dict[tuple[str, str, DeviceMode], bool] = {}
    for d, device in enumerate(devices):
        kind = (device.model, device.vendor, device.mode)
        if kind not in kinds:
            kinds[kind] = kind_allowed(rules, device)
        allowed[d] &= (
            kinds[kind]
            and (not rules.use_uuids or device.uuid in rules.use_uuids)
            and device.uuid not in rules.avoid_uuids
        )
    return allowed


def with_profile(devices: Sequence[Device], mig: str) -> UInt8:
    """Return 1 for each device of which pods can request an instance of the profile `mig`, shape (D,), uint8."""
    return np.array([each.mig_profile(mig) is not None for each in devices], np.uint8)


def kind_allowed(rules: DeviceRules, device: Device) -> bool:
    """Report whether `rules` allow devices with the model, vendor and mode of `device`."""
    return (
        model_allowed(rules, device.model)
        and (not rules.vendors or device.vendor in rules.vendors)
        and (not rules.modes or device.mode in rules.modes)
    )


def model_allowed(rules: DeviceRules, model: str) -> bool:
    """Report whether `rules` allow a product by its name."""
    return (
        (not rules.models or any(covers(name, model) for name in rules.models))
        and (not rules.use_types or any(covers(name, model) for name in rules.use_types))
        and not any(covers(name, model) for name in rules.avoid_types)
        and model.casefold() not in rules.excluded
    )


def allowed_node(rules: NodeRules, cluster: Cluster, node: Node) -> bool:
    """Report whether `rules` allow a node: its cluster, name, labels and taints."""
    return (
        cluster_allowed(rules, cluster)
        and price_allowed(rules, cluster, node)
        and not avoided(rules, cluster.name, node.name)
        and labels_allow(rules, node)
        and all(tolerated(rules, taint) for taint in node.taints)
    )


def cluster_allowed(rules: NodeRules, cluster: Cluster) -> bool:
    """Report whether `rules` allow a cluster."""
    return (
        (not rules.clusters or cluster.name in rules.clusters)
        and (not rules.regions or cluster.region in rules.regions)
        and rules.hardware <= (cluster.facts.hardware or frozenset())
        and all(cluster.facts.labels.get(key) == value for key, value in rules.cluster_labels)
    )


def price_allowed(rules: NodeRules, cluster: Cluster, node: Node) -> bool:
    """Report whether `rules` allow the price of a node's GPUs. They do not allow an unknown one."""
    if rules.max_microprice is None or not node.devices:
        return True
    price = cluster.facts.node_microprice(node)
    return price is not None and price <= rules.max_microprice


def avoided(rules: NodeRules, cluster: str, node: str) -> bool:
    """Report whether `rules` exclude a node by name, or its whole cluster."""
    if rules.only and (cluster, node) not in rules.only:
        return True
    return bool(rules.avoid) and not rules.avoid.isdisjoint(((cluster, ""), (cluster, OTHER_COPY), (cluster, node)))


def labels_allow(rules: NodeRules, node: Node) -> bool:
    """Report whether a node has the labels that `rules` require."""
    return all(node.labels.get(key) == value for key, value in rules.node_labels)


def tolerated(rules: NodeRules, taint: Taint) -> bool:
    """Report whether `rules` tolerate a taint."""
    return not taint.effect.refuses or any(toleration.tolerates(taint) for toleration in rules.tolerations)


def link_meets(need: NetworkNeed, link: Link | None) -> bool:
    """Report whether a link meets the bounds on latency, jitter and loss. Unknown and unreachable links do not."""
    if link is None or link.latency_ns is None:
        return False
    return (
        (not need.max_latency_ns or link.latency_ns <= need.max_latency_ns)
        and (not need.max_jitter_ns or link.jitter_ns <= need.max_jitter_ns)
        and (not need.max_loss_ppm or link.loss_ppm <= need.max_loss_ppm)
    )


def _check(what: str, *figures: int) -> None:
    if max(figures) > LARGEST:
        raise RejectedError(f"{what} has the figure {max(figures)}, above the maximum of {LARGEST}")
