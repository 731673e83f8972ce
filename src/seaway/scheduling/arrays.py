"""Arrays of kernels, grouped as named tuples.

`FleetArrays` has the resources of the fleet, which change while jobs are placed. `DemandArrays` has the demands of jobs
and the masks of what they allow. `seaway.scheduling.snapshot.snapshot.Snapshot` owns both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


class FleetArrays(NamedTuple):
    """The fleet as columns; `seaway.scheduling.columns` defines the rows.

    Attributes
    ----------
    nodes
        Nodes, shape (NODE_ROWS, N), int32. The index of a node is its rank, which breaks ties.
    devices
        Devices, shape (DEVICE_ROWS, D), int32.
    blocks
        Best values of each block of `BLOCK_NODES` nodes, shape (BLOCK_ROWS, B), int32.
    clusters
        Clusters, shape (CLUSTER_ROWS, C), int64.
    bandwidth
        Free bandwidth from gateway to gateway, shape (G, G), int64, Mbit/s.
    gateways
        Bandwidth that can be reserved on the interfaces of gateways, in and out, shape (GATEWAY_ROWS, G), int64,
        Mbit/s.
    mig
        MIG profiles, shape (P, MIG_ROWS), int32.
    mig_first
        First profile of each MIG geometry, shape (geometries + 1,), int32.
    log
        Ring buffer of changed nodes, shape (L,), int32.
    head
        Number of logged changes, shape (1,), int64.
    clusters_open
        Flags of clusters, shape (3, C), uint8: whether a cluster may be chosen, whether the current demand may use it,
        and whether the current job already reserved bandwidth to it.
    """

    nodes: Int32
    devices: Int32
    blocks: Int32
    clusters: Int64
    bandwidth: Int64
    gateways: Int64
    mig: Int32
    mig_first: Int32
    log: Int32
    head: Int64
    clusters_open: UInt8


class DemandArrays(NamedTuple):
    """Demands of jobs.

    Attributes
    ----------
    amounts
        Amounts, shape (K, DEMAND_ROWS), int64.
    node_ok
        1 if the node's labels, taints and cluster allow the demand, shape (M, N), uint8.
    device_ok
        1 if the device's model, ID and mode allow the demand, shape (M, D), uint8.
    cluster_ok
        1 if the link from the user's gateway meets the demand's bounds on latency, jitter and loss, shape (W, C),
        uint8. In rows of `DEMAND_NEAR`: proximity of the cluster to the user, 0-100.
    """

    amounts: Int64
    node_ok: UInt8
    device_ok: UInt8
    cluster_ok: UInt8


def copy_arrays(fleet: FleetArrays) -> FleetArrays:
    """Return a deep copy of the arrays."""
    tables: list[Any] = [table.copy() for table in fleet]
    return FleetArrays(*tables)
