"""Updates of a snapshot when nodes, devices and links change.

All allocations are preserved. If a node shrinks below its allocations, its free resources are negative. Allocations on
removed nodes can still be released.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.network import Gateway, Link
from seaway.domain.node import Node
from seaway.scheduling.arrays import Int32
from seaway.scheduling.columns import (
    BLOCK_NODES,
    BLOCK_ROWS,
    CLUSTER_CPU,
    CLUSTER_CPU_FREE,
    CLUSTER_MEMORY,
    CLUSTER_MEMORY_FREE,
    DEVICE_CORE,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    DEVICE_MIG_USED,
    DEVICE_MOVED_TO,
    DEVICE_NODE,
    DEVICE_OPEN,
    DEVICE_ROWS,
    DEVICE_SLOTS,
    DEVICE_SLOTS_FREE,
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
)
from seaway.scheduling.kernels.allocate import refresh_changed
from seaway.scheduling.snapshot.encode import (
    encode_bandwidth,
    encode_device,
    encode_gateways,
    encode_geometries,
    encode_node,
)
from seaway.scheduling.snapshot.snapshot import Snapshot

NODE_PAIRS = ((NODE_CPU, NODE_CPU_FREE), (NODE_MEMORY, NODE_MEMORY_FREE), (NODE_PODS, NODE_PODS_FREE))
DEVICE_PAIRS = (
    (DEVICE_MEMORY, DEVICE_MEMORY_FREE),
    (DEVICE_CORE, DEVICE_CORE_FREE),
    (DEVICE_SLOTS, DEVICE_SLOTS_FREE),
)
CLUSTER_PAIRS = ((CLUSTER_CPU, NODE_CPU), (CLUSTER_MEMORY, NODE_MEMORY))
CLUSTER_FREE_PAIRS = ((CLUSTER_CPU_FREE, NODE_CPU_FREE), (CLUSTER_MEMORY_FREE, NODE_MEMORY_FREE))


def put_node(snapshot: Snapshot, cluster: str, node: Node) -> int:
    """Add or update a node. Its allocations are preserved.

    Returns
    -------
    int
        Index of the node. It changes if devices were added to the node.

    Raises
    ------
    RejectedError
        If the cluster does not exist, a value is too large, or a device of the node appears twice or is on another
        node. The snapshot is then unchanged.
    """
    at = snapshot.cluster_index(cluster)
    n = snapshot.node_index.get((cluster, node.name), snapshot.removed.get((cluster, node.name)))
    _check_node(snapshot, n, node)
    snapshot.unshare_demands()
    if n is None:
        return _append(snapshot, at, node)
    if {device.uuid for device in node.devices} <= _rows_of(snapshot, n).keys():
        _overwrite(snapshot, n, node)
        snapshot.removed.pop((cluster, node.name), None)
        snapshot.node_index[cluster, node.name] = n
        return n
    snapshot.removed.pop((cluster, node.name), None)
    return _exchange(snapshot, n, at, node)


def remove_node(snapshot: Snapshot, cluster: str, name: str) -> None:
    """Remove a node. It has no free resources then, and its allocations can still be released.

    If a node of the same name is added again, it has the allocations that were not released.

    Raises
    ------
    RejectedError
        If the node does not exist.
    """
    n = snapshot.node_index.get((cluster, name))
    if n is None:
        raise RejectedError(f"cluster {cluster!r} has no node {name!r}")
    snapshot.unshare_demands()
    _overwrite(snapshot, n, Node(name, 0, 0, ready=False))
    snapshot.removed[cluster, name] = snapshot.node_index.pop((cluster, name))


def put_gateways(snapshot: Snapshot, gateways: Sequence[Gateway]) -> None:
    """Update the capacity and traffic of the gateways' interfaces.

    Bandwidth reservations of running jobs are preserved.

    Raises
    ------
    RejectedError
        If they are not the gateways of the snapshot, in the same order.
    """
    if [each.name for each in gateways] != [each.name for each in snapshot.fleet.gateways]:
        raise RejectedError("a snapshot keeps the gateways that it was made with")
    promised = encode_gateways(snapshot.fleet.gateways) - snapshot.arrays.gateways
    snapshot.arrays.gateways[:] = encode_gateways(gateways) - promised
    snapshot.fleet = replace(snapshot.fleet, gateways=tuple(gateways))


def put_links(snapshot: Snapshot, links: Iterable[Link]) -> None:
    """Update the links. Bandwidth reservations of running jobs are preserved."""
    known = list(links)
    gateways = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    for link in known:
        for end in (link.source, link.target):
            if end not in gateways:
                raise RejectedError(f"link {link.source!r} to {link.target!r} names the unknown gateway {end!r}")
    snapshot.unshare_demands()
    promised = encode_bandwidth(snapshot.links, gateways) - snapshot.arrays.bandwidth
    snapshot.arrays.bandwidth[:] = encode_bandwidth(known, gateways) - promised
    snapshot.links = known
    snapshot.demands.use_links(known)


def _check_node(snapshot: Snapshot, n: int | None, node: Node) -> None:
    """Reject an invalid node before the snapshot is changed."""
    encode_node(np.zeros(NODE_ROWS, np.int32), node)
    seen: set[str] = set()
    for device in node.devices:
        encode_device(np.zeros(DEVICE_ROWS, np.int32), device, dict(snapshot.geometries))
        if device.uuid in seen:
            raise RejectedError(f"device {device.uuid!r} of node {node.name!r} appears more than once")
        seen.add(device.uuid)
        holder = _holder(snapshot, device.uuid)
        if holder not in {None, n}:
            raise RejectedError(f"device {device.uuid!r} of node {node.name!r} is already on another node")


def _holder(snapshot: Snapshot, uuid: str) -> int | None:
    """Return the index of the node of a device; None if it is on no node."""
    d = snapshot.device_index.get(uuid)
    if d is None:
        return None
    n = int(snapshot.arrays.devices[DEVICE_NODE, d])
    return n if any(device.uuid == uuid for device in snapshot.nodes[n].devices) else None


def _append(snapshot: Snapshot, cluster: int, node: Node) -> int:
    """Add a node at the end."""
    n, first = len(snapshot.nodes), len(snapshot.devices)
    column = np.zeros((NODE_ROWS, 1), np.int32)
    encode_node(column[:, 0], node)
    column[NODE_CLUSTER] = cluster
    column[NODE_DEVICE_FIRST], column[NODE_DEVICE_END] = first, first + len(node.devices)
    devices = np.zeros((DEVICE_ROWS, len(node.devices)), np.int32)
    for at, device in enumerate(node.devices):
        encode_device(devices[:, at], device, snapshot.geometries)
    devices[DEVICE_NODE] = n
    mig, mig_first = encode_geometries(snapshot.geometries)
    arrays = snapshot.arrays
    blocks = -(-(n + 1) // BLOCK_NODES) - arrays.blocks.shape[1]
    snapshot.arrays = arrays._replace(
        nodes=np.concatenate([arrays.nodes, column], axis=1),
        devices=np.concatenate([arrays.devices, devices], axis=1),
        blocks=np.concatenate([arrays.blocks, np.zeros((BLOCK_ROWS, blocks), np.int32)], axis=1),
        mig=mig,
        mig_first=mig_first,
    )
    snapshot.add_node(cluster, node)
    snapshot.demands.grow(snapshot.clusters[cluster], node)
    snapshot.placers.clear()
    _count_in(snapshot, n, 1)
    refresh_changed(snapshot.arrays, n)
    return n


def _overwrite(snapshot: Snapshot, n: int, node: Node) -> None:
    """Update a node in place, and close the devices that it no longer has."""
    arrays = snapshot.arrays
    before = snapshot.nodes[n]
    _count_in(snapshot, n, -1)
    used = _used(arrays.nodes[:, n], NODE_PAIRS)
    encode_node(arrays.nodes[:, n], node)
    _use(arrays.nodes[:, n], NODE_PAIRS, used)
    listed = {device.uuid: device for device in node.devices}
    rows: dict[int, Device] = {}
    for d in range(int(arrays.nodes[NODE_DEVICE_FIRST, n]), int(arrays.nodes[NODE_DEVICE_END, n])):
        device = listed.get(snapshot.devices[d].uuid)
        if device is None:
            arrays.devices[DEVICE_OPEN, d] = 0
            continue
        rows[d] = device
        snapshot.devices[d] = device
        snapshot.device_index[device.uuid] = d
        _write_device(snapshot, d, device)
    cluster = snapshot.clusters[int(arrays.nodes[NODE_CLUSTER, n])]
    snapshot.nodes[n] = node
    snapshot.demands.recheck_node(n, cluster, node, rows)
    if _kind(before) != _kind(node):
        snapshot.placers.clear()
    _count_in(snapshot, n, 1)
    refresh_changed(arrays, n)


def _exchange(snapshot: Snapshot, n: int, cluster: int, node: Node) -> int:
    """Move a node with new devices to the end, with its allocations."""
    old = {device.uuid: _row_before(snapshot, n, device.uuid) for device in node.devices}
    fresh = _append(snapshot, cluster, node)
    arrays = snapshot.arrays
    _count_in(snapshot, fresh, -1)
    _use(arrays.nodes[:, fresh], NODE_PAIRS, _used(arrays.nodes[:, n], NODE_PAIRS))
    _count_in(snapshot, fresh, 1)
    for d in _devices_of(snapshot, fresh):
        source = old[snapshot.devices[d].uuid]
        if source is not None:
            _use(arrays.devices[:, d], DEVICE_PAIRS, _used(arrays.devices[:, source], DEVICE_PAIRS))
            arrays.devices[DEVICE_MIG_USED, d] = arrays.devices[DEVICE_MIG_USED, source]
            arrays.devices[DEVICE_MOVED_TO, source] = d
    _count_in(snapshot, n, -1)
    arrays.nodes[[*chain.from_iterable(NODE_PAIRS), NODE_OPEN], n] = 0
    for d in _devices_of(snapshot, n):
        arrays.devices[DEVICE_OPEN, d] = 0
    arrays.nodes[NODE_MOVED_TO, n] = fresh
    snapshot.nodes[n] = Node(node.name, 0, 0, ready=False)
    refresh_changed(arrays, n)
    refresh_changed(arrays, fresh)
    return fresh


def _row_before(snapshot: Snapshot, n: int, uuid: str) -> int | None:
    """Return the row of a device that node `n` has or had; None if it never had it."""
    own = _rows_of(snapshot, n).get(uuid)
    if own is not None:
        return own
    d = snapshot.device_index.get(uuid)
    if d is None:
        return None
    at = int(snapshot.arrays.devices[DEVICE_NODE, d])
    while snapshot.arrays.nodes[NODE_MOVED_TO, at] >= 0:
        at = int(snapshot.arrays.nodes[NODE_MOVED_TO, at])
    return d if at == n else None


def _rows_of(snapshot: Snapshot, n: int) -> dict[str, int]:
    """Return the rows of the devices of node `n`, by UUID."""
    return {snapshot.devices[d].uuid: d for d in _devices_of(snapshot, n)}


def _devices_of(snapshot: Snapshot, n: int) -> range:
    first, end = snapshot.arrays.nodes[[NODE_DEVICE_FIRST, NODE_DEVICE_END], n]
    return range(int(first), int(end))


def _write_device(snapshot: Snapshot, d: int, device: Device) -> None:
    """Update a device. Its allocations are preserved."""
    column = snapshot.arrays.devices[:, d]
    used = _used(column, DEVICE_PAIRS)
    geometries = len(snapshot.geometries)
    encode_device(column, device, snapshot.geometries)
    _use(column, DEVICE_PAIRS, used)
    if len(snapshot.geometries) != geometries:
        mig, mig_first = encode_geometries(snapshot.geometries)
        snapshot.arrays = snapshot.arrays._replace(mig=mig, mig_first=mig_first)


def _used(column: Int32, pairs: tuple[tuple[int, int], ...]) -> list[int]:
    return [int(column[total] - column[free]) for total, free in pairs]


def _use(column: Int32, pairs: tuple[tuple[int, int], ...], used: list[int]) -> None:
    for (total, free), amount in zip(pairs, used, strict=True):
        column[free] = column[total] - amount


def _count_in(snapshot: Snapshot, n: int, sign: int) -> None:
    """Add an open node's CPU and memory to its cluster's sums (`sign` 1), or subtract them (-1)."""
    arrays = snapshot.arrays
    if not arrays.nodes[NODE_OPEN, n]:
        return
    cluster = arrays.nodes[NODE_CLUSTER, n]
    for row, column in CLUSTER_PAIRS + CLUSTER_FREE_PAIRS:
        arrays.clusters[row, cluster] += sign * int(arrays.nodes[column, n])


def _kind(node: Node) -> object:
    """Return all properties of a node that tables of policies may depend on."""
    return (
        [(d.uuid, d.model, d.vendor, d.memory_mib, d.core_milli, d.mode) for d in node.devices],
        node.labels,
        node.taints,
    )
