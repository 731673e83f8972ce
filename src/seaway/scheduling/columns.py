"""Layout of the engine's arrays: indices of their rows and columns.

A fleet has two tables of ``int32``, with one row per quantity and one column per node or device. A compiled loop thus
reads one quantity of many nodes from contiguous memory. The demand of a job is a row of ``int64``. The constants are
indices into the first axis (nodes, devices, blocks, clusters) or the second (demands, jobs, plan rows, slices).

Units: CPU in thousandths of a core, memory in MiB, device cores in thousandths of a device.
"""

from __future__ import annotations

from typing import Final

# Nodes, shape (NODE_ROWS, N). `NODE_ROOM_MEMORY` to `NODE_ACCEPTS` are derived.
NODE_CLUSTER: Final = 0
NODE_OPEN: Final = 1
"""1 if the node accepts new pods."""
NODE_CPU: Final = 2
NODE_CPU_FREE: Final = 3
NODE_MEMORY: Final = 4
NODE_MEMORY_FREE: Final = 5
NODE_PODS: Final = 6
"""Maximum number of pods of the node; the maximum of a column if unlimited."""
NODE_PODS_FREE: Final = 7
NODE_DEVICE_FIRST: Final = 8
NODE_DEVICE_END: Final = 9
"""Index after the node's last device."""
NODE_ROOM_MEMORY: Final = 10
"""Maximum free memory of a device with a free slot; -1 without such a device."""
NODE_ROOM_CORE: Final = 11
"""Maximum free cores of a device with a free slot; -1 without such a device."""
NODE_ROOM_WHOLE: Final = 12
"""Upper bound of the number of devices that fit a demand for a whole device."""
NODE_GPU_MEMORY: Final = 13
NODE_GPU_MEMORY_FREE: Final = 14
NODE_GPU_CORE: Final = 15
NODE_GPU_CORE_FREE: Final = 16
NODE_LEFT: Final = 17
"""Free resources in thousandths of a CPU core, with a device counted as 16,000: the key of best fit."""
NODE_ACCEPTS: Final = 18
"""1 if the node is open and can accept another pod."""
NODE_MOVED_TO: Final = 19
"""New index of the node after a change of its devices; -1 if it did not move."""
NODE_ROWS: Final = 20

CPU_PER_GPU_MILLI: Final = 16
"""Thousandths of a CPU core that best fit counts for one thousandth of a device: 128,000 / 8,000."""

# Devices, shape (DEVICE_ROWS, D).
DEVICE_NODE: Final = 0
DEVICE_OPEN: Final = 1
"""1 if the device is healthy and not cordoned."""
DEVICE_MEMORY: Final = 2
DEVICE_MEMORY_FREE: Final = 3
DEVICE_CORE: Final = 4
DEVICE_CORE_FREE: Final = 5
DEVICE_SLOTS: Final = 6
DEVICE_SLOTS_FREE: Final = 7
DEVICE_NUMA: Final = 8
DEVICE_MIG: Final = 9
"""Index of the device's MIG geometry; -1 if it is not in MIG mode."""
DEVICE_MIG_USED: Final = 10
"""Memory slices that instances cover, one bit each."""
DEVICE_FREE_MILLI: Final = 11
"""Thousandths of the device that are free in both cores and memory; 0 without a free slot. Derived."""
DEVICE_MOVED_TO: Final = 12
"""New index of the device; -1 if it did not move."""
DEVICE_CELL: Final = 13
"""Free hundredths of memory and of cores, ``memory * CELLS + cores``; 0 without a free slot. Derived."""
DEVICE_MIG_TOGETHER: Final = 14
"""1 if pods cannot request a number of instances per device."""
DEVICE_CORE_STEPS: Final = 15
"""Number of steps of the cores of an unscaled device; `EVEN_SHARES` if slices are even shares."""
DEVICE_MEMORY_STEP: Final = 16
"""Step of memory, MiB; `EVEN_SHARES` if slices are even shares."""
DEVICE_ISLAND: Final = 17
"""Number of the NVLink island on the node; -1 for none."""
DEVICE_SWITCH: Final = 18
"""Number of the PCIe switch on the node; -1 if unknown."""
DEVICE_ROWS: Final = 19

EVEN_SHARES: Final = 0
"""Marker instead of steps: a slice is one or several of `DEVICE_SLOTS` even shares of the device."""

CELLS: Final = 101
"""Cells along one side of the grid of free memory and cores of a device: 0 to 100 hundredths."""

# Blocks of `BLOCK_NODES` neighbouring nodes, shape (BLOCK_ROWS, B): the best value of the nodes.
BLOCK_NODES: Final = 64
BLOCK_MEMORY: Final = 0
BLOCK_ROOM_MEMORY: Final = 1
BLOCK_ROOM_CORE: Final = 2
BLOCK_ROOM_WHOLE: Final = 3
ROOM_STEPS: Final = 8
ROOM_STEP: Final = 125
BLOCK_CPU: Final = 4
"""Maximum free CPU of a node. Row ``BLOCK_CPU + i`` considers nodes with at least ``i * ROOM_STEP`` free cores on one
device.
"""
BLOCK_LEFT: Final = BLOCK_CPU + ROOM_STEPS + 1
"""Minimum of `NODE_LEFT`, with rows as for `BLOCK_CPU`."""
BLOCK_ROWS: Final = BLOCK_LEFT + ROOM_STEPS + 1

# Clusters, shape (CLUSTER_ROWS, C): sums over open nodes.
CLUSTER_GATEWAY: Final = 0
"""Index of the cluster's gateway; -1 if unknown."""
CLUSTER_CPU: Final = 1
CLUSTER_CPU_FREE: Final = 2
CLUSTER_MEMORY: Final = 3
CLUSTER_MEMORY_FREE: Final = 4
CLUSTER_GPU_MEMORY: Final = 5
CLUSTER_GPU_MEMORY_FREE: Final = 6
CLUSTER_GPU_CORE: Final = 7
CLUSTER_GPU_CORE_FREE: Final = 8
CLUSTER_ROWS: Final = 9

# Gateways, shape (GATEWAY_ROWS, G): bandwidth that can be reserved on their interfaces, Mbit/s.
GATEWAY_IN: Final = 0
GATEWAY_OUT: Final = 1
GATEWAY_ROWS: Final = 2

# Flags of clusters, shape (CLUSTERS_ROWS, C).
CLUSTERS_ALLOWED: Final = 0
"""1 if the cluster may be chosen."""
CLUSTERS_USABLE: Final = 1
"""1 if the current demand may be placed in the cluster."""
CLUSTERS_RESERVED: Final = 2
"""1 if the current job already reserved bandwidth to the cluster."""
CLUSTERS_ROWS: Final = 3

# MIG profiles, shape (P, MIG_ROWS), grouped by geometry, smallest first.
MIG_MEMORY: Final = 0
MIG_CORE: Final = 1
MIG_SIZE: Final = 2
MIG_STARTS: Final = 3
"""Memory slices at which an instance may start, one bit each."""
MIG_FROM_TOP: Final = 4
MIG_CODE: Final = 5
"""Number for the name of the profile, see `seaway.scheduling.snapshot.encode.profile_code`."""
MIG_ROWS: Final = 6

# Demands, shape (K, DEMAND_ROWS).
DEMAND_CPU: Final = 0
DEMAND_MEMORY: Final = 1
DEMAND_GPUS: Final = 2
DEMAND_GPU_MEMORY: Final = 3
"""MiB of each device; 0 if `DEMAND_GPU_PERCENT` applies."""
DEMAND_GPU_PERCENT: Final = 4
DEMAND_GPU_CORE: Final = 5
DEMAND_EXCLUSIVE: Final = 6
DEMAND_GROUP: Final = 7
"""Row of the devices whose number must be the same for all devices of a replica, such as `DEVICE_NUMA`; 0 for none."""
DEMAND_MASK: Final = 8
"""Row of the masks of allowed nodes and devices."""
DEMAND_NETWORK: Final = 9
"""Row of the mask of clusters whose links meet the bounds; -1 if the job has no bounds."""
DEMAND_GATEWAY: Final = 10
"""Index of the user's gateway; -1 without one."""
DEMAND_BANDWIDTH: Final = 11
DEMAND_NEAR: Final = 12
"""Row with the proximity of clusters to the user; -1 if the job has network bounds, or no user gateway."""
DEMAND_MIG: Final = 13
"""`MIG_CODE` of the requested MIG profile; 0 for any device. `DEMAND_GPU_PERCENT` then is only nominal."""
DEMAND_STRICTER: Final = 14
"""Row, plus 1, of the same demand in one NVLink island, which is tried first; 0 for none. The next two rows are tried
after it: below one PCIe switch, and on one NUMA node.
"""
STRICTER_ROWS: Final = 3
DEMAND_ROWS: Final = DEMAND_STRICTER + STRICTER_ROWS

# Jobs in a queue, shape (J, JOB_ROWS).
JOB_DEMAND: Final = 0
JOB_REPLICAS: Final = 1
JOB_GANG: Final = 2
JOB_SEQUENCE: Final = 3
"""Sequence number of the job in the queue, which seeds its random choices."""
JOB_SPANS: Final = 4
"""1 if the job has several replicas whose spread over clusters, or over TPU slices, must be decided."""
JOB_DATA: Final = 5
"""1 if the job's data has a location."""
JOB_ROWS: Final = 6

# Decisions, shape (R, PLAN_ROWS).
PLAN_JOB: Final = 0
PLAN_REPLICA: Final = 1
PLAN_DEMAND: Final = 2
PLAN_NODE: Final = 3
"""Index of the node; -1 if the replica was not placed."""
PLAN_SLICE_FIRST: Final = 4
PLAN_SLICE_END: Final = 5
PLAN_BANDWIDTH: Final = 6
"""Bandwidth that this decision reserved on the link between user and cluster, Mbit/s."""
PLAN_DUPLICATE: Final = 7
"""Number of the job's duplicate that the replica belongs to; 0 except for policies that duplicate whole jobs."""
PLAN_LINK_MISSED: Final = 8
"""1 if the replica holds resources although the link to its cluster violates the demand's bounds."""
PLAN_PODS: Final = 9
"""Number of pods of the row. Unmanaged pods of a node share one row; all other rows have one pod."""
PLAN_REPLICA_BANDWIDTH: Final = 10
"""Bandwidth that the job reserved on each link between the gateways of its clusters, in each direction, Mbit/s.

In a ring, only on the link to the gateway of the next replica.
"""
PLAN_RING_TO: Final = 11
"""Gateway of the next replica of a ring, plus 1; -1 if that needs no reservation; 0 if the job is not a ring."""
PLAN_ROWS: Final = 12

# Slices of decisions, shape (S, SLICE_ROWS).
SLICE_DEVICE: Final = 0
SLICE_MEMORY: Final = 1
SLICE_CORE: Final = 2
SLICE_MIG: Final = 3
"""Row of the MIG profile; -1 for a device that is not in MIG mode."""
SLICE_START: Final = 4
SLICE_ROWS: Final = 5
