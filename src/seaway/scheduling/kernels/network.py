"""Bandwidth reservations: to a job's user, and between the clusters of a job."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import FleetArrays, Int64
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    GATEWAY_IN,
    GATEWAY_OUT,
    NODE_CLUSTER,
    NODE_MOVED_TO,
    PLAN_DUPLICATE,
    PLAN_JOB,
    PLAN_NODE,
    PLAN_REPLICA,
    PLAN_REPLICA_BANDWIDTH,
    PLAN_RING_TO,
)
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.shared_arrays import borrowed


@compiled
def has_bandwidth(fleet: FleetArrays, source: int, target: int, mbps: int) -> bool:
    """Report whether `mbps` can be reserved from a gateway to another, on the link and on both interfaces."""
    if source == target:
        return True
    shared = min(fleet.gateways[GATEWAY_OUT, source], fleet.gateways[GATEWAY_IN, target])
    return min(fleet.bandwidth[source, target], shared) >= mbps


@compiled
def reserve_link(fleet: FleetArrays, source: int, target: int, mbps: int) -> None:
    """Reserve `mbps`, or release it if negative, on the link between two gateways and on their interfaces."""
    fleet.bandwidth[source, target] -= mbps
    if source != target:
        fleet.gateways[GATEWAY_OUT, source] -= mbps
        fleet.gateways[GATEWAY_IN, target] -= mbps


@compiled
def current_node(fleet: FleetArrays, n: int) -> int:
    """Return the current index of node `n`, which may be -1."""
    while n >= 0 and fleet.nodes[NODE_MOVED_TO, n] >= 0:
        n = fleet.nodes[NODE_MOVED_TO, n]
    return n


@compiled
def gateway_of(fleet: FleetArrays, n: int) -> int:
    """Return the gateway of node `n`; -1 if the node or its gateway is unknown."""
    n = current_node(fleet, n)
    return fleet.clusters[CLUSTER_GATEWAY, fleet.nodes[NODE_CLUSTER, n]] if n >= 0 else -1


@compiled
def reserve_in_ring(fleet: FleetArrays, plan: Int64, row: int, gateway: int, sign: int) -> None:
    """Reserve (`sign` 1) or release (-1) the bandwidth between a replica of a ring and the next one.

    A release also releases the link from the previous replica, which then leads nowhere.

    Parameters
    ----------
    plan, row, gateway
        As in `reserve_between_gateways`.
    """
    mbps, target = plan[row, PLAN_REPLICA_BANDWIDTH], plan[row, PLAN_RING_TO] - 1
    if target >= 0 and target != gateway:
        reserve_link(fleet, gateway, target, sign * mbps)
    if sign > 0:
        return
    before, last = -1, -1
    for step in (-1, 1):
        other = row + step
        while 0 <= other < plan.shape[0] and plan[other, PLAN_JOB] == plan[row, PLAN_JOB]:
            if plan[other, PLAN_REPLICA] == plan[row, PLAN_REPLICA] - 1:
                before = other
            if last < 0 or plan[other, PLAN_REPLICA] > plan[last, PLAN_REPLICA]:
                last = other
            other += step
    if plan[row, PLAN_REPLICA] == 0:
        before = last
    if before >= 0 and plan[before, PLAN_RING_TO] > 0:
        source = gateway_of(fleet, plan[before, PLAN_NODE])
        target = plan[before, PLAN_RING_TO] - 1
        if source >= 0:
            if source != target:
                reserve_link(fleet, source, target, -plan[before, PLAN_REPLICA_BANDWIDTH])
            plan[before, PLAN_RING_TO] = -1


@compiled
def reserve_between_gateways(fleet: FleetArrays, plan: Int64, row: int, end: int, gateway: int, sign: int) -> None:
    """Reserve (`sign` 1) or release (-1) the bandwidth between a replica and those of its job behind other gateways.

    A job reserves the links between two gateways once, in both directions, regardless of the number of replicas.
    Nothing is reserved if another replica is behind the same gateway. A ring is reserved by `reserve_in_ring`.

    Parameters
    ----------
    plan
        Decisions, shape (R, PLAN_ROWS).
    row, end
        Row of the replica, and end of the rows to check for other replicas.
    gateway
        Gateway of the replica; -1 if unknown, and then nothing is reserved.
    """
    mbps = plan[row, PLAN_REPLICA_BANDWIDTH]
    if mbps == 0 or gateway < 0:
        return
    if plan[row, PLAN_RING_TO] != 0:
        reserve_in_ring(fleet, plan, row, gateway, sign)
        return
    met = np.zeros(fleet.gateways.shape[1], np.uint8)
    first = row
    while first > 0 and plan[first - 1, PLAN_JOB] == plan[row, PLAN_JOB]:
        first -= 1
    for other in range(first, end):
        if plan[other, PLAN_JOB] != plan[row, PLAN_JOB]:
            break
        if (
            other != row
            and plan[other, PLAN_REPLICA_BANDWIDTH] != 0
            and plan[other, PLAN_DUPLICATE] == plan[row, PLAN_DUPLICATE]
        ):
            there = gateway_of(fleet, plan[other, PLAN_NODE])
            if there >= 0:
                met[there] = 1
    if met[gateway] != 0:
        return
    for there in range(met.shape[0]):
        if met[there] != 0:
            reserve_link(fleet, gateway, there, sign * mbps)
            reserve_link(fleet, there, gateway, sign * mbps)


@compiled
def reserve_between_replicas(fleet: FleetArrays, plan: Int64, first: int, end: int, mbps: int) -> None:
    """Reserve the bandwidth between the replicas of one job after their nodes were chosen.

    Parameters
    ----------
    plan
        Decisions, shape (R, PLAN_ROWS); updated.
    first, end
        Rows of the job to reserve. Earlier rows of the job have reservations.
    mbps
        Bandwidth on each link between two of its clusters, in each direction, Mbit/s.
    """
    fleet, plan = borrowed(fleet), borrowed(plan)
    for row in range(first, end):
        if plan[row, PLAN_NODE] >= 0:
            plan[row, PLAN_REPLICA_BANDWIDTH] = mbps
            reserve_between_gateways(fleet, plan, row, row, gateway_of(fleet, plan[row, PLAN_NODE]), 1)
