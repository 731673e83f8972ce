"""Deployments, the commands for a cluster, and workloads, their observed state there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import DeviceSlice, Placement


def deployment_name(job_id: str, attempt: int) -> str:
    """Derive the name of an attempt's objects, the same in every cluster, so that repeating does no harm."""
    return f"sw-{job_id}-{attempt}"


@dataclass(frozen=True, slots=True)
class Deployment:
    """One attempt's part in one cluster.

    Attributes
    ----------
    job_id, attempt
        Which job, and which of its attempts, from 1.
    cluster
        Where.
    spec
        What is to run.
    placements
        Node and devices of each replica that goes to this cluster.
    """

    job_id: str
    attempt: int
    cluster: str
    spec: JobSpec
    placements: tuple[Placement, ...]

    @property
    def name(self) -> str:
        """Name of its objects."""
        return deployment_name(self.job_id, self.attempt)


class WorkloadPhase(Enum):
    """State of a workload or of one of its replicas."""

    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    GONE = "gone"
    """Removed; said once by a backend that is asked for changes.

    Among all there is: nothing of it runs any more, but something that never did is left of it.
    """


FINISHED_PHASES = frozenset({WorkloadPhase.SUCCEEDED, WorkloadPhase.FAILED})
"""Phases of what does not run any more and holds nothing, but is still there."""


class Cause(Enum):
    """Cause of a failure."""

    WORKLOAD = "workload"
    """The program: it crashed, or could never start."""
    INFRASTRUCTURE = "infrastructure"
    """The infrastructure: its node or device failed, or the cluster evicted it."""
    UNSCHEDULABLE = "refused"
    """The cluster's own scheduler would not have it where Seaway put it."""
    REJECTED = "denied"
    """The cluster would have it nowhere: a quota, a policy or a webhook of it says no."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod, and the ports that it says it answers at."""

    name: str
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """Observed state of one replica.

    Attributes
    ----------
    slices
        Slices of devices that it holds, or held before it ended.
    cpu_milli, memory_mib
        Its use of the node besides.
    pod
        Its pod, ``namespace/pod``; empty before it exists.
    holders
        Container that holds each slice, in their order, by name; empty if unknown.
    containers
        Containers of its pod.
    """

    replica: int
    phase: WorkloadPhase
    node: str
    slices: tuple[DeviceSlice, ...] = ()
    reason: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    pod: str = ""
    holders: tuple[str, ...] = ()
    containers: tuple[Container, ...] = ()

    @property
    def uuids(self) -> tuple[str, ...]:
        """Its devices."""
        return tuple(taken.uuid for taken in self.slices)


@dataclass(frozen=True, slots=True)
class Workload:
    """Observed state of a deployment in its cluster.

    Attributes
    ----------
    job_id, attempt
        Read from the object itself, so that a late report can be recognised.
    phase
        Running if all its replicas run, succeeded if all succeeded, failed if one failed.
    reason
        Why it failed or does not start; empty otherwise.
    address
        Address of its service; empty without ports.
    cause
        Cause of its failure; undefined in other phases.
    """

    job_id: str
    attempt: int
    cluster: str
    phase: WorkloadPhase
    replicas: tuple[ReplicaStatus, ...] = ()
    reason: str = ""
    address: str = ""
    cause: Cause = Cause.WORKLOAD

    @property
    def name(self) -> str:
        """Name of its objects."""
        return deployment_name(self.job_id, self.attempt)


@dataclass(frozen=True, slots=True)
class UnmanagedPod:
    """A pod that Seaway does not manage. Its resources are not available to jobs.

    Attributes
    ----------
    name
        Unique in its cluster, such as ``namespace/pod``.
    node
        Its node; empty once it is gone, or holds nothing any more.
    slices
        Slices of devices that it holds.
    cpu_milli, memory_mib
        Its use of the node besides.
    containers
        Container that holds each slice, in their order; empty if unknown.
    pods
        Its share of the node's maximum number of pods: 0 once it has ended and only holds devices.
    """

    name: str
    node: str
    slices: tuple[DeviceSlice, ...] = ()
    cpu_milli: int = 0
    memory_mib: int = 0
    containers: tuple[str, ...] = ()
    pods: int = 1
