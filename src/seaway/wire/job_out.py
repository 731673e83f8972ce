"""Views of jobs: the state, the specification as text, and the exact request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar
from weakref import ref

from pydantic import Field, StringConstraints

from seaway.application.fleet.costs import Cost
from seaway.application.fleet.gpu_use import SliceUse, UnusedGpus, UseSample
from seaway.application.fleet.job_groups import JobGroup
from seaway.application.network.views import RingPart
from seaway.application.records import NS_PER_S, SavedFilter
from seaway.domain.attempt import Attempt
from seaway.domain.deployment import Workload
from seaway.domain.job import ResourceRequest
from seaway.domain.job_record import JobRecord, Pair
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import PLACED, WAITING, JobState
from seaway.domain.placement import Placement
from seaway.domain.runtime import PROGRAM, ContainerPort
from seaway.wire.facts import price_or_none
from seaway.wire.fields import LINE_PATTERN, moment, moment_or_none
from seaway.wire.fleet import UsedOut, used_fields
from seaway.wire.job_text import described_text, job_text
from seaway.wire.links import KnownLinkOut, known_link_fields
from seaway.wire.message import CodedOut, CodeOut, Incoming, Shown, coded, fields_of, with_message

Given = TypeVar("Given")
Made = TypeVar("Made")


class Remembered(Generic[Given, Made]):
    """Cache of values computed from immutable objects, for the most recent objects.

    Objects are compared by identity, so unhashable and large objects work. They are not kept alive. Values are shared
    and must not be modified.

    Parameters
    ----------
    make
        Computes a value.
    most
        Maximum number of entries.
    """

    def __init__(self, make: Callable[[Given], Made], most: int) -> None:
        self._make = make
        self._most = most
        self._made: dict[int, tuple[ref[Given], Made]] = {}

    def of(self, given: Given) -> Made:
        """Return the value for an object."""
        found = self._made.get(id(given))
        if found is not None and found[0]() is given:
            return found[1]
        made = self._make(given)
        while len(self._made) >= self._most:
            self._made.pop(next(iter(self._made)), None)
        self._made[id(given)] = (ref(given), made)
        return made


StateName = Literal[
    "held",
    "pending",
    "queued",
    "scheduled",
    "deploying",
    "running",
    "completed",
    "failed",
    "preempted",
    "suspended",
    "cancelled",
    "skipped",
    "deleted",
]


class RequestOut(Shown):
    """Exact request of each replica, with all defaults."""

    cpu_milli: int
    """CPU of the node, thousandths of a core."""
    memory_mib: int
    """Memory of the node, MiB."""
    gpus: int
    """Number of devices."""
    gpu_memory_mib: int
    """Memory of each device, MiB; 0 if the request is a share."""
    gpu_memory_percent: int
    """Share of each device's memory, percent; 0 if the request is an amount."""
    gpu_milli: int
    """Cores of each device, thousandths."""
    mig: str = ""
    """MIG profile of each instance; empty for none. `gpu_memory_percent` is then its nominal share."""


class EndpointOut(Shown):
    """Address of a port of a job."""

    cluster: str
    port: int
    """The port of the job."""
    container: str = PROGRAM
    """Container that listens on the port; `main` is that of the program."""
    name: str = ""
    """Name of the port; empty without one."""
    protocol: Literal["TCP", "UDP"] = "TCP"
    address: str
    """`host:port`, or a URL for HTTP by host name; empty while the cluster has not assigned one."""
    reach: Literal["outside", "nodes", "cluster", "clusters", "none"]
    """Clients that can use it: those outside the cluster, those that reach its nodes, its pods, replicas of a ring in
    other clusters, or none yet.
    """
    message: str
    """Reason why clients outside the cluster cannot use it, or a condition for it; empty for none."""
    reason: CodeOut


class SliceUseOut(Shown):
    """Slice of a device of a replica, with its measured use."""

    replica: int
    cluster: str
    node: str
    uuid: str
    memory_mib: int
    core_milli: int
    """Reserved thousandths of the device; 1,000 if none are reserved."""
    used: UsedOut | None
    """Use by the replica; null if no exporter reports it."""


class UseSampleOut(Shown):
    """Measured use of the GPUs of a job, and the amounts that it has reserved of them."""

    at: str
    core_milli: int | None
    core_milli_reserved: int
    memory_mib: int | None
    memory_mib_reserved: int


class GpuUseOut(Shown):
    """Measured use of the GPUs of a job."""

    slices: list[SliceUseOut]
    """The first slices, by replica."""
    total: int
    """Number of all slices."""
    samples: list[UseSampleOut]
    """Use until now, oldest first; of an unfinished job with the present one. Samples older than an hour are means."""


class CostOut(Shown):
    """GPU time, and the price of the GPUs times the time that they are held, at present prices.

    Only GPUs have prices. A slice counts as its larger share of cores and memory. Amounts of money are exact decimals
    in units of the currency.
    """

    gpu_hours: float
    """Allocated GPUs times hours."""
    unpriced_gpu_hours: float
    """The part of them whose price is unknown. `cost` is without it."""
    cost: str | None
    """Null if no price is known."""
    cost_per_hour: str | None
    """Cost of an hour of the GPUs that are held now and have a known price; null if no price is known."""
    unpriced_gpus: float
    """GPUs that are held now and whose price is unknown."""


def cost_fields(cost: Cost) -> dict[str, Any]:
    """Return the fields of `CostOut` for a cost."""
    return {
        "gpu_hours": round(cost.gpu_hours, 3),
        "unpriced_gpu_hours": round(cost.unpriced_gpu_hours, 3),
        "cost": price_or_none(cost.micros),
        "cost_per_hour": price_or_none(cost.micros_per_hour),
        "unpriced_gpus": cost.now.unpriced_milli / 1000,
    }


class AfterOut(Shown):
    """A predecessor, and the condition on it."""

    job: str
    """ID of the predecessor."""
    when: Literal["succeeded", "finished", "started", "failed"]


class StandbyOut(Shown):
    """Standby of a service, and the latest switch to it."""

    role: Literal["active", "standby"]
    """Role of this job."""
    mode: Literal["warm", "cold"]
    other: str
    """ID of the job of the other copy; empty without one."""
    left: str
    """Cluster of the active copy before the latest switch; empty before the first."""
    lost_at: str | None
    """Time of the last report of that cluster; null if it was not lost."""
    switched_at: str | None
    """Time of the latest switch; null before the first, and while a switch is due."""
    clusters: list[str]
    """Clusters of the standby; with a cold one, a cluster with room for it. Only in the answer for a single job."""
    state: str
    """State of the standby: that of its job, or `verified` or `no place` if it is cold; only for a single job."""
    message: str
    """Reason for the state; only for a single job."""
    reason: CodeOut
    endpoints: list[EndpointOut]
    """Addresses of the standby, for health checks; only for a single job."""


class TasksOut(Shown):
    """Tasks of an array."""

    total: int
    limit: int | None
    """Maximum number of tasks at once; null for no limit."""
    states: dict[str, int]
    """Number of tasks in each state. Those that have not started are pending, or as the array if it has ended."""


class JobOut(Shown):
    """A job."""

    id: str
    name: str
    tenant: str
    queue: str
    priority: int
    replicas: int
    """Number of replicas that run at the same time if there is room."""
    held_replicas: int = 0
    """Number of replicas that hold resources, with those that are leaving; 0 while it has no place.

    It is less than `replicas` if an elastic job shrank, or if replicas wait or have completed.
    """
    state: StateName
    message: str
    """Reason for the state, a sentence for people."""
    reason: CodeOut
    version: int
    """Version, which increases with each change; used as ETag."""
    attempt: int
    """Number of the latest attempt; 0 before the first."""
    failures: int
    """Number of failed attempts."""
    completed_replicas: int = 0
    """Number of replicas that completed in earlier attempts, if they start one by one."""
    clusters: list[str]
    """Clusters of the latest attempt."""
    nodes: list[str]
    submitted_at: str
    submitted_by: str
    updated_at: str
    started_at: str | None
    ended_at: str | None
    not_before: str | None
    """Earliest time of the next attempt after a failure."""
    expires_at: str | None = None
    """End of its lease, if it has one; then it is stopped."""
    spec: dict[str, Any]
    """Specification. That of a single job can be submitted again.

    Lists leave out commands, arguments, variables, setup and parameters. So do all answers to monitors.
    """
    request: RequestOut
    """Exact request of each replica."""
    endpoints: list[EndpointOut] = Field(default_factory=list)
    """Addresses of its ports, those with the widest reach first; only in the answer for a single job.

    Both copies of a service with a standby have those of the active one.
    """
    awaits: list[AfterOut] = Field(default_factory=list)
    """Predecessors that a held job waits for. `spec` has all of them."""
    standby: StandbyOut | None = None
    """Standby of the service; null without one."""
    array: str | None = None
    """ID of the array of a task; null for other jobs."""
    index: int | None = None
    """Index of a task in its array. `sweep_7`, or the ID of the array in place of its name, refers to it."""
    parameters: dict[str, str] = Field(default_factory=dict)
    """Values of the matrix for a task, which are in its environment; empty for other jobs.

    Only in the answer for a single job and in the list of tasks. Monitors do not get them.
    """
    tasks: TasksOut | None = None
    """Tasks of an array; null for other jobs."""
    held_gpus: float | None = None
    """GPUs that it holds now. A slice counts as its larger share of cores and memory; only in lists of jobs and tasks.
    """
    gpu_hours: float | None = None
    """Allocated GPUs times hours, of all attempts until now; only in lists that ask for it."""
    cost: CostOut | None = None
    """GPU time and cost until now; only in lists that ask for it."""
    estimated_start: str | None = None
    """Expected start of a waiting job, null if it is unknown; only in lists that ask for it."""

    @classmethod
    def of(cls, job: JobRecord) -> JobOut:
        """Return the view of a job."""
        return cls.model_validate(job_fields(job))


class JobPage(Shown):
    """A page of jobs, newest first."""

    jobs: list[JobOut]
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


class SavedFilterIn(Incoming):
    """A view of the list of jobs."""

    query: Annotated[str, StringConstraints(pattern=LINE_PATTERN, max_length=2000)]
    """Query parameters of the page, such as `state=failed&sort=-ended`."""


class SavedFilterOut(Shown):
    """A view of the list of jobs under a name."""

    name: str
    query: str
    changed_at: str


class SavedFilterList(Shown):
    """Saved filters of a user, by name."""

    filters: list[SavedFilterOut]


def saved_filter_fields(row: SavedFilter) -> dict[str, Any]:
    """Return the fields of `SavedFilterOut` for a saved filter."""
    return {"name": row.name, "query": row.query, "changed_at": moment(row.changed_ns)}


class JobBatch(Shown):
    """Jobs of a request, in its order."""

    jobs: list[JobOut]


class Workflow(Shown):
    """Jobs that are connected by dependencies, oldest first."""

    jobs: list[JobOut]
    more: bool
    """True if there are more jobs, which are farther away."""


class JobCount(Shown):
    """Number of jobs in each state."""

    total: int
    states: dict[str, int]
    """Number of jobs by state. An array is one job; it runs from the start of its first task."""
    waiting: int = 0
    """Number of waiting jobs: pending, queued or preempted."""
    running: int = 0
    """Number of running jobs: scheduled, deploying or running."""
    waiting_tasks: int | None = None
    """Number of waiting tasks; a job that is no array is one task. Null with filters besides `tenant` and `queue`."""
    running_tasks: int | None = None
    """Number of tasks with a placement, as `waiting_tasks`."""


class UnusedGpusOut(Shown):
    """GPU time of a running job in the last hour, as far as it is measured."""

    id: str
    name: str
    """Name of the job; of a task with its index."""
    tenant: str
    queue: str
    submitted_by: str
    gpu_core_hours: float
    """Reserved GPU cores times hours."""
    unused_gpu_core_hours: float
    """The part of them that the job did not use."""
    used_percent: float


class UnusedGpusList(Shown):
    """Running jobs, most unused GPU time first."""

    jobs: list[UnusedGpusOut]


class JobGroupOut(Shown):
    """Jobs with a common user, queue, tenant or label. An array is one job."""

    name: str
    """User, queue, tenant, or value of the label; empty for jobs without the label."""
    jobs: int
    """Number of jobs in all states."""
    waiting: int
    running: int
    gpus: float
    """GPUs that they hold now. A slice counts as its larger share of cores and memory."""
    cost: CostOut
    """GPU time and cost of the last 30 days."""


class JobGroupList(Shown):
    """Groups of jobs."""

    groups: list[JobGroupOut]
    """Those with most GPUs first, then those with most GPU time."""


class SliceOut(Shown):
    """A share of a device."""

    uuid: str
    memory_mib: int
    core_milli: int
    mig_profile: str = ""
    mig_start: int = -1


class PlacementOut(Shown):
    """Placement of one replica."""

    replica: int
    cluster: str
    node: str
    slices: list[SliceOut]


class AttemptOut(Shown):
    """One placement of a job and its result."""

    number: int
    state: Literal["assumed", "sent", "running", "ending", "ended"]
    policy: str
    placement_reason: CodedOut | None
    """Reason for the placement, in one sentence; null without one."""
    message: str
    """Reason for the end of the attempt; empty before."""
    reason: CodeOut
    created_at: str
    running_at: str | None
    ended_at: str | None
    placements: list[PlacementOut]
    cost: CostOut | None = None
    """GPU time and cost until now."""
    expected_end: str | None = None
    """Expected end, by the job's duration or past runs; null if it is unknown, or if the attempt has ended."""
    spec: dict[str, Any] | None = None
    """Specification with which it was placed; null unless `specs` is set. Monitors get it without content."""


class ObservedContainer(Shown):
    """A container of a pod."""

    name: str
    ports: list[int]
    """Declared ports."""
    devices: list[str]
    """UUIDs of the container's devices, if known."""


class ObservedReplica(Shown):
    """One replica as reported by its cluster."""

    replica: int
    phase: Literal["starting", "running", "succeeded", "failed", "gone"]
    node: str
    pod: str
    """Pod of the replica, `namespace/pod`; empty before it exists."""
    containers: list[ObservedContainer]
    message: str
    reason: CodeOut


class ObservedWorkload(Shown):
    """Workload of a job's latest attempt in a cluster."""

    cluster: str
    phase: Literal["starting", "running", "succeeded", "failed", "gone"]
    address: str
    """Addresses of the workload's ports with the widest reach, `host:port,port`; empty without one."""
    endpoints: list[EndpointOut]
    """Addresses of the workload's ports, those with the widest reach first."""
    message: str
    reason: CodeOut
    drift: list[CodedOut]
    """Changes of others to its objects in the cluster."""
    replicas: list[ObservedReplica]


class RingLinkOut(Shown):
    """Part of a ring over clusters: a cluster, and its link to the next one."""

    cluster: str
    """Cluster of consecutive ranks."""
    next: str
    """Cluster of the following rank."""
    replicas: int
    """Number of replicas in the cluster."""
    link: KnownLinkOut | None
    """Present figures of the link; null if both clusters are behind one gateway, or have none."""


class AttemptList(Shown):
    """Attempts of a job, by number, and the workloads of the latest."""

    attempts: list[AttemptOut]
    workloads: list[ObservedWorkload]
    ring: list[RingLinkOut] = Field(default_factory=list)
    """Ring of the latest attempt, from the cluster of rank 0; empty in one cluster."""
    next: int | None
    """Cursor of the next page: send it as `after`; null on the last page."""


def request_fields(request: ResourceRequest) -> dict[str, int | str]:
    """Return the fields of `RequestOut` for a request."""
    filled = request.filled()
    return {
        "cpu_milli": filled.cpu_milli,
        "memory_mib": filled.memory_mib,
        "gpus": filled.gpus,
        "gpu_memory_mib": filled.gpu_memory_mib,
        "gpu_memory_percent": filled.gpu_memory_percent,
        "gpu_milli": filled.gpu_milli,
        "mig": request.mig,
    }


def spec_fields(spec: JobSpec, *, content: bool) -> dict[str, Any]:
    """Return a specification, with or without content."""
    return job_text(spec) if content else described_text(job_text(spec))


def _described(spec: JobSpec) -> dict[str, Any]:
    return {"spec": spec_fields(spec, content=False), "request": request_fields(spec.demand.request)}


_DESCRIBED = Remembered(_described, most=4096)
"""Cache of specifications without content, and of requests, since lists show the same jobs repeatedly."""


def job_fields(
    job: JobRecord,
    counts: Mapping[JobState, int] | None = None,
    *,
    content: bool = False,
    parameters: bool = False,
) -> dict[str, Any]:
    """Return the fields of `JobOut` for a job, ready to encode; faster than an instance of `JobOut`.

    Parameters
    ----------
    counts
        Numbers of stored tasks of an array; None for none.
    content
        Whether the specification has commands, arguments, variables, setup and parameters. Lists do without, since
        each job may have a megabyte of them.
    parameters
        Whether a task has the values of its matrix.
    """
    spec = job.spec
    return {
        "id": job.id,
        "name": spec.name,
        "tenant": spec.tenant,
        "queue": spec.queue,
        "priority": spec.priority,
        "replicas": spec.replicas,
        "held_replicas": job.held_replicas if job.state.placed else 0,
        "state": job.state.value,
        **with_message(job.reason),
        "version": job.version,
        "attempt": job.attempt,
        "failures": job.failures,
        "completed_replicas": job.completed,
        "clusters": list(job.clusters),
        "nodes": list(job.nodes),
        "submitted_at": moment(job.submitted_ns),
        "submitted_by": job.submitted_by,
        "updated_at": moment(job.changed_ns),
        "started_at": moment_or_none(job.started_ns),
        "ended_at": moment_or_none(job.ended_ns),
        "not_before": moment_or_none(job.not_before_ns),
        "expires_at": moment_or_none(job.expires_ns),
        "awaits": [{"job": each.job, "when": each.when.value} for each in job.awaits],
        "array": job.array or None,
        "index": job.index if job.array else None,
        "parameters": dict(spec.array.parameters(job.index)) if parameters and job.array and spec.array else {},
        "tasks": _tasks(job, counts or {}) if job.is_array else None,
        **_DESCRIBED.of(spec),
        **({"spec": spec_fields(spec, content=True)} if content else {}),
        "standby": standby_fields(job) if spec.standby else None,
    }


def standby_fields(job: JobRecord) -> dict[str, Any]:
    """Return the fields of `StandbyOut` that a job itself has."""
    pair = job.pair or Pair()
    return {
        "role": "active" if pair.active else "standby",
        "mode": job.spec.standby.mode.value if job.spec.standby else "",
        "other": pair.other,
        "left": pair.left,
        "lost_at": moment_or_none(pair.lost_ns),
        "switched_at": moment_or_none(pair.switched_ns),
        "clusters": [],
        "state": "",
        **with_message(""),
        "endpoints": [],
    }


def _tasks(array: JobRecord, counts: Mapping[JobState, int]) -> dict[str, Any]:
    unstarted = Counter({array.state if array.state.final else JobState.PENDING: array.unstarted_count})
    states = Counter(counts) + unstarted
    return {
        "total": states.total(),
        "limit": (array.spec.array.limit or None) if array.spec.array else None,
        "states": {state.value: states[state] for state in JobState if states[state]},
    }


def placement_fields(placement: Placement) -> dict[str, Any]:
    """Return the fields of `PlacementOut` for a placement."""
    return {
        "replica": placement.replica,
        "cluster": placement.cluster,
        "node": placement.node,
        "slices": [
            {
                "uuid": each.uuid,
                "memory_mib": each.memory_mib,
                "core_milli": each.core_milli,
                "mig_profile": each.mig_profile,
                "mig_start": each.mig_start,
            }
            for each in placement.slices
        ],
    }


def attempt_fields(
    attempt: Attempt, replicas: range, cost: Cost, ends_ns: int | None, spec: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the fields of `AttemptOut` for an attempt, with only the replicas in `replicas`."""
    return fields_of(
        AttemptOut,
        attempt,
        placement_reason=coded(attempt.why),
        **with_message(attempt.reason),
        created_at=moment(attempt.created_ns),
        running_at=moment_or_none(attempt.running_ns),
        ended_at=moment_or_none(attempt.ended_ns),
        placements=[placement_fields(each) for each in attempt.placements if each.replica in replicas],
        cost=cost_fields(cost),
        expected_end=moment_or_none(ends_ns),
        spec=spec,
    )


def ring_fields(parts: Sequence[RingPart]) -> list[dict[str, Any]]:
    """Return the fields of `RingLinkOut` for each part of a ring."""
    return [
        {
            "cluster": each.cluster,
            "next": each.next,
            "replicas": each.replicas,
            "link": known_link_fields(each.link) if each.link else None,
        }
        for each in parts
    ]


def endpoint_fields(copy: Workload, ports: Iterable[ContainerPort]) -> list[dict[str, Any]]:
    """Return the fields of `EndpointOut` for each endpoint of a workload of a job with some ports."""
    known = {each.number: each for each in ports}
    return [
        {
            "cluster": copy.cluster,
            "port": each.port,
            "container": (port := known.get(each.port, ContainerPort(each.port))).container,
            "name": port.name,
            "protocol": port.protocol.value,
            "address": each.address,
            "reach": each.reach.value,
            **with_message(each.reason),
        }
        for each in copy.endpoints
    ]


def gpu_use_fields(slices: Sequence[SliceUse], samples: Sequence[UseSample], limit: int) -> dict[str, Any]:
    """Return the fields of `GpuUseOut`, with at most `limit` slices."""
    return {
        "slices": [
            fields_of(SliceUseOut, each, used=used_fields(each.used) if each.used else None) for each in slices[:limit]
        ],
        "total": len(slices),
        "samples": [fields_of(UseSampleOut, each, at=moment(each.at_s * NS_PER_S)) for each in samples],
    }


def copy_fields(copy: Workload, replicas: range, ports: Sequence[ContainerPort] = ()) -> dict[str, Any]:
    """Return the fields of `ObservedWorkload` for a workload, with only the replicas in `replicas`."""
    return fields_of(
        ObservedWorkload,
        copy,
        endpoints=endpoint_fields(copy, ports),
        **with_message(copy.reason),
        drift=[coded(each.text) for each in copy.drift],
        replicas=[
            {
                "replica": each.replica,
                "phase": each.phase.value,
                "node": each.node,
                "pod": each.pod,
                "containers": [
                    {
                        "name": container.name,
                        "ports": list(container.ports),
                        "devices": [
                            uuid for uuid, who in zip(each.uuids, each.holders, strict=False) if who == container.name
                        ],
                    }
                    for container in each.containers
                ],
                **with_message(each.reason),
            }
            for each in copy.replicas
            if each.replica in replicas
        ],
    )


def unused_fields(unused: UnusedGpus) -> dict[str, Any]:
    """Return the fields of `UnusedGpusOut` for a job."""
    job = unused.job
    return {
        "id": job.id,
        "name": f"{job.spec.name}_{job.index}" if job.array else job.spec.name,
        "tenant": job.spec.tenant,
        "queue": job.spec.queue,
        "submitted_by": job.submitted_by,
        "gpu_core_hours": round(unused.gpu_core_hours, 3),
        "unused_gpu_core_hours": round(unused.unused_gpu_core_hours, 3),
        "used_percent": round(unused.used_percent, 1),
    }


def group_fields(group: JobGroup) -> dict[str, Any]:
    """Return the fields of `JobGroupOut` for a group."""
    return fields_of(JobGroupOut, group, gpus=group.gpu_milli / 1000, cost=cost_fields(group.cost))


def count_fields(counts: dict[JobState, int], tasks: tuple[int, int] | None) -> dict[str, Any]:
    """Return the fields of `JobCount`.

    Parameters
    ----------
    tasks
        Number of waiting and of running tasks; None if unknown.
    """
    waiting_tasks, running_tasks = tasks or (None, None)
    return {
        "total": sum(counts.values()),
        "states": {state.value: counts.get(state, 0) for state in JobState},
        "waiting": sum(counts.get(state, 0) for state in WAITING),
        "running": sum(counts.get(state, 0) for state in PLACED),
        "waiting_tasks": waiting_tasks,
        "running_tasks": running_tasks,
    }
