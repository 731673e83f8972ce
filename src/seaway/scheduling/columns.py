"""The layout of the engine's arrays: which row of a column array holds what.

A fleet is two tables of ``int32``, one line a quantity and one column a node or device, so that a
compiled loop reads one quantity of many nodes from contiguous memory. A job's demand is a line of
``int64``. Names here are indices into the first axis (nodes, devices, blocks, clusters) or the
second (demands, jobs, plan rows, slices).

Units: CPU in thousandths of a core, memory in MiB, device cores in thousandths of a device.
"""

from __future__ import annotations

from typing import Final

# Nodes, shape (NODE_ROWS, N). From `NODE_ROOM_MEMORY` down to `NODE_TAKES` all is derived.
NODE_CLUSTER: Final = 0
NODE_OPEN: Final = 1
"""1 while the node takes new work."""
NODE_CPU: Final = 2
NODE_CPU_FREE: Final = 3
NODE_MEMORY: Final = 4
NODE_MEMORY_FREE: Final = 5
NODE_PODS: Final = 6
"""Number of pods the node takes; as many as a column holds where no one says."""
NODE_PODS_FREE: Final = 7
NODE_DEVICE_FIRST: Final = 8
NODE_DEVICE_END: Final = 9
"""One past the node's last device."""
NODE_ROOM_MEMORY: Final = 10
"""Most free memory on one device that has a slot left; -1 without such a device."""
NODE_ROOM_CORE: Final = 11
"""Most free cores on one device that has a slot left; -1 without such a device."""
NODE_ROOM_WHOLE: Final = 12
"""At least as many as the devices that could take a demand for a whole device."""
NODE_GPU_MEMORY: Final = 13
NODE_GPU_MEMORY_FREE: Final = 14
NODE_GPU_CORE: Final = 15
NODE_GPU_CORE_FREE: Final = 16
NODE_LEFT: Final = 17
"""Free resources in CPU milli, with a device counted as 16,000: the key of best fit."""
NODE_ACCEPTS: Final = 18
"""1 while the node is open and has room for another pod."""
NODE_MOVED_TO: Final = 19
"""New index of the node's figures after its devices were exchanged; -1 if they did not move."""
NODE_ROWS: Final = 20

CPU_PER_GPU_MILLI: Final = 16
"""CPU milli that best fit holds equal to one thousandth of a device: 128,000 / 8,000."""

# Devices, shape (DEVICE_ROWS, D).
DEVICE_NODE: Final = 0
DEVICE_OPEN: Final = 1
"""1 while healthy and not cordoned."""
DEVICE_MEMORY: Final = 2
DEVICE_MEMORY_FREE: Final = 3
DEVICE_CORE: Final = 4
DEVICE_CORE_FREE: Final = 5
DEVICE_SLOTS: Final = 6
DEVICE_SLOTS_FREE: Final = 7
DEVICE_NUMA: Final = 8
DEVICE_MIG: Final = 9
"""Index of the device's MIG geometry; -1 when it is not in MIG mode."""
DEVICE_MIG_USED: Final = 10
"""Memory slices that instances cover, a bit each."""
DEVICE_FREE_MILLI: Final = 11
"""Thousandths of the device that are free in cores and in memory; 0 without a slot. Derived."""
DEVICE_MOVED_TO: Final = 12
"""New index of the device's figures; -1 if they did not move."""
DEVICE_CELL: Final = 13
"""Hundredths of memory and of cores that are free, ``memory * CELLS + cores``; 0 without a slot. Derived."""
DEVICE_MIG_TOGETHER: Final = 14
"""1 when no pod can say how many instances it wants of each device."""
DEVICE_CORE_STEPS: Final = 15
"""Number of steps of the cores of an unscaled device; `EVEN_SHARES` if slices are even shares."""
DEVICE_MEMORY_STEP: Final = 16
"""MiB in which memory is given out; `EVEN_SHARES` likewise."""
DEVICE_ROWS: Final = 17

EVEN_SHARES: Final = 0
"""Marker instead of steps: a slice is one or several of `DEVICE_SLOTS` even shares of the device."""

CELLS: Final = 101
"""Cells along one side of the grid of what is free on a device: 0 to 100 hundredths."""

# Blocks of `BLOCK_NODES` neighbouring nodes, shape (BLOCK_ROWS, B): the best that any of them has.
BLOCK_NODES: Final = 64
BLOCK_MEMORY: Final = 0
BLOCK_ROOM_MEMORY: Final = 1
BLOCK_ROOM_CORE: Final = 2
BLOCK_ROOM_WHOLE: Final = 3
ROOM_STEPS: Final = 8
ROOM_STEP: Final = 125
BLOCK_CPU: Final = 4
"""Most free CPU of a node; the lines after it, of nodes with more and more room for cores: line
``BLOCK_CPU + i`` counts those with at least ``i * ROOM_STEP`` on one device."""
BLOCK_LEFT: Final = BLOCK_CPU + ROOM_STEPS + 1
"""The smallest `NODE_LEFT`, and the lines after it likewise."""
BLOCK_ROWS: Final = BLOCK_LEFT + ROOM_STEPS + 1

# Clusters, shape (CLUSTER_ROWS, C), sums over nodes that are open.
CLUSTER_GATEWAY: Final = 0
"""Index of the gateway before it; -1 when none is known."""
CLUSTER_CPU: Final = 1
CLUSTER_CPU_FREE: Final = 2
CLUSTER_MEMORY: Final = 3
CLUSTER_MEMORY_FREE: Final = 4
CLUSTER_GPU_MEMORY: Final = 5
CLUSTER_GPU_MEMORY_FREE: Final = 6
CLUSTER_GPU_CORE: Final = 7
CLUSTER_GPU_CORE_FREE: Final = 8
CLUSTER_ROWS: Final = 9

# Gateways, shape (GATEWAY_ROWS, G), Mbit/s that their interfaces can still promise.
GATEWAY_IN: Final = 0
GATEWAY_OUT: Final = 1
GATEWAY_ROWS: Final = 2

# Marks of clusters, shape (CLUSTERS_ROWS, C).
CLUSTERS_ALLOWED: Final = 0
"""1 while the cluster may be chosen at all."""
CLUSTERS_USABLE: Final = 1
"""1 where the demand at hand may go."""
CLUSTERS_RESERVED: Final = 2
"""1 where the job at hand already took its bandwidth."""
CLUSTERS_ROWS: Final = 3

# MIG profiles, shape (P, MIG_ROWS), each geometry's profiles together, smallest first.
MIG_MEMORY: Final = 0
MIG_CORE: Final = 1
MIG_SIZE: Final = 2
MIG_STARTS: Final = 3
"""Memory slices at which an instance may begin, a bit each."""
MIG_FROM_TOP: Final = 4
MIG_ROWS: Final = 5

# Demands, shape (K, DEMAND_ROWS).
DEMAND_CPU: Final = 0
DEMAND_MEMORY: Final = 1
DEMAND_GPUS: Final = 2
DEMAND_GPU_MEMORY: Final = 3
"""MiB of each device; 0 when `DEMAND_GPU_PERCENT` counts."""
DEMAND_GPU_PERCENT: Final = 4
DEMAND_GPU_CORE: Final = 5
DEMAND_EXCLUSIVE: Final = 6
DEMAND_SAME_NUMA: Final = 7
DEMAND_MASK: Final = 8
"""Line of the masks of allowed nodes and devices."""
DEMAND_NETWORK: Final = 9
"""Line of the mask of clusters whose links are good enough; -1 when the job sets no bound."""
DEMAND_GATEWAY: Final = 10
"""Index of the user's gateway; -1 without one."""
DEMAND_BANDWIDTH: Final = 11
DEMAND_NEAR: Final = 12
"""Line that says how near clusters are to the user; -1 for a job that sets bounds, or says not where its user is."""
DEMAND_ROWS: Final = 13

# Jobs in a queue, shape (J, JOB_ROWS).
JOB_DEMAND: Final = 0
JOB_REPLICAS: Final = 1
JOB_GANG: Final = 2
JOB_SEQUENCE: Final = 3
"""The job's number since the queue began: it seeds whatever is drawn for the job."""
JOB_SPANS: Final = 4
"""1 for a job of several replicas whose spread over clusters must be weighed."""
JOB_DATA: Final = 5
"""1 for a job that is drawn to its data."""
JOB_ROWS: Final = 6

# Decisions, shape (R, PLAN_ROWS).
PLAN_JOB: Final = 0
PLAN_REPLICA: Final = 1
PLAN_DEMAND: Final = 2
PLAN_NODE: Final = 3
"""The chosen node; -1 when the replica was not placed."""
PLAN_SLICE_FIRST: Final = 4
PLAN_SLICE_END: Final = 5
PLAN_BANDWIDTH: Final = 6
"""Mbit/s that this decision took from the link between user and cluster."""
PLAN_DUPLICATE: Final = 7
"""Duplicate of the job that the replica belongs to; 0 except with policies that duplicate whole jobs."""
PLAN_LINK_MISSED: Final = 8
"""1 where the replica holds resources although its cluster's link misses the demand."""
PLAN_PODS: Final = 9
"""Number of pods the line stands for: one, but for what pods of others hold of a node, which is one line."""
PLAN_REPLICA_BANDWIDTH: Final = 10
"""Mbit/s that the job took from each link between the gateways of its clusters, in each direction."""
PLAN_ROWS: Final = 11

# Slices of decisions, shape (S, SLICE_ROWS).
SLICE_DEVICE: Final = 0
SLICE_MEMORY: Final = 1
SLICE_CORE: Final = 2
SLICE_MIG: Final = 3
"""Line of the MIG profile; -1 for a device that is not in MIG mode."""
SLICE_START: Final = 4
SLICE_ROWS: Final = 5
