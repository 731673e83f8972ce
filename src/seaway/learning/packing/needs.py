"""Resource needs of jobs on an empty fleet, as input of solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seaway.scheduling.arrays import UInt8
from seaway.scheduling.columns import (
    CLUSTER_GATEWAY,
    DEMAND_BANDWIDTH,
    DEMAND_CPU,
    DEMAND_EXCLUSIVE,
    DEMAND_GATEWAY,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    DEMAND_SAME_NUMA,
    DEVICE_CORE,
    DEVICE_MEMORY,
    DEVICE_MIG,
    DEVICE_SLOTS,
    JOB_DEMAND,
    NODE_CLUSTER,
    NODE_CPU,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    NODE_MEMORY,
    NODE_PODS,
)
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.candidates import fitting_nodes
from seaway.scheduling.kernels.fit import WHOLE_MILLI, core_needed, device_fits, memory_needed
from seaway.scheduling.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Slot:
    """Resources that one slice of a kind takes of one device.

    Attributes
    ----------
    memory_mib, core_milli, slots
        Memory, cores, and number of slice slots.
    """

    memory_mib: int
    core_milli: int
    slots: int


class Needs:
    """Kinds of jobs, those with equal demands, and where each fits alone.

    Parameters
    ----------
    snapshot
        With nothing on it.
    queue
        Jobs of one replica each.

    Attributes
    ----------
    kinds
        Lines of ``snapshot.demands``, one a kind.
    jobs
        The numbers of the jobs of each kind, in order of arrival.
    nodes
        The nodes that each kind fits on.
    slots
        What a slice of a kind takes of each device that takes it, by kind and device.
    bandwidth, gateways
        What links can carry, and what gateways can, as in `seaway.scheduling.arrays.FleetArrays`.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue) -> None:
        self._snapshot = snapshot
        self._fleet, self._amounts = snapshot.arrays, snapshot.demands.arrays.amounts
        self.bandwidth, self.gateways = self._fleet.bandwidth.copy(), self._fleet.gateways.copy()
        self.jobs: dict[int, list[int]] = {}
        for j, k in enumerate(queue.rows[:, JOB_DEMAND].tolist()):
            self.jobs.setdefault(k, []).append(j)
        self.kinds = list(self.jobs)
        self.nodes = {k: self._nodes_of(k) for k in self.kinds}
        self.slots = {
            (k, d): self._slot(k, d)
            for k in self.kinds
            if self.gpus(k)
            for n in self.nodes[k]
            for d in self.devices(n)
            if device_fits(self._fleet, snapshot.demands.arrays, k, d)
        }

    def gpus(self, k: int) -> int:
        """Return how many devices a job of a kind needs."""
        return int(self._amounts[k, DEMAND_GPUS])

    def cpu_memory(self, k: int) -> tuple[int, int]:
        """Return what a job of a kind needs of its node: CPU milli, and memory in MiB."""
        return int(self._amounts[k, DEMAND_CPU]), int(self._amounts[k, DEMAND_MEMORY])

    def link(self, k: int, n: int) -> tuple[int, int, int]:
        """Return what a job of a kind takes on a node: gateways from and to, Mbit/s; 0 Mbit/s for nothing."""
        source, mbps = int(self._amounts[k, DEMAND_GATEWAY]), int(self._amounts[k, DEMAND_BANDWIDTH])
        target = int(self._fleet.clusters[CLUSTER_GATEWAY, self.cluster(n)])
        return source, target, mbps if source >= 0 and target >= 0 and source != target else 0

    def cluster(self, n: int) -> int:
        """Return the cluster of a node."""
        return int(self._fleet.nodes[NODE_CLUSTER, n])

    def devices(self, n: int) -> range:
        """Return the devices of a node."""
        return range(self._fleet.nodes[NODE_DEVICE_FIRST, n], self._fleet.nodes[NODE_DEVICE_END, n])

    def capacity(self, n: int) -> tuple[int, int, int]:
        """Return the CPU milli, the memory in MiB and the pods of a node."""
        cpu, memory, pods = self._fleet.nodes[[NODE_CPU, NODE_MEMORY, NODE_PODS], n].tolist()
        return cpu, memory, pods

    def device_capacity(self, d: int) -> Slot:
        """Return what a device has."""
        return Slot(*self._fleet.devices[[DEVICE_MEMORY, DEVICE_CORE, DEVICE_SLOTS], d].tolist())

    @property
    def additive(self) -> bool:
        """True if jobs fit together wherever their needs add up to no more than there is.

        They need not where devices are cut into MIG instances, nor where a job wants a device that is idle when it
        comes, or devices of one NUMA node.
        """
        rules = self._amounts[self.kinds][:, [DEMAND_EXCLUSIVE, DEMAND_SAME_NUMA]]
        used = sorted({d for _, d in self.slots})
        return not rules.any() and bool((self._fleet.devices[DEVICE_MIG, used] < 0).all())

    def _nodes_of(self, k: int) -> list[int]:
        fits: UInt8 = np.zeros(len(self._snapshot.nodes), np.uint8)
        fitting_nodes(self._fleet, self._snapshot.demands.arrays, k, fits)
        nodes: list[int] = np.flatnonzero(fits).tolist()
        return nodes

    def _slot(self, k: int, d: int) -> Slot:
        demands = self._snapshot.demands.arrays
        memory, core = memory_needed(self._fleet, demands, k, d), core_needed(self._fleet, demands, k, d)
        there = self.device_capacity(d)
        alone = core == WHOLE_MILLI == there.core_milli
        return Slot(int(memory), int(core), there.slots if alone else 1)
