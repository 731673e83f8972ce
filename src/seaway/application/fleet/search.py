"""Search for nodes and devices in large fleets, with vectorized filters."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from seaway.application.control.allocations import own
from seaway.application.control.loop import Controller
from seaway.application.views import Amount, ClusterState, ModelView
from seaway.domain.gpu_models import covers
from seaway.domain.node import Node
from seaway.scheduling.columns import (
    CLUSTERS_ALLOWED,
    DEVICE_CORE_FREE,
    DEVICE_MEMORY_FREE,
    DEVICE_OPEN,
    DEVICE_SLOTS,
    DEVICE_SLOTS_FREE,
    NODE_CLUSTER,
    NODE_OPEN,
)
from seaway.scheduling.snapshot.snapshot import Snapshot

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOWHERE = -1
"""Column index of a node or device that the engine does not have."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Clusters, nodes and devices as reported; N nodes, D devices.

    Attributes
    ----------
    clusters, nodes
        Names of clusters, and names of their nodes in the same order.
    cluster_of
        Cluster index of each node, shape (N,).
    node_of
        Node index of each device, shape (D,); the devices of a node are adjacent.
    first_of
        Index of the first device of each node, shape (N,).
    uuids
        UUIDs of the devices in lower case.
    models, model_of
        Model names, and the model index of each device, shape (D,).
    memory_mib, core_milli
        Totals of each device, shape (D,).
    unhealthy
        Number of unhealthy devices of each node, shape (N,).
    node_at, device_at
        Indices in the columns of the engine, shapes (N,) and (D,); `NOWHERE` if absent there.
    """

    clusters: Sequence[str]
    nodes: Sequence[Node]
    cluster_of: Numbers
    node_of: Numbers
    first_of: Numbers
    uuids: Sequence[str]
    models: Sequence[str]
    model_of: Numbers
    memory_mib: Numbers
    core_milli: Numbers
    unhealthy: Numbers
    node_at: Numbers
    device_at: Numbers

    def device(self, at: int) -> tuple[int, str]:
        """Return the node index and the UUID of a device, given by its index."""
        node = int(self.node_of[at])
        return node, self.nodes[node].devices[at - self.first_of[node]].uuid


def columns_of(
    reported: Mapping[str, Sequence[Node]], node_index: Mapping[tuple[str, str], int], device_index: Mapping[str, int]
) -> Columns:
    """Create columns from the nodes of clusters.

    Parameters
    ----------
    reported
        The nodes of each cluster.
    node_index, device_index
        Indices in the engine: of nodes by cluster and name, of devices by UUID.
    """
    nodes = list(chain.from_iterable(reported.values()))
    devices = [device for node in nodes for device in node.devices]
    models = {name: at for at, name in enumerate(sorted({each.model for each in devices}))}
    return Columns(
        clusters=list(reported),
        nodes=nodes,
        cluster_of=np.repeat(np.arange(len(reported)), [len(each) for each in reported.values()]),
        node_of=np.repeat(np.arange(len(nodes)), [len(node.devices) for node in nodes]),
        first_of=np.cumsum([0, *(len(node.devices) for node in nodes)])[:-1],
        uuids=[each.uuid.casefold() for each in devices],
        models=list(models),
        model_of=_numbers([models[each.model] for each in devices]),
        memory_mib=_numbers([each.memory_mib for each in devices]),
        core_milli=_numbers([each.core_milli for each in devices]),
        unhealthy=_numbers([sum(not (each.healthy and not each.cordoned) for each in node.devices) for node in nodes]),
        node_at=_numbers([node_index.get((name, node.name), NOWHERE) for name in reported for node in reported[name]]),
        device_at=_numbers([device_index.get(each.uuid, NOWHERE) for each in devices]),
    )


def picked(row: NDArray[np.int32], at: Numbers, otherwise: Numbers | int) -> Numbers:
    """Return the values of an engine row at these indices, and `otherwise` for `NOWHERE`."""
    if not row.size:
        return np.broadcast_to(np.asarray(otherwise, np.int64), at.shape).copy()
    found: Numbers = np.where(at == NOWHERE, otherwise, row[at])
    return found


def _numbers(values: Sequence[int]) -> Numbers:
    return np.array(values, np.int64)


TENTHS = 10


@dataclass(frozen=True, slots=True)
class FleetFilter:
    """Filter of nodes and devices. Empty fields do not filter. Substrings of names match case-insensitively.

    Attributes
    ----------
    cluster, node
        Names.
    name
        Substring of a node's name.
    device
        Substring of a device's UUID.
    model
        Name that covers a device's model.
    free_memory_mib, free_core_milli
        Minimum free amounts of one device.
    ready
        Whether the node, and its device if devices are filtered, has to accept new work.
    healthy
        False for nodes that their cluster reports as not ready or with an unhealthy device, true for others.
    """

    cluster: str = ""
    node: str = ""
    name: str = ""
    device: str = ""
    model: str = ""
    free_memory_mib: int = 0
    free_core_milli: int = 0
    ready: bool | None = None
    healthy: bool | None = None

    @property
    def of_devices(self) -> bool:
        """True if the filter applies to devices, so that it excludes nodes without a matching device."""
        return bool(self.device or self.model or self.free_memory_mib or self.free_core_milli)


@dataclass(frozen=True, slots=True)
class Found:
    """Matching nodes and devices, in fleet order, with their use.

    Attributes
    ----------
    columns
        The searched columns.
    nodes, devices
        Indices of all matching nodes, and of their matching devices.
    shared
        Number of matching devices with an allocated slice.
    memory_mib, core_milli
        Totals of the matching devices, without clusters that do not respond.
    schedulable_memory_mib
        Free memory of the matching devices that accept new work.
    unknown
        Number of matching devices in clusters that do not respond.
    fullness
        Histogram of allocated memory: none, up to a tenth, up to two tenths, and so on; 11 numbers.
    node_used_milli
        Allocated GPUs of each node in thousandths, shape (N,). A device counts as the larger share of cores and memory.
    node_ready
        Whether each node accepts new work, shape (N,).
    """

    columns: Columns
    nodes: Numbers
    devices: Numbers
    shared: Numbers
    memory_mib: Amount
    core_milli: Amount
    schedulable_memory_mib: int
    unknown: int
    fullness: tuple[int, ...]
    node_used_milli: Numbers
    node_ready: Flags


@dataclass(frozen=True, slots=True)
class _State:
    """Current state: free amounts and slices of each device, and whether its node and cluster accept work."""

    free_memory_mib: Numbers
    free_core_milli: Numbers
    shared: Flags
    node_ready: Flags
    device_ready: Flags
    answers: Flags


class FleetSearch:
    """Search for nodes and devices.

    Columns are cached until clusters report changes. The lock of the loop is held while columns are created and while
    engine data is copied.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._columns: Columns | None = None
        self._made = 0
        self._of: ref[Snapshot] | None = None

    def find(self, wanted: FleetFilter) -> Found:
        """Find nodes, and devices on them."""
        columns, state = self._look()
        nodes = _nodes(columns, wanted)
        if wanted.ready is not None:
            nodes &= state.node_ready == wanted.ready
        if wanted.healthy is not None:
            answering = np.array([each.answers for each in columns.nodes], np.bool_)
            nodes &= (answering & (columns.unhealthy == 0)) == wanted.healthy
        devices = nodes[columns.node_of] & _devices(columns, state, wanted)
        if wanted.of_devices:
            nodes = np.zeros(len(columns.nodes), np.bool_)
            nodes[columns.node_of[devices]] = True
        at = np.flatnonzero(devices)
        known, ready = np.flatnonzero(devices & state.answers), np.flatnonzero(devices & state.device_ready)
        return Found(
            columns,
            np.flatnonzero(nodes),
            at,
            np.flatnonzero(devices & state.shared),
            _amount(columns.memory_mib[known], state.free_memory_mib[known]),
            _amount(columns.core_milli[known], state.free_core_milli[known]),
            int(state.free_memory_mib[ready].sum()),
            len(at) - len(known),
            _use_histogram(columns.memory_mib[known], state.free_memory_mib[known]),
            _used_milli(columns, state),
            state.node_ready,
        )

    def models(self, cluster: str = "") -> list[ModelView]:
        """Return the totals of the devices of one cluster or of all, by model."""
        columns, state = self._look()
        among = _nodes(columns, FleetFilter(cluster=cluster))[columns.node_of]
        views = []
        for at, name in enumerate(columns.models):
            of = among & (columns.model_of == at)
            if count := int(np.count_nonzero(of)):
                memory = _amount(columns.memory_mib[of], state.free_memory_mib[of])
                cores = _amount(columns.core_milli[of], state.free_core_milli[of])
                free = int(np.count_nonzero(of & state.device_ready & ~state.shared))
                views.append(ModelView(name, count, free, memory, cores))
        return views

    def _look(self) -> tuple[Columns, _State]:
        with self._controller.lock:
            fleet = self._controller.live.fleet
            snapshot = fleet.snapshot
            if self._columns is None or self._made != fleet.make or self._of is None or self._of() is not snapshot:
                reported = {name: own(self._controller.live, each).nodes for name, each in fleet.clusters.items()}
                self._columns = columns_of(reported, snapshot.node_index, snapshot.device_index)
                self._made, self._of = fleet.make, ref(snapshot)
            up = {name for name, each in fleet.clusters.items() if each.state is ClusterState.UP}
            return self._columns, _state(self._columns, self._real(snapshot), up)

    def _real(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot without reservations, with only actual allocations."""
        reservations = self._controller.scheduler.reservations
        if not reservations.bookings():
            return snapshot
        copy = snapshot.copy()
        reservations.lift_from(copy)
        return copy


def _state(columns: Columns, snapshot: Snapshot, up: Container[str]) -> _State:
    arrays = snapshot.arrays
    gates = arrays.clusters_open[CLUSTERS_ALLOWED]
    node_ready = picked(arrays.nodes[NODE_OPEN], columns.node_at, 0) > 0
    if gates.size:
        node_ready &= picked(gates, picked(arrays.nodes[NODE_CLUSTER], columns.node_at, 0), 0) > 0
    device_ready = picked(arrays.devices[DEVICE_OPEN], columns.device_at, 0) > 0
    return _State(
        picked(arrays.devices[DEVICE_MEMORY_FREE], columns.device_at, columns.memory_mib),
        picked(arrays.devices[DEVICE_CORE_FREE], columns.device_at, columns.core_milli),
        picked(arrays.devices[DEVICE_SLOTS] - arrays.devices[DEVICE_SLOTS_FREE], columns.device_at, 0) > 0,
        node_ready,
        device_ready & node_ready[columns.node_of],
        np.array([each in up for each in columns.clusters], np.bool_)[columns.cluster_of[columns.node_of]],
    )


def _nodes(columns: Columns, wanted: FleetFilter) -> Flags:
    """Return a mask of the nodes with matching names, shape (N,)."""
    meant = np.ones(len(columns.nodes), np.bool_)
    if wanted.cluster:
        meant &= (np.array(columns.clusters, dtype=object) == wanted.cluster)[columns.cluster_of]
    if wanted.node:
        meant &= np.array([each.name == wanted.node for each in columns.nodes], np.bool_)
    if wanted.name:
        part = wanted.name.casefold()
        meant &= np.array([part in each.name.casefold() for each in columns.nodes], np.bool_)
    return meant


def _devices(columns: Columns, state: _State, wanted: FleetFilter) -> Flags:
    """Return a mask of the matching devices, regardless of their nodes, shape (D,)."""
    meant = np.ones(len(columns.uuids), np.bool_)
    if wanted.ready and wanted.of_devices:
        meant &= state.device_ready
    if wanted.model:
        among = [at for at, name in enumerate(columns.models) if covers(wanted.model, name)]
        meant &= np.isin(columns.model_of, among)
    if wanted.free_memory_mib:
        meant &= state.free_memory_mib >= wanted.free_memory_mib
    if wanted.free_core_milli:
        meant &= state.free_core_milli >= wanted.free_core_milli
    if wanted.device:
        part = wanted.device.casefold()
        meant &= np.array([part in uuid for uuid in columns.uuids], np.bool_)
    return meant


def _used_milli(columns: Columns, state: _State) -> Numbers:
    """Return the allocated GPUs of each node in thousandths, shape (N,)."""
    shares = np.maximum(
        (columns.memory_mib - state.free_memory_mib) * 1000 // np.maximum(columns.memory_mib, 1),
        (columns.core_milli - state.free_core_milli) * 1000 // np.maximum(columns.core_milli, 1),
    )
    used = np.bincount(columns.node_of, weights=np.clip(shares, 0, 1000), minlength=len(columns.nodes))
    return used.astype(np.int64)


def _amount(total: Numbers, free: Numbers) -> Amount:
    whole = int(total.sum())
    return Amount(whole, whole - int(free.sum()))


def _use_histogram(total: Numbers, free: Numbers) -> tuple[int, ...]:
    taken = np.clip(total - free, 0, total)
    tenths = -(-taken * TENTHS // np.maximum(total, 1))
    return tuple(np.bincount(tenths, minlength=TENTHS + 1).tolist())
