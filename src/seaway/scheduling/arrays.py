"""The arrays that kernels work on, bundled so that they travel as one argument.

`FleetArrays` is what changes while jobs are placed; `DemandArrays` is what jobs ask for, against
that fleet. `seaway.scheduling.snapshot.snapshot.Snapshot` owns both.
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
    """The fleet as columns; `seaway.scheduling.columns` names the lines.

    Attributes
    ----------
    nodes
        Shape (NODE_ROWS, N), int32. The index of a node is its rank: it decides ties.
    devices
        Shape (DEVICE_ROWS, D), int32.
    blocks
        Shape (BLOCK_ROWS, B), int32: the best of each run of `BLOCK_NODES` nodes.
    clusters
        Shape (CLUSTER_ROWS, C), int64.
    bandwidth
        Free bandwidth from gateway to gateway, shape (G, G), int64, Mbit/s.
    gateways
        What the interfaces of gateways can still promise in and out, shape (GATEWAY_ROWS, G), int64, Mbit/s.
    mig
        MIG profiles, shape (P, MIG_ROWS), int32.
    mig_first
        First profile of each MIG geometry, shape (geometries + 1,), int32.
    log
        Ring of the nodes that changed, shape (L,), int32.
    head
        How many changes were logged so far, shape (1,), int64.
    clusters_open
        Marks of clusters, shape (3, C), uint8: which may be chosen at all, which the demand at hand
        may use, and to which its job already took bandwidth.
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
        Shape (K, DEMAND_ROWS), int64.
    node_ok
        1 where a node's labels, taints and cluster allow the demand, shape (M, N), uint8.
    device_ok
        1 where a device's model, id and mode allow the demand, shape (M, D), uint8.
    cluster_ok
        1 where the link from the user's gateway meets the demand's latency, jitter and loss,
        shape (W, C), uint8.
        In rows of `DEMAND_NEAR`: proximity of the cluster to the user, 0-100.
    """

    amounts: Int64
    node_ok: UInt8
    device_ok: UInt8
    cluster_ok: UInt8


def copy_arrays(fleet: FleetArrays) -> FleetArrays:
    """Return the same columns with memory of their own."""
    tables: list[Any] = [table.copy() for table in fleet]
    return FleetArrays(*tables)
