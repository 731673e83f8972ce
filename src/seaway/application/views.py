"""Views of the fleet, the queues and decisions: frozen values, computed from the live state on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from seaway.application.ports.usage import Used
from seaway.application.records import Cordon
from seaway.domain.deployment import Workload
from seaway.domain.device import Device
from seaway.domain.facts import NO_FACTS, Facts
from seaway.domain.job_record import JobRecord
from seaway.domain.network import Link
from seaway.domain.placement import Explanation, Placement
from seaway.domain.reasons import Params
from seaway.domain.reservations import AdvanceReservation


class ClusterState(Enum):
    """State of the connection to a cluster."""

    UP = "up"
    STALE = "stale"
    """No response for a while. The cluster gets no new jobs."""
    LOST = "lost"
    """No response for longer than the grace period. The jobs of the cluster are placed elsewhere."""
    GONE = "gone"
    """No longer in the fleet, but still with allocations. The jobs of the cluster are placed elsewhere."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Total and allocated amount of a resource.

    Attributes
    ----------
    unusable
        Part that is not allocated and accepts no new work, since its device or node failed.
    """

    total: int
    used: int
    unusable: int = 0

    @property
    def free(self) -> int:
        """Free amount; 0 if a node shrank below its allocations, or is no longer known."""
        return max(0, self.total - self.used - self.unusable)


@dataclass(frozen=True, slots=True)
class SliceView:
    """Slice of a device and its holder.

    Attributes
    ----------
    job_id, job, tenant, attempt, replica
        Job and replica. For an unmanaged pod, only `job` is set, to ``namespace/pod``.
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
        Reason why the device, its node or its cluster accepts no new work; empty if it does.
    used
        Latest measured use; None if unknown or too old.
    numa, island, pcie_switch
        Numbers of the NUMA node, the NVLink island and the PCIe switch on the node; -1 for none known.
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
    numa: int = 0
    island: int = -1
    pcie_switch: int = -1


class Holding(NamedTuple):
    """Slice of a device and its container. A tuple for compact storage.

    Attributes
    ----------
    tenant
        Tenant of the job; empty for an unmanaged pod.
    namespace, pod, container
        Names; empty if unknown.
    used
        Measured use of the device by the container, over all its slices.
    queue
        Queue of the job; empty for an unmanaged pod.
    """

    tenant: str
    namespace: str
    pod: str
    container: str
    memory_mib: int
    core_milli: int
    used: Used | None = None
    queue: str = ""


class DeviceUse(NamedTuple):
    """Device with its location and holders. A tuple for compact storage."""

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
        Whether the node accepts new work: its cluster reports it as ready, and it is not cordoned.
    reason
        Reason why the node or its cluster accepts no new work, other than `cordon`.
    cordon
        Cordon of the node, if any.
    pods
        Maximum number of pods; None if unknown.
    jobs
        Number of jobs with replicas on the node, without orphans.
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
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Allocated GPUs of a node, for maps of the fleet.

    Attributes
    ----------
    models
        Models of its devices.
    gpus, unhealthy
        Number of its devices, and of those that are not healthy.
    gpu_milli_used
        Allocated GPUs in thousandths. A device counts as the larger share of cores and memory.
    ready, answers
        Whether the node accepts new work, and whether its cluster reports it as ready, apart from cordons.
    tenants
        Tenants of the jobs on the node.
    jobs
        Number of jobs with replicas on the node.
    """

    cluster: str
    name: str
    models: tuple[str, ...]
    gpus: int
    unhealthy: int
    gpu_milli_used: int
    ready: bool
    answers: bool
    tenants: tuple[str, ...]
    jobs: int


@dataclass(frozen=True, slots=True)
class ModelView:
    """Totals of the devices of one model.

    Attributes
    ----------
    free
        Number of devices that accept jobs and that no job uses.
    """

    model: str
    devices: int
    free: int
    memory_mib: Amount
    core_milli: Amount


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Totals of a cluster.

    Attributes
    ----------
    last_seen_s
        Seconds since the last response, or since the cluster is known if it never responded.
    unreachable_s
        The same without times in which no server ran.
    reported_ns
        Time of the last response; None if it never responded.
    reason
        Reason why the cluster does not respond; empty while it is up, or if unknown.
    orphans
        Names of orphaned workloads.
    facts, reported_facts, configured_facts, own_facts
        Facts of the cluster, those that it reports or that the settings have, of these those of the settings, and those
        that operators set.
    models
        Number of its GPUs by model, and by whether they are spot capacity.
    not_ready
        Names of nodes that accept no new work.
    unhealthy
        Number of devices that are not reported as healthy, by node.
    gpus_used_milli
        GPUs in use, thousandths. A slice counts as the larger share of cores and memory.
    """

    name: str
    state: ClusterState
    last_seen_s: int
    gateway: str
    facts: Facts
    reported_facts: Facts
    models: Mapping[tuple[str, bool], int]
    cordon: Cordon | None
    nodes: int
    gpus: int
    cpu_milli: Amount
    memory_mib: Amount
    gpu_milli: Amount
    gpu_memory_mib: Amount
    jobs: int
    orphans: tuple[str, ...] = ()
    reason: str = ""
    own_facts: Facts = NO_FACTS
    configured_facts: Facts = NO_FACTS
    not_ready: tuple[str, ...] = ()
    unhealthy: Mapping[str, int] = field(default_factory=dict)
    gpus_used_milli: int = 0
    unreachable_s: float = 0
    reported_ns: int | None = None

    @property
    def nodes_not_ready(self) -> int:
        """Number of nodes that accept no new work."""
        return len(self.not_ready)

    @property
    def gpus_unhealthy(self) -> int:
        """Number of devices that are not reported as healthy."""
        return sum(self.unhealthy.values())

    def with_own_facts(self, facts: Facts) -> ClusterView:
        """Return the view with facts that operators set."""
        return replace(self, own_facts=facts, facts=facts.over(self.reported_facts))


@dataclass(frozen=True, slots=True)
class Choice:
    """Candidate node for the next replica of a job.

    Attributes
    ----------
    free_slices
        Number of such replicas that fit on the node.
    link
        Link from the gateway of the user to that of the cluster; None if either is unknown.
    microprice_per_hour
        Price of a replica per hour, millionths of the currency unit. A slice costs its share of the device. None if
        unknown, or without GPUs.
    chosen
        Whether the policy selects the node.
    """

    cluster: str
    node: str
    total: int
    scores: dict[str, int]
    free_slices: int
    link: Link | None
    microprice_per_hour: int | None
    chosen: bool


Sees = Callable[[str], bool]
"""Report whether a user may see the jobs of a tenant."""


@dataclass(frozen=True, slots=True)
class RoomMaker:
    """A running job that makes room for a waiting one.

    Attributes
    ----------
    name, tenant
        Empty for those who may not see the tenant.
    replicas
        Number of replicas by which it shrinks; 0 if it ends.
    """

    job_id: str
    name: str
    tenant: str
    replicas: int = 0

    @property
    def label(self) -> str:
        """Name of the job, or its ID for those who may not see the tenant."""
        return self.name or self.job_id

    def shown_to(self, sees: Sees) -> RoomMaker:
        """Return the job as a user who sees some tenants may know it."""
        return self if sees(self.tenant) else replace(self, name="", tenant="")


@dataclass(frozen=True, slots=True)
class DryRun:
    """Result of a dry run.

    Attributes
    ----------
    policy
        Policy that decided.
    fits
        Whether the job would start immediately.
    message
        The result in one sentence.
    candidates
        Candidates for the first replica, best first.
    placements
        Placement of every replica; empty if the job would wait.
    microprice_per_hour
        Price of all replicas per hour, millionths of the currency unit; None if the price of any is unknown, or if the
        job would wait.
    manifests
        Objects that would be sent to the clusters.
    placement_reason
        What decided for the node of the first replica, against the next best one; empty if unknown.
    room_from
        Running jobs that would shrink or end for it.
    room_within_s
        Time until all of these have made room at the latest, seconds.
    """

    policy: str
    fits: bool
    message: str
    candidates: tuple[Choice, ...]
    placements: tuple[Placement, ...]
    explanation: Explanation
    microprice_per_hour: int | None = None
    manifests: tuple[dict[str, Any], ...] = ()
    placement_reason: str = ""
    room_from: tuple[RoomMaker, ...] = ()
    room_within_s: int = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for the state of a job.

    Attributes
    ----------
    message
        The reason in one sentence.
    position
        Position in the queue, from 1; 0 if the job does not wait.
    ahead
        Number of jobs to be decided before this job.
    placements
        Placements of the job; empty while it waits.
    placement_reason
        Reason recorded with the placement.
    explanation
        Explanation by node on the current fleet; None for a finished job. For a placed job, its own use counts as free.
    decided_ns
        Time of the decision that `placement_reason` describes; None without one.
    code, params
        Machine-readable kind of the reason, with its names and values.
    estimated_start_ns
        Expected start of a waiting job by the wall clock; None if it is unknown.
    start_by_amounts
        Whether that start counts amounts only, and not nodes and devices.
    learned_duration_s, learned_runs
        Duration of a waiting job that is learned from past runs, and their number; None and 0 if none is.
    end_reason
        Reason for the end of the last attempt of a waiting job; empty without one.
    room_from
        Running jobs that shrink or end for a waiting job.
    why
        The reason, one clause, as lists show it.
    advice
        What would admit a waiting job beside changes of its request, and who holds what it waits for.
    """

    job: JobRecord
    message: str
    position: int
    ahead: int
    placements: tuple[Placement, ...]
    placement_reason: str
    explanation: Explanation | None
    code: str = ""
    params: Params = field(default_factory=dict)
    estimated_start_ns: int | None = None
    start_by_amounts: bool = False
    learned_duration_s: int | None = None
    learned_runs: int = 0
    decided_ns: int | None = None
    end_reason: str = ""
    room_from: tuple[RoomMaker, ...] = ()
    why: str = ""
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StandbyView:
    """Standby of a service.

    Attributes
    ----------
    state, reason
        State of its job and the reason; of a cold one ``verified`` or ``no place``; ``pending`` before the first.
    clusters
        Its clusters; with a cold one, a cluster with room for it.
    serving, workloads
        Workloads of the active copy, and of the standby.
    """

    state: str
    reason: str
    clusters: tuple[str, ...]
    serving: Sequence[Workload]
    workloads: Sequence[Workload]


HEURISTIC, PACKAGE, PROFILE, TRAINED = "seaway", "package", "profile", "trained"
"""Sources of policies: built in, another package, a profile file of the server, or training."""


@dataclass(frozen=True, slots=True)
class PolicyView:
    """Policy that queues can use.

    Attributes
    ----------
    queues
        Queues that use the policy.
    source
        `HEURISTIC`, `PACKAGE`, `PROFILE` or `TRAINED`.
    warning
        As in `Policies.warning`.
    """

    name: str
    says: str
    queues: tuple[str, ...] = ()
    source: str = HEURISTIC
    warning: str = ""


@dataclass(frozen=True, slots=True)
class ReservationView:
    """Advance reservation with its present state.

    Attributes
    ----------
    active
        True between its begin and its end.
    gpus_reserved
        Number of GPUs that are reserved.
    gpus_ready
        Number of these that no job of others holds at the begin, as far as known.
    """

    reservation: AdvanceReservation
    active: bool
    gpus_reserved: int
    gpus_ready: int
