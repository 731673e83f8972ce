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
    """Whether a cluster answers."""

    UP = "up"
    STALE = "stale"
    """It has not answered for a while, and gets no new jobs."""
    LOST = "lost"
    """It has not answered for longer than the grace period. Its jobs are placed elsewhere."""
    GONE = "gone"
    """It is not in the fleet any more, but still has allocations. Its jobs are placed elsewhere."""


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
    """A share of a device, and who holds it.

    Attributes
    ----------
    job_id, job, tenant, attempt, replica
        Which replica of which job. Of a pod that is no one's, only its name, ``namespace/pod``, as `job`.
    pod, container
        What holds it, ``namespace/pod``, and which container of that; empty as long as they are not known.
    used
        What was measured of the container's use of the device, all its shares together; None where that is not known.
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
        Why it takes no new work: for its own sake, or for its node's or cluster's; empty while it does.
    used
        What was measured of it last; None where that is not known, or too old.
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
    """A share of a device, and the container that holds it; a tuple, for there are very many.

    Attributes
    ----------
    tenant
        Whose it is; empty for a pod that is no job's.
    namespace, pod, container
        Empty where they are not known.
    used
        What was measured of the container's use of the device, all its shares together.
    """

    tenant: str
    namespace: str
    pod: str
    container: str
    memory_mib: int
    core_milli: int
    used: Used | None = None


class DeviceUse(NamedTuple):
    """A device, where it is, and who holds what of it; a tuple, for there are very many."""

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
        Whether it takes new work: its cluster says so, and it is not cordoned.
    reason
        Why it takes none but for its `cordon`: its cluster's own reason, or its whole cluster's.
    cordon
        Who keeps new work away from it, if anybody.
    pods
        How many it takes; None where it does not say.
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
    """The devices of one model, summed up."""

    model: str
    devices: int
    memory_mib: Amount
    core_milli: Amount


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster, summed up.

    Attributes
    ----------
    last_seen_s
        Seconds since it answered last.
    silence
        Why it does not; empty while it is up, and where nothing is known.
    orphans
        Copies there that no attempt known to Seaway accounts for.
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
    silence: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A node that could take a job's next replica, with what people weigh.

    Attributes
    ----------
    free_slices
        How many more replicas like this one the node could take.
    link
        Between the user's gateway and the cluster's; None where either is unknown.
    microprice_per_hour
        What one replica costs there for an hour, millionths of the currency's unit.
    chosen
        Whether the policy takes this one.
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
    """A policy that a queue may have.

    Attributes
    ----------
    queues
        The queues that are placed by it.
    source
        `HEURISTIC`, `PACKAGE`, `PROFILE` or `TRAINED`.
    """

    name: str
    says: str
    queues: tuple[str, ...] = ()
    source: str = HEURISTIC
