"""Simulated nodes that admit replicas by their own accounting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.placement import Placement
from seaway.scheduling.framework import PASS, Status, Verdict


class Kubelets:
    """A Bind plugin: every node of a fleet admits replicas while it has room.

    It counts independently, from the fleet and the placements alone, so that it detects a plan that allocates anything
    twice.

    Parameters
    ----------
    fleet
        The nodes.
    jobs
        Jobs that may be placed on them.

    Attributes
    ----------
    running
        Replicas by cluster and node.
    """

    name = "Kubelets"

    def __init__(self, fleet: Fleet, jobs: Iterable[Job]) -> None:
        self.running: Counter[tuple[str, str]] = Counter()
        self._jobs: Mapping[str, Job] = {job.name: job for job in jobs}
        self._cpu = {(cluster.name, node.name): node.cpu_milli for cluster, node in fleet.nodes}
        self._memory = {(cluster.name, node.name): node.memory_mib for cluster, node in fleet.nodes}
        self._device_memory = {device.uuid: device.memory_mib for device in fleet.devices}
        self._device_core = {device.uuid: device.core_milli for device in fleet.devices}

    def bind(self, placement: Placement) -> Status:
        """Admit a replica, or name the resource that is short."""
        where = (placement.cluster, placement.node)
        request = self._jobs[placement.job].demand.request
        if self._cpu[where] < request.cpu_milli or self._memory[where] < request.memory_mib:
            return Status(Verdict.REJECT, f"{placement.node} has too little CPU or memory")
        for taken in placement.slices:
            if self._device_memory[taken.uuid] < taken.memory_mib or self._device_core[taken.uuid] < taken.core_milli:
                return Status(Verdict.REJECT, f"{taken.uuid} has too little memory or cores")
        self._cpu[where] -= request.cpu_milli
        self._memory[where] -= request.memory_mib
        for taken in placement.slices:
            self._device_memory[taken.uuid] -= taken.memory_mib
            self._device_core[taken.uuid] -= taken.core_milli
        self.running[where] += 1
        return PASS
