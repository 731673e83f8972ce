"""Schedule: running jobs with their expected ends, and waiting jobs with their planned starts, computed on demand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import nsmallest
from itertools import islice, zip_longest

from seaway.application.control.loop import Controller
from seaway.domain.amounts import GPUS, requested_amounts
from seaway.domain.arrays import index_of
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.scheduling.cycle.plan import PlannedStart

NS_PER_S = 1_000_000_000


class Grouping(Enum):
    """Property by which a schedule groups jobs."""

    CLUSTER = "cluster"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Filter of a schedule; empty names match all.

    Attributes
    ----------
    within_s
        Time from now in which planned starts count, seconds.
    """

    cluster: str = ""
    queue: str = ""
    tenant: str = ""
    within_s: int = 86_400

    def matches(self, spec: JobSpec) -> bool:
        """Report whether the queue and the tenant of a job match."""
        return (not self.queue or self.queue == spec.queue) and (not self.tenant or self.tenant == spec.tenant)


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A running job, or a waiting one with a planned start.

    Attributes
    ----------
    clusters
        Clusters of its placement. Of a planned job: those of its reservation, or those that it may use; empty for all.
    starts_ns, ends_ns
        Start and expected end by the wall clock. None if the end is unknown.
    gpu_milli
        GPUs that it holds or requests, thousandths, as amounts count them.
    task
        Index of a task in its array; None for other jobs.
    """

    id: str
    name: str
    tenant: str
    queue: str
    clusters: tuple[str, ...]
    planned: bool
    starts_ns: int
    ends_ns: int | None
    gpu_milli: int
    task: int | None


@dataclass(frozen=True, slots=True)
class ScheduleGroup:
    """Jobs of a cluster or a queue.

    Attributes
    ----------
    name
        Name; empty for planned jobs that may start in several clusters.
    running, planned
        Number of running jobs, and of jobs with a planned start, with those that are left out.
    jobs
        The jobs that are shown: running ones by start, then planned ones by start.
    """

    name: str
    running: int
    planned: int
    jobs: list[ScheduledJob]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Running and planned jobs by cluster or queue.

    Attributes
    ----------
    unplanned
        Number of waiting jobs without an expected start within the time.
    """

    now_ns: int
    groups: list[ScheduleGroup]
    unplanned: int


@dataclass(frozen=True, slots=True)
class _Planned:
    """Waiting job with its plan, and the clusters of its reservation or that it may use; empty for all."""

    job: JobRecord
    start: PlannedStart
    starts_ns: int
    clusters: Collection[str]


@dataclass(slots=True)
class _Group:
    running: list[Attempt] = field(default_factory=list)
    planned: list[_Planned] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.running) + len(self.planned)

    def shown(self, most: int) -> list[Attempt | _Planned]:
        """Return the largest running jobs and the earliest planned ones, in turn."""
        running = nsmallest(most, self.running, key=lambda each: -each.amounts.get(GPUS, 0))
        planned = nsmallest(most, self.planned, key=lambda each: each.starts_ns)
        pairs = zip_longest(running, planned)
        return list(islice((each for pair in pairs for each in pair if each is not None), most))


def schedule(
    controller: Controller,
    without_place: Callable[[Iterable[JobRecord]], Container[str]],
    by: Grouping,
    wanted: ScheduleFilter,
    limit: int,
) -> Schedule:
    """Return the schedule of the fleet.

    A job that runs in several clusters is part of the group of each.

    Parameters
    ----------
    without_place
        Return the IDs of jobs that no node can hold, so that their starts are unknown.
    limit
        Maximum number of shown jobs. Groups share it equally. Large running jobs and early starts are shown first.
    """
    plan, live = controller.forecast.plan(), controller.live
    with controller.lock:
        now_ns = live.clock.now_ns()
        attempts, jobs = list(live.attempts.values()), list(live.jobs.values())
        reserved = {
            each.entry.id: {cluster for cluster, _ in each.nodes} for each in controller.scheduler.reservations.made()
        }
    groups: defaultdict[str, _Group] = defaultdict(_Group)
    for each in attempts:
        if each.state.live and wanted.matches(each.spec) and (not wanted.cluster or wanted.cluster in each.clusters):
            for name in _names(by, wanted, each.spec.queue, each.clusters):
                groups[name].running.append(each)
    waiting = [job for job in jobs if job.state.waits and wanted.matches(job.spec)]
    found, unplanned = _planned(waiting, plan, reserved, wanted, now_ns)
    unknown = without_place(each.job for each in found)
    planned = [each for each in found if each.job.id not in unknown]
    unplanned += len(found) - len(planned)
    for waits in planned:
        for name in _names(by, wanted, waits.job.spec.queue, waits.clusters if len(waits.clusters) == 1 else [""]):
            groups[name].planned.append(waits)
    names = sorted(groups, key=lambda name: (not name, name))
    parts = _divided(limit, [len(groups[name]) for name in names])
    shown = {name: groups[name].shown(part) for name, part in zip(names, parts, strict=True)}

    def rest_ns(attempt: Attempt) -> int | None:
        key = attempt.job_id, attempt.number
        return live.expected_rest_ns(key, now_ns) if key in live.attempts else None  # it may have ended since

    with controller.lock:
        made = {name: [_job_of(each, now_ns, rest_ns) for each in bars] for name, bars in shown.items()}
    return Schedule(
        now_ns,
        [
            ScheduleGroup(
                name,
                len(groups[name].running),
                len(groups[name].planned),
                sorted(made[name], key=lambda job: (job.planned, job.starts_ns)),
            )
            for name in names
        ],
        unplanned,
    )


def _planned(
    waiting: Sequence[JobRecord],
    plan: Mapping[str, PlannedStart],
    reserved: Mapping[str, Collection[str]],
    wanted: ScheduleFilter,
    now_ns: int,
) -> tuple[list[_Planned], int]:
    """Return the jobs with a planned start in the order of the plan, and the number of the others."""
    found, unplanned, until_ns = [], 0, now_ns + wanted.within_s * NS_PER_S
    for job in waiting:
        start = plan.get(job.id)
        clusters = reserved.get(job.id) or (start.clusters if start else job.spec.demand.nodes.clusters)
        if wanted.cluster and clusters and wanted.cluster not in clusters:
            continue
        if start is None or start.starts_ns is None or start.starts_ns > until_ns:
            unplanned += 1
        else:
            found.append(_Planned(job, start, max(start.starts_ns, now_ns), clusters))
    return sorted(found, key=lambda each: each.start.rank), unplanned


def _names(by: Grouping, wanted: ScheduleFilter, queue: str, clusters: Collection[str]) -> Collection[str]:
    """Return the names of the groups of a job; of a single cluster if the schedule is of that cluster."""
    if by is Grouping.QUEUE:
        return (queue,)
    return (wanted.cluster,) if wanted.cluster in clusters and wanted.cluster else clusters


def _divided(limit: int, sizes: Sequence[int]) -> list[int]:
    """Divide a number of places equally among groups, none of which gets more than its size."""
    turns = sorted((turn, at) for at, size in enumerate(sizes) for turn in range(min(limit, size)))
    parts = Counter(at for _, at in turns[:limit])
    return [parts[at] for at in range(len(sizes))]


def _job_of(source: Attempt | _Planned, now_ns: int, rest_of: Callable[[Attempt], int | None]) -> ScheduledJob:
    """Return a job; `rest_of` returns the time until the expected end of an attempt, None if it is unknown."""
    if isinstance(source, Attempt):
        spec, job_id, clusters, rest_ns = source.spec, source.job_id, source.clusters, rest_of(source)
        starts_ns, ends_ns = source.running_ns or source.created_ns, None if rest_ns is None else now_ns + rest_ns
        gpu_milli, task = source.amounts.get(GPUS, 0), index_of(spec.run.env)
    else:
        spec, job_id, clusters = source.job.spec, source.job.id, tuple(sorted(source.clusters))
        late_ns = source.starts_ns - (source.start.starts_ns or 0)  # the plan is older than now
        starts_ns, ends_ns = source.starts_ns, source.start.ends_ns and source.start.ends_ns + late_ns
        gpu_milli = requested_amounts(spec.demand, spec.replicas).get(GPUS, 0)
        task = source.job.index if source.job.array else None
    return ScheduledJob(
        job_id,
        spec.name,
        spec.tenant,
        spec.queue,
        clusters,
        isinstance(source, _Planned),
        starts_ns,
        ends_ns,
        gpu_milli,
        task,
    )
