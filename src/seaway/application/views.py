"""Views of the fleet, the queue and decisions: frozen values, computed from the live state on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from seaway.application.ports.usage import Used
from seaway.application.records import Cordon, JobRecord
from seaway.domain.device import Device
from seaway.domain.network import Link
from seaway.domain.placement import Explanation, Placement


class ClusterState(Enum):
    """State of the connection to a cluster."""

    UP = "up"
    STALE = "stale"
    """No answer for a while. The cluster gets no new jobs."""
    LOST = "lost"
    """No answer for longer than the grace period. Its jobs are placed elsewhere."""
    GONE = "gone"
    """Not in the fleet any more, but with allocations. Its jobs are placed elsewhere."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Total and allocated amount of a resource."""

    total: int
    used: int

    @property
    def free(self) -> int:
        """Free amount; negative if a node shrank below its allocations."""
        return self.total - self.used


@dataclass(frozen=True, slots=True)
class SliceView:
    """Slice of a device and its holder.

    Attributes
    ----------
    job_id, job, tenant, attempt, replica
        Replica and job. For an unmanaged pod only its name, ``namespace/pod``, as `job`.
    pod, container
        The pod, ``namespace/pod``, and its container; empty while unknown.
    used
        Measured use of the device by the container, over all its slices; None if unknown.
    """

    job_id: str
    job: str
    tenant: str
    attempt: int
    replica: int
    memory_mib: int
    core_milli: int
    mig_profile: str = ""
    pod: str = ""
    container: str = ""
    used: Used | None = None


@dataclass(frozen=True, slots=True)
class DeviceView:
    """A device and its slices.

    Attributes
    ----------
    reason
        Reason why it accepts no new work, of the device, its node or its cluster; empty if it does.
    used
        Latest measured use; None if unknown or too old.
    """

    cluster: str
    node: str
    uuid: str
    index: int
    model: str
    vendor: str
    mode: str
    healthy: bool
    reason: str
    share_limit: int
    memory_mib: Amount
    core_milli: Amount
    slices: tuple[SliceView, ...] = ()
    used: Used | None = None


class Holding(NamedTuple):
    """Slice of a device and its container. A tuple, since there are very many.

    Attributes
    ----------
    tenant
        Tenant of the job; empty for an unmanaged pod.
    namespace, pod, container
        Names; empty if unknown.
    used
        Measured use of the device by the container, over all its slices.
    """

    tenant: str
    namespace: str
    pod: str
    container: str
    memory_mib: int
    core_milli: int
    used: Used | None = None


class DeviceUse(NamedTuple):
    """Device with its location and holders. A tuple, since there are very many."""

    cluster: str
    node: str
    device: Device
    holdings: Sequence[Holding] = ()
    used: Used | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node and its devices.

    Attributes
    ----------
    ready
        Whether it accepts new work: its cluster reports it as ready, and it is not cordoned.
    reason
        Reason why it accepts none, besides its `cordon`: that of the node or of its whole cluster.
    cordon
        Its cordon, if any.
    pods
        Maximum number of pods; None if unknown.
    """

    cluster: str
    name: str
    ready: bool
    reason: str
    cordon: Cordon | None
    cpu_milli: Amount
    memory_mib: Amount
    devices: tuple[DeviceView, ...] = ()
    pods: Amount | None = None


@dataclass(frozen=True, slots=True)
class ModelView:
    """Totals of the devices of one model."""

    model: str
    devices: int
    memory_mib: Amount
    core_milli: Amount


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Totals of a cluster.

    Attributes
    ----------
    last_seen_s
        Seconds since its last answer.
    unreachable_reason
        Reason why it does not answer; empty while it is up, or if unknown.
    orphans
        Names of its orphaned workloads.
    """

    name: str
    state: ClusterState
    last_seen_s: int
    gateway: str
    region: str
    hardware: tuple[str, ...]
    microprice_per_gpu_hour: int
    cordon: Cordon | None
    nodes: int
    gpus: int
    cpu_milli: Amount
    memory_mib: Amount
    gpu_milli: Amount
    gpu_memory_mib: Amount
    jobs: int
    orphans: tuple[str, ...] = ()
    unreachable_reason: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Candidate node for the next replica of a job.

    Attributes
    ----------
    free_slices
        Number of such replicas that the node has room for.
    link
        Link from the gateway of the user to that of the cluster; None if either is unknown.
    microprice_per_hour
        Price of a replica per hour, millionths of the currency unit.
    chosen
        Whether the policy selects it.
    """

    cluster: str
    node: str
    total: int
    scores: dict[str, int]
    free_slices: int
    link: Link | None
    microprice_per_hour: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class DryRun:
    """Result of a dry run.

    Attributes
    ----------
    policy
        The policy that decided.
    fits
        Whether the job would start immediately.
    message
        The result in one sentence.
    candidates
        Candidates for its first replica, best first.
    placements
        Placement of every replica; empty if it would wait.
    manifests
        The objects that its clusters would get.
    """

    policy: str
    fits: bool
    message: str
    candidates: tuple[Choice, ...]
    placements: tuple[Placement, ...]
    explanation: Explanation
    manifests: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for the state of a job.

    Attributes
    ----------
    message
        The answer in one sentence.
    position
        Position in its queue, from 1; 0 if it does not wait.
    ahead
        Number of jobs that are decided before it.
    placements
        Its placements; empty while it waits.
    placement_reason
        Reason that was recorded with its placement.
    explanation
        Node by node, on the present fleet; None for a finished job.
    code, params
        Kind of the answer for programs, with its names and figures.
    """

    job: JobRecord
    message: str
    position: int
    ahead: int
    placements: tuple[Placement, ...]
    placement_reason: str
    explanation: Explanation | None
    code: str = ""
    params: Mapping[str, str | int] = field(default_factory=dict)


HEURISTIC, PACKAGE, PROFILE, TRAINED = "seaway", "package", "profile", "trained"
"""Sources of policies: built in, another package, a profile file of the server, or training."""


@dataclass(frozen=True, slots=True)
class PolicyView:
    """Policy that queues can use.

    Attributes
    ----------
    queues
        Queues that use it.
    source
        `HEURISTIC`, `PACKAGE`, `PROFILE` or `TRAINED`.
    """

    name: str
    says: str
    queues: tuple[str, ...] = ()
    source: str = HEURISTIC
