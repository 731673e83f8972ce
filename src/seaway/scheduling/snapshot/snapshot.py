"""Snapshots: the fleet in the engine's form, with resources, free amounts and demands as columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, MigProfile
from seaway.domain.errors import RejectedError
from seaway.domain.network import Link
from seaway.domain.node import Node
from seaway.scheduling.arrays import FleetArrays, Int32, Int64, copy_arrays
from seaway.scheduling.columns import NODE_CLUSTER
from seaway.scheduling.kernels.allocate import refresh_all, release_rows
from seaway.scheduling.snapshot.demands import DemandTable
from seaway.scheduling.snapshot.encode import encode_fleet


class Snapshot:
    """A fleet with its allocations.

    Parameters
    ----------
    fleet
        Clusters, nodes, devices, gateways and links, without allocations.

    Attributes
    ----------
    clusters, nodes, devices
        Objects by their index in the columns.
    links
        Latest measured links.
    node_index, device_index
        Index of a node (by cluster and name) and of a device (by UUID) in the columns.
    removed
        Indices of removed nodes, which may return.
    arrays
        Resources and free amounts, see `seaway.scheduling.arrays.FleetArrays`.
    demands
        Table of the demands.
    placers
        State of the engine for each profile between decisions; None for a profile that is not compiled.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.clusters: list[Cluster] = list(fleet.clusters)
        self.nodes: list[Node] = [node for _, node in fleet.nodes]
        self.devices: list[Device] = list(fleet.devices)
        self.links: list[Link] = list(fleet.links)
        self.node_index = {(cluster.name, node.name): n for n, (cluster, node) in enumerate(fleet.nodes)}
        self.device_index = {device.uuid: d for d, device in enumerate(self.devices)}
        self.removed: dict[tuple[str, str], int] = {}
        self.geometries: dict[tuple[MigProfile, ...], int] = {}
        self.arrays: FleetArrays = encode_fleet(fleet, self.geometries)
        self.demands = DemandTable(fleet)
        self._sharing = False
        self.placers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        refresh_all(self.arrays)

    def cluster_index(self, name: str) -> int:
        """Return the index of a cluster.

        Raises
        ------
        RejectedError
            If the cluster does not exist.
        """
        for c, cluster in enumerate(self.clusters):
            if cluster.name == name:
                return c
        names = ", ".join(cluster.name for cluster in self.clusters) or "none"
        raise RejectedError(f"unknown cluster {name!r}; the fleet has: {names}")

    def add_node(self, cluster: int, node: Node) -> None:
        """Record a node that was appended to the columns."""
        self.node_index[self.clusters[cluster].name, node.name] = len(self.nodes)
        self.nodes.append(node)
        for device in node.devices:
            self.device_index[device.uuid] = len(self.devices)
            self.devices.append(device)

    def device(self, uuid: str) -> Device | None:
        """Return a device of the fleet by UUID; None for an unknown one."""
        at = self.device_index.get(uuid)
        return None if at is None else self.devices[at]

    def copy(self) -> Snapshot:
        """Return an independent copy of the snapshot.

        The table of demands is shared until the fleet changes in one of the two. A queue that was encoded before is
        valid for both.
        """
        self._sharing = True
        twin = object.__new__(Snapshot)
        twin.__dict__.update(self.__dict__)
        twin.placers = WeakKeyDictionary()
        twin.arrays = copy_arrays(self.arrays)
        twin.nodes, twin.devices, twin.links = list(self.nodes), list(self.devices), list(self.links)
        twin.node_index, twin.device_index = dict(self.node_index), dict(self.device_index)
        twin.removed, twin.geometries = dict(self.removed), dict(self.geometries)
        return twin

    def node_name(self, n: int) -> tuple[str, str]:
        """Return the cluster and the name of node number `n`."""
        return self.clusters[int(self.arrays.nodes[NODE_CLUSTER, n])].name, self.nodes[n].name

    def unshare_demands(self) -> None:
        """Stop sharing the table of demands with copies of this snapshot."""
        if self._sharing:
            self.demands = self.demands.copy()
            self._sharing = False

    def retain_demands(self, indices: Collection[int]) -> None:
        """Remove all demands except those of allocations. Copies are not affected.

        Parameters
        ----------
        indices
            Rows of `demands` to retain. Queues that were encoded before become invalid.
        """
        self.unshare_demands()
        self.demands.retain(indices)
        self.placers.clear()  # they cache scores by row

    def release(self, decisions: Int64, slices: Int32, rows: NDArray[np.intp]) -> None:
        """Release the resources of some decisions of a plan, whose pods have ended or were never created.

        Parameters
        ----------
        decisions, slices
            Arrays of the plan, as in `seaway.scheduling.plan.Plan`. The rows are marked as unplaced.
        rows
            Rows to release, shape (X,); rows without resources are skipped.
        """
        release_rows(self.arrays, self.demands.arrays, decisions, slices, rows)
