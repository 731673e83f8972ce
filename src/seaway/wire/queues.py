"""Requests and views of queues, their use and their waiting jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from seaway.application.fleet.queues import Place, QueueTotals, QueueUsage, TenantTotals
from seaway.application.fleet.schedule import Schedule, ScheduledJob
from seaway.application.fleet.shares import Factor, Share
from seaway.application.records import ShadowResult
from seaway.application.views import Reason
from seaway.domain import reasons
from seaway.domain.amounts import GPUS, JOBS, RESOURCES, parse_amounts, written_amounts
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.errors import RejectedError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.numbers import whole_number
from seaway.domain.queues import (
    GROW_COOLDOWN_S,
    MAX_PRIORITY,
    START_TIMEOUT_S,
    Backfill,
    Elastic,
    Order,
    Preemption,
    Preempts,
    Queue,
    Reclaim,
)
from seaway.domain.reasons import time_text
from seaway.domain.tenancy import DEFAULT, MAX_WEIGHT
from seaway.wire.explanations import FilteredOut, reason_fields
from seaway.wire.fields import (
    LabelKey,
    Line,
    Name,
    NameOrNone,
    Time,
    moment,
    moment_or_none,
    no_entries,
    no_pairs,
    seconds,
)
from seaway.wire.job_out import CostOut, JobOut, cost_fields, job_fields
from seaway.wire.message import CodedOut, Incoming, Shown, coded, fields_of
from seaway.wire.reading import read_value
from seaway.wire.tenancy import AmountsIn, AmountsOut, versioned

Keys = Annotated[list[LabelKey | Literal["*"]], Field(max_length=64)]

OrderName = Literal["fifo", "priority", "fair", "shortest"]
PreemptionName = Literal["Never", "PreemptLowerPriority"]
PreemptsName = Literal["all", "own"]
ReclaimName = Literal["Never", "Guarantee", "FairShare"]
ElasticName = Literal["lend", "keep"]
BackfillName = Literal["none", "easy", "conservative", "greedy"]


class QueueUsageOut(Shown):
    """Allocations and waiting jobs of a tenant in a queue."""

    queue: str
    tenant: str
    waiting: int
    """Number of waiting tasks. A job that is no array is one task."""
    running: int
    """Number of tasks with a placement, also those that start."""
    waiting_jobs: int = 0
    """Number of waiting jobs. An array is one job, and runs from the start of its first task."""
    running_jobs: int = 0
    """Number of running jobs."""
    longest_wait_s: int
    """Longest wait of the waiting jobs, seconds; 0 if no job waits."""
    gpus: float
    """GPUs that they hold. A slice counts as its larger share of cores and memory."""
    gpu_milli: int
    """Reserved GPU cores, thousandths."""
    gpu_memory_mib: int
    cpu_milli: int
    memory_mib: int


class QueueTotalsOut(Shown):
    """Jobs and amounts of a queue with its descendants.

    Amounts are as in `QueueIn`. Jobs of all tenants count, also for the token of a tenant.
    """

    queue: str
    waiting: int
    """Number of waiting tasks. A job that is no array is one task."""
    running: int
    """Number of tasks with a placement, also those that start."""
    waiting_jobs: int = 0
    """Number of waiting jobs. An array is one job, and runs from the start of its first task."""
    running_jobs: int = 0
    """Number of running jobs."""
    used: AmountsOut
    """Amounts that the jobs hold."""
    guarantee: AmountsOut
    """Guaranteed amounts. For resources that the queue does not name, the sum over its children."""
    borrowed: AmountsOut
    """Used amounts beyond the guarantee."""
    limit: AmountsOut
    cost: CostOut | None = None
    """GPU time and cost of the last 30 days; for the token of a tenant those of its own jobs."""


class TenantTotalsOut(Shown):
    """Jobs and amounts of a tenant in a pool, with its quota."""

    tenant: str
    pool: str
    waiting: int
    """Number of waiting tasks. A job that is no array is one task."""
    running: int
    """Number of tasks with a placement, also those that start."""
    waiting_jobs: int = 0
    """Number of waiting jobs. An array is one job, and runs from the start of its first task."""
    running_jobs: int = 0
    """Number of running jobs."""
    used: AmountsOut
    """Amounts that its jobs hold; `jobs` is their number."""
    guarantee: AmountsOut
    limit: AmountsOut
    max_waiting: int | None
    cost: CostOut | None = None
    """GPU time and cost of the last 30 days."""


class QueueUsageList(Shown):
    """Allocations and waiting jobs."""

    uses: list[QueueUsageOut]
    """Sums by queue and tenant, without empty ones."""
    queues: list[QueueTotalsOut] = Field(default_factory=list)
    """Sums by queue with its descendants."""
    tenants: list[TenantTotalsOut] = Field(default_factory=list)
    """Sums by tenant and pool."""


class WaitingOut(JobOut):
    """A waiting job. Its reason is that of the wait on the current fleet, as in `GET /jobs/{job}/explain`."""

    position: int
    """Position among the waiting jobs of the tenant in the queue, from 1.

    0 for an array, with the reason of its next task: its other tasks follow when tasks start or end.
    """
    later_tasks: int = 0
    """Number of these tasks of an array; 0 for other jobs."""
    why: CodedOut | None = None
    """The reason as lists of jobs show it, in one clause."""
    estimated_start: str | None = None
    """Expected start; null if it is unknown. It depends on the expected durations of jobs."""
    learned_duration: str | None = None
    """Expected duration, learned from past runs of its name or user; null if the job sets one, or without them."""
    learned_runs: int = 0
    """Number of these runs."""
    nodes_evaluated: int = 0
    """Number of evaluated nodes."""
    filtered: list[FilteredOut] = Field(default_factory=list)


class WaitingPage(Shown):
    """Waiting jobs, in the order in which they are tried."""

    jobs: list[WaitingOut]
    total: int
    """Number of waiting jobs, with arrays."""
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


class ScheduledJobOut(Shown):
    """A running job, or a waiting job with an expected start."""

    id: str
    name: str
    tenant: str
    queue: str
    clusters: list[str]
    """Clusters of a running job. Of a planned one: those of its reservation or that it may use; empty for all."""
    planned: bool
    """True for a waiting job, whose start is expected."""
    start: str
    end: str | None
    """Expected end; null if it is unknown."""
    gpus: float
    """GPUs that it holds or requests; a slice counts as its larger share of cores and memory."""
    task: int | None = None
    """Index of a task in its array; null for other jobs."""


class ScheduleGroupOut(Shown):
    """Jobs of a cluster or a queue."""

    name: str
    """Cluster or queue; empty for planned jobs that may start in several clusters."""
    running: int
    """Number of running jobs, with those beyond the limit."""
    planned: int
    """Number of planned jobs, with those beyond the limit."""
    jobs: list[ScheduledJobOut]
    """Running jobs, then planned ones, each by start."""


class ScheduleOut(Shown):
    """Running and planned jobs by cluster or queue."""

    at: str
    """Time of the schedule."""
    groups: list[ScheduleGroupOut]
    unplanned: int
    """Number of waiting jobs without an expected start within the time."""


class ShareOut(Shown):
    """Share of a queue with its descendants, or of a tenant in a queue. Shares of the pool are between 0 and 1."""

    queue: str
    tenant: str
    """Tenant; empty for the whole queue."""
    depth: int
    """Number of ancestors of the queue."""
    weight: int
    weight_share: float
    """The weight as a share of the weights of its siblings."""
    guarantee: float
    """Guaranteed share of the pool."""
    used: float
    """Dominant share of the pool that its jobs hold."""
    past: float
    """Dominant share that its jobs held in the past, on average; 0 unless `[control] usage_half_life_s` is set."""
    beyond: float
    """Used and past share beyond the guarantee, divided by the weight. The smallest goes first."""


class ShareList(Shown):
    """Shares, in the order of the tree."""

    shares: list[ShareOut]


class FactorOut(Shown):
    """Place of a waiting job's queue among its siblings, of its tenant in the queue, or of the job itself."""

    level: Literal["queue", "tenant", "job"]
    name: str
    place: int
    """Place among the siblings with waiting jobs, from 1."""
    of: int
    """Number of siblings with waiting jobs, with itself."""
    within_guarantee: bool
    """True if the guarantee has room for the job. Then it goes before all others."""
    priority: int
    ageing: float
    """Points of priority for the time that the job waited."""
    share: float
    """Dominant share beyond the guarantee; of a tenant, the whole share."""
    past: float
    """The same in the past, on average."""
    weight: int
    value: float
    """Compared value: the shares divided by the weight, or the priority of a job with its ageing."""
    ahead: list[str]
    """The first names before it."""


class PriorityOut(Shown):
    """Factors that order a waiting job, from the root of the tree to the job."""

    id: str
    name: str
    queue: str
    tenant: str
    position: int
    """Place among the waiting jobs of its queue; in a fair queue, among those of its tenant."""
    estimated_start: str | None = None
    factors: list[FactorOut]


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """Return the fields of `ScheduleOut` for a schedule."""
    groups = [
        fields_of(ScheduleGroupOut, each, jobs=[_scheduled_fields(job) for job in each.jobs])
        for each in schedule.groups
    ]
    return {"at": moment(schedule.now_ns), "groups": groups, "unplanned": schedule.unplanned}


def _scheduled_fields(job: ScheduledJob) -> dict[str, Any]:
    times = {"start": moment(job.starts_ns), "end": moment_or_none(job.ends_ns)}
    return fields_of(ScheduledJobOut, job, gpus=job.gpu_milli / 1000, **times)


def share_fields(share: Share) -> dict[str, Any]:
    """Return the fields of `ShareOut` for a share."""
    return fields_of(ShareOut, share)


def priority_fields(job: JobRecord, factors: Sequence[Factor], estimated_start_ns: int | None) -> dict[str, Any]:
    """Return the fields of `PriorityOut` for a waiting job."""
    return {
        "id": job.id,
        "name": job.spec.name,
        "queue": job.spec.queue,
        "tenant": job.spec.tenant,
        "position": factors[-1].place,
        "estimated_start": moment_or_none(estimated_start_ns),
        "factors": [fields_of(FactorOut, each, ahead=list(each.ahead)) for each in factors],
    }


def use_fields(use: QueueUsage) -> dict[str, Any]:
    """Return the fields of `QueueUsageOut` for the usage of a queue."""
    return fields_of(
        QueueUsageOut,
        use,
        gpus=use.amounts.get(GPUS, 0) / WHOLE_DEVICE_MILLI,
        longest_wait_s=int(use.longest_wait_s),
    )


def totals_fields(totals: QueueTotals) -> dict[str, Any]:
    """Return the fields of `QueueTotalsOut` for the sums of a queue."""
    return {
        "queue": totals.queue,
        "waiting": totals.waiting,
        "running": totals.running,
        "waiting_jobs": totals.waiting_jobs,
        "running_jobs": totals.running_jobs,
        "used": written_amounts(totals.used),
        "guarantee": written_amounts(totals.guarantee),
        "borrowed": written_amounts(totals.borrowed),
        "limit": written_amounts(totals.limit),
        "cost": cost_fields(totals.cost),
    }


def tenant_totals_fields(totals: TenantTotals) -> dict[str, Any]:
    """Return the fields of `TenantTotalsOut` for the sums of a tenant."""
    return {
        "tenant": totals.tenant,
        "pool": totals.pool,
        "waiting": totals.waiting,
        "running": totals.running,
        "waiting_jobs": totals.waiting_jobs,
        "running_jobs": totals.running_jobs,
        "used": written_amounts(totals.used),
        "guarantee": written_amounts(totals.quota.guarantee),
        "limit": written_amounts(totals.quota.limit),
        "max_waiting": totals.quota.max_waiting,
        "cost": cost_fields(totals.cost),
    }


def waiting_fields(place: Place, reason: Reason, counts: Mapping[JobState, int] | None = None) -> dict[str, Any]:
    """Return the fields of `WaitingOut` for a waiting job.

    Parameters
    ----------
    counts
        Numbers of stored tasks of an array; None for other jobs.
    """
    reported = reason_fields(reason)
    explained = reported["explanation"] or {"nodes": 0, "filtered": []}
    names = ("reason", "message", "estimated_start", "learned_duration", "learned_runs")
    return {
        **job_fields(place.job, counts),
        "position": place.position,
        "later_tasks": place.job.waiting if place.job.is_array else 0,
        "why": coded(reason.why or reason.message),
        **{name: reported[name] for name in names},
        "nodes_evaluated": explained["nodes"],
        "filtered": explained["filtered"],
    }


OptionValue = str | int | dict[str, int]
PolicyOptionsIn = Annotated[dict[str, OptionValue], Field(max_length=16)]


class PolicyChoice(Incoming):
    """A policy with its options."""

    name: Name
    options: PolicyOptionsIn = no_pairs()


class QueueIn(Incoming):
    """A queue. The name is part of the path."""

    FOREIGN: ClassVar[Mapping[str, Sequence[str]]] = {
        **{each: (f"limit.{each}", f"guarantee.{each}") for each in (*RESOURCES, JOBS)},
        **{each: (f"policy.options.{each}",) for each in ("level", "seed", "mix")},
    }

    tenant: NameOrNone = ""
    """Tenant whose jobs the queue accepts; empty for all tenants."""
    pool: Name = DEFAULT
    """Pool of clusters for the jobs."""
    policy: Name | PolicyChoice = "bestfit"
    """Policy that places the jobs: its name, or `{"name": "utilization", "options": {"level": "cluster"}}`."""
    policy_options: PolicyOptionsIn = no_pairs()
    """Options of the policy, if `policy` is a name: `level`, `seed` or `weights`."""
    shadow: NameOrNone = ""
    """Shadow policy, whose decisions are recorded for comparison but not applied; empty for none."""
    open: bool = True
    """True if the queue accepts new jobs."""
    description: Line = ""
    allowed_taints: Keys = no_entries()
    """Keys of the taints that jobs may tolerate; `*` for all."""
    allowed_node_labels: Keys = no_entries()
    """Keys of the node labels that jobs may require; `*` for all."""
    parent: NameOrNone = ""
    """Queue that it is part of; empty for none. A queue with children takes no jobs itself."""
    weight: Annotated[int, Field(ge=0, le=MAX_WEIGHT)] = 1
    """Share of what the guarantees of its siblings leave; 0 for nothing beyond its guarantee."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Queues with a higher priority are served before their siblings, beyond the guarantees of all."""
    guarantee: AmountsIn = no_pairs()
    """Amounts that it gets before its siblings get more than their guarantees, by resource: `gpus`, `gpus/MODEL`,
    `gpu_cores`, `gpu_memory`, `cpu` and `memory`."""
    limit: AmountsIn = no_pairs()
    """Maximum amounts of its jobs and those of its descendants, by resource; no limit for others."""
    order: OrderName = "fair"
    """Order of its jobs: by submission time, by priority, by the use of their tenants, or the shortest first."""
    backfill: BackfillName = "easy"
    """Jobs that may start before an earlier one that does not fit: none, those that do not delay the first job, those
    that delay no earlier job, or all."""
    preemption: PreemptionName = "Never"
    """Running jobs that a waiting job displaces by its priority: none, or those of a lower priority."""
    preempts: PreemptsName = "all"
    """Queues in which they do: all of the same or a lower priority, on the same devices and beyond their guarantees, or
    only their own."""
    reclaim: ReclaimName = "Guarantee"
    """Running jobs of other queues that its waiting jobs displace, whatever their priorities.

    None; those beyond their guarantees, while it stays within its own; or also those of queues with a larger share.
    """
    preemptible: bool = True
    """True if its jobs may be displaced, unless a job says otherwise."""
    min_runtime: Time = "0s"
    """Time that a job runs before it may be displaced."""
    start_timeout: Time = time_text(START_TIMEOUT_S)
    """Time from the placement of a job until all its replicas run. Afterwards its devices are released in all clusters,
    and the job waits again. 0 for no limit."""
    grow_cooldown: Time = time_text(GROW_COOLDOWN_S)
    """Time after a resize of an elastic job before it gets more replicas."""
    elastic: ElasticName = "lend"
    """Replicas of elastic jobs beyond their minimum: they leave for any waiting job that limits admit, or stay unless
    the job may be displaced."""
    ageing: Time = "0s"
    """Time of waiting that counts as one point of priority; in the order `shortest` it halves the duration that counts.
    0 for no ageing."""
    borrowing_limit: AmountsIn = no_pairs()
    """Maximum amounts beyond the guarantee, by resource; no limit for others."""
    lending_limit: AmountsIn = no_pairs()
    """Amounts of the guarantee that other queues may use while it does not, by resource; all of others."""

    def values(self) -> dict[str, Any]:
        """Return the values of all fields, by their names in `Queue`.

        Raises
        ------
        RejectedError
            If an amount or its resource is invalid.
        """
        amounts = ("guarantee", "limit", "borrowing_limit", "lending_limit")
        return {
            **{name: getattr(self, name) for name in type(self).model_fields if name in Queue.__dataclass_fields__},
            **{name: parse_amounts(getattr(self, name), where=name) for name in amounts},
            **self._policy(),
            "allowed_taints": tuple(sorted({*self.allowed_taints})),
            "allowed_node_labels": tuple(sorted({*self.allowed_node_labels})),
            "order": Order(self.order),
            "backfill": Backfill(self.backfill),
            "preemption": Preemption(self.preemption),
            "preempts": Preempts(self.preempts),
            "reclaim": Reclaim(self.reclaim),
            "min_runtime_s": seconds(self.min_runtime),
            "start_timeout_s": seconds(self.start_timeout),
            "grow_cooldown_s": seconds(self.grow_cooldown),
            "elastic": Elastic(self.elastic),
            "ageing_s": seconds(self.ageing),
        }

    def _policy(self) -> dict[str, Any]:
        """Return the name and the options of the policy."""
        if isinstance(self.policy, str):
            return {"policy": self.policy, "policy_options": self.policy_options}
        if self.policy_options:
            raise RejectedError(reasons.Reason("options_given_twice"), where="policy_options")
        return {"policy": self.policy.name, "policy_options": self.policy.options}

    def queue(self, name: str) -> Queue:
        """Return the record.

        Raises
        ------
        RejectedError
            If an amount or its resource is invalid, or the guarantee exceeds the limit.
        """
        return Queue(**{**self.values(), "name": name})


class QueueChangeIn(QueueIn):
    """A new queue, or the changed fields of a queue. Omitted fields keep their value."""

    name: Name

    def change(self) -> tuple[str, dict[str, Any]]:
        """Return the name and the values of the given fields, by their names in `Queue`.

        Raises
        ------
        RejectedError
            If an amount or its resource is invalid.
        """
        fields = {*self.model_fields_set} | ({"policy_options"} if "policy" in self.model_fields_set else set())
        times = {"min_runtime", "start_timeout", "grow_cooldown", "ageing"}
        given = {f"{name}_s" if name in times else name for name in fields}
        return self.name, {name: value for name, value in self.values().items() if name in given - {"name"}}


class QueueOut(Shown):
    """A queue."""

    name: str
    tenant: str
    pool: str
    policy: str
    policy_options: dict[str, Any] = Field(default_factory=dict)
    """Options of the policy."""
    shadow: str
    open: bool
    description: str
    allowed_taints: list[str]
    allowed_node_labels: list[str]
    parent: str = ""
    weight: int = 1
    priority: int = 0
    guarantee: AmountsOut = Field(default_factory=dict)
    limit: AmountsOut = Field(default_factory=dict)
    order: OrderName = "fair"
    backfill: BackfillName = "easy"
    preemption: PreemptionName = "Never"
    preempts: PreemptsName = "all"
    reclaim: ReclaimName = "Guarantee"
    preemptible: bool = True
    min_runtime: str = "0s"
    start_timeout: str = time_text(START_TIMEOUT_S)
    grow_cooldown: str = time_text(GROW_COOLDOWN_S)
    elastic: ElasticName = "lend"
    ageing: str = "0s"
    borrowing_limit: AmountsOut = Field(default_factory=dict)
    lending_limit: AmountsOut = Field(default_factory=dict)
    version: str
    """Version, used as ETag."""


class QueueStored(QueueOut):
    """A queue that was created or changed."""

    warning: CodedOut | None = None
    """Limits of its policy while it decides; null for none."""
    warnings: list[CodedOut] = Field(default_factory=list)
    """Parts of the guarantee and limits that have no effect now, or that differ from what jobs hold."""


class QueueList(Shown):
    """Queues, by name."""

    queues: list[QueueOut]


class ShadowOut(Shown):
    """Comparison of a shadow policy with the live policy."""

    id: int
    at: str
    queue: str
    live: str
    shadow: str
    jobs: int
    """Number of decided jobs. In this and the other counts, a job that earlier comparisons include does not count."""
    tries: int
    """Number of decided jobs, with those that earlier comparisons include."""
    live_placed: int
    shadow_placed: int
    live_wait_ms: int
    """Sum of the waits of the jobs that the live policy placed, milliseconds."""
    shadow_wait_ms: int
    """Sum of the waits of the jobs that the shadow policy placed, until then, milliseconds."""
    same_node: int
    live_fragmentation_milli: int
    shadow_fragmentation_milli: int
    answered: int
    """Number of jobs that the shadow policy decided itself. A trained policy does not decide if nothing fits."""
    fallbacks: int
    """Number of jobs that the fallback decided instead."""


class ShadowList(Shown):
    """Comparisons, newest first."""

    shadows: list[ShadowOut]
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


def queue_fields(queue: Queue) -> dict[str, Any]:
    """Return the fields of `QueueOut` for a queue."""
    fields = {
        "name": queue.name,
        "tenant": queue.tenant,
        "pool": queue.pool,
        "policy": queue.policy,
        "policy_options": dict(queue.policy_options),
        "shadow": queue.shadow,
        "open": queue.open,
        "description": queue.description,
        "allowed_taints": list(queue.allowed_taints),
        "allowed_node_labels": list(queue.allowed_node_labels),
        "parent": queue.parent,
        "weight": queue.weight,
        "priority": queue.priority,
        "guarantee": written_amounts(queue.guarantee),
        "limit": written_amounts(queue.limit),
        "order": queue.order.value,
        "backfill": queue.backfill.value,
        "preemption": queue.preemption.value,
        "preempts": queue.preempts.value,
        "reclaim": queue.reclaim.value,
        "preemptible": queue.preemptible,
        "min_runtime": time_text(queue.min_runtime_s),
        "start_timeout": time_text(queue.start_timeout_s),
        "grow_cooldown": time_text(queue.grow_cooldown_s),
        "elastic": queue.elastic.value,
        "ageing": time_text(queue.ageing_s),
        "borrowing_limit": written_amounts(queue.borrowing_limit),
        "lending_limit": written_amounts(queue.lending_limit),
    }
    return versioned(fields)


def split_options(texts: Iterable[str]) -> dict[str, Any]:
    """Return the options of a policy from ``KEY=VALUE`` pairs, such as ``level=cluster`` or ``weights.price=2``.

    Raises
    ------
    RejectedError
        If one has another form.
    """
    found: dict[str, Any] = {}
    for each in filter(None, map(str.strip, texts)):
        path, equals, value = each.partition("=")
        name, _, inner = path.strip().partition(".")
        if not equals or not name:
            raise RejectedError(reasons.Reason("use_key_value", text=each[:80]), where="policy_options")
        number = whole_number(value.strip().removeprefix("-"))
        read = value.strip() if number is None else -number if value.strip().startswith("-") else number
        if inner:
            found.setdefault(name, {})[inner] = read
        else:
            found[name] = read
    return found


def shadow_fields(result: ShadowResult) -> dict[str, Any]:
    """Return the fields of `ShadowOut` for a comparison."""
    return fields_of(
        ShadowOut,
        result,
        at=moment(result.at_ns),
    )


def read_queue(fields: Mapping[str, Any]) -> Queue:
    """Return the queue of a mapping with its `name` and the fields of `QueueIn`.

    Raises
    ------
    RejectedError
        If a field is unknown or invalid.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    name = given.pop("name", "")
    return read_value(QueueIn, given).queue(str(name))
