"""A small control plane over simulated clusters, for tests that tell a story step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.adapters.simulated.faults import NO_FAULTS, Faults, Options
from seaway.application.changes import Change
from seaway.application.control.settings import ControlSettings
from seaway.application.views import ClusterState
from seaway.domain.cluster import Fleet
from seaway.domain.deployment import WorkloadPhase
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.fakes.control_plane import SmallControlPlane

START_S = 2
"""The way how long copies take to start."""


@dataclass
class Scene:
    """A control plane, its clusters and their clock."""

    plane: SmallControlPlane
    clusters: SimulatedBackends
    clock: VirtualClock

    def restart_without_reports(self) -> None:
        """Start again as if no cluster had ever answered."""
        store = self.plane.store
        self.plane.writer.commit([Change(delete=[*store.cluster_reports(), *store.cluster_inventories()])])
        self.plane.restart()

    def submit(self, **fields: Any) -> str:  # noqa: ANN401  # as `spec` takes them
        """Submit a job and let it be tried; return its id."""
        job_id = self.plane.submit(spec(**fields))[0]
        self.plane.settle()
        return job_id

    def state(self, job_id: str) -> str:
        """Return the state of a job."""
        return self.plane.state(job_id).value

    def job(self, job_id: str) -> JobRecord:
        """Return a job."""
        return self.plane.job(job_id)

    def where(self, job_id: str) -> str:
        """Return the cluster of a job's latest attempt."""
        return self.plane.job(job_id).clusters[0]

    def cluster(self, name: str) -> SimulatedCluster:
        """Return a cluster."""
        return self.clusters.cluster(name)

    def phase(self, name: str, job_id: str, attempt: int = 1) -> WorkloadPhase | None:
        """Return how a copy is doing in a cluster; None without one."""
        for copy in self.cluster(name).changes("", 0).workloads:
            if (copy.job_id, copy.attempt) == (job_id, attempt):
                return copy.phase
        return None


def known(made: Scene, name: str) -> ClusterState:
    """Return how the control plane takes a cluster to be."""
    return made.plane.controller.live.fleet.clusters[name].state


def spec(**fields: Any) -> JobSpec:  # noqa: ANN401  # fields of a spec or of what it asks for
    """Make a job of one whole GPU that runs until it is stopped; `fields` are those of `JobSpec` and of `job`."""
    own = {key: fields.pop(key) for key in list(fields) if key in JobSpec.__dataclass_fields__ and key != "demand"}
    like = job(**{"cpu_milli": 1000, "gpus": 1, **fields})
    return replace(JobSpec("work", like.demand), **own)


def two_clusters() -> Fleet:
    """Make clusters ``alpha`` and ``beta``, each with one node of two GPUs."""
    return fleet(cluster(node(gpu(), gpu()), name="alpha"), cluster(node(gpu(), gpu()), name="beta"))


def scene(parts: Fleet | None = None, faults: Faults = NO_FAULTS, /, **settings: Any) -> Scene:  # noqa: ANN401
    """Put a control plane over simulated clusters; `settings` are those of the control loop."""
    clock = VirtualClock()
    clusters = SimulatedBackends(parts or two_clusters(), clock, Options(faults, START_S, waits=False))
    plane = SmallControlPlane(clusters, clock=clock, settings=ControlSettings(**settings))
    plane.settle()
    return Scene(plane, clusters, clock)
