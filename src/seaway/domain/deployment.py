"""Deployments, which are commands for a cluster, and workloads, their observed state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import DeviceSlice, Placement


def deployment_name(job_id: str, attempt: int) -> str:
    """Return the name of an attempt's objects. It is the same in every cluster, so that commands can be repeated."""
    return f"sw-{job_id}-{attempt}"


def service_name(job_id: str) -> str:
    """Return the name of a job's service. It is the same for all attempts, so that clients can keep it."""
    return f"sw-{job_id}"


ADDRESS, PORT = "MASTER_ADDR", "MASTER_PORT"
"""Variables with the address and the port of rank 0, as in PyTorch. A job that sets the address connects its pods."""


UNKNOWN_RANK_0 = "address-of-rank-0:0"


@dataclass(frozen=True, slots=True)
class Deployment:
    """The part of an attempt in one cluster.

    Attributes
    ----------
    job_id, attempt
        Job, and number of the attempt, from 1.
    cluster
        Name of the cluster.
    spec
        Specification of the job.
    placements
        Node and devices of each replica in this cluster, also of those that are being removed.
    ranks
        Cluster of each replica of the attempt, if they are in several clusters and meet at replica 0.
    rank_0
        Address of replica 0 then, ``host:port``; empty in its own cluster, and until it is known.
    """

    job_id: str
    attempt: int
    cluster: str
    spec: JobSpec
    placements: tuple[Placement, ...]
    ranks: tuple[str, ...] = ()
    rank_0: str = ""

    @classmethod
    def of(cls, job_id: str, attempt: int, cluster: str, spec: JobSpec, placements: Sequence[Placement]) -> Deployment:
        """Return the part in one cluster of an attempt with these placements."""
        here = tuple(each for each in placements if each.cluster == cluster)
        if not spec.meets or len(here) == len(placements):
            return cls(job_id, attempt, cluster, spec, here)
        ranks = tuple(each.cluster for each in placements)
        rank_0 = next((each.address for each in placements if not each.replica and each.cluster != cluster), "")
        return cls(job_id, attempt, cluster, spec, here, ranks, rank_0)

    @property
    def awaits_rank_0(self) -> bool:
        """True if it cannot be sent yet: its replicas need the address of rank 0 in another cluster."""
        elsewhere = bool(self.ranks) and self.ranks[0] != self.cluster
        return elsewhere and not self.rank_0 and ADDRESS not in dict(self.spec.run.env)

    def shown(self) -> Deployment:
        """Return it as people see it before the address of rank 0 is known."""
        return replace(self, rank_0=UNKNOWN_RANK_0) if self.awaits_rank_0 else self

    @property
    def service_id(self) -> str:
        """ID in the names for clients, which both copies of a service with a standby share."""
        return self.spec.copy_of or self.job_id

    @property
    def name(self) -> str:
        """Name of its objects."""
        return deployment_name(self.job_id, self.attempt)

    @property
    def leaving(self) -> frozenset[int]:
        """Replicas that are being removed."""
        return frozenset(each.replica for each in self.placements if each.leaving)


class WorkloadPhase(Enum):
    """State of a workload or of one of its replicas."""

    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    GONE = "gone"
    """Removed. A backend reports it once as a change.

    In a complete listing: none of its pods runs, but an object that never ran remains.
    """


FINISHED_PHASES = frozenset({WorkloadPhase.SUCCEEDED, WorkloadPhase.FAILED})
"""Phases of workloads that ended and hold no resources, but still exist."""


class Cause(Enum):
    """Cause of a failure."""

    WORKLOAD = "workload"
    """The program crashed, or could never start."""
    INFRASTRUCTURE = "infrastructure"
    """A node or device failed, or the cluster evicted the pod."""
    UNSCHEDULABLE = "refused"
    """The cluster's scheduler rejected the node or devices that Seaway chose."""
    REJECTED = "denied"
    """The cluster rejected it on all nodes: a quota, a policy or a webhook denied it."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod, and its declared ports."""

    name: str
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """Observed state of one replica.

    Attributes
    ----------
    slices
        Device slices that it holds, or held before it ended.
    cpu_milli, memory_mib
        CPU and memory that it holds on the node.
    pod
        Name of its pod, ``namespace/pod``; empty before the pod exists.
    holders
        Name of the container that holds each slice, in the order of the slices; empty if unknown.
    containers
        Containers of its pod.
    cause
        Cause of its failure; undefined in other phases.
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
    cause: Cause = Cause.WORKLOAD

    @property
    def uuids(self) -> tuple[str, ...]:
        """UUIDs of its devices."""
        return tuple(taken.uuid for taken in self.slices)


class Reach(Enum):
    """Clients that can use an endpoint."""

    OUTSIDE = "outside"
    """Clients outside the cluster."""
    NODES = "nodes"
    """Clients in networks that reach the internal addresses of the cluster's nodes."""
    CLUSTER = "cluster"
    """Pods of the cluster."""
    CLUSTERS = "clusters"
    """Replicas of the same job in other clusters."""
    NONE = "none"
    """No client yet."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a port of a job.

    Attributes
    ----------
    address
        ``host:port``, or a URL for HTTP by host name; empty while the cluster has not assigned one.
    port
        The port of the job.
    reason
        Reason why clients outside the cluster cannot use it, or a condition for it, one clause; empty for none.
    """

    address: str
    port: int
    reach: Reach
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ObjectDrift:
    """Change of others to an object of a workload.

    Attributes
    ----------
    text
        The object and its change, one clause.
    version
        Version of the object, which tells the same change from its repetition after a repair.
    """

    text: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """Observed state of a deployment in its cluster.

    Attributes
    ----------
    job_id, attempt
        Read from the object itself, so that late reports are recognised.
    phase
        Running if all replicas run, succeeded if all succeeded, failed if one failed.
    reason
        Reason why it failed or does not start; empty otherwise.
    endpoints
        Addresses of its ports, those with the widest reach first; empty without ports.
    cause
        Cause of a failure; undefined in other phases.
    drift
        Changes of others to its objects.
    held
        True if its cluster does not let its replicas start: it is suspended, or waits for a quota of the cluster.
    """

    job_id: str
    attempt: int
    cluster: str
    phase: WorkloadPhase
    replicas: tuple[ReplicaStatus, ...] = ()
    reason: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    cause: Cause = Cause.WORKLOAD
    held: bool = False
    drift: tuple[ObjectDrift, ...] = ()

    @property
    def name(self) -> str:
        """Name of its objects."""
        return deployment_name(self.job_id, self.attempt)

    @property
    def address(self) -> str:
        """Addresses with the widest reach, such as ``192.0.2.7:80,90``; empty without one."""
        found: dict[str, list[str]] = {}
        for each in self.endpoints:
            if each.address and each.reach is self.endpoints[0].reach:
                url = "://" in each.address
                host, _, port = (each.address, "", "") if url else each.address.rpartition(":")
                found.setdefault(host, []).append(port)
        return ", ".join(f"{host}:{','.join(ports)}" if ports[0] else host for host, ports in found.items())


@dataclass(frozen=True, slots=True)
class UnmanagedPod:
    """A pod that Seaway does not manage. Its resources are not available to jobs.

    Attributes
    ----------
    name
        Name, unique in its cluster, such as ``namespace/pod``.
    node
        Node of the pod; empty if the pod was removed or holds nothing.
    slices
        Device slices that it holds.
    cpu_milli, memory_mib
        CPU and memory that it holds on the node.
    containers
        Container that holds each slice, in the order of the slices; empty if unknown.
    pods
        Its share of the node's maximum number of pods: 0 if it has ended and only holds devices.
    """

    name: str
    node: str
    slices: tuple[DeviceSlice, ...] = ()
    cpu_milli: int = 0
    memory_mib: int = 0
    containers: tuple[str, ...] = ()
    pods: int = 1
