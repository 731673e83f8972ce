"""A small simulated cluster on a clock that tests advance, and deployments for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.adapters.simulated.faults import NO_FAULTS, Faults, Options
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.cluster import Fleet
from seaway.domain.deployment import Deployment, Workload, WorkloadPhase
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.runtime import Run
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, node

START_DELAY_S = 2


def uuid(place: int = 0, index: int = 0) -> str:
    """Return the id of a device of the only cluster."""
    return f"GPU-alpha-node-{place}-{index}"


def small() -> Fleet:
    """Create three nodes of two devices each, in one cluster."""
    return fleet(cluster(*[node(gpu(), gpu(), cpu_milli=8_000) for _ in range(3)], name="alpha"))


def deployment(
    job: str = "a",
    *slices: DeviceSlice,
    attempt: int = 1,
    places: tuple[int, ...] = (0,),
    cpu_milli: int = 1_000,
    expected_duration_s: int | None = None,
) -> Deployment:
    """Create a deployment with a replica on each of `places`; without `slices` each uses a tenth of device 0."""
    tenth = DeviceSlice("", 8_192, 100)
    placements = tuple(
        Placement(
            job,
            replica,
            "alpha",
            f"node-{place}",
            slices or (DeviceSlice(uuid(place), tenth.memory_mib, tenth.core_milli),),
        )
        for replica, place in enumerate(places)
    )
    request = ResourceRequest(cpu_milli, 1_024, 1, tenth.memory_mib, 0, tenth.core_milli)
    spec = JobSpec(
        "train",
        Demand(request),
        len(places),
        expected_duration_s=expected_duration_s,
        run=Run("registry/train:1", ports=(8080,)),
    )
    return Deployment(job, attempt, "alpha", spec, placements)


def removal(job: str = "a", attempt: int = 1) -> Removal:
    """Create the command that removes a workload."""
    return Removal(job, attempt, "alpha")


@dataclass
class World:
    """A cluster and its clock."""

    cluster: SimulatedCluster
    clock: VirtualClock
    backends: SimulatedBackends

    def send(self, *commands: Command) -> list[Answer]:
        """Send commands."""
        return self.cluster.send(commands)

    def workloads(self) -> dict[str, Workload]:
        """Return the workloads by job."""
        return {copy.job_id: copy for copy in self.cluster.changes("", 0).workloads}

    def phase(self, job: str = "a") -> WorkloadPhase:
        """Return the phase of a job."""
        workloads = self.workloads()
        return workloads[job].phase if job in workloads else WorkloadPhase.GONE


WITH_FILES: list[World] = []
"""Clusters that a test must close."""


def world(faults: Faults = NO_FAULTS, data: Path | None = None, clock: VirtualClock | None = None) -> World:
    """Create a cluster."""
    ticking = clock or VirtualClock()
    options = Options(faults, START_DELAY_S, waits=False)
    backends = SimulatedBackends(small(), ticking, options, data)
    made = World(backends.cluster("alpha"), ticking, backends)
    if data:
        WITH_FILES.append(made)
    return made
