"""Baseline of speed measurements: a compiled scan over all devices for every job.

It places jobs of one device by best fit, with CPU, memory and free cores as the only rules. This is the minimum work of
a scheduler, without index, reasons or further filters.
"""

from __future__ import annotations

import time

import numpy as np

from seaway.scheduling.arrays import Int32, Int64
from seaway.scheduling.columns import (
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_MEMORY,
    DEVICE_CORE_FREE,
    DEVICE_NODE,
    JOB_DEMAND,
    NODE_CPU_FREE,
    NODE_MEMORY_FREE,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.snapshot.snapshot import Snapshot


@compiled
def scan_devices(free: Int32, node: Int32, cpu: Int32, memory: Int32, asked: Int64) -> int:
    """Place jobs of one device one by one; return the number of placed jobs.

    Parameters
    ----------
    free, node
        Free cores and node of each device, shape (D,); `free` is written to.
    cpu, memory
        Free CPU and memory of each node, shape (N,); written to.
    asked
        CPU, memory and cores of each job, shape (J, 3).
    """
    placed = 0
    for j in range(asked.shape[0]):
        need_cpu, need_memory, need = asked[j, 0], asked[j, 1], asked[j, 2]
        best, least = -1, 1 << 30
        for d in range(free.shape[0]):
            if need <= free[d] < least and cpu[node[d]] >= need_cpu and memory[node[d]] >= need_memory:
                best, least = d, free[d]
        if best >= 0:
            free[best] -= need
            cpu[node[best]] -= need_cpu
            memory[node[best]] -= need_memory
            placed += 1
    return placed


def scans_per_s(snapshot: Snapshot, queue: JobQueue) -> float:
    """Return the jobs per second of the plain scan on an empty copy of a fleet."""
    amounts = snapshot.demands.arrays.amounts[queue.rows[:, JOB_DEMAND]]
    asked = np.ascontiguousarray(amounts[:, [DEMAND_CPU, DEMAND_MEMORY, DEMAND_GPU_CORE]])
    arrays = snapshot.arrays
    columns = (arrays.devices[DEVICE_CORE_FREE], arrays.devices[DEVICE_NODE])
    hosts = (arrays.nodes[NODE_CPU_FREE], arrays.nodes[NODE_MEMORY_FREE])
    scan_devices(columns[0].copy(), columns[1], hosts[0].copy(), hosts[1].copy(), asked[:1])
    copies = columns[0].copy(), columns[1].copy(), hosts[0].copy(), hosts[1].copy()
    begin = time.perf_counter()
    scan_devices(*copies, asked)
    return len(asked) / (time.perf_counter() - begin)
